/* Saving and loading what operators hold between steps.
 *
 *     save     holdings, always the same ones in the same order:   rows   rows with a payload each   bytes
 *     load     an operator just made, holding by holding, chunk by chunk          settle     what follows from them is made again
 *
 * Written is content, never layout: rows by value and in the order of their values, states as numbers. Row ids, hash seeds, undo marks, slots and
 * whatever follows from the holdings (indexes, trees, rows of a result) are left out: two operators that came to the same content by other
 * ways write the same bytes. */
#ifndef IVM__SAVER_H
#define IVM__SAVER_H

#include "store.h"
#include "stream.h"

/* Writes a row's payload. */
typedef ivm_status ivm__row_save(const void *context, const ivm__store *store, ivm__row_id row, ivm__sink *sink);

typedef struct ivm__saver ivm__saver;
struct ivm__saver {
    /* A holding of the store's present rows with their weights: the first `columns_count` columns, ascending by them, equal ones as one. The rows may be
     * written later, from pages shared with the store. `save` NULL: rows alone; else each is followed by its payload, and all is written before this
     * returns; no two rows are equal then. No step is under way. */
    ivm_status (*rows)(ivm__saver *self, const ivm__store *store, uint32_t columns_count, ivm__row_save *save, const void *context);
    /* A holding of bytes: until the next holding or the end of save() they go to *sink. */
    ivm_status (*bytes)(ivm__saver *self, ivm__sink **sink);
};

#endif
