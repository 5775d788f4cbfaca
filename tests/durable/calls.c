/* What the calls of a durable engine say: of wrong arguments, of a directory that another has, of one to be read only, of pushes that are synced
 * when asked; what opening tells it found, and has again of the last push; who closes the engine, or writes another checkpoint, while one is written. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "disk.h"
#include "story.h"

static void arguments(const story_place *place)
{
    ivm_engine *engine, *plain;
    ivm_error why = IVM_ERROR_INIT;
    ivm_durable_options later = { .version = IVM_DURABLE_OPTIONS_VERSION + 1 };
    ivm_durable_options none = { .sync = (ivm_sync)9 };
    ivm_recovery found = { .version = IVM_RECOVERY_VERSION + 1 };
    ivm_durable_status status = { .version = IVM_DURABLE_STATUS_VERSION };
    NEED(ivm_durable_open(NULL, NULL, &engine, NULL, &why) == IVM_INVALID_ARGUMENT && why.message[0]);
    NEED(ivm_durable_open(place->directory, NULL, NULL, NULL, NULL) == IVM_INVALID_ARGUMENT);
    NEED(ivm_durable_open(place->directory, &later, &engine, NULL, NULL) == IVM_INVALID_ARGUMENT);
    NEED(ivm_durable_open(place->directory, &none, &engine, NULL, NULL) == IVM_INVALID_ARGUMENT);
    NEED(ivm_durable_open(place->directory, NULL, &engine, &found, NULL) == IVM_INVALID_ARGUMENT);
    OK(ivm_engine_open(NULL, &plain, error));
    NEED(ivm_durable_state(plain, &status, &why) == IVM_INVALID_ARGUMENT && strstr(why.message, "not durable"));
    NEED(ivm_durable_sync(plain, NULL) == IVM_INVALID_ARGUMENT && ivm_durable_sync(NULL, NULL) == IVM_INVALID_ARGUMENT);
    NEED(ivm_durable_checkpoint(plain, NULL) == IVM_INVALID_ARGUMENT);
    OK(ivm_engine_close(plain, error));
    char nowhere[400];
    snprintf(nowhere, sizeof nowhere, "%s/not/there", place->root);
    NEED(ivm_durable_open(nowhere, NULL, &engine, NULL, &why) == IVM_IO && why.message[0]);
}

static ivm_status nothing_read(void *context, void *bytes, size_t size, size_t *got)
{
    (void)context;
    (void)bytes;
    (void)size;
    *got = 0;
    return IVM_OK;
}

static void opened_twice(const story_place *place)
{
    ivm_engine *engine, *second;
    ivm_error why = IVM_ERROR_INIT;
    OK(story_open(place->directory, NULL, &engine, NULL, error));
    NEED(story_open(place->directory, NULL, &second, NULL, &why) == IVM_IN_USE && strstr(why.message, place->directory));
    NEED(ivm_restore(engine, nothing_read, NULL, &why) == IVM_UNSUPPORTED);
    ivm_restoring *restore;
    NEED(ivm_restore_open(engine, &restore, &why) == IVM_UNSUPPORTED && strstr(why.message, "durable"));
    OK(ivm_engine_close(engine, error));
    OK(story_open(place->directory, NULL, &second, NULL, error));
    OK(ivm_engine_close(second, error));
    story_place_clear(place);
}

/* What was made is told by numbers. */
static void recovered(const story_place *place)
{
    ivm_engine *engine;
    ivm_recovery found = { .version = IVM_RECOVERY_VERSION };
    ivm_durable_status status = { .version = IVM_DURABLE_STATUS_VERSION };
    OK(story_open(place->directory, NULL, &engine, &found, error));
    NEED(found.created && !found.checkpoint && !found.batches && !found.changes && !found.bytes_cut && !found.message[0]);
    story_declare(engine);
    OK(story_push(engine, 100, error));
    OK(ivm_durable_checkpoint(engine, error));
    OK(ivm_durable_state(engine, &status, error));
    NEED(status.checkpoint == STORY_DECLARES + 1 && status.sequence == status.checkpoint && status.synced == status.sequence);
    OK(story_push(engine, 101, error));
    OK(story_push(engine, 102, error));
    ivm_view *late;
    OK(ivm_view_find(engine, "late", &late, error));
    OK(ivm_refresh_view(late, NULL, error));
    OK(ivm_durable_state(engine, &status, error));
    NEED(status.sequence == STORY_DECLARES + 4 && status.syncs > STORY_DECLARES && status.log_bytes > 0 && !status.broken);
    ivm_batch *batch;
    OK(ivm_batch_create(engine, &batch, error)); /* a position alone */
    ivm_batch_position(batch, &(uint64_t){ 104 }, sizeof(uint64_t));
    OK(ivm_push_batch(engine, batch, NULL, error));
    OK(ivm_engine_close(engine, error));
    OK(story_open(place->directory, NULL, &engine, &found, error));
    NEED(!found.created && found.checkpoint == STORY_DECLARES + 1 && found.batches == 3 && found.changes == 1 && !found.bytes_cut);
    NEED(story_position(engine) == 104);
    OK(ivm_engine_close(engine, error));
}

