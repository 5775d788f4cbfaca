/* One thread pushes batches that another fills, while four readers take snapshots, read them by cursor, by chunk, as Arrow streams and in order, look keys up, keep some
 * over many pushes and close them. A plain program, so that it runs under the thread sanitizer too: it prints what went wrong and gives 1.
 *
 * Every batch adds NET sales, moves others, and renames a product; every third one is refused. The writer has a model of the rows, without the engine,
 * and notes a digest of what each commit must leave of every table and view. A reader's snapshot must have one of them: not older than the last that
 * was noted before it was taken, nor than any that this reader has seen of another table or view. What it once gave it gives again. Both views read at once have
 * the digests of one commit, that of the position that came with it. */
#include "ivm/ivm.h"
#include "need.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 600
#define PRODUCTS 200
#define NET 10
#define MOVED 15
#define READERS 4
#define HELD 8 /* snapshots that a reader keeps */

static ivm_engine *engine;
static ivm_table *product, *sales;
static ivm_view *by_name, *counter;

/* What is read. */
enum { PRODUCT, SALES, BY_NAME, COUNTER, SUBJECTS };

static struct {
    uint64_t digest[SUBJECTS];
} noted[BATCHES + 1]; /* after so many batches */
static atomic_int noted_count;

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
    int commit = (int)nth + 1;
    ivm_batch_position(batch, &commit, sizeof commit);
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

/* ---- The model ------------------------------------------------------------------------------------------------------------------------- */

static char names[PRODUCTS][32], notes[BATCHES * NET][32];
static int64_t sold_of[BATCHES * NET]; /* each sale's product */

static uint64_t value_sum(uint64_t sum, const ivm_value *value)
{
    char text[IVM_VALUE_TEXT_SIZE];
    size_t size = ivm_value_format(value, text, sizeof text);
    for (size_t i = 0; i < size && text[i]; i++) {
        sum = (sum ^ (unsigned char)text[i]) * 0x100000001b3u;
    }
    return sum;
}

static uint64_t row_sum(int64_t weight, const ivm_value *values, size_t count)
{
    uint64_t sum = (uint64_t)weight;
    for (size_t c = 0; c < count; c++) {
        sum = value_sum(sum, &values[c]);
    }
    return sum;
}

static void sale_model(int64_t number, int64_t turn)
{
    snprintf(notes[number], sizeof notes[number], "note %lld of %lld", (long long)number, (long long)turn);
    sold_of[number] = (number * 7 + turn) % PRODUCTS;
}

/* What batch `nth` does. */
static void step_model(int64_t nth)
{
    for (int64_t i = 0; i < NET; i++) {
        sale_model(nth * NET + i, 0);
        if (nth >= 20) {
            sale_model((nth - 20) * NET + i, 1);
        }
    }
    snprintf(names[nth * 31 % PRODUCTS], sizeof names[0], "name %lld", (long long)(nth % MOVED));
}

/* A group of sales, as both views have them. */
typedef struct group {
    const char *name, *note;
    int64_t rows;
} group;

static void group_add(group *into, const char *note)
{
    into->rows++;
    into->note = !into->note || strcmp(into->note, note) < 0 ? note : into->note;
}

/* The group of this name: "new", or the number in it. */
static group *group_of(group groups[MOVED + 1], const char *name)
{
    group *found = &groups[strcmp(name, "new") == 0 ? MOVED : atoi(name + strlen("name "))];
    found->name = name;
    return found;
}

static uint64_t group_sum(const group *it, size_t columns)
{
    ivm_value values[] = { ivm_string(it->name ? it->name : ""), ivm_int64(it->rows), it->note ? ivm_string(it->note) : ivm_null() };
    return row_sum(1, values + 3 - columns, columns);
}

