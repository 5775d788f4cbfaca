/* tests engine/index.c, index_row.c, index_keys.c, index_fill.c, probe.c */
#include "store_model.h"

/* ---- A store of rows of a few columns ---------------------------------------------------------------------------------------------- */

static test_allocator counted;
static ivm__memory memory;
static ivm__arena arena;
static ivm__layout *layout;
static ivm__store store;

static void begin(const ivm_type *types, const bool *nullable, uint32_t columns_count)
{
    test_allocator_init(&counted);
    ivm_allocator functions = test_allocator_functions(&counted);
    ivm__memory_init(&memory, &functions);
    ivm__arena_init(&arena, &memory);
    cr_assert_eq(ivm__layout_create(&memory, types, nullable, columns_count, false, &layout), IVM_OK);
    cr_assert_eq(ivm__store_init(&store, &memory, NULL, 77, layout), IVM_OK);
}

static void end(void)
{
    ivm__store_deinit(&store);
    ivm__layout_release(layout);
    ivm__arena_deinit(&arena);
    cr_assert(test_allocator_is_clean(&counted));
}

/* A row of one int64. */
static ivm__row_id word_row(uint64_t word, int64_t weight)
{
    cr_assert_eq(ivm__store_reserve(&store, 1), IVM_OK);
    ivm__row_id row = ivm__store_put(&store, weight);
    memcpy(ivm__store_row(&store, row) + layout->offsets[0], &word, sizeof word);
    ivm__store_link(&store, row);
    return row;
}

static ivm__index *words_index(bool unique)
{
    static const ivm_type types[] = { IVM_INT64 };
    static const bool nullable[] = { false };
    uint32_t column = 0;
    ivm__index *index;
    begin(types, nullable, 1);
    cr_assert_eq(ivm__store_index(&store, &column, 1, unique, &index), IVM_OK);
    return index;
}

static void index_check(const ivm__index *index)
{
    const char *wrong = ivm__index_validate(index);
    cr_assert_null(wrong, "%s", wrong);
}

static uint32_t rows_of(const ivm__index *index, uint64_t word)
{
    uint32_t next = 0, count = 0;
    while (ivm__index_find(index, &word, ivm__hash_word(word, store.seed), &next) != IVM__ROW_NONE) {
        count++;
    }
    return count;
}

static ivm__keys word_keys(const ivm__index *index, uint64_t *words, uint8_t *nulls, uint32_t count)
{
    static const uint32_t column = 0;
    ivm__vector vector = { IVM_INT64, words, nulls };
    ivm__chunk chunk = { .rows_count = count, .columns_count = 1, .columns = &vector };
    ivm__keys keys;
    cr_assert_eq(ivm__index_keys(index, &arena, &chunk, &column, false, &keys), IVM_OK);
    return keys;
}

/* ---- Slots ------------------------------------------------------------------------------------------------------------------------ */

Test(engine_index, empty_index_finds_nothing)
{
    for (int unique = 0; unique < 2; unique++) {
        ivm__index *index = words_index(unique);
        uint64_t words[3] = { 0, 1, 2 };
        ivm__keys keys = word_keys(index, words, NULL, 3);
        ivm__probe probe = { 0 };
        uint32_t positions[3], rows[3];
        cr_assert_eq(ivm__index_probe(index, &keys, &probe, 3, positions, rows), 0);
        cr_assert_eq(probe.key, 3);
        cr_assert_eq(rows_of(index, 0), 0);
        index_check(index);
        end();
    }
}

