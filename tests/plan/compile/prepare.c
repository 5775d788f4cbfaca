/* Preparing: after it no push builds an index whichever leaf drives, nothing is built that no term can need, and a failure leaves what was. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "random.h"

static fixture tested;
static ivm_table *sale, *product, *day;

static void open_tables(void)
{
    static const ivm_column_definition columns[] = { { "id", IVM_INT64, true }, { "week", IVM_INT64, false } };
    ivm_table_options grows = { .columns = columns, .columns_count = 2, .key = "id", .append_only = true };
    fixture_open(&tested);
    sale = fixture_table(&tested, "sale", "note string; product int64; day int64; amount int64", NULL);
    product = fixture_table(&tested, "product", "id int64; name string; kind int64", "id");
    cr_assert_eq(ivm_table_create(tested.engine, "day", &grows, &day, &tested.error), IVM_OK, "%s", tested.error.message);
}

static void close_tables(void)
{
    fixture_close(&tested);
}

TestSuite(plan_prepare, .init = open_tables, .fini = close_tables);

static void push(ivm_table *table, ivm_change change, const char *rows)
{
    cr_assert_eq(fixture_push(&tested, table, change, rows), IVM_OK, "%s", tested.error.message);
}

/* Fewer sales than anything else, so that a view is filled from them and no index of theirs is built for that. */
static void fill(void)
{
    push(product, IVM_INSERT, "1,ax,7 2,saw,7 3,nail,8 11,pin,8 12,nut,9");
    push(day, IVM_INSERT, "1,10 2,10 3,11 11,13");
    push(sale, IVM_INSERT, "y,1,2,6 x,2,3,7 z,3,3,8");
}

static void set_planner(ivm_fk_pruning pruning, ivm_join_rule rule)
{
    cr_assert_eq(ivm_engine_planner_set(tested.engine, &(ivm_planner_options){ pruning, rule, false }, &tested.error), IVM_OK);
}

static ivm_fact *declare(const char *column, ivm_table *parent)
{
    return fixture_fact(&tested, sale, column, parent, "id", IVM_RELY);
}

static ivm_view *make(const char *name, ivm_plan *plan, ivm_refresh refresh, ivm_indexes indexes)
{
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = refresh, .indexes = indexes };
    return fixture_make_with(&tested, name, plan, &options);
}

static void prepare(ivm_view *view)
{
    cr_assert_eq(ivm_view_prepare(view, &tested.error), IVM_OK, "%s", tested.error.message);
}

/* ---- Plans ----------------------------------------------------------------------------------------------------------------------------- */

static ivm_plan *over_leaves(ivm_plan *sales, ivm_plan *products, ivm_plan *days)
{
    ivm_plan *inputs[] = { sales, products, days };
    ivm_plan *join = ivm_plan_join_many(inputs, 3, "s.product = p.id, s.day = d.id");
    return ivm_plan_add(ivm_plan_aggregate(join, "p.name, d.week"), "total", "sum", ivm_column("s.amount"));
}

static ivm_plan *star(void)
{
    return over_leaves(scan_of("sale", "s"), scan_of("product", "p"), scan_of("day", "d"));
}

/* Leaves that keep rows of their own, once a term reads them and from the start. */
static ivm_plan *with_chains(void)
{
    ivm_plan *products = ivm_plan_filter(scan_of("product", "p"), call_of(">", "p.kind", 0));
    ivm_plan *sales = ivm_plan_filter(scan_of("sale", "s"), call_of(">", "s.amount", 0));
    return over_leaves(sales, products, ivm_plan_distinct(scan_of("day", "d")));
}

/* A view as a leaf, and a column that has no part in a key. */
static ivm_plan *with_view(void)
{
    ivm_plan *join = ivm_plan_join(scan_of("totals", "t"), scan_of("product", "p"), "t.name = p.name, t.total = p.kind");
    return ivm_plan_project(join, "t.week, p.id");
}

