/* See join_case.h. */
#include "join_case.h"

#include <criterion/criterion.h>
#include <stdlib.h>

const ivm_type case_types[CASE_COLUMNS] = { IVM_INT64, IVM_INT64, IVM_STRING, IVM_DECIMAL(20, 0) };
static const uint32_t key_columns[CASE_TABLES][3] = { { 1, 0 }, { 1, 0 }, { 2, 1, 0 }, { 0 }, { 0 } }; /* count, then columns */

void case_tables(hand *it, ivm_table *tables[CASE_TABLES])
{
    tables[0] = hand_table(it, "a", case_types, "-???", "c0");
    tables[1] = hand_table(it, "b", case_types, "-?-?", "c0");
    tables[2] = hand_table(it, "c", case_types, "--??", "c1,c0");
    tables[3] = hand_table(it, "d", case_types, "????", NULL);
    tables[4] = hand_table(it, "e", case_types, "----", NULL);
}

/* ---- Expressions -------------------------------------------------------------------------------------------------------------------- */

ivm__expression *case_column(hand *it, uint32_t column, ivm_type type)
{
    return ivm__expression_column(&it->engine->memory, column, type);
}

ivm__expression *case_int64(hand *it, int64_t value)
{
    return ivm__expression_literal(&it->engine->memory, &it->engine->texts, IVM_INT64, false, (ivm__wide)(uint64_t)value);
}

ivm__expression *case_call(hand *it, ivm__function function, ivm_type type, ivm__expression *a, ivm__expression *b)
{
    return ivm__expression_make(&it->engine->memory, function, type, (ivm__expression *[]){ a, b }, 2);
}

/* ---- Drawing ------------------------------------------------------------------------------------------------------------------------- */

static uint32_t column_of_type(const join_case *join, uint32_t leaf, ivm_type type, uint64_t *random)
{
    (void)join;
    uint32_t column = hand_below(random, CASE_COLUMNS);
    while (case_types[column] != type) {
        column = hand_below(random, CASE_COLUMNS);
    }
    return leaf * CASE_COLUMNS + column;
}

void case_draw(join_case *join, uint64_t *random)
{
    *join = (join_case){ .leaves_count = 2 + hand_below(random, CASE_LEAVES_MAX - 1) };
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        join->leaves[i] = (case_leaf){ .table = hand_below(random, CASE_TABLES), .road = hand_below(random, CASE_ROADS) };
    }
    /* mostly connected, so that not all joins are products */
    for (uint32_t i = 1; i < join->leaves_count; i++) {
        for (uint32_t pairs = hand_below(random, 8) ? 1 + hand_below(random, 2) : 0; pairs > 0; pairs--) {
            ivm_type type = case_types[hand_below(random, CASE_COLUMNS)];
            uint32_t from = column_of_type(join, hand_below(random, i), type, random), to = column_of_type(join, i, type, random);
            join->equal[join->equal_count++] = hand_below(random, 2) ? (ivm__probe_key){ from, to } : (ivm__probe_key){ to, from };
        }
    }
    if (hand_below(random, 4) == 0) {
        uint32_t leaf = hand_below(random, join->leaves_count);
        join->equal[join->equal_count++] = (ivm__probe_key){ leaf * CASE_COLUMNS, leaf * CASE_COLUMNS + 1 };
    }
    join->residual = hand_below(random, 3) == 0;
    join->by_equal = hand_below(random, 2) != 0;
    for (uint32_t c = 0; c < join->leaves_count * CASE_COLUMNS; c++) {
        join->above[c] = hand_below(random, 2) != 0;
    }
}

/* ---- Programs -------------------------------------------------------------------------------------------------------------------------- */

static void needed_settle(join_case *join)
{
    bool needed[CASE_LEAVES_MAX * CASE_COLUMNS];
    memcpy(needed, join->above, sizeof needed);
    for (uint32_t i = 0; i < join->equal_count; i++) {
        needed[join->equal[i].from] = needed[join->equal[i].to] = true;
    }
    if (join->residual) {
        needed[0] = needed[CASE_COLUMNS + 1] = true;
    }
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        memcpy(join->leaves[i].needed, needed + (size_t)i * CASE_COLUMNS, CASE_COLUMNS * sizeof(bool));
    }
}

/* c0 < 3 */
static ivm__expression *leaf_condition(hand *it)
{
    return case_call(it, IVM__LESS, IVM_BOOL, case_column(it, 0, IVM_INT64), case_int64(it, 3));
}

