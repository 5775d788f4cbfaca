/* See world.h. */
#include "world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE_SIZE 200u

/* ---- Engine and tables ------------------------------------------------------------------------------------------------------------------ */

static ivm_table *table_make(world *it, uint32_t table)
{
    static const ivm_column_definition columns[] = {
        { "id", IVM_INT64, true }, { "r0", IVM_INT64, false },  { "r1", IVM_INT64, false }, { "r2", IVM_INT64, false },
        { "v", IVM_INT64, false }, { "f", IVM_FLOAT64, false }, { "s", IVM_STRING, false },
    };
    char name[16];
    ivm_table *made = NULL;
    bool bag = it->shape.bag && table == 0;
    ivm_table_options options = { .columns = columns, .columns_count = 7, .key = bag ? NULL : "id" };
    snprintf(name, sizeof name, "t%u", table);
    cr_assert_eq(ivm_table_create(it->engine, name, &options, &made, &it->error), IVM_OK, "%s", it->error.message);
    return made;
}

void world_open(world *it, const world_shape *shape, const ivm_planner_options *planner)
{
    memset(it, 0, sizeof *it);
    it->shape = *shape;
    test_allocator_init(&it->allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&it->allocator);
    options.hash_seed = 11;
    options.planner = planner ? *planner : options.planner;
    options.threads = shape->threads ? shape->threads : options.threads;
    cr_assert_eq(ivm_engine_open(&options, &it->engine, &it->error), IVM_OK, "%s", it->error.message);
    for (uint32_t i = 0; i < shape->tables_count; i++) {
        it->tables[i] = table_make(it, i);
    }
    for (uint32_t e = 0; shape->facts && e < shape->edges_count; e++) {
        const world_edge *edge = &shape->edges[e];
        char column[] = { 'r', (char)('0' + edge->slot), 0 };
        ivm_status status =
            ivm_foreign_key_declare(it->tables[edge->child], column, it->tables[edge->parent], "id", IVM_RELY, NULL, &it->error);
        cr_assert_eq(status, IVM_OK, "%s", it->error.message);
    }
}

void world_close(world *it)
{
    cr_assert_eq(ivm_engine_close(it->engine, &it->error), IVM_OK, "%s", it->error.message);
    cr_assert(test_allocator_is_clean(&it->allocator), "%ld blocks left", (long)it->allocator.blocks);
}

/* ---- Plans ---------------------------------------------------------------------------------------------------------------------------------- */

static void on_text(const world *it, char text[256])
{
    size_t size = 0;
    text[0] = 0;
    for (uint32_t e = 0; e < it->shape.edges_count; e++) {
        const world_edge *edge = &it->shape.edges[e];
        size += (size_t)snprintf(text + size, 256 - size, "%st%u.r%u = t%u.id", e ? ", " : "", edge->child, edge->slot, edge->parent);
    }
}

static ivm_plan *join_all(const world *it)
{
    ivm_plan *inputs[WORLD_TABLES_MAX];
    char on[256];
    on_text(it, on);
    for (uint32_t i = 0; i < it->shape.tables_count; i++) {
        inputs[i] = ivm_plan_scan(it->tables[i], NULL);
    }
    return ivm_plan_join_many(inputs, it->shape.tables_count, on);
}

ivm_plan *world_join_plan(const world *it)
{
    ivm_plan *plan = ivm_plan_project(join_all(it), NULL);
    for (uint32_t i = 0; i < it->shape.tables_count; i++) {
        char name[16], column[16];
        snprintf(name, sizeof name, "i%u", i);
        snprintf(column, sizeof column, "t%u.id", i);
        plan = ivm_plan_compute(plan, name, ivm_column(column));
        name[0] = 'v';
        snprintf(column, sizeof column, "t%u.v", i);
        plan = ivm_plan_compute(plan, name, ivm_column(column));
    }
    return plan;
}

