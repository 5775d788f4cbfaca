/* The indexes that explain tells of: for each leaf and column list one, built or not, with those whose terms read it. */
#include "explain_case.h"

#include <criterion/criterion.h>

TestSuite(plan_explain_indexes, .init = star_open, .fini = star_close);

/* The list without its bytes, which explained() has judged. */
static void told_indexes(ivm_view *view, const ivm_explain_options *stated, const char *want)
{
    json_t *root = explained(view, stated), *indexes = json_object_get((json_t *)explain_join(root), "indexes");
    for (size_t i = 0; i < json_array_size(indexes); i++) {
        json_object_del(json_array_get(indexes, i), "bytes");
    }
    explain_member(explain_join(root), "indexes", want);
    json_decref(root);
}

Test(plan_explain_indexes, built_or_not)
{
    static const char lazy[] = "[{\"leaf\": 0, \"columns\": [\"s.product\"], \"built\": false, \"drivers\": [1]},"
                               " {\"leaf\": 0, \"columns\": [\"s.day\"], \"built\": false, \"drivers\": [2]},"
                               " {\"leaf\": 1, \"columns\": [\"p.id\"], \"built\": true, \"drivers\": [0, 2]},"
                               " {\"leaf\": 2, \"columns\": [\"d.id\"], \"built\": true, \"drivers\": [0, 1]}]";
    push(product, IVM_INSERT, "1,ax 2,saw");
    push(sale, IVM_INSERT, "1,7,10 2,7,5 1,8,1");
    told_indexes(star, NULL, lazy);
    push(product, IVM_UPSERT, "1,axe"); /* drives a term */
    told_indexes(star, NULL,
                 "[{\"leaf\": 0, \"columns\": [\"s.product\"], \"built\": true, \"drivers\": [1]},"
                 " {\"leaf\": 0, \"columns\": [\"s.day\"], \"built\": false, \"drivers\": [2]},"
                 " {\"leaf\": 1, \"columns\": [\"p.id\"], \"built\": true, \"drivers\": [0, 2]},"
                 " {\"leaf\": 2, \"columns\": [\"d.id\"], \"built\": true, \"drivers\": [0, 1]}]");
    char *text = explain(star, NULL, IVM_EXPLAIN_TEXT);
    cr_assert_not_null(strstr(text, "  index   leaf 0  s: s.day; built when first read; for leaf 2\n"), "%s", text);
    cr_assert_not_null(strstr(text, "  index   leaf 1  p: p.id; "), "%s", text);
    cr_assert_not_null(strstr(text, " bytes; for leaves 0, 2\n"), "%s", text);
    ivm_text_free(text);
    cr_assert_eq(ivm_view_prepare(star, &shop.error), IVM_OK, "%s", shop.error.message);
    text = explain(star, NULL, IVM_EXPLAIN_TEXT);
    cr_assert_null(strstr(text, "built when first read"), "%s", text);
    ivm_text_free(text);
}

static ivm_table *growing(const char *name)
{
    static const ivm_column_definition columns[] = { { "id", IVM_INT64, true }, { "n", IVM_INT64, false } };
    ivm_table_options options = { .columns = columns, .columns_count = 2, .key = "id", .append_only = true };
    ivm_table *table = NULL;
    cr_assert_eq(ivm_table_create(shop.engine, name, &options, &table, &shop.error), IVM_OK, "%s", shop.error.message);
    return table;
}

Test(plan_explain_indexes, those_that_no_term_can_read_are_none)
{
    static const char all[] = "[{\"leaf\": 0, \"columns\": [\"s.product\"], \"built\": false, \"drivers\": [1]},"
                              " {\"leaf\": 1, \"columns\": [\"g.id\"], \"built\": true, \"drivers\": [0]}]";
    static const char pruned[] = "[{\"leaf\": 1, \"columns\": [\"g.id\"], \"built\": true, \"drivers\": [0]}]";
    ivm_stated_fact fact = { "sale", "product", "g", "id", IVM_RELY };
    ivm_explain_options stated = { .facts_stated = true, .facts = &fact, .facts_count = 1 };
    ivm_table *grows = growing("g");
    ivm_view *view =
        fixture_make(&shop, "v", ivm_plan_project(ivm_plan_join(scan_of("sale", "s"), scan_of("g", "g"), "s.product = g.id"), "g.n"));
    told_indexes(view, NULL, all);
    told_indexes(view, &stated, pruned);
    fact.trust = IVM_TRACKED;
    told_indexes(view, &stated, all);
    declare(sale, "product", grows);
    told_indexes(view, NULL, pruned);
    stated.facts_count = 0;
    told_indexes(view, &stated, all);
    cr_assert_eq(ivm_engine_planner_set(shop.engine, &(ivm_planner_options){ IVM_FK_PRUNING_OFF, IVM_JOIN_AUTO, false }, &shop.error),
                 IVM_OK);
    told_indexes(view, NULL, all);
}

Test(plan_explain_indexes, one_of_two_columns_and_a_cross_product)
{
    ivm_table *pair = fixture_table(&shop, "pair", "a int64; b int64; v int64", "b, a");
    ivm_plan *inputs[] = { scan_of("sale", "s"), scan_of("pair", "q"), ivm_plan_filter(scan_of("day", "d"), call_of(">", "d.week", 0)) };
    ivm_plan *join = ivm_plan_join_many(inputs, 3, "s.product = q.a, s.day = q.b");
    ivm_view *view = fixture_make(&shop, "v", ivm_plan_project(join, "s.amount, q.v, d.week"));
    told_indexes(view, NULL,
                 "[{\"leaf\": 0, \"columns\": [\"s.product\", \"s.day\"], \"built\": false, \"drivers\": [1]},"
                 " {\"leaf\": 1, \"columns\": [\"q.b\", \"q.a\"], \"built\": true, \"drivers\": [0, 2]}]");
    push(pair, IVM_INSERT, "7,1,1");
}
