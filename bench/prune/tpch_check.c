/* Checking the views of `ivm bench tpch`; see tpch.h. Every one against the library's own audit; q1 and q6 against loops that share nothing with it. */
#include "tpch.h"

#include <string.h>

#define SHIPPED_UNTIL 10471 /* 1998-09-02 */
#define YEAR_FROM 8766      /* 1994-01-01 */
#define YEAR_TO 9131        /* 1995-01-01 */

typedef struct q1_group {
    __int128 quantity, price, discounted, charge; /* in units of 10^-2, 10^-2, 10^-4, 10^-6 */
    int64_t count;
} q1_group;

static uint64_t audit_unequal(ivm_view *view)
{
    ivm_snapshot *differences;
    ivm_error error = IVM_ERROR_INIT;
    tpch_must(ivm_audit_view(view, &differences, &error), &error);
    uint64_t rows = ivm_snapshot_rows_count(differences);
    ivm_snapshot_close(differences);
    return rows;
}

/* ---- Loops --------------------------------------------------------------------------------------------------------------------- */

/* R F, A F, N F, N O: the only pairs of flag and status there are, but for R O and A O, which cannot be. */
static int q1_number(char flag, char status)
{
    return flag == 'R' ? 0 : flag == 'A' ? 1 : status == 'F' ? 2 : 3;
}

static void line_add(const tpch_line *line, q1_group *groups, __int128 *q6)
{
    if (line->ship <= SHIPPED_UNTIL) {
        q1_group *group = &groups[q1_number((char)line->flag, *tpch_status(line))];
        int64_t discounted = line->price * (100 - line->discount);
        group->quantity += 100 * line->quantity;
        group->price += line->price;
        group->discounted += discounted;
        group->charge += (__int128)discounted * (100 + line->tax);
        group->count++;
    }
    if (line->ship >= YEAR_FROM && line->ship < YEAR_TO && line->discount >= 5 && line->discount <= 7 && line->quantity < 24) {
        *q6 += line->price * line->discount;
    }
}

/* ---- Reading ------------------------------------------------------------------------------------------------------------------- */

static __int128 decimal_cell(const ivm_snapshot *snapshot, const ivm_rows *rows, size_t row, size_t column, unsigned scale)
{
    ivm_type type = ivm_snapshot_column_type(snapshot, column);
    ivm_value value = ivm_rows_value(rows, type, row, column);
    if (IVM_TYPE_KIND(type) != IVM_DECIMAL_KIND || IVM_TYPE_SCALE(type) != scale || value.is_null) {
        return -1;
    }
    return (__int128)(((unsigned __int128)(uint64_t)value.as.decimal.high << 64) | value.as.decimal.low);
}

static uint64_t q1_unequal(ivm_view *view, q1_group *groups)
{
    ivm_snapshot *snapshot;
    ivm_error error = IVM_ERROR_INIT;
    ivm_rows rows;
    uint64_t unequal = 0;
    tpch_must(ivm_read_view(view, &snapshot, &error), &error);
    while (ivm_snapshot_next(snapshot, &rows)) {
        for (size_t r = 0; r < rows.rows_count; r++) {
            ivm_value flag = ivm_rows_value(&rows, IVM_STRING, r, 0), status = ivm_rows_value(&rows, IVM_STRING, r, 1);
            q1_group *group = &groups[q1_number(*flag.as.string.bytes, *status.as.string.bytes)];
            unequal +=
                decimal_cell(snapshot, &rows, r, 2, 2) != group->quantity || decimal_cell(snapshot, &rows, r, 3, 2) != group->price ||
                decimal_cell(snapshot, &rows, r, 4, 4) != group->discounted || decimal_cell(snapshot, &rows, r, 5, 6) != group->charge ||
                ivm_rows_value(&rows, IVM_INT64, r, 9).as.int64 != group->count;
            group->count = 0;
        }
    }
    ivm_snapshot_close(snapshot);
    for (int g = 0; g < 4; g++) {
        unequal += groups[g].count != 0;
    }
    return unequal;
}

static uint64_t q6_unequal(ivm_view *view, __int128 sum)
{
    ivm_snapshot *snapshot;
    ivm_error error = IVM_ERROR_INIT;
    ivm_rows rows;
    tpch_must(ivm_read_view(view, &snapshot, &error), &error);
    bool one = ivm_snapshot_next(snapshot, &rows) && rows.rows_count == 1;
    bool null = one && ivm_rows_value(&rows, ivm_snapshot_column_type(snapshot, 0), 0, 0).is_null;
    bool equal = one && (null ? sum == 0 : decimal_cell(snapshot, &rows, 0, 0, 4) == sum);
    ivm_snapshot_close(snapshot);
    return !equal;
}

uint64_t tpch_unequal(tpch_engine *engine, const tpch_data *data, uint32_t first, uint32_t end)
{
    q1_group groups[4] = { { 0 } };
    __int128 q6 = 0;
    uint64_t unequal = 0;
    for (uint32_t i = first; i < end; i++) {
        for (uint32_t l = 0; l < data->orders[i].lines_count; l++) {
            line_add(&data->lines[data->orders[i].line_first + l], groups, &q6);
        }
    }
    for (int q = 0; q < TPCH_QUERIES; q++) {
        ivm_view *view = engine->views[q];
        if (view) {
            unequal += audit_unequal(view);
            unequal += strcmp(tpch_queries[q].name, "q1") == 0   ? q1_unequal(view, groups)
                       : strcmp(tpch_queries[q].name, "q6") == 0 ? q6_unequal(view, q6)
                                                                 : 0;
        }
    }
    return unequal;
}