/* What the last push did to the view, summed up. */
static uint64_t changes_digest(ivm_engine *engine, const char *name, uint64_t *count)
{
    ivm_view *view;
    ivm_snapshot *changes;
    uint64_t sum = 0xcbf29ce484222325u;
    OK(ivm_view_find(engine, name, &view, error));
    OK(ivm_read_changes(view, &changes, error));
    OK(ivm_snapshot_sort(changes, error));
    for (ivm_rows rows; ivm_snapshot_next(changes, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++, ++*count) {
            for (size_t c = 0; c < ivm_snapshot_columns_count(changes); c++) {
                char text[IVM_VALUE_TEXT_SIZE];
                ivm_value value = ivm_rows_value(&rows, ivm_snapshot_column_type(changes, c), i, c);
                ivm_value_format(&value, text, sizeof text);
                for (const char *at = text; *at; at++) {
                    sum = (sum ^ (unsigned char)*at) * 0x100000001b3u;
                }
            }
            sum = (sum ^ (uint64_t)rows.weights[i]) * 0x100000001b3u;
        }
    }
    ivm_snapshot_close(changes);
    return sum;
}

/* A host that did not hand on what its last push changed has it again; behind a checkpoint nothing. */
static void changes_again(const story_place *place)
{
    static const char *const views[] = { "joined", "totals", "floats", "left", "distinct" };
    enum { VIEWS = sizeof views / sizeof *views };
    ivm_engine *engine;
    uint64_t before[VIEWS], count = 0, count_again = 0, none = 0;
    OK(story_open(place->directory, NULL, &engine, NULL, error));
    story_declare(engine);
    for (uint64_t step = 100; step < 103; step++) {
        OK(story_push(engine, step, error));
    }
    for (size_t i = 0; i < VIEWS; i++) {
        before[i] = changes_digest(engine, views[i], &count);
    }
    OK(ivm_engine_close(engine, error));
    OK(story_open(place->directory, NULL, &engine, NULL, error));
    for (size_t i = 0; i < VIEWS; i++) {
        NEED(changes_digest(engine, views[i], &count_again) == before[i]);
    }
    NEED(count > 0 && count_again == count);
    OK(ivm_durable_checkpoint(engine, error));
    OK(ivm_engine_close(engine, error));
    OK(story_open(place->directory, NULL, &engine, NULL, error));
    for (size_t i = 0; i < VIEWS; i++) {
        changes_digest(engine, views[i], &none);
    }
    NEED(none == 0);
    OK(ivm_engine_close(engine, error));
    story_place_clear(place);
}

