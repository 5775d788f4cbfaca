/* A library built without zstd: nothing is compressed, and what was compressed cannot be read. */
#include "compress.h"

bool ivm__compress_is_there(void)
{
    return false;
}

ivm_status ivm__compressor_create(ivm__compressor **compressor)
{
    *compressor = NULL;
    return IVM_UNSUPPORTED;
}

void ivm__compressor_free(ivm__compressor *compressor)
{
    (void)compressor;
}

size_t ivm__compress(ivm__compressor *compressor, const void *from, size_t size, void *to, size_t room)
{
    (void)compressor, (void)from, (void)size, (void)to, (void)room;
    return 0;
}

bool ivm__decompress(ivm__compressor *compressor, const void *from, size_t size, void *to, size_t room)
{
    (void)compressor, (void)from, (void)size, (void)to, (void)room;
    return false;
}
