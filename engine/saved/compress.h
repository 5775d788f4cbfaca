/* Compression of blocks: zstd, where the library was built with it (IVM_ZSTD). Its contexts take their memory from malloc themselves and are not
 * counted, as jansson's values are not. */
#ifndef IVM__COMPRESS_H
#define IVM__COMPRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "ivm/status.h"

typedef struct ivm__compressor ivm__compressor;

bool ivm__compress_is_there(void);
/* Unsupported where there is none. */
ivm_status ivm__compressor_create(ivm__compressor **compressor) IVM_MUST_CHECK;
void ivm__compressor_free(ivm__compressor *compressor); /* NULL is fine */
/* How many bytes of the room were filled; 0: they are too few, or it failed. Cost: about 3 ns a byte. */
size_t ivm__compress(ivm__compressor *compressor, const void *from, size_t size, void *to, size_t room);
/* Whether the bytes come to `room` bytes, neither more nor fewer. */
bool ivm__decompress(ivm__compressor *compressor, const void *from, size_t size, void *to, size_t room);

#endif
