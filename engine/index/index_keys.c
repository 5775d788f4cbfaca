/* Keys of a chunk, packed row by row for an index and hashed. One plain 8-byte column is its own packed form; else cells go column by column
 * to where each row's words stand. Cost: 2 ns a key of one word, 1 ns or so for each further word. */
#include "index.h"

static inline const ivm__vector *key_vector(const ivm__chunk *chunk, const uint32_t *columns, uint32_t nth)
{
    uint32_t column = columns ? columns[nth] : nth;
    assert(column < chunk->columns_count);
    return &chunk->columns[column];
}

static void words_pack(const uint64_t *cells, uint32_t rows_count, uint32_t stride, uint64_t *restrict out)
{
    for (uint32_t i = 0; i < rows_count; i++) {
        out[(size_t)i * stride] = cells[i];
    }
}

static void wides_pack(const ivm__wide *cells, uint32_t rows_count, uint32_t stride, uint64_t *restrict out)
{
    for (uint32_t i = 0; i < rows_count; i++) {
        memcpy(&out[(size_t)i * stride], &cells[i], sizeof cells[i]);
    }
}

static void word_clear(uint32_t rows_count, uint32_t stride, uint64_t *restrict out)
{
    for (uint32_t i = 0; i < rows_count; i++) {
        out[(size_t)i * stride] = 0;
    }
}

static void null_bits_pack(const uint8_t *nulls, uint32_t rows_count, uint32_t bit, uint32_t stride, uint64_t *restrict out)
{
    for (uint32_t i = 0; i < rows_count; i++) {
        out[(size_t)i * stride] |= (uint64_t)nulls[i] << bit;
    }
}

static void keys_pack(const ivm__index *index, const ivm__chunk *chunk, const uint32_t *columns, uint64_t *words)
{
    uint32_t stride = index->words_count, rows_count = chunk->rows_count;
    uint64_t *null_words = words + (stride - index->null_words);
    for (uint32_t i = 0; i < index->null_words; i++) {
        word_clear(rows_count, stride, null_words + i);
    }
    for (uint32_t c = 0; c < index->columns_count; c++) {
        const ivm__vector *in = key_vector(chunk, columns, c);
        assert(in->cells && in->type == index->store->layout->types[index->columns[c]]);
        if (ivm__type_is_wide(in->type)) {
            wides_pack(in->cells, rows_count, stride, words);
        } else {
            words_pack(in->cells, rows_count, stride, words);
        }
        words += ivm__type_words(in->type);
        if (in->nulls && index->nullable) {
            null_bits_pack(in->nulls, rows_count, c & 63, stride, null_words + c / 64);
        }
    }
}

static void keys_hash(const uint64_t *restrict words, uint32_t rows_count, uint32_t words_count, uint64_t seed, uint64_t *restrict hashes)
{
    if (words_count == 1) {
        for (uint32_t i = 0; i < rows_count; i++) {
            hashes[i] = ivm__hash_word(words[i], seed);
        }
    } else if (words_count == 2) {
        for (uint32_t i = 0; i < rows_count; i++) {
            hashes[i] = ivm__hash_words(words + 2 * (size_t)i, 2, seed);
        }
    } else {
        for (uint32_t i = 0; i < rows_count; i++) {
            hashes[i] = ivm__hash_words(words + (size_t)i * words_count, words_count, seed);
        }
    }
}

static void nulls_merge(const uint8_t *restrict nulls, uint32_t rows_count, uint8_t *restrict out)
{
    for (uint32_t i = 0; i < rows_count; i++) {
        out[i] |= nulls[i];
    }
}

/* Rows with a null in a key column: one column's nulls are taken as they are, several are merged. */
static ivm_status keys_skip(const ivm__index *index, ivm__arena *arena, const ivm__chunk *chunk, const uint32_t *columns,
                            const uint8_t **skip)
{
    uint8_t *merged = NULL;
    for (uint32_t c = 0; c < index->columns_count; c++) {
        const uint8_t *nulls = key_vector(chunk, columns, c)->nulls;
        if (!nulls || !*skip) {
            *skip = nulls ? nulls : *skip;
            continue;
        }
        if (!merged) {
            merged = ivm__arena_allocate(arena, chunk->rows_count);
            if (!merged) {
                return IVM_OUT_OF_MEMORY;
            }
            memcpy(merged, *skip, chunk->rows_count);
            *skip = merged;
        }
        nulls_merge(nulls, chunk->rows_count, merged);
    }
    return IVM_OK;
}

ivm_status ivm__index_keys(const ivm__index *index, ivm__arena *arena, const ivm__chunk *chunk, const uint32_t *columns, bool null_is_value,
                           ivm__keys *keys)
{
    uint32_t rows_count = chunk->rows_count, words_count = index->words_count;
    *keys = (ivm__keys){ .rows_count = rows_count, .words_count = words_count };
    keys->hashes = ivm__arena_allocate(arena, rows_count * sizeof *keys->hashes);
    if (!keys->hashes) {
        return IVM_OUT_OF_MEMORY;
    }
    if (words_count == 1) {
        const ivm__vector *in = key_vector(chunk, columns, 0);
        assert(in->cells && in->type == index->store->layout->types[index->columns[0]]);
        keys->words = in->cells;
    } else {
        uint64_t *words = ivm__arena_allocate(arena, (size_t)rows_count * words_count * sizeof *words);
        if (!words) {
            return IVM_OUT_OF_MEMORY;
        }
        keys_pack(index, chunk, columns, words);
        keys->words = words;
    }
    keys_hash(keys->words, rows_count, words_count, index->store->seed, keys->hashes);
    /* Where the index's columns hold no nulls a key with one finds nothing either way. */
    return null_is_value && index->nullable ? IVM_OK : keys_skip(index, arena, chunk, columns, &keys->skip);
}