static ivm__operator *leaf_operators(const case_leaf *leaf, hand *it, ivm_table *table, ivm__leaf_spec *spec)
{
    ivm__memory *memory = &it->engine->memory;
    ivm__operator *scan, *top;
    *spec = (ivm__leaf_spec){ .columns_count = CASE_COLUMNS, .types = case_types, .needed = leaf->needed };
    if (leaf->road == CASE_BARE) {
        spec->table = table;
        return NULL;
    }
    cr_assert_eq(ivm__scan_create(memory, table, table->heading, &scan), IVM_OK);
    hand_add(it, scan, NULL, 0);
    spec->scan = leaf->road == CASE_FILTER_KEPT ? NULL : scan;
    if (leaf->road == CASE_PROJECT) {
        ivm__expression *columns[CASE_COLUMNS];
        for (uint32_t c = 0; c < CASE_COLUMNS; c++) {
            columns[c] = case_column(it, c < 2 ? 1 - c : c, case_types[c]);
        }
        cr_assert_eq(ivm__project_create(memory, &it->engine->texts, columns, CASE_COLUMNS, &top), IVM_OK);
    } else {
        cr_assert_eq(ivm__filter_create(memory, &it->engine->texts, case_types, CASE_COLUMNS, leaf_condition(it), &top), IVM_OK);
    }
    hand_add(it, top, scan, 0);
    return top;
}

static void probe_add(const join_case *join, ivm__probe_order *order, uint64_t joined, uint32_t leaf, uint64_t *random)
{
    ivm__probe_spec *probe = &order->probes[order->probes_count++];
    ivm__probe_key *keys = calloc(8, sizeof *keys), *equal = calloc(8, sizeof *equal);
    *probe = (ivm__probe_spec){ .leaf = leaf, .keys = keys, .equal = equal };
    for (uint32_t i = 0; i < join->equal_count; i++) {
        uint32_t a = join->equal[i].from, b = join->equal[i].to;
        if (b / CASE_COLUMNS != leaf) {
            uint32_t swapped = a;
            a = b;
            b = swapped;
        }
        if (b / CASE_COLUMNS != leaf || (a / CASE_COLUMNS != leaf && !(joined >> a / CASE_COLUMNS & 1))) {
            continue;
        }
        bool key = a / CASE_COLUMNS != leaf && !(join->by_equal && hand_below(random, 5) == 0);
        for (uint32_t k = 0; k < probe->keys_count; k++) {
            key &= keys[k].to != b % CASE_COLUMNS;
        }
        if (key) {
            keys[probe->keys_count++] = (ivm__probe_key){ a, b % CASE_COLUMNS };
        } else {
            equal[probe->equal_count++] = (ivm__probe_key){ a, b };
        }
    }
}

static void order_make(const join_case *join, uint32_t driver, ivm__probe_order *order, uint64_t *random)
{
    *order = (ivm__probe_order){ .probes = calloc(CASE_LEAVES_MAX, sizeof *order->probes), .equal = calloc(8, sizeof *order->equal) };
    for (uint32_t i = 0; i < join->equal_count; i++) {
        if (join->equal[i].from / CASE_COLUMNS == driver && join->equal[i].to / CASE_COLUMNS == driver) {
            order->equal[order->equal_count++] = join->equal[i];
        }
    }
    for (uint64_t joined = 1ull << driver; order->probes_count + 1 < join->leaves_count;) {
        uint32_t leaf = hand_below(random, join->leaves_count);
        if (!(joined >> leaf & 1)) {
            probe_add(join, order, joined, leaf, random);
            joined |= 1ull << leaf;
        }
    }
}

static void order_free(ivm__probe_order *order)
{
    for (uint32_t p = 0; p < order->probes_count; p++) {
        free((void *)order->probes[p].keys);
        free((void *)order->probes[p].equal);
    }
    free(order->probes);
    free(order->equal);
}

static ivm__expression *residual_make(hand *it)
{
    ivm__expression *left = case_call(it, IVM__MULTIPLY, IVM_INT64, case_column(it, 0, IVM_INT64), case_int64(it, 1ll << 61));
    ivm__expression *right =
        case_call(it, IVM__MULTIPLY, IVM_INT64, case_column(it, CASE_COLUMNS + 1, IVM_INT64), case_int64(it, 1ll << 61));
    return case_call(it, IVM__LESS_EQUAL, IVM_BOOL, left, right);
}