/* Of the directory that recovered() left. */
static void read_only(const story_place *place)
{
    ivm_engine *engine;
    ivm_view *view;
    ivm_table *table;
    ivm_snapshot *snapshot;
    ivm_error why = IVM_ERROR_INIT;
    ivm_durable_options options = { .version = IVM_DURABLE_OPTIONS_VERSION, .read_only = true };
    OK(ivm_durable_open(place->directory, &options, &engine, NULL, error));
    uint64_t digest = story_digest(engine);
    NEED(story_push(engine, 106, &why) == IVM_UNSUPPORTED && strstr(why.message, "read only"));
    OK(ivm_view_find(engine, "totals", &view, error));
    OK(ivm_table_find(engine, "f", &table, error));
    NEED(ivm_view_drop(view, NULL) != IVM_OK && ivm_table_column_rename(table, "n", "m2", &why) == IVM_UNSUPPORTED);
    NEED(ivm_durable_checkpoint(engine, &why) == IVM_UNSUPPORTED);
    OK(ivm_durable_sync(engine, error));
    OK(ivm_read_view(view, &snapshot, error));
    ivm_snapshot_close(snapshot);
    NEED(story_digest(engine) == digest && story_position(engine) == 104);
    OK(ivm_engine_close(engine, error));
    story_place_clear(place);
}

/* Nothing is synced until it is asked for, or the engine is closed; all of it is there. */
static void asked(const story_place *place)
{
    disk under = { .pretends = true };
    ivm__files files = disk_files(&under);
    ivm_engine *engine;
    ivm_durable_status status = { .version = IVM_DURABLE_STATUS_VERSION };
    ivm_durable_options options = { .version = IVM_DURABLE_OPTIONS_VERSION, .sync = IVM_SYNC_ASKED };
    OK(ivm__durable_open(place->directory, &options, &files, &engine, NULL, error));
    uint64_t syncs = under.syncs;
    story_declare(engine);
    OK(story_push(engine, 100, error));
    OK(ivm_durable_state(engine, &status, error));
    NEED(under.syncs == syncs && status.sequence == STORY_DECLARES + 1 && status.synced == 0);
    OK(ivm_durable_sync(engine, error));
    OK(ivm_durable_state(engine, &status, error));
    NEED(under.syncs > syncs && status.synced == STORY_DECLARES + 1);
    OK(story_push(engine, 101, error));
    uint64_t digest = story_digest(engine);
    syncs = under.syncs;
    OK(ivm_engine_close(engine, error));
    NEED(under.syncs > syncs);
    OK(ivm__durable_open(place->directory, &options, &files, &engine, NULL, error));
    NEED(story_digest(engine) == digest);
    under.nth = 1; /* the next sync, which is the closing one's */
    under.calls = 0;
    under.syncs_alone = true;
    under.what = DISK_FAILS;
    under.number = 5;
    OK(story_push(engine, 103, error));
    ivm_error why = IVM_ERROR_INIT;
    NEED(ivm_engine_close(engine, &why) == IVM_IO && why.message[0]);
    NEED(story_position(engine) == 104);
    OK(ivm_engine_close(engine, error));
    story_place_clear(place);
}

/* ---- Beside a checkpoint ---------------------------------------------------------------------------------------------------------------- */

typedef struct beside {
    ivm_engine *engine;
    uint64_t refused;
} beside;

static void *close_refused(void *context)
{
    beside *it = context;
    it->refused += ivm_engine_close(it->engine, NULL) == IVM_IN_USE;
    return NULL;
}

static void close_try(void *context)
{
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, close_refused, context) == 0);
    NEED(pthread_join(thread, NULL) == 0);
}

/* Until the checkpoint has its name, and what it stands for is gone. */
static void closed_meanwhile(const story_place *place)
{
    disk under = { .pretends = true };
    ivm__files files = disk_files(&under);
    beside it = { NULL, 0 };
    OK(story_open(place->directory, &files, &it.engine, NULL, error));
    story_declare(it.engine);
    OK(ivm_durable_sync(it.engine, error));
    OK(ivm_durable_checkpoint(it.engine, error)); /* the segment is empty from now on: the next makes none under the lock */
    uint64_t syncs = under.syncs;
    under.meanwhile_context = &it;
    under.meanwhile = close_try;
    OK(ivm_durable_checkpoint(it.engine, error));
    under.meanwhile = NULL;
    NEED(it.refused > 0 && it.refused == under.syncs - syncs);
    OK(ivm_engine_close(it.engine, error));
    story_place_clear(place);
}

