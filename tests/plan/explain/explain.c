/* Explain: what it tells of the last push. As text and DOT: explain_text.c. */
#include "explain_case.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(plan_explain, .init = star_open, .fini = star_close);

static size_t facts_count(ivm_view *view)
{
    json_t *root = explained(view, NULL);
    size_t count = json_array_size(json_object_get(explain_join(root), "facts"));
    json_decref(root);
    return count;
}

/* ---- The last push ---------------------------------------------------------------------------------------------------------------------------- */

/* Asserts a leaf's fates, rows left to drive, and whether it is skipped. */
static void leaf_tells(const json_t *join, size_t leaf, const char *delta, const char *fates)
{
    char told[128];
    const json_t *at = leaf_at(join, leaf);
    snprintf(told, sizeof told, "%d fresh, %d gone, %d changed: %d left%s", (int)json_integer_value(json_object_get(at, "fresh")),
             (int)json_integer_value(json_object_get(at, "gone")), (int)json_integer_value(json_object_get(at, "changed")),
             (int)json_integer_value(json_object_get(at, "delta_rows")), json_is_true(json_object_get(at, "skipped")) ? ", skipped" : "");
    cr_assert_str_eq(explain_text_of(at, "delta"), delta);
    cr_assert_str_eq(told, fates);
}

Test(plan_explain, json_tells_the_last_push)
{
    set_planner(IVM_FK_PRUNING_BATCH, IVM_JOIN_AUTO, false);
    push(product, IVM_INSERT, "1,ax 2,saw");
    push(sale, IVM_INSERT, "1,7,10 2,7,5 1,8,1");
    json_t *root = explained(star, NULL);
    const json_t *join = explain_join(root);
    explain_member(join, "leaves",
                   "[{\"leaf\": 0, \"name\": \"s\", \"table\": \"sale\", \"columns\": [\"s.product\", \"s.day\", \"s.amount\"],"
                   "  \"delta\": \"insert_only\", \"fresh\": 0, \"awaited\": 0, \"gone\": 0, \"kept\": 0, \"changed\": 0, \"delta_rows\": "
                   "3, \"skipped\": false},"
                   " {\"leaf\": 1, \"name\": \"p\", \"table\": \"product\", \"columns\": [\"p.id\", \"p.name\"],"
                   "  \"delta\": \"unchanged\", \"fresh\": 0, \"awaited\": 0, \"gone\": 0, \"kept\": 0, \"changed\": 0, \"delta_rows\": 0, "
                   "\"skipped\": true},"
                   " {\"leaf\": 2, \"name\": \"d\", \"table\": \"day\", \"columns\": [\"d.id\", \"d.week\"],"
                   "  \"delta\": \"unchanged\", \"fresh\": 0, \"awaited\": 0, \"gone\": 0, \"kept\": 0, \"changed\": 0, \"delta_rows\": 0, "
                   "\"skipped\": true}]");
    explain_member(join, "facts",
                   "[{\"child\": 0, \"parent\": 1, \"trust\": \"rely\", \"on\": [[\"s.product\", \"p.id\"]]},"
                   " {\"child\": 0, \"parent\": 2, \"trust\": \"rely\", \"on\": [[\"s.day\", \"d.id\"]]}]");
    explain_member(join, "skip_mask", "\"110\"");
    explain_member(join, "masks", "[\"001\"]");
    explain_member(join, "pruned", "6");
    explain_member(join, "empty", "0");
    explain_member(join, "rows_probed", "6"); /* three for products, three for days */
    explain_member(join, "rows_matched", "3");
    const json_t *term = json_array_get(json_object_get(join, "terms"), 0);
    explain_member(term, "mask", "\"001\"");
    explain_member(term, "sign", "1");
    explain_member(term, "driver", "0");
    explain_member(term, "readings", "[\"delta\", \"cur\", \"cur\"]");
    json_decref(root);
    push(product, IVM_UPSERT, "2,hammer");
    root = explained(star, NULL);
    join = explain_join(root);
    explain_member(join, "skip_mask", "\"100\"");
    explain_member(join, "run", "1");
    explain_member(join, "empty", "2");
    leaf_tells(join, 1, "mixed", "0 fresh, 0 gone, 0 changed: 2 left");
    json_decref(root);
}

