/* tests engine/index/index.c, index_lists.c, probe.c */
#include "index_case.h"

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

/* Where every third key has two rows, its new one appended or under a free id, a probe of many keys finds both, and reads cells of the others alone. */
Test(engine_index, many_keys_are_probed_among_doubles)
{
    ivm__index *index = words_index(true);
    uint64_t words[101], cells[101], *out[] = { cells };
    uint32_t positions[202], rows[202], found, column = 0;
    for (uint64_t i = 0; i <= 100; i++) {
        words[i] = i;
        word_row(i, 1);
    }
    ivm__store_commit(&store);
    for (uint32_t free_ids = 0; free_ids < 2; free_ids++) {
        for (uint32_t i = 0; i < 99; i += 3) {
            uint32_t next = 0;
            uint64_t word = i;
            cr_assert_eq(ivm__store_weight_add(&store, ivm__index_find(index, &word, ivm__hash_word(i, 77), &next), -1), IVM_OK);
            word_row(i, 1);
        }
        ivm__keys keys = word_keys(index, words, NULL, 101);
        ivm__probe probe = { 0 };
        cr_assert_eq(found = ivm__index_probe(index, &keys, &probe, 202, positions, rows), 101 + 33);
        for (uint32_t f = 0, key = 0; key <= 100; key++) {
            cr_assert_eq(positions[f++], key);
            cr_assert(key % 3 || key >= 99 || positions[f++] == key);
        }
        cr_assert(ivm__index_reads(index, &column, 1));
        cr_assert_eq(ivm__index_probe_cells(index, &keys, IVM__READ_OLD, &column, 1, out, positions), IVM__ROW_NONE);
        keys = word_keys(index, words + 99, NULL, 2);
        cr_assert_eq(ivm__index_probe_cells(index, &keys, IVM__READ_OLD, &column, 1, out, positions), 2);
        cr_assert(cells[0] == 99 && cells[1] == 100 && positions[0] == 0 && positions[1] == 1);
        ivm__store_commit(&store);
        ivm__store_commit(&store);
    }
    end();
}

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
