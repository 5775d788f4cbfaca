/* Walks over a store's rows: all of them under a reading, what the step changed so far, what the last step changed; and reading a column of
 * chosen rows. A walk is resumed by one number, so that its caller takes as many rows at a time as it has room for.
 * Cost: a scan visits every id ever given; changes visit the touched and the appended rows alone. */
#include "store_inside.h"

#define PREFETCH_AHEAD 16u

uint32_t ivm__store_scan(const ivm__store *store, ivm__reading reading, uint32_t *next, uint32_t capacity, ivm__row_id *rows,
                         ivm__weight *weights)
{
    ivm__row_id end = reading == IVM__READ_OLD ? store->step_end : store->rows_end;
    ivm__row_id row = *next;
    uint32_t count = 0;
    for (; row < end && count < capacity; row++) {
        ivm__weight weight = ivm__store_weight(store, row, reading);
        rows[count] = row;
        weights[count] = weight;
        count += weight != 0;
    }
    *next = row;
    return count;
}

ivm__weight ivm__store_weights_sum(const ivm__store *store)
{
    ivm__row_id rows[64];
    ivm__weight weights[64], sum = 0;
    uint32_t next = 0, count;
    while ((count = ivm__store_scan(store, IVM__READ_CUR, &next, 64, rows, weights)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            sum += weights[i];
        }
    }
    return sum;
}

/* Rows set aside may be there under any reading. */
uint32_t ivm__store_scan_aside(const ivm__store *store, ivm__reading reading, const ivm__aside *aside, uint32_t *next, uint32_t capacity,
                               ivm__row_id *rows, ivm__weight *weights)
{
    ivm__row_id row = *next;
    uint32_t count = 0;
    for (; row < store->rows_end && count < capacity; row++) {
        ivm__weight weight = ivm__store_weight_aside(store, row, reading, aside);
        rows[count] = row;
        weights[count] = weight;
        count += weight != 0;
    }
    *next = row;
    return count;
}

/* Rows from *row on that no touch tells of: what they weigh is what they changed by. In a store that is laid over, some of them may be heavy
 * and others gone again. */
static uint32_t appended_walk(const ivm__store *store, ivm__row_id *row, ivm__row_id end, uint32_t capacity, ivm__row_id *rows,
                              ivm__weight *weights)
{
    uint32_t count = 0;
    for (; *row < end && count < capacity; (*row)++) {
        ivm__row_header header = ivm__row_header_of(ivm__store_row(store, *row));
        if (header == 0 || ivm__header_is_touch(header)) {
            continue;
        }
        int32_t weight = ivm__header_weight(header);
        rows[count] = *row;
        weights[count++] = ivm__likely(weight != IVM__WEIGHT_HEAVY) ? weight : ivm__store_heavy(store, *row);
    }
    return count;
}

/* Touches of rows before `end` that came to something, from *next on. */
static uint32_t touches_walk(const ivm__touch *touches, uint32_t touches_count, ivm__row_id end, uint32_t *next, uint32_t capacity,
                             ivm__row_id *rows, ivm__weight *weights)
{
    uint32_t count = 0;
    for (; *next < touches_count && count < capacity; (*next)++) {
        const ivm__touch *touch = &touches[*next];
        rows[count] = touch->row;
        weights[count] = (ivm__weight)((unsigned __int128)touch->after - (unsigned __int128)(ivm__weight)touch->before);
        count += touch->after != touch->before && touch->row < end;
    }
    return count;
}

/* *next counts the touches first, then the appended rows. */
uint32_t ivm__store_changes(const ivm__store *store, uint32_t *next, uint32_t capacity, ivm__row_id *rows, ivm__weight *weights)
{
    uint32_t count = touches_walk(store->touched, store->touched_count, store->rows_end, next, capacity, rows, weights);
    if (*next < store->touched_count) {
        return count;
    }
    ivm__row_id row = store->step_end + (*next - store->touched_count);
    count += appended_walk(store, &row, store->rows_end, capacity - count, rows + count, weights + count);
    *next = store->touched_count + (row - store->step_end);
    return count;
}