/* Asserts what became of leaf 1 in the push just made, the skip mask and the number of masks run. */
static void pruned_to(const char *delta, const char *fates, const char *skip, const char *run)
{
    json_t *root = explained(star, NULL);
    const json_t *join = explain_join(root);
    leaf_tells(join, 1, delta, fates);
    explain_member(join, "skip_mask", skip);
    explain_member(join, "run", run);
    json_decref(root);
}

Test(plan_explain, by_row_json_tells_what_became_of_each_parent_s_keys)
{
    push(day, IVM_INSERT, "7,1");
    push(product, IVM_INSERT, "1,ax 2,saw 3,nail");
    pruned_to("insert_only", "3 fresh, 0 gone, 0 changed: 0 left, skipped", "\"010\"", "0");
    push(sale, IVM_INSERT, "1,7,10 2,7,5");
    pruned_to("unchanged", "0 fresh, 0 gone, 0 changed: 0 left", "\"000\"", "1");
    push(product, IVM_UPSERT, "2,hammer 4,bolt 5,nut");
    pruned_to("mixed", "2 fresh, 0 gone, 2 changed: 2 left", "\"000\"", "1");
    push(product, IVM_DELETE, "3,nail 5,nut");
    pruned_to("mixed", "0 fresh, 2 gone, 0 changed: 0 left, skipped", "\"010\"", "0");
    push(sale, IVM_DELETE, "2,7,5");
    pruned_to("unchanged", "0 fresh, 0 gone, 0 changed: 0 left", "\"000\"", "1");
}

Test(plan_explain, every_rule_and_shape_agrees_with_itself)
{
    static const char *const rows[] = { "1,ax",  "2,saw", "3,nail", "4,bolt", "5,nut",  "6,pin",
                                        "7,cap", "8,rod", "9,peg",  "10,rib", "11,hub", "12,fin" };
    uint32_t at = 0;
    for (int pruning = IVM_FK_PRUNING_ROW; pruning <= IVM_FK_PRUNING_OFF; pruning++) {
        for (int rule = IVM_JOIN_MOBIUS; rule <= IVM_JOIN_TELESCOPING; rule++) {
            for (int run_empty = 0; run_empty <= 1; run_empty++) {
                set_planner((ivm_fk_pruning)pruning, (ivm_join_rule)rule, run_empty);
                push(product, IVM_INSERT, rows[at++]);
                json_decref(explained(star, NULL));
                push(sale, IVM_INSERT, "1,1,1");
                json_decref(explained(star, NULL));
                push(product, IVM_UPSERT, run_empty ? "1,axe" : "1,ax");
                json_decref(explained(star, NULL));
                push(sale, IVM_DELETE, "1,1,1");
                json_decref(explained(star, NULL));
            }
        }
    }
}

Test(plan_explain, before_the_first_push_every_mask_is_empty)
{
    push(sale, IVM_INSERT, "1,1,1");
    ivm_view *late = fixture_make(&shop, "late", star_plan());
    json_t *root = explained(late, NULL);
    explain_member(explain_join(root), "empty", "7");
    explain_member(explain_join(root), "run", "0");
    explain_member(explain_join(root), "facts", "[]");
    explain_member(explain_join(root), "terms", "[]");
    explain_member(root, "pushed", "false");
    json_decref(root);
    push(sale, IVM_INSERT, "1,1,1");
    root = explained(late, NULL);
    explain_member(root, "pushed", "true");
    json_decref(root);
}

Test(plan_explain, a_failed_push_is_not_the_last)
{
    push(sale, IVM_INSERT, "1,1,1 2,2,2");
    char *before = explain(star, NULL, IVM_EXPLAIN_JSON);
    cr_assert_eq(fixture_push(&shop, product, IVM_INSERT, "1,ax 1,saw"), IVM_DUPLICATE_KEY);
    char *after = explain(star, NULL, IVM_EXPLAIN_JSON);
    cr_assert_str_eq(after, before);
    ivm_text_free(before);
    ivm_text_free(after);
}

