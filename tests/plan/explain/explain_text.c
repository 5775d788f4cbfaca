/* Explain as text and as DOT. */
#include "explain_case.h"

#include <criterion/criterion.h>

TestSuite(plan_explain_text, .init = star_open, .fini = star_close);

/* ---- Text -------------------------------------------------------------------------------------------------------------------------------- */

/* A push of two sales, then one that updates a product. */
static void sell_and_rename(void)
{
    push(product, IVM_INSERT, "1,ax");
    push(sale, IVM_INSERT, "1,7,10 2,7,5");
    push(product, IVM_UPSERT, "1,axe");
}

static void told_in(ivm_explain_format format, const char *want)
{
    char *text = explain(star, NULL, format), *indexes = strstr(text, "  index ");
    if (indexes) {
        cr_assert_not_null(strstr(indexes, explain_legend), "%s", indexes);
        *indexes = 0; /* explain_indexes.c has those */
    }
    cr_assert_str_eq(text, want);
    ivm_text_free(text);
}

Test(plan_explain_text, text_is_for_reading)
{
    set_planner(IVM_FK_PRUNING_BATCH, IVM_JOIN_AUTO, false);
    sell_and_rename();
    told_in(IVM_EXPLAIN_TEXT, "view star, last push\n"
                              "join 0 of 3 leaves\n"
                              "  leaf 0  s (table sale): unchanged\n"
                              "  leaf 1  p (table product): mixed, 2 delta rows\n"
                              "  leaf 2  d (table day): unchanged, skipped\n"
                              "  pruning batch\n"
                              "  fact    leaf 0 -> leaf 1, rely: s.product = p.id\n"
                              "  fact    leaf 0 -> leaf 2, rely: s.day = d.id\n"
                              "  masks (Moebius count) 7 in all, 4 pruned, 2 empty, 1 left; skip mask 100\n"
                              "    001 empty\n"
                              "    010 left\n"
                              "    011 empty\n"
                              "    100 pruned\n"
                              "    101 pruned\n"
                              "    110 pruned\n"
                              "    111 pruned\n"
                              "  rule    mobius, 1 term (estimated probes: mobius 6, telescoping 6)\n"
                              "  probes  2 rows probed for, 1 matched\n"
                              "  term    + delta(p) x cur(s: p.id = s.product) x cur(d: s.day = d.id)\n");
}

Test(plan_explain_text, by_row_text_tells_what_became_of_each_parent_s_keys)
{
    sell_and_rename();
    push(product, IVM_UPSERT, "1,ax 2,saw 3,nail");
    told_in(IVM_EXPLAIN_TEXT, "view star, last push\n"
                              "join 0 of 3 leaves\n"
                              "  leaf 0  s (table sale): unchanged\n"
                              "  leaf 1  p (table product): mixed, 2 fresh, 0 gone, 2 changed, 2 delta rows\n"
                              "  leaf 2  d (table day): unchanged\n"
                              "  pruning row\n"
                              "  fact    leaf 0 -> leaf 1, rely: s.product = p.id\n"
                              "  fact    leaf 0 -> leaf 2, rely: s.day = d.id\n"
                              "  masks (Moebius count) 7 in all, 0 pruned, 6 empty, 1 left; skip mask 000\n"
                              "    001 empty\n"
                              "    010 left\n"
                              "    011 empty\n"
                              "    100 empty\n"
                              "    101 empty\n"
                              "    110 empty\n"
                              "    111 empty\n"
                              "  rule    mobius, 1 term (estimated probes: mobius 4, telescoping 4)\n"
                              "  probes  2 rows probed for, 1 matched\n"
                              "  term    + delta(p) x cur(s: p.id = s.product) x cur(d: s.day = d.id)\n");
    push(product, IVM_DELETE, "3,nail");
    char *text = explain(star, NULL, IVM_EXPLAIN_TEXT);
    cr_assert_not_null(strstr(text, "  leaf 1  p (table product): mixed, 0 fresh, 1 gone, 0 changed, skipped\n"), "%s", text);
    cr_assert_not_null(strstr(text, "  masks (Moebius count) 7 in all, 4 pruned, 3 empty, 0 left; skip mask 010\n"), "%s", text);
    ivm_text_free(text);
}