/* All sizes a small index goes through, so that clusters run over the end of the slots, with removals that move them back. */
Test(engine_index, grows_and_shrinks_through_all_sizes)
{
    for (int unique = 0; unique < 2; unique++) {
        ivm__index *index = words_index(unique);
        for (uint64_t i = 0; i < 500; i++) {
            word_row(i * 8, 1);
            index_check(index);
        }
        for (uint64_t i = 0; i < 500; i++) {
            cr_assert_eq(ivm__store_weight_add(&store, (ivm__row_id)(i * 37 % 500), -1), IVM_OK);
            ivm__store_commit(&store);
            index_check(index);
            cr_assert_eq(rows_of(index, i * 37 % 500 * 8), 0);
            cr_assert_eq(rows_of(index, (i + 1) * 37 % 500 * 8), i < 499);
        }
        cr_assert_eq(index->used, 0);
        end();
    }
}

Test(engine_index, key_patterns_all_found)
{
    for (uint32_t shift = 0; shift < 60; shift += 20) {
        ivm__index *index = words_index(true);
        for (uint64_t i = 0; i < 2000; i++) {
            word_row(i << shift, 1);
        }
        for (uint64_t i = 0; i < 4000; i++) {
            cr_assert_eq(rows_of(index, i << shift), i < 2000);
        }
        index_check(index);
        end();
    }
}

typedef struct tagged {
    uint32_t tag;
    uint64_t word;
} tagged;

static int tags_compare(const void *a, const void *b)
{
    const tagged *x = a, *y = b;
    return (x->tag > y->tag) - (x->tag < y->tag);
}

/* Two words whose tags are equal, found among many. */
static void words_of_one_tag(uint64_t *a, uint64_t *b)
{
    enum { COUNT = 400000 };
    tagged *all = calloc(COUNT, sizeof *all);
    for (uint64_t i = 0; i < COUNT; i++) {
        all[i] = (tagged){ (uint32_t)(ivm__hash_word(i, 77) >> 32), i };
    }
    qsort(all, COUNT, sizeof *all, tags_compare);
    uint32_t at = 1;
    while (at < COUNT && all[at].tag != all[at - 1].tag) {
        at++;
    }
    cr_assert(at < COUNT);
    *a = all[at - 1].word;
    *b = all[at].word;
    free(all);
}

Test(engine_index, keys_of_one_tag_are_told_apart)
{
    uint64_t words[3];
    words_of_one_tag(&words[0], &words[1]);
    words[2] = words[0];
    for (int unique = 0; unique < 2; unique++) {
        ivm__index *index = words_index(unique);
        ivm__row_id a = word_row(words[0], 1), b = word_row(words[1], 1);
        index_check(index);
        uint32_t positions[3], rows[3];
        ivm__probe probe = { 0 };
        ivm__keys keys = word_keys(index, words, NULL, 3);
        cr_assert_eq(ivm__index_probe(index, &keys, &probe, 3, positions, rows), 3);
        cr_assert(rows[0] == a && rows[1] == b && rows[2] == a);
        cr_assert_eq(index->doubles, 0);
        ivm__store_commit(&store);
        cr_assert_eq(ivm__store_weight_add(&store, a, -1), IVM_OK);
        ivm__store_commit(&store);
        index_check(index);
        cr_assert(rows_of(index, words[0]) == 0 && rows_of(index, words[1]) == 1);
        end();
    }
}

/* ---- Doubles and lists ------------------------------------------------------------------------------------------------------------- */

Test(engine_index, old_and_new_row_of_a_key_stand_side_by_side)
{
    ivm__index *index = words_index(true);
    for (uint64_t i = 0; i < 100; i++) {
        word_row(i, 1);
    }
    ivm__store_commit(&store);
    for (uint32_t i = 0; i < 100; i += 3) {
        cr_assert_eq(ivm__store_weight_add(&store, i, -1), IVM_OK);
        word_row(i, 1);
    }
    cr_assert_eq(index->doubles, 34);
    index_check(index);
    for (uint64_t i = 0; i < 100; i++) {
        cr_assert_eq(rows_of(index, i), 1 + (i % 3 == 0));
    }
    ivm__store_undo(&store);
    cr_assert_eq(index->doubles, 0);
    index_check(index);
    cr_assert_eq(ivm__store_weight_add(&store, 5, -1), IVM_OK);
    ivm__row_id row = word_row(5, 1);
    ivm__store_commit(&store);
    cr_assert_eq(index->doubles, 0);
    index_check(index);
    uint32_t next = 0;
    uint64_t word = 5;
    cr_assert_eq(ivm__index_find(index, &word, ivm__hash_word(5, 77), &next), row);
    end();
}