/* The sum of the amounts overflows: the join has decided, and the push fails after it. */
Test(plan_explain, facts_are_those_that_the_last_push_used)
{
    push(product, IVM_INSERT, "1,ax");
    push(day, IVM_INSERT, "1,1");
    push(sale, IVM_INSERT, "1,1,9223372036854775807");
    json_t *before = explained(star, NULL);
    declare(sale, "product", product);
    cr_assert_eq(fixture_push(&shop, sale, IVM_INSERT, "1,1,1"), IVM_OVERFLOW);
    json_t *after = explained(star, NULL);
    json_t *join = json_array_get(json_object_get(after, "joins"), 0);
    const json_t *unused = json_object_get(join, "unused");
    cr_assert_eq(json_array_size(unused), 1u, "the fact declared since");
    cr_assert_str_eq(explain_text_of(json_array_get(unused, 0), "reason"), "not_in_force");
    cr_assert_eq(json_array_clear(json_object_get(join, "unused")), 0);
    cr_assert(json_equal(after, before), "all else is as it was");
    json_decref(before);
    json_decref(after);
    push(sale, IVM_INSERT, "1,1,-1");
    cr_assert_eq(facts_count(star), 3u);
    set_planner(IVM_FK_PRUNING_OFF, IVM_JOIN_AUTO, false);
    cr_assert_eq(facts_count(star), 3u, "the last push is still the last");
    push(sale, IVM_INSERT, "1,1,-1");
    cr_assert_eq(facts_count(star), 0u, "none is used where pruning is off");
}

/* By batch a fact is not used in a step that brings what a child row waits for, and a step that is undone after it changes nothing of that. */
Test(plan_explain, a_fact_that_the_last_push_did_not_use_is_not_told_after_a_failed_one)
{
    ivm_table *late = fixture_table(&shop, "late", "id int64; name string", "id");
    fixture_fact(&shop, sale, "product", late, "id", IVM_TRACKED);
    ivm_plan *join = ivm_plan_join(scan_of("sale", "s"), scan_of("late", "l"), "s.product = l.id");
    ivm_view *view = fixture_make(&shop, "named", ivm_plan_add(ivm_plan_aggregate(join, "l.name"), "total", "sum", ivm_column("amount")));
    set_planner(IVM_FK_PRUNING_BATCH, IVM_JOIN_AUTO, false);
    push(sale, IVM_INSERT, "1,1,9223372036854775807");
    cr_assert_eq(facts_count(view), 1u);
    push(late, IVM_INSERT, "1,ax");
    cr_assert_eq(facts_count(view), 0u, "its sale was there before");
    char *before = explain(view, NULL, IVM_EXPLAIN_JSON);
    cr_assert_eq(fixture_push(&shop, sale, IVM_INSERT, "1,1,1"), IVM_OVERFLOW);
    char *after = explain(view, NULL, IVM_EXPLAIN_JSON);
    cr_assert_str_eq(after, before);
    ivm_text_free(before);
    ivm_text_free(after);
    push(sale, IVM_INSERT, "1,1,-1");
    cr_assert_eq(facts_count(view), 1u);
}