/* ---- Facts that prune nothing -------------------------------------------------------------------------------------------------------------- */

/* Asserts that the text has this line of an unused fact, or none at all, and that JSON tells as many, and the first for this reason. */
static void unused(ivm_view *view, const ivm_explain_options *stated, const char *reason, const char *line)
{
    char *text = explain(view, stated, IVM_EXPLAIN_TEXT);
    cr_assert_eq(strstr(text, "  unused  ") != NULL, line != NULL, "%s", text);
    cr_assert(!line || strstr(text, line), "\"%s\" is not in %s", line, text);
    ivm_text_free(text);
    json_t *root = explained(view, stated);
    const json_t *told = json_object_get(explain_join(root), "unused");
    cr_assert_eq(json_array_size(told) > 0, line != NULL);
    cr_assert(!line || strcmp(explain_text_of(json_array_get(told, 0), "reason"), reason) == 0, "%s",
              explain_text_of(json_array_get(told, 0), "reason"));
    json_decref(root);
}

static ivm_view *joined(const char *name, ivm_plan *left, ivm_plan *right, const char *on)
{
    return fixture_make(&shop, name, ivm_plan_count(ivm_plan_aggregate(ivm_plan_join(left, right, on), NULL), "n"));
}

Test(plan_explain_text, a_fact_that_the_join_does_not_equate_is_told_unused)
{
    ivm_table *price = fixture_table(&shop, "price", "product int64; day int64; each int64", "product, day");
    fixture_fact(&shop, sale, "product, day", price, "product, day", IVM_ENFORCED);
    ivm_view *half = joined("half", scan_of("sale", "s"), scan_of("price", "c"), "s.product = c.product");
    ivm_view *whole = joined("whole", scan_of("sale", "s"), scan_of("price", "c"), "s.product = c.product, s.day = c.day");
    push(price, IVM_INSERT, "1,7,3");
    unused(half, NULL, "not_equated",
           "  unused  leaf 0 -> leaf 1, enforced: sale(product, day) -> price(product, day): the join does not equate sale.day with "
           "price.day\n");
    unused(whole, NULL, NULL, NULL);
    json_t *root = explained(half, NULL);
    explain_member(explain_join(root), "unused",
                   "[{\"child\": 0, \"parent\": 1, \"trust\": \"enforced\", \"child_table\": \"sale\", \"columns\": [\"product\", \"day\"],"
                   " \"parent_table\": \"price\", \"parent_columns\": [\"product\", \"day\"], \"reason\": \"not_equated\","
                   " \"why\": \"the join does not equate sale.day with price.day\"}]");
    json_decref(root);
}

Test(plan_explain_text, a_fact_of_cast_columns_is_told_unused)
{
    ivm_plan *cast =
        ivm_plan_compute(ivm_plan_project(scan_of("sale", "s"), "amount"), "product", ivm_cast(ivm_column("product"), IVM_FLOAT64));
    ivm_view *view = joined("cast", cast, scan_of("product", "p"), "product = p.id");
    push(sale, IVM_INSERT, "1,1,1");
    unused(view, NULL, "column_not_passed_on",
           ": the join does not equate sale.product with product.id as they are: a leaf casts, computes or leaves out one of them\n");
}

/* Whether the table is below it, or below a view that it scans. */
Test(plan_explain_text, a_fact_of_a_derived_leaf_is_told_unused)
{
    ivm_plan *counted = ivm_plan_count(ivm_plan_aggregate(scan_of("sale", NULL), "product"), "n");
    ivm_view *view = joined("derived", counted, scan_of("product", "p"), "product = p.id");
    ivm_view *low = fixture_make(&shop, "low", ivm_plan_filter(scan_of("product", NULL), call_of(">", "id", 0)));
    ivm_view *over = joined("over", scan_of("sale", "s"), ivm_plan_scan_view(low, "l"), "s.product = l.id");
    ivm_view *plain =
        joined("plain", scan_of("sale", "s"), ivm_plan_filter(scan_of("product", "p"), call_of(">", "id", 0)), "s.product = p.id");
    push(sale, IVM_INSERT, "1,1,1");
    unused(view, NULL, "derived_leaf",
           "  unused  leaf 0 -> leaf 1, rely: sale(product) -> product(id): leaf 0 (aggregate) is no plain scan, filter or projection of "
           "sale\n");
    unused(over, NULL, "derived_leaf", ": leaf 1 (l) is no plain scan, filter or projection of product\n");
    unused(plain, NULL, NULL, NULL);
}