/* Rows leave lists of one to five blocks in any order, and come again in between. */
Test(engine_index, lists_lose_any_row)
{
    for (uint32_t rows = 1; rows <= 60; rows++) {
        ivm__index *index = words_index(false);
        for (uint32_t i = 0; i < rows; i++) {
            word_row(9, 1);
        }
        ivm__store_commit(&store);
        for (uint32_t i = 0, step = rows % 7 ? 7 : 11; i < rows; i++) {
            cr_assert_eq(ivm__store_weight_add(&store, i * step % rows, -1), IVM_OK);
            ivm__store_commit(&store);
            index_check(index);
            cr_assert_eq(rows_of(index, 9), rows - 1 - i);
            if (i % 3 == 0) {
                word_row(9, 1);
                index_check(index);
                cr_assert_eq(rows_of(index, 9), rows - i);
                ivm__store_undo(&store);
                index_check(index);
            }
        }
        cr_assert(index->used == 0 && index->blocks_count == index->blocks_free_count);
        end();
    }
}

/* However rows come and go, two blocks beside each other are never so empty that all could be. */
Test(engine_index, lists_stay_dense)
{
    ivm__index *index = words_index(false);
    for (uint32_t i = 0; i < 5000; i++) {
        word_row(i % 5, 1);
    }
    ivm__store_commit(&store);
    for (uint32_t i = 0; i < 4500; i++) {
        cr_assert_eq(ivm__store_weight_add(&store, i * 7 % 5000, -1), IVM_OK);
    }
    ivm__store_commit(&store);
    index_check(index);
    cr_assert(index->blocks_count - index->blocks_free_count <= 500 / 4, "%u", index->blocks_count - index->blocks_free_count);
    uint32_t blocks_count = index->blocks_count;
    for (uint32_t i = 0; i < 4000; i++) {
        word_row(i % 5, 1);
    }
    index_check(index);
    cr_assert_eq(index->blocks_count, blocks_count, "blocks given back are given again");
    end();
}

/* Every row of a reserved lot takes a block, some of those given back, some new. */
Test(engine_index, reserved_rows_find_their_blocks)
{
    ivm__index *index = words_index(false);
    for (uint64_t i = 0; i < 2000; i++) {
        word_row(i, 1);
    }
    for (uint32_t i = 0; i < 600; i++) {
        word_row(9999, 1);
    }
    ivm__store_commit(&store);
    for (uint32_t i = 2000; i < 2600; i++) {
        cr_assert_eq(ivm__store_weight_add(&store, i, -1), IVM_OK);
    }
    ivm__store_commit(&store);
    cr_assert(index->blocks_free_count > 40);
    uint32_t rows = (uint32_t)(ivm__segments_room(&index->blocks) / sizeof(ivm__block)) - index->blocks_count + index->blocks_free_count +
                    1; /* one more than there are */
    cr_assert(rows < 2000);
    cr_assert_eq(ivm__store_reserve(&store, rows), IVM_OK);
    uint64_t calls = counted.calls;
    for (uint64_t i = 0; i < rows; i++) {
        ivm__row_id row = ivm__store_put(&store, 1);
        memcpy(ivm__store_row(&store, row) + layout->offsets[0], &i, sizeof i);
        ivm__store_link(&store, row);
    }
    cr_assert_eq(counted.calls, calls);
    cr_assert_eq(index->blocks_free_count, 0);
    index_check(index);
    end();
}

