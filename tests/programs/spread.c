/* Pushes that several threads work on. One story of large batches is told to engines of 1, 2, 3 and IVM_THREADS_MAX threads with one hash seed: after
 * every push, refused or not, they must say the same: status, message, statistics, and every view's rows and changes, cell by cell in their
 * order. Then one allocation after the other fails, signals come, and a child process goes on alone. A plain program, so that it runs under
 * the thread sanitizer too: it prints what went wrong and gives 1.
 *
 * The story has what goes the threads' way and what does not: keys that are found once, never and often, joins that outgrow a slot, a
 * condition that overflows for some rows, weights of both signs, texts, nulls, and a table with several indexes. */
#include "allocator.h"
#include "ivm/ivm.h"
#include "need.h"
#include "random.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROWS 5000
#define ROWS_FEW 2500 /* where one push is tried again and again */
#define PRODUCTS 6000
#define TURNS 12
#define VIEW_LATER 5 /* among the views */
#define VIEWS_MAX 7

typedef struct shop {
    ivm_engine *engine;
    ivm_table *sale, *product, *offer; /* a bag, a keyed table, a bag in which a kind is often */
    ivm_view *views[VIEWS_MAX];
    size_t views_count;
} shop;

/* ---- Making ------------------------------------------------------------------------------------------------------------------------ */

static void view_make(shop *it, const char *name, ivm_plan *plan, ivm_refresh refresh)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_view_options options = { .refresh = refresh };
    NEED(it->views_count < VIEWS_MAX);
    ivm_status status = ivm_view_create(it->engine, name, plan, &options, &it->views[it->views_count++], &error);
    if (status != IVM_OK) {
        fprintf(stderr, "%s: %s\n", name, error.message);
    }
    NEED(status == IVM_OK);
}

static ivm_plan *sold(const shop *it)
{
    return ivm_plan_join(ivm_plan_scan(it->sale, "s"), ivm_plan_scan(it->product, "p"), "s.product = p.id");
}

static void views_make(shop *it)
{
    ivm_plan *plan = ivm_plan_aggregate(sold(it), "p.label");
    plan = ivm_plan_count(ivm_plan_add(plan, "total", "sum", ivm_column("s.amount")), "n");
    plan = ivm_plan_add(plan, "price", "avg", ivm_column("s.price"));
    plan = ivm_plan_add(plan, "note", "min", ivm_column("s.note"));
    view_make(it, "by_label", plan, IVM_IMMEDIATE);
    plan = ivm_plan_project(ivm_plan_join(sold(it), ivm_plan_scan(it->product, "q"), "s.other = q.id"), "s.id, p.label, q.weight");
    view_make(it, "pairs", plan, IVM_IMMEDIATE);
    plan = ivm_plan_join(sold(it), ivm_plan_scan(it->offer, "o"), "s.kind = o.kind");
    plan = ivm_plan_aggregate(plan, "o.name, p.weight");
    view_make(it, "offers", ivm_plan_count(ivm_plan_add(plan, "total", "sum", ivm_column("s.amount")), "n"), IVM_IMMEDIATE);
    plan = ivm_plan_join_where(sold(it),
                               ivm_call2(">", ivm_call2("*", ivm_column("s.amount"), ivm_column("p.weight")), ivm_literal(ivm_int64(50))));
    view_make(it, "heavy", ivm_plan_count(ivm_plan_aggregate(plan, "s.kind"), "n"), IVM_IMMEDIATE);
    plan = ivm_plan_filter(ivm_plan_scan(it->sale, "s"), ivm_call2("<", ivm_column("s.amount"), ivm_literal(ivm_int64(40))));
    plan = ivm_plan_join(plan, ivm_plan_scan(it->product, "p"), "s.product = p.id");
    view_make(it, "small", ivm_plan_distinct(ivm_plan_project(plan, "p.label, s.kind")), IVM_IMMEDIATE);
    plan = ivm_plan_aggregate(sold(it), "s.kind, p.weight");
    view_make(it, "later", ivm_plan_add(plan, "total", "sum", ivm_column("s.amount")), IVM_DEFERRED);
}

/* One that finds its rows there. */
static void view_late(shop *it)
{
    ivm_plan *plan = ivm_plan_aggregate(sold(it), "p.label");
    view_make(it, "late", ivm_plan_add(plan, "deviation", "stddev_pop", ivm_column("s.price")), IVM_IMMEDIATE);
}

