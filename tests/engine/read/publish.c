/* tests engine/read/publish.c: who takes a snapshot while another thread pushes waits for nobody, gets the state last committed, and costs an engine of one thread
 * nothing. */
#include "publish.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "onlooker.h"
#include "snapshot_case.h"

/* ---- A push that is held in the allocator ---------------------------------------------------------------------------------------------- */

/* An allocator that holds one thread up at its n-th call until it is let go. */
typedef struct gate {
    ivm_allocator inner;
    _Atomic(pthread_t) held; /* the thread */
    _Atomic int64_t calls;   /* of it until it is held; below 0: never */
    _Atomic bool stands, open, done;
} gate;

static void gate_pass(gate *it)
{
    if (atomic_load(&it->calls) < 0 || !pthread_equal(atomic_load(&it->held), pthread_self()) || atomic_fetch_sub(&it->calls, 1) != 0) {
        return;
    }
    atomic_store(&it->stands, true);
    while (!atomic_load(&it->open)) {
        sched_yield();
    }
}

static void *gate_allocate(void *context, size_t size)
{
    gate *it = context;
    gate_pass(it);
    return it->inner.allocate(it->inner.context, size);
}

static void *gate_resize(void *context, void *memory, size_t size_old, size_t size_new)
{
    gate *it = context;
    gate_pass(it);
    return it->inner.resize(it->inner.context, memory, size_old, size_new);
}

static void gate_release(void *context, void *memory, size_t size)
{
    gate *it = context;
    it->inner.release(it->inner.context, memory, size);
}

typedef struct held_push {
    gate gate;
    ivm_engine *engine;
    ivm_table *table;
    int64_t calls; /* of the allocator before it is held */
    int64_t value; /* that all rows get */
    ivm_status status;
} held_push;

#define ROWS 3000

static void rows_push(held_push *it, int64_t value)
{
    ivm_batch *batch = NULL;
    ivm_error error;
    cr_assert_eq(ivm_batch_create(it->engine, &batch, &error), IVM_OK);
    for (int64_t i = 0; i < ROWS; i++) {
        char text[32];
        snprintf(text, sizeof text, "%lld of %lld", (long long)i, (long long)value);
        ivm_batch_upsert(batch, it->table, ivm_int64(i), ivm_int64(value), ivm_string(text));
    }
    atomic_store(&it->gate.calls, it->calls);
    it->status = ivm_push_batch(it->engine, batch, NULL, &error);
    atomic_store(&it->gate.calls, -1);
}

static void *push_on(void *of)
{
    held_push *it = of;
    atomic_store(&it->gate.held, pthread_self());
    rows_push(it, it->value);
    atomic_store(&it->gate.done, true);
    return NULL;
}

static void held_open(held_push *it)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    ivm_column_definition columns[] = { { "id", IVM_INT64, true }, { "value", IVM_INT64, true }, { "text", IVM_STRING, true } };
    test_allocator_init(&snapshot_allocator);
    *it = (held_push){ .gate.inner = test_allocator_functions(&snapshot_allocator), .calls = -1 };
    atomic_init(&it->gate.calls, -1);
    options.allocator = (ivm_allocator){ gate_allocate, gate_resize, gate_release, &it->gate };
    cr_assert_eq(ivm_engine_open(&options, &it->engine, &snapshot_error), IVM_OK);
    cr_assert_eq(ivm_table_create(it->engine, "t", &(ivm_table_options){ .columns = columns, .columns_count = 3, .key = "id" }, &it->table,
                                  &snapshot_error),
                 IVM_OK);
    rows_push(it, 0);
}

static void held_end(held_push *it)
{
    cr_assert_eq(ivm_engine_close(it->engine, &snapshot_error), IVM_OK, "%s", snapshot_error.message);
    cr_assert(test_allocator_is_clean(&snapshot_allocator));
}