Test(plan_explain, joins_come_in_reading_order)
{
    ivm_plan *low = ivm_plan_join(scan_of("sale", "a"), scan_of("day", "b"), "a.day = b.id");
    ivm_plan *counted = ivm_plan_count(ivm_plan_aggregate(low, "a.product"), "n");
    ivm_plan *inputs[] = { counted, scan_of("product", "c"), ivm_plan_filter(scan_of("day", "e"), call_of(">", "week", 1)) };
    ivm_plan *join = ivm_plan_project(ivm_plan_join_many(inputs, 3, "product = c.id, c.id = e.week"), "n, c.name");
    ivm_view *view = fixture_make(&shop, "two", join);
    push(sale, IVM_INSERT, "1,1,1");
    json_t *root = explained(view, NULL);
    const json_t *joins = json_object_get(root, "joins");
    cr_assert_eq(json_array_size(joins), 2u);
    const json_t *outer = json_array_get(joins, 0), *inner = json_array_get(joins, 1);
    explain_member(outer, "inputs", "3");
    explain_member(inner, "inputs", "2");
    const json_t *leaf = json_array_get(json_object_get(outer, "leaves"), 0);
    explain_member(leaf, "name", "\"aggregate\"");
    cr_assert_null(json_object_get(leaf, "table"), "an aggregate repeats no table's rows");
    explain_member(json_array_get(json_object_get(outer, "leaves"), 2), "name", "\"e\"");
    explain_member(json_array_get(json_object_get(outer, "leaves"), 2), "table", "\"day\"");
    json_decref(root);
}

/* The name of the join's leaf; `join` is the view's first. */
static void leaf_is(ivm_view *view, size_t leaf, const char *name)
{
    json_t *root = explained(view, NULL);
    const json_t *leaves = json_object_get(json_array_get(json_object_get(root, "joins"), 0), "leaves");
    cr_assert_str_eq(explain_text_of(json_array_get(leaves, leaf), "name"), name);
    json_decref(root);
}

static ivm_plan *ids(const char *name)
{
    return ivm_plan_compute(ivm_plan_project(scan_of("product", "q"), NULL), name, ivm_column("q.id"));
}

Test(plan_explain, leaves_are_named_by_their_alias_or_by_what_they_are)
{
    ivm_view *low = fixture_make(&shop, "low", ids("k"));
    ivm_plan *both[] = { ids("u"), ids("w") };
    const struct {
        ivm_plan *plan;
        const char *on, *name;
    } leaves[] = {
        { ivm_plan_scan_view(low, "l"), "l.k = d.id", "l" },
        { ivm_plan_filter(scan_of("product", "p.x"), call_of(">", "id", 1)), "p.x.id = d.id", "p.x" },
        { ids("k"), "k = d.id", "project" },
        { ivm_plan_filter(ids("k"), call_of(">", "k", 1)), "k = d.id", "project" },
        { ivm_plan_distinct(scan_of("product", "p")), "p.id = d.id", "distinct" },
        { ivm_plan_filter(ivm_plan_set(IVM_UNION, both, 2), call_of(">", "u", 1)), "u = d.id", "union" },
        { ivm_plan_top_k(scan_of("product", "p"), 3, 0), "p.id = d.id", "top_k" },
        { ivm_plan_join_kind(IVM_LEFT_JOIN, scan_of("product", "p"), scan_of("sale", "s"), "p.id = s.product"), "p.id = d.id",
          "left join" },
        { ivm_plan_join_kind(IVM_ANTI_JOIN, scan_of("product", "p"), scan_of("sale", "s"), "p.id = s.product"), "p.id = d.id",
          "anti join" },
        { ivm_plan_filter(ivm_plan_join(scan_of("product", "p"), scan_of("sale", "s"), "p.id = s.product"), call_of(">", "p.id", 1)),
          "p.id = d.id", "join" },
    };
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        ivm_plan *join = ivm_plan_join(leaves[i].plan, scan_of("day", "d"), leaves[i].on);
        ivm_view *view = fixture_make(&shop, "v", ivm_plan_project(join, "week"));
        leaf_is(view, 0, leaves[i].name);
        leaf_is(view, 1, "d");
        cr_assert_eq(ivm_view_drop(view, &shop.error), IVM_OK);
    }
}

Test(plan_explain, a_leaf_with_a_computed_column_keeps_its_alias)
{
    fixture_table(&shop, "f", "x float64", NULL);
    ivm_plan *join = ivm_plan_join(scan_of("f", NULL), scan_of("product", "p"), "f.x = p.id");
    ivm_view *view = fixture_make(&shop, "v", ivm_plan_project(join, "p.name"));
    leaf_is(view, 0, "f");
    leaf_is(view, 1, "p");
    json_t *root = explained(view, NULL);
    explain_member(json_array_get(json_object_get(explain_join(root), "leaves"), 1), "table", "\"product\"");
    json_decref(root);
}