static ivm_status shop_open(shop *it, uint32_t threads, const ivm_allocator *allocator)
{
    static const ivm_column_definition sale[] = { { "id", IVM_INT64, true }, { "product", IVM_INT64 },      { "other", IVM_INT64, true },
                                                  { "kind", IVM_INT64 },     { "amount", IVM_INT64, true }, { "price", IVM_FLOAT64 },
                                                  { "note", IVM_STRING } };
    static const ivm_column_definition product[] = { { "id", IVM_INT64, true }, { "weight", IVM_INT64, true }, { "label", IVM_STRING } };
    static const ivm_column_definition offer[] = { { "kind", IVM_INT64 }, { "name", IVM_STRING } };
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.hash_seed = 5;
    options.threads = threads;
    options.allocator = allocator ? *allocator : options.allocator;
    *it = (shop){ 0 };
    ivm_status status = ivm_engine_open(&options, &it->engine, NULL);
    if (status != IVM_OK) {
        return status;
    }
    NEED(ivm_table_create(it->engine, "sale", &(ivm_table_options){ .columns = sale, .columns_count = 7 }, &it->sale, NULL) == IVM_OK);
    NEED(ivm_table_create(it->engine, "product", &(ivm_table_options){ .columns = product, .columns_count = 3, .key = "id" }, &it->product,
                          NULL) == IVM_OK);
    NEED(ivm_table_create(it->engine, "offer", &(ivm_table_options){ .columns = offer, .columns_count = 2 }, &it->offer, NULL) == IVM_OK);
    views_make(it);
    return IVM_OK;
}

/* ---- The story ----------------------------------------------------------------------------------------------------------------------- */

static void sale_put(shop *it, ivm_batch *batch, int64_t id, ivm_change change, bool overflows)
{
    uint64_t random = (uint64_t)id * 0x9E3779B97F4A7C15u;
    char note[24];
    snprintf(note, sizeof note, "note %d", (int)random_below(&random, 300));
    ivm_value row[] = { ivm_int64(id),
                        random_below(&random, 50) ? ivm_int64((int64_t)random_below(&random, PRODUCTS + PRODUCTS / 9)) : ivm_null(),
                        ivm_int64((int64_t)random_below(&random, PRODUCTS)),
                        random_below(&random, 9) ? ivm_int64((int64_t)random_below(&random, 40)) : ivm_null(),
                        ivm_int64(overflows ? INT64_MAX : (int64_t)random_below(&random, 100)),
                        ivm_float64((double)random_below(&random, 1000000) / 7),
                        random_below(&random, 5) ? ivm_string(note) : ivm_null() };
    NEED(ivm_batch_row(batch, it->sale, change, 1, row, 7) == IVM_OK);
}

static void products_put(shop *it, ivm_batch *batch, int64_t first, int64_t count, int turn)
{
    for (int64_t id = first; id < first + count; id++) {
        char label[24];
        snprintf(label, sizeof label, "label %d", (int)((id * 7 + turn) % 211));
        ivm_batch_upsert(batch, it->product, ivm_int64(id), ivm_int64((id + turn) % 5 + 1), ivm_string(label));
    }
}

/* So many of a kind that a chunk of its sales outgrows a slot, and few of the others. */
static void offers_put(shop *it, ivm_batch *batch)
{
    for (int64_t kind = 0; kind < 20; kind++) {
        for (int i = 0; i < (kind == 3 ? 400 : 2); i++) {
            char name[24];
            snprintf(name, sizeof name, "offer %d", i % 17);
            ivm_batch_insert(batch, it->offer, ivm_int64(kind), ivm_string(name));
        }
    }
}

/* Sales of turn t are numbered from t * ROWS. */
static ivm_batch *turn_batch(shop *it, int turn, int rows)
{
    ivm_batch *batch;
    NEED(ivm_batch_create(it->engine, &batch, NULL) == IVM_OK);
    bool refused = turn % 4 == 3;
    for (int i = 0; i < rows; i++) {
        sale_put(it, batch, (int64_t)turn * ROWS + i, IVM_INSERT, refused && i == rows - 70 && turn % 8 == 3);
    }
    if (turn == 1) {
        products_put(it, batch, 0, PRODUCTS, turn);
    }
    if (turn == 4) {
        offers_put(it, batch);
    }
    if (turn > 5) {
        products_put(it, batch, turn * 300, 600, turn);
        for (int i = 0; turn % 2 == 0 && i < rows - 100; i++) {
            sale_put(it, batch, (int64_t)(turn - 4) * ROWS + i, IVM_DELETE, false);
        }
    }
    if (refused && turn % 8 != 3) {
        sale_put(it, batch, -1, IVM_DELETE, false);
    }
    return batch;
}

