/* The conditions of a run; see conditions.h. The commit comes from a header that each build writes (commit.cmake). */
#include "conditions.h"

#include "commit.h"
#include "ivm/ivm.h"

#include <string.h>
#include <unistd.h>
#ifdef IVM_BENCH_JEMALLOC
#include <jemalloc/jemalloc.h>
#endif

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static const char *allocator_name(void)
{
#ifdef IVM_BENCH_JEMALLOC
    static char text[64];
    const char *version = "";
    size_t size = sizeof version;
    if (mallctl("version", &version, &size, NULL, 0) != 0) {
        version = "";
    }
    snprintf(text, sizeof text, "jemalloc %.*s", (int)strcspn(version, "-"), version);
    return text;
#else
    return "malloc";
#endif
}

void conditions_print(FILE *file, const char *bench, bool json, clock_kind clock)
{
    const char *clock_name = clock == CLOCK_CPU ? "cpu" : "wall";
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (json) {
        fprintf(file,
                "{\"bench\": \"%s\", \"metric\": \"conditions\", \"value\": 1, \"version\": \"%s\", \"commit\": \"%s\", \"compiler\": "
                "\"%s\", \"build\": \"%s\", \"allocator\": \"%s\", \"clock\": \"%s\", \"processors\": %ld}\n",
                bench, ivm_version(), IVM_BENCH_COMMIT, COMPILER, IVM_BENCH_BUILD, allocator_name(), clock_name, processors);
    } else {
        fprintf(file, "ivm %s, commit %s, %s, %s build, %s, %s clock, %ld processors\n", ivm_version(), IVM_BENCH_COMMIT, COMPILER,
                IVM_BENCH_BUILD, allocator_name(), clock_name, processors);
    }
    fflush(file);
}
