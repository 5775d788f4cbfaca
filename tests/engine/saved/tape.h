/* A stream in memory, written and read by the functions of a caller. */
#ifndef TAPE_H
#define TAPE_H

#include <stdint.h>

#include "ivm/status.h"

typedef struct tape {
    uint8_t *bytes;
    size_t size, capacity;
    size_t at;       /* reading */
    size_t most;     /* bytes a reading gives at most; 0: as many as there are */
    size_t limit;    /* bytes before a reading fails; 0: never */
    uint32_t writes; /* until one fails; 0: none does */
    bool ended;      /* it was asked for a byte past its end */
} tape;

ivm_status tape_write(void *context, const void *bytes, size_t size);
ivm_status tape_read(void *context, void *bytes, size_t size, size_t *got);

#endif