/* What `count` batches leave. */
static void note(int count)
{
    group groups[MOVED + 1] = { { 0 } }, all = { 0 };
    uint64_t digest[SUBJECTS] = { 0 };
    for (int64_t i = 0; i < PRODUCTS; i++) {
        digest[PRODUCT] += row_sum(1, (ivm_value[]){ ivm_int64(i), ivm_string(names[i]) }, 2);
    }
    for (int64_t i = 0; i < (int64_t)count * NET; i++) {
        digest[SALES] += row_sum(1, (ivm_value[]){ ivm_int64(i), ivm_int64(sold_of[i]), ivm_string(notes[i]) }, 3);
        group_add(group_of(groups, names[sold_of[i]]), notes[i]);
        group_add(&all, notes[i]);
    }
    for (int i = 0; i <= MOVED; i++) {
        digest[BY_NAME] += groups[i].rows ? group_sum(&groups[i], 3) : 0;
    }
    digest[COUNTER] = group_sum(&all, 2);
    memcpy(noted[count].digest, digest, sizeof digest);
    atomic_store(&noted_count, count + 1);
}

static void *writer(void *unused)
{
    for (int nth = 0; nth < BATCHES; nth++) {
        if (nth % 3 == 0) {
            NEED(ivm_push_batch(engine, take(), NULL, NULL) == IVM_ROW_NOT_FOUND);
        }
        NEED(ivm_push_batch(engine, take(), NULL, NULL) == IVM_OK);
        step_model(nth);
        note(nth + 1);
    }
    return unused;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------------------------- */

static ivm_snapshot *subject_read(int subject)
{
    ivm_snapshot *snapshot;
    ivm_status status = subject == PRODUCT   ? ivm_read_table(product, &snapshot, NULL)
                        : subject == SALES   ? ivm_read_table(sales, &snapshot, NULL)
                        : subject == BY_NAME ? ivm_read_view(by_name, &snapshot, NULL)
                                             : ivm_read_view(counter, &snapshot, NULL);
    NEED(status == IVM_OK);
    return snapshot;
}

static size_t row_of(ivm_snapshot *snapshot, const ivm_rows *rows, size_t i, ivm_value values[3])
{
    size_t count = ivm_snapshot_columns_count(snapshot);
    for (size_t c = 0; c < count; c++) {
        values[c] = ivm_rows_value(rows, ivm_snapshot_column_type(snapshot, c), i, c);
    }
    return count;
}

static uint64_t rows_sum(ivm_snapshot *snapshot, const ivm_rows *rows)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < rows->rows_count; i++) {
        ivm_value values[3];
        size_t count = row_of(snapshot, rows, i, values);
        sum += row_sum(rows->weights ? rows->weights[i] : 1, values, count);
    }
    return sum;
}

/* A number or a string of an array that the stream gave. */
static ivm_value cell_of(const struct ArrowArray *column, int64_t row)
{
    const uint8_t *validity = column->buffers[0];
    int64_t at = column->offset + row;
    if (validity && !(validity[at / 8] >> at % 8 & 1)) {
        return ivm_null();
    }
    if (column->n_buffers == 2) {
        return ivm_int64(((const int64_t *)column->buffers[1])[at]);
    }
    const int32_t *ends = column->buffers[1];
    return (ivm_value){ .type = IVM_STRING,
                        .as.string = { (const char *)column->buffers[2] + ends[at], (size_t)(ends[at + 1] - ends[at]) } };
}

/* The same as an Arrow stream in arrays of a few rows, the last of them released behind the stream. */
static uint64_t digest_of_stream(ivm_snapshot *snapshot, uint64_t *count)
{
    struct ArrowArrayStream stream;
    struct ArrowArray array, before = { .release = NULL };
    uint64_t sum = 0;
    NEED(ivm_snapshot_arrow_stream(snapshot, &(ivm_arrow_options){ .chunk_rows = 700, .borrowed = true }, &stream, NULL) == IVM_OK);
    while (stream.get_next(&stream, &array) == 0 && array.release) {
        for (int64_t row = 0; row < array.length; row++, ++*count) {
            ivm_value values[3];
            for (int64_t c = 0; c < array.n_children; c++) {
                values[c] = cell_of(array.children[c], row);
            }
            sum += row_sum(1, values, (size_t)array.n_children);
        }
        if (before.release) {
            before.release(&before);
        }
        before = array;
    }
    NEED(!stream.get_last_error(&stream));
    stream.release(&stream);
    if (before.release) {
        before.release(&before);
    }
    return sum;
}