static ivm_plan *crossed(void)
{
    ivm_plan *inputs[] = { scan_of("sale", "s"), scan_of("product", "p"), ivm_plan_filter(scan_of("day", "d"), call_of(">", "d.week", 0)) };
    return ivm_plan_project(ivm_plan_join_many(inputs, 3, "s.product = p.id"), "s.amount, p.name, d.week");
}

/* ---- Counting -------------------------------------------------------------------------------------------------------------------------- */

static size_t store_indexes(const ivm__store *store)
{
    size_t count = 0;
    for (const ivm__index *index = store->indexes; index; index = index->next_of_store) {
        const char *wrong = ivm__index_validate(index);
        cr_assert_null(wrong, "%s", wrong);
        count++;
    }
    return count;
}

static size_t indexes_count(void)
{
    size_t count = 0;
    for (const ivm_table *table = tested.engine->tables; table; table = table->next) {
        count += store_indexes(&table->store);
    }
    for (const ivm_view *view = tested.engine->views; view; view = view->next) {
        count += store_indexes(view->program.result);
    }
    return count;
}

/* The pairs of driver and probed leaf of the view's joins whose index is, or is not, built. */
static size_t probes_count(const ivm_view *view, bool built)
{
    size_t count = 0;
    for (uint32_t j = 0; j < view->planned->joins_count; j++) {
        uint32_t leaves = view->planned->graphs[j]->leaves_count;
        for (uint32_t at = 0; at < leaves * leaves; at++) {
            ivm__join_index found;
            bool reads = ivm__join_index_of(view->planned->joins[j], at / leaves, at % leaves, &found);
            cr_assert(!reads || at / leaves != at % leaves);
            count += reads && (found.index != NULL) == built;
        }
    }
    return count;
}

/* ---- Prepared ---------------------------------------------------------------------------------------------------------------------------- */

/* Every leaf changes, alone and with the others. */
static void push_all(void)
{
    push(product, IVM_UPSERT, "1,axe,7 4,bolt,8");
    push(sale, IVM_INSERT, "w,4,1,9 x,1,1,5 v,12,11,3");
    push(day, IVM_INSERT, "4,12");
    push(sale, IVM_DELETE, "y,1,2,6");
    push(product, IVM_DELETE_KEY, "4");
    push(product, IVM_UPSERT, "4,bolt,9");
}

static void assert_as_anew(ivm_view *view, ivm_plan *plan)
{
    ivm_view *anew = fixture_make(&tested, "anew", plan);
    char *want = strdup(fixture_view(&tested, anew));
    cr_assert_str_eq(fixture_view(&tested, view), want);
    free(want);
    cr_assert_eq(ivm_view_drop(anew, &tested.error), IVM_OK);
}

Test(plan_prepare, no_push_builds_an_index_after_it)
{
    ivm_plan *(*const plans[])(void) = { star, with_chains, with_view, crossed };
    fill();
    ivm_view *made[4];
    made[0] = make("totals", star(), IVM_IMMEDIATE, IVM_INDEXES_LAZY);
    for (int i = 1; i < 4; i++) {
        const char name[] = { 'v', (char)('0' + i), 0 };
        made[i] = make(name, plans[i](), IVM_IMMEDIATE, IVM_INDEXES_LAZY);
    }
    for (int i = 0; i < 4; i++) {
        cr_assert(i > 0 || probes_count(made[i], false) > 0, "nothing is wanting");
        prepare(made[i]);
        cr_assert_eq(probes_count(made[i], false), 0u, "plan %d", i);
    }
    size_t prepared = indexes_count();
    prepare(made[0]);
    cr_assert_eq(indexes_count(), prepared);
    for (int rule = IVM_JOIN_MOBIUS; rule <= IVM_JOIN_TELESCOPING; rule++) {
        set_planner(IVM_FK_PRUNING_OFF, (ivm_join_rule)rule);
        push(sale, IVM_INSERT, "a,3,1,1");
        push(day, IVM_INSERT, rule == IVM_JOIN_MOBIUS ? "6,12" : "5,12");
        push(product, IVM_UPSERT, rule == IVM_JOIN_MOBIUS ? "3,nail,9" : "3,nails,8");
        cr_assert_eq(indexes_count(), prepared, "rule %d", rule);
    }
    push_all();
    for (int i = 0; i < 4; i++) {
        assert_as_anew(made[i], plans[i]());
    }
}

