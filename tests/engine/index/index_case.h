/* A store of rows of a few columns with an index, for tests of indexes. */
#ifndef TEST_ENGINE_INDEX_CASE_H
#define TEST_ENGINE_INDEX_CASE_H

#include "store_model.h"

static test_allocator counted;
static ivm__memory memory;
static ivm__arena arena;
static ivm__layout *layout;
static ivm__store store;

static inline void begin(const ivm_type *types, const bool *nullable, uint32_t columns_count)
{
    test_allocator_init(&counted);
    ivm_allocator functions = test_allocator_functions(&counted);
    ivm__memory_init(&memory, &functions);
    ivm__arena_init(&arena, &memory);
    cr_assert_eq(ivm__layout_create(&memory, types, nullable, columns_count, false, &layout), IVM_OK);
    cr_assert_eq(ivm__store_init(&store, &memory, NULL, 77, layout), IVM_OK);
}

static inline void end(void)
{
    ivm__store_deinit(&store);
    ivm__layout_release(layout);
    ivm__arena_deinit(&arena);
    cr_assert(test_allocator_is_clean(&counted));
}

/* A row of one int64. */
static inline ivm__row_id word_row(uint64_t word, int64_t weight)
{
    cr_assert_eq(ivm__store_reserve(&store, 1), IVM_OK);
    ivm__row_id row = ivm__store_put(&store, weight);
    memcpy(ivm__store_row(&store, row) + layout->offsets[0], &word, sizeof word);
    ivm__store_link(&store, row);
    return row;
}

static inline ivm__index *words_index(bool unique)
{
    static const ivm_type types[] = { IVM_INT64 };
    static const bool nullable[] = { false };
    uint32_t column = 0;
    ivm__index *index;
    begin(types, nullable, 1);
    cr_assert_eq(ivm__store_index(&store, &column, 1, unique, &index), IVM_OK);
    return index;
}

static inline void index_check(const ivm__index *index)
{
    const char *wrong = ivm__index_validate(index);
    cr_assert_null(wrong, "%s", wrong);
}

static inline uint32_t rows_of(const ivm__index *index, uint64_t word)
{
    uint32_t next = 0, count = 0;
    while (ivm__index_find(index, &word, ivm__hash_word(word, store.seed), &next) != IVM__ROW_NONE) {
        count++;
    }
    return count;
}

static inline ivm__keys word_keys(const ivm__index *index, uint64_t *words, uint8_t *nulls, uint32_t count)
{
    static const uint32_t column = 0;
    ivm__vector vector = { .type = IVM_INT64, .cells = words, .nulls = nulls };
    ivm__chunk chunk = { .rows_count = count, .columns_count = 1, .columns = &vector };
    ivm__keys keys;
    cr_assert_eq(ivm__index_keys(index, &arena, &chunk, &column, false, &keys), IVM_OK);
    return keys;
}

#endif
