/* Explain from stated shapes and facts, without data, and what it refuses. */
#include "explain_case.h"

#include <criterion/criterion.h>

TestSuite(plan_explain_stated, .init = star_open, .fini = star_close);

static ivm_explain_options stated_shapes(const ivm_stated_shape *shapes, size_t shapes_count)
{
    return (ivm_explain_options){ .version = 1, .shapes = shapes, .shapes_count = shapes_count };
}

/* By batch an unchanged parent only gained rows, none; by row it is empty. */
static void stated_number(uint32_t number, bool by_row)
{
    static const char *const names[] = { "unchanged", "insert_only", "mixed" };
    ivm_shape of[3] = { (ivm_shape)(number % 3), (ivm_shape)(number / 3 % 3), (ivm_shape)(number / 9) };
    ivm_stated_shape shapes[] = { { "sale", of[0] }, { "product", of[1] }, { "day", of[2] } };
    ivm_explain_options stated = stated_shapes(shapes, 3);
    json_t *root = explained(star, &stated);
    const json_t *join = explain_join(root);
    for (size_t i = 0; i < 3; i++) {
        bool skipped = i > 0 && (of[i] == IVM_INSERT_ONLY || (of[i] == IVM_UNCHANGED && !by_row));
        cr_assert_str_eq(explain_text_of(leaf_at(join, i), "delta"), names[of[i]]);
        cr_assert_eq(json_is_true(json_object_get(leaf_at(join, i), "skipped")), skipped);
    }
    json_decref(root);
}

Test(plan_explain_stated, stated_shapes_decide_without_data)
{
    for (int pruning = IVM_FK_PRUNING_ROW; pruning <= IVM_FK_PRUNING_BATCH; pruning++) {
        set_planner((ivm_fk_pruning)pruning, IVM_JOIN_AUTO, false);
        for (uint32_t number = 0; number < 27; number++) {
            stated_number(number, pruning == IVM_FK_PRUNING_ROW);
        }
    }
}

/* A table's fact to itself is for pruning by row alone. */
Test(plan_explain_stated, a_stated_fact_within_a_table_prunes_by_row_alone)
{
    ivm_plan *join = ivm_plan_join(scan_of("day", "d"), scan_of("day", "u"), "d.week = u.id");
    ivm_view *view = fixture_make(&shop, "within", ivm_plan_project(join, "u.week"));
    ivm_stated_shape shape = { "day", IVM_INSERT_ONLY };
    ivm_stated_fact fact = { "day", "week", "day", "id", IVM_RELY };
    ivm_explain_options stated = stated_shapes(&shape, 1);
    stated.facts_stated = true;
    stated.facts = &fact;
    stated.facts_count = 1;
    for (int pruning = IVM_FK_PRUNING_ROW; pruning <= IVM_FK_PRUNING_BATCH; pruning++) {
        bool by_row = pruning == IVM_FK_PRUNING_ROW;
        set_planner((ivm_fk_pruning)pruning, IVM_JOIN_AUTO, false);
        json_t *root = explained(view, &stated);
        explain_member(explain_join(root), "skip_mask", by_row ? "\"10\"" : "\"00\"");
        cr_assert_eq(json_array_size(json_object_get(explain_join(root), "facts")), by_row ? 1u : 0u);
        json_decref(root);
    }
}

Test(plan_explain_stated, a_table_that_is_not_named_may_have_changed_in_any_way)
{
    ivm_explain_options stated = { .version = 0 };
    json_t *root = explained(star, &stated);
    explain_member(explain_join(root), "skip_mask", "\"000\"");
    explain_member(explain_join(root), "run", "7");
    json_decref(root);
    ivm_stated_shape shape = { "day", IVM_INSERT_ONLY };
    stated = stated_shapes(&shape, 1);
    root = explained(star, &stated);
    explain_member(explain_join(root), "skip_mask", "\"100\"");
    explain_member(explain_join(root), "run", "3");
    json_decref(root);
}

Test(plan_explain_stated, a_derived_leaf_is_as_its_tables_are)
{
    ivm_plan *counted = ivm_plan_count(ivm_plan_aggregate(scan_of("sale", NULL), "product"), "n");
    ivm_view *view = fixture_make(&shop, "derived", ivm_plan_join(counted, scan_of("product", "p"), "product = p.id"));
    ivm_stated_shape shape = { "sale", IVM_UNCHANGED };
    ivm_explain_options stated = stated_shapes(&shape, 1);
    json_t *root = explained(view, &stated);
    explain_member(json_array_get(json_object_get(explain_join(root), "leaves"), 0), "delta", "\"unchanged\"");
    explain_member(explain_join(root), "run", "1");
    json_decref(root);
}

