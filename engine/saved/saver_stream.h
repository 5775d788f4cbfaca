/* What the operators of programs hold, as sections of a framed stream. loader.h reads them.
 *
 *     KEPT view, operator << 8 | holding        content: rows (row_code.h), rows with their payloads, or the operator's own bytes
 *
 * Holdings with a payload and those of bytes are written while the program is walked; of the others a snapshot is taken, and they are written when the
 * caller wants, without the engine's lock. A stream has them in that order: all views' of the first kind, then all of the second. */
#ifndef IVM__SAVER_STREAM_H
#define IVM__SAVER_STREAM_H

#include "block.h"
#include "catalog.h"
#include "row_stream.h"

#define IVM__HOLDINGS_MAX 256u /* of an operator */

/* Of the operator at this place in its view's program. */
static inline ivm__section ivm__holding_section(uint32_t view, uint32_t place, uint32_t number)
{
    assert(number < IVM__HOLDINGS_MAX && place < UINT32_MAX >> 8);
    return (ivm__section){ IVM__SECTION_KEPT, view, place << 8 | number };
}
/* What the rows of a holding are like. */
static inline ivm__row_shape ivm__holding_shape(const ivm__layout *layout, uint32_t columns_count)
{
    return (ivm__row_shape){ layout->types, layout->nullable, columns_count, NULL, 0, IVM__WEIGHTS_NOT_0 };
}

typedef struct ivm__stream_saver {
    ivm__saver saver;
    ivm_engine *engine;
    ivm__block_writer *writer;
    ivm__arena arena;
    size_t sort_bytes;
    uint32_t view, place, holding;  /* the next one */
    bool open;                      /* a holding of bytes is being written */
    struct ivm__held_section *held; /* to be written later, in their order */
    uint32_t held_count, held_capacity, held_written;
} ivm__stream_saver;

/* The writer's error is told. Deinit it, whatever the outcome. */
void ivm__stream_saver_init(ivm__stream_saver *saver, ivm_engine *engine, ivm__block_writer *writer, size_t sort_bytes);
/* Writes what must be written at once of a view's program, and takes snapshots of the rest. The engine's lock is held; no step is under way. */
ivm_status ivm__stream_saver_program(ivm__stream_saver *saver, uint32_t view, const ivm__program *program) IVM_MUST_CHECK;
/* Writes the rest, of all programs, and closes each snapshot when its rows are written. The lock need not be held. */
ivm_status ivm__stream_saver_held(ivm__stream_saver *saver) IVM_MUST_CHECK;
void ivm__stream_saver_deinit(ivm__stream_saver *saver); /* closes the snapshots that are left */

#endif