/* Two checkpoints: the disk is full for the last write of the first; the second begins when that has been given up, and before the call is over. */
typedef struct pair {
    ivm_engine *engine;
    ivm__files files;
    pthread_t first, second;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool armed, waited_for; /* the first fails; it has failed, and the second is to begin */
    bool begun, over;       /* the second writes; the first has returned */
} pair;

static void pair_set(pair *it, bool *what)
{
    pthread_mutex_lock(&it->lock);
    *what = true;
    pthread_cond_broadcast(&it->changed);
    pthread_mutex_unlock(&it->lock);
}

static void pair_wait(pair *it, const bool *what)
{
    pthread_mutex_lock(&it->lock);
    while (!*what) {
        pthread_cond_wait(&it->changed, &it->lock);
    }
    pthread_mutex_unlock(&it->lock);
}

static bool is_free(pthread_mutex_t *lock)
{
    bool taken = pthread_mutex_trylock(lock) == 0;
    if (taken) {
        pthread_mutex_unlock(lock);
    }
    return taken;
}

static int pair_write(void *context, int file, const void *bytes, size_t size, uint64_t at, size_t *put)
{
    pair *it = context;
    bool first = pthread_equal(pthread_self(), it->first) != 0;
    if (it->armed && first && is_free(&it->engine->lock)) {
        it->armed = false;
        it->waited_for = true;
        return ENOSPC;
    }
    if (!first && !it->begun) {
        pair_set(it, &it->begun);
        pair_wait(it, &it->over);
    }
    return ivm__files_posix.write(NULL, file, bytes, size, at, put);
}

static void *second_run(void *context)
{
    pair *it = context;
    OK(ivm_durable_checkpoint(it->engine, error));
    return NULL;
}

/* The first gives memory back between its write and its return. */
static void pair_release(void *context, void *memory, size_t size)
{
    pair *it = context;
    if (it->waited_for && pthread_equal(pthread_self(), it->first) && is_free(&it->engine->snapshots_lock)) {
        it->waited_for = false;
        NEED(pthread_create(&it->second, NULL, second_run, it) == 0);
        pair_wait(it, &it->begun);
    }
    (void)size;
    free(memory);
}

static void *pair_allocate(void *context, size_t size)
{
    (void)context;
    return malloc(size);
}

static void *pair_resize(void *context, void *memory, size_t size_old, size_t size_new)
{
    (void)context, (void)size_old;
    return realloc(memory, size_new);
}

static void given_up_once(const story_place *place)
{
    pair it = {
        .first = pthread_self(), .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .files = ivm__files_posix
    };
    ivm_engine_options engine = IVM_ENGINE_OPTIONS_INIT;
    engine.allocator = (ivm_allocator){ pair_allocate, pair_resize, pair_release, &it };
    ivm_durable_options options = { .version = IVM_DURABLE_OPTIONS_VERSION, .engine = &engine };
    ivm_error why = IVM_ERROR_INIT;
    it.files.context = &it;
    it.files.write = pair_write;
    OK(ivm__durable_open(place->directory, &options, &it.files, &it.engine, NULL, error));
    story_declare(it.engine);
    it.armed = true;
    NEED(ivm_durable_checkpoint(it.engine, &why) == IVM_IO && why.message[0]);
    pair_set(&it, &it.over);
    NEED(pthread_join(it.second, NULL) == 0);
    uint64_t digest = story_digest(it.engine);
    OK(ivm_engine_close(it.engine, error));
    OK(story_open(place->directory, NULL, &it.engine, NULL, error));
    NEED(story_digest(it.engine) == digest);
    OK(ivm_engine_close(it.engine, error));
    story_place_clear(place);
}

int main(void)
{
    story_place place;
    story_place_make(&place);
    arguments(&place);
    opened_twice(&place);
    changes_again(&place);
    recovered(&place);
    read_only(&place);
    asked(&place);
    closed_meanwhile(&place);
    given_up_once(&place);
    story_place_remove(&place);
    return 0;
}