Test(plan_explain_text, a_fact_declared_since_is_told_unused_until_the_next_push)
{
    ivm_plan *stored = ivm_plan_join(scan_of("day", "d"), scan_of("product", "p"), "d.week = p.id");
    ivm_view *view = fixture_make(&shop, "late", ivm_plan_count(ivm_plan_aggregate(stored, NULL), "n"));
    push(product, IVM_INSERT, "1,ax");
    unused(view, NULL, NULL, NULL);
    declare(day, "week", product);
    unused(view, NULL, "not_in_force", ": declared after the state that the last push started from\n");
    push(product, IVM_INSERT, "2,saw");
    unused(view, NULL, NULL, NULL);
    unused(view, &(ivm_explain_options){ .version = 1 }, NULL, NULL);
}

/* A refresh starts from the state of the one before: a fact that was declared while rows waited is not used for them. */
Test(plan_explain_text, a_fact_declared_while_rows_wait_is_told_unused_after_the_refresh)
{
    ivm_plan *join = ivm_plan_join(scan_of("day", "d"), scan_of("product", "p"), "d.week = p.id");
    ivm_view_options options = { .refresh = IVM_DEFERRED };
    ivm_view *view = fixture_make_with(&shop, "waits", ivm_plan_count(ivm_plan_aggregate(join, NULL), "n"), &options);
    push(product, IVM_INSERT, "1,ax");
    declare(day, "week", product);
    cr_assert_eq(ivm_refresh_view(view, NULL, &shop.error), IVM_OK, "%s", shop.error.message);
    unused(view, NULL, "not_in_force", ": declared after the state that the last push started from\n");
    push(product, IVM_INSERT, "2,saw");
    cr_assert_eq(ivm_refresh_view(view, NULL, &shop.error), IVM_OK, "%s", shop.error.message);
    unused(view, NULL, NULL, NULL);
}

Test(plan_explain_text, before_the_first_push_and_without_pruning_no_fact_is_used)
{
    char *text = explain(star, NULL, IVM_EXPLAIN_TEXT);
    cr_assert_not_null(strstr(text, "view star, before its first push: nothing has changed\n"), "%s", text);
    cr_assert_null(strstr(text, "  probes  "), "%s", text);
    ivm_text_free(text);
    unused(star, NULL, "before_first_push", ": no push has come since the view was made\n");
    push(sale, IVM_INSERT, "1,1,1");
    unused(star, NULL, NULL, NULL);
    set_planner(IVM_FK_PRUNING_OFF, IVM_JOIN_AUTO, false);
    unused(star, NULL, NULL, NULL);
    push(sale, IVM_INSERT, "1,2,1");
    unused(star, NULL, "pruning_off", "  unused  leaf 0 -> leaf 2, rely: sale(day) -> day(id): fk_pruning is off\n");
    unused(star, &(ivm_explain_options){ .version = 1 }, "pruning_off", ": fk_pruning is off\n");
}

