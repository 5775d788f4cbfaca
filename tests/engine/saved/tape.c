/* A stream in memory. The caller frees its bytes. */
#include "tape.h"

#include <stdlib.h>
#include <string.h>

ivm_status tape_write(void *context, const void *bytes, size_t size)
{
    tape *to = context;
    if (to->writes && !--to->writes) {
        return IVM_IO;
    }
    if (to->size + size > to->capacity) {
        to->capacity = 2 * (to->size + size);
        to->bytes = realloc(to->bytes, to->capacity);
    }
    if (!to->bytes) {
        abort();
    }
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
    return IVM_OK;
}

ivm_status tape_read(void *context, void *bytes, size_t size, size_t *got)
{
    tape *from = context;
    size_t there = from->size - from->at, count = size < there ? size : there;
    if (from->limit && from->at >= from->limit) {
        return IVM_IO;
    }
    from->ended |= size > there;
    count = from->most && from->most < count ? from->most : count;
    memcpy(bytes, from->bytes + from->at, count);
    from->at += count;
    *got = count;
    return IVM_OK;
}
