/* Windows over the canonical order.
 *
 *     all rows fit:  one window        else:  bounds from a random sample, window i = the rows after bound i - 1 up to bound i
 *
 * A window that overflows all the same is sorted, its equal rows become one, and where that is not enough its upper half goes: the window then
 * ends at the greatest row that stays, and the next one begins there. So bounds decide what windows cost, never what comes out. Cost: N rows of
 * which W fit take about 4/3 N / W passes, some 10 ns a row and pass, and the sorting of each row once. */
#include "row_order.h"

#include "weights.h"

#define WINDOW_MIN 16u
#define WINDOW_SMALL 4096u /* with less memory than that it is given up */
#define SAMPLED_PER_WINDOW 32u
#define PREFETCH_AHEAD 12u

static const uint8_t *row_at(const ivm__row_order *order, ivm__row_id row)
{
    return ivm__row_pages_at(&order->sorter.rows, row);
}

static ivm_status window_make(ivm__row_order *order, size_t wanted)
{
    uint32_t capacity = wanted > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)wanted;
    for (;; capacity /= 2) {
        size_t size = capacity * sizeof *order->entries;
        order->entries = ivm__allocate(order->memory, size);
        order->sorter.other = order->entries ? ivm__allocate(order->memory, size) : NULL;
        if (order->sorter.other) {
            order->capacity = capacity;
            return IVM_OK;
        }
        ivm__release(order->memory, order->entries, size);
        order->entries = NULL;
        if (capacity < 2 * WINDOW_SMALL) {
            return IVM_OUT_OF_MEMORY;
        }
    }
}

/* ---- Bounds ----------------------------------------------------------------------------------------------------------------------------- */

/* Rows drawn among the ids: enough for windows of three quarters of what fits. */
static void sample_take(ivm__row_order *order, uint32_t wanted)
{
    const ivm__row_pages *rows = &order->sorter.rows;
    uint64_t state = 0x9e3779b97f4a7c15ull;
    for (uint32_t tries = 4 * wanted; tries && order->count < wanted; tries--) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        ivm__row_id row = rows->first + (ivm__row_id)((state >> 32) * (rows->end - rows->first) >> 32);
        const uint8_t *at = row_at(order, row);
        if (ivm__row_pages_has(at)) {
            order->entries[order->count++] = (ivm__row_entry){ ivm__row_sorter_image(&order->sorter, at), row, 0, 0 };
        }
    }
}

static ivm_status bounds_make(ivm__row_order *order)
{
    uint64_t windows = order->sorter.rows.rows_count / (order->capacity / 4 * 3) + 1;
    uint64_t wanted = windows * SAMPLED_PER_WINDOW < order->capacity ? windows * SAMPLED_PER_WINDOW : order->capacity;
    windows = windows < wanted ? windows : wanted;
    order->bounds = ivm__allocate(order->memory, windows * sizeof *order->bounds);
    if (!order->bounds) {
        return IVM_OUT_OF_MEMORY;
    }
    order->bounds_capacity = (uint32_t)windows;
    sample_take(order, (uint32_t)wanted);
    IVM_TRY(ivm__row_sorter_sort(&order->sorter, order->entries, order->count));
    for (uint64_t i = 1, last = 0; i < windows; i++) {
        uint64_t place = i * order->count / windows;
        while (place < order->count && order->entries[place].equal) {
            place++;
        }
        if (place > last && place < order->count) {
            order->bounds[order->bounds_count++] = order->entries[place].row;
            last = place;
        }
    }
    order->count = 0;
    return IVM_OK;
}

ivm_status ivm__row_order_init(ivm__row_order *order, ivm__memory *memory, const ivm__row_pages *rows, const uint32_t *columns,
                               uint32_t columns_count, size_t sort_bytes)
{
    *order = (ivm__row_order){ .memory = memory };
    order->sorter.rows = *rows;
    order->sorter.columns = columns;
    order->sorter.columns_count = columns_count;
    uint64_t fit = sort_bytes / (2 * sizeof *order->entries), count = rows->rows_count;
    count = count < rows->end - rows->first ? count : rows->end - rows->first;
    order->sorter.rows.rows_count = count;
    if (!count) {
        order->done = true;
        return IVM_OK;
    }
    fit = fit < WINDOW_MIN ? WINDOW_MIN : fit;
    IVM_TRY(window_make(order, (size_t)(count < fit ? count : fit)));
    return count > order->capacity ? bounds_make(order) : IVM_OK;
}

void ivm__row_order_deinit(ivm__row_order *order)
{
    if (order->memory) {
        ivm__release(order->memory, order->entries, order->capacity * sizeof *order->entries);
        ivm__release(order->memory, order->sorter.other, order->capacity * sizeof *order->entries);
        ivm__release(order->memory, order->sums, order->sums_capacity * sizeof *order->sums);
        ivm__release(order->memory, order->bounds, order->bounds_capacity * sizeof *order->bounds);
    }
    *order = (ivm__row_order){ 0 };
}

/* ---- Filling a window ------------------------------------------------------------------------------------------------------------------- */

/* A row that a window ends at. */
typedef struct limit {
    ivm__row_id row;
    const uint8_t *at; /* NULL: none */
    uint64_t image;
} limit;

static limit limit_of(const ivm__row_order *order, bool some, ivm__row_id row)
{
    const uint8_t *at = some ? row_at(order, row) : NULL;
    return (limit){ row, at, at ? ivm__row_sorter_image(&order->sorter, at) : 0 };
}