Test(engine_index, probe_stops_and_goes_on_anywhere)
{
    ivm__index *index = words_index(false);
    for (uint64_t i = 0; i < 1000; i++) {
        word_row(i % 4 ? i % 90 : 17, 1);
    }
    uint64_t words[200];
    for (uint32_t i = 0; i < 200; i++) {
        words[i] = i % 100;
    }
    ivm__keys keys = word_keys(index, words, NULL, 200);
    for (uint32_t capacity = 1; capacity < 70; capacity++) {
        uint32_t positions[70], rows[70], total = 0;
        for (ivm__probe probe = { 0 }; probe.key < 200;) {
            uint32_t found = ivm__index_probe(index, &keys, &probe, capacity, positions, rows);
            for (uint32_t i = 0; i < found; i++) {
                cr_assert_eq(ivm__row_word(layout, ivm__store_row(&store, rows[i]), 0), words[positions[i]]);
            }
            total += found;
        }
        cr_assert_eq(total, 2 * 1000);
    }
    end();
}

/* ---- Keys -------------------------------------------------------------------------------------------------------------------------- */

Test(engine_index, one_plain_column_is_not_copied)
{
    ivm__index *index = words_index(true);
    uint64_t words[5] = { 1, 2, 3, 4, 5 };
    cr_assert_eq(index->words_count, 1);
    cr_assert_eq(word_keys(index, words, NULL, 5).words, words);
    end();
}

Test(engine_index, null_keys_are_skipped)
{
    for (int unique = 0; unique < 2; unique++) {
        ivm__index *index = words_index(unique);
        word_row(0, 1);
        word_row(1, 1);
        uint64_t words[4] = { 0, 0, 1, 0 };
        uint8_t nulls[4] = { 1, 0, 0, 1 };
        ivm__keys keys = word_keys(index, words, nulls, 4);
        ivm__probe probe = { 0 };
        uint32_t positions[8], rows[8];
        cr_assert_eq(ivm__index_probe(index, &keys, &probe, 8, positions, rows), 2);
        cr_assert(positions[0] == 1 && rows[0] == 0 && positions[1] == 2 && rows[1] == 1);
        end();
    }
}

/* Where an index's columns hold no nulls, a null is no value of theirs. */
Test(engine_index, null_is_no_value_of_a_column_without_nulls)
{
    ivm__index *index = words_index(true);
    word_row(0, 1);
    uint64_t word = 0;
    uint8_t null = 1;
    ivm__vector vector = { IVM_INT64, &word, &null };
    ivm__chunk chunk = { .rows_count = 1, .columns_count = 1, .columns = &vector };
    ivm__keys keys;
    ivm__probe probe = { 0 };
    uint32_t position, row;
    cr_assert_eq(ivm__index_keys(index, &arena, &chunk, NULL, true, &keys), IVM_OK);
    cr_assert_eq(ivm__index_probe(index, &keys, &probe, 1, &position, &row), 0);
    end();
}

/* Two rows that differ in a null alone and whose hashes have one tag, found by trying 2^31 words. */
Test(engine_index, null_and_zero_of_one_tag_are_told_apart)
{
    static const ivm_type types[] = { IVM_INT64, IVM_INT64 };
    static const bool nullable[] = { false, true };
    static const uint32_t columns[] = { 0, 1 };
    uint64_t a[] = { 2078729816, 2078729816 }, b[] = { 0, 0 };
    uint8_t b_nulls[] = { 0, 1 };
    ivm__vector vectors[] = { { IVM_INT64, a, NULL }, { IVM_INT64, b, b_nulls } };
    ivm__chunk chunk = { .rows_count = 2, .columns_count = 2, .columns = vectors };
    for (int unique = 0; unique < 2; unique++) {
        begin(types, nullable, 2);
        ivm__index *index;
        ivm__keys keys;
        ivm__probe probe = { 0 };
        uint32_t positions[4], rows[4];
        cr_assert_eq(ivm__store_index(&store, columns, 2, unique, &index), IVM_OK);
        cr_assert_eq(ivm__store_put_chunk(&store, &chunk, NULL), IVM_OK);
        cr_assert(index->used == 2 && index->doubles == 0);
        cr_assert_eq(ivm__index_keys(index, &arena, &chunk, columns, true, &keys), IVM_OK);
        cr_assert_eq(keys.hashes[0] >> 32, keys.hashes[1] >> 32);
        cr_assert_eq(ivm__index_probe(index, &keys, &probe, 4, positions, rows), 2);
        cr_assert(rows[0] == 0 && rows[1] == 1);
        index_check(index);
        end();
    }
}