static ivm_plan *aggregate_over(const world *it, ivm_plan *input)
{
    char group[16];
    snprintf(group, sizeof group, "t%u.s", it->shape.tables_count - 1);
    ivm_plan *plan = ivm_plan_aggregate(input, group);
    plan = ivm_plan_count(plan, "n");
    plan = ivm_plan_add(plan, "sum", "sum", ivm_column("t0.v"));
    plan = ivm_plan_add(plan, "exact", "sum", ivm_column("t0.f"));
    plan = ivm_plan_add(plan, "average", "avg", ivm_column("t0.f"));
    plan = ivm_plan_add(plan, "least", "min", ivm_column("t0.v"));
    return ivm_plan_add(plan, "greatest", "max", ivm_column("t0.s"));
}

ivm_plan *world_aggregate_plan(const world *it)
{
    return aggregate_over(it, join_all(it));
}

/* A project that gives the columns the names that they have anyway, in another order. */
static ivm_plan *renamed(ivm_plan *input, uint32_t table)
{
    static const char *const names[] = { "s", "v", "r2", "r1", "r0", "id" };
    ivm_plan *plan = ivm_plan_project(input, NULL);
    for (uint32_t c = 0; c < 6; c++) {
        char name[16];
        snprintf(name, sizeof name, "t%u.%s", table, names[c]);
        plan = ivm_plan_compute(plan, name, ivm_column(names[c]));
    }
    return plan;
}

ivm_plan *world_mixed_plan(const world *it)
{
    ivm_plan *inputs[WORLD_TABLES_MAX];
    char on[256];
    uint32_t last = it->shape.tables_count - 1;
    on_text(it, on);
    for (uint32_t i = 0; i <= last; i++) {
        inputs[i] = ivm_plan_scan(it->tables[i], NULL);
    }
    inputs[0] = ivm_plan_filter(inputs[0], ivm_call2(">", ivm_column("v"), ivm_literal(ivm_int64(0))));
    inputs[last] = ivm_plan_filter(renamed(inputs[last], last), ivm_call1("is_not_null", ivm_column("v")));
    char below[16];
    snprintf(below, sizeof below, "t%u.v", last);
    ivm_plan *join = ivm_plan_join_many(inputs, last + 1, on);
    join = ivm_plan_join_where(join, ivm_call2("<>", ivm_column("t0.v"), ivm_column(below)));
    return ivm_plan_having(aggregate_over(it, join), ivm_call2(">", ivm_column("n"), ivm_literal(ivm_int64(1))));
}

ivm_view *world_view(world *it, const char *name, ivm_plan *plan)
{
    ivm_view *view = NULL;
    cr_assert_eq(ivm_view_create(it->engine, name, plan, NULL, &view, &it->error), IVM_OK, "%s", it->error.message);
    return view;
}

/* ---- Changes ---------------------------------------------------------------------------------------------------------------------------------- */

void world_add(world_changes *changes, uint32_t table, world_row row, int64_t weight)
{
    cr_assert_lt(changes->count, WORLD_CHANGES_MAX);
    row.weight = weight;
    changes->change[changes->count++] = (world_change){ table, row };
}

static ivm_value int_value(int64_t value)
{
    return value == WORLD_NULL ? ivm_null() : ivm_int64(value);
}

static void batch_row(world *it, ivm_batch *batch, const world_change *change)
{
    static const char *const names[] = { "ax", "a longer name than a word holds", "" };
    const world_row *row = &change->row;
    ivm_value values[] = {
        ivm_int64(row->id), int_value(row->refs[0]), int_value(row->refs[1]), int_value(row->refs[2]), int_value(row->v), ivm_null(),
        ivm_null()
    };
    if (row->v != WORLD_NULL) {
        values[5] = ivm_float64((double)row->v * 0.1);
        values[6] = ivm_string(names[(uint64_t)row->v % 3]);
    }
    (void)ivm_batch_row(batch, it->tables[change->table], IVM_WEIGHTED, row->weight, values, 7); /* the push tells */
}

