/* An operator inside a host's loop: batches of columns in, changes out, a checkpoint at each barrier, and a crash.
 *
 * The host has an input that can be read again (here an array), a place for checkpoints (here memory), and a sink that takes what was written since the
 * last barrier when the next one has passed, and forgets it after a crash (here a list of lines). The operator joins sales to products and adds
 * them up. Sales are not kept ("transient"), but those that wait: a product may come after its sales, and who waits is told. After the
 * crash a new operator is restored from the last checkpoint; its position says where the input is to be read on. Each line is printed once.
 *
 * It prints:
 *
 *     barrier 1
 *       product 2: 1 more wait
 *       + apple 30
 *     crash
 *     barrier 2
 *       product 2: 1 more wait
 *       - apple 30
 *       + apple 35
 *     barrier 3
 *       product 2: 2 wait no more
 *       + pear 11
 *     0 sales wait
 */
#include <ivm/ivm.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ivm_error error = IVM_ERROR_INIT;

static void must(ivm_status status)
{
    if (status != IVM_OK) {
        fprintf(stderr, "%s: %s\n", ivm_status_name(status), error.message);
        exit(1);
    }
}

/* ---- The host's side --------------------------------------------------------------------------------------------------------------- */

/* Sales as columns, a product, a barrier, or the end of the process, once. */
typedef enum message_kind { SALES, PRODUCT, BARRIER, CRASH } message_kind;
typedef struct message {
    message_kind kind;
    size_t rows_count;
    int64_t products[4], amounts[4];
    const char *name;
} message;

static const message input[] = {
    { PRODUCT, .products = { 1 }, .name = "apple" },
    { SALES, .rows_count = 3, .products = { 1, 2, 1 }, .amounts = { 10, 5, 20 } },
    { BARRIER },
    { SALES, .rows_count = 2, .products = { 1, 2 }, .amounts = { 5, 6 } },
    { CRASH },
    { BARRIER },
    { PRODUCT, .products = { 2 }, .name = "pear" },
    { BARRIER },
};
#define INPUT_COUNT (sizeof input / sizeof *input)

/* A checkpoint, as bytes that grow while it is written. */
typedef struct store {
    char *bytes;
    size_t size, read;
} store;

static ivm_status store_write(void *context, const void *bytes, size_t size)
{
    store *to = context;
    char *grown = realloc(to->bytes, to->size + size);
    if (!grown) {
        return IVM_OUT_OF_MEMORY;
    }
    memcpy(grown + to->size, bytes, size);
    to->bytes = grown;
    to->size += size;
    return IVM_OK;
}

static ivm_status store_read(void *context, void *bytes, size_t size, size_t *got)
{
    store *from = context;
    size_t left = from->size - from->read;
    *got = size < left ? size : left;
    memcpy(bytes, from->bytes + from->read, *got);
    from->read += *got;
    return IVM_OK;
}

/* What the operator wrote since the last barrier. */
static char sink[4096];
static size_t sink_size;

static void sink_add(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    sink_size += (size_t)vsnprintf(sink + sink_size, sizeof sink - sink_size, format, arguments);
    va_end(arguments);
}

/* ---- The operator ------------------------------------------------------------------------------------------------------------------ */

typedef struct operator_state {
    ivm_engine *engine;
    ivm_table *product, *sales;
    ivm_fact *sold;
    ivm_view *totals;
} operator_state;

/* Changes out: called once a push, on the thread that pushes. */
static void totals_changed(void *context, ivm_view *view, ivm_snapshot *changes)
{
    (void)context;
    (void)view;
    for (int pass = 0; pass < 2; pass++) { /* what goes, then what comes */
        for (ivm_rows rows; ivm_snapshot_next(changes, &rows);) {
            for (size_t i = 0; i < rows.rows_count; i++) {
                ivm_value name = ivm_rows_value(&rows, IVM_STRING, i, 0), total = ivm_rows_value(&rows, IVM_INT64, i, 1);
                if ((rows.weights[i] > 0) == (pass == 1)) {
                    sink_add("  %c %.*s %" PRId64 "\n", pass ? '+' : '-', (int)name.as.string.size, name.as.string.bytes, total.as.int64);
                }
            }
        }
    }
}

