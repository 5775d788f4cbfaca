/* A snapshot's rows in the canonical order (row_order.h), its key's columns first: an id a row, and a weight where equal rows were made one. The rows
 * stay where they lie. Cost: the sorting, by windows of at most IVM__SORT_BYTES_DEFAULT, and 4 bytes a row for as long as the snapshot is open. */
#include "row_order.h"
#include "snapshot.h"

static size_t sums_bytes(uint32_t count)
{
    return count * sizeof(ivm__order_sum);
}

void ivm__snapshot_order_free(ivm_snapshot *snapshot)
{
    ivm__release(snapshot->memory, snapshot->order, snapshot->order_capacity * sizeof *snapshot->order);
    ivm__release(snapshot->memory, snapshot->sums, sums_bytes(snapshot->sums_capacity));
    snapshot->order = NULL;
    snapshot->sums = NULL;
    snapshot->order_count = snapshot->order_capacity = snapshot->sums_count = snapshot->sums_capacity = 0;
}

/* The key's columns, then the others. */
static void columns_order(const ivm_snapshot *snapshot, uint32_t *columns)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot->key_count; i++) {
        columns[count++] = snapshot->key[i];
    }
    for (uint32_t c = 0; c < snapshot->shared.rows.layout->columns_count; c++) {
        bool is_key = false;
        for (uint32_t i = 0; i < snapshot->key_count; i++) {
            is_key |= snapshot->key[i] == c;
        }
        if (!is_key) {
            columns[count++] = c;
        }
    }
    assert(count == snapshot->shared.rows.layout->columns_count);
}

static ivm_status row_note(ivm_snapshot *snapshot, ivm__row_id row, int64_t weight)
{
    int64_t own;
    (void)ivm__snapshot_row(snapshot, row, &own);
    if (own != weight) {
        IVM_TRY(ivm__grow(snapshot->memory, (void **)&snapshot->sums, &snapshot->sums_capacity, snapshot->sums_count + 1ull,
                          sizeof *snapshot->sums));
        snapshot->sums[snapshot->sums_count++] = (ivm__order_sum){ snapshot->order_count, weight };
    }
    snapshot->order[snapshot->order_count++] = row;
    return IVM_OK;
}

static ivm_status rows_note(ivm_snapshot *snapshot, ivm__row_order *order)
{
    ivm__row_id ids[IVM__CHUNK_ROWS];
    int64_t weights[IVM__CHUNK_ROWS];
    uint32_t count;
    ivm_status status;
    while ((status = ivm__row_order_next(order, IVM__CHUNK_ROWS, ids, weights, &count)) == IVM_OK && count) {
        for (uint32_t i = 0; i < count; i++) {
            IVM_TRY(row_note(snapshot, ids[i], weights[i]));
        }
    }
    return status;
}

static ivm_status rows_sort(ivm_snapshot *snapshot, const uint32_t *columns)
{
    ivm__row_order order;
    ivm__cancel cancel = ivm__cancel_from_now(&snapshot->engine->cancels);
    uint32_t columns_count = snapshot->shared.rows.layout->columns_count;
    snapshot->order_capacity = (uint32_t)snapshot->rows_count; /* said first, so that freeing gives the right size */
    snapshot->order = ivm__allocate(snapshot->memory, snapshot->order_capacity * sizeof *snapshot->order);
    if (!snapshot->order) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm_status status =
        ivm__row_order_init(&order, snapshot->memory, &snapshot->shared.rows, columns, columns_count, IVM__SORT_BYTES_DEFAULT);
    order.sorter.cancel = &cancel;
    if (status == IVM_OK) {
        status = rows_note(snapshot, &order);
    }
    ivm__row_order_deinit(&order);
    return status;
}

ivm_status ivm_snapshot_sort(ivm_snapshot *snapshot, ivm_error *error)
{
    if (!snapshot) {
        return ivm__fail_null(error, "ivm_snapshot_sort", "snapshot");
    }
    if (snapshot->order) {
        return IVM_OK;
    }
    uint32_t columns_count = snapshot->shared.rows.layout->columns_count;
    uint32_t *columns = ivm__allocate(snapshot->memory, columns_count * sizeof *columns);
    if (!columns) {
        return ivm__fail_memory(error);
    }
    columns_order(snapshot, columns);
    ivm_status status = rows_sort(snapshot, columns);
    ivm__release(snapshot->memory, columns, columns_count * sizeof *columns);
    if (status != IVM_OK) {
        ivm__snapshot_order_free(snapshot);
        return status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(error)
               : status == IVM_CANCELLED   ? ivm__fail_cancelled(error)
                                           : ivm__fail(error, status, "equal rows weigh more together than an int64 holds");
    }
    snapshot->rows_count = snapshot->order_count;
    snapshot->next = 0;
    return IVM_OK;
}
