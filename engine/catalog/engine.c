/* Engines: opened, closed, locked; the frame of every step. */
#include "journal.h"
#include "publish.h"

#include <sys/random.h>
#include <time.h>

static uint64_t draw_seed(void)
{
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        seed = (uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15ull ^ (uint64_t)(uintptr_t)&seed;
    }
    return seed;
}

static ivm_status check_planner(const ivm_planner_options *planner, ivm_error *error)
{
    if (planner->fk_pruning > IVM_FK_PRUNING_OFF || planner->join_rule > IVM_JOIN_TELESCOPING) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "planner options: fk_pruning %d, join_rule %d", (int)planner->fk_pruning,
                         (int)planner->join_rule);
    }
    return IVM_OK;
}

void ivm__catalog_clear(ivm_engine *engine)
{
    for (ivm_view *view = engine->views, *next; view; view = next) {
        next = view->next;
        ivm__view_free(view);
    }
    for (ivm_fact *fact = engine->facts, *next; fact; fact = next) {
        next = fact->next;
        ivm__fact_free(fact);
    }
    for (ivm_table *table = engine->tables, *next; table; table = next) {
        next = table->next;
        ivm__table_free(table);
    }
    engine->views = NULL;
    engine->facts = NULL;
    engine->tables = NULL;
    ivm__name_slots_deinit(&engine->names, &engine->memory);
    engine->ordinals = (ivm__ordinals){ 0 };
    engine->waits_count = 0;
    engine->facts_version++;
}

static void free_everything(ivm_engine *engine)
{
    ivm__catalog_clear(engine);
    if (engine->journal) {
        engine->journal->close(engine->journal);
    }
    ivm__pool_close(engine->pool);
    ivm__arena_deinit(&engine->arena);
    ivm__arena_deinit(&engine->scratch);
    ivm__texts_deinit(&engine->texts);
    (void)ivm__leaving_end(&engine->memory);
    pthread_mutex_destroy(&engine->turn);
    pthread_mutex_destroy(&engine->lock);
    pthread_mutex_destroy(&engine->snapshots_lock);
    assert(atomic_load(&engine->memory.bytes_held) == 0);
    ivm_allocator allocator = engine->memory.allocator;
    allocator.release(allocator.context, engine, sizeof *engine);
}

ivm_status ivm_engine_open(const ivm_engine_options *options, ivm_engine **engine, ivm_error *error)
{
    static const ivm_engine_options defaults = IVM_ENGINE_OPTIONS_INIT;
    options = options ? options : &defaults;
    const ivm_allocator *allocator = &options->allocator;
    bool whole = (allocator->allocate && allocator->resize && allocator->release) ||
                 (!allocator->allocate && !allocator->resize && !allocator->release);
    if (!engine) {
        return ivm__fail_null(error, "ivm_engine_open", "engine");
    }
    if (options->version > IVM_ENGINE_OPTIONS_VERSION) {
        return ivm__fail_version(error, "ivm_engine_open", "options", options->version, IVM_ENGINE_OPTIONS_VERSION);
    }
    if (!whole) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_engine_open: the allocator has no %s, but others of its functions",
                         !allocator->allocate ? "allocate"
                         : !allocator->resize ? "resize"
                                              : "release");
    }
    IVM_TRY(check_planner(&options->planner, error));
    if (options->threads > IVM_THREADS_MAX) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_engine_open: %u threads, at most %u", options->threads, IVM_THREADS_MAX);
    }
    ivm__memory memory; /* the struct itself is not counted among what it holds */
    ivm__memory_init(&memory, allocator);
    ivm_engine *made = memory.allocator.allocate(memory.allocator.context, sizeof *made);
    if (!made) {
        return ivm__fail_memory(error);
    }
    memset(made, 0, sizeof *made);
    ivm__memory_init(&made->memory, allocator);
    ivm__memory_limit(&made->memory, options->memory_max);
    made->seed = options->hash_seed ? options->hash_seed : draw_seed();
    made->planner = options->planner;
    ivm__texts_init(&made->texts, &made->memory, made->seed);
    ivm__arena_init(&made->arena, &made->memory);
    ivm__arena_init(&made->scratch, &made->memory);
    pthread_mutex_init(&made->turn, NULL);
    pthread_mutex_init(&made->lock, NULL);
    pthread_mutex_init(&made->snapshots_lock, NULL);
    atomic_init(&made->owner, pthread_self());
    if (options->threads > 1 && ivm__pool_open(&made->memory, options->threads, &made->pool) != IVM_OK) {
        free_everything(made);
        return ivm__fail_memory(error);
    }
    *engine = made;
    return IVM_OK;
}

ivm_status ivm_engine_planner_set(ivm_engine *engine, const ivm_planner_options *options, ivm_error *error)
{
    if (!engine || !options) {
        return ivm__fail_null(error, "ivm_engine_planner_set", engine ? "options" : "engine");
    }
    IVM_TRY(check_planner(options, error));
    IVM_TRY(ivm__engine_enter(engine, error));
    engine->planner = *options;
    ivm__engine_leave(engine);
    return IVM_OK;
}

