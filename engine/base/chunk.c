/* Chunks: making, gathering and copying the columns that flow between operators. All memory is an arena's, so that nothing here is freed
 * one by one. Cost: a gather is one load and one store a cell, specialised by the cell's width. */
#include "chunk.h"

bool ivm__vector_make(ivm__arena *arena, ivm__vector *vector, ivm_type type, uint32_t rows, bool nullable)
{
    *vector = (ivm__vector){ .type = type };
    void *cells = ivm__arena_allocate(arena, (size_t)rows * ivm__type_words(type) * sizeof(uint64_t));
    uint8_t *nulls = nullable ? ivm__arena_allocate(arena, rows) : NULL;
    if (!cells || (nullable && !nulls)) {
        return false;
    }
    if (nulls) {
        memset(nulls, 0, rows);
    }
    vector->cells = cells;
    vector->nulls = nulls;
    return true;
}

ivm__chunk *ivm__chunk_make(ivm__arena *arena, const ivm_type *types, uint32_t columns_count)
{
    ivm__chunk *chunk = ivm__arena_allocate(arena, sizeof *chunk);
    ivm__vector *columns = ivm__arena_allocate(arena, columns_count * sizeof *columns);
    if (!chunk || !columns) {
        return NULL;
    }
    for (uint32_t c = 0; c < columns_count; c++) {
        columns[c] = (ivm__vector){ .type = types[c] };
    }
    *chunk = (ivm__chunk){ .columns_count = columns_count, .columns = columns };
    return chunk;
}

/* ---- Gathering ------------------------------------------------------------------------------------------------------------------- */

static void words_gather(const uint64_t *restrict in, const uint32_t *restrict rows, uint32_t count, uint64_t *restrict out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = in[rows[i]];
    }
}

static void wides_gather(const ivm__wide *restrict in, const uint32_t *restrict rows, uint32_t count, ivm__wide *restrict out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = in[rows[i]];
    }
}

static void nulls_gather(const uint8_t *restrict in, const uint32_t *restrict rows, uint32_t count, uint8_t *restrict out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = in[rows[i]];
    }
}

void ivm__vector_gather(const ivm__vector *in, const uint32_t *rows, uint32_t count, ivm__vector *out)
{
    assert(in->cells && out->cells && in->cells != out->cells);
    assert(in->type == out->type);
    assert(!in->nulls || out->nulls);
    if (ivm__type_is_wide(in->type)) {
        wides_gather(in->cells, rows, count, out->cells);
    } else {
        words_gather(in->cells, rows, count, out->cells);
    }
    if (in->nulls) {
        nulls_gather(in->nulls, rows, count, out->nulls);
    } else if (out->nulls) {
        memset(out->nulls, 0, count);
    }
}

static const uint16_t *codes_gather(ivm__arena *arena, const uint16_t *in, const uint32_t *restrict rows, uint32_t count)
{
    uint16_t *restrict out = ivm__arena_allocate(arena, count * sizeof *out);
    for (uint32_t i = 0; out && i < count; i++) {
        out[i] = in[rows[i]];
    }
    return out;
}

bool ivm__vector_choose(ivm__arena *arena, const ivm__vector *in, const uint32_t *rows, uint32_t count, ivm__vector *out)
{
    if (!ivm__vector_make(arena, out, in->type, count, in->nulls != NULL)) {
        return false;
    }
    ivm__vector_gather(in, rows, count, out);
    if (in->codes) {
        out->codes = codes_gather(arena, in->codes, rows, count);
        out->codes_of = in->codes_of;
    }
    return !in->codes || out->codes;
}

static ivm__weight *weights_gather(ivm__arena *arena, const ivm__weight *in, const uint32_t *rows, uint32_t count)
{
    ivm__weight *out = ivm__arena_allocate(arena, count * sizeof *out);
    if (out) {
        wides_gather(in, rows, count, out);
    }
    return out;
}

ivm__chunk *ivm__chunk_gather(ivm__arena *arena, const ivm__chunk *chunk, const uint32_t *rows, uint32_t count)
{
    ivm__chunk *out = ivm__arena_allocate(arena, sizeof *out);
    ivm__vector *columns = ivm__arena_allocate(arena, chunk->columns_count * sizeof *columns);
    if (!out || !columns) {
        return NULL;
    }
    *out = (ivm__chunk){ .rows_count = count, .columns_count = chunk->columns_count, .columns = columns };
    for (uint32_t c = 0; c < chunk->columns_count; c++) {
        const ivm__vector *in = &chunk->columns[c];
        columns[c] = (ivm__vector){ .type = in->type };
        if (!in->cells) {
            continue;
        }
        if (!ivm__vector_choose(arena, in, rows, count, &columns[c])) {
            return NULL;
        }
    }
    if (chunk->weights && !(out->weights = weights_gather(arena, chunk->weights, rows, count))) {
        return NULL;
    }
    return out;
}

/* ---- Order ----------------------------------------------------------------------------------------------------------------------- */

static int float_compare(double a, double b)
{
    bool a_nan = a != a, b_nan = b != b;
    return a_nan || b_nan ? a_nan - b_nan : (a > b) - (a < b);
}

int ivm__cell_compare(ivm_type type, ivm__wide a, ivm__wide b)
{
    switch (IVM_TYPE_KIND(type)) {
    case IVM_DECIMAL_KIND:
        return (a > b) - (a < b);
    case IVM_FLOAT64:
        return float_compare(ivm__word_float((uint64_t)a), ivm__word_float((uint64_t)b));
    case IVM_STRING:
        return ivm__text_compare((const ivm__text *)(uintptr_t)a, (const ivm__text *)(uintptr_t)b);
    default:
        return ((int64_t)a > (int64_t)b) - ((int64_t)a < (int64_t)b);
    }
}
