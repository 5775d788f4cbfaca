/* Names of columns looked up: one by one and sorted they are found alike, and what many names cost is counted, not timed. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "names.h"

#define WIDE IVM_VIEW_COLUMNS_MAX

static ivm_status find(ivm__names *names, const char *name, uint32_t *column, ivm_error *error)
{
    *column = UINT32_MAX;
    return ivm__column_find(names, name, column, error);
}

/* Asks so often that the names are sorted. */
static void names_wear(ivm__names *names)
{
    uint32_t column;
    for (int i = 0; i < 10000 && !names->sorted; i++) {
        cr_assert_eq(find(names, "nobody", &column, NULL), IVM_UNKNOWN_COLUMN);
    }
    cr_assert_not_null(names->sorted);
}

static void found(const char *name, ivm_status status, uint32_t at, const char *message)
{
    static const char *const known[] = { "a.id", "b.id", "b.name", "total", "x.total", "c.d.e" };
    ivm__named_column list[6];
    ivm__names names;
    fixture it;
    fixture_open(&it);
    for (uint32_t i = 0; i < 6; i++) {
        list[i] = (ivm__named_column){ (char *)(uintptr_t)known[i], IVM_INT64 };
    }
    ivm__names_init(&names, &it.engine->memory, list, 6);
    for (int sorted = 0; sorted < 2; sorted++) {
        uint32_t column;
        ivm_error error = IVM_ERROR_INIT;
        cr_expect_eq(find(&names, name, &column, &error), status, "%s", name);
        cr_expect_eq(column, status == IVM_OK ? at : UINT32_MAX, "%s is column %u", name, column);
        cr_expect_str_eq(error.message, message);
        names_wear(&names);
    }
    ivm__names_deinit(&names);
    fixture_close(&it);
}

Test(plan_names, are_found_exactly_or_behind_their_alias)
{
    found("a.id", IVM_OK, 0, "");
    found("b.id", IVM_OK, 1, "");
    found("name", IVM_OK, 2, "");
    found("total", IVM_OK, 3, ""); /* exact before x.total */
    found("e", IVM_OK, 5, "");
    found("id", IVM_AMBIGUOUS_COLUMN, 0, "2 columns are named id");
    found("d.e", IVM_UNKNOWN_COLUMN, 0, "there is no column d.e");
    found("a.name", IVM_UNKNOWN_COLUMN, 0, "there is no column a.name");
    found("a", IVM_UNKNOWN_COLUMN, 0, "there is no column a");
    found("", IVM_UNKNOWN_COLUMN, 0, "there is no column ");
}

Test(plan_names, two_columns_of_one_full_name_are_ambiguous)
{
    ivm__named_column list[] = { { "t.a", IVM_INT64 }, { "t.a", IVM_INT64 } };
    ivm__names names;
    uint32_t column;
    fixture it;
    fixture_open(&it);
    ivm__names_init(&names, &it.engine->memory, list, 2);
    for (int sorted = 0; sorted < 2; sorted++) {
        cr_expect_eq(find(&names, "t.a", &column, NULL), IVM_AMBIGUOUS_COLUMN);
        cr_expect_eq(find(&names, "a", &column, NULL), IVM_AMBIGUOUS_COLUMN);
        names_wear(&names);
    }
    ivm__names_deinit(&names);
    fixture_close(&it);
}

Test(plan_names, memory_that_ends_as_they_are_sorted_is_told)
{
    ivm__named_column list[] = { { "t.a", IVM_INT64 }, { "t.b", IVM_INT64 } };
    ivm__names names;
    ivm_status status = IVM_OK;
    uint32_t column;
    fixture it;
    fixture_open(&it);
    ivm__names_init(&names, &it.engine->memory, list, 2);
    test_allocator_arm(&it.allocator, 1);
    for (int i = 0; i < 10000 && status == IVM_OK; i++) {
        status = find(&names, "b", &column, &it.error);
    }
    cr_expect(test_allocator_disarm(&it.allocator));
    cr_expect_eq(status, IVM_OUT_OF_MEMORY);
    cr_expect_eq(find(&names, "b", &column, &it.error), IVM_OK);
    cr_expect_eq(column, 1u);
    ivm__names_deinit(&names);
    fixture_close(&it);
}

/* ---- As many as there can be ------------------------------------------------------------------------------------------------------------------ */

static ivm__named_column *columns_wide(char *text)
{
    ivm__named_column *list = malloc(WIDE * sizeof *list);
    for (uint32_t i = 0; i < WIDE; i++) {
        list[i] = (ivm__named_column){ text + 16 * i, IVM_INT64 };
        snprintf(list[i].name, 16, "%c.c%u", 'a' + (int)(i % 7), i);
    }
    return list;
}

/* Each by its name and by the one behind its alias, which is looked for twice: a halving of 2^16 takes 16 steps. */
Test(plan_names, of_the_widest_row_cost_a_halving_each)
{
    char *text = malloc(16 * WIDE);
    ivm__named_column *list = columns_wide(text);
    ivm__names names;
    uint32_t column;
    fixture it;
    fixture_open(&it);
    ivm__names_init(&names, &it.engine->memory, list, WIDE);
    for (uint32_t i = 0; i < WIDE; i++) {
        cr_assert_eq(find(&names, list[i].name, &column, NULL), IVM_OK);
        cr_assert_eq(column, i);
        cr_assert_eq(find(&names, list[i].name + 2, &column, NULL), IVM_OK);
        cr_assert_eq(column, i);
    }
    cr_expect_leq(names.compared, (uint64_t)WIDE * (3 * 17 + 3) + 2 * WIDE, "%lu", (unsigned long)names.compared);
    ivm__names_deinit(&names);
    fixture_close(&it);
    free(list);
    free(text);
}

/* A project of as many columns as a row has, each read by its name from as many. */
static ivm_plan *project_wide(ivm_plan *input, uint32_t columns_count, const char *from)
{
    ivm_plan *plan = ivm_plan_project(input, "");
    for (uint32_t i = 0; i < columns_count; i++) {
        char name[16], read[16];
        snprintf(name, sizeof name, "c%u", i);
        snprintf(read, sizeof read, from, i);
        plan = ivm_plan_compute(plan, name, ivm_column(read));
    }
    return plan;
}

Test(plan_names, of_a_wide_view_are_found)
{
    fixture it;
    ivm_view *view;
    fixture_open(&it);
    (void)fixture_table(&it, "t", "a int64", NULL);
    ivm_plan *plan = project_wide(project_wide(ivm_plan_scan_name("t", NULL), WIDE, "t.a"), WIDE, "c%u");
    cr_assert_eq(ivm_view_create(it.engine, "v", plan, NULL, &view, &it.error), IVM_OK, "%s", it.error.message);
    cr_expect_eq(ivm_view_columns_count(view), (size_t)WIDE);
    fixture_close(&it);
}