enum { WIDE_COLUMNS = 70 };

/* Rows of 70 nullable columns, most zero; each row is null or 1 in one column. */
static void many_columns_write(ivm__row_id row, uint32_t column, bool null)
{
    uint8_t *at = ivm__store_row(&store, row);
    memset(at + IVM__ROW_HEADER, 0, layout->body_bytes);
    uint64_t one = !null;
    memcpy(at + layout->offsets[column], &one, sizeof one);
    ((uint64_t *)(void *)(at + IVM__ROW_HEADER))[column / 64] |= (uint64_t)null << (column % 64);
}

Test(engine_index, null_bits_of_many_columns_tell_rows_apart)
{
    ivm_type types[WIDE_COLUMNS];
    uint32_t columns[WIDE_COLUMNS], backwards[WIDE_COLUMNS];
    for (uint32_t c = 0; c < WIDE_COLUMNS; c++) {
        types[c] = IVM_INT64;
        columns[c] = c;
        backwards[c] = WIDE_COLUMNS - 1 - c;
    }
    begin(types, NULL, WIDE_COLUMNS);
    ivm__index *whole, *reverse, *prefix;
    cr_assert_eq(ivm__store_index(&store, columns, WIDE_COLUMNS, true, &whole), IVM_OK);
    cr_assert_eq(ivm__store_index(&store, backwards, WIDE_COLUMNS, false, &reverse), IVM_OK);
    cr_assert_eq(ivm__store_index(&store, columns, 66, false, &prefix), IVM_OK);
    cr_assert_eq(whole->null_words, 2);
    for (uint32_t i = 0; i < 2 * WIDE_COLUMNS; i++) {
        cr_assert_eq(ivm__store_reserve(&store, 1), IVM_OK);
        ivm__row_id row = ivm__store_append(&store, 1);
        many_columns_write(row, i / 2, i % 2);
        ivm__store_link(&store, row);
    }
    cr_assert_eq(whole->used, 2 * WIDE_COLUMNS);
    cr_assert_eq(whole->doubles, 0);
    cr_assert_eq(reverse->used, 2 * WIDE_COLUMNS);
    cr_assert_eq(prefix->used, 2 * 66 + 1);
    index_check(whole);
    index_check(reverse);
    index_check(prefix);
    end();
}

/* A packed key must hash as its row does, whatever its columns. */
Test(engine_index, packed_keys_hash_as_rows_do)
{
    static const ivm_type types[] = { IVM_INT64, IVM_DECIMAL(30, 0), IVM_INT64, IVM_INT64 };
    static const bool nullable[] = { false, true, false, true };
    static const uint32_t orders[][4] = { { 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 2, 3, 0 }, { 2, 0, 1, 3 } };
    uint64_t a[] = { 5, 0, 7 }, c[] = { 1, 2, 3 }, d[] = { 0, 9, UINT64_MAX };
    ivm__wide b[] = { 0, -1, (ivm__wide)7 << 70 };
    uint8_t b_nulls[] = { 1, 0, 0 }, d_nulls[] = { 1, 0, 0 };
    ivm__vector vectors[] = { { types[0], a, NULL }, { types[1], b, b_nulls }, { types[2], c, NULL }, { types[3], d, d_nulls } };
    ivm__chunk chunk = { .rows_count = 3, .columns_count = 4, .columns = vectors };
    for (uint32_t order = 0; order < 4; order++) {
        for (uint32_t count = 1; count <= 4; count++) {
            begin(types, nullable, 4);
            ivm__index *index;
            cr_assert_eq(ivm__store_index(&store, orders[order], count, false, &index), IVM_OK);
            cr_assert_eq(ivm__store_put_chunk(&store, &chunk, NULL), IVM_OK);
            ivm__keys keys;
            cr_assert_eq(ivm__index_keys(index, &arena, &chunk, orders[order], true, &keys), IVM_OK);
            cr_assert_eq(keys.words_count, index->words_count);
            for (uint32_t i = 0; i < 3; i++) {
                const uint64_t *words = keys.words + (size_t)i * keys.words_count;
                uint32_t next = 0;
                cr_assert_eq(keys.hashes[i], ivm__hash_words(words, keys.words_count, store.seed));
                cr_assert_eq(ivm__index_find(index, words, keys.hashes[i], &next), i);
                cr_assert_eq(ivm__index_find(index, words, keys.hashes[i], &next), IVM__ROW_NONE);
            }
            index_check(index);
            end();
        }
    }
}

