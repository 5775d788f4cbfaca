/* One thread pushes large batches, refreshes, makes views, audits and saves; another asks it to end at random moments. A plain program, so that it runs
 * under the thread sanitizer too: it prints what went wrong and gives 1. With a number of rows as argument the batches are so large, and the longest time
 * from a request to the end of the call is printed.
 *
 * A call that was cancelled has changed nothing: each view tells as many rows as were pushed by calls that went through, and the audit finds no
 * difference. */
#include "ivm/ivm.h"
#include "random.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 40
#define PARENTS 500

#define NEED(condition)                                                                                                                    \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, error.message);                                             \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

typedef struct work {
    ivm_engine *engine;
    ivm_table *fact, *parent;
    ivm_view *late;
    int64_t *id, *ref, *value;
    size_t rows_max;
    int64_t there, next;
} work;

static ivm_error error = IVM_ERROR_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t ask_at, asked_at; /* microseconds; 0: not, or not yet */
static bool over;

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static void *ask(void *subject)
{
    for (bool ended = false; !ended;) {
        pthread_mutex_lock(&lock);
        if (ask_at && now() >= ask_at) {
            asked_at = now();
            ask_at = 0;
            ivm_engine_cancel(subject);
        }
        ended = over;
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){ 0, 20000 }, NULL);
    }
    return NULL;
}

/* A request at this time, and none any more where it is 0. When there was one, if there was. */
static int64_t ask_set(int64_t at)
{
    pthread_mutex_lock(&lock);
    int64_t asked = asked_at;
    ask_at = at;
    asked_at = 0;
    pthread_mutex_unlock(&lock);
    return asked;
}

/* ---- Making -------------------------------------------------------------------------------------------------------------------------------- */

static ivm_view *view_make(work *it, const char *name, ivm_plan *plan, ivm_refresh refresh)
{
    ivm_view *view = NULL;
    ivm_view_options options = { .version = 1, .refresh = refresh };
    NEED(ivm_view_create(it->engine, name, plan, &options, &view, &error) == IVM_OK);
    return view;
}

static ivm_plan *fact_scan(const work *it)
{
    return ivm_plan_scan(it->fact, "f");
}

static ivm_plan *joined(const work *it)
{
    return ivm_plan_join(fact_scan(it), ivm_plan_scan(it->parent, "p"), "f.ref = p.id");
}

static void tables_make(work *it)
{
    ivm_column_definition facts[] = { { "id", IVM_INT64, true }, { "ref", IVM_INT64, true }, { "value", IVM_INT64, false } };
    ivm_column_definition parents[] = { { "id", IVM_INT64, true }, { "name", IVM_STRING, false } };
    ivm_batch *batch;
    NEED(ivm_table_create(it->engine, "fact", &(ivm_table_options){ .columns = facts, .columns_count = 3, .key = "id" }, &it->fact,
                          &error) == IVM_OK);
    NEED(ivm_table_create(it->engine, "parent", &(ivm_table_options){ .columns = parents, .columns_count = 2, .key = "id" }, &it->parent,
                          &error) == IVM_OK);
    NEED(ivm_foreign_key_declare(it->fact, "ref", it->parent, "id", IVM_TRACKED, NULL, &error) == IVM_OK);
    NEED(ivm_batch_create(it->engine, &batch, &error) == IVM_OK);
    for (int64_t i = 0; i < PARENTS; i++) {
        ivm_batch_insert(batch, it->parent, ivm_int64(i), ivm_string(i % 2 ? "a name of more than eight bytes" : "short"));
    }
    NEED(ivm_push_batch(it->engine, batch, NULL, &error) == IVM_OK);
}

static void open_all(work *it, size_t rows_max)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.threads = 3;
    *it = (work){ .rows_max = rows_max };
    it->id = malloc(3 * rows_max * sizeof *it->id);
    NEED(it->id != NULL);
    it->ref = it->id + rows_max;
    it->value = it->ref + rows_max;
    NEED(ivm_engine_open(&options, &it->engine, &error) == IVM_OK);
    tables_make(it);
    view_make(it, "by_name", ivm_plan_count(ivm_plan_aggregate(joined(it), "p.name"), "n"), IVM_IMMEDIATE);
    view_make(it, "all", ivm_plan_count(ivm_plan_aggregate(fact_scan(it), ""), "n"), IVM_IMMEDIATE);
    ivm_plan *left = ivm_plan_join_kind(IVM_LEFT_JOIN, fact_scan(it), ivm_plan_scan(it->parent, "p"), "f.ref = p.id");
    view_make(it, "left", ivm_plan_project(left, "f.id, p.name"), IVM_IMMEDIATE);
    view_make(it, "values", ivm_plan_distinct(ivm_plan_project(fact_scan(it), "value")), IVM_IMMEDIATE);
    view_make(it, "top", ivm_plan_order_by(ivm_plan_top_k(fact_scan(it), 5, 0), ivm_column("value"), true, false), IVM_IMMEDIATE);
    it->late = view_make(it, "late", ivm_plan_count(ivm_plan_aggregate(joined(it), "f.value"), "n"), IVM_DEFERRED);
}

