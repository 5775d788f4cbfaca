/* tests engine/index/index_grow.c: slots that grow a piece at a time */
#include "index_inside.h"

#include "index_case.h"

static uint64_t drawn = 1;

static uint64_t draw(uint64_t below)
{
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return drawn % below;
}

/* A word whose home is in the last or the first 64th of the slots, however many there are: they crowd over the end. */
static uint64_t word_near_the_end(uint64_t from)
{
    for (;; from++) {
        uint64_t upper = ivm__hash_word(from, 77) >> 58;
        if (upper == 0 || upper == 63) {
            return from;
        }
    }
}

/* Rows come and go at random, one by one, until there are many: the index is right after each, larger slots beside or not. */
static void random_rows(bool unique, bool crowded, uint32_t keys)
{
    enum { ROWS = 1500 };
    static ivm__row_id rows[ROWS];
    uint64_t next = 0;
    uint32_t count = 0, beside = 0, gone = 0;
    ivm__index *index = words_index(unique);
    while (count < ROWS) {
        if (count > 0 && draw(4) == 0) {
            uint32_t i = (uint32_t)draw(count);
            cr_assert_eq(ivm__store_weight_add(&store, rows[i], -1), IVM_OK);
            rows[i] = rows[--count];
            gone += index->larger != NULL;
        } else {
            next = crowded ? word_near_the_end(next + 1) : next + 1;
            rows[count++] = word_row(unique ? next : draw(keys), 1);
        }
        ivm__store_commit(&store);
        beside += index->larger != NULL;
        if (index->larger || next % 16 == 0) {
            index_check(index);
        }
    }
    index_check(index);
    cr_assert(beside > 10 && gone > 0, "%u, %u", beside, gone);
    end();
}

Test(engine_index_grow, unique_rows)
{
    random_rows(true, false, 0);
}

Test(engine_index_grow, unique_rows_that_crowd_over_the_end)
{
    random_rows(true, true, 0);
}

Test(engine_index_grow, rows_of_keys_that_repeat)
{
    random_rows(false, false, 1500);
}

/* Undone steps take back what went into both. */
Test(engine_index_grow, undone_steps)
{
    ivm__index *index = words_index(true);
    uint32_t beside = 0;
    for (uint64_t i = 0; i < 2000; i++) {
        word_row(i, 1);
        ivm__store_commit(&store);
        for (uint64_t n = 0; n < 3; n++) {
            word_row(100000 + n, 1);
        }
        cr_assert_eq(ivm__store_weight_add(&store, (ivm__row_id)draw(i + 1), -1), IVM_OK);
        beside += index->larger != NULL;
        ivm__store_undo(&store);
        index_check(index);
        cr_assert_eq(rows_of(index, i), 1);
    }
    cr_assert(beside > 5, "%u", beside);
    end();
}

/* No reserve of a few rows moves more than some hundred slots: told by how many rows the larger slots have gained at each. */
Test(engine_index_grow, a_piece_at_a_time)
{
    ivm__index *index = words_index(true);
    uint32_t before = 0, most = 0, beside = 0;
    for (uint64_t i = 0; i < 60000; i++) {
        word_row(i, 1);
        uint32_t used = index->larger ? index->larger->used : before;
        most = used > before && used - before > most ? used - before : most;
        before = index->larger ? used : 0;
        beside += index->larger != NULL;
    }
    index_check(index);
    cr_assert(beside > 1000 && most > 0 && most < 2000, "%u, %u", beside, most);
    end();
}

/* Not under a free id. */
static ivm__row_id append(uint64_t word)
{
    ivm__row_id row = ivm__store_append(&store, 1);
    memcpy(ivm__store_row(&store, row) + layout->offsets[0], &word, sizeof word);
    ivm__store_link(&store, row);
    return row;
}

/* Narrow slots become wide ones where row ids need more bits, a piece at a time too. */
Test(engine_index_grow, narrow_slots_become_wide)
{
    ivm__index *index = words_index(true);
    uint32_t beside = 0;
    for (uint64_t i = 0; i < 6000; i++) {
        cr_assert_eq(ivm__store_reserve(&store, 1), IVM_OK);
        append(i);
        if (i > 200) {
            cr_assert_eq(ivm__store_weight_add(&store, (ivm__row_id)(i - 200), -1), IVM_OK);
        }
        ivm__store_commit(&store);
        beside += index->narrow && index->larger && index->larger->slots;
        if (i % 7 == 0) {
            index_check(index);
        }
    }
    cr_assert(beside > 0 && index->slots, "%u", beside);
    end();
}

/* Few rows of large ids in narrow slots: the wide ones beside are fewer, and hold what comes until they are filled. */
Test(engine_index_grow, fewer_wide_slots_have_room_for_what_comes)
{
    enum { ROWS = 5000, LEFT = 750, AT_ONCE = 16 };
    ivm__index *index = words_index(true);
    uint64_t word = 0;
    cr_assert_eq(ivm__store_reserve(&store, ROWS), IVM_OK);
    while (word < ROWS) {
        append(word++);
    }
    ivm__store_commit(&store);
    for (ivm__row_id row = LEFT; row < ROWS; row++) {
        cr_assert_eq(ivm__store_weight_add(&store, row, -1), IVM_OK);
    }
    ivm__store_commit(&store);
    while (!index->larger) {
        cr_assert_eq(ivm__store_reserve(&store, 1), IVM_OK);
        cr_assert(index->narrow);
        cr_assert_eq(ivm__store_weight_add(&store, append(word++), -1), IVM_OK);
        ivm__store_commit(&store);
    }
    cr_assert(index->larger->slots && index->larger->slots_capacity < index->slots_capacity);
    while (index->larger) {
        cr_assert_eq(ivm__store_reserve(&store, AT_ONCE), IVM_OK);
        cr_assert_lt(index->used, index->larger ? ivm__slots_limit(index->larger->slots_capacity, false) : UINT64_MAX);
        for (uint32_t n = 0; n < AT_ONCE; n++) {
            append(word++);
        }
        ivm__store_commit(&store);
        index_check(index);
    }
    cr_assert(index->slots && index->used > LEFT + 100);
    end();
}

/* Where memory for larger slots runs out nothing has changed; cleared and freed in the middle of growing, nothing is left. */
Test(engine_index_grow, memory_that_runs_out_and_is_given_back)
{
    for (uint32_t round = 0; round < 2; round++) {
        ivm__index *index = words_index(true);
        uint32_t failures = 0;
        uint64_t i = 0;
        for (; i < 5000 && !(i > 4000 && index->larger); i++) {
            test_allocator_arm(&counted, 1 + i % 2);
            ivm_status status = ivm__store_reserve(&store, 1);
            failures += test_allocator_disarm(&counted) && status == IVM_OUT_OF_MEMORY;
            index_check(index);
            word_row(i, 1);
            ivm__store_commit(&store);
        }
        cr_assert(failures > 5 && index->larger);
        if (round == 0) {
            ivm__store_clear(&store);
            cr_assert(!index->larger && rows_of(index, 5) == 0);
            index_check(index);
        }
        end();
    }
}
