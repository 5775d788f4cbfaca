/* Eight threads that push to one durable engine: their pushes share syncs, each gets its own status and statistics, a batch that is refused hurts no
 * other, callbacks see every push in its order, and what was acknowledged is there again, with checkpoints made meanwhile or without. Readers beside them take
 * what is on the disk, and its strings stay as long as they have it; who cancels one ends no other. Then a sync that fails for several pushes at once: none is
 * acknowledged, the engine gives nothing out any more, and the directory has all or some of them. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "disk.h"
#include "story.h"

#define THREADS 8
#define PUSHES 60
#define REFUSED_EVERY 10 /* of a thread's pushes one inserts a key that is there */

typedef struct world {
    ivm_engine *engine;
    ivm_table *table;
    ivm_view *view;
    disk under;
    ivm__files files;
    _Atomic uint64_t went, refused, lost, rows;
    uint64_t told;      /* calls of the callback */
    int64_t count_last; /* that it was shown */
    bool disorder;
} world;

typedef struct pusher {
    world *it;
    uint32_t number, pushes;
} pusher;

static void changed(void *context, ivm_view *view, ivm_snapshot *changes)
{
    world *it = context;
    (void)view;
    for (ivm_rows rows; ivm_snapshot_next(changes, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            int64_t count = ivm_rows_value(&rows, IVM_INT64, i, 0).as.int64;
            it->disorder |= rows.weights[i] < 0 ? count != it->count_last : count <= 0;
            it->count_last = rows.weights[i] > 0 ? count : it->count_last;
        }
    }
    it->told++;
}

static void world_declare(world *it)
{
    ivm_column_definition columns[] = { { "id", IVM_INT64, true }, { "pusher", IVM_INT64, true } };
    ivm_table_options options = { .columns = columns, .columns_count = 2, .key = "id" };
    OK(ivm_table_create(it->engine, "t", &options, &it->table, error));
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(ivm_plan_scan(it->table, "t"), ""), "n");
    ivm_view_options how = { .version = IVM_VIEW_OPTIONS_VERSION, .changed = changed, .changed_context = it };
    OK(ivm_view_create(it->engine, "count", plan, &how, &it->view, error));
}

static void world_open(world *it, const char *directory, uint32_t group)
{
    ivm_durable_options options = { .version = IVM_DURABLE_OPTIONS_VERSION, .group = group };
    it->files = disk_files(&it->under);
    OK(ivm__durable_open(directory, &options, &it->files, &it->engine, NULL, error));
}

static ivm_status push(pusher *self, uint32_t nth, bool refused, ivm_error *why)
{
    ivm_batch *batch;
    ivm_stats stats = { 0 };
    OK(ivm_batch_create(self->it->engine, &batch, error));
    for (uint32_t i = 0; i <= nth % 3; i++) {
        int64_t id = refused ? -1 : (int64_t)self->number << 32 | (int64_t)nth << 8 | i;
        ivm_batch_insert(batch, self->it->table, ivm_int64(id), ivm_int64(self->number));
    }
    ivm_status status = ivm_push_batch(self->it->engine, batch, &stats, why);
    if (status == IVM_OK) {
        NEED(stats.batches == 1 && stats.rows_in == nth % 3 + 1);
        atomic_fetch_add(&self->it->rows, nth % 3 + 1);
    }
    return status;
}

static void *pusher_run(void *context)
{
    pusher *self = context;
    for (uint32_t nth = 0; nth < self->pushes; nth++) {
        bool refused = nth % REFUSED_EVERY == REFUSED_EVERY - 1;
        ivm_error why = IVM_ERROR_INIT;
        ivm_status status = push(self, nth, refused, &why);
        NEED(why.status == status);
        if (status == IVM_IO) {
            atomic_fetch_add(&self->it->lost, 1);
            continue;
        }
        NEED(status == (refused ? IVM_DUPLICATE_KEY : IVM_OK));
        atomic_fetch_add(refused ? &self->it->refused : &self->it->went, 1);
    }
    return NULL;
}

