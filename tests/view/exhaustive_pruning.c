/* Exhaustive pruning by row: all foreign-key graphs of two to four leaves over one to three tables, under all shapes of the tables' deltas.
 *
 * A table p is referred to by column r<p> of every table, its own too, and each such column is a foreign key: rely in one run, tracked in another.
 * A graph says which table each leaf reads and which leaf equates its column with which other leaf's key: any set of ordered pairs of leaves, so
 * that there are cycles, self-references, shared and repeated parents. Of graphs that differ in the order of leaves or in the tables' names one is
 * taken; those that fall into parts are left out (a product of smaller ones), and so are, of four leaves over two or three tables, those of more
 * than four edges. Each table gains rows or not, loses rows or not, changes rows or not; of three tables, where that would be 512 batches, one that does
 * two of these does all three: 125. Every batch is pushed and taken back.
 *
 * Under rely references follow so that they hold before and after. Under tracked, too, except that by a pattern drawn with the batch children of some
 * tables wait for a row that comes, or still refer to one that goes.
 *
 * All graphs over as many tables are views of three engines that get the same batches: not pruned, pruned and telescoping, pruned and Moebius.
 * The views must be equal, and of k leaves of a view whose delta is not empty once pruned k terms run, or at most 2^k - 1. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ivm/ivm.h"

#define LEAVES_MAX 4u
#define TABLES_MAX 3u
#define GRAPHS_MAX 2048u
#define EDGES_OF_LARGEST 4
#define NOTHING INT64_MIN

/* ---- Graphs ---------------------------------------------------------------------------------------------------------------------------- */

typedef struct graph {
    uint32_t leaves, tables;
    uint32_t table[LEAVES_MAX]; /* in the order of their first leaves */
    uint32_t edges;             /* bit child * LEAVES_MAX + parent */
} graph;

static bool has_edge(const graph *it, uint32_t child, uint32_t parent)
{
    return it->edges >> (child * LEAVES_MAX + parent) & 1;
}

/* The same graph with leaf i at place order[i], tables named anew. */
static graph reordered(const graph *it, const uint32_t *order)
{
    graph made = { .leaves = it->leaves, .tables = it->tables };
    uint32_t name[TABLES_MAX], named = 0, raw[LEAVES_MAX];
    memset(name, 0xff, sizeof name);
    for (uint32_t i = 0; i < it->leaves; i++) {
        raw[order[i]] = it->table[i];
        for (uint32_t j = 0; j < it->leaves; j++) {
            made.edges |= (uint32_t)has_edge(it, i, j) << (order[i] * LEAVES_MAX + order[j]);
        }
    }
    for (uint32_t i = 0; i < it->leaves; i++) {
        name[raw[i]] = name[raw[i]] == UINT32_MAX ? named++ : name[raw[i]];
        made.table[i] = name[raw[i]];
    }
    return made;
}

static int graph_order(const graph *a, const graph *b)
{
    int order = memcmp(a->table, b->table, sizeof a->table);
    return order ? order : (a->edges > b->edges) - (a->edges < b->edges);
}

/* Whether no order of the leaves from `place` on gives a lesser graph. */
static bool is_least(const graph *it, uint32_t *order, uint32_t place)
{
    if (place == it->leaves) {
        graph other = reordered(it, order);
        return graph_order(it, &other) <= 0;
    }
    for (uint32_t i = place; i < it->leaves; i++) {
        uint32_t kept = order[place];
        order[place] = order[i];
        order[i] = kept;
        bool least = is_least(it, order, place + 1);
        order[i] = order[place];
        order[place] = kept;
        if (!least) {
            return false;
        }
    }
    return true;
}

static bool is_connected(const graph *it)
{
    uint32_t reached = 1, all = (1u << it->leaves) - 1;
    for (uint32_t pass = 0; pass < it->leaves; pass++) {
        for (uint32_t i = 0; i < it->leaves; i++) {
            for (uint32_t j = 0; j < it->leaves; j++) {
                bool near = has_edge(it, i, j) || has_edge(it, j, i);
                reached |= (near && (reached >> j & 1)) ? 1u << i : 0;
            }
        }
    }
    return reached == all;
}

