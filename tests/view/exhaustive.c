/* Exhaustive: every combination of delta shapes of joins of two to four tables along chains, stars and cycles of facts, under every setting
 * of the planner. The view equals nested loops over the tables, its changes are the difference, the batch taken back leaves what was
 * before, and the terms counted are those of the masks counted out. */
#include "world.h"

#include <criterion/criterion.h>

#include "plan.h"

/* ---- What a batch does to a table ---------------------------------------------------------------------------------------------------- */

enum { UNCHANGED, GAINS, LOSES, MIXED, SHAPES };

/* Rows 1 to 4: 1 and 2 are referred to, 3 and 4 are not. */
static world_row base_row(int64_t id)
{
    int64_t to = id % 2 ? 1 : 2;
    return (world_row){ .id = id, .refs = { to, id == 4 ? WORLD_NULL : to, to }, .v = id == 3 ? WORLD_NULL : id * 10 };
}

static const world_edge *edge_of(const world_shape *shape, uint32_t child, uint32_t slot)
{
    for (uint32_t e = 0; e < shape->edges_count; e++) {
        if (shape->edges[e].child == child && shape->edges[e].slot == slot) {
            return &shape->edges[e];
        }
    }
    return NULL;
}

/* Refers to the parents' new row 5 where they gain it, so that new rows meet new rows. */
static world_row fresh_row(const world_shape *shape, const uint32_t *shapes, uint32_t table, int64_t id)
{
    world_row row = { .id = id, .refs = { 1, 2, 1 }, .v = id * 10 };
    for (uint32_t slot = 0; slot < WORLD_REFS; slot++) {
        const world_edge *edge = edge_of(shape, table, slot);
        if (edge && (shapes[edge->parent] == GAINS || shapes[edge->parent] == MIXED) && id == 5) {
            row.refs[slot] = 5;
        }
    }
    return row;
}

static void table_changes(const world_shape *shape, const uint32_t *shapes, uint32_t table, world_changes *changes)
{
    if (shapes[table] == GAINS || shapes[table] == MIXED) {
        world_add(changes, table, fresh_row(shape, shapes, table, 5), 1);
    }
    if (shapes[table] == GAINS) {
        world_add(changes, table, fresh_row(shape, shapes, table, 6), shape->bag && table == 0 ? 2 : 1);
    }
    if (shapes[table] == LOSES) {
        world_add(changes, table, base_row(3), -1);
    }
    if (shapes[table] == MIXED) {
        world_row row = base_row(1);
        world_add(changes, table, base_row(4), -1);
        world_add(changes, table, row, -1);
        row.v = -7;
        world_add(changes, table, row, 1);
        world_add(changes, table, base_row(2), -1);
        world_add(changes, table, fresh_row(shape, shapes, table, 5), 0); /* nothing, in the end */
        row = fresh_row(shape, shapes, table, 5);
        row.id = 2;
        world_add(changes, table, row, 1);
    }
}

/* ---- What must be counted ------------------------------------------------------------------------------------------------------------- */

static uint32_t edges_of(const world_shape *shape, ivm__edge edges[4])
{
    for (uint32_t e = 0; e < shape->edges_count; e++) {
        edges[e] = (ivm__edge){ .child = shape->edges[e].child, .parent = shape->edges[e].parent };
    }
    return shape->facts ? shape->edges_count : 0;
}

/* The parents that facts take part in: by batch those that lose nothing; by row all that change, each reached as ever. */
static uint64_t parents_pruned(const world_shape *shape, ivm_fk_pruning pruning, const uint32_t *shapes)
{
    ivm__edge edges[4];
    uint64_t candidates = 0;
    for (uint32_t t = 0; t < shape->tables_count; t++) {
        candidates |= (uint64_t)(pruning == IVM_FK_PRUNING_BATCH ? shapes[t] <= GAINS : shapes[t] != UNCHANGED) << t;
    }
    return pruning == IVM_FK_PRUNING_OFF ? 0 : ivm__skip_mask(shape->tables_count, edges, edges_of(shape, edges), candidates);
}