static void pushers_run(world *it, uint32_t pushes)
{
    pthread_t threads[THREADS];
    pusher pushers[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        pushers[i] = (pusher){ it, i + 1, pushes };
        NEED(pthread_create(&threads[i], NULL, pusher_run, &pushers[i]) == 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        NEED(pthread_join(threads[i], NULL) == 0);
    }
}

static uint64_t rows_counted(ivm_engine *engine)
{
    ivm_view *view;
    ivm_snapshot *snapshot;
    ivm_rows rows;
    uint64_t count = 0;
    OK(ivm_view_find(engine, "count", &view, error));
    OK(ivm_read_view(view, &snapshot, error));
    while (ivm_snapshot_next(snapshot, &rows)) {
        count += (uint64_t)ivm_rows_value(&rows, IVM_INT64, 0, 0).as.int64;
    }
    ivm_snapshot_close(snapshot);
    return count;
}

/* A row that a refused batch inserts again. */
static void first_row(world *it)
{
    ivm_batch *batch;
    OK(ivm_batch_create(it->engine, &batch, error));
    ivm_batch_insert(batch, it->table, ivm_int64(-1), ivm_int64(0));
    OK(ivm_push_batch(it->engine, batch, NULL, error));
}

static void shared(const char *directory, uint32_t group)
{
    world it = { .under = { .pretends = true, .sync_microseconds = 500 } };
    world_open(&it, directory, group);
    world_declare(&it);
    first_row(&it);
    uint64_t syncs = it.under.syncs, told = it.told;
    pushers_run(&it, PUSHES);
    syncs = it.under.syncs - syncs;
    NEED(it.went == (uint64_t)THREADS * PUSHES * (REFUSED_EVERY - 1) / REFUSED_EVERY && it.lost == 0);
    NEED(it.refused == (uint64_t)THREADS * PUSHES / REFUSED_EVERY);
    NEED(it.told - told == it.went && !it.disorder);
    NEED(rows_counted(it.engine) == it.rows + 1 && it.count_last == (int64_t)it.rows + 1);
    ivm_durable_status status = { .version = IVM_DURABLE_STATUS_VERSION };
    OK(ivm_durable_state(it.engine, &status, error));
    NEED(status.synced == status.sequence && status.sequence == 3 + it.went && !status.broken);
    uint64_t digest = story_digest(it.engine);
    OK(ivm_engine_close(it.engine, error));
    it.under = (disk){ .pretends = true };
    world_open(&it, directory, group);
    NEED(story_digest(it.engine) == digest);
    OK(ivm_engine_close(it.engine, error));
    printf("groups of %u: %llu pushes of %u threads in %llu syncs, %llu refused\n", group, (unsigned long long)it.went, THREADS,
           (unsigned long long)syncs, (unsigned long long)it.refused);
    NEED(group == 1 ? syncs >= it.went : syncs < it.went);
}

typedef struct saver {
    world *it;
    _Atomic bool over;
    uint64_t checkpoints;
} saver;

/* Two at once may meet: one is refused. */
static void *saver_run(void *context)
{
    saver *self = context;
    while (!atomic_load(&self->over)) {
        ivm_error why = IVM_ERROR_INIT;
        ivm_status status = ivm_durable_checkpoint(self->it->engine, &why);
        NEED(status == IVM_OK || status == IVM_IN_USE);
        self->checkpoints += status == IVM_OK;
    }
    return NULL;
}

/* Checkpoints that come while pushes go on. */
static void beside_checkpoints(const char *directory)
{
    world it = { .under = { .pretends = true } };
    saver savers[2] = { { .it = &it }, { .it = &it } };
    pthread_t threads[2];
    world_open(&it, directory, 0);
    world_declare(&it);
    first_row(&it);
    for (int i = 0; i < 2; i++) {
        NEED(pthread_create(&threads[i], NULL, saver_run, &savers[i]) == 0);
    }
    pushers_run(&it, PUSHES);
    for (int i = 0; i < 2; i++) {
        atomic_store(&savers[i].over, true);
        NEED(pthread_join(threads[i], NULL) == 0);
    }
    NEED(it.lost == 0 && !it.disorder && rows_counted(it.engine) == it.rows + 1);
    uint64_t digest = story_digest(it.engine);
    OK(ivm_engine_close(it.engine, error));
    world_open(&it, directory, 0);
    NEED(story_digest(it.engine) == digest);
    OK(ivm_engine_close(it.engine, error));
    uint64_t checkpoints = savers[0].checkpoints + savers[1].checkpoints;
    printf("%llu pushes beside %llu checkpoints\n", (unsigned long long)it.went, (unsigned long long)checkpoints);
}

/* ---- Readers beside them ---------------------------------------------------------------------------------------------------------------- */

/* The n-th name of a row. */
static void name_write(char name[64], int64_t id, uint32_t nth)
{
    snprintf(name, 64, "row %lld has been given name %u by now", (long long)id, nth);
}

static ivm_status rename_row(const world *it, int64_t id, uint32_t nth)
{
    ivm_batch *batch;
    char name[64];
    name_write(name, id, nth);
    OK(ivm_batch_create(it->engine, &batch, error));
    ivm_batch_upsert(batch, it->table, ivm_int64(id), ivm_string(name));
    return ivm_push_batch(it->engine, batch, NULL, NULL);
}

/* Each row has a name that it was given once. */
static void names_check(ivm_snapshot *snapshot)
{
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            char wanted[64];
            const ivm_value id = ivm_rows_value(&rows, IVM_INT64, i, 0), name = ivm_rows_value(&rows, IVM_STRING, i, 1);
            unsigned nth = 0;
            NEED(sscanf(name.as.string.bytes, "row %*d has been given name %u", &nth) == 1);
            name_write(wanted, id.as.int64, nth);
            NEED(name.as.string.size == strlen(wanted) && memcmp(name.as.string.bytes, wanted, strlen(wanted)) == 0);
        }
    }
    NEED(ivm_snapshot_status(snapshot) == IVM_OK);
}