static bool is_taken(const graph *it)
{
    uint32_t order[] = { 0, 1, 2, 3 };
    bool large = it->leaves == 4 && it->tables > 1 && __builtin_popcount(it->edges) > EDGES_OF_LARGEST;
    return !large && is_connected(it) && is_least(it, order, 0);
}

/* All edges of one assignment of tables. */
static void edges_add(graph it, graph *graphs, uint32_t *count)
{
    for (uint32_t pairs = 0; pairs < 1u << (it.leaves * (it.leaves - 1)); pairs++) {
        uint32_t pair = 0;
        it.edges = 0;
        for (uint32_t i = 0; i < it.leaves; i++) {
            for (uint32_t j = 0; j < it.leaves; j++) {
                it.edges |= i != j ? (pairs >> pair++ & 1) << (i * LEAVES_MAX + j) : 0;
            }
        }
        if (is_taken(&it)) {
            cr_assert_lt(*count, GRAPHS_MAX);
            graphs[(*count)++] = it;
        }
    }
}

static uint32_t graphs_make(uint32_t tables, graph *graphs)
{
    uint32_t count = 0;
    for (uint32_t leaves = 2; leaves <= LEAVES_MAX; leaves++) {
        for (uint32_t number = 0; number < 1u << 2 * leaves; number++) {
            graph it = { .leaves = leaves };
            bool in_order = true;
            for (uint32_t i = 0; i < leaves; i++) {
                it.table[i] = number >> 2 * i & 3;
                in_order &= it.table[i] <= it.tables;
                it.tables += it.table[i] == it.tables;
            }
            if (in_order && it.tables == tables) {
                edges_add(it, graphs, &count);
            }
        }
    }
    return count;
}

/* ---- States ---------------------------------------------------------------------------------------------------------------------------- */

typedef struct row {
    int64_t id, refs[TABLES_MAX], v;
} row;

typedef struct rows {
    row row[8];
    uint32_t count;
} rows;

typedef struct state {
    rows table[TABLES_MAX];
} state;

enum { FRESH = 1, GONE = 2, CHANGED = 4 };

typedef struct batch_shape {
    uint32_t tables;
    uint32_t of[TABLES_MAX];     /* FRESH, GONE, CHANGED */
    uint32_t breaks[TABLES_MAX]; /* bit p: children in this table break what leads to p */
} batch_shape;

static void row_add(rows *to, int64_t id, int64_t v, const int64_t *refs)
{
    row *it = &to->row[to->count++];
    *it = (row){ .id = id, .v = v };
    memcpy(it->refs, refs, sizeof it->refs);
}

/* Rows 1, 2, 5 and 6 are always there, 3 and 7 go, 4 and 8 come, 2 and 6 change. Whoever goes is referred to by such as go, too, or change;
 * whoever comes, by such as come or change. */
static void table_make(const batch_shape *shape, uint32_t table, bool after, rows *made)
{
    int64_t one[TABLES_MAX], two[TABLES_MAX], going[TABLES_MAX], coming[TABLES_MAX], waits[TABLES_MAX], stays[TABLES_MAX];
    uint32_t does = shape->of[table];
    made->count = 0;
    for (uint32_t p = 0; p < TABLES_MAX; p++) {
        bool breaks = shape->breaks[table] >> p & 1;
        one[p] = 1;
        two[p] = 2;
        going[p] = shape->of[p] & GONE ? 3 : 1;
        coming[p] = shape->of[p] & FRESH ? 4 : 1;
        waits[p] = breaks ? 4 : 2;
        stays[p] = breaks ? 3 : NOTHING;
    }
    row_add(made, 1, 10, waits);
    row_add(made, 5, 50, stays);
    row_add(made, 2, after && does & CHANGED ? 21 : 20, !(does & CHANGED) ? one : after ? coming : going);
    row_add(made, 6, after && does & CHANGED ? 61 : 60, two);
    if (does & GONE && !after) {
        row_add(made, 3, 30, going);
        row_add(made, 7, 70, two);
    }
    if (does & FRESH && after) {
        row_add(made, 4, 40, coming);
        row_add(made, 8, 80, two);
    }
}