/* A foreign key prunes inside an inner join below an outer one, which is no join that is told of. */
Test(plan_explain, inner_joins_inside_outer_ones_are_told_and_pruned)
{
    ivm_plan *inner = ivm_plan_join(scan_of("sale", "s"), scan_of("product", "p"), "s.product = p.id");
    ivm_plan *outer = ivm_plan_join_kind(IVM_LEFT_JOIN, inner, scan_of("day", "d"), "s.day = d.id");
    ivm_view *view = fixture_make(&shop, "v", ivm_plan_project(outer, "p.name, week"));
    push(product, IVM_INSERT, "1,ax");
    json_t *root = explained(view, NULL);
    cr_assert_eq(json_array_size(json_object_get(root, "joins")), 1u);
    explain_member(explain_join(root), "inputs", "2");
    explain_member(explain_join(root), "skip_mask", "\"10\"");
    json_decref(root);
    push(day, IVM_INSERT, "1,1");
    push(sale, IVM_INSERT, "1,1,5");
    cr_assert_str_eq(fixture_view(&shop, view), "1*ax,1");
    ivm_view *left =
        fixture_make(&shop, "left",
                     ivm_plan_project(ivm_plan_join_kind(IVM_LEFT_JOIN, scan_of("sale", "s"), scan_of("product", "p"), "s.product = p.id"),
                                      "s.day, name"));
    root = explained(left, NULL);
    explain_member(root, "joins", "[]");
    json_decref(root);
    push(sale, IVM_INSERT, "2,1,5");
    push(product, IVM_INSERT, "2,saw");
    cr_assert_str_eq(fixture_view(&shop, left), "1*1,ax 1*1,saw");
}

Test(plan_explain, a_view_without_a_join_has_none)
{
    ivm_view *view = fixture_make(&shop, "all", scan_of("sale", NULL));
    push(sale, IVM_INSERT, "1,1,1");
    json_t *root = explained(view, NULL);
    explain_member(root, "joins", "[]");
    json_decref(root);
    char *text = explain(view, NULL, IVM_EXPLAIN_TEXT);
    cr_assert_str_eq(text, "view all, last push\n  no inner join: each operator makes its delta from that of its input or inputs\n");
    ivm_text_free(text);
    text = explain(view, NULL, IVM_EXPLAIN_DOT);
    cr_assert_str_eq(text, "digraph \"all\" {\n  node [shape=box];\n}\n");
    ivm_text_free(text);
}

/* ---- Trust and what children hold ---------------------------------------------------------------------------------------------------------------- */

static ivm_table *item, *order;

/* Items under orders that may come late: trusted so. */
static ivm_view *ordered(ivm_trust trust)
{
    item = fixture_table(&shop, "item", "order_id int64; n int64", NULL);
    order = fixture_table(&shop, "orders", "id int64; name string", "id");
    fixture_fact(&shop, item, "order_id", order, "id", trust);
    ivm_plan *join = ivm_plan_join(scan_of("item", "i"), scan_of("orders", "o"), "i.order_id = o.id");
    return fixture_make(&shop, "ordered", ivm_plan_project(join, "n, name"));
}

static void has(ivm_view *view, const ivm_explain_options *stated, const char *part)
{
    char *text = explain(view, stated, IVM_EXPLAIN_TEXT);
    cr_assert_not_null(strstr(text, part), "\"%s\" is not in %s", part, text);
    ivm_text_free(text);
}

static void holds(ivm_view *view, const char *awaited, const char *kept)
{
    json_t *root = explained(view, NULL);
    explain_member(leaf_at(explain_join(root), 1), "awaited", awaited);
    explain_member(leaf_at(explain_join(root), 1), "kept", kept);
    json_decref(root);
}