ivm_status world_push(world *it, const world_changes *changes)
{
    ivm_batch *batch = NULL;
    ivm_status status = ivm_batch_create(it->engine, &batch, &it->error);
    if (status != IVM_OK) {
        return status;
    }
    for (uint32_t i = 0; i < changes->count; i++) {
        batch_row(it, batch, &changes->change[i]);
    }
    status = ivm_push_batch(it->engine, batch, &it->stats, &it->error);
    if (status == IVM_OK) {
        cr_assert(world_apply(it, changes), "the engine took what it may not, or the test broke a fact");
    }
    return status;
}

void world_inverse(const world_changes *changes, world_changes *inverse)
{
    inverse->count = 0;
    for (uint32_t i = changes->count; i-- > 0;) {
        world_add(inverse, changes->change[i].table, changes->change[i].row, -changes->change[i].row.weight);
    }
}

static bool same_row(const world_row *a, const world_row *b)
{
    return a->id == b->id && a->v == b->v && memcmp(a->refs, b->refs, sizeof a->refs) == 0;
}

static void rows_add(world_rows *rows, const world_row *row)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        if (same_row(&rows->row[i], row)) {
            rows->row[i].weight += row->weight;
            if (rows->row[i].weight == 0) {
                rows->row[i] = rows->row[--rows->count];
            }
            return;
        }
    }
    if (row->weight != 0) {
        cr_assert_lt(rows->count, WORLD_ROWS_MAX);
        rows->row[rows->count++] = *row;
    }
}

static bool holds_id(const world_rows *rows, int64_t id)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        if (rows->row[i].id == id) {
            return true;
        }
    }
    return false;
}

static bool keys_hold(const world *it)
{
    for (uint32_t t = 0; t < it->shape.tables_count; t++) {
        const world_rows *rows = &it->rows[t];
        bool bag = it->shape.bag && t == 0;
        for (uint32_t i = 0; i < rows->count; i++) {
            if (rows->row[i].weight < 0 || (!bag && rows->row[i].weight > 1)) {
                return false;
            }
            for (uint32_t j = 0; j < i && !bag; j++) {
                if (rows->row[i].id == rows->row[j].id) {
                    return false;
                }
            }
        }
    }
    return true;
}

bool world_facts_hold(const world *it)
{
    for (uint32_t e = 0; it->shape.facts && e < it->shape.edges_count; e++) {
        const world_edge *edge = &it->shape.edges[e];
        const world_rows *rows = &it->rows[edge->child];
        for (uint32_t i = 0; i < rows->count; i++) {
            int64_t ref = rows->row[i].refs[edge->slot];
            if (ref != WORLD_NULL && !holds_id(&it->rows[edge->parent], ref)) {
                return false;
            }
        }
    }
    return true;
}

bool world_apply(world *it, const world_changes *changes)
{
    world_rows before[WORLD_TABLES_MAX];
    memcpy(before, it->rows, sizeof before);
    for (uint32_t i = 0; i < changes->count; i++) {
        rows_add(&it->rows[changes->change[i].table], &changes->change[i].row);
    }
    if (keys_hold(it) && world_facts_hold(it)) {
        return true;
    }
    memcpy(it->rows, before, sizeof before);
    return false;
}

bool world_allows(const world *it, const world_changes *changes)
{
    world copy;
    copy.shape = it->shape;
    memcpy(copy.rows, it->rows, sizeof copy.rows);
    return world_apply(&copy, changes);
}

/* Mostly to a row that is there. */
static int64_t draw_reference(const world *it, uint32_t child, uint32_t slot, uint64_t *random)
{
    for (uint32_t e = 0; e < it->shape.edges_count; e++) {
        const world_edge *edge = &it->shape.edges[e];
        const world_rows *rows = &it->rows[edge->parent];
        if (edge->child == child && edge->slot == slot && rows->count && random_short(random) % 8) {
            return rows->row[random_short(random) % rows->count].id;
        }
    }
    uint64_t drawn = random_short(random) % 4;
    return drawn == 0 ? WORLD_NULL : (int64_t)drawn;
}