static void names_changed(void *context, ivm_view *view, ivm_snapshot *changes)
{
    world *it = context;
    (void)view;
    names_check(changes);
    it->told++;
}

static void names_open(world *it, const char *directory)
{
    ivm_column_definition columns[] = { { "id", IVM_INT64, true }, { "name", IVM_STRING, true } };
    ivm_table_options options = { .columns = columns, .columns_count = 2, .key = "id" };
    ivm_view_options how = { .version = IVM_VIEW_OPTIONS_VERSION, .changed = names_changed, .changed_context = it };
    world_open(it, directory, 0);
    OK(ivm_table_create(it->engine, "t", &options, &it->table, error));
    OK(ivm_view_create(it->engine, "names", ivm_plan_scan(it->table, "t"), &how, &it->view, error));
}

typedef struct onlooker {
    world *it;
    ivm_snapshot *taken;
} onlooker;

static void *onlooker_look(void *context)
{
    onlooker *self = context;
    OK(ivm_read_table(self->it->table, &self->taken, error));
    return NULL;
}

/* On a thread of its own, which is waited for. */
static void look(void *context)
{
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, onlooker_look, context) == 0);
    NEED(pthread_join(thread, NULL) == 0);
}

/* A snapshot taken while a push is synced is of the state before it, and stays so. */
static void looked_at_while_synced(const char *directory)
{
    world it = { .under = { .pretends = true } };
    onlooker before = { .it = &it }, meanwhile = { .it = &it };
    ivm_snapshot *after;
    names_open(&it, directory);
    NEED(rename_row(&it, 1, 1) == IVM_OK && rename_row(&it, 1, 2) == IVM_OK);
    look(&before); /* from now on states are published */
    ivm_snapshot_close(before.taken);
    NEED(rename_row(&it, 1, 3) == IVM_OK);
    it.under.meanwhile = look;
    it.under.meanwhile_context = &meanwhile;
    NEED(rename_row(&it, 1, 4) == IVM_OK);
    it.under.meanwhile = NULL;
    OK(ivm_read_table(it.table, &after, error));
    NEED(rename_row(&it, 1, 5) == IVM_OK);
    names_check(meanwhile.taken);
    names_check(after);
    ivm_snapshot_close(meanwhile.taken);
    ivm_snapshot_close(after);
    OK(ivm_engine_close(it.engine, error));
}