/* A flag is set after who set it is written, and read before: whoever sees it sees that thread, or one that came later. */
static bool has_lock(const ivm_engine *engine)
{
    return atomic_load_explicit(&engine->stepping, memory_order_acquire) &&
           pthread_equal(atomic_load_explicit(&engine->owner, memory_order_relaxed), pthread_self());
}

static bool is_inside(const ivm_engine *engine)
{
    return has_lock(engine) || (atomic_load_explicit(&engine->telling, memory_order_acquire) &&
                                pthread_equal(atomic_load_explicit(&engine->teller, memory_order_relaxed), pthread_self()));
}

/* For what a function that reads or writes a stream under the lock may ask, too. Whether it was taken. */
static bool lock_unless_held(ivm_engine *engine)
{
    bool held = has_lock(engine);
    if (!held) {
        pthread_mutex_lock(&engine->lock);
    }
    return !held;
}

ivm_planner_options ivm_engine_planner(ivm_engine *engine)
{
    if (!engine) {
        return (ivm_planner_options){ 0 };
    }
    bool taken = lock_unless_held(engine);
    ivm_planner_options planner = engine->planner;
    if (taken) {
        pthread_mutex_unlock(&engine->lock);
    }
    return planner;
}

ivm_status ivm_engine_memory_limit(ivm_engine *engine, uint64_t memory_max, ivm_error *error)
{
    if (!engine) {
        return ivm__fail_null(error, "ivm_engine_memory_limit", "engine");
    }
    ivm__memory_limit(&engine->memory, memory_max);
    return IVM_OK;
}

void ivm_engine_cancel(ivm_engine *engine)
{
    if (engine) {
        atomic_fetch_add_explicit(&engine->cancels, 1, memory_order_relaxed);
    }
}

void ivm_engine_stats(ivm_engine *engine, ivm_stats *stats)
{
    if (!engine || !stats) {
        return;
    }
    bool taken = lock_unless_held(engine);
    *stats = engine->stats;
    stats->bytes_held = atomic_load(&engine->memory.bytes_held);
    if (taken) {
        pthread_mutex_unlock(&engine->lock);
    }
}

void ivm__outside_begin(ivm_engine *engine, ivm__outside *call)
{
    pthread_mutex_lock(&engine->snapshots_lock);
    *call = (ivm__outside){ pthread_self(), engine->outside };
    engine->outside = call;
    atomic_fetch_add(&engine->outside_count, 1);
    pthread_mutex_unlock(&engine->snapshots_lock);
}

void ivm__outside_end(ivm_engine *engine, ivm__outside *call)
{
    pthread_mutex_lock(&engine->snapshots_lock);
    ivm__outside **at = &engine->outside;
    while (*at != call) {
        at = &(*at)->next;
    }
    *at = call->next;
    atomic_fetch_sub(&engine->outside_count, 1);
    pthread_mutex_unlock(&engine->snapshots_lock);
}

/* Whether this thread is in a call that goes on without the lock. */
static bool is_outside(ivm_engine *engine)
{
    bool found = false;
    if (atomic_load_explicit(&engine->outside_count, memory_order_relaxed) == 0) {
        return false;
    }
    pthread_mutex_lock(&engine->snapshots_lock);
    for (const ivm__outside *call = engine->outside; call; call = call->next) {
        found |= pthread_equal(call->thread, pthread_self()) != 0;
    }
    pthread_mutex_unlock(&engine->snapshots_lock);
    return found;
}

bool ivm__engine_is_inside(ivm_engine *engine)
{
    return is_inside(engine) || is_outside(engine);
}

static ivm_status check_outside(ivm_engine *engine, ivm_error *error)
{
    return ivm__engine_is_inside(engine) ? ivm__fail(error, IVM_IN_USE, "the engine is in use: a callback of it may not call it") : IVM_OK;
}

/* The lock has been taken. */
static void entered_note(ivm_engine *engine)
{
    pthread_t self = pthread_self(), last = atomic_exchange_explicit(&engine->owner, self, memory_order_relaxed);
    atomic_store_explicit(&engine->stepping, true, memory_order_release);
    if (ivm__unlikely(!engine->several && !pthread_equal(last, self))) {
        ivm__states_begin(engine);
    }
}

/* The lock, whether or not the engine can be read. */
static ivm_status lock_take(ivm_engine *engine, ivm_error *error)
{
    IVM_TRY(check_outside(engine, error));
    pthread_mutex_lock(&engine->lock);
    entered_note(engine);
    return IVM_OK;
}

/* Gives the lock back where the engine cannot be read. */
static ivm_status readable_check(ivm_engine *engine, ivm_error *error)
{
    if (engine->unreadable) {
        ivm__engine_leave_reading(engine);
        return ivm__fail(error, IVM_IO, "pushes are in memory that could not be synced: the directory is to be opened anew");
    }
    return IVM_OK;
}

ivm_status ivm__engine_try_reading(ivm_engine *engine, bool *entered, ivm_error *error)
{
    *entered = false;
    IVM_TRY(check_outside(engine, error));
    if (pthread_mutex_trylock(&engine->lock) != 0) {
        return IVM_OK;
    }
    entered_note(engine);
    IVM_TRY(readable_check(engine, error));
    *entered = true;
    return IVM_OK;
}