/* ---- What an engine says --------------------------------------------------------------------------------------------------------------- */

static uint64_t sum_of(uint64_t sum, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++) {
        sum = (sum ^ at[i]) * 0x100000001b3u;
    }
    return sum;
}

/* All rows in their order. */
static uint64_t snapshot_sum(uint64_t sum, ivm_snapshot *snapshot)
{
    size_t columns_count = ivm_snapshot_columns_count(snapshot);
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            int64_t weight = rows.weights ? rows.weights[i] : 1;
            sum = sum_of(sum, &weight, sizeof weight);
            for (size_t c = 0; c < columns_count; c++) {
                ivm_value value = ivm_rows_value(&rows, ivm_snapshot_column_type(snapshot, c), i, c);
                char text[IVM_VALUE_TEXT_SIZE];
                size_t size = ivm_value_format(&value, text, sizeof text);
                sum = sum_of(sum, text, size < sizeof text ? size : sizeof text - 1);
                sum = sum_of(sum, "|", 1);
            }
        }
    }
    NEED(ivm_snapshot_status(snapshot) == IVM_OK);
    ivm_snapshot_close(snapshot);
    return sum;
}

static uint64_t contents(const shop *it)
{
    uint64_t sum = 1;
    ivm_snapshot *snapshot;
    for (size_t v = 0; v < it->views_count; v++) {
        NEED(ivm_read_view(it->views[v], &snapshot, NULL) == IVM_OK);
        sum = snapshot_sum(sum, snapshot);
        NEED(ivm_read_changes(it->views[v], &snapshot, NULL) == IVM_OK);
        sum = snapshot_sum(sum, snapshot);
    }
    NEED(ivm_read_table(it->sale, &snapshot, NULL) == IVM_OK);
    return snapshot_sum(sum, snapshot);
}

typedef struct told {
    ivm_status status;
    ivm_error error;
    ivm_stats stats;
    uint64_t contents;
} told;

static told turn_tell(shop *it, int turn)
{
    told of;
    memset(&of, 0, sizeof of);
    of.status = ivm_push_batch(it->engine, turn_batch(it, turn, ROWS), &of.stats, &of.error);
    of.stats.bytes_held = of.stats.nanoseconds = 0;
    if (turn % 5 == 4) {
        NEED(ivm_refresh_view(it->views[VIEW_LATER], NULL, NULL) == IVM_OK);
    }
    if (turn == 7) {
        view_late(it);
    }
    of.contents = contents(it);
    return of;
}

static void same_check(const told *one, const told *other, uint32_t threads, int turn)
{
    bool same = one->status == other->status && strcmp(one->error.message, other->error.message) == 0 &&
                memcmp(&one->stats, &other->stats, sizeof one->stats) == 0 && one->contents == other->contents;
    if (!same) {
        fprintf(stderr, "turn %d with %u threads: %s (%s), with one: %s (%s), contents %s\n", turn, threads, ivm_status_name(other->status),
                other->error.message, ivm_status_name(one->status), one->error.message,
                one->contents == other->contents ? "equal" : "not equal");
    }
    NEED(same);
}

static void story_check(void)
{
    static const uint32_t threads[] = { 2, 3, IVM_THREADS_MAX };
    told one[TURNS];
    shop it;
    NEED(shop_open(&it, 1, NULL) == IVM_OK);
    int refused = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        one[turn] = turn_tell(&it, turn);
        refused += one[turn].status == IVM_OVERFLOW ? 1 : one[turn].status == IVM_ROW_NOT_FOUND ? 16 : 0;
    }
    NEED(refused == 2 + 16 && one[TURNS - 2].stats.rows_matched > 10 * ROWS);
    NEED(ivm_engine_close(it.engine, NULL) == IVM_OK);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        NEED(shop_open(&it, threads[i], NULL) == IVM_OK);
        for (int turn = 0; turn < TURNS; turn++) {
            told other = turn_tell(&it, turn);
            same_check(&one[turn], &other, threads[i], turn);
        }
        NEED(ivm_engine_close(it.engine, NULL) == IVM_OK);
    }
}