static void *renamer_run(void *context)
{
    const pusher *self = context;
    for (uint32_t nth = 0; nth < self->pushes; nth++) {
        NEED(rename_row(self->it, self->number, nth) == IVM_OK);
    }
    return NULL;
}

static void *reader_run(void *context)
{
    saver *self = context;
    ivm_snapshot *last = NULL, *taken;
    for (uint32_t nth = 0; !atomic_load(&self->over); nth++) {
        const world *it = self->it;
        ivm_status status = nth % 2 ? ivm_read_table(it->table, &taken, NULL) : ivm_read_view(it->view, &taken, NULL);
        NEED(status == IVM_OK);
        names_check(taken);
        if (last) {
            names_check(last);
        }
        ivm_snapshot_close(last);
        last = taken;
    }
    ivm_snapshot_close(last);
    return NULL;
}

static void beside_readers(const char *directory)
{
    world it = { .under = { .pretends = true, .sync_microseconds = 200 } };
    pthread_t threads[THREADS], readers[2];
    pusher pushers[THREADS];
    saver looking = { .it = &it };
    names_open(&it, directory);
    for (uint32_t i = 0; i < THREADS; i++) {
        pushers[i] = (pusher){ &it, i, PUSHES };
        NEED(pthread_create(&threads[i], NULL, renamer_run, &pushers[i]) == 0);
    }
    for (uint32_t i = 0; i < 2; i++) {
        NEED(pthread_create(&readers[i], NULL, reader_run, &looking) == 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        NEED(pthread_join(threads[i], NULL) == 0);
    }
    atomic_store(&looking.over, true);
    for (uint32_t i = 0; i < 2; i++) {
        NEED(pthread_join(readers[i], NULL) == 0);
    }
    NEED(it.told == (uint64_t)THREADS * PUSHES);
    OK(ivm_engine_close(it.engine, error));
}

/* ---- Cancelled among others ------------------------------------------------------------------------------------------------------------------ */

static ivm_engine *_Atomic cancelled; /* while it is written to; NULL: nobody asks */

static int cancelling_write(void *context, int file, const void *bytes, size_t size, uint64_t at, size_t *put)
{
    (void)context;
    ivm_engine_cancel(cancelled);
    return ivm__files_posix.write(NULL, file, bytes, size, at, put);
}

static struct ivm__request **line_end(const world *it)
{
    ivm__durable *durable = (ivm__durable *)it->engine->journal;
    pthread_mutex_lock(&durable->waiting_lock);
    struct ivm__request **end = durable->waiting_last;
    pthread_mutex_unlock(&durable->waiting_lock);
    return end;
}

typedef struct followers {
    world *it;
    pthread_t threads[2];
    pusher pushers[2];
} followers;

/* While a push is synced two more come to stand in line, and make a group. From then on each write is cancelled. */
static void followers_stand(void *context)
{
    followers *self = context;
    self->it->under.meanwhile = NULL;
    for (uint32_t i = 0; i < 2; i++) {
        struct ivm__request **before = line_end(self->it);
        self->pushers[i] = (pusher){ self->it, i + 1, 1 };
        NEED(pthread_create(&self->threads[i], NULL, renamer_run, &self->pushers[i]) == 0);
        while (line_end(self->it) == before) {
            usleep(100);
        }
    }
    atomic_store(&cancelled, self->it->engine);
}

/* What is cancelled as one push of a group is written does not end it, nor the next, which only waits for its turn. */
static void cancelled_in_a_group(const char *directory)
{
    world it = { .under = { .pretends = true } };
    followers two = { .it = &it };
    names_open(&it, directory);
    it.files.write = cancelling_write;
    uint64_t told = it.told;
    it.under.meanwhile_context = &two;
    it.under.meanwhile = followers_stand;
    NEED(rename_row(&it, 0, 0) == IVM_OK);
    for (uint32_t i = 0; i < 2; i++) {
        NEED(pthread_join(two.threads[i], NULL) == 0);
    }
    atomic_store(&cancelled, NULL);
    NEED(it.told == told + 3);
    OK(ivm_engine_close(it.engine, error));
}

/* ---- Syncs that fail ------------------------------------------------------------------------------------------------------------------------ */

static void *reader_refused(void *context)
{
    const world *it = context;
    ivm_snapshot *snapshot;
    NEED(ivm_read_view(it->view, &snapshot, NULL) == IVM_IO);
    return NULL;
}

/* While another thread has the lock, too. */
static void unreadable_beside(world *it)
{
    pthread_t thread;
    pthread_mutex_lock(&it->engine->lock);
    NEED(pthread_create(&thread, NULL, reader_refused, it) == 0);
    usleep(20000);
    pthread_mutex_unlock(&it->engine->lock);
    NEED(pthread_join(thread, NULL) == 0);
}

/* The engine gives out nothing; a closed one is opened again. */
static void unreadable(world *it, const char *directory)
{
    ivm_snapshot *snapshot = NULL;
    ivm_error why = IVM_ERROR_INIT;
    size_t size;
    NEED(ivm_read_view(it->view, &snapshot, &why) == IVM_IO && why.message[0]);
    unreadable_beside(it);
    NEED(ivm_engine_position(it->engine, NULL, 0, &size, &why) == IVM_IO);
    NEED(ivm_durable_checkpoint(it->engine, &why) == IVM_IO && ivm_durable_sync(it->engine, &why) == IVM_IO);
    OK(ivm_engine_close(it->engine, error));
    it->under = (disk){ .pretends = true };
    world_open(it, directory, 0);
    uint64_t rows = rows_counted(it->engine);
    NEED(rows >= it->rows + 1 && rows <= (uint64_t)THREADS * PUSHES * 3 + 1);
    OK(ivm_engine_close(it->engine, error));
}

/* From some sync on all fail. False: it was one push alone, which was undone. */
static bool lost(const char *directory, uint64_t nth)
{
    world it = { .under = { .pretends = true, .sync_microseconds = 2000 } };
    world_open(&it, directory, 0);
    world_declare(&it);
    first_row(&it);
    it.under.calls = 0;
    it.under.syncs_alone = true;
    it.under.what = DISK_FAILS_FROM;
    it.under.number = EIO;
    it.under.nth = nth;
    pushers_run(&it, PUSHES);
    NEED(it.lost > 0 && !it.disorder && it.count_last <= (int64_t)it.rows + 1);
    ivm_durable_status status = { .version = IVM_DURABLE_STATUS_VERSION };
    OK(ivm_durable_state(it.engine, &status, error));
    NEED(status.broken);
    if (!it.engine->unreadable) {
        NEED(rows_counted(it.engine) == it.rows + 1);
        OK(ivm_engine_close(it.engine, error));
        return false;
    }
    unreadable(&it, directory);
    return true;
}

int main(void)
{
    uint64_t several = 0;
    story_place place;
    story_place_make(&place);
    shared(place.directory, 64);
    story_place_clear(&place);
    shared(place.directory, 3);
    story_place_clear(&place);
    shared(place.directory, 1);
    story_place_clear(&place);
    beside_checkpoints(place.directory);
    story_place_clear(&place);
    looked_at_while_synced(place.directory);
    story_place_clear(&place);
    beside_readers(place.directory);
    story_place_clear(&place);
    cancelled_in_a_group(place.directory);
    story_place_clear(&place);
    for (uint64_t nth = 1; nth <= 12; nth++) {
        several += lost(place.directory, nth);
        story_place_clear(&place);
    }
    printf("12 syncs failed, %llu of them for several pushes at once\n", (unsigned long long)several);
    story_place_remove(&place);
    return several ? 0 : 1;
}
