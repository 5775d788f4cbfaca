/* Bags of rows, compared without regard to order. Columns that are compared exactly make a sort key; rows of one weight and key stand
 * together in both bags, and among those float64 columns may differ by a relative 1e-12. Such a group is matched in sorted order, and
 * row by row where that fails. Cost: two sorts, n log n; groups that differ cost the product of their sizes. */
#include "replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEAR 1e-12

void bag_add(row_bag *bag, bag_row row)
{
    bag->rows = memory_room(bag->rows, bag->rows_count, &bag->rows_capacity, sizeof *bag->rows);
    bag->rows[bag->rows_count++] = row;
}

ivm_status bag_take(row_bag *bag, ivm_snapshot *snapshot, const bag_columns *columns, piece_arena *memory)
{
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t r = 0; r < rows.rows_count; r++) {
            ivm_value *cells = arena_take(memory, (columns->count + 1) * sizeof *cells);
            for (size_t i = 0; i < columns->count; i++) {
                cells[i] = ivm_rows_value(&rows, columns->types[i], r, i);
                if (!cells[i].is_null && columns->types[i] == IVM_STRING) {
                    cells[i].as.string.bytes = arena_text(memory, cells[i].as.string.bytes, cells[i].as.string.size);
                }
            }
            bag_add(bag, (bag_row){ rows.weights ? rows.weights[r] : 1, cells, NULL });
        }
    }
    return ivm_snapshot_status(snapshot);
}

void bag_free(row_bag *bag)
{
    free(bag->rows);
    *bag = (row_bag){ 0 };
}

/* ---- Order --------------------------------------------------------------------------------------------------------------------- */

static int float64_compare(double a, double b)
{
    if (isnan(a) || isnan(b)) {
        return isnan(a) - isnan(b);
    }
    return (a > b) - (a < b);
}