Test(plan_prepare, lazily_a_push_builds_what_it_reads)
{
    fill();
    make("totals", star(), IVM_IMMEDIATE, IVM_INDEXES_LAZY);
    size_t before = indexes_count();
    push(product, IVM_UPSERT, "1,axe,7");
    cr_assert_gt(indexes_count(), before, "else the other tests prove nothing");
}

Test(plan_prepare, views_share_what_is_built)
{
    fill();
    ivm_view *first = make("first", star(), IVM_IMMEDIATE, IVM_INDEXES_LAZY),
             *second = make("second", star(), IVM_DEFERRED, IVM_INDEXES_LAZY);
    prepare(first);
    size_t prepared = indexes_count();
    prepare(second);
    make("third", star(), IVM_IMMEDIATE, IVM_INDEXES_EAGER);
    cr_assert_eq(indexes_count(), prepared);
    cr_assert_eq(ivm_view_drop(first, &tested.error), IVM_OK);
    cr_assert_eq(indexes_count(), prepared, "others read the tables");
}

Test(plan_prepare, nothing_for_leaves_that_never_drive)
{
    fill();
    ivm_view *view = make("totals", star(), IVM_IMMEDIATE, IVM_INDEXES_LAZY);
    ivm_fact *to_day = declare("day", day);
    uint32_t by_product[] = { 1 }, by_day[] = { 2 };
    set_planner(IVM_FK_PRUNING_BATCH, IVM_JOIN_AUTO);
    prepare(view);
    cr_assert_not_null(ivm__store_index_find(&sale->store, by_product, 1), "product may lose rows");
    cr_assert_null(ivm__store_index_find(&sale->store, by_day, 1), "day only grows, and its new rows find no old sale");
    to_day->trust = IVM_TRACKED;
    prepare(view);
    to_day->trust = IVM_RELY;
    cr_assert_not_null(ivm__store_index_find(&sale->store, by_day, 1), "an orphan may wait for a day");
}

Test(plan_prepare, pruning_that_is_off_leaves_nothing_out)
{
    fill();
    declare("day", day);
    set_planner(IVM_FK_PRUNING_OFF, IVM_JOIN_AUTO);
    prepare(make("totals", star(), IVM_IMMEDIATE, IVM_INDEXES_LAZY));
    cr_assert_not_null(ivm__store_index_find(&sale->store, (uint32_t[]){ 2 }, 1));
}

Test(plan_prepare, a_fact_younger_than_the_last_refresh_leaves_nothing_out)
{
    fill();
    set_planner(IVM_FK_PRUNING_BATCH, IVM_JOIN_AUTO);
    ivm_view *late = make("late", star(), IVM_DEFERRED, IVM_INDEXES_LAZY);
    uint32_t by_day[] = { 2 };
    push(sale, IVM_INSERT, "x,1,1,5");
    declare("day", day);
    ivm_view *now = make("now", star(), IVM_IMMEDIATE, IVM_INDEXES_LAZY);
    prepare(now);
    cr_assert_null(ivm__store_index_find(&sale->store, by_day, 1));
    prepare(late);
    cr_assert_not_null(ivm__store_index_find(&sale->store, by_day, 1));
}

/* The rows that are loaded are those of the last refresh. */
Test(plan_prepare, a_deferred_view_with_pending_changes)
{
    fill();
    ivm_view *late = make("late", with_chains(), IVM_DEFERRED, IVM_INDEXES_LAZY);
    push_all();
    char *held = strdup(fixture_view(&tested, late));
    prepare(late);
    cr_assert_eq(probes_count(late, false), 0u);
    cr_assert_str_eq(fixture_view(&tested, late), held);
    free(held);
    cr_assert_eq(ivm_refresh_view(late, NULL, &tested.error), IVM_OK);
    assert_as_anew(late, with_chains());
    push(product, IVM_UPSERT, "1,ax,0 2,saws,7");
    cr_assert_eq(ivm_refresh_view(late, NULL, &tested.error), IVM_OK);
    assert_as_anew(late, with_chains());
}