/* Whether the row is past the limit. */
static inline bool is_past(const ivm__row_order *order, const limit *it, uint64_t image, const uint8_t *at)
{
    return image != it->image ? image > it->image : ivm__row_sorter_compare(&order->sorter, at, it->at, 0) > 0;
}

static ivm__weight entry_weight(const ivm__row_order *order, const ivm__row_entry *entry)
{
    return entry->sum ? order->sums[entry->sum - 1] : ivm__row_pages_weight(&order->sorter.rows, entry->row, row_at(order, entry->row));
}

/* The first entry and those equal to it: *end is behind the last. Where the sorter finds the call cancelled it says nothing. */
static ivm__weight group_weight(ivm__row_order *order, uint32_t first, uint32_t *end)
{
    ivm__weight weight = entry_weight(order, &order->entries[first]);
    for (*end = first + 1; *end < order->count && order->entries[*end].equal && !ivm__row_sorter_ends(&order->sorter, *end); ++*end) {
        weight += entry_weight(order, &order->entries[*end]);
    }
    return weight;
}

/* Equal rows become one, the first of them; their sums are written anew. */
static ivm_status equals_merge(ivm__row_order *order)
{
    ivm__weight *sums = NULL;
    uint32_t sums_count = 0, sums_capacity = 0, kept = 0;
    ivm_status status = IVM_OK;
    for (uint32_t first = 0, end; first < order->count; first = end) {
        ivm__row_entry entry = order->entries[first];
        ivm__weight weight = group_weight(order, first, &end);
        bool summed = end - first > 1 || entry.sum;
        status = order->sorter.cancelled ? IVM_CANCELLED : IVM_OK;
        if (status == IVM_OK && summed && sums_count == sums_capacity) {
            status = ivm__grow(order->memory, (void **)&sums, &sums_capacity, sums_count + 1ull, sizeof *sums);
        }
        if (status != IVM_OK) {
            ivm__release(order->memory, sums, sums_capacity * sizeof *sums);
            return status;
        }
        if (summed && weight) {
            sums[sums_count++] = weight;
            entry.sum = sums_count;
        }
        entry.image = ivm__row_sorter_image(&order->sorter, row_at(order, entry.row)); /* sorting left another column's */
        order->entries[kept] = entry;
        kept += weight != 0;
    }
    ivm__release(order->memory, order->sums, order->sums_capacity * sizeof *order->sums);
    order->sums = sums;
    order->sums_count = sums_count;
    order->sums_capacity = sums_capacity;
    order->count = kept;
    return IVM_OK;
}

/* The window is full and more rows are to come: room is made, and where equal rows alone make too little the window ends earlier. */
static ivm_status window_cut(ivm__row_order *order, limit *upper, bool *cut)
{
    IVM_TRY(ivm__row_sorter_sort(&order->sorter, order->entries, order->count));
    IVM_TRY(equals_merge(order));
    if (order->count > order->capacity / 4 * 3) {
        order->count = order->capacity / 2;
        *upper = limit_of(order, true, order->entries[order->count - 1].row);
        *cut = true;
    }
    return IVM_OK;
}

/* Fills the next window, which may come out empty, and sorts it. */
static ivm_status window_fill(ivm__row_order *order)
{
    const ivm__row_pages *rows = &order->sorter.rows;
    bool bounded = order->bound < order->bounds_count, cut = false;
    limit lower = limit_of(order, order->some, order->lower);
    limit upper = limit_of(order, bounded, bounded ? order->bounds[order->bound] : 0);
    order->count = order->at = order->sums_count = 0;
    const uint8_t *at = NULL;
    for (ivm__row_id row = rows->first; row < rows->end; row++) {
        at = ivm__row_pages_next(rows, row, at);
        if (ivm__row_sorter_ends(&order->sorter, row)) {
            return IVM_CANCELLED;
        }
        if (!ivm__row_pages_has(at)) {
            continue;
        }
        uint64_t image = ivm__row_sorter_image(&order->sorter, at);
        if ((lower.at && !is_past(order, &lower, image, at)) || (upper.at && is_past(order, &upper, image, at))) {
            continue;
        }
        if (ivm__unlikely(order->count == order->capacity)) {
            IVM_TRY(window_cut(order, &upper, &cut));
            if (upper.at && is_past(order, &upper, image, at)) {
                continue;
            }
        }
        order->entries[order->count++] = (ivm__row_entry){ .image = image, .row = row };
    }
    IVM_TRY(ivm__row_sorter_sort(&order->sorter, order->entries, order->count));
    order->bound += bounded && !cut;
    order->some = true;
    order->lower = upper.row;
    order->done = !upper.at;
    return IVM_OK;
}

ivm_status ivm__row_order_next(ivm__row_order *order, uint32_t capacity, ivm__row_id *rows, int64_t *weights, uint32_t *count)
{
    *count = 0;
    while (*count < capacity && (order->at < order->count || !order->done)) {
        if (order->at == order->count) {
            IVM_TRY(window_fill(order));
            continue;
        }
        if (order->at + PREFETCH_AHEAD < order->count) {
            __builtin_prefetch(row_at(order, order->entries[order->at + PREFETCH_AHEAD].row));
        }
        uint32_t first = order->at;
        ivm__weight weight = group_weight(order, first, &order->at);
        if (ivm__unlikely(order->sorter.cancelled)) {
            return IVM_CANCELLED;
        }
        if (!ivm__weight_fits(weight)) {
            return IVM_OVERFLOW;
        }
        rows[*count] = order->entries[first].row;
        weights[*count] = (int64_t)weight;
        *count += weight != 0;
    }
    return IVM_OK;
}