Test(plan_explain_stated, stated_shapes_reach_through_views)
{
    ivm_view *low = fixture_make(&shop, "low", ivm_plan_filter(scan_of("product", NULL), call_of(">", "id", 0)));
    ivm_plan *twice[] = { ivm_plan_scan_view(low, NULL), scan_of("low", NULL) };
    ivm_view *middle = fixture_make(&shop, "middle", ivm_plan_set(IVM_UNION, twice, 2));
    ivm_plan *join = ivm_plan_join(scan_of("sale", "s"), ivm_plan_scan_view(middle, "m"), "s.product = m.id");
    ivm_view *view = fixture_make(&shop, "v", ivm_plan_project(join, "m.name"));
    static const struct {
        ivm_shape product;
        const char *told;
    } shapes[] = { { IVM_UNCHANGED, "unchanged" }, { IVM_INSERT_ONLY, "mixed" }, { IVM_MIXED, "mixed" } };
    for (size_t i = 0; i < 3; i++) {
        ivm_stated_shape stated_shape = { "product", shapes[i].product };
        ivm_explain_options stated = stated_shapes(&stated_shape, 1);
        json_t *root = explained(view, &stated);
        const json_t *leaf = json_array_get(json_object_get(explain_join(root), "leaves"), 1);
        cr_assert_str_eq(explain_text_of(leaf, "delta"), shapes[i].told);
        explain_member(explain_join(root), "skip_mask", "\"00\"");
        json_decref(root);
    }
}

Test(plan_explain_stated, stated_facts_stand_for_the_declared_ones)
{
    ivm_stated_shape shapes[] = { { "product", IVM_INSERT_ONLY }, { "day", IVM_INSERT_ONLY } };
    ivm_stated_fact fact = { "sale", "product", "product", "id", IVM_TRACKED };
    ivm_explain_options stated = stated_shapes(shapes, 2);
    stated.facts = &fact;
    stated.facts_count = 1;
    json_t *root = explained(star, &stated);
    explain_member(explain_join(root), "skip_mask", "\"110\"");
    json_decref(root);
    stated.facts_stated = true;
    root = explained(star, &stated);
    explain_member(explain_join(root), "skip_mask", "\"010\"");
    explain_member(explain_join(root), "facts",
                   "[{\"child\": 0, \"parent\": 1, \"trust\": \"tracked\", \"on\": [[\"s.product\", \"p.id\"]]}]");
    json_decref(root);
    stated.facts_count = 0;
    root = explained(star, &stated);
    explain_member(explain_join(root), "skip_mask", "\"000\"");
    json_decref(root);
    cr_assert_null(shop.engine->facts->next->next, "stated facts are not declared");
}

/* Nobody has said how many rows, nor who waits. */
Test(plan_explain_stated, no_rows_are_counted_and_nobody_waits)
{
    ivm_stated_shape shape = { "product", IVM_INSERT_ONLY };
    ivm_stated_fact fact = { "sale", "product", "product", "id", IVM_RELY };
    ivm_explain_options stated = stated_shapes(&shape, 1);
    stated.facts_stated = true;
    stated.facts = &fact;
    stated.facts_count = 1;
    for (int trust = IVM_RELY; trust <= IVM_TRACKED; trust++) {
        fact.trust = (ivm_trust)trust;
        char *text = explain(star, &stated, IVM_EXPLAIN_TEXT);
        cr_assert_null(strstr(text, "delta rows"), "%s", text);
        cr_assert_not_null(strstr(text, "leaf 0  s (table sale): mixed\n"), "%s", text);
        cr_assert_not_null(strstr(text, "leaf 1  p (table product): insert_only, skipped\n"), "%s", text);
        bool told = strstr(text, "view star, from stated facts\n  tracked facts are planned as if no child waited") != NULL;
        cr_assert_eq(told, trust == IVM_TRACKED, "%s", text);
        ivm_text_free(text);
    }
    push(sale, IVM_INSERT, "1,1,1");
    char *last = explain(star, NULL, IVM_EXPLAIN_TEXT);
    cr_assert(strstr(last, ", 1 delta row\n") && !strstr(last, "as if no child"), "%s", last);
    ivm_text_free(last);
}

Test(plan_explain_stated, stating_leaves_the_last_push_and_the_next)
{
    push(sale, IVM_INSERT, "1,1,1");
    char *before = explain(star, NULL, IVM_EXPLAIN_JSON);
    ivm_explain_options stated = { .facts_stated = true };
    json_decref(explained(star, &stated));
    char *after = explain(star, NULL, IVM_EXPLAIN_JSON);
    cr_assert_str_eq(after, before);
    ivm_text_free(before);
    ivm_text_free(after);
    push(product, IVM_INSERT, "1,ax");
    json_t *root = explained(star, NULL);
    explain_member(explain_join(root), "skip_mask", "\"010\"");
    json_decref(root);
    set_planner(IVM_FK_PRUNING_BATCH, IVM_JOIN_AUTO, false);
    push(product, IVM_INSERT, "2,saw");
    root = explained(star, NULL);
    explain_member(explain_join(root), "skip_mask", "\"110\"");
    json_decref(root);
}