Test(plan_prepare, columns_that_moved)
{
    fill();
    ivm_view *view = make("totals", star(), IVM_IMMEDIATE, IVM_INDEXES_LAZY);
    cr_assert_eq(ivm_table_column_drop(sale, "note", &tested.error), IVM_OK, "%s", tested.error.message);
    cr_assert_gt(probes_count(view, false), 0u);
    prepare(view);
    cr_assert_eq(probes_count(view, false), 0u);
    cr_assert_not_null(ivm__store_index_find(&sale->store, (uint32_t[]){ 0 }, 1), "sale.product, which was the second");
    size_t prepared = indexes_count();
    push(product, IVM_UPSERT, "1,axe,7");
    cr_assert_eq(indexes_count(), prepared);
}

Test(plan_prepare, eagerly_it_is_done_when_the_view_is_made)
{
    ivm_view *view = make("totals", with_chains(), IVM_IMMEDIATE, IVM_INDEXES_EAGER);
    cr_assert_eq(probes_count(view, false), 0u);
    fill();
    push_all();
    assert_as_anew(view, with_chains());
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .indexes = (ivm_indexes)(IVM_INDEXES_EAGER + 1) };
    cr_assert_eq(ivm_view_create(tested.engine, "v", star(), &options, &view, &tested.error), IVM_INVALID_ARGUMENT);
}

static ivm_status from_inside;

static void call_back(void *context, ivm_view *view, ivm_snapshot *changes)
{
    (void)context;
    (void)changes;
    from_inside = ivm_view_prepare(view, NULL);
}

Test(plan_prepare, no_view_and_no_time)
{
    ivm_view *view = NULL;
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .changed = call_back };
    cr_assert_eq(ivm_view_prepare(NULL, &tested.error), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_view_create(tested.engine, "told", scan_of("sale", NULL), &options, &view, &tested.error), IVM_OK);
    prepare(view);
    push(sale, IVM_INSERT, "x,1,1,5");
    cr_assert_eq(from_inside, IVM_IN_USE);
}

/* ---- Drivers ------------------------------------------------------------------------------------------------------------------------------ */

#define LEAVES 5u
#define EDGES_MAX 8u
#define SINCE 10u

/* A join without columns: its leaves' tables and the edges of their facts. */
typedef struct drawn_join {
    ivm_table tables[LEAVES];
    ivm__graph_leaf leaves[LEAVES];
    ivm__graph graph;
    ivm_fact facts[EDGES_MAX];
    ivm__edge edge[EDGES_MAX];
    ivm__edges edges;
} drawn_join;

static void join_draw(drawn_join *join, uint64_t *random)
{
    memset(join, 0, sizeof *join);
    join->graph = (ivm__graph){ .leaves = join->leaves, .leaves_count = LEAVES };
    for (uint32_t i = 0; i < LEAVES; i++) {
        join->tables[i].append_only = random_below(random, 3) > 0;
        join->leaves[i].table = random_below(random, 6) ? &join->tables[i] : NULL;
    }
    join->edges = (ivm__edges){ .edge = join->edge, .count = (uint32_t)random_below(random, EDGES_MAX + 1) };
    for (uint32_t e = 0; e < join->edges.count; e++) {
        uint32_t child = (uint32_t)random_below(random, LEAVES), parent = (child + 1 + (uint32_t)random_below(random, LEAVES - 1)) % LEAVES;
        join->facts[e] =
            (ivm_fact){ .trust = random_below(random, 4) ? IVM_RELY : IVM_TRACKED, .since = random_below(random, 5) ? SINCE : SINCE + 1 };
        join->edge[e] = (ivm__edge){ .child = child, .parent = parent, .fact = &join->facts[e], .within = random_below(random, 6) == 0 };
    }
}

