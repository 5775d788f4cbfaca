/* tests engine/store/store_overwrite.c: random steps of rows overwritten, taken out and put in against arrays of what they were, with snapshots of the
 * pages held across, each step committed or undone; and every allocation failing. */
#include "allocator.h"
#include "index.h"
#include "random.h"

#include <criterion/criterion.h>

#define ROWS 2000u

typedef struct world {
    test_allocator allocator;
    ivm__memory memory;
    ivm__layout *layout;
    ivm__store store;
    int64_t value[ROWS], before[ROWS]; /* of each row's second column, now and when the step began */
    bool overwritten[ROWS];
    uint64_t random;
} world;

static uint32_t draw(world *it, uint32_t below)
{
    return (uint32_t)random_below(&it->random, below);
}

static void body_write(const world *it, uint8_t *row, int64_t key, int64_t value)
{
    memset(row + IVM__ROW_HEADER, 0, it->layout->body_bytes);
    memcpy(row + it->layout->offsets[0], &key, sizeof key);
    memcpy(row + it->layout->offsets[1], &value, sizeof value);
}

static int64_t value_at(const world *it, const uint8_t *row)
{
    int64_t value;
    memcpy(&value, row + it->layout->offsets[1], sizeof value);
    return value;
}

static void open_world(world *it, uint64_t seed)
{
    static const ivm_type types[] = { IVM_INT64, IVM_INT64 };
    memset(it, 0, sizeof *it);
    it->random = seed;
    test_allocator_init(&it->allocator);
    ivm_allocator functions = test_allocator_functions(&it->allocator);
    ivm__memory_init(&it->memory, &functions);
    cr_assert_eq(ivm__layout_create(&it->memory, types, NULL, 2, false, &it->layout), IVM_OK);
    cr_assert_eq(ivm__store_init(&it->store, &it->memory, NULL, seed, it->layout), IVM_OK);
    cr_assert_eq(ivm__store_reserve(&it->store, ROWS), IVM_OK);
    for (uint32_t i = 0; i < ROWS; i++) {
        body_write(it, ivm__store_row(&it->store, ivm__store_append(&it->store, 1)), i, it->value[i] = i);
    }
    cr_assert(!ivm__store_may_overwrite(&it->store, 0), "rows of the step under way");
    ivm__store_commit(&it->store);
    cr_assert(!ivm__store_may_overwrite(&it->store, 0), "not before the store says so");
    it->store.overwrites = true;
    memcpy(it->before, it->value, sizeof it->before);
}

static void close_world(world *it)
{
    ivm__store_deinit(&it->store);
    ivm__layout_release(it->layout);
    cr_assert(test_allocator_is_clean(&it->allocator));
}

/* One row; where `value` is what it has, it is not changed. */
static ivm_status overwrite(world *it, uint32_t row, int64_t value)
{
    uint8_t *at, changed = it->value[row] != value;
    ivm__row_id id = row;
    ivm_status status = ivm__store_overwrite_begin(&it->store, &id, 1, &at);
    if (status == IVM_OK) {
        body_write(it, at, row, value);
        ivm__store_overwrite_end(&it->store, &changed, 1);
        it->overwritten[row] = it->value[row] != value;
        it->value[row] = value;
    }
    return status;
}

static void check_rows(const world *it, const int64_t *want)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        cr_assert_eq(value_at(it, ivm__store_row(&it->store, i)), want[i], "row %u", i);
    }
}

/* What was overwritten tells each row once, as it was. */
static void check_list(const world *it, const ivm__overwritten *list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        count += it->overwritten[i];
    }
    cr_assert_eq(list->count, count);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *body = list->bodies + (size_t)i * it->layout->body_bytes;
        cr_assert(it->overwritten[list->rows[i]]);
        cr_assert_eq(value_at(it, body - IVM__ROW_HEADER), it->before[list->rows[i]]);
    }
}

static void random_step(world *it, uint32_t most)
{
    memset(it->overwritten, 0, sizeof it->overwritten);
    memcpy(it->before, it->value, sizeof it->before);
    for (uint32_t left = draw(it, most); left > 0; left--) {
        uint32_t row = draw(it, ROWS);
        if (!it->overwritten[row]) {
            cr_assert(ivm__store_may_overwrite(&it->store, row));
            cr_assert_eq(overwrite(it, row, draw(it, 5) ? draw(it, 1000000) : it->value[row]), IVM_OK);
        }
    }
    check_rows(it, it->value);
    check_list(it, &it->store.overwritten);
}

Test(engine_overwrite, random_steps_equal_arrays)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        world it;
        int64_t held_values[ROWS];
        open_world(&it, seed);
        for (uint32_t step = 0; step < 30; step++) {
            ivm__pages *held = ivm__pages_acquire(&it.store);
            memcpy(held_values, it.value, sizeof held_values);
            random_step(&it, step % 7 ? 300 : 3000);
            if (draw(&it, 3) == 0) {
                ivm__store_undo(&it.store);
                memcpy(it.value, it.before, sizeof it.value);
            } else {
                ivm__store_commit(&it.store);
                check_list(&it, &it.store.overwritten_last);
                cr_assert_eq(it.store.last_changes, 2u * it.store.overwritten_last.count);
            }
            check_rows(&it, it.value);
            cr_assert_eq(it.store.overwritten.count, 0u);
            for (uint32_t i = 0; i < ROWS; i++) {
                const uint8_t *rows = ivm__pages_leaf(held, i >> it.store.page_shift)->rows[(i >> it.store.page_shift) % IVM__FAN];
                cr_assert_eq(value_at(&it, rows + (size_t)(i & it.store.page_mask) * it.layout->stride), held_values[i], "a page held");
            }
            ivm__pages_release(held, &it.memory);
        }
        close_world(&it);
    }
}

Test(engine_overwrite, a_row_that_was_touched_or_that_an_index_finds_is_not)
{
    world it;
    static const uint32_t column = 0;
    ivm__index *index;
    open_world(&it, 1);
    cr_assert_eq(ivm__store_touch(&it.store, 5), IVM_OK);
    cr_assert(!ivm__store_may_overwrite(&it.store, 5) && ivm__store_may_overwrite(&it.store, 6));
    ivm__store_undo(&it.store);
    cr_assert(ivm__store_may_overwrite(&it.store, 5));
    cr_assert_eq(ivm__store_index(&it.store, &column, 1, true, &index), IVM_OK);
    cr_assert(!ivm__store_may_overwrite(&it.store, 5));
    close_world(&it);
}

Test(engine_overwrite, a_failed_allocation_leaves_the_row)
{
    for (uint64_t n = 1, done = 0; !done; n++) {
        world it;
        open_world(&it, n);
        ivm__pages *held = ivm__pages_acquire(&it.store);
        test_allocator_arm(&it.allocator, n);
        ivm_status first = overwrite(&it, 7, 70), second = overwrite(&it, 1999, 71);
        done = !test_allocator_disarm(&it.allocator);
        cr_assert_eq(first == IVM_OK && second == IVM_OK, done);
        check_rows(&it, it.value);
        ivm__store_undo(&it.store);
        check_rows(&it, it.before);
        ivm__pages_release(held, &it.memory);
        close_world(&it);
    }
}