ivm_status ivm__engine_enter_reading(ivm_engine *engine, ivm_error *error)
{
    IVM_TRY(lock_take(engine, error));
    return readable_check(engine, error);
}

void ivm__engine_leave_reading(ivm_engine *engine)
{
    atomic_store_explicit(&engine->stepping, false, memory_order_release);
    pthread_mutex_unlock(&engine->lock);
}

ivm_status ivm__engine_enter_restoring(ivm_engine *engine, ivm_error *error)
{
    bool inside = ivm__engine_is_inside(engine); /* else the turn would be waited for in vain */
    if (!inside) {
        pthread_mutex_lock(&engine->turn);
    }
    ivm_status status = ivm__engine_enter_reading(engine, error);
    if (!inside && status != IVM_OK) {
        pthread_mutex_unlock(&engine->turn);
    }
    assert(!inside || status == IVM_IN_USE);
    if (status == IVM_OK) {
        ivm__engine_cancel_from_now(engine);
    }
    return status;
}

ivm_status ivm__engine_enter(ivm_engine *engine, ivm_error *error)
{
    IVM_TRY(ivm__engine_enter_restoring(engine, error));
    if (engine->restoring) {
        ivm__engine_leave(engine);
        return ivm__fail(error, IVM_IN_USE, "the engine is in use: a restore of it is open");
    }
    return IVM_OK;
}

void ivm__engine_leave(ivm_engine *engine)
{
    ivm__engine_leave_reading(engine);
    pthread_mutex_unlock(&engine->turn);
}

/* And whether calls are under way without the lock: both end with the lock that is held here, so that an engine that has none may be freed. */
static uint64_t snapshots_open(ivm_engine *engine, bool *outside)
{
    uint64_t open = 0;
    pthread_mutex_lock(&engine->snapshots_lock);
    *outside = engine->outside != NULL;
    for (const ivm_snapshot *snapshot = engine->snapshots_oldest; snapshot; snapshot = ivm__snapshot_newer(snapshot)) {
        open++;
    }
    pthread_mutex_unlock(&engine->snapshots_lock);
    return open;
}

/* Whether nothing of the engine is wanted any more, and what was told of it is kept. */
static ivm_status close_check(ivm_engine *engine, ivm_error *error)
{
    bool outside;
    uint64_t open = snapshots_open(engine, &outside);
    if (engine->restoring) {
        return ivm__fail(error, IVM_IN_USE, "the engine is in use: a restore of it is open");
    }
    if (outside) {
        return ivm__fail(error, IVM_IN_USE, "a checkpoint of the engine is being written");
    }
    if (open) {
        return ivm__fail(error, IVM_IN_USE, "the engine has %llu open snapshot%s or Arrow stream%s", (unsigned long long)open,
                         open == 1 ? "" : "s", open == 1 ? "" : "s");
    }
    return engine->journal ? engine->journal->settle(engine->journal, error) : IVM_OK;
}

ivm_status ivm_engine_close(ivm_engine *engine, ivm_error *error)
{
    if (!engine) {
        return IVM_OK;
    }
    if (ivm__engine_is_inside(engine)) {
        return ivm__fail(error, IVM_IN_USE, "the engine is in use: a callback of it may not close it");
    }
    pthread_mutex_lock(&engine->turn);
    ivm_status status = lock_take(engine, error);
    if (status == IVM_OK) {
        status = close_check(engine, error);
        ivm__engine_leave_reading(engine);
    }
    pthread_mutex_unlock(&engine->turn);
    if (status == IVM_OK) {
        free_everything(engine);
    }
    return status;
}

void ivm__step_init(ivm__step *step, ivm_engine *engine, ivm_stats *stats, ivm_error *error)
{
    *step = (ivm__step){
        .engine = engine,
        .memory = &engine->memory,
        .arena = &engine->arena,
        .scratch = &engine->scratch,
        .texts = &engine->texts,
        .pool = engine->pool,
        .seed = engine->seed,
        .since = engine->pushes,
        .planner = engine->planner,
        .stats = stats,
        .error = error,
        .cancel = ivm__engine_cancel_of(engine),
    };
}

void ivm__engine_settle(ivm_engine *engine)
{
    ivm__arena_reset(&engine->arena);
    ivm__arena_reset(&engine->scratch);
    ivm__pool_settle(engine->pool);
    if (!engine->withheld) {
        ivm__states_publish(engine, engine->texts.epoch + 1);
    }
    pthread_mutex_lock(&engine->snapshots_lock);
    uint64_t oldest = engine->snapshots_oldest ? ivm__snapshot_epoch(engine->snapshots_oldest) : engine->texts.epoch + 1;
    oldest = engine->withheld && engine->published && engine->published_epoch < oldest ? engine->published_epoch : oldest;
    pthread_mutex_unlock(&engine->snapshots_lock);
    ivm__texts_sweep(&engine->texts, oldest);
    ivm__leaving_step(&engine->memory);
    engine->texts.epoch++;
}