Test(plan_explain, rows_that_stay_for_their_children_are_told)
{
    ivm_view *view = ordered(IVM_TRACKED);
    push(order, IVM_INSERT, "6,f 7,g 8,h");
    push(item, IVM_INSERT, "1,10 7,70");
    has(view, NULL, "  fact    leaf 0 -> leaf 1, tracked: i.order_id = o.id\n");
    holds(view, "0", "0");
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(shop.engine, &batch, &shop.error), IVM_OK);
    for (int64_t id = 1; id <= 3; id++) {
        ivm_batch_insert(batch, order, ivm_int64(id), ivm_string("new"));
    }
    ivm_batch_delete(batch, order, ivm_int64(6), ivm_string("f"));
    ivm_batch_delete(batch, order, ivm_int64(7), ivm_string("g"));
    ivm_batch_upsert(batch, order, ivm_int64(8), ivm_string("hh"));
    cr_assert_eq(ivm_push_batch(shop.engine, batch, NULL, &shop.error), IVM_OK, "%s", shop.error.message);
    has(view, NULL,
        "  leaf 1  o (table orders): mixed, 3 fresh (1 awaited), 2 gone (1 still referred to), 2 changed, 4 delta rows\n  pruning row\n");
    holds(view, "1", "1");
    push(order, IVM_INSERT, "7,g");
    has(view, NULL, "  leaf 1  o (table orders): insert_only, 1 fresh (1 awaited), 0 gone, 0 changed, 1 delta row\n");
    holds(view, "1", "0");
    push(order, IVM_DELETE, "2,new 7,g");
    has(view, NULL, ": mixed, 0 fresh, 2 gone (1 still referred to), 0 changed, 1 delta row\n");
    push(item, IVM_DELETE, "7,70");
    push(order, IVM_INSERT, "7,g");
    holds(view, "0", "0");
    has(view, NULL, ": insert_only, 1 fresh, 0 gone, 0 changed, skipped\n");
}

Test(plan_explain, every_trust_is_told_while_the_step_is_also_when_the_fact_is_gone)
{
    static const char *const words[] = { "rely", "enforced", "tracked" };
    for (int trust = IVM_RELY; trust <= IVM_TRACKED; trust++) {
        char line[128], quoted[16];
        ivm_view *view = ordered((ivm_trust)trust);
        push(order, IVM_INSERT, "1,a");
        push(item, IVM_INSERT, "1,10");
        ivm_fact *last = NULL;
        for (ivm_fact *fact = NULL; (fact = ivm_fact_next(shop.engine, fact));) {
            last = fact;
        }
        cr_assert_eq(ivm_foreign_key_remove(last, &shop.error), IVM_OK, "%s", shop.error.message);
        snprintf(line, sizeof line, "  fact    leaf 0 -> leaf 1, %s: i.order_id = o.id\n", words[trust]);
        has(view, NULL, line);
        json_t *root = explained(view, NULL);
        snprintf(quoted, sizeof quoted, "\"%s\"", words[trust]);
        explain_member(json_array_get(json_object_get(explain_join(root), "facts"), 0), "trust", quoted);
        json_decref(root);
        cr_assert_eq(ivm_view_drop(view, &shop.error), IVM_OK);
        cr_assert_eq(ivm_table_drop(item, &shop.error), IVM_OK);
        cr_assert_eq(ivm_table_drop(order, &shop.error), IVM_OK);
    }
}

