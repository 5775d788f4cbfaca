/* A child of an Arrow array as a column of a batch: in place where it lies as the column does, else converted into blocks that the batch keeps. */
#ifndef IVM__ARROW_READ_H
#define IVM__ARROW_READ_H

#include "arrow_form.h"
#include "batch.h"

/* Rows at .. at + rows - 1 of the array, not counting its offset, for a column of this type. `where` ("table t, column c") is for messages, in which rows count
 * from `at`. */
typedef struct ivm__arrow_reading {
    ivm_batch *batch; /* keeps what is converted, and the mistake */
    const char *where;
    const struct ArrowArray *array;
    ivm__arrow_form form;
    ivm_type type;
    size_t at, rows;
    const char *format; /* for messages */
} ivm__arrow_reading;

/* Without rows *data has no arrays. Fails with the batch's mistake. */
ivm_status ivm__arrow_read(const ivm__arrow_reading *in, ivm_column_data *data) IVM_MUST_CHECK;
/* The same where the array's values are indexes of this form into its dictionary, whose values have in->form. */
ivm_status ivm__arrow_dictionary_read(const ivm__arrow_reading *in, const ivm__arrow_form *indexes, ivm_column_data *data) IVM_MUST_CHECK;

/* That the array is built as its form wants it and has the rows. */
ivm_status ivm__arrow_array_check(const ivm__arrow_reading *in, ivm__arrow_layout layout) IVM_MUST_CHECK;
/* Memory of the batch's, aligned to 16 and cleared. NULL: out of memory, remembered. */
void *ivm__arrow_block(ivm_batch *batch, size_t size);
/* The rows' validity from bit 0 on; *validity NULL where the array has none. */
ivm_status ivm__arrow_validity_copy(const ivm__arrow_reading *in, uint8_t **validity) IVM_MUST_CHECK;
/* A whole number of a form as 128 bits; false: it has more. */
bool ivm__arrow_whole(const ivm__arrow_form *form, const uint8_t *values, size_t at, ivm__wide *number);
/* The bytes of strings do not fit offsets of 32 bits. */
ivm_status ivm__arrow_strings_fail(const ivm__arrow_reading *in) IVM_MUST_CHECK;

/* Strings with offsets of 64 bits, and views. */
ivm_status ivm__arrow_large_read(const ivm__arrow_reading *in, ivm_column_data *data) IVM_MUST_CHECK;
ivm_status ivm__arrow_views_read(const ivm__arrow_reading *in, ivm_column_data *data) IVM_MUST_CHECK;

static inline bool ivm__arrow_bit(const uint8_t *bits, size_t at)
{
    return bits[at >> 3] >> (at & 7) & 1;
}

#endif
