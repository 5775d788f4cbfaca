/* tests engine/index/index_keys.c, index_row.c */
#include "index_case.h"

Test(engine_index_keys, one_plain_column_is_not_copied)
{
    ivm__index *index = words_index(true);
    uint64_t words[5] = { 1, 2, 3, 4, 5 };
    cr_assert_eq(index->words_count, 1);
    cr_assert_eq(word_keys(index, words, NULL, 5).words, words);
    end();
}

Test(engine_index_keys, null_keys_are_skipped)
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
Test(engine_index_keys, null_is_no_value_of_a_column_without_nulls)
{
    ivm__index *index = words_index(true);
    word_row(0, 1);
    uint64_t word = 0;
    uint8_t null = 1;
    ivm__vector vector = { .type = IVM_INT64, .cells = &word, .nulls = &null };
    ivm__chunk chunk = { .rows_count = 1, .columns_count = 1, .columns = &vector };
    ivm__keys keys;
    ivm__probe probe = { 0 };
    uint32_t position, row;
    cr_assert_eq(ivm__index_keys(index, &arena, &chunk, NULL, true, &keys), IVM_OK);
    cr_assert_eq(ivm__index_probe(index, &keys, &probe, 1, &position, &row), 0);
    end();
}

/* Two rows that differ in a null alone and whose hashes have one tag, found by trying 2^31 words. */
Test(engine_index_keys, null_and_zero_of_one_tag_are_told_apart)
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
    at[IVM__ROW_HEADER + column / 8] |= (uint8_t)(null << column % 8);
}

Test(engine_index_keys, null_bits_of_many_columns_tell_rows_apart)
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
Test(engine_index_keys, packed_keys_hash_as_rows_do)
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

Test(engine_index_keys, keys_with_a_null_in_any_column_are_skipped)
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

Test(engine_index_keys, no_columns_is_one_key)
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