static void state_make(const batch_shape *shape, bool after, state *made)
{
    for (uint32_t t = 0; t < TABLES_MAX; t++) {
        made->table[t].count = 0;
        if (t < shape->tables) {
            table_make(shape, t, after, &made->table[t]);
        }
    }
}

/* ---- Engines --------------------------------------------------------------------------------------------------------------------------- */

typedef struct side {
    ivm_engine *engine;
    ivm_table *tables[TABLES_MAX];
    ivm_view **views;
    ivm_stats stats;
} side;

static void must(ivm_status status, const ivm_error *error)
{
    cr_assert_eq(status, IVM_OK, "%s", error->message);
}

static void tables_open(side *it, uint32_t tables, ivm_trust trust)
{
    static const ivm_column_definition columns[] = {
        { "id", IVM_INT64, true },  { "r0", IVM_INT64, false }, { "r1", IVM_INT64, false },
        { "r2", IVM_INT64, false }, { "v", IVM_INT64, false },
    };
    static const char *const names[] = { "t0", "t1", "t2" };
    ivm_error error = IVM_ERROR_INIT;
    for (uint32_t t = 0; t < tables; t++) {
        ivm_table_options options = { .columns = columns, .columns_count = 5, .key = "id" };
        must(ivm_table_create(it->engine, names[t], &options, &it->tables[t], &error), &error);
    }
    for (uint32_t child = 0; child < tables; child++) {
        for (uint32_t parent = 0; parent < tables; parent++) {
            must(ivm_foreign_key_declare(it->tables[child], columns[1 + parent].name, it->tables[parent], "id", trust, NULL, &error),
                 &error);
        }
    }
}

static ivm_plan *graph_plan(const side *it, const graph *of)
{
    static const char *const names[] = { "a", "b", "c", "d" };
    ivm_plan *inputs[LEAVES_MAX];
    char on[512] = "", column[16];
    size_t size = 0;
    for (uint32_t i = 0; i < of->leaves; i++) {
        inputs[i] = ivm_plan_scan(it->tables[of->table[i]], names[i]);
        for (uint32_t j = 0; j < of->leaves; j++) {
            if (has_edge(of, i, j)) {
                size +=
                    (size_t)snprintf(on + size, sizeof on - size, "%s%s.r%u = %s.id", size ? ", " : "", names[i], of->table[j], names[j]);
            }
        }
    }
    ivm_plan *plan = ivm_plan_project(ivm_plan_join_many(inputs, of->leaves, on), NULL);
    for (uint32_t i = 0; i < of->leaves; i++) {
        for (uint32_t c = 0; c < 2; c++) {
            char name[16];
            snprintf(name, sizeof name, "%s%u", names[i], c);
            snprintf(column, sizeof column, "%s.%s", names[i], c ? "v" : "id");
            plan = ivm_plan_compute(plan, name, ivm_column(column));
        }
    }
    return plan;
}

static void side_open(side *it, const ivm_planner_options *planner, ivm_trust trust, const graph *graphs, uint32_t count)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    ivm_error error = IVM_ERROR_INIT;
    options.planner = *planner;
    options.hash_seed = 5;
    must(ivm_engine_open(&options, &it->engine, &error), &error);
    tables_open(it, graphs[0].tables, trust);
    it->views = malloc(count * sizeof(ivm_view *));
    cr_assert(it->views);
    for (uint32_t g = 0; g < count; g++) {
        char name[16];
        snprintf(name, sizeof name, "v%u", g);
        must(ivm_view_create(it->engine, name, graph_plan(it, &graphs[g]), NULL, &it->views[g], &error), &error);
    }
}

