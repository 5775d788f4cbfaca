/* One thread pushes, refreshes and has batches refused, while others write checkpoints of the engine and one reads it. Every stream is restored by the
 * thread that wrote it, into an engine of its own, and must be a state that was committed: that of the position it carries, row by row. A plain
 * program, so that it runs under the thread sanitizer too: it prints what went wrong and gives 1. */
#include "ivm/ivm.h"
#include "need.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 400
#define PRODUCTS 50
#define WRITERS 2 /* of checkpoints */
#define APART 20  /* batches that there are at most for each checkpoint */
#define VIEWS 6

static ivm_engine *engine;
static ivm_table *product, *sales, *event;
static ivm_view *late;
static uint64_t digests[BATCHES + 1][2]; /* of the states after so many batches: as pushed, and refreshed */
static atomic_int digested;              /* for how many batches they are known */
static atomic_int begun;                 /* checkpoints */
static atomic_bool over;

/* ---- Making ------------------------------------------------------------------------------------------------------------------------ */

static void tables_make(void)
{
    ivm_column_definition products[] = { { "id", IVM_INT64, true }, { "name", IVM_STRING } };
    ivm_column_definition sold[] = { { "id", IVM_INT64, true }, { "product_id", IVM_INT64, true }, { "price", IVM_FLOAT64 } };
    ivm_table_options keyed = { .columns = products, .columns_count = 2, .key = "id" };
    ivm_table_options bag = { .columns = sold, .columns_count = 3 }, unkept = bag;
    unkept.transient = true;
    NEED(ivm_engine_open(NULL, &engine, NULL) == IVM_OK);
    NEED(ivm_table_create(engine, "product", &keyed, &product, NULL) == IVM_OK);
    NEED(ivm_table_create(engine, "sales", &bag, &sales, NULL) == IVM_OK);
    NEED(ivm_table_create(engine, "event", &unkept, &event, NULL) == IVM_OK);
    NEED(ivm_foreign_key_declare(sales, "product_id", product, "id", IVM_TRACKED, NULL, NULL) == IVM_OK);
}

static ivm_view *view_make(const char *name, ivm_plan *plan, ivm_refresh refresh)
{
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = refresh };
    ivm_view *view;
    NEED(ivm_view_create(engine, name, plan, &options, &view, NULL) == IVM_OK);
    return view;
}

static ivm_plan *joined(ivm_join_kind kind)
{
    ivm_plan *left = ivm_plan_scan(sales, "s"), *right = ivm_plan_scan(product, "p");
    return kind == IVM_INNER_JOIN ? ivm_plan_join(left, right, "s.product_id = p.id")
                                  : ivm_plan_join_kind(kind, left, right, "s.product_id = p.id");
}

static ivm_plan *totals(ivm_plan *input, const char *by, const char *price)
{
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(input, by), "rows");
    plan = ivm_plan_add(plan, "sum", "sum", ivm_column(price));
    return ivm_plan_add(plan, "kinds", "count_distinct", ivm_column(price));
}

static void views_make(void)
{
    view_make("by_name", totals(joined(IVM_INNER_JOIN), "p.name", "s.price"), IVM_IMMEDIATE);
    view_make("full", ivm_plan_project(joined(IVM_FULL_JOIN), "s.price, p.name"), IVM_IMMEDIATE);
    view_make("events", totals(ivm_plan_scan(event, "e"), "e.product_id", "e.price"), IVM_IMMEDIATE);
    view_make("names", ivm_plan_distinct(ivm_plan_project(ivm_plan_scan(product, NULL), "name")), IVM_IMMEDIATE);
    view_make("top", ivm_plan_order_by(ivm_plan_top_k(ivm_plan_scan(sales, NULL), 5, 1), ivm_column("price"), true, false), IVM_IMMEDIATE);
    late = view_make("late", totals(joined(IVM_INNER_JOIN), "p.id", "s.price"), IVM_DEFERRED);
}

/* ---- States ------------------------------------------------------------------------------------------------------------------------ */

static uint64_t value_sum(uint64_t sum, const ivm_value *value)
{
    char text[IVM_VALUE_TEXT_SIZE];
    size_t size = ivm_value_format(value, text, sizeof text);
    for (size_t i = 0; i < size && text[i]; i++) {
        sum = (sum ^ (unsigned char)text[i]) * 0x100000001b3u;
    }
    return sum;
}