static void refuses(ivm_view *view, const ivm_explain_options *stated, ivm_explain_format format, ivm_status want, const char *part)
{
    char *text = (char *)"as it was";
    int64_t blocks = shop.allocator.blocks;
    ivm_error error = { IVM_OK, "none" };
    ivm_status status = ivm_explain(view, stated, format, &text, &error);
    cr_assert_eq(status, want, "%s, not %s", ivm_status_name(status), ivm_status_name(want));
    cr_assert_eq(error.status, want);
    cr_assert_not_null(strstr(error.message, part), "\"%s\" is not in \"%s\"", part, error.message);
    cr_assert_str_eq(text, "as it was");
    cr_assert_eq(shop.allocator.blocks, blocks);
}

static void refuses_fact(ivm_stated_fact fact, ivm_status want, const char *part)
{
    ivm_stated_fact facts[] = { { "sale", "day", "day", "id", IVM_RELY }, fact };
    refuses(star, &(ivm_explain_options){ .facts_stated = true, .facts = facts, .facts_count = 2 }, IVM_EXPLAIN_TEXT, want, part);
}

static void refuses_shape(ivm_stated_shape shape, ivm_status want, const char *part)
{
    ivm_explain_options stated = stated_shapes(&shape, 1);
    refuses(star, &stated, IVM_EXPLAIN_JSON, want, part);
}

Test(plan_explain_stated, what_is_stated_wrongly_is_refused)
{
    refuses_shape((ivm_stated_shape){ "nowhere", IVM_MIXED }, IVM_UNKNOWN_TABLE, "nowhere");
    refuses_shape((ivm_stated_shape){ NULL, IVM_MIXED }, IVM_UNKNOWN_TABLE, "name");
    refuses_shape((ivm_stated_shape){ "star", IVM_MIXED }, IVM_UNKNOWN_TABLE, "star");
    refuses_shape((ivm_stated_shape){ "sale", (ivm_shape)3 }, IVM_INVALID_ARGUMENT, "sale");
    refuses_fact((ivm_stated_fact){ "nowhere", "day", "day", "id", IVM_RELY }, IVM_UNKNOWN_TABLE, "nowhere");
    refuses_fact((ivm_stated_fact){ "sale", "day", "nowhere", "id", IVM_RELY }, IVM_UNKNOWN_TABLE, "nowhere");
    refuses_fact((ivm_stated_fact){ NULL, "day", "day", "id", IVM_RELY }, IVM_INVALID_ARGUMENT, "two tables");
    refuses_fact((ivm_stated_fact){ "sale", "night", "day", "id", IVM_RELY }, IVM_UNKNOWN_COLUMN, "night");
    refuses_fact((ivm_stated_fact){ "sale", "day", "day", "week", IVM_RELY }, IVM_INVALID_ARGUMENT, "key");
    refuses_fact((ivm_stated_fact){ "sale", NULL, "day", "id", IVM_RELY }, IVM_INVALID_ARGUMENT, "pairs");
    refuses_fact((ivm_stated_fact){ "product", "name", "day", "id", IVM_RELY }, IVM_TYPE_MISMATCH, "name");
    refuses_fact((ivm_stated_fact){ "sale", "day", "day", "id", (ivm_trust)3 }, IVM_INVALID_ARGUMENT, "trust");
}

Test(plan_explain_stated, arguments_are_checked)
{
    refuses(NULL, NULL, IVM_EXPLAIN_TEXT, IVM_INVALID_ARGUMENT, "view");
    refuses(star, NULL, (ivm_explain_format)3, IVM_INVALID_ARGUMENT, "format");
    refuses(star, &(ivm_explain_options){ .version = 2 }, IVM_EXPLAIN_TEXT, IVM_INVALID_ARGUMENT, "version");
    refuses(star, &(ivm_explain_options){ .shapes_count = 1 }, IVM_EXPLAIN_TEXT, IVM_INVALID_ARGUMENT, "shapes");
    refuses(star, &(ivm_explain_options){ .facts_stated = true, .facts_count = 1 }, IVM_EXPLAIN_TEXT, IVM_INVALID_ARGUMENT, "facts");
    cr_assert_eq(ivm_explain(star, NULL, IVM_EXPLAIN_TEXT, NULL, NULL), IVM_INVALID_ARGUMENT);
    ivm_text_free(NULL);
}

Test(plan_explain_stated, out_of_memory_anywhere_leaves_nothing)
{
    ivm_stated_fact facts[] = { { "sale", "day", "day", "id", IVM_RELY }, { "sale", "product", "product", "id", IVM_RELY } };
    ivm_explain_options stated = { .facts_stated = true, .facts = facts, .facts_count = 2 };
    uint64_t n = 1;
    for (bool done = false; !done; n++) {
        char *text = NULL;
        int64_t blocks = shop.allocator.blocks;
        test_allocator_arm(&shop.allocator, n);
        ivm_status status = ivm_explain(star, &stated, IVM_EXPLAIN_JSON, &text, &shop.error);
        done = !test_allocator_disarm(&shop.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(text != NULL, done);
        cr_assert_eq(shop.allocator.blocks, blocks);
        ivm_text_free(text);
    }
    cr_assert_gt(n, 8u);
}