static void side_close(side *it)
{
    ivm_error error = IVM_ERROR_INIT;
    must(ivm_engine_close(it->engine, &error), &error);
    free(it->views);
}

static ivm_value value_of(int64_t value)
{
    return value == NOTHING ? ivm_null() : ivm_int64(value);
}

static bool holds(const rows *in, const row *wanted)
{
    for (uint32_t i = 0; i < in->count; i++) {
        if (memcmp(&in->row[i], wanted, sizeof *wanted) == 0) {
            return true;
        }
    }
    return false;
}

static void difference_add(ivm_batch *batch, ivm_table *table, ivm_change change, const rows *of, const rows *without)
{
    for (uint32_t i = 0; i < of->count; i++) {
        const row *it = &of->row[i];
        if (!holds(without, it)) {
            ivm_value values[] = { ivm_int64(it->id), value_of(it->refs[0]), value_of(it->refs[1]), value_of(it->refs[2]),
                                   ivm_int64(it->v) };
            (void)ivm_batch_row(batch, table, change, 1, values, 5); /* the push tells */
        }
    }
}

static void side_push(side *it, uint32_t tables, const state *from, const state *to)
{
    ivm_batch *batch;
    ivm_error error = IVM_ERROR_INIT;
    must(ivm_batch_create(it->engine, &batch, &error), &error);
    for (uint32_t t = 0; t < tables; t++) {
        difference_add(batch, it->tables[t], IVM_DELETE, &from->table[t], &to->table[t]);
        difference_add(batch, it->tables[t], IVM_INSERT, &to->table[t], &from->table[t]);
    }
    must(ivm_push_batch(it->engine, batch, &it->stats, &error), &error);
}

/* Of all rows with their weights, whatever their order. */
static uint64_t view_digest(ivm_view *view)
{
    ivm_snapshot *snapshot;
    ivm_error error = IVM_ERROR_INIT;
    uint64_t sum = 0;
    must(ivm_read_view(view, &snapshot, &error), &error);
    for (ivm_rows read; ivm_snapshot_next(snapshot, &read);) {
        for (size_t r = 0; r < read.rows_count; r++) {
            uint64_t digest = 0;
            for (size_t c = 0; c < read.columns_count; c++) {
                digest = (digest ^ (uint64_t)((const int64_t *)read.columns[c].values)[r]) * 0x9E3779B97F4A7C15ull;
                digest ^= digest >> 29;
            }
            sum += (digest | 1) * (uint64_t)(read.weights ? read.weights[r] : 1);
        }
    }
    ivm_snapshot_close(snapshot);
    return sum;
}

/* How many leaves of the view's join have delta rows left. */
static uint32_t leaves_left(ivm_view *view)
{
    static const char member[] = "\"delta_rows\": ";
    char *text;
    uint32_t left = 0;
    ivm_error error = IVM_ERROR_INIT;
    must(ivm_explain(view, NULL, IVM_EXPLAIN_JSON, &text, &error), &error);
    for (const char *at = text; (at = strstr(at, member)); at += sizeof member) {
        left += at[sizeof member - 1] != '0';
    }
    ivm_text_free(text);
    return left;
}

/* ---- Every case ------------------------------------------------------------------------------------------------------------------------ */

enum { OFF, TELESCOPING, MOEBIUS, SIDES };

typedef struct trial {
    graph *graphs;
    uint32_t graphs_count;
    side sides[SIDES];
    state at;
    uint64_t left; /* delta rows were left of so many leaves, over all steps */
} trial;

static void views_compare(const trial *it, uint32_t number)
{
    for (uint32_t g = 0; g < it->graphs_count; g++) {
        const graph *of = &it->graphs[g];
        uint64_t digest = view_digest(it->sides[OFF].views[g]);
        for (int s = TELESCOPING; s < SIDES; s++) {
            cr_assert_eq(view_digest(it->sides[s].views[g]), digest, "batch %u, side %d: %u leaves of tables %u %u %u %u, edges %04x",
                         number, s, of->leaves, of->table[0], of->table[1], of->table[2], of->table[3], of->edges);
        }
    }
}