/* Whatever the rows' order, and however equal ones stand. */
static uint64_t snapshot_sum(ivm_snapshot *snapshot, uint64_t from)
{
    uint64_t all = 0;
    size_t columns_count = ivm_snapshot_columns_count(snapshot);
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            uint64_t sum = from;
            for (size_t c = 0; c < columns_count; c++) {
                ivm_value value = ivm_rows_value(&rows, ivm_snapshot_column_type(snapshot, c), i, c);
                sum = value_sum(sum, &value);
            }
            all += sum * (uint64_t)(rows.weights ? rows.weights[i] : 1);
        }
    }
    NEED(ivm_snapshot_status(snapshot) == IVM_OK);
    ivm_snapshot_close(snapshot);
    return all;
}

/* Of all views and kept tables, and of who waits. */
static uint64_t state_sum(ivm_engine *of)
{
    static const char *const views[VIEWS] = { "by_name", "full", "events", "names", "top", "late" }, *const tables[2] = { "product",
                                                                                                                          "sales" };
    ivm_snapshot *snapshot;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < VIEWS; i++) {
        ivm_view *view;
        NEED(ivm_view_find(of, views[i], &view, NULL) == IVM_OK && ivm_read_view(view, &snapshot, NULL) == IVM_OK);
        sum += snapshot_sum(snapshot, i + 1);
    }
    for (uint64_t i = 0; i < 2; i++) {
        ivm_table *table;
        NEED(ivm_table_find(of, tables[i], &table, NULL) == IVM_OK && ivm_read_table(table, &snapshot, NULL) == IVM_OK);
        sum += snapshot_sum(snapshot, 100 + i);
    }
    NEED(ivm_read_orphans(ivm_fact_next(of, NULL), &snapshot, NULL) == IVM_OK);
    return sum + snapshot_sum(snapshot, 200);
}

/* ---- Pushing ----------------------------------------------------------------------------------------------------------------------- */

static void sale(ivm_batch *batch, ivm_table *to, ivm_change change, int64_t number)
{
    ivm_value row[] = { ivm_int64(number), ivm_int64(number * 7 % (PRODUCTS + 10)), ivm_float64((double)(number % 13) / 8) };
    ivm_batch_row(batch, to, change, 1, row, 3);
}

static void fill(ivm_batch *batch, int64_t nth)
{
    char name[32];
    snprintf(name, sizeof name, "name %lld", (long long)(nth % 7));
    for (int64_t i = 0; i < 5; i++) {
        sale(batch, sales, IVM_INSERT, nth * 5 + i);
        sale(batch, event, IVM_INSERT, nth * 5 + i);
    }
    for (int64_t i = 0; nth > 20 && i < 3; i++) {
        sale(batch, sales, IVM_DELETE, (nth - 20) * 5 + i);
    }
    ivm_batch_upsert(batch, product, ivm_int64(nth * 31 % PRODUCTS), ivm_string(name));
    NEED(ivm_batch_position(batch, &nth, sizeof nth) == IVM_OK);
}

static void push_refused(int64_t nth)
{
    ivm_batch *bad;
    NEED(ivm_batch_create(engine, &bad, NULL) == IVM_OK);
    fill(bad, nth);
    sale(bad, sales, IVM_DELETE, -1);
    NEED(ivm_push_batch(engine, bad, NULL, NULL) == IVM_ROW_NOT_FOUND);
}

static void states_note(int64_t nth)
{
    digests[nth][0] = digests[nth][1] = state_sum(engine);
    if (nth % 3 == 0) {
        NEED(ivm_refresh_view(late, NULL, NULL) == IVM_OK);
        digests[nth][1] = state_sum(engine);
    }
    atomic_store(&digested, (int)nth + 1);
}

static void *pusher(void *unused)
{
    for (int64_t nth = 1; nth <= BATCHES; nth++) {
        ivm_batch *batch;
        while (atomic_load(&begun) < nth / APART) {
            sched_yield();
        }
        if (nth % 5 == 0) {
            push_refused(nth);
        }
        NEED(ivm_batch_create(engine, &batch, NULL) == IVM_OK);
        fill(batch, nth);
        ivm_error error = IVM_ERROR_INIT;
        if (ivm_push_batch(engine, batch, NULL, &error) != IVM_OK) {
            fprintf(stderr, "%s\n", error.message);
            exit(1);
        }
        states_note(nth);
    }
    atomic_store(&over, true);
    return unused;
}

