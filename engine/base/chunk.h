/* Chunks: what flows between operators, about a thousand rows as typed columns with a weight column.
 *
 * A cell is 8 bytes (bool 0/1, int64, float64 bits, date sign-extended, timestamp, string: a pointer to its ivm__text) or 16 bytes (decimal: the unscaled
 * __int128). A null's cell is all zero bits; float64 cells hold no -0.0 and one NaN only, so equal values have equal bits. */
#ifndef IVM__CHUNK_H
#define IVM__CHUNK_H

#include <assert.h>
#include <string.h>

#include "codes.h"
#include "text.h"

#define IVM__CHUNK_ROWS 1024u

typedef __int128 ivm__wide;
/* In flight a weight has 128 bits: terms meet pairs of old and new rows whose product is out of int64 and cancels in the sum. */
typedef __int128 ivm__weight;

typedef struct ivm__vector {
    ivm_type type;
    void *cells;    /* uint64_t[] or ivm__wide[], aligned; NULL: the column is not carried, nobody above reads it. May be the user's
                       array: write only to what you made */
    uint8_t *nulls; /* a byte a row, 1 = null; NULL: no nulls */
    /* Where a column was read by codes (codes.h): that of each row, 8-byte cells, without nulls. NULL: not known. */
    const uint16_t *codes;
    const ivm__codes *codes_of;
} ivm__vector;

typedef struct ivm__chunk {
    uint32_t rows_count; /* 1..IVM__CHUNK_ROWS when it flows */
    uint32_t columns_count;
    ivm__vector *columns;
    ivm__weight *weights; /* NULL: all 1 */
} ivm__chunk;

/* Whether the number is that of a type at all. */
static inline bool ivm__type_is_valid(ivm_type type)
{
    uint32_t kind = IVM_TYPE_KIND(type), precision = IVM_TYPE_PRECISION(type), scale = IVM_TYPE_SCALE(type);
    if (kind == IVM_DECIMAL_KIND) {
        return type == IVM_DECIMAL(precision, scale) && precision >= 1 && precision <= IVM_DECIMAL_PRECISION_MAX && scale <= precision;
    }
    return type == kind && kind >= IVM_BOOL && kind <= IVM_TIMESTAMP;
}
static inline bool ivm__type_is_wide(ivm_type type)
{
    return IVM_TYPE_KIND(type) == IVM_DECIMAL_KIND;
}
static inline uint32_t ivm__type_words(ivm_type type)
{
    return ivm__type_is_wide(type) ? 2 : 1;
}
static inline bool ivm__is_null(const ivm__vector *vector, uint32_t row)
{
    return vector->nulls && vector->nulls[row];
}
static inline uint64_t ivm__word(const ivm__vector *vector, uint32_t row)
{
    return ((const uint64_t *)vector->cells)[row];
}
static inline ivm__wide ivm__wide_cell(const ivm__vector *vector, uint32_t row)
{
    return ((const ivm__wide *)vector->cells)[row];
}
static inline const ivm__text *ivm__text_cell(const ivm__vector *vector, uint32_t row)
{
    return (const ivm__text *)(uintptr_t)((const uint64_t *)vector->cells)[row];
}
static inline ivm__weight ivm__chunk_weight(const ivm__chunk *chunk, uint32_t row)
{
    return chunk->weights ? chunk->weights[row] : 1;
}
static inline uint64_t ivm__float_word(double value)
{
    uint64_t word;
    if (value == 0) {
        value = 0;
    }
    memcpy(&word, &value, sizeof word);
    return value != value ? 0x7ff8000000000000ull : word;
}
static inline double ivm__word_float(uint64_t word)
{
    double value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static inline bool ivm__chunk_any_negative(const ivm__chunk *chunk)
{
    bool negative = false;
    for (uint32_t i = 0; chunk->weights && i < chunk->rows_count; i++) {
        negative |= chunk->weights[i] < 0;
    }
    return negative;
}

/* A vector of `rows` cells in the arena, with a null column if asked for (cleared). False: out of memory. */
bool ivm__vector_make(ivm__arena *arena, ivm__vector *vector, ivm_type type, uint32_t rows, bool nullable);
/* A chunk with an array of uncarried columns of these types. NULL: out of memory. */
ivm__chunk *ivm__chunk_make(ivm__arena *arena, const ivm_type *types, uint32_t columns_count);
/* out[i] = in[rows[i]], cells and nulls; `out` has room; out->nulls is left NULL if the source has none, else must be given. */
void ivm__vector_gather(const ivm__vector *in, const uint32_t *rows, uint32_t count, ivm__vector *out);
/* The chosen rows of a column, with their codes, as a new vector in the arena. False: out of memory. */
bool ivm__vector_choose(ivm__arena *arena, const ivm__vector *in, const uint32_t *rows, uint32_t count, ivm__vector *out);
/* The carried columns and weights of the chosen rows, as a new chunk in the arena. NULL: out of memory. */
ivm__chunk *ivm__chunk_gather(ivm__arena *arena, const ivm__chunk *chunk, const uint32_t *rows, uint32_t count);
/* <0, 0, >0 for two non-null cells of one type in its order (pass the cell as a wide: 8-byte cells zero-extended). */
int ivm__cell_compare(ivm_type type, ivm__wide a, ivm__wide b);

#endif