static void terms_count(trial *it, uint32_t number)
{
    uint64_t telescoping = 0, moebius = 0;
    for (uint32_t g = 0; g < it->graphs_count; g++) {
        uint32_t left = leaves_left(it->sides[TELESCOPING].views[g]);
        telescoping += left;
        moebius += (1u << left) - 1;
    }
    it->left += telescoping;
    cr_assert_eq(it->sides[TELESCOPING].stats.terms_run, telescoping, "batch %u", number);
    cr_assert_leq(it->sides[MOEBIUS].stats.terms_run, moebius, "batch %u", number);
}

static void step_to(trial *it, const state *to, uint32_t number)
{
    for (int s = 0; s < SIDES; s++) {
        side_push(&it->sides[s], it->graphs[0].tables, &it->at, to);
    }
    it->at = *to;
    views_compare(it, number);
}

/* Which children break what: different from batch to batch. */
static uint32_t pattern(uint32_t number, uint32_t table)
{
    uint64_t mixed = (number * TABLES_MAX + table + 1) * 0x9E3779B97F4A7C15ull;
    return (uint32_t)(mixed >> 40) & (uint32_t)(mixed >> 50) & 7;
}

static void shape_run(trial *it, uint32_t number, ivm_trust trust)
{
    static const uint32_t few[] = { 0, FRESH, GONE, CHANGED, FRESH | GONE | CHANGED };
    uint32_t tables = it->graphs[0].tables, left = number;
    batch_shape shape = { .tables = tables };
    state before, after;
    for (uint32_t t = 0; t < tables; t++) {
        shape.of[t] = tables < 3 ? left % 8 : few[left % 5];
        shape.breaks[t] = trust == IVM_TRACKED ? pattern(number, t) : 0;
        left /= tables < 3 ? 8 : 5;
    }
    state_make(&shape, false, &before);
    state_make(&shape, true, &after);
    step_to(it, &before, number);
    step_to(it, &after, number);
    terms_count(it, number);
    step_to(it, &before, number);
    terms_count(it, number);
}

static void run(uint32_t tables, ivm_trust trust)
{
    static const ivm_planner_options planners[] = {
        { IVM_FK_PRUNING_OFF, IVM_JOIN_AUTO, false },
        { IVM_FK_PRUNING_ROW, IVM_JOIN_TELESCOPING, false },
        { IVM_FK_PRUNING_ROW, IVM_JOIN_MOBIUS, false },
    };
    static const uint32_t batches[] = { 0, 8, 64, 125 };
    trial it = { .graphs = malloc(GRAPHS_MAX * sizeof(graph)) };
    cr_assert(it.graphs);
    it.graphs_count = graphs_make(tables, it.graphs);
    for (int s = 0; s < SIDES; s++) {
        side_open(&it.sides[s], &planners[s], trust, it.graphs, it.graphs_count);
    }
    for (uint32_t number = 0; number < batches[tables]; number++) {
        shape_run(&it, number, trust);
    }
    cr_assert_gt(it.left, 0);
    for (int s = 0; s < SIDES; s++) {
        side_close(&it.sides[s]);
    }
    free(it.graphs);
}

Test(view_exhaustive_pruning, one_table_rely)
{
    run(1, IVM_RELY);
}

Test(view_exhaustive_pruning, one_table_tracked)
{
    run(1, IVM_TRACKED);
}

Test(view_exhaustive_pruning, two_tables_rely)
{
    run(2, IVM_RELY);
}

Test(view_exhaustive_pruning, two_tables_tracked)
{
    run(2, IVM_TRACKED);
}

Test(view_exhaustive_pruning, three_tables_rely)
{
    run(3, IVM_RELY);
}

Test(view_exhaustive_pruning, three_tables_tracked)
{
    run(3, IVM_TRACKED);
}