enum { BY_CURSOR, BY_CHUNK, BY_STREAM, WAYS };

/* Of all its rows, in whatever order. */
static uint64_t digest_of(ivm_snapshot *snapshot, unsigned way)
{
    uint64_t sum = 0, count = 0;
    ivm_rows rows;
    if (way == BY_STREAM) {
        sum = digest_of_stream(snapshot, &count);
    } else if (way == BY_CHUNK) {
        for (size_t chunk = ivm_snapshot_chunks_count(snapshot); chunk-- > 0; count += rows.rows_count) {
            NEED(ivm_snapshot_chunk(snapshot, chunk, &rows, NULL) == IVM_OK);
            sum += rows_sum(snapshot, &rows);
        }
    } else {
        for (; ivm_snapshot_next(snapshot, &rows); count += rows.rows_count) {
            sum += rows_sum(snapshot, &rows);
        }
        NEED(ivm_snapshot_status(snapshot) == IVM_OK);
    }
    NEED(count == ivm_snapshot_rows_count(snapshot));
    return sum;
}

/* The key of the next row is past *last, which it becomes; `text` has room for one. */
static void ascend(const ivm_value *key, int64_t *last, char *text)
{
    if (key->type == (ivm_type)IVM_INT64) {
        NEED(key->as.int64 > *last);
        *last = key->as.int64;
        return;
    }
    char now[32] = { 0 };
    memcpy(now, key->as.string.bytes, key->as.string.size);
    NEED(strcmp(text, now) < 0);
    memcpy(text, now, sizeof now);
}

static void sorted_check(ivm_snapshot *snapshot, int subject)
{
    int64_t last = -1;
    char text[32] = "";
    NEED(ivm_snapshot_sort(snapshot, NULL) == IVM_OK);
    for (ivm_rows rows; subject != COUNTER && ivm_snapshot_next(snapshot, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            ivm_value values[3];
            row_of(snapshot, &rows, i, values);
            ascend(&values[0], &last, text);
        }
    }
}

/* Each product once, by its key; of sales, which have none, and of groups those that there are. */
static void find_check(ivm_snapshot *snapshot, int subject, unsigned turn)
{
    ivm_rows rows;
    ivm_value values[3], name = ivm_string("new"), id = ivm_int64(turn % PRODUCTS);
    if (subject == PRODUCT) {
        NEED(ivm_snapshot_find(snapshot, &id, 1, &rows, NULL) == IVM_OK);
        NEED(rows.rows_count == 1 && row_of(snapshot, &rows, 0, values) == 2 && values[0].as.int64 == id.as.int64);
        id = ivm_int64(PRODUCTS);
        NEED(ivm_snapshot_find(snapshot, &id, 1, &rows, NULL) == IVM_ROW_NOT_FOUND);
    } else if (subject == SALES) {
        ivm_status status = ivm_snapshot_find(snapshot, &id, 1, &rows, NULL);
        NEED(status == IVM_OK ? rows.rows_count == 1 : status == IVM_ROW_NOT_FOUND);
    } else if (subject == BY_NAME) {
        ivm_status status = ivm_snapshot_find(snapshot, &name, 1, &rows, NULL);
        NEED(status == IVM_ROW_NOT_FOUND || (status == IVM_OK && rows.rows_count == 1));
        NEED(status != IVM_OK || ivm_rows_value(&rows, IVM_INT64, 0, 1).as.int64 > 0);
    }
}

/* After how many batches the subject had this digest: `from` at least. What a reader has read is noted by the writer next, if it is not yet. */
static int state_of(int subject, uint64_t digest, int from)
{
    int before = atomic_load(&noted_count);
    for (int at = from;; at++) {
        while (at >= atomic_load(&noted_count)) {
            NEED(at <= before && at <= BATCHES);
            sched_yield();
        }
        if (noted[at].digest[subject] == digest) {
            return at;
        }
    }
}