Test(engine_index, keys_with_a_null_in_any_column_are_skipped)
{
    static const ivm_type types[] = { IVM_INT64, IVM_INT64, IVM_INT64 };
    uint32_t columns[] = { 2, 0, 1 };
    uint64_t cells[3][8] = { { 0 } };
    uint8_t nulls[3][8];
    ivm__vector vectors[3];
    for (uint32_t c = 0; c < 3; c++) {
        for (uint32_t i = 0; i < 8; i++) {
            nulls[c][i] = i >> c & 1;
        }
        vectors[c] = (ivm__vector){ IVM_INT64, cells[c], nulls[c] };
    }
    begin(types, NULL, 3);
    ivm__index *index;
    ivm__chunk chunk = { .rows_count = 8, .columns_count = 3, .columns = vectors };
    cr_assert_eq(ivm__store_index(&store, columns, 3, false, &index), IVM_OK);
    cr_assert_eq(ivm__store_put_chunk(&store, &chunk, NULL), IVM_OK);
    cr_assert_eq(index->used, 8);
    for (int null_is_value = 0; null_is_value < 2; null_is_value++) {
        uint32_t positions[8], rows[8];
        ivm__keys keys;
        ivm__probe probe = { 0 };
        cr_assert_eq(ivm__index_keys(index, &arena, &chunk, columns, null_is_value, &keys), IVM_OK);
        uint32_t count = ivm__index_probe(index, &keys, &probe, 8, positions, rows);
        cr_assert_eq(count, null_is_value ? 8 : 1);
        for (uint32_t i = 0; i < count; i++) {
            cr_assert(positions[i] == i && rows[i] == i);
        }
    }
    cr_assert_eq(nulls[0][1], 1, "a chunk's nulls are not written to");
    end();
}

Test(engine_index, no_columns_is_one_key)
{
    begin(NULL, NULL, 0);
    ivm__index *index;
    cr_assert_eq(ivm__store_index(&store, NULL, 0, false, &index), IVM_OK);
    ivm__chunk chunk = { .rows_count = 3 };
    cr_assert_eq(ivm__store_put_chunk(&store, &chunk, NULL), IVM_OK);
    cr_assert_eq(index->used, 1);
    index_check(index);
    ivm__keys keys;
    ivm__probe probe = { 0 };
    uint32_t positions[9], rows[9];
    cr_assert_eq(ivm__index_keys(index, &arena, &chunk, NULL, true, &keys), IVM_OK);
    cr_assert_eq(ivm__index_probe(index, &keys, &probe, 9, positions, rows), 9);
    end();
}

/* ---- Made late --------------------------------------------------------------------------------------------------------------------- */