/* Late dimensions: which keys sales wait for, and for which no more. */
static void orphans_changed(void *context, ivm_fact *fact, ivm_snapshot *changes)
{
    (void)context;
    (void)fact;
    for (ivm_rows rows; ivm_snapshot_next(changes, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            int64_t key = ivm_rows_value(&rows, IVM_INT64, i, 0).as.int64, weight = rows.weights[i];
            sink_add("  product %" PRId64 ": %" PRId64 "%s\n", key, weight > 0 ? weight : -weight,
                     weight > 0 ? " more wait" : " wait no more");
        }
    }
}

static void operator_open(operator_state *op)
{
    ivm_column_definition products[] = { { "id", IVM_INT64, true }, { "name", IVM_STRING } };
    ivm_column_definition sales[] = { { "product_id", IVM_INT64 }, { "amount", IVM_INT64 } };
    ivm_table_options product_options = { .columns = products, .columns_count = 2, .key = "id", .append_only = true };
    ivm_table_options sales_options = { .columns = sales, .columns_count = 2, .transient = true };
    ivm_view_options view_options = { .version = IVM_VIEW_OPTIONS_VERSION, .changed = totals_changed };
    must(ivm_engine_open(NULL, &op->engine, &error));
    must(ivm_table_create(op->engine, "product", &product_options, &op->product, &error));
    must(ivm_table_create(op->engine, "sales", &sales_options, &op->sales, &error));
    must(ivm_foreign_key_declare(op->sales, "product_id", op->product, "id", IVM_TRACKED, &op->sold, &error));
    must(ivm_fact_watch(op->sold, orphans_changed, NULL, &error));
    ivm_plan *joined = ivm_plan_join(ivm_plan_scan(op->sales, "s"), ivm_plan_scan(op->product, "p"), "s.product_id = p.id");
    ivm_plan *totals = ivm_plan_add(ivm_plan_aggregate(joined, "p.name"), "total", "sum", ivm_column("s.amount"));
    must(ivm_view_create(op->engine, "totals", totals, &view_options, &op->totals, &error));
}

/* One message as one batch; `next` is where the input goes on behind it. */
static void operator_push(operator_state *op, const message *what, uint64_t next)
{
    ivm_batch *batch;
    ivm_column_data columns[] = { { .values = what->products }, { .values = what->amounts } };
    ivm_rows rows = { .rows_count = what->rows_count, .columns_count = 2, .columns = columns };
    must(ivm_batch_create(op->engine, &batch, &error));
    if (what->kind == SALES) {
        ivm_batch_columns(batch, op->sales, IVM_INSERT, &rows);
    } else if (what->kind == PRODUCT) {
        ivm_batch_insert(batch, op->product, ivm_int64(what->products[0]), ivm_string(what->name));
    }
    ivm_batch_position(batch, &next, sizeof next); /* a barrier's batch is that alone */
    must(ivm_push_batch(op->engine, batch, NULL, &error));
}

static void operator_save(operator_state *op, store *to)
{
    to->size = 0;
    must(ivm_checkpoint(op->engine, store_write, to, NULL, &error));
}

/* Into an operator that was opened: its handles and callbacks stay. */
static uint64_t operator_restore(operator_state *op, store *from)
{
    uint64_t next = 0;
    size_t size;
    from->read = 0;
    must(ivm_restore(op->engine, store_read, from, &error));
    must(ivm_engine_position(op->engine, &next, sizeof next, &size, &error));
    return next;
}

/* ---- The loop ---------------------------------------------------------------------------------------------------------------------- */

int main(void)
{
    operator_state op;
    store kept = { 0 };
    bool crashed = false;
    int barriers = 0;
    operator_open(&op);
    for (uint64_t next = 0; next < INPUT_COUNT;) {
        const message *what = &input[next++];
        if (what->kind == CRASH && !crashed) {
            crashed = true;
            printf("crash\n");
            sink_size = 0; /* never taken */
            must(ivm_engine_close(op.engine, &error));
            operator_open(&op);
            next = operator_restore(&op, &kept);
        } else if (what->kind != CRASH) {
            operator_push(&op, what, next);
        }
        if (what->kind == BARRIER) {
            operator_save(&op, &kept);
            printf("barrier %d\n%.*s", ++barriers, (int)sink_size, sink);
            sink_size = 0;
        }
    }
    ivm_fact_state state = { .version = IVM_FACT_STATE_VERSION };
    must(ivm_fact_status(op.sold, &state, &error));
    printf("%" PRIu64 " sales wait\n", state.orphans);
    must(ivm_engine_close(op.engine, &error));
    free(kept.bytes);
    return 0;
}