/* All rows have the value and the text that goes with it. */
static void assert_value(ivm_snapshot *snapshot, int64_t value)
{
    uint64_t count = 0;
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows); count += rows.rows_count) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            char text[32];
            int64_t id = ivm_rows_value(&rows, IVM_INT64, i, 0).as.int64;
            ivm_value given = ivm_rows_value(&rows, IVM_STRING, i, 2);
            size_t size = (size_t)snprintf(text, sizeof text, "%lld of %lld", (long long)id, (long long)value);
            cr_assert_eq(ivm_rows_value(&rows, IVM_INT64, i, 1).as.int64, value);
            cr_assert(given.as.string.size == size && memcmp(given.as.string.bytes, text, size) == 0);
        }
    }
    cr_assert_eq(count, ROWS);
}

static void read_all(held_push *it, int64_t value)
{
    ivm_snapshot *snapshot = NULL;
    ivm_rows rows;
    cr_assert_eq(ivm_read_table(it->table, &snapshot, &snapshot_error), IVM_OK);
    assert_value(snapshot, value);
    cr_assert_eq(ivm_snapshot_find(snapshot, (ivm_value[]){ ivm_int64(17) }, 1, &rows, &snapshot_error), IVM_OK);
    cr_assert_eq(ivm_rows_value(&rows, IVM_INT64, 0, 1).as.int64, value);
    cr_assert_eq(ivm_snapshot_sort(snapshot, &snapshot_error), IVM_OK);
    assert_value(snapshot, value);
    ivm_snapshot_close(snapshot);
}

/* A push of `value`, held at its call `calls`, is met by a reader. False: it made fewer. */
static bool meet(held_push *it, int64_t calls, int64_t before, int64_t value)
{
    pthread_t thread;
    ivm_snapshot *kept = NULL;
    it->calls = calls;
    it->value = value;
    atomic_store(&it->gate.stands, false);
    atomic_store(&it->gate.open, false);
    atomic_store(&it->gate.done, false);
    cr_assert_eq(pthread_create(&thread, NULL, push_on, it), 0);
    while (!atomic_load(&it->gate.stands) && !atomic_load(&it->gate.done)) {
        sched_yield();
    }
    bool held = atomic_load(&it->gate.stands);
    if (held) {
        read_all(it, before);
        cr_assert_eq(ivm_read_table(it->table, &kept, &snapshot_error), IVM_OK);
    }
    atomic_store(&it->gate.open, true);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert_eq(it->status, IVM_OK);
    read_all(it, value);
    if (kept) {
        assert_value(kept, before);
    }
    ivm_snapshot_close(kept);
    return held;
}

/* Held at its first call, its second, and so on to its last: the reader gets what was there before. */
Test(engine_publish, a_push_that_stands_still_holds_no_reader_up)
{
    held_push it;
    int64_t calls = 0, value = 0;
    held_open(&it);
    for (; meet(&it, calls, value, value + 1); value++) {
        calls += 1 + calls / 8;
    }
    cr_assert_gt(calls, 100, "it was held in the step, too: %lld calls", (long long)calls);
    held_end(&it);
}

/* The same where the thread that pushes is the second to use the engine, and the reader has never read. */
Test(engine_publish, the_first_reader_waits_for_no_push_of_a_second_thread)
{
    bool held = true;
    for (int64_t calls = 0; held; calls += 1 + calls / 8) {
        held_push it;
        held_open(&it);
        held = meet(&it, calls, 0, 1);
        held_end(&it);
    }
}

/* ---- When states are published ------------------------------------------------------------------------------------------------------------ */

TestSuite(engine_publish_when, .init = snapshot_open, .fini = snapshot_close);

static void *push_one(void *of)
{
    static uint64_t next = 100000;
    snapshot_push(of, IVM_INSERT, next++, 1);
    return NULL;
}

static void on_another_thread(void *(*body)(void *), void *of)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, body, of), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
}

static bool is_published(const ivm_table *table)
{
    return table->published->listed;
}

Test(engine_publish_when, one_thread_publishes_nothing)
{
    ivm_table *table = snapshot_table("t", "id");
    for (uint64_t i = 0; i < 10; i++) {
        snapshot_push(table, IVM_INSERT, i, 1);
        ivm_snapshot_close(snapshot_read(table));
    }
    cr_assert(!snapshot_engine->several && !snapshot_engine->published);
    cr_assert_eq(atomic_load(&table->store.pages->references), 1u);
}