Test(plan_explain_text, by_batch_a_waiting_child_and_a_table_s_own_fact_are_told)
{
    ivm_table *late = fixture_table(&shop, "late", "id int64; name string", "id");
    fixture_fact(&shop, sale, "product", late, "id", IVM_TRACKED);
    declare(day, "week", day);
    ivm_view *view = joined("named", scan_of("sale", "s"), scan_of("late", "l"), "s.product = l.id");
    ivm_view *own = joined("own", scan_of("day", "d"), scan_of("day", "u"), "d.week = u.id");
    set_planner(IVM_FK_PRUNING_BATCH, IVM_JOIN_AUTO, false);
    push(sale, IVM_INSERT, "1,1,1");
    unused(view, NULL, NULL, NULL);
    push(late, IVM_INSERT, "1,ax");
    unused(view, NULL, "awaited", ", tracked: sale(product) -> late(id): a child waited for a parent that came, and pruning is by batch\n");
    push(day, IVM_INSERT, "1,1");
    unused(own, NULL, "own_table_by_batch", ": a table's reference to itself is used by row alone, and pruning is by batch\n");
    set_planner(IVM_FK_PRUNING_ROW, IVM_JOIN_AUTO, false);
    push(late, IVM_INSERT, "2,saw");
    push(day, IVM_INSERT, "2,1");
    unused(view, NULL, NULL, NULL);
    unused(own, NULL, NULL, NULL);
}

/* Of two tables that refer to each other one stays outside the skip mask, and what leads to it prunes nothing; from stated shapes as in a push. */
Test(plan_explain_text, a_fact_that_a_cycle_leaves_useless_is_told)
{
    const char *line = ", rely: right(id) -> left(id): leaf 0 is referred to only by leaves that rest on it themselves (a cycle)\n";
    ivm_table *left = fixture_table(&shop, "left", "id int64", "id"), *right = fixture_table(&shop, "right", "id int64", "id");
    declare(left, "id", right);
    declare(right, "id", left);
    ivm_view *view = joined("pairs", scan_of("left", "l"), scan_of("right", "r"), "l.id = r.id");
    ivm_stated_shape shapes[] = { { "left", IVM_INSERT_ONLY }, { "right", IVM_INSERT_ONLY } };
    ivm_explain_options stated = { .version = 1, .shapes = shapes, .shapes_count = 2 };
    for (int pruning = IVM_FK_PRUNING_BATCH; pruning <= IVM_FK_PRUNING_ROW; pruning++) {
        set_planner((ivm_fk_pruning)pruning, IVM_JOIN_AUTO, false);
        unused(view, &stated, "cycle", line);
        ivm_batch *batch = NULL;
        cr_assert_eq(ivm_batch_create(shop.engine, &batch, &shop.error), IVM_OK);
        ivm_batch_insert(batch, left, ivm_int64(pruning));
        ivm_batch_insert(batch, right, ivm_int64(pruning));
        cr_assert_eq(ivm_push_batch(shop.engine, batch, NULL, &shop.error), IVM_OK, "%s", shop.error.message);
        unused(view, NULL, "cycle", line);
        json_t *root = explained(view, NULL);
        explain_member(explain_join(root), "skip_mask", "\"10\"");
        json_decref(root);
    }
    set_planner(IVM_FK_PRUNING_ROW, IVM_JOIN_AUTO, false);
    push(sale, IVM_INSERT, "1,1,1");
    push(right, IVM_INSERT, "7");
    unused(view, NULL, NULL, NULL);
}

/* A second alias of a table that is equated otherwise is not told of, nor the way back between two rows of one table. */
Test(plan_explain_text, a_fact_is_not_told_unused_where_it_leads_between_other_leaves)
{
    declare(day, "week", day);
    ivm_plan *inputs[] = { scan_of("sale", "s"), scan_of("product", "p"), scan_of("day", "d"), scan_of("day", "u") };
    ivm_plan *join = ivm_plan_join_many(inputs, 4, "s.product = p.id, s.day = d.id, d.week = u.id");
    ivm_view *view = fixture_make(&shop, "weeks", ivm_plan_count(ivm_plan_aggregate(join, NULL), "n"));
    push(sale, IVM_INSERT, "1,1,1");
    unused(view, NULL, NULL, NULL);
}