/* ---- What is so whatever was cancelled --------------------------------------------------------------------------------------------------------- */

/* The sum of the view's last column. */
static int64_t total(work *it, const char *name)
{
    ivm_view *view;
    ivm_snapshot *snapshot;
    int64_t sum = 0;
    NEED(ivm_view_find(it->engine, name, &view, &error) == IVM_OK);
    NEED(ivm_read_view(view, &snapshot, &error) == IVM_OK);
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            sum += ivm_rows_value(&rows, IVM_INT64, i, rows.columns_count - 1).as.int64;
        }
    }
    ivm_snapshot_close(snapshot);
    return sum;
}

static void check(work *it)
{
    NEED(total(it, "by_name") == it->there);
    NEED(total(it, "all") == it->there);
}

/* ---- Calls ----------------------------------------------------------------------------------------------------------------------------------------- */

/* So many rows come, or the last that came go. */
static ivm_status push(work *it, size_t count, bool go, uint64_t *random)
{
    ivm_batch *batch;
    int64_t first = go ? it->next - (int64_t)count : it->next;
    for (size_t i = 0; i < count; i++) {
        it->id[i] = first + (int64_t)i;
        it->ref[i] = (int64_t)(random_short(random) % PARENTS);
        it->value[i] = (int64_t)(random_short(random) % 1000);
    }
    ivm_column_data columns[] = { { .values = it->id }, { .values = it->ref }, { .values = it->value } };
    ivm_rows rows = { .rows_count = count, .columns_count = go ? 1 : 3, .columns = columns };
    NEED(ivm_batch_create(it->engine, &batch, &error) == IVM_OK);
    NEED(ivm_batch_columns(batch, it->fact, go ? IVM_DELETE_KEY : IVM_INSERT, &rows) == IVM_OK);
    ivm_status status = ivm_push_batch(it->engine, batch, NULL, &error);
    if (status == IVM_OK) {
        it->there += go ? -(int64_t)count : (int64_t)count;
        it->next += go ? -(int64_t)count : (int64_t)count;
    }
    return status;
}

static ivm_status save(void *context, const void *bytes, size_t size)
{
    (void)bytes;
    *(size_t *)context += size;
    return IVM_OK;
}

static ivm_status view_make_drop(work *it)
{
    ivm_view *view;
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(joined(it), "p.name, f.value"), "n");
    ivm_status status = ivm_view_create(it->engine, "new", plan, NULL, &view, &error);
    NEED(status != IVM_OK || ivm_view_drop(view, &error) == IVM_OK);
    return status;
}

static ivm_status audit(work *it)
{
    ivm_view *view;
    ivm_snapshot *differences = NULL;
    NEED(ivm_view_find(it->engine, "left", &view, &error) == IVM_OK);
    ivm_status status = ivm_audit_view(view, &differences, &error);
    ivm_rows rows;
    NEED(status != IVM_OK || !ivm_snapshot_next(differences, &rows));
    ivm_snapshot_close(differences);
    return status;
}

static ivm_status call(work *it, int kind, uint64_t *random)
{
    size_t saved = 0, count = it->rows_max - random_short(random) % (it->rows_max / 2);
    bool go = it->there >= (int64_t)it->rows_max * 2;
    switch (kind) {
    case 0:
        return ivm_refresh_view(it->late, NULL, &error);
    case 1:
        return view_make_drop(it);
    case 2:
        return audit(it);
    case 3:
        return ivm_checkpoint(it->engine, save, &saved, NULL, &error);
    default:
        return push(it, count, go, random);
    }
}

int main(int argc, char **argv)
{
    work it;
    uint64_t random = 3;
    pthread_t thread;
    int counts[2] = { 0, 0 };
    int64_t longest = 0, spans[8] = { 0 };
    open_all(&it, argc > 1 ? (size_t)strtoull(argv[1], NULL, 10) : 5000);
    NEED(pthread_create(&thread, NULL, ask, it.engine) == 0);
    for (int round = 0; round < ROUNDS || !counts[0] || !counts[1]; round++) {
        int kind = round % 8;
        int64_t began = now(), most = spans[kind] + spans[kind] / 4 + 100;
        (void)ask_set(round % 3 == 0 ? 0 : began + (int64_t)(random_short(&random) % (uint64_t)most));
        ivm_status status = call(&it, kind, &random);
        int64_t ended = now(), asked = ask_set(0);
        NEED(status == IVM_OK || (status == IVM_CANCELLED && asked));
        counts[status == IVM_CANCELLED]++;
        if (status == IVM_OK) {
            spans[kind] = ended - began;
        } else if (ended - asked > longest) {
            longest = ended - asked;
        }
        check(&it);
    }
    pthread_mutex_lock(&lock);
    over = true;
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    NEED(ivm_refresh_view(it.late, NULL, &error) == IVM_OK);
    NEED(total(&it, "late") == it.there);
    NEED(audit(&it) == IVM_OK);
    NEED(ivm_engine_close(it.engine, &error) == IVM_OK);
    free(it.id);
    if (argc > 1) {
        printf("%d calls went through, %d were cancelled, after %.1f ms at most\n", counts[0], counts[1], (double)longest / 1000);
    }
    return 0;
}