Test(engine_publish_when, a_second_thread_publishes_what_there_is_and_trust_ends)
{
    ivm_table *read = snapshot_table("read", "id"), *unread = snapshot_table("unread", NULL), *other = snapshot_table("other", "id");
    snapshot_push(other, IVM_INSERT, 0, 1);
    on_another_thread(push_one, other);
    cr_assert(is_published(read) && is_published(unread) && is_published(other));
    for (uint64_t i = 0; i < 1200; i++) {
        ivm_batch *batch = NULL;
        ivm_value values[SNAPSHOT_COLUMNS];
        char text[32];
        cr_assert_eq(ivm_batch_create(snapshot_engine, &batch, &snapshot_error), IVM_OK);
        snapshot_row_of(i, values, text);
        cr_assert_eq(ivm_batch_row(batch, read, IVM_INSERT, 1, values, SNAPSHOT_COLUMNS), IVM_OK);
        cr_assert_eq(ivm_batch_row(batch, unread, IVM_INSERT, 1, values, SNAPSHOT_COLUMNS), IVM_OK);
        cr_assert_eq(ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error), IVM_OK);
        cr_assert_eq(is_published(read), i < 100 + 1025, "push %llu", (unsigned long long)i);
        cr_assert_eq(is_published(unread), i < 64, "push %llu", (unsigned long long)i);
        if (i < 100) {
            ivm_snapshot_close(snapshot_read(read));
        }
    }
    cr_assert(is_published(other), "nothing has changed in it");
    ivm_snapshot_close(snapshot_read(unread));
    cr_assert(is_published(unread), "it was read");
    cr_assert_eq(ivm_table_drop(other, &snapshot_error), IVM_OK);
    cr_assert(is_published(snapshot_table("late", "id")), "made since");
}

/* A state is what a snapshot taken with the lock would be, whatever a call has done to the table. */
static void assert_state(ivm_table *table)
{
    ivm_snapshot *taken = NULL, *read = snapshot_read(table);
    ivm_status status = IVM_OK;
    cr_assert(ivm__state_take(snapshot_engine, table->published, &taken, &status) && status == IVM_OK);
    cr_assert(taken->shared.pages == read->shared.pages && taken->shared.rows.layout == read->shared.rows.layout);
    cr_assert(taken->shared.rows.end == read->shared.rows.end && taken->rows_count == read->rows_count);
    cr_assert(taken->shared.heavies == read->shared.heavies && taken->shared.rows.heavy_count == read->shared.rows.heavy_count);
    cr_assert(taken->key_count == read->key_count && memcmp(taken->key, read->key, read->key_count * sizeof *read->key) == 0);
    cr_assert(taken->finds == read->finds && taken->epoch == read->epoch);
    ivm_snapshot_close(taken);
    ivm_snapshot_close(read);
}

static void assert_states(ivm_table *const *tables)
{
    for (uint32_t i = 0; i < 2; i++) {
        assert_state(tables[i]);
    }
}

Test(engine_publish_when, a_state_follows_whatever_changes_the_table)
{
    ivm_table *tables[] = { snapshot_table("t", "id"), snapshot_table("u", NULL) };
    ivm_batch *batch = NULL;
    for (uint32_t i = 0; i < 2; i++) {
        snapshot_push(tables[i], IVM_INSERT, 1, 2);
    }
    on_another_thread(push_one, tables[1]);
    assert_states(tables);
    snapshot_push(tables[0], IVM_INSERT, 12, 1000);
    assert_states(tables);
    snapshot_push(tables[0], IVM_DELETE, 12, 1000);
    assert_states(tables);
    cr_assert_eq(ivm_batch_create(snapshot_engine, &batch, &snapshot_error), IVM_OK);
    ivm_value values[SNAPSHOT_COLUMNS];
    char text[32];
    snapshot_row_of(5, values, text);
    cr_assert_eq(ivm_batch_row(batch, tables[1], IVM_WEIGHTED, INT64_MAX, values, SNAPSHOT_COLUMNS), IVM_OK);
    cr_assert_eq(ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error), IVM_OK);
    assert_states(tables);
    cr_assert_eq(tables[1]->store.heavy_count, 1u);
    cr_assert_eq(ivm_batch_create(snapshot_engine, &batch, &snapshot_error), IVM_OK);
    cr_assert_eq(ivm_batch_row(batch, tables[1], IVM_DELETE, 1, (snapshot_row_of(77, values, text), values), SNAPSHOT_COLUMNS), IVM_OK);
    cr_assert_eq(ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error), IVM_ROW_NOT_FOUND);
    assert_states(tables);
    for (uint32_t i = 0; i < 2; i++) {
        ivm_column_definition added = { "added", IVM_STRING, false };
        cr_assert_eq(ivm_table_column_add(tables[i], &added, &snapshot_error), IVM_OK, "%s", snapshot_error.message);
        assert_states(tables);
        cr_assert_eq(ivm_table_column_drop(tables[i], "b", &snapshot_error), IVM_OK, "%s", snapshot_error.message);
        assert_states(tables);
    }
}