static bool lasts(const ivm__edge *edge)
{
    return edge->fact->trust != IVM_TRACKED && edge->fact->since <= SINCE;
}

/* Whether every row of the leaf, which only gained rows, is set aside by row: a lasting fact leads to it from an earlier round. */
static bool set_aside(const drawn_join *join, uint64_t skip, uint32_t leaf)
{
    uint64_t reached = ((1ull << LEAVES) - 1) & ~skip;
    for (uint64_t before = 0; before != reached && !(reached >> leaf & 1);) {
        before = reached;
        for (uint32_t e = 0; e < join->edges.count; e++) {
            const ivm__edge *edge = &join->edge[e];
            if (!edge->unused && edge->parent == leaf && (before >> edge->child & 1) && lasts(edge)) {
                return true;
            }
            reached |= !edge->unused && (before >> edge->child & 1) ? 1ull << edge->parent : 0;
        }
    }
    return false;
}

/* A step from this state or a later one: facts that may fail are used or not, tables that may lose rows do or not. */
static void assert_step(drawn_join *join, const ivm_planner_options *options, uint64_t drivers, uint64_t *random)
{
    uint64_t candidates = 0;
    for (uint32_t e = 0; e < join->edges.count; e++) {
        ivm__edge *edge = &join->edge[e];
        edge->unused = (edge->within && options->fk_pruning == IVM_FK_PRUNING_BATCH) || (!lasts(edge) && random_below(random, 2));
    }
    for (uint32_t e = 0; e < join->edges.count; e++) {
        const ivm__edge *edge = &join->edge[e];
        const ivm__graph_leaf *parent = &join->leaves[edge->parent];
        bool gains = parent->table && parent->table->append_only && (lasts(edge) || options->fk_pruning == IVM_FK_PRUNING_BATCH);
        candidates |= (uint64_t)(!edge->unused && (gains || random_below(random, 2))) << edge->parent;
    }
    uint64_t skip = ivm__skip_mask(LEAVES, join->edge, join->edges.count, candidates);
    for (uint32_t i = 0; i < LEAVES; i++) {
        cr_assert((drivers >> i & 1) || (skip >> i & 1), "leaf %u drives", i);
        cr_assert((drivers >> i & 1) || options->fk_pruning == IVM_FK_PRUNING_BATCH || set_aside(join, skip, i), "rows of leaf %u", i);
        cr_assert((drivers >> i & 1) || (join->leaves[i].table && join->tables[i].append_only));
    }
}

Test(plan_prepare, a_leaf_left_out_drives_in_no_step)
{
    static const ivm_planner_options settings[] = { { IVM_FK_PRUNING_BATCH, IVM_JOIN_AUTO, false },
                                                    { IVM_FK_PRUNING_ROW, IVM_JOIN_AUTO, false } };
    uint64_t random = 17, left_out = 0;
    for (int turn = 0; turn < 20000; turn++) {
        drawn_join join;
        join_draw(&join, &random);
        for (int s = 0; s < 2; s++) {
            uint64_t drivers = ivm__drivers(&join.graph, &settings[s], &join.edges, SINCE);
            left_out += LEAVES - (uint32_t)__builtin_popcountll(drivers);
            for (int step = 0; step < 6; step++) {
                assert_step(&join, &settings[s], drivers, &random);
            }
        }
    }
    cr_assert_gt(left_out, 10000u, "%lu", (unsigned long)left_out);
}

