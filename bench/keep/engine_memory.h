/* Memory for one engine that is counted as the process pays for it: from a jemalloc arena of its own, size classes included. Where the command is
 * built without jemalloc (the sanitizers keep their own malloc) it is malloc's and counted as asked for. */
#ifndef IVM_BENCH_ENGINE_MEMORY_H
#define IVM_BENCH_ENGINE_MEMORY_H

#include "ivm/ivm.h"

#include <stdint.h>

/* What fails ends the process. One at a time: the next one begins at 0. */
ivm_allocator engine_memory_open(void);
uint64_t engine_memory_bytes(void);

#endif
