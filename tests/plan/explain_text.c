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
                              "  term    + delta(p) x cur(s: p.id = s.product) x cur(d: s.day = d.id)\n");
    push(product, IVM_DELETE, "3,nail");
    char *text = explain(star, NULL, IVM_EXPLAIN_TEXT);
    cr_assert_not_null(strstr(text, "  leaf 1  p (table product): mixed, 0 fresh, 1 gone, 0 changed, skipped\n"), "%s", text);
    cr_assert_not_null(strstr(text, "  masks (Moebius count) 7 in all, 4 pruned, 3 empty, 0 left; skip mask 010\n"), "%s", text);
    ivm_text_free(text);
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