static void join_add(join_case *join, hand *it, const ivm__leaf_spec *leaves, ivm__operator *const *below, uint64_t *random)
{
    ivm__probe_order orders[CASE_LEAVES_MAX];
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        order_make(join, i, &orders[i], random);
    }
    join->planner = calloc(1, sizeof *join->planner);
    *join->planner = (case_planner){ .rule = hand_below(random, CASE_RULES),
                                     .skip_empty = hand_below(random, 3) != 0,
                                     .random = hand_random(random) | 1,
                                     .freed = &join->freed };
    ivm__join_spec spec = {
        .leaves = leaves,
        .leaves_count = join->leaves_count,
        .orders = orders,
        .needed_above = join->above,
        .residual = join->residual ? residual_make(it) : NULL,
        .planner = case_planner_of(join->planner),
    };
    cr_assert_eq(ivm__join_create(&it->engine->memory, &it->engine->texts, it->engine->seed, &spec, &join->join), IVM_OK);
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        if (below[i]) {
            below[i]->next = join->join;
            below[i]->next_port = i;
        }
        order_free(&orders[i]);
    }
    hand_add(it, join->join, NULL, 0);
}

/* The columns needed above, and one more of which there is always one. */
static void root_add(join_case *join, hand *it)
{
    ivm__memory *memory = &it->engine->memory;
    ivm__expression *columns[CASE_LEAVES_MAX * CASE_COLUMNS + 1];
    ivm_type types[CASE_LEAVES_MAX * CASE_COLUMNS + 1];
    uint32_t count = 0;
    for (uint32_t c = 0; c < join->leaves_count * CASE_COLUMNS; c++) {
        if (join->above[c]) {
            types[count] = case_types[c % CASE_COLUMNS];
            columns[count++] = case_column(it, c, case_types[c % CASE_COLUMNS]);
        }
    }
    types[count] = IVM_INT64;
    columns[count++] = case_int64(it, 7);
    ivm__operator *project;
    cr_assert_eq(ivm__project_create(memory, &it->engine->texts, columns, count, &project), IVM_OK);
    hand_add(it, project, join->join, 0);
    cr_assert_eq(ivm__materialize_create(memory, &it->engine->texts, it->engine->seed, types, count, &join->root), IVM_OK);
    hand_add(it, join->root, project, 0);
    join->columns_count = count;
}

/* Rows that are set aside lie in a leaf's own store, too, and no two of them share a key: its columns are kept, as foreign keys equate them. */
static bool keeps_key(const case_leaf *leaf)
{
    bool keeps = key_columns[leaf->table][0] > 0 && leaf->road != CASE_FILTER_KEPT;
    for (uint32_t k = 0; k < key_columns[leaf->table][0]; k++) {
        uint32_t c = key_columns[leaf->table][k + 1];
        keeps &= leaf->road == CASE_BARE || leaf->needed[leaf->road == CASE_PROJECT && c < 2 ? 1 - c : c];
    }
    return keeps;
}

void case_program(join_case *join, hand *it, ivm_table *const tables[CASE_TABLES], uint64_t *random)
{
    ivm__leaf_spec leaves[CASE_LEAVES_MAX];
    ivm__operator *below[CASE_LEAVES_MAX];
    needed_settle(join);
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        below[i] = leaf_operators(&join->leaves[i], it, tables[join->leaves[i].table], &leaves[i]);
    }
    join_add(join, it, leaves, below, random);
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        join->planner->tables[i] = keeps_key(&join->leaves[i]) ? tables[join->leaves[i].table] : NULL;
    }
    root_add(join, it);
}

/* ---- The oracle ------------------------------------------------------------------------------------------------------------------------ */

static bool leaf_row(const case_leaf *leaf, const hand_row *from, hand_row *row)
{
    *row = *from;
    if (leaf->road == CASE_FILTER || leaf->road == CASE_FILTER_KEPT) {
        return !from->nulls[0] && from->cells[0] < 3;
    }
    if (leaf->road == CASE_PROJECT) {
        row->cells[0] = from->cells[1];
        row->nulls[0] = from->nulls[1];
        row->cells[1] = from->cells[0];
        row->nulls[1] = from->nulls[0];
    }
    return true;
}

static bool row_joins(const join_case *join, const hand_row *row)
{
    for (uint32_t i = 0; i < join->equal_count; i++) {
        uint32_t a = join->equal[i].from, b = join->equal[i].to;
        if (row->nulls[a] || row->nulls[b] || row->cells[a] != row->cells[b]) {
            return false;
        }
    }
    return true;
}

