/* One thread pushes batches that another fills, while readers take snapshots, read them, keep some over many pushes and close them. A plain
 * program, so that it runs under the thread sanitizer too: it prints what went wrong and gives 1.
 *
 * Every batch adds NET sales, moves others, and renames a product; every third one is refused. So at every moment
 *     the rows of all groups together = the counter's rows, a multiple of NET, and the last change comes to NET
 * and what a snapshot once gave it gives again. */
#include "ivm/ivm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 600
#define PRODUCTS 200
#define NET 10
#define MOVED 15
#define READERS 3
#define HELD 8 /* snapshots that a reader keeps */

#define NEED(condition)                                                                                                                    \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                                \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

static ivm_engine *engine;
static ivm_table *product, *sales;
static ivm_view *by_name, *counter;
static atomic_bool over;

/* ---- Making ------------------------------------------------------------------------------------------------------------------------ */

static void tables_make(void)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_column_definition products[] = { { "id", IVM_INT64, true }, { "name", IVM_STRING } };
    ivm_column_definition sold[] = { { "id", IVM_INT64, true }, { "product_id", IVM_INT64, true }, { "note", IVM_STRING } };
    NEED(ivm_engine_open(NULL, &engine, &error) == IVM_OK);
    NEED(ivm_table_create(engine, "product", &(ivm_table_options){ .columns = products, .columns_count = 2, .key = "id" }, &product,
                          &error) == IVM_OK);
    NEED(ivm_table_create(engine, "sales", &(ivm_table_options){ .columns = sold, .columns_count = 3 }, &sales, &error) == IVM_OK);
    NEED(ivm_foreign_key_declare(sales, "product_id", product, "id", IVM_RELY, NULL, &error) == IVM_OK);
    ivm_batch *batch;
    NEED(ivm_batch_create(engine, &batch, &error) == IVM_OK);
    for (int64_t i = 0; i < PRODUCTS; i++) {
        ivm_batch_insert(batch, product, ivm_int64(i), ivm_string("new"));
    }
    NEED(ivm_push_batch(engine, batch, NULL, &error) == IVM_OK);
}

static ivm_view *view_make(const char *name, const char *group_by)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_view *view;
    ivm_plan *plan = ivm_plan_join(ivm_plan_scan(sales, "s"), ivm_plan_scan(product, "p"), "s.product_id = p.id");
    plan = ivm_plan_aggregate(plan, group_by);
    plan = ivm_plan_count(plan, "rows");
    plan = ivm_plan_add(plan, "note", "max", ivm_column("s.note"));
    NEED(ivm_view_create(engine, name, plan, NULL, &view, &error) == IVM_OK);
    return view;
}

/* ---- Filling and pushing ----------------------------------------------------------------------------------------------------------- */

/* The filler puts the next batch here, the writer takes it. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    ivm_batch *batch;
} handed = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL };

static void hand(ivm_batch *batch)
{
    pthread_mutex_lock(&handed.lock);
    while (handed.batch) {
        pthread_cond_wait(&handed.changed, &handed.lock);
    }
    handed.batch = batch;
    pthread_cond_broadcast(&handed.changed);
    pthread_mutex_unlock(&handed.lock);
}

static ivm_batch *take(void)
{
    pthread_mutex_lock(&handed.lock);
    while (!handed.batch) {
        pthread_cond_wait(&handed.changed, &handed.lock);
    }
    ivm_batch *batch = handed.batch;
    handed.batch = NULL;
    pthread_cond_broadcast(&handed.changed);
    pthread_mutex_unlock(&handed.lock);
    return batch;
}

/* The sale numbered i: its product and its note follow from the number and the turn it is in. */
static void sale(ivm_batch *batch, ivm_change change, int64_t number, int64_t turn)
{
    char note[32];
    snprintf(note, sizeof note, "note %lld of %lld", (long long)number, (long long)turn);
    ivm_value row[] = { ivm_int64(number), ivm_int64((number * 7 + turn) % PRODUCTS), ivm_string(note) };
    ivm_batch_row(batch, sales, change, 1, row, 3);
}

/* The sales of an earlier batch, which are in turn 0, go over to turn 1. */
static void fill(ivm_batch *batch, int64_t nth, bool refused)
{
    char name[32];
    for (int64_t i = 0; i < NET; i++) {
        sale(batch, IVM_INSERT, nth * NET + i, 0);
    }
    for (int64_t i = 0; nth >= 20 && i < NET; i++) {
        sale(batch, IVM_DELETE, (nth - 20) * NET + i, 0);
        sale(batch, IVM_INSERT, (nth - 20) * NET + i, 1);
    }
    snprintf(name, sizeof name, "name %lld", (long long)(nth % MOVED));
    ivm_batch_upsert(batch, product, ivm_int64(nth * 31 % PRODUCTS), ivm_string(name));
    if (refused) {
        ivm_batch_delete(batch, sales, ivm_int64(-1), ivm_int64(0), ivm_null());
    }
}

static void *filler(void *unused)
{
    for (int64_t nth = 0; nth < BATCHES; nth++) {
        for (int refused = nth % 3 == 0; refused >= 0; refused--) {
            ivm_batch *batch;
            NEED(ivm_batch_create(engine, &batch, NULL) == IVM_OK);
            fill(batch, nth, refused);
            hand(batch);
        }
    }
    return unused;
}