/* ---- Checkpoints ------------------------------------------------------------------------------------------------------------------- */

typedef struct stream {
    unsigned char *bytes;
    size_t size, capacity, at;
} stream;

static ivm_status stream_write(void *context, const void *bytes, size_t size)
{
    stream *it = context;
    if (it->size + size > it->capacity) {
        it->capacity = 2 * (it->size + size);
        it->bytes = realloc(it->bytes, it->capacity);
        NEED(it->bytes);
    }
    memcpy(it->bytes + it->size, bytes, size);
    it->size += size;
    sched_yield(); /* to the one that pushes */
    return IVM_OK;
}

static ivm_status stream_read(void *context, void *bytes, size_t size, size_t *got)
{
    stream *it = context;
    *got = size < it->size - it->at ? size : it->size - it->at;
    memcpy(bytes, it->bytes + it->at, *got);
    it->at += *got;
    return IVM_OK;
}

/* What the stream holds is what was committed with its position; and it is written as the same bytes again. */
static void stream_check(stream *it, ivm_compression compression)
{
    ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION, .compression = compression };
    ivm_engine *restored;
    ivm_error error = IVM_ERROR_INIT;
    stream again = { 0 };
    int64_t nth = 0;
    size_t size = 0;
    NEED(ivm_engine_open(NULL, &restored, NULL) == IVM_OK);
    if (ivm_restore(restored, stream_read, it, &error) != IVM_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    NEED(ivm_engine_position(restored, &nth, sizeof nth, &size, NULL) == IVM_OK && (size == sizeof nth || size == 0));
    while (atomic_load(&digested) <= nth) {
        sched_yield();
    }
    uint64_t sum = state_sum(restored);
    NEED(sum == digests[nth][0] || sum == digests[nth][1]);
    NEED(ivm_checkpoint(restored, stream_write, &again, &options, NULL) == IVM_OK);
    NEED(again.size == it->size && memcmp(again.bytes, it->bytes, it->size) == 0);
    NEED(ivm_engine_close(restored, NULL) == IVM_OK);
    free(again.bytes);
}

static void *saver(void *compression)
{
    ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION, .compression = *(const ivm_compression *)compression };
    for (bool last = false; !last;) {
        stream it = { 0 };
        last = atomic_load(&over);
        atomic_fetch_add(&begun, 1);
        NEED(ivm_checkpoint(engine, stream_write, &it, &options, NULL) == IVM_OK);
        stream_check(&it, options.compression);
        free(it.bytes);
    }
    return NULL;
}

/* Rows found and kept while checkpoints hold the same pages. */
static void *reader(void *unused)
{
    while (!atomic_load(&over)) {
        ivm_snapshot *held, *again;
        ivm_view *view;
        NEED(ivm_view_find(engine, "full", &view, NULL) == IVM_OK && ivm_read_view(view, &held, NULL) == IVM_OK);
        NEED(ivm_read_view(late, &again, NULL) == IVM_OK);
        ivm_snapshot_close(again);
        (void)snapshot_sum(held, 1);
    }
    return unused;
}

int main(void)
{
    static ivm_compression compressions[WRITERS] = { IVM_COMPRESSION_NONE, IVM_COMPRESSION_AUTO };
    pthread_t threads[2 + WRITERS];
    tables_make();
    views_make();
    states_note(0);
    NEED(pthread_create(&threads[0], NULL, pusher, NULL) == 0 && pthread_create(&threads[1], NULL, reader, NULL) == 0);
    for (int i = 0; i < WRITERS; i++) {
        NEED(pthread_create(&threads[2 + i], NULL, saver, &compressions[i]) == 0);
    }
    for (int i = 0; i < 2 + WRITERS; i++) {
        NEED(pthread_join(threads[i], NULL) == 0);
    }
    NEED(atomic_load(&begun) >= BATCHES / APART);
    printf("%d checkpoints beside %d pushes\n", atomic_load(&begun), BATCHES);
    NEED(ivm_engine_close(engine, NULL) == IVM_OK);
    return 0;
}