static void joined_row(const join_case *join, const hand_row *row, hand_bag *out, bool *failing)
{
    if (!row_joins(join, row)) {
        return;
    }
    if (join->residual) {
        uint32_t right = CASE_COLUMNS + 1;
        bool fails = (!row->nulls[0] && row->cells[0] >= 4) || (!row->nulls[right] && row->cells[right] >= 4);
        *failing |= fails;
        if (fails || row->nulls[0] || row->nulls[right] || row->cells[0] > row->cells[right]) {
            return;
        }
    }
    hand_row kept = { .weight = row->weight };
    uint32_t count = 0;
    for (uint32_t c = 0; c < join->leaves_count * CASE_COLUMNS; c++) {
        if (join->above[c]) {
            kept.cells[count] = row->cells[c];
            kept.nulls[count++] = row->nulls[c];
        }
    }
    kept.cells[count++] = 7;
    hand_bag_add(out, &kept);
}

static void nested_loop(const join_case *join, const hand_bag tables[CASE_TABLES], uint32_t leaf, const hand_row *joined, hand_bag *out,
                        bool *failing)
{
    if (leaf == join->leaves_count || leaf == CASE_LEAVES_MAX) {
        joined_row(join, joined, out, failing);
        return;
    }
    const hand_bag *table = &tables[join->leaves[leaf].table];
    for (size_t i = 0; i < table->count; i++) {
        hand_row row, next = *joined;
        if (leaf_row(&join->leaves[leaf], &table->rows[i], &row)) {
            memcpy(next.cells + (size_t)leaf * CASE_COLUMNS, row.cells, CASE_COLUMNS * sizeof *row.cells);
            memcpy(next.nulls + (size_t)leaf * CASE_COLUMNS, row.nulls, CASE_COLUMNS * sizeof *row.nulls);
            next.weight *= row.weight;
            nested_loop(join, tables, leaf + 1, &next, out, failing);
        }
    }
}

void case_oracle(const join_case *join, const hand_bag tables[CASE_TABLES], hand_bag *out, bool *failing)
{
    hand_row none = { .weight = 1 };
    *out = (hand_bag){ .columns_count = join->columns_count };
    *failing = false;
    nested_loop(join, tables, 0, &none, out, failing);
}

/* ---- Batches ----------------------------------------------------------------------------------------------------------------------------- */

bool case_same_key(uint32_t table, const hand_row *a, const hand_row *b)
{
    for (uint32_t k = 0; k < key_columns[table][0]; k++) {
        uint32_t c = key_columns[table][k + 1];
        if (a->cells[c] != b->cells[c]) {
            return false;
        }
    }
    return key_columns[table][0] > 0;
}

static void draw_row(const ivm_table *table, hand_row *row, uint64_t *random)
{
    *row = (hand_row){ .weight = 1 };
    for (uint32_t c = 0; c < CASE_COLUMNS; c++) {
        row->nulls[c] = table->columns[c].nullable && hand_below(random, 5) == 0;
        row->cells[c] = row->nulls[c] ? 0 : hand_below(random, hand_below(random, 40) ? 4 : 5);
    }
}

static void change(ivm_batch *batch, ivm_table *table, hand_bag *bag, const hand_row *row, int64_t weight)
{
    hand_change(batch, table, *row, weight);
    hand_row added = *row;
    added.weight = weight;
    hand_bag_add(bag, &added);
}

static void table_changes(ivm_batch *batch, ivm_table *const tables[CASE_TABLES], hand_bag bags[CASE_TABLES], uint32_t t, uint64_t *random)
{
    hand_bag *bag = &bags[t];
    bool grow = hand_below(random, 3) || bag->count == 0;
    for (uint32_t n = 1 + hand_below(random, 5); n > 0; n--) {
        size_t count = bag->count, victim = count ? hand_below(random, (uint32_t)count) : 0;
        hand_row row;
        if (count > 0 && (!grow || count > 7 || hand_below(random, 3) == 0)) {
            hand_row gone = bag->rows[victim];
            int64_t weight = hand_below(random, 2) ? 1 : (int64_t)gone.weight;
            change(batch, tables[t], bag, &gone, -weight);
            hand_bag_settle(bag);
        }
        draw_row(tables[t], &row, random);
        bool twin = false;
        for (size_t i = 0; i < bag->count; i++) {
            twin |= case_same_key(t, &bag->rows[i], &row);
        }
        if (!twin && grow) {
            change(batch, tables[t], bag, &row, key_columns[t][0] ? 1 : 1 + hand_below(random, 3));
            hand_bag_settle(bag);
        }
    }
}

void case_batch(ivm_batch *batch, ivm_table *const tables[CASE_TABLES], hand_bag bags[CASE_TABLES], uint64_t *random)
{
    uint32_t changed = hand_below(random, 1u << CASE_TABLES);
    for (uint32_t t = 0; t < CASE_TABLES; t++) {
        if (changed >> t & 1) {
            table_changes(batch, tables, bags, t, random);
        }
    }
}