/* Two masks of the three that the Moebius form counts share a term. */
Test(plan_explain, the_terms_of_a_rule_are_counted)
{
    ivm_view *view = ordered(IVM_RELY);
    for (int rule = IVM_JOIN_MOBIUS; rule <= IVM_JOIN_TELESCOPING; rule++) {
        ivm_stats stats;
        set_planner(IVM_FK_PRUNING_OFF, (ivm_join_rule)rule, false);
        ivm_batch *batch = NULL;
        cr_assert_eq(ivm_batch_create(shop.engine, &batch, &shop.error), IVM_OK);
        ivm_batch_insert(batch, order, ivm_int64(rule), ivm_string("new"));
        ivm_batch_insert(batch, item, ivm_int64(rule), ivm_int64(1));
        cr_assert_eq(ivm_push_batch(shop.engine, batch, &stats, &shop.error), IVM_OK, "%s", shop.error.message);
        cr_assert_eq(stats.terms_run, rule == IVM_JOIN_MOBIUS ? 3u : 2u);
        cr_assert_eq(stats.terms_pruned, 0u);
        has(view, NULL, "  pruning off\n  unused  leaf 0 -> leaf 1, rely: item(order_id) -> orders(id): fk_pruning is off\n");
        has(view, NULL, ": fk_pruning is off\n  masks (Moebius count) 3 in all, 0 pruned, 0 empty, 3 left; skip mask 00\n");
        has(view, NULL, rule == IVM_JOIN_MOBIUS ? "  rule    mobius, 3 terms (" : "  rule    telescoping, 2 terms (");
        has(view, NULL, explain_legend);
    }
}

/* ---- Wide joins -------------------------------------------------------------------------------------------------------------------------------------- */

static ivm_view *wide(uint32_t leaves_count)
{
    ivm_plan *inputs[IVM_JOIN_LEAVES_MAX] = { scan_of("sale", "s") };
    char name[16], on[2048] = "";
    size_t size = 0;
    for (uint32_t i = 1; i < leaves_count; i++) {
        snprintf(name, sizeof name, "p%u", i);
        inputs[i] = scan_of("product", name);
        size += (size_t)snprintf(on + size, sizeof on - size, "%ss.product = p%u.id", i > 1 ? ", " : "", i);
    }
    snprintf(name, sizeof name, "w%u", leaves_count);
    ivm_plan *join = ivm_plan_join_many(inputs, leaves_count, on);
    return fixture_make(&shop, name, ivm_plan_count(ivm_plan_aggregate(join, NULL), "n"));
}

Test(plan_explain, sixty_four_leaves_are_counted_not_enumerated)
{
    ivm_view *view = wide(64);
    push(product, IVM_INSERT, "1,ax");
    push(sale, IVM_INSERT, "1,1,1");
    json_t *root = explained(view, NULL);
    explain_member(explain_join(root), "all", "\"18446744073709551615\"");
    explain_member(explain_join(root), "pruned", "0");
    explain_member(explain_join(root), "empty", "\"18446744073709551614\"");
    explain_member(explain_join(root), "run", "1");
    json_decref(root);
    set_planner(IVM_FK_PRUNING_BATCH, IVM_JOIN_AUTO, false);
    push(sale, IVM_INSERT, "1,1,1");
    root = explained(view, NULL);
    explain_member(explain_join(root), "pruned", "\"18446744073709551614\"");
    explain_member(explain_join(root), "run", "1");
    json_decref(root);
    ivm_explain_options stated = { .facts_stated = true };
    root = explained(view, &stated);
    explain_member(explain_join(root), "run", "\"18446744073709551615\"");
    explain_member(explain_join(root), "pruned", "0");
    json_decref(root);
    char *text = explain(view, &stated, IVM_EXPLAIN_TEXT);
    cr_assert_not_null(strstr(text, "18446744073709551615 in all, 0 pruned, 0 empty, 18446744073709551615 left"));
    cr_assert_not_null(strstr(text, "    and 18446744073709551551 more\n"));
    ivm_text_free(text);
    text = explain(view, &stated, IVM_EXPLAIN_DOT);
    cr_assert_not_null(strstr(text, "  j0_l63 [label=\"p63\""));
    ivm_text_free(text);
}

Test(plan_explain, six_leaves_list_every_mask_and_seven_do_not)
{
    for (uint32_t leaves_count = 5; leaves_count <= 8; leaves_count++) {
        json_t *root = explained(wide(leaves_count), &(ivm_explain_options){ .facts_stated = true });
        cr_assert_eq(json_object_get(explain_join(root), "all_masks") != NULL, leaves_count <= 6);
        json_decref(root);
    }
}