/* Of two views that read the two before them, level upon level, each is looked at once. */
Test(plan_explain_text, a_ladder_of_views_is_climbed_once)
{
    char left[16] = "day", right[16] = "day", name[16];
    for (int level = 0; level < 60; level++) {
        for (int side = 0; side < 2; side++) {
            ivm_plan *inputs[] = { scan_of(left, "l"), scan_of(right, "r") };
            snprintf(name, sizeof name, "%c%d", "ab"[side], level);
            fixture_make(&shop, name, ivm_plan_set(IVM_UNION, inputs, 2));
        }
        snprintf(left, sizeof left, "a%d", level);
        snprintf(right, sizeof right, "b%d", level);
    }
    ivm_view *view = joined("top", scan_of(left, "l"), scan_of(right, "r"), "l.id = r.id");
    push(day, IVM_INSERT, "1,1");
    unused(view, NULL, NULL, NULL);
    declare(day, "week", day);
    push(day, IVM_INSERT, "2,1");
    unused(view, NULL, "derived_leaf", " is no plain scan, filter or projection of day\n");
}

/* ---- DOT ----------------------------------------------------------------------------------------------------------------------------------------- */

Test(plan_explain_text, dot_is_a_graph)
{
    set_planner(IVM_FK_PRUNING_BATCH, IVM_JOIN_AUTO, false);
    push(product, IVM_INSERT, "1,ax");
    push(sale, IVM_INSERT, "1,7,10 2,7,5");
    told_in(IVM_EXPLAIN_DOT, "digraph \"star\" {\n"
                             "  node [shape=box];\n"
                             "  j0_l0 [label=\"s\", xlabel=\"insert_only\", style=bold];\n"
                             "  j0_l1 [label=\"p\", xlabel=\"unchanged\", style=dashed];\n"
                             "  j0_l2 [label=\"d\", xlabel=\"unchanged\", style=dashed];\n"
                             "  j0_l0 -> j0_l1;\n"
                             "  j0_l0 -> j0_l2;\n"
                             "  j0_terms [shape=note, label=\"7 masks, 6 pruned, 0 empty, 1 left\\l+ 001\\l\"];\n"
                             "}\n");
    set_planner(IVM_FK_PRUNING_ROW, IVM_JOIN_AUTO, false);
    push(product, IVM_INSERT, "2,saw");
    told_in(IVM_EXPLAIN_DOT, "digraph \"star\" {\n"
                             "  node [shape=box];\n"
                             "  j0_l0 [label=\"s\", xlabel=\"unchanged\"];\n"
                             "  j0_l1 [label=\"p\", xlabel=\"insert_only\", style=dashed];\n"
                             "  j0_l2 [label=\"d\", xlabel=\"unchanged\"];\n"
                             "  j0_l0 -> j0_l1;\n"
                             "  j0_l0 -> j0_l2;\n"
                             "  j0_terms [shape=note, label=\"7 masks, 4 pruned, 3 empty, 0 left\\l\"];\n"
                             "}\n");
}

Test(plan_explain_text, names_are_escaped)
{
    ivm_column_definition columns[] = { { "a\"\\\x01\n", IVM_INT64, false }, { "\xc3\xa9", IVM_INT64, false } };
    ivm_table_options options = { .columns = columns, .columns_count = 2 };
    ivm_table *table;
    cr_assert_eq(ivm_table_create(shop.engine, "t\"\t\\", &options, &table, &shop.error), IVM_OK);
    ivm_plan *join = ivm_plan_join(ivm_plan_scan(table, "x\""), ivm_plan_scan(table, "y\\"), NULL);
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(join, NULL), "n");
    ivm_view *view = fixture_make(&shop, "v\"\\\x7f\n", plan);
    json_t *root = explained(view, NULL);
    const json_t *leaf = json_array_get(json_object_get(explain_join(root), "leaves"), 1);
    cr_assert_str_eq(explain_text_of(leaf, "name"), "y\\");
    cr_assert_str_eq(explain_text_of(leaf, "table"), "t\"\t\\");
    cr_assert_str_eq(json_string_value(json_array_get(json_object_get(leaf, "columns"), 0)), "y\\.a\"\\\x01\n");
    cr_assert_str_eq(json_string_value(json_array_get(json_object_get(leaf, "columns"), 1)), "y\\.\xc3\xa9");
    json_decref(root);
    char *text = explain(view, NULL, IVM_EXPLAIN_DOT);
    cr_assert_not_null(strstr(text, "[label=\"x\\\"\","));
    cr_assert_not_null(strstr(text, "[label=\"y\\\\\","));
    ivm_text_free(text);
}
