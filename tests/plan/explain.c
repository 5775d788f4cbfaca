/* Explain: what it tells of the last push and from stated shapes and facts, as JSON, text and DOT, and what it refuses. */
#include "explain_case.h"

#include <criterion/criterion.h>
#include <stdio.h>

static fixture it;
static ivm_table *sale, *product, *day;
static ivm_view *star;

/* sale with product and day, which its facts lead to. */
static ivm_plan *star_plan(void)
{
    ivm_plan *inputs[] = { scan_of("sale", "s"), scan_of("product", "p"), scan_of("day", "d") };
    ivm_plan *join = ivm_plan_join_many(inputs, 3, "s.product = p.id, s.day = d.id");
    return ivm_plan_add(ivm_plan_aggregate(join, "p.name"), "total", "sum", ivm_column("amount"));
}

static ivm_fact *declare(ivm_table *child, const char *columns, ivm_table *parent)
{
    ivm_fact *fact = NULL;
    cr_assert_eq(ivm_foreign_key_declare(child, columns, parent, "id", IVM_RELY, &fact, &it.error), IVM_OK, "%s", it.error.message);
    return fact;
}

static void open_tables(void)
{
    fixture_open(&it);
    sale = fixture_table(&it, "sale", "product int64; day int64; amount int64", NULL);
    product = fixture_table(&it, "product", "id int64; name string", "id");
    day = fixture_table(&it, "day", "id int64; week int64", "id");
    declare(sale, "product", product);
    declare(sale, "day", day);
    star = fixture_make(&it, "star", star_plan());
}

static void close_tables(void)
{
    fixture_close(&it);
}

TestSuite(plan_explain, .init = open_tables, .fini = close_tables);

static char *explain(ivm_view *view, const ivm_explain_options *stated, ivm_explain_format format)
{
    return explain_told(&it, view, stated, format);
}

static json_t *explained(ivm_view *view, const ivm_explain_options *stated)
{
    return explain_checked(&it, view, stated);
}

static size_t facts_count(ivm_view *view)
{
    json_t *root = explained(view, NULL);
    size_t count = json_array_size(json_object_get(explain_join(root), "facts"));
    json_decref(root);
    return count;
}

static void push(ivm_table *table, ivm_change change, const char *rows)
{
    cr_assert_eq(fixture_push(&it, table, change, rows), IVM_OK, "%s", it.error.message);
}

static void set_planner(ivm_fk_pruning pruning, ivm_join_rule rule, bool skip_empty)
{
    cr_assert_eq(ivm_engine_planner_set(it.engine, &(ivm_planner_options){ pruning, rule, skip_empty }, &it.error), IVM_OK);
}

/* ---- The last push ---------------------------------------------------------------------------------------------------------------------------- */

Test(plan_explain, json_tells_the_last_push)
{
    push(product, IVM_INSERT, "1,ax 2,saw");
    push(sale, IVM_INSERT, "1,7,10 2,7,5 1,8,1");
    json_t *root = explained(star, NULL);
    const json_t *join = explain_join(root);
    explain_member(join, "leaves",
                   "[{\"leaf\": 0, \"name\": \"s\", \"table\": \"sale\", \"columns\": [\"s.product\", \"s.day\", \"s.amount\"],"
                   "  \"delta\": \"insert_only\", \"delta_rows\": 3, \"skipped\": false},"
                   " {\"leaf\": 1, \"name\": \"p\", \"table\": \"product\", \"columns\": [\"p.id\", \"p.name\"],"
                   "  \"delta\": \"unchanged\", \"delta_rows\": 0, \"skipped\": true},"
                   " {\"leaf\": 2, \"name\": \"d\", \"table\": \"day\", \"columns\": [\"d.id\", \"d.week\"],"
                   "  \"delta\": \"unchanged\", \"delta_rows\": 0, \"skipped\": true}]");
    explain_member(join, "facts",
                   "[{\"child\": 0, \"parent\": 1, \"on\": [[\"s.product\", \"p.id\"]]},"
                   " {\"child\": 0, \"parent\": 2, \"on\": [[\"s.day\", \"d.id\"]]}]");
    explain_member(join, "skip_mask", "\"110\"");
    explain_member(join, "masks", "[\"001\"]");
    explain_member(join, "pruned", "6");
    explain_member(join, "empty", "0");
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
    explain_member(json_array_get(json_object_get(join, "leaves"), 1), "delta", "\"mixed\"");
    explain_member(json_array_get(json_object_get(join, "leaves"), 1), "delta_rows", "2");
    json_decref(root);
}

