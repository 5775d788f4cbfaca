/* tests operators/aggregate/group_codes.c */
#include "group_codes.h"

#include <criterion/criterion.h>

#include "allocator.h"

#define ROWS 100u

typedef struct world {
    test_allocator counted;
    ivm__memory memory;
    ivm__group_codes it;
    ivm__codes of[2];
    uint16_t numbers[2][ROWS];
    ivm__vector columns[2];
    ivm__chunk keys;
    uint32_t places[ROWS], groups[ROWS], missing[ROWS];
} world;

static void begin(world *w, uint32_t first, uint32_t second)
{
    memset(w, 0, sizeof *w);
    test_allocator_init(&w->counted);
    ivm_allocator functions = test_allocator_functions(&w->counted);
    ivm__memory_init(&w->memory, &functions);
    ivm__group_codes_init(&w->it, &w->memory, 2);
    w->of[0] = (ivm__codes){ .identity = 1, .bits = 12, .count = first };
    w->of[1] = (ivm__codes){ .identity = 2, .bits = 12, .count = second };
    for (uint32_t c = 0; c < 2; c++) {
        w->columns[c] = (ivm__vector){ .type = IVM_INT64, .codes = w->numbers[c], .codes_of = &w->of[c] };
        for (uint32_t i = 0; i < ROWS; i++) {
            w->numbers[c][i] = (uint16_t)(1 + (c ? i / 10 : i % 10) % w->of[c].count);
        }
    }
    w->keys = (ivm__chunk){ .rows_count = ROWS, .columns_count = 2, .columns = w->columns };
}

static bool serves(world *w, uint32_t groups)
{
    bool serve = false;
    cr_assert_eq(ivm__group_codes_serve(&w->it, &w->keys, groups, &serve), IVM_OK);
    return serve;
}

static uint32_t find(world *w)
{
    return ivm__group_codes_find(&w->it, &w->keys, w->places, w->groups, w->missing);
}

/* Row i is of group i. */
static void learn(world *w)
{
    uint32_t count = find(w);
    cr_assert_eq(ivm__group_codes_reserve(&w->it, ROWS), IVM_OK);
    for (uint32_t i = 0; i < count; i++) {
        ivm__group_codes_remember(&w->it, w->places[w->missing[i]], w->missing[i]);
    }
}

static void end(world *w)
{
    ivm__group_codes_deinit(&w->it);
    cr_assert(test_allocator_is_clean(&w->counted));
}

Test(operators_group_codes, groups_are_remembered_and_forgotten)
{
    world w;
    begin(&w, 10, 10);
    cr_assert(serves(&w, 0));
    cr_assert_eq(find(&w), ROWS);
    learn(&w);
    cr_assert_eq(find(&w), 0u);
    for (uint32_t i = 0; i < ROWS; i++) {
        cr_assert_eq(w.groups[i], i);
    }
    ivm__group_codes_forget(&w.it, 42);
    ivm__group_codes_forget(&w.it, 42);
    ivm__group_codes_forget(&w.it, 4200);
    cr_assert_eq(find(&w), 1u);
    cr_assert_eq(w.missing[0], 42u);
    cr_assert_eq(w.groups[42], UINT32_MAX);
    ivm__group_codes_forget_all(&w.it);
    cr_assert_eq(find(&w), ROWS);
    end(&w);
}

Test(operators_group_codes, more_codes_than_places_are_not_served_as_they_are)
{
    world w;
    begin(&w, 10, 10);
    cr_assert(serves(&w, 0));
    learn(&w);
    w.of[0].count = 16;
    cr_assert(serves(&w, 100));
    cr_assert_eq(find(&w), 0u, "there were places for them");
    w.of[0].count = 17;
    for (uint32_t refused = 0; !serves(&w, 100); refused++) {
        cr_assert_leq(refused, 4u, "more rows than there are places to write came in vain");
    }
    cr_assert_eq(find(&w), ROWS, "places are other ones now");
    end(&w);
}

/* Codes that come in turn with others: either are taken on only once they have served as many rows as that costs. */
Test(operators_group_codes, other_codes_are_taken_on_in_time)
{
    world w;
    begin(&w, 10, 10);
    cr_assert(serves(&w, 0));
    learn(&w);
    w.of[1].identity = 3;
    uint32_t refused = 0;
    for (; !serves(&w, 100); refused++) {
        w.of[1].identity = 2;
        cr_assert(serves(&w, 100));
        cr_assert_eq(find(&w), 0u, "what was remembered still is");
        w.of[1].identity = 3;
    }
    cr_assert_eq(refused, 3u, "256 places and 100 groups against 100 rows a time");
    cr_assert_eq(find(&w), ROWS);
    end(&w);
}

Test(operators_group_codes, no_more_places_than_groups_are_worth)
{
    world w;
    begin(&w, 100, 100);
    cr_assert_not(serves(&w, 0), "16,384 places");
    cr_assert_not(serves(&w, 1023));
    cr_assert(serves(&w, 1024));
    cr_assert_leq(ivm__group_codes_bytes(&w.it), 16384 * sizeof(uint32_t));
    end(&w);
}

Test(operators_group_codes, columns_without_codes_or_with_nulls_are_not_served)
{
    static uint8_t nulls[ROWS];
    world w;
    begin(&w, 10, 10);
    w.columns[1].codes = NULL;
    cr_assert_not(serves(&w, 0));
    w.columns[1].codes = w.numbers[1];
    w.columns[1].nulls = nulls;
    cr_assert_not(serves(&w, 0));
    w.columns[1].nulls = NULL;
    test_allocator_arm(&w.counted, 1);
    bool serve = false;
    cr_assert_eq(ivm__group_codes_serve(&w.it, &w.keys, 0, &serve), IVM_OUT_OF_MEMORY);
    cr_assert(test_allocator_disarm(&w.counted));
    cr_assert(serves(&w, 0));
    end(&w);
}