/* A key that moves to other columns by a column that goes. */
Test(engine_publish_when, a_state_has_the_key_as_it_is_numbered_now)
{
    ivm_column_definition columns[] = { { "gone", IVM_INT64, true }, { "b", IVM_STRING, true }, { "a", IVM_INT64, true } };
    ivm_table *table = NULL, *other = snapshot_table("other", "id");
    ivm_batch *batch = NULL;
    ivm_snapshot *taken = NULL;
    ivm_status status;
    ivm_rows rows;
    cr_assert_eq(ivm_table_create(snapshot_engine, "t", &(ivm_table_options){ .columns = columns, .columns_count = 3, .key = "a, b" },
                                  &table, &snapshot_error),
                 IVM_OK);
    cr_assert_eq(ivm_batch_create(snapshot_engine, &batch, &snapshot_error), IVM_OK);
    cr_assert_eq(ivm_batch_insert(batch, table, ivm_int64(1), ivm_string("x"), ivm_int64(2)), IVM_OK);
    cr_assert_eq(ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error), IVM_OK);
    on_another_thread(push_one, other);
    for (uint32_t round = 0; round < 2; round++) {
        cr_assert(ivm__state_take(snapshot_engine, table->published, &taken, &status));
        cr_assert_eq(ivm_snapshot_find(taken, (ivm_value[]){ ivm_int64(2), ivm_string("x") }, 2, &rows, &snapshot_error), IVM_OK);
        cr_assert_eq(ivm_snapshot_find(taken, (ivm_value[]){ ivm_int64(1), ivm_string("x") }, 2, &rows, &snapshot_error),
                     IVM_ROW_NOT_FOUND);
        ivm_snapshot_close(taken);
        cr_assert(round || ivm_table_column_drop(table, "gone", &snapshot_error) == IVM_OK);
    }
}

/* Only who takes a snapshot of it can be told that memory is wanting. */
Test(engine_publish_when, out_of_memory_taking_one_leaves_the_state)
{
    ivm_table *table = snapshot_table("t", "id");
    on_another_thread(push_one, table);
    for (uint64_t n = 1; n <= 2; n++) {
        ivm_snapshot *taken = NULL;
        ivm_status status = IVM_OK;
        test_allocator_arm(&snapshot_allocator, n);
        cr_assert(ivm__state_take(snapshot_engine, table->published, &taken, &status));
        cr_assert_eq(test_allocator_disarm(&snapshot_allocator), n == 1);
        cr_assert_eq(status, n == 1 ? IVM_OUT_OF_MEMORY : IVM_OK);
        cr_assert_eq(taken != NULL, n == 2);
        ivm_snapshot_close(taken);
    }
    assert_state(table);
}

/* ---- Several views at once --------------------------------------------------------------------------------------------------------------- */

#define VIEWS 2u

typedef struct together {
    ivm_view *views[VIEWS + 1]; /* the first again */
    ivm_snapshot *taken[VIEWS + 1];
    ivm_status status;
} together;

static ivm_status look_away(void *unused, ivm__step *step)
{
    (void)unused;
    (void)step;
    return IVM_OK;
}