/* Of the parents pruned by row those are skipped of which no changed row is left. */
static void assert_counted(const world *it, const ivm_planner_options *options, const uint32_t *shapes, uint64_t number)
{
    uint64_t empty = 0, skip = parents_pruned(&it->shape, options->fk_pruning, shapes);
    uint32_t n = it->shape.tables_count, pruned = 0, left_out = 0, run = 0;
    for (uint32_t t = 0; t < n; t++) {
        empty |= (uint64_t)(shapes[t] == UNCHANGED && !options->run_empty) << t;
        skip &= ~((uint64_t)(shapes[t] == MIXED) << t);
    }
    for (uint64_t mask = 1; mask < 1ull << n; mask++) {
        *(mask & skip ? &pruned : mask & empty ? &left_out : &run) += 1;
    }
    uint64_t telescoped = (uint64_t)__builtin_popcountll(((1ull << n) - 1) & ~skip & ~empty);
    bool right = options->join_rule == IVM_JOIN_MOBIUS        ? it->stats.terms_run == run
                 : options->join_rule == IVM_JOIN_TELESCOPING ? it->stats.terms_run == telescoped
                                                              : it->stats.terms_run == run || it->stats.terms_run == telescoped;
    cr_assert(right && it->stats.terms_pruned == pruned && it->stats.terms_empty == left_out,
              "case %llu: %llu terms run, %llu pruned, %llu empty", (unsigned long long)number, (unsigned long long)it->stats.terms_run,
              (unsigned long long)it->stats.terms_pruned, (unsigned long long)it->stats.terms_empty);
}

/* ---- What must drive --------------------------------------------------------------------------------------------------------------------- */

/* The columns that the join reads of a leaf: id, v and the references that are equated. */
static world_row row_read(const world_shape *shape, uint32_t table, world_row row)
{
    for (uint32_t slot = 0; slot < WORLD_REFS; slot++) {
        row.refs[slot] = edge_of(shape, table, slot) ? row.refs[slot] : 0;
    }
    return row;
}

static bool key_moves(const world_changes *changes, uint32_t table, int64_t id)
{
    int64_t weight = 0;
    for (uint32_t i = 0; i < changes->count; i++) {
        const world_change *change = &changes->change[i];
        weight += change->table == table && change->row.id == id ? change->row.weight : 0;
    }
    return weight != 0;
}

/* Of the table's net delta the rows that are left for the leaf to drive, added up by the columns that are read. */
static uint64_t rows_left(const world_shape *shape, const world_changes *changes, uint32_t table, bool pruned)
{
    world_row rows[WORLD_CHANGES_MAX];
    uint32_t count = 0;
    uint64_t left = 0;
    for (uint32_t i = 0; i < changes->count; i++) {
        const world_change *change = &changes->change[i];
        world_row row = row_read(shape, table, change->row);
        if (change->table != table || (pruned && key_moves(changes, table, row.id))) {
            continue;
        }
        uint32_t at = 0;
        while (at < count && (rows[at].id != row.id || rows[at].v != row.v || memcmp(rows[at].refs, row.refs, sizeof row.refs) != 0)) {
            at++;
        }
        rows[at].weight = at < count ? rows[at].weight + row.weight : row.weight;
        rows[at].id = row.id;
        rows[at].v = row.v;
        memcpy(rows[at].refs, row.refs, sizeof row.refs);
        count += at == count;
    }
    for (uint32_t i = 0; i < count; i++) {
        left += rows[i].weight != 0;
    }
    return left;
}

/* By row each leaf's delta is what is left of its table's, no row more. */
static void assert_driven(const world *it, const ivm_view *view, const world_changes *changes, const uint32_t *shapes, uint64_t number)
{
    uint64_t pruned = parents_pruned(&it->shape, IVM_FK_PRUNING_ROW, shapes);
    for (uint32_t t = 0; t < it->shape.tables_count; t++) {
        uint64_t want = rows_left(&it->shape, changes, t, pruned >> t & 1), got = view->planned->plans[0]->last->leaves[t].rows_count;
        cr_assert_eq(got, want, "case %llu: %llu rows of leaf %u, not %llu", (unsigned long long)number, (unsigned long long)got, t,
                     (unsigned long long)want);
    }
}

/* ---- Every case ------------------------------------------------------------------------------------------------------------------------ */

static uint64_t lines_count(const char *text)
{
    uint64_t count = 0;
    for (; *text; text++) {
        count += *text == '\n';
    }
    return count;
}

static uint64_t net_rows(const world *it, const uint32_t *shapes)
{
    uint64_t count = 0;
    for (uint32_t t = 0; t < it->shape.tables_count; t++) {
        static const uint64_t rows[] = { 0, 2, 1, 6 };
        count += rows[shapes[t]];
    }
    return count;
}

static void run_case(world *it, ivm_view *view, const ivm_planner_options *options, uint64_t number)
{
    uint32_t shapes[WORLD_TABLES_MAX];
    world_changes changes = { 0 }, inverse;
    for (uint32_t t = 0; t < it->shape.tables_count; t++) {
        shapes[t] = number >> 2 * t & 3;
        table_changes(&it->shape, shapes, t, &changes);
    }
    world_inverse(&changes, &inverse);
    char *before = world_expected(it);
    cr_assert_eq(world_push(it, &changes), IVM_OK, "%s", it->error.message);
    char *after = world_expected(it), *changed = world_dump_changes(it, view);
    assert_counted(it, options, shapes, number);
    if (options->fk_pruning == IVM_FK_PRUNING_ROW) {
        assert_driven(it, view, &changes, shapes, number);
    }
    cr_assert_eq(it->stats.rows_out, lines_count(changed));
    cr_assert_eq(it->stats.rows_in, net_rows(it, shapes));
    world_assert_same(changed, world_difference(before, after), "changes", number);
    world_assert_same(world_dump_view(it, view), after, "view", number);
    cr_assert_eq(world_push(it, &inverse), IVM_OK, "%s", it->error.message);
    world_assert_same(world_dump_view(it, view), before, "taken back", number);
}