/* Half of all are of the first table. */
static world_change draw_change(const world *it, uint64_t *random)
{
    uint32_t table = random_short(random) % 2 ? 0 : (uint32_t)(random_short(random) % it->shape.tables_count);
    const world_rows *rows = &it->rows[table];
    world_row row = { .id = 1 + (int64_t)(random_short(random) % 6), .weight = 1 };
    if (rows->count && random_short(random) % 4 == 0) {
        row = rows->row[random_short(random) % rows->count];
        row.weight = -1;
        return (world_change){ table, row };
    }
    for (uint32_t slot = 0; slot < WORLD_REFS; slot++) {
        row.refs[slot] = draw_reference(it, table, slot, random);
    }
    row.v = random_short(random) % 6 ? (int64_t)(random_short(random) % 9) - 4 : WORLD_NULL;
    return (world_change){ table, row };
}

void world_draw(const world *it, uint32_t count, world_changes *changes, uint64_t *random)
{
    world copy;
    copy.shape = it->shape;
    memcpy(copy.rows, it->rows, sizeof copy.rows);
    changes->count = 0;
    while (changes->count < count) {
        world_changes one = { .count = 1, .change[0] = draw_change(&copy, random) };
        if (world_apply(&copy, &one)) {
            changes->change[changes->count++] = one.change[0];
        }
    }
}

void world_set_planner(world *it, uint64_t *random)
{
    ivm_planner_options options = { (ivm_fk_pruning)(random_short(random) % 3), (ivm_join_rule)(random_short(random) % 3),
                                    random_short(random) % 2 };
    cr_assert_eq(ivm_engine_planner_set(it->engine, &options, &it->error), IVM_OK);
}

/* ---- What is there and what must be ---------------------------------------------------------------------------------------------------------- */

typedef struct lines {
    char (*line)[LINE_SIZE];
    int64_t *weights;
    size_t *order;
    size_t count, capacity;
} lines;

static void lines_add(lines *all, const char *line, int64_t weight)
{
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->line[i], line) == 0) {
            all->weights[i] += weight;
            return;
        }
    }
    if (all->count == all->capacity) {
        all->capacity = all->capacity ? all->capacity * 2 : 64;
        all->line = realloc(all->line, all->capacity * LINE_SIZE);
        all->weights = realloc(all->weights, all->capacity * sizeof *all->weights);
    }
    snprintf(all->line[all->count], LINE_SIZE, "%s", line);
    all->weights[all->count++] = weight;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, those of weight 0 left out; frees the lines. */
static char *lines_text(lines *all)
{
    char **sorted = calloc(all->count + 1, sizeof *sorted), *text = calloc(all->count + 1, LINE_SIZE + 24);
    size_t size = 0;
    for (size_t i = 0; i < all->count; i++) {
        sorted[i] = all->line[i];
    }
    qsort(sorted, all->count, sizeof *sorted, compare_lines);
    for (size_t i = 0; i < all->count; i++) {
        int64_t weight = all->weights[(size_t)((char(*)[LINE_SIZE])(void *)sorted[i] - all->line)];
        if (weight != 0) {
            size += (size_t)sprintf(text + size, "%lld*%s\n", (long long)weight, sorted[i]);
        }
    }
    free(sorted);
    free(all->line);
    free(all->weights);
    return text;
}

char *world_dump(ivm_snapshot *snapshot)
{
    lines all = { 0 };
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t at = 0; at < rows.rows_count; at++) {
            char line[LINE_SIZE];
            size_t size = 0;
            line[0] = 0;
            for (size_t c = 0; c < rows.columns_count; c++) {
                ivm_value value = ivm_rows_value(&rows, ivm_snapshot_column_type(snapshot, c), at, c);
                size += (size_t)snprintf(line + size, sizeof line - size, "%s", c ? "," : "");
                size += ivm_value_format(&value, line + size, sizeof line - size);
                cr_assert_lt(size, sizeof line);
            }
            lines_add(&all, line, rows.weights ? rows.weights[at] : 1);
        }
    }
    cr_assert_eq(ivm_snapshot_status(snapshot), IVM_OK);
    ivm_snapshot_close(snapshot);
    return lines_text(&all);
}