static void together_make(together *it, ivm_table *table)
{
    for (uint32_t i = 0; i < VIEWS; i++) {
        it->views[i] = onlooker_make(snapshot_engine, i ? "b" : "a", IVM_IMMEDIATE, &table, 1, look_away, NULL);
        cr_assert_eq(ivm__state_make(snapshot_engine, it->views[i], NULL), IVM_OK);
        table->readers_count++;
    }
    it->views[VIEWS] = it->views[0];
}

static void *read_together(void *of)
{
    together *it = of;
    it->status = ivm_read_views(it->views, VIEWS + 1, it->taken, &snapshot_error);
    return NULL;
}

static void assert_together(together *it, const char *position)
{
    uint64_t epoch = it->taken[0]->epoch;
    for (uint32_t i = 0; i <= VIEWS; i++) {
        char bytes[8];
        size_t size = 99;
        cr_assert(it->taken[i] && it->taken[i]->epoch == epoch && !it->taken[i]->kept_next);
        cr_assert_eq(it->taken[i]->shared.rows.layout, it->views[i]->program.result->layout, "%u", i);
        cr_assert_eq(ivm_snapshot_position(it->taken[i], bytes, sizeof bytes, &size, &snapshot_error), IVM_OK);
        cr_assert(size == strlen(position) && memcmp(bytes, position, size) == 0);
        ivm_snapshot_close(it->taken[i]);
        it->taken[i] = NULL;
    }
}

/* A call for memory that fails leaves none of them. */
static void assert_all_or_none(together *it, bool locked, const char *position)
{
    for (uint64_t n = 1; n <= VIEWS + 2; n++) {
        if (locked) {
            pthread_mutex_lock(&snapshot_engine->lock);
        }
        test_allocator_arm(&snapshot_allocator, n);
        on_another_thread(read_together, it);
        cr_assert_eq(test_allocator_disarm(&snapshot_allocator), n <= VIEWS + 1);
        if (locked) {
            pthread_mutex_unlock(&snapshot_engine->lock);
        }
        cr_assert_eq(it->status, n <= VIEWS + 1 ? IVM_OUT_OF_MEMORY : IVM_OK);
        cr_assert(n > VIEWS + 1 || (!it->taken[0] && !it->taken[VIEWS] && !snapshot_engine->snapshots_oldest));
    }
    assert_together(it, position);
}

Test(engine_publish_when, several_views_are_read_as_of_one_state)
{
    together it = { .status = IVM_OK };
    ivm_table *table = snapshot_table("t", "id");
    ivm_batch *batch;
    together_make(&it, table);
    assert_all_or_none(&it, false, "");
    on_another_thread(push_one, table);
    cr_assert(it.views[0]->published->listed && it.views[1]->published->listed);
    cr_assert_eq(ivm_batch_create(snapshot_engine, &batch, NULL), IVM_OK);
    cr_assert_eq(ivm_batch_position(batch, "here", 4), IVM_OK);
    cr_assert_eq(ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error), IVM_OK);
    assert_all_or_none(&it, false, "here");
    assert_all_or_none(&it, true, "here");
    cr_assert_eq(ivm_read_views(it.views, 0, NULL, &snapshot_error), IVM_OK, "nothing is read");
    cr_assert_eq(ivm_read_views(NULL, 1, it.taken, &snapshot_error), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(snapshot_error.message, "ivm_read_views: views is NULL");
    cr_assert_eq(ivm_read_views(it.views, 1, NULL, &snapshot_error), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(snapshot_error.message, "ivm_read_views: snapshots is NULL");
    ivm_view other = { .engine = NULL, .name = "c" }, *wrong[] = { it.views[0], &other };
    cr_assert_eq(ivm_read_views(wrong, 2, it.taken, &snapshot_error), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(snapshot_error.message, "ivm_read_views: view c is of another engine than view a");
    wrong[1] = NULL;
    cr_assert_eq(ivm_read_views(wrong, 2, it.taken, &snapshot_error), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(snapshot_error.message, "ivm_read_views: view 1 of 2 is NULL");
}