/* A snowflake all of whose parents only grow: the fact table alone drives. */
Test(plan_prepare, chains_of_facts_leave_out_all_parents)
{
    drawn_join join;
    ivm_planner_options options = { IVM_FK_PRUNING_ROW, IVM_JOIN_AUTO, false };
    memset(&join, 0, sizeof join);
    join.graph = (ivm__graph){ .leaves = join.leaves, .leaves_count = LEAVES };
    join.edges = (ivm__edges){ .edge = join.edge, .count = 4 };
    static const uint32_t pairs[][2] = { { 2, 0 }, { 2, 1 }, { 0, 3 }, { 3, 4 } };
    for (uint32_t i = 0; i < LEAVES; i++) {
        join.leaves[i].table = &join.tables[i];
        join.tables[i].append_only = true;
    }
    for (uint32_t e = 0; e < 4; e++) {
        join.edge[e] = (ivm__edge){ .child = pairs[e][0], .parent = pairs[e][1], .fact = &join.facts[e] };
    }
    cr_assert_eq(ivm__drivers(&join.graph, &options, &join.edges, 0), 1u << 2);
    join.tables[3].append_only = false;
    cr_assert_eq(ivm__drivers(&join.graph, &options, &join.edges, 0), 1u << 2 | 1u << 3);
    join.facts[1].trust = IVM_TRACKED;
    cr_assert_eq(ivm__drivers(&join.graph, &options, &join.edges, 0), 1u << 2 | 1u << 3 | 1u << 1);
    options.fk_pruning = IVM_FK_PRUNING_OFF;
    cr_assert_eq(ivm__drivers(&join.graph, &options, &join.edges, 0), 31u);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------------------------- */

Test(plan_prepare, a_failed_allocation_is_made_good_by_the_next_call)
{
    fill();
    for (int deferred = 0; deferred <= 1; deferred++) {
        uint64_t failures = 0;
        for (bool failed = true; failed; failures += failed) {
            ivm_view *view = make("view", with_chains(), (ivm_refresh)deferred, IVM_INDEXES_LAZY);
            if (deferred) { /* pending */
                push(sale, IVM_INSERT, "x,1,1,5");
                push(product, IVM_UPSERT, failures % 2 ? "1,axe,7" : "1,ax,8");
            }
            char *held = strdup(fixture_view(&tested, view));
            test_allocator_arm(&tested.allocator, failures + 1);
            ivm_status status = ivm_view_prepare(view, &tested.error);
            failed = test_allocator_disarm(&tested.allocator);
            cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK, "allocation %lu: %s", (unsigned long)failures, tested.error.message);
            cr_assert_str_eq(fixture_view(&tested, view), held);
            free(held);
            prepare(view);
            cr_assert_eq(probes_count(view, false), 0u);
            push(product, IVM_UPSERT, "2,saws,7");
            cr_assert_eq(ivm_refresh_view(view, NULL, &tested.error), IVM_OK);
            assert_as_anew(view, with_chains());
            cr_assert_eq(ivm_view_drop(view, &tested.error), IVM_OK);
        }
        cr_assert_gt(failures, 5u, "%lu", (unsigned long)failures);
    }
}

Test(plan_prepare, a_failed_eager_creation_leaves_no_index)
{
    fill();
    make("totals", star(), IVM_IMMEDIATE, IVM_INDEXES_LAZY); /* else dropping the last reader would */
    size_t before = indexes_count();
    uint64_t failures = 0;
    for (bool failed = true; failed; failures += failed) {
        ivm_view *view = NULL;
        ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .indexes = IVM_INDEXES_EAGER };
        ivm_plan *plan =
            over_leaves(ivm_plan_filter(scan_of("sale", "s"), call_of(">", "s.amount", 0)), scan_of("product", "p"), scan_of("day", "d"));
        if (failures % 2) {
            ivm_plan_free(plan);
            plan = star();
        }
        test_allocator_arm(&tested.allocator, failures / 2 + 1);
        ivm_status status = ivm_view_create(tested.engine, "eager", plan, &options, &view, &tested.error);
        failed = test_allocator_disarm(&tested.allocator);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK, "allocation %lu: %s", (unsigned long)failures, tested.error.message);
        cr_assert(!failed || indexes_count() == before, "allocation %lu", (unsigned long)failures);
        cr_assert_eq(view != NULL, !failed);
    }
    cr_assert_gt(failures, 60u);
}