Test(plan_explain, every_rule_and_shape_agrees_with_itself)
{
    static const char *const rows[] = { "1,ax", "2,saw", "3,nail", "4,bolt", "5,nut", "6,pin", "7,cap", "8,rod" };
    uint32_t at = 0;
    for (int pruning = IVM_FK_PRUNING_OFF; pruning <= IVM_FK_PRUNING_BATCH; pruning++) {
        for (int rule = IVM_JOIN_MOBIUS; rule <= IVM_JOIN_TELESCOPING; rule++) {
            for (int skip_empty = 0; skip_empty <= 1; skip_empty++) {
                set_planner((ivm_fk_pruning)pruning, (ivm_join_rule)rule, skip_empty);
                push(product, IVM_INSERT, rows[at++]);
                json_decref(explained(star, NULL));
                push(sale, IVM_INSERT, "1,1,1");
                json_decref(explained(star, NULL));
                push(product, IVM_UPSERT, skip_empty ? "1,axe" : "1,ax");
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
    ivm_view *late = fixture_make(&it, "late", star_plan());
    json_t *root = explained(late, NULL);
    explain_member(explain_join(root), "empty", "7");
    explain_member(explain_join(root), "run", "0");
    explain_member(explain_join(root), "facts", "[]");
    explain_member(explain_join(root), "terms", "[]");
    json_decref(root);
}

Test(plan_explain, a_failed_push_is_not_the_last)
{
    push(sale, IVM_INSERT, "1,1,1 2,2,2");
    char *before = explain(star, NULL, IVM_EXPLAIN_JSON);
    cr_assert_eq(fixture_push(&it, product, IVM_INSERT, "1,ax 1,saw"), IVM_DUPLICATE_KEY);
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
    char *before = explain(star, NULL, IVM_EXPLAIN_JSON);
    declare(sale, "product", product);
    cr_assert_eq(fixture_push(&it, sale, IVM_INSERT, "1,1,1"), IVM_OVERFLOW);
    char *after = explain(star, NULL, IVM_EXPLAIN_JSON);
    cr_assert_str_eq(after, before);
    ivm_text_free(before);
    ivm_text_free(after);
    push(sale, IVM_INSERT, "1,1,-1");
    cr_assert_eq(facts_count(star), 3u);
    set_planner(IVM_FK_PRUNING_OFF, IVM_JOIN_AUTO, true);
    cr_assert_eq(facts_count(star), 3u, "the last push is still the last");
    push(sale, IVM_INSERT, "1,1,-1");
    cr_assert_eq(facts_count(star), 0u, "none is used where pruning is off");
}

Test(plan_explain, joins_come_in_reading_order)
{
    ivm_plan *low = ivm_plan_join(scan_of("sale", "a"), scan_of("day", "b"), "a.day = b.id");
    ivm_plan *counted = ivm_plan_count(ivm_plan_aggregate(low, "a.product"), "n");
    ivm_plan *inputs[] = { counted, scan_of("product", "c"), ivm_plan_filter(scan_of("day", "e"), call_of(">", "week", 1)) };
    ivm_plan *join = ivm_plan_project(ivm_plan_join_many(inputs, 3, "product = c.id, c.id = e.week"), "n, c.name");
    ivm_view *view = fixture_make(&it, "two", join);
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
    ivm_view *low = fixture_make(&it, "low", ids("k"));
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
        ivm_view *view = fixture_make(&it, "v", ivm_plan_project(join, "week"));
        leaf_is(view, 0, leaves[i].name);
        leaf_is(view, 1, "d");
        cr_assert_eq(ivm_view_drop(view, &it.error), IVM_OK);
    }
}

Test(plan_explain, a_leaf_with_a_computed_column_keeps_its_alias)
{
    fixture_table(&it, "f", "x float64", NULL);
    ivm_plan *join = ivm_plan_join(scan_of("f", NULL), scan_of("product", "p"), "f.x = p.id");
    ivm_view *view = fixture_make(&it, "v", ivm_plan_project(join, "p.name"));
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
    ivm_view *view = fixture_make(&it, "v", ivm_plan_project(outer, "p.name, week"));
    push(product, IVM_INSERT, "1,ax");
    json_t *root = explained(view, NULL);
    cr_assert_eq(json_array_size(json_object_get(root, "joins")), 1u);
    explain_member(explain_join(root), "inputs", "2");
    explain_member(explain_join(root), "skip_mask", "\"10\"");
    json_decref(root);
    push(day, IVM_INSERT, "1,1");
    push(sale, IVM_INSERT, "1,1,5");
    cr_assert_str_eq(fixture_view(&it, view), "1*ax,1");
    ivm_view *left =
        fixture_make(&it, "left",
                     ivm_plan_project(ivm_plan_join_kind(IVM_LEFT_JOIN, scan_of("sale", "s"), scan_of("product", "p"), "s.product = p.id"),
                                      "s.day, name"));
    root = explained(left, NULL);
    explain_member(root, "joins", "[]");
    json_decref(root);
    push(sale, IVM_INSERT, "2,1,5");
    push(product, IVM_INSERT, "2,saw");
    cr_assert_str_eq(fixture_view(&it, left), "1*1,ax 1*1,saw");
}

Test(plan_explain, a_view_without_a_join_has_none)
{
    ivm_view *view = fixture_make(&it, "all", scan_of("sale", NULL));
    push(sale, IVM_INSERT, "1,1,1");
    json_t *root = explained(view, NULL);
    explain_member(root, "joins", "[]");
    json_decref(root);
    char *text = explain(view, NULL, IVM_EXPLAIN_TEXT);
    cr_assert_str_eq(text, "view all, last push\n  no join: each operator maps its input's delta to its own\n");
    ivm_text_free(text);
    text = explain(view, NULL, IVM_EXPLAIN_DOT);
    cr_assert_str_eq(text, "digraph \"all\" {\n  node [shape=box];\n}\n");
    ivm_text_free(text);
}

/* ---- Stated ------------------------------------------------------------------------------------------------------------------------------------- */

static ivm_explain_options stated_shapes(const ivm_stated_shape *shapes, size_t shapes_count)
{
    return (ivm_explain_options){ .version = 1, .shapes = shapes, .shapes_count = shapes_count };
}

Test(plan_explain, stated_shapes_decide_without_data)
{
    static const char *const names[] = { "unchanged", "insert_only", "mixed" };
    for (uint32_t number = 0; number < 27; number++) {
        ivm_shape of[3] = { (ivm_shape)(number % 3), (ivm_shape)(number / 3 % 3), (ivm_shape)(number / 9) };
        ivm_stated_shape shapes[] = { { "sale", of[0] }, { "product", of[1] }, { "day", of[2] } };
        ivm_explain_options stated = stated_shapes(shapes, 3);
        json_t *root = explained(star, &stated);
        const json_t *join = explain_join(root);
        for (size_t i = 0; i < 3; i++) {
            const json_t *leaf = json_array_get(json_object_get(join, "leaves"), i);
            cr_assert_str_eq(explain_text_of(leaf, "delta"), names[of[i]]);
            cr_assert_eq(json_is_true(json_object_get(leaf, "skipped")), i > 0 && of[i] != IVM_MIXED);
        }
        json_decref(root);
    }
}

Test(plan_explain, a_table_that_is_not_named_may_have_changed_in_any_way)
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

Test(plan_explain, a_derived_leaf_is_as_its_tables_are)
{
    ivm_plan *counted = ivm_plan_count(ivm_plan_aggregate(scan_of("sale", NULL), "product"), "n");
    ivm_view *view = fixture_make(&it, "derived", ivm_plan_join(counted, scan_of("product", "p"), "product = p.id"));
    ivm_stated_shape shape = { "sale", IVM_UNCHANGED };
    ivm_explain_options stated = stated_shapes(&shape, 1);
    json_t *root = explained(view, &stated);
    explain_member(json_array_get(json_object_get(explain_join(root), "leaves"), 0), "delta", "\"unchanged\"");
    explain_member(explain_join(root), "run", "1");
    json_decref(root);
}

Test(plan_explain, stated_shapes_reach_through_views)
{
    ivm_view *low = fixture_make(&it, "low", ivm_plan_filter(scan_of("product", NULL), call_of(">", "id", 0)));
    ivm_plan *twice[] = { ivm_plan_scan_view(low, NULL), scan_of("low", NULL) };
    ivm_view *middle = fixture_make(&it, "middle", ivm_plan_set(IVM_UNION, twice, 2));
    ivm_plan *join = ivm_plan_join(scan_of("sale", "s"), ivm_plan_scan_view(middle, "m"), "s.product = m.id");
    ivm_view *view = fixture_make(&it, "v", ivm_plan_project(join, "m.name"));
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

Test(plan_explain, stated_facts_stand_for_the_declared_ones)
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
    explain_member(explain_join(root), "facts", "[{\"child\": 0, \"parent\": 1, \"on\": [[\"s.product\", \"p.id\"]]}]");
    json_decref(root);
    stated.facts_count = 0;
    root = explained(star, &stated);
    explain_member(explain_join(root), "skip_mask", "\"000\"");
    json_decref(root);
    cr_assert_null(it.engine->facts->next->next, "stated facts are not declared");
}

Test(plan_explain, stating_leaves_the_last_push_and_the_next)
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
    explain_member(explain_join(root), "skip_mask", "\"110\"");
    json_decref(root);
}

static void refuses(ivm_view *view, const ivm_explain_options *stated, ivm_explain_format format, ivm_status want, const char *part)
{
    char *text = (char *)"as it was";
    int64_t blocks = it.allocator.blocks;
    ivm_error error = { IVM_OK, "none" };
    ivm_status status = ivm_explain(view, stated, format, &text, &error);
    cr_assert_eq(status, want, "%s, not %s", ivm_status_name(status), ivm_status_name(want));
    cr_assert_eq(error.status, want);
    cr_assert_not_null(strstr(error.message, part), "\"%s\" is not in \"%s\"", part, error.message);
    cr_assert_str_eq(text, "as it was");
    cr_assert_eq(it.allocator.blocks, blocks);
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

Test(plan_explain, what_is_stated_wrongly_is_refused)
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

Test(plan_explain, arguments_are_checked)
{
    refuses(NULL, NULL, IVM_EXPLAIN_TEXT, IVM_INVALID_ARGUMENT, "view");
    refuses(star, NULL, (ivm_explain_format)3, IVM_INVALID_ARGUMENT, "format");
    refuses(star, &(ivm_explain_options){ .version = 2 }, IVM_EXPLAIN_TEXT, IVM_INVALID_ARGUMENT, "version");
    refuses(star, &(ivm_explain_options){ .shapes_count = 1 }, IVM_EXPLAIN_TEXT, IVM_INVALID_ARGUMENT, "shapes");
    refuses(star, &(ivm_explain_options){ .facts_stated = true, .facts_count = 1 }, IVM_EXPLAIN_TEXT, IVM_INVALID_ARGUMENT, "facts");
    cr_assert_eq(ivm_explain(star, NULL, IVM_EXPLAIN_TEXT, NULL, NULL), IVM_INVALID_ARGUMENT);
    ivm_text_free(NULL);
}

Test(plan_explain, out_of_memory_anywhere_leaves_nothing)
{
    ivm_stated_fact facts[] = { { "sale", "day", "day", "id", IVM_RELY }, { "sale", "product", "product", "id", IVM_RELY } };
    ivm_explain_options stated = { .facts_stated = true, .facts = facts, .facts_count = 2 };
    uint64_t n = 1;
    for (bool done = false; !done; n++) {
        char *text = NULL;
        int64_t blocks = it.allocator.blocks;
        test_allocator_arm(&it.allocator, n);
        ivm_status status = ivm_explain(star, &stated, IVM_EXPLAIN_JSON, &text, &it.error);
        done = !test_allocator_disarm(&it.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(text != NULL, done);
        cr_assert_eq(it.allocator.blocks, blocks);
        ivm_text_free(text);
    }
    cr_assert_gt(n, 8u);
}

/* ---- Text and DOT -------------------------------------------------------------------------------------------------------------------------------- */

Test(plan_explain, text_is_for_reading)
{
    push(product, IVM_INSERT, "1,ax");
    push(sale, IVM_INSERT, "1,7,10 2,7,5");
    push(product, IVM_UPSERT, "1,axe");
    char *text = explain(star, NULL, IVM_EXPLAIN_TEXT), *indexes = strstr(text, "  index ");
    cr_assert_not_null(indexes);
    *indexes = 0; /* explain_indexes.c has those */
    cr_assert_str_eq(text, "view star, last push\n"
                           "join 0 of 3 leaves\n"
                           "  leaf 0  s (table sale): unchanged\n"
                           "  leaf 1  p (table product): mixed, 2 delta rows\n"
                           "  leaf 2  d (table day): unchanged, skipped\n"
                           "  fact    leaf 0 -> leaf 1: s.product = p.id\n"
                           "  fact    leaf 0 -> leaf 2: s.day = d.id\n"
                           "  masks   7 in all, 4 pruned, 2 empty, 1 run; skip mask 100\n"
                           "    001 empty\n"
                           "    010 run\n"
                           "    011 empty\n"
                           "    100 pruned\n"
                           "    101 pruned\n"
                           "    110 pruned\n"
                           "    111 pruned\n"
                           "  rule    mobius (estimated probes: mobius 6, telescoping 6)\n"
                           "  term    + delta(p) x cur(s: p.id = s.product) x cur(d: s.day = d.id)\n");
    ivm_text_free(text);
}

Test(plan_explain, dot_is_a_graph)
{
    push(product, IVM_INSERT, "1,ax");
    push(sale, IVM_INSERT, "1,7,10 2,7,5");
    char *text = explain(star, NULL, IVM_EXPLAIN_DOT);
    cr_assert_str_eq(text, "digraph \"star\" {\n"
                           "  node [shape=box];\n"
                           "  j0_l0 [label=\"s\", xlabel=\"insert_only\", style=bold];\n"
                           "  j0_l1 [label=\"p\", xlabel=\"unchanged\", style=dashed];\n"
                           "  j0_l2 [label=\"d\", xlabel=\"unchanged\", style=dashed];\n"
                           "  j0_l0 -> j0_l1;\n"
                           "  j0_l0 -> j0_l2;\n"
                           "  j0_terms [shape=note, label=\"7 masks, 6 pruned, 0 empty, 1 run\\l+ 001\\l\"];\n"
                           "}\n");
    ivm_text_free(text);
}

Test(plan_explain, names_are_escaped)
{
    ivm_column_definition columns[] = { { "a\"\\\x01\n", IVM_INT64, false }, { "\xc3\xa9", IVM_INT64, false } };
    ivm_table_options options = { .columns = columns, .columns_count = 2 };
    ivm_table *table;
    cr_assert_eq(ivm_table_create(it.engine, "t\"\t\\", &options, &table, &it.error), IVM_OK);
    ivm_plan *join = ivm_plan_join(ivm_plan_scan(table, "x\""), ivm_plan_scan(table, "y\\"), NULL);
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(join, NULL), "n");
    ivm_view *view = fixture_make(&it, "v\"\\\x7f\n", plan);
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
    return fixture_make(&it, name, ivm_plan_count(ivm_plan_aggregate(join, NULL), "n"));
}

Test(plan_explain, sixty_four_leaves_are_counted_not_enumerated)
{
    ivm_view *view = wide(64);
    push(product, IVM_INSERT, "1,ax");
    push(sale, IVM_INSERT, "1,1,1");
    json_t *root = explained(view, NULL);
    explain_member(explain_join(root), "all", "\"18446744073709551615\"");
    explain_member(explain_join(root), "pruned", "\"18446744073709551614\"");
    explain_member(explain_join(root), "run", "1");
    json_decref(root);
    ivm_explain_options stated = { .facts_stated = true };
    root = explained(view, &stated);
    explain_member(explain_join(root), "run", "\"18446744073709551615\"");
    explain_member(explain_join(root), "pruned", "0");
    json_decref(root);
    char *text = explain(view, &stated, IVM_EXPLAIN_TEXT);
    cr_assert_not_null(strstr(text, "18446744073709551615 in all, 0 pruned, 0 empty, 18446744073709551615 run"));
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