char *world_dump_view(world *it, ivm_view *view)
{
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_view(view, &snapshot, &it->error), IVM_OK, "%s", it->error.message);
    return world_dump(snapshot);
}

char *world_dump_changes(world *it, ivm_view *view)
{
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_changes(view, &snapshot, &it->error), IVM_OK, "%s", it->error.message);
    return world_dump(snapshot);
}

static void lines_read(lines *all, const char *text, int64_t sign)
{
    char line[LINE_SIZE];
    for (long long weight; *text; text = strchr(text, '\n') + 1) {
        cr_assert_eq(sscanf(text, "%lld*%199[^\n]", &weight, line), 2);
        lines_add(all, line, sign * weight);
    }
}

char *world_difference(const char *before, const char *after)
{
    lines all = { 0 };
    lines_read(&all, after, 1);
    lines_read(&all, before, -1);
    return lines_text(&all);
}

/* Whether the rows at these places are joined by every edge. */
static bool joined(const world *it, const uint32_t *at)
{
    for (uint32_t e = 0; e < it->shape.edges_count; e++) {
        const world_edge *edge = &it->shape.edges[e];
        int64_t ref = it->rows[edge->child].row[at[edge->child]].refs[edge->slot];
        if (ref == WORLD_NULL || ref != it->rows[edge->parent].row[at[edge->parent]].id) {
            return false;
        }
    }
    return true;
}

static void add_joined(const world *it, const uint32_t *at, lines *all)
{
    char line[LINE_SIZE];
    size_t size = 0;
    int64_t weight = 1;
    for (uint32_t t = 0; t < it->shape.tables_count; t++) {
        const world_row *row = &it->rows[t].row[at[t]];
        weight *= row->weight;
        size += (size_t)snprintf(line + size, sizeof line - size, "%s%lld,", t ? "," : "", (long long)row->id);
        size += row->v == WORLD_NULL ? (size_t)snprintf(line + size, sizeof line - size, "null")
                                     : (size_t)snprintf(line + size, sizeof line - size, "%lld", (long long)row->v);
    }
    lines_add(all, line, weight);
}

char *world_expected(const world *it)
{
    lines all = { 0 };
    uint32_t at[WORLD_TABLES_MAX] = { 0 }, tables_count = it->shape.tables_count;
    bool more = true;
    for (uint32_t t = 0; t < tables_count; t++) {
        more &= it->rows[t].count > 0;
    }
    while (more) {
        if (joined(it, at)) {
            add_joined(it, at, &all);
        }
        uint32_t t = 0;
        while (t < tables_count && ++at[t] == it->rows[t].count) {
            at[t++] = 0;
        }
        more = t < tables_count;
    }
    return lines_text(&all);
}

bool world_joins(const world *it, const world_changes *changes)
{
    world copy;
    copy.shape = it->shape;
    memcpy(copy.rows, it->rows, sizeof copy.rows);
    cr_assert(world_apply(&copy, changes));
    char *text = world_expected(&copy);
    bool joins = *text;
    free(text);
    return joins;
}

char *world_recomputed(world *it, ivm_plan *plan)
{
    ivm_view *view = world_view(it, "recomputed", plan);
    char *text = world_dump_view(it, view);
    cr_assert_eq(ivm_view_drop(view, &it->error), IVM_OK);
    return text;
}

void world_assert_same(char *got, char *want, const char *what, uint64_t seed)
{
    if (strcmp(got, want) != 0) {
        cr_assert_fail("%s, case %llu:\n-- got\n%s-- want\n%s", what, (unsigned long long)seed, got, want);
    }
    free(got);
    free(want);
}