static void *writer(void *unused)
{
    for (int nth = 0; nth < BATCHES; nth++) {
        if (nth % 3 == 0) {
            NEED(ivm_push_batch(engine, take(), NULL, NULL) == IVM_ROW_NOT_FOUND);
        }
        NEED(ivm_push_batch(engine, take(), NULL, NULL) == IVM_OK);
    }
    atomic_store(&over, true);
    return unused;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------------------------- */

typedef struct content {
    int64_t rows; /* of the column "rows", by weight */
    uint64_t sum; /* of all that was read */
} content;

static uint64_t value_sum(uint64_t sum, const ivm_value *value)
{
    char text[IVM_VALUE_TEXT_SIZE];
    size_t size = ivm_value_format(value, text, sizeof text);
    for (size_t i = 0; i < size && text[i]; i++) {
        sum = (sum ^ (unsigned char)text[i]) * 0x100000001b3u;
    }
    return sum;
}

/* Reads all of it. The sum does not depend on the rows' order. */
static content content_of(ivm_snapshot *snapshot, size_t rows_column)
{
    content all = { 0, 0 };
    size_t columns_count = ivm_snapshot_columns_count(snapshot);
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            int64_t weight = rows.weights ? rows.weights[i] : 1;
            uint64_t sum = (uint64_t)weight;
            for (size_t c = 0; c < columns_count; c++) {
                ivm_value value = ivm_rows_value(&rows, ivm_snapshot_column_type(snapshot, c), i, c);
                sum = value_sum(sum, &value);
                all.rows += c == rows_column ? weight * value.as.int64 : 0;
            }
            all.sum += sum;
        }
    }
    NEED(ivm_snapshot_status(snapshot) == IVM_OK);
    return all;
}

static content view_content(ivm_view *view, size_t rows_column)
{
    ivm_snapshot *snapshot;
    NEED(ivm_read_view(view, &snapshot, NULL) == IVM_OK);
    content all = content_of(snapshot, rows_column);
    ivm_snapshot_close(snapshot);
    return all;
}

static void changes_check(void)
{
    ivm_snapshot *snapshot;
    NEED(ivm_read_changes(by_name, &snapshot, NULL) == IVM_OK);
    int64_t rows = content_of(snapshot, 1).rows;
    NEED(rows == NET || rows == 0);
    ivm_snapshot_close(snapshot);
}

/* The group of products that had no name yet: what a lookup finds is what the rows say. */
static void find_check(ivm_snapshot *snapshot)
{
    ivm_value name = ivm_string("new");
    ivm_rows rows;
    ivm_status status = ivm_snapshot_find(snapshot, &name, 1, &rows, NULL);
    NEED(status == IVM_ROW_NOT_FOUND || (status == IVM_OK && rows.rows_count == 1));
    NEED(status != IVM_OK || ivm_rows_value(&rows, IVM_INT64, 0, 1).as.int64 > 0);
}

static void sales_check(void)
{
    ivm_snapshot *snapshot;
    NEED(ivm_read_table(sales, &snapshot, NULL) == IVM_OK);
    int64_t count = 0;
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            count += rows.weights ? rows.weights[i] : 1;
        }
    }
    NEED(count % NET == 0);
    ivm_snapshot_close(snapshot);
}

static void *reader(void *unused)
{
    ivm_snapshot *held[HELD] = { NULL };
    content then[HELD];
    for (unsigned turn = 0, last = 0; turn < 2 * HELD || !last; turn++) {
        last = atomic_load(&over);
        unsigned slot = turn % HELD;
        if (held[slot]) {
            content now = content_of(held[slot], 1);
            NEED(now.rows == then[slot].rows && now.sum == then[slot].sum);
            find_check(held[slot]);
            ivm_snapshot_close(held[slot]);
        }
        int64_t before = view_content(counter, 0).rows;
        NEED(ivm_read_view(by_name, &held[slot], NULL) == IVM_OK);
        then[slot] = content_of(held[slot], 1);
        int64_t after = view_content(counter, 0).rows;
        NEED(before <= then[slot].rows && then[slot].rows <= after && then[slot].rows % NET == 0);
        changes_check();
        sales_check();
        ivm_stats stats;
        ivm_engine_stats(engine, &stats);
        NEED(stats.bytes_held > 0);
    }
    for (unsigned slot = 0; slot < HELD; slot++) {
        NEED(content_of(held[slot], 1).sum == then[slot].sum);
        ivm_snapshot_close(held[slot]);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[2 + READERS];
    void *(*const bodies[2 + READERS])(void *) = { filler, writer, reader, reader, reader };
    tables_make();
    by_name = view_make("by_name", "p.name");
    counter = view_make("counter", NULL);
    for (int i = 0; i < 2 + READERS; i++) {
        NEED(pthread_create(&threads[i], NULL, bodies[i], NULL) == 0);
    }
    for (int i = 0; i < 2 + READERS; i++) {
        NEED(pthread_join(threads[i], NULL) == 0);
    }
    NEED(view_content(counter, 0).rows == BATCHES * NET && view_content(by_name, 1).rows == BATCHES * NET);
    NEED(ivm_engine_close(engine, NULL) == IVM_OK);
    return 0;
}