/* Of the rows that the step appended, all that weigh something now changed by that, touched or not; a step under way is looked past. */
uint32_t ivm__store_changes_last(const ivm__store *store, uint32_t *next, uint32_t capacity, ivm__row_id *rows, ivm__weight *weights)
{
    uint32_t count = touches_walk(store->last, store->last_count, store->last_first, next, capacity, rows, weights);
    if (*next < store->last_count) {
        return count;
    }
    ivm__row_id row = store->last_first + (*next - store->last_count);
    for (; row < store->last_end && count < capacity; row++) {
        ivm__weight weight = ivm__store_weight(store, row, IVM__READ_OLD);
        rows[count] = row;
        weights[count] = weight;
        count += weight != 0;
    }
    *next = store->last_count + (row - store->last_first);
    return count;
}

/* ---- Columns --------------------------------------------------------------------------------------------------------------------- */

/* Where rows lie, as plain numbers. */
typedef struct places {
    uint8_t *const *page;
    uint32_t shift, mask;
    size_t stride;
} places;

static inline const uint8_t *place(const places *at, ivm__row_id row, uint32_t offset)
{
    return at->page[row >> at->shift] + (row & at->mask) * at->stride + offset;
}

static void places_prefetch(const places *at, const ivm__row_id *rows, uint32_t count, uint32_t offset)
{
    for (uint32_t i = 0; i < count && i < PREFETCH_AHEAD; i++) {
        ivm__prefetch(place(at, rows[i], offset));
    }
}

static void words_gather(const places *at, const ivm__row_id *rows, uint32_t count, uint32_t offset, uint64_t *restrict out)
{
    uint32_t i = 0;
    for (; i + PREFETCH_AHEAD < count; i++) {
        ivm__prefetch(place(at, rows[i + PREFETCH_AHEAD], offset));
        memcpy(&out[i], place(at, rows[i], offset), sizeof out[i]);
    }
    for (; i < count; i++) {
        memcpy(&out[i], place(at, rows[i], offset), sizeof out[i]);
    }
}

static void wides_gather(const places *at, const ivm__row_id *rows, uint32_t count, uint32_t offset, ivm__wide *restrict out)
{
    for (uint32_t i = 0; i < count; i++) {
        if (i + PREFETCH_AHEAD < count) {
            ivm__prefetch(place(at, rows[i + PREFETCH_AHEAD], offset));
        }
        memcpy(&out[i], place(at, rows[i], offset), sizeof out[i]);
    }
}

static void nulls_gather(const places *at, const ivm__row_id *rows, uint32_t count, uint32_t column, uint8_t *restrict out)
{
    uint32_t offset = IVM__ROW_HEADER + column / 8; /* of the byte that has the column's bit, little endian */
    for (uint32_t i = 0; i < count; i++) {
        out[i] = *place(at, rows[i], offset) >> (column % 8) & 1;
    }
}

void ivm__store_gather(const ivm__store *store, const ivm__row_id *rows, uint32_t count, uint32_t column, ivm__vector *out)
{
    const ivm__layout *layout = store->layout;
    assert(column < layout->columns_count && out->cells && out->type == layout->types[column]);
    assert(out->nulls || !layout->nullable[column]);
    places at = { store->rows, store->page_shift, store->page_mask, layout->stride };
    uint32_t offset = layout->offsets[column];
    places_prefetch(&at, rows, count, offset);
    if (ivm__type_is_wide(out->type)) {
        wides_gather(&at, rows, count, offset, out->cells);
    } else {
        words_gather(&at, rows, count, offset, out->cells);
    }
    if (out->nulls && layout->nullable[column]) {
        nulls_gather(&at, rows, count, column, out->nulls);
    } else if (out->nulls) {
        memset(out->nulls, 0, count);
    }
}
