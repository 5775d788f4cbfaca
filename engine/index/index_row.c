/* Keys as they lie in rows of state: hashed and compared in place, as if packed (see index.h). Cost: a load and a fold or comparison a word;
 * a key whose cells lie side by side is compared in one go. */
#include "index_inside.h"

/* Bit i: the row's key column 64 * nth + i is null. */
static uint64_t row_nulls(const ivm__index *index, const uint8_t *row, uint32_t nth)
{
    const ivm__layout *layout = index->store->layout;
    uint32_t first = nth * 64;
    uint32_t count = index->columns_count - first < 64 ? index->columns_count - first : 64;
    if (index->contiguous && index->columns[0] == 0) {
        uint64_t word = ivm__word_at(row + IVM__ROW_HEADER + nth * sizeof(uint64_t));
        return count < 64 ? word & (((uint64_t)1 << count) - 1) : word;
    }
    uint64_t word = 0;
    for (uint32_t i = 0; i < count; i++) {
        word |= (uint64_t)ivm__row_is_null(layout, row, index->columns[first + i]) << i;
    }
    return word;
}

/* The same as ivm__hash_words(), word by word. */
static inline uint64_t hash_next(uint64_t hash, bool first, uint64_t word, uint64_t seed)
{
    return first ? ivm__hash_word(word, seed) : ivm__hash_fold(hash, word);
}

static uint64_t cells_hash(const ivm__index *index, const uint8_t *row)
{
    uint64_t seed = index->store->seed, hash = 0;
    bool first = true;
    for (uint32_t c = 0; c < index->columns_count; c++) {
        const uint8_t *cell = ivm__index_cell(index, row, c);
        for (uint32_t w = 0; w < ivm__index_cell_words(index, c); w++) {
            hash = hash_next(hash, first, ivm__word_at(cell + w * sizeof(uint64_t)), seed);
            first = false;
        }
    }
    return hash;
}

static uint64_t cells_hash_contiguous(const ivm__index *index, const uint8_t *row)
{
    const uint8_t *cells = ivm__index_cell(index, row, 0);
    uint64_t hash = ivm__hash_word(ivm__word_at(cells), index->store->seed);
    for (uint32_t w = 1; w < index->words_count - index->null_words; w++) {
        hash = ivm__hash_fold(hash, ivm__word_at(cells + w * sizeof(uint64_t)));
    }
    return hash;
}

uint64_t ivm__index_row_hash_words(const ivm__index *index, const uint8_t *row)
{
    uint64_t seed = index->store->seed;
    if (index->columns_count == 0) {
        return ivm__hash_words(NULL, 0, seed);
    }
    uint64_t hash = index->contiguous ? cells_hash_contiguous(index, row) : cells_hash(index, row);
    for (uint32_t i = 0; i < index->null_words; i++) {
        hash = ivm__hash_fold(hash, row_nulls(index, row, i));
    }
    return index->words_count > 1 ? ivm__hash_word(hash, seed) : hash;
}

/* A few words: a call of memcmp would cost more than they do. */
static inline bool words_equal(const uint8_t *cells, const uint64_t *words, uint32_t count)
{
    uint64_t unlike = 0;
    for (uint32_t i = 0; i < count; i++) {
        unlike |= ivm__word_at(cells + i * sizeof *words) ^ words[i];
    }
    return unlike == 0;
}

static bool cells_have(const ivm__index *index, const uint8_t *row, const uint64_t *words)
{
    for (uint32_t c = 0; c < index->columns_count; c++) {
        uint32_t count = ivm__index_cell_words(index, c);
        if (memcmp(ivm__index_cell(index, row, c), words, count * sizeof *words) != 0) {
            return false;
        }
        words += count;
    }
    return true;
}

void ivm__index_row_pack(const ivm__index *index, const uint8_t *row, uint64_t *words)
{
    for (uint32_t c = 0; c < index->columns_count; c++) {
        uint32_t count = ivm__index_cell_words(index, c);
        memcpy(words, ivm__index_cell(index, row, c), count * sizeof *words);
        words += count;
    }
    for (uint32_t i = 0; i < index->null_words; i++) {
        words[i] = row_nulls(index, row, i);
    }
}

bool ivm__index_row_has_words(const ivm__index *index, const uint8_t *row, const uint64_t *words)
{
    if (index->columns_count == 0) {
        return true;
    }
    uint32_t cell_words = index->words_count - index->null_words;
    bool equal = index->contiguous ? words_equal(ivm__index_cell(index, row, 0), words, cell_words) : cells_have(index, row, words);
    for (uint32_t i = 0; equal && i < index->null_words; i++) {
        equal = row_nulls(index, row, i) == words[cell_words + i];
    }
    return equal;
}

bool ivm__index_rows_equal_words(const ivm__index *index, const uint8_t *a, const uint8_t *b)
{
    bool equal = true;
    for (uint32_t c = 0; equal && c < index->columns_count; c++) {
        size_t size = ivm__index_cell_words(index, c) * sizeof(uint64_t);
        equal = memcmp(ivm__index_cell(index, a, c), ivm__index_cell(index, b, c), size) == 0;
    }
    for (uint32_t i = 0; equal && i < index->null_words; i++) {
        equal = row_nulls(index, a, i) == row_nulls(index, b, i);
    }
    return equal;
}
