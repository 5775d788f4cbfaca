/* Compression by zstd at its fastest level: what is written is rows in order, column by column, which it takes to a third or less. */
#include "compress.h"

#include <stdlib.h>
#include <zstd.h>

#define LEVEL 1

struct ivm__compressor {
    ZSTD_CCtx *in;
    ZSTD_DCtx *out;
};

bool ivm__compress_is_there(void)
{
    return true;
}

ivm_status ivm__compressor_create(ivm__compressor **compressor)
{
    ivm__compressor *made = calloc(1, sizeof *made);
    *compressor = NULL;
    if (!made || !(made->in = ZSTD_createCCtx()) || !(made->out = ZSTD_createDCtx())) {
        ivm__compressor_free(made);
        return IVM_OUT_OF_MEMORY;
    }
    *compressor = made;
    return IVM_OK;
}

void ivm__compressor_free(ivm__compressor *compressor)
{
    if (compressor) {
        ZSTD_freeCCtx(compressor->in);
        ZSTD_freeDCtx(compressor->out);
        free(compressor);
    }
}

size_t ivm__compress(ivm__compressor *compressor, const void *from, size_t size, void *to, size_t room)
{
    size_t made = ZSTD_compressCCtx(compressor->in, to, room, from, size, LEVEL);
    return ZSTD_isError(made) ? 0 : made;
}

bool ivm__decompress(ivm__compressor *compressor, const void *from, size_t size, void *to, size_t room)
{
    size_t made = ZSTD_decompressDCtx(compressor->out, to, room, from, size);
    return !ZSTD_isError(made) && made == room;
}
