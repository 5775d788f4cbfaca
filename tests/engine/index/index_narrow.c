/* tests engine/index/index_narrow.c */
#include "index_case.h"

#define FAR 64u

/* Words whose homes are all in the last 256th of the slots, however many there are. */
static void words_close(uint64_t *words, uint32_t count)
{
    uint64_t word = 0;
    for (uint32_t i = 0; i < count; i++, word++) {
        while (ivm__hash_word(word, 77) >> 56 != 0xff) {
            word++;
        }
        words[i] = word;
    }
}

/* Slots crowd at the end of the array and go on at its start, many of them far from their homes; they grow so, and all go again. */
Test(engine_index_narrow, slots_far_from_their_homes)
{
    enum { ROWS = 700 };
    uint64_t words[ROWS];
    words_close(words, ROWS);
    ivm__index *index = words_index(true);
    uint32_t far = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        word_row(words[i], 1);
        index_check(index);
        far = index->far > far ? index->far : far;
    }
    cr_assert(index->narrow && far > FAR, "%u", far);
    for (uint32_t i = 0; i < ROWS; i++) {
        cr_assert_eq(rows_of(index, words[i]), 1);
    }
    ivm__store_commit(&store);
    for (uint32_t i = 0; i < ROWS; i++) {
        cr_assert_eq(ivm__store_weight_add(&store, (ivm__row_id)(i * 37 % ROWS), -1), IVM_OK);
        ivm__store_commit(&store);
        index_check(index);
        cr_assert_eq(rows_of(index, words[i * 37 % ROWS]), 0);
    }
    cr_assert(index->used == 0 && index->far == 0);
    end();
}

/* Every row of a key with many in one step but one is gone afterwards. */
Test(engine_index_narrow, many_rows_of_a_key_in_a_step)
{
    ivm__index *index = words_index(true);
    for (uint64_t i = 0; i < 50; i++) {
        word_row(i, 1);
    }
    ivm__store_commit(&store);
    for (uint32_t i = 0; i < 200; i++) {
        word_row(7, 1);
        index_check(index);
    }
    cr_assert(index->far > 0 && index->doubles == 200);
    cr_assert_eq(rows_of(index, 7), 201);
    ivm__store_undo(&store);
    index_check(index);
    cr_assert(index->far == 0 && index->doubles == 0 && rows_of(index, 7) == 1);
    end();
}

/* Ids that a narrow slot of so small an index cannot hold. */
Test(engine_index_narrow, large_ids_make_slots_wide)
{
    ivm__index *index = words_index(true);
    word_row(0, 1);
    ivm__store_commit(&store);
    uint32_t wide = 0, rows = 300;
    for (uint64_t i = 1; i < rows; i++) {
        cr_assert_eq(ivm__store_reserve(&store, 1), IVM_OK);
        ivm__row_id row = ivm__store_append(&store, 1); /* not under a free id */
        memcpy(ivm__store_row(&store, row) + layout->offsets[0], &i, sizeof i);
        ivm__store_link(&store, row);
        index_check(index);
        cr_assert_eq(ivm__store_weight_add(&store, (ivm__row_id)(i - 1), -1), IVM_OK);
        ivm__store_commit(&store);
        index_check(index);
        cr_assert_eq(rows_of(index, i), 1);
        wide += index->slots != NULL;
    }
    cr_assert(wide > 0 && wide < rows && index->slots, "%u", wide);
    for (uint64_t i = 0; i < 1000; i++) { /* many more than there were ids */
        word_row(1000 + i, 1);
        index_check(index);
    }
    cr_assert_not_null(index->narrow);
    for (uint64_t i = 0; i < 1000; i++) {
        cr_assert_eq(rows_of(index, 1000 + i), 1);
    }
    cr_assert_eq(rows_of(index, rows - 1), 1);
    end();
}

Test(engine_index_narrow, other_indexes_have_wide_slots)
{
    ivm__index *index = words_index(false);
    for (uint64_t i = 0; i < 1000; i++) {
        word_row(i, 1);
    }
    cr_assert(index->slots && !index->narrow);
    end();
}

Test(engine_index_narrow, half_the_bytes_of_wide_slots)
{
    uint64_t bytes[2];
    for (int unique = 0; unique < 2; unique++) {
        ivm__index *index = words_index(unique);
        for (uint64_t i = 0; i < 20000; i++) {
            word_row(i << 20, 1);
        }
        index_check(index);
        bytes[unique] = index->slots_capacity * (unique ? sizeof *index->narrow : sizeof *index->slots);
        end();
    }
    cr_assert(bytes[1] * 2 <= bytes[0]);
}