static int string_compare(const ivm_value *a, const ivm_value *b)
{
    size_t a_size = a->as.string.size, b_size = b->as.string.size, size = a_size < b_size ? a_size : b_size;
    int order = size ? memcmp(a->as.string.bytes, b->as.string.bytes, size) : 0;
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

static int decimal_compare(ivm_int128 a, ivm_int128 b)
{
    if (a.high != b.high) {
        return a.high < b.high ? -1 : 1;
    }
    return (a.low > b.low) - (a.low < b.low);
}

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int cell_compare(ivm_type type, const ivm_value *a, const ivm_value *b)
{
    if (a->is_null || b->is_null) {
        return a->is_null - b->is_null;
    }
    switch (IVM_TYPE_KIND(type)) {
    case IVM_BOOL:
        return a->as.boolean - b->as.boolean;
    case IVM_INT64:
        return ORDER(a->as.int64, b->as.int64);
    case IVM_FLOAT64:
        return float64_compare(a->as.float64, b->as.float64);
    case IVM_STRING:
        return string_compare(a, b);
    case IVM_DATE:
        return ORDER(a->as.date, b->as.date);
    case IVM_TIMESTAMP:
        return ORDER(a->as.timestamp, b->as.timestamp);
    default:
        return decimal_compare(a->as.decimal, b->as.decimal);
    }
}

static int cells_compare(const bag_columns *columns, bool near, const bag_row *a, const bag_row *b)
{
    for (size_t i = 0; i < columns->count; i++) {
        int order = columns->near[i] == near ? cell_compare(columns->types[i], &a->cells[i], &b->cells[i]) : 0;
        if (order) {
            return order;
        }
    }
    return 0;
}

/* By weight, then by the columns that must be equal; 0 for rows that may match. Rows without cells come last. */
static int group_compare(const bag_columns *columns, const bag_row *a, const bag_row *b)
{
    if (!a->cells || !b->cells) {
        return !a->cells - !b->cells;
    }
    return a->weight != b->weight ? ORDER(a->weight, b->weight) : cells_compare(columns, false, a, b);
}

static int match_order(const void *a, const void *b, void *columns)
{
    int order = group_compare(columns, a, b);
    return order || !((const bag_row *)a)->cells ? order : cells_compare(columns, true, a, b);
}

static int row_order(const void *a, const void *b, void *columns)
{
    int order = cells_compare(columns, false, a, b);
    return order ? order : cells_compare(columns, true, a, b);
}

static void rows_sort(row_bag *bag, int (*order)(const void *, const void *, void *), const bag_columns *columns)
{
    if (bag->rows_count) {
        qsort_r(bag->rows, bag->rows_count, sizeof *bag->rows, order, (void *)columns);
    }
}

/* ---- Net ----------------------------------------------------------------------------------------------------------------------- */

static void rows_repeat(row_bag *bag)
{
    row_bag repeated = { 0 };
    for (size_t i = 0; i < bag->rows_count; i++) {
        bag_row row = bag->rows[i];
        bool listed = row.weight > 0 && row.weight <= WEIGHT_LISTED_MAX;
        int64_t times = listed ? row.weight : 1;
        row.weight = listed ? 1 : row.weight;
        for (int64_t k = 0; k < times; k++) {
            bag_add(&repeated, row);
        }
    }
    bag_free(bag);
    *bag = repeated;
}

void bag_net(row_bag *bag, const bag_columns *columns, bool repeat)
{
    size_t kept = 0;
    rows_sort(bag, row_order, columns);
    for (size_t i = 0; i < bag->rows_count;) {
        bag_row row = bag->rows[i++];
        for (; i < bag->rows_count && row_order(&row, &bag->rows[i], (void *)columns) == 0; i++) {
            row.weight += bag->rows[i].weight;
        }
        if (row.weight) {
            bag->rows[kept++] = row;
        }
    }
    bag->rows_count = kept;
    if (repeat) {
        rows_repeat(bag);
    }
}

/* ---- Matching ------------------------------------------------------------------------------------------------------------------ */

static bool float64_near(double a, double b)
{
    if (isnan(a) || isnan(b)) {
        return isnan(a) && isnan(b);
    }
    return a == b || (isfinite(a) && isfinite(b) && fabs(a - b) <= NEAR * fmax(fabs(a), fabs(b)));
}

/* Whether two rows of one group match: only float64 columns can be near. */
static bool rows_near(const bag_columns *columns, const bag_row *a, const bag_row *b)
{
    for (size_t i = 0; i < columns->count; i++) {
        const ivm_value *x = &a->cells[i], *y = &b->cells[i];
        if (columns->near[i] && (x->is_null != y->is_null || (!x->is_null && !float64_near(x->as.float64, y->as.float64)))) {
            return false;
        }
    }
    return true;
}

static void kept_move(row_bag *bag, size_t *kept, size_t first, size_t count)
{
    if (count && *kept != first) {
        memmove(bag->rows + *kept, bag->rows + first, count * sizeof *bag->rows);
    }
    *kept += count;
}

static void row_remove(bag_row *rows, size_t *count, size_t at)
{
    memmove(rows + at, rows + at + 1, (*count - at - 1) * sizeof *rows);
    --*count;
}

/* Removes the pairs of a group that match; both counts shrink to what is left. */
static void group_match(const bag_columns *columns, bag_row *want, size_t *want_count, bag_row *got, size_t *got_count)
{
    size_t paired = 0;
    if (*want_count == *got_count) {
        while (paired < *want_count && rows_near(columns, &want[paired], &got[paired])) {
            paired++;
        }
        if (paired == *want_count) {
            *want_count = *got_count = 0;
            return;
        }
    }
    for (size_t i = 0; i < *want_count;) {
        size_t k = 0;
        while (k < *got_count && !rows_near(columns, &want[i], &got[k])) {
            k++;
        }
        if (k == *got_count) {
            i++;
        } else {
            row_remove(want, want_count, i);
            row_remove(got, got_count, k);
        }
    }
}

static size_t group_end(const row_bag *bag, size_t first, const bag_row *of, const bag_columns *columns)
{
    size_t end = first;
    while (end < bag->rows_count && group_compare(columns, &bag->rows[end], of) == 0) {
        end++;
    }
    return end;
}

void bag_cancel(row_bag *want, row_bag *got, const bag_columns *columns)
{
    size_t w = 0, g = 0, want_kept = 0, got_kept = 0;
    rows_sort(want, match_order, columns);
    rows_sort(got, match_order, columns);
    while (w < want->rows_count && want->rows[w].cells && g < got->rows_count) {
        int order = group_compare(columns, &want->rows[w], &got->rows[g]);
        const bag_row *of = order <= 0 ? &want->rows[w] : &got->rows[g];
        size_t w_end = order <= 0 ? group_end(want, w, of, columns) : w;
        size_t g_end = order >= 0 ? group_end(got, g, of, columns) : g;
        size_t want_left = w_end - w, got_left = g_end - g;
        if (order == 0) {
            group_match(columns, want->rows + w, &want_left, got->rows + g, &got_left);
        }
        kept_move(want, &want_kept, w, want_left);
        kept_move(got, &got_kept, g, got_left);
        w = w_end;
        g = g_end;
    }
    kept_move(want, &want_kept, w, want->rows_count - w);
    kept_move(got, &got_kept, g, got->rows_count - g);
    want->rows_count = want_kept;
    got->rows_count = got_kept;
}
