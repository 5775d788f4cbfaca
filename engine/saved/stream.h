/* Streams of bytes, out and in: what state is written to and read from. Whoever owns one puts it first in a struct of its own. */
#ifndef IVM__STREAM_H
#define IVM__STREAM_H

#include <stddef.h>

#include "ivm/status.h"

typedef struct ivm__sink ivm__sink;
struct ivm__sink {
    /* Takes all of the bytes. After a failure nothing more may be written. */
    ivm_status (*write)(ivm__sink *self, const void *bytes, size_t size);
    const struct ivm__cancel *cancel; /* who writes much looks at it now and then (cancel.h); NULL: nobody asks */
};

typedef struct ivm__feed ivm__feed;
struct ivm__feed {
    /* Gives just so many bytes; corrupt where there are fewer. After a failure nothing more may be read. */
    ivm_status (*read)(ivm__feed *self, void *bytes, size_t size);
    ivm_error *error; /* of the call: who finds bytes that cannot be says so here (NULL is fine) */
};

#endif