/* Both views as of one commit, not before `from`; which one. */
static int views_check(int from)
{
    ivm_view *const views[] = { by_name, counter };
    ivm_snapshot *snapshots[2];
    NEED(ivm_read_views(views, 2, snapshots, NULL) == IVM_OK);
    int commits[2] = { 0, 0 };
    for (int i = 0; i < 2; i++) {
        size_t size;
        NEED(ivm_snapshot_position(snapshots[i], &commits[i], sizeof commits[i], &size, NULL) == IVM_OK);
    }
    NEED(commits[0] == commits[1] && commits[0] >= from);
    while (atomic_load(&noted_count) <= commits[0]) {
        sched_yield();
    }
    NEED(noted[commits[0]].digest[BY_NAME] == digest_of(snapshots[0], BY_CURSOR));
    NEED(noted[commits[0]].digest[COUNTER] == digest_of(snapshots[1], BY_CHUNK));
    ivm_snapshot_close(snapshots[0]);
    ivm_snapshot_close(snapshots[1]);
    return commits[0];
}

static void changes_check(void)
{
    ivm_snapshot *snapshot;
    NEED(ivm_read_changes(by_name, &snapshot, NULL) == IVM_OK);
    int64_t net = 0;
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            net += rows.weights[i] * ivm_rows_value(&rows, IVM_INT64, i, 1).as.int64;
        }
    }
    NEED(net == NET || net == 0);
    ivm_snapshot_close(snapshot);
}

typedef struct held {
    ivm_snapshot *snapshot; /* NULL: none */
    uint64_t digest;
    int subject;
} held;

static void held_close(held *it, unsigned turn)
{
    if (it->snapshot) {
        if (turn % 3 == 0) {
            sorted_check(it->snapshot, it->subject);
        }
        find_check(it->snapshot, it->subject, turn);
        NEED(digest_of(it->snapshot, turn % WAYS) == it->digest);
        ivm_snapshot_close(it->snapshot);
    }
}

static void *reader(void *unused)
{
    held kept[HELD] = { { 0 } };
    int seen = 0; /* the latest state */
    for (unsigned turn = 0; turn < 2 * HELD || seen < BATCHES; turn++) {
        held *slot = &kept[turn % HELD];
        held_close(slot, turn / HELD);
        int known = atomic_load(&noted_count) - 1;
        slot->subject = (int)(turn * 2654435761u >> 16) % SUBJECTS;
        slot->snapshot = subject_read(slot->subject);
        if (turn % 5 == 0) {
            find_check(slot->snapshot, slot->subject, turn);
        }
        slot->digest = digest_of(slot->snapshot, turn % WAYS);
        seen = state_of(slot->subject, slot->digest, known > seen ? known : seen);
        seen = turn % 2 ? views_check(seen) : seen;
        changes_check();
        ivm_stats stats;
        ivm_engine_stats(engine, &stats);
        NEED(stats.bytes_held > 0);
    }
    for (unsigned slot = 0; slot < HELD; slot++) {
        held_close(&kept[slot], slot);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[2 + READERS];
    void *(*const bodies[2 + READERS])(void *) = { filler, writer, reader, reader, reader, reader };
    for (int i = 0; i < PRODUCTS; i++) {
        strcpy(names[i], "new");
    }
    tables_make();
    by_name = view_make("by_name", "p.name");
    counter = view_make("counter", NULL);
    note(0);
    for (int i = 0; i < 2 + READERS; i++) {
        NEED(pthread_create(&threads[i], NULL, bodies[i], NULL) == 0);
    }
    for (int i = 0; i < 2 + READERS; i++) {
        NEED(pthread_join(threads[i], NULL) == 0);
    }
    NEED(ivm_engine_close(engine, NULL) == IVM_OK);
    return 0;
}