/* An index made over rows that stand equals one that grew with them, in the middle of a step too. */
Test(engine_index, filled_late_equals_kept, .fini = model_seed_tell)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        model *self = model_begin(seed);
        self->keys_count = 3000;
        bool unique = seed % 2;
        if (unique) {
            cr_assert_eq(model_index_make(self, 0), IVM_OK);
        }
        for (uint32_t step = 0; step < 4; step++) {
            model_step_begin(self);
            cr_assert_eq(model_rows_come(self, 150), IVM_OK);
            cr_assert_eq(model_rows_change(self, 100), IVM_OK);
            cr_assert_eq(model_weights_narrow(self), IVM_OK);
            if (step < 3) {
                model_commit(self);
            }
        }
        for (uint32_t i = 0; i < MODEL_INDEXES; i++) {
            if (!model_index[i].unique || unique) {
                cr_assert_eq(model_index_make(self, i), IVM_OK);
            }
        }
        model_check(self);
        if (seed % 3) {
            model_undo(self);
        } else {
            model_commit(self);
        }
        model_check(self);
        model_end(self);
    }
}

Test(engine_index, made_between_reserve_and_rows_has_room)
{
    static const ivm_type types[] = { IVM_INT64 };
    begin(types, NULL, 1);
    cr_assert_eq(ivm__store_reserve(&store, 1000), IVM_OK);
    uint32_t column = 0;
    ivm__index *index, *again;
    cr_assert_eq(ivm__store_index(&store, &column, 1, false, &index), IVM_OK);
    cr_assert_eq(ivm__store_index(&store, &column, 1, false, &again), IVM_OK);
    cr_assert_eq(index, again);
    cr_assert_eq(ivm__store_index_find(&store, &column, 1), index);
    column = 1;
    cr_assert_null(ivm__store_index_find(&store, &column, 1));
    uint64_t calls = counted.calls;
    for (uint64_t i = 0; i < 1000; i++) {
        ivm__row_id row = ivm__store_append(&store, 1);
        memset(ivm__store_row(&store, row) + IVM__ROW_HEADER, 0, layout->body_bytes);
        memcpy(ivm__store_row(&store, row) + layout->offsets[0], &i, sizeof i);
        ivm__store_link(&store, row);
    }
    cr_assert_eq(counted.calls, calls);
    index_check(index);
    end();
}

Test(engine_index, nth_allocation_failing_makes_no_index)
{
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        static const ivm_type types[] = { IVM_INT64, IVM_INT64 };
        begin(types, NULL, 2);
        cr_assert_eq(ivm__store_reserve(&store, 500), IVM_OK);
        for (uint64_t i = 0; i < 500; i++) {
            ivm__row_id row = ivm__store_append(&store, 1);
            memset(ivm__store_row(&store, row) + IVM__ROW_HEADER, 0, layout->body_bytes);
            memcpy(ivm__store_row(&store, row) + layout->offsets[n % 2], &i, sizeof i);
        }
        int64_t bytes = counted.bytes;
        uint32_t columns[] = { 1, 0 };
        ivm__index *index;
        test_allocator_arm(&counted, n);
        ivm_status status = ivm__store_index(&store, columns, 2, n % 2, &index);
        failed = test_allocator_disarm(&counted);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
        if (failed) {
            cr_assert_null(store.indexes);
            cr_assert_eq(counted.bytes, bytes);
        } else {
            cr_assert_eq(counted.bytes - bytes, (int64_t)ivm__index_bytes(index));
            index_check(index);
        }
        end();
    }
}

Test(engine_index, clearing_a_large_index_gives_its_slots_back)
{
    ivm__index *index = words_index(true);
    for (uint32_t round = 0; round < 3; round++) {
        uint64_t rows = round == 1 ? 20 : 20000;
        for (uint64_t i = 0; i < rows; i++) {
            word_row(i, 1);
        }
        index_check(index);
        uint64_t capacity = index->slots_capacity;
        ivm__store_clear(&store);
        cr_assert_eq(index->slots_capacity, round == 1 ? 0 : capacity);
        index_check(index);
        cr_assert_eq(rows_of(index, 5), 0);
    }
    end();
}