static void run_shape(const world_shape *shape)
{
    world it;
    world_changes base = { 0 };
    world_open(&it, shape, NULL);
    ivm_view *view = world_view(&it, "v", world_join_plan(&it));
    for (uint32_t t = 0; t < shape->tables_count; t++) {
        for (int64_t id = 1; id <= 4; id++) {
            world_add(&base, t, base_row(id), shape->bag && t == 0 && id == 2 ? 3 : 1);
        }
    }
    cr_assert_eq(world_push(&it, &base), IVM_OK, "%s", it.error.message);
    for (uint32_t setting = 0; setting < 18; setting++) {
        ivm_planner_options options = { (ivm_fk_pruning)(setting % 3), (ivm_join_rule)(setting / 3 % 3), setting >= 9 };
        cr_assert_eq(ivm_engine_planner_set(it.engine, &options, &it.error), IVM_OK);
        for (uint64_t number = 0; number < 1ull << 2 * shape->tables_count; number++) {
            run_case(&it, view, &options, number);
        }
    }
    world_close(&it);
}

static void run_edges(uint32_t tables_count, bool bag, const world_edge *edges, uint32_t edges_count)
{
    world_shape shape = { .tables_count = tables_count, .bag = bag, .facts = true, .edges_count = edges_count };
    memcpy(shape.edges, edges, edges_count * sizeof *edges);
    run_shape(&shape);
    if (tables_count < 4) {
        shape.facts = false;
        run_shape(&shape);
    }
}

#define EDGES(...) (const world_edge[]){ __VA_ARGS__ }, sizeof((const world_edge[]){ __VA_ARGS__ }) / sizeof(world_edge)

Test(view_exhaustive, two_tables)
{
    run_edges(2, false, EDGES({ 0, 0, 1 }));
    run_edges(2, true, EDGES({ 0, 0, 1 }));
    run_edges(2, false, EDGES({ 1, 0, 0 }));
    run_edges(2, false, EDGES({ 0, 0, 1 }, { 1, 0, 0 }));
}

Test(view_exhaustive, three_tables)
{
    run_edges(3, true, EDGES({ 0, 0, 1 }, { 0, 1, 2 }));
    run_edges(3, false, EDGES({ 0, 0, 1 }, { 1, 0, 2 }));
    run_edges(3, false, EDGES({ 0, 0, 2 }, { 1, 1, 2 }));
    run_edges(3, false, EDGES({ 0, 0, 1 }, { 1, 0, 2 }, { 2, 0, 0 }));
    run_edges(3, false, EDGES({ 2, 0, 1 }, { 1, 0, 2 }, { 2, 1, 0 }));
}

Test(view_exhaustive, a_star_of_four)
{
    run_edges(4, true, EDGES({ 0, 0, 1 }, { 0, 1, 2 }, { 0, 2, 3 }));
}

Test(view_exhaustive, a_star_of_four_read_last)
{
    run_edges(4, false, EDGES({ 3, 0, 0 }, { 3, 1, 1 }, { 3, 2, 2 }));
}

Test(view_exhaustive, a_chain_of_four)
{
    run_edges(4, false, EDGES({ 0, 0, 1 }, { 1, 0, 2 }, { 2, 0, 3 }));
}

Test(view_exhaustive, a_snowflake_of_four)
{
    run_edges(4, true, EDGES({ 0, 0, 1 }, { 0, 1, 2 }, { 2, 0, 3 }));
}

Test(view_exhaustive, a_diamond_of_four)
{
    run_edges(4, false, EDGES({ 0, 0, 1 }, { 0, 1, 2 }, { 1, 0, 3 }, { 2, 0, 3 }));
}

Test(view_exhaustive, a_cycle_with_a_tail_of_four)
{
    run_edges(4, false, EDGES({ 0, 0, 1 }, { 1, 0, 0 }, { 1, 1, 2 }, { 2, 0, 3 }));
}

Test(view_exhaustive, a_cycle_of_four)
{
    run_edges(4, false, EDGES({ 0, 0, 1 }, { 1, 0, 2 }, { 2, 0, 3 }, { 3, 0, 0 }));
}