/* ---- Allocations that fail --------------------------------------------------------------------------------------------------------------- */

static void memory_check(void)
{
    test_allocator allocator;
    test_allocator_init(&allocator);
    ivm_allocator functions = test_allocator_functions(&allocator);
    shop it;
    for (uint64_t n = 1; n <= 3; n++) { /* the engine, the pool; then the tables, which are not asked */
        test_allocator_arm(&allocator, n);
        ivm_status status = ivm_engine_open(&(ivm_engine_options){ .allocator = functions, .threads = 2 }, &it.engine, NULL);
        bool failed = test_allocator_disarm(&allocator);
        NEED(status == (failed ? IVM_OUT_OF_MEMORY : IVM_OK) && failed == (n <= 2));
        NEED(failed || ivm_engine_close(it.engine, NULL) == IVM_OK);
        NEED(test_allocator_is_clean(&allocator));
    }
    NEED(shop_open(&it, 2, &functions) == IVM_OK);
    for (int turn = 0; turn < 7; turn++) {
        uint64_t before = contents(&it), failures = 0;
        for (uint64_t n = 1, done = 0; !done; n += 1 + n / 16) {
            ivm_batch *batch = turn_batch(&it, turn, ROWS_FEW);
            test_allocator_arm(&allocator, n);
            ivm_status status = ivm_push_batch(it.engine, batch, NULL, NULL);
            done = !test_allocator_disarm(&allocator) || status != IVM_OUT_OF_MEMORY; /* what a thread lacked the caller may have had */
            NEED(status == (turn == 3 && done ? IVM_OVERFLOW : done ? IVM_OK : IVM_OUT_OF_MEMORY));
            NEED(status == IVM_OK || contents(&it) == before);
            failures += status == IVM_OUT_OF_MEMORY;
        }
        NEED(failures > 0);
    }
    NEED(ivm_engine_close(it.engine, NULL) == IVM_OK);
    NEED(test_allocator_is_clean(&allocator));
}

/* ---- Limits, signals and forks ------------------------------------------------------------------------------------------------------------- */

static void limits_check(void)
{
    ivm_engine *engine;
    ivm_error error = IVM_ERROR_INIT;
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    NEED(options.threads == 1);
    options.threads = IVM_THREADS_MAX + 1;
    NEED(ivm_engine_open(&options, &engine, &error) == IVM_INVALID_ARGUMENT && strstr(error.message, "17 threads, at most 16"));
    options = (ivm_engine_options){ 0 };
    NEED(ivm_engine_open(&options, &engine, &error) == IVM_OK && ivm_engine_close(engine, &error) == IVM_OK);
}

static volatile sig_atomic_t signals;

static void signal_note(int signal)
{
    (void)signal;
    signals = signals + 1;
}

/* A signal that the host's own thread does not take yet stays where it is. */
static void signals_check(void)
{
    sigset_t one, before, pending;
    shop it;
    NEED(shop_open(&it, 4, NULL) == IVM_OK);
    struct sigaction action = { .sa_handler = signal_note };
    NEED(sigaction(SIGUSR1, &action, NULL) == 0 && sigemptyset(&one) == 0 && sigaddset(&one, SIGUSR1) == 0);
    NEED(pthread_sigmask(SIG_BLOCK, &one, &before) == 0 && kill(getpid(), SIGUSR1) == 0);
    NEED(turn_tell(&it, 0).status == IVM_OK);
    NEED(signals == 0 && sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 1);
    NEED(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0 && signals == 1);
    NEED(ivm_engine_close(it.engine, NULL) == IVM_OK);
}

static void fork_check(void)
{
    shop it;
    NEED(shop_open(&it, 3, NULL) == IVM_OK && turn_tell(&it, 0).status == IVM_OK);
    pid_t child = fork();
    NEED(child >= 0);
    uint64_t sum = turn_tell(&it, 1).contents;
    NEED(ivm_engine_close(it.engine, NULL) == IVM_OK);
    NEED(shop_open(&it, 1, NULL) == IVM_OK && turn_tell(&it, 0).status == IVM_OK);
    NEED(turn_tell(&it, 1).contents == sum && ivm_engine_close(it.engine, NULL) == IVM_OK);
    if (child == 0) {
        _exit(0); /* without the leak check, which would look for the threads */
    }
    int status;
    NEED(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    limits_check();
    story_check();
    memory_check();
    signals_check();
    fork_check();
    return 0;
}
