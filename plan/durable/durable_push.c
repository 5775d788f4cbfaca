/* Pushes as records, and groups of them. See durable.c for how a record is kept.
 *
 *     one push      staged, carried through -> appended -> synced -> committed
 *     a group       each but the last: staged, carried through -> appended -> committed;  the last: as one push        then all are acknowledged
 *
 * Threads that push form a line, and one of them leads: once it has the engine's turn it carries through the pushes of all that stand there by then,
 * as many as a group may have, each a step of its own. What the earlier ones committed nobody sees before the last is synced: the lock is held. Where that sync fails, they
 * are in memory and perhaps not on the disk: the engine cannot be read any more. */
#include "durable_inside.h"
#include "publish.h"
#include "row_code.h"
#include "save_table.h"
#include "step.h"

/* ---- A push as a record --------------------------------------------------------------------------------------------------------------- */

static ivm_status position_write(ivm__sink *sink, const ivm_batch *batch)
{
    IVM_TRY(ivm__put_u8(sink, batch->positioned));
    if (!batch->positioned) {
        return IVM_OK;
    }
    IVM_TRY(ivm__put_u16(sink, (uint16_t)batch->position_size));
    return ivm__put(sink, batch->position, batch->position_size);
}

static ivm_status delta_write(ivm__sink *sink, const ivm_table *table)
{
    ivm__row_shape shape = ivm__table_shape(table);
    shape.loose = true;
    shape.weights = IVM__WEIGHTS_NOT_0;
    for (uint32_t i = 0; i < table->delta.chunks_count; i++) {
        IVM_TRY(ivm__rows_write(sink, &shape, table->delta.chunks[i]));
    }
    return ivm__rows_write_end(sink);
}

static ivm_status push_write(ivm__sink *sink, const ivm_engine *engine, const ivm_batch *batch)
{
    uint32_t ordinal = 0;
    IVM_TRY(position_write(sink, batch));
    for (const ivm_table *table = engine->tables; table; table = table->next, ordinal++) {
        if (table->delta.chunks_count) {
            IVM_TRY(ivm__put_u32(sink, ordinal));
            IVM_TRY(delta_write(sink, table));
        }
    }
    return ivm__put_u32(sink, UINT32_MAX);
}

ivm_status ivm__durable_push(ivm__journal *self, ivm__step *step, const ivm_batch *batch)
{
    ivm__durable *it = (ivm__durable *)self;
    ivm__sink *sink;
    IVM_TRY(ivm__log_append_begin(it->log, IVM__RECORD_PUSH, &sink, step->error));
    IVM_TRY(push_write(sink, step->engine, batch)); /* what fails has been abandoned */
    IVM_TRY(ivm__log_append_end(it->log, step->error));
    return it->more ? IVM_OK : ivm__durable_keep(it, step->error);
}

/* ---- Groups --------------------------------------------------------------------------------------------------------------------------- */

/* One thread's push: the leader's from when it is taken until it is done. */
typedef struct ivm__request {
    ivm_batch *batch;
    ivm_stats *stats;
    ivm_error *error;
    ivm_status status;
    uint64_t sequence; /* records up to and with its own; 0: it has none */
    bool done;         /* under the waiting lock */
    struct ivm__request *next;
} ivm__request;

/* Those that wait now, in their order, as many as a group may have. */
static ivm__request *group_take(ivm__durable *it)
{
    pthread_mutex_lock(&it->waiting_lock);
    ivm__request *first = it->waiting, **end = &it->waiting;
    assert(first);
    for (uint32_t i = 0; i < it->group && *end; i++) {
        end = &(*end)->next;
    }
    it->waiting = *end;
    *end = NULL;
    if (!it->waiting) {
        it->waiting_last = &it->waiting;
    }
    pthread_mutex_unlock(&it->waiting_lock);
    return first;
}

/* Until its step begins it has only waited for its turn: what was cancelled before is not it. */
static void request_run(ivm__durable *it, ivm__request *request)
{
    ivm__engine_cancel_from_now(it->engine);
    it->more = request->next != NULL;
    request->status = ivm__step_do(it->engine, ivm__push_step, request->batch, request->stats, request->error);
    it->more = false;
    if (request->status == IVM_OK) {
        request->sequence = ivm__log_state_of(it->log).sequence;
        ivm__telling_keep(it->engine);
    }
}

/* Whether all that the group has committed is on the disk. The last push's own sync has seen to it, but where that failed for another reason. */
static bool group_keep(ivm__durable *it, const ivm__request *group, ivm_error *cause)
{
    uint64_t sequence = 0;
    for (const ivm__request *request = group; request; request = request->next) {
        sequence = request->sequence > sequence ? request->sequence : sequence;
    }
    bool kept = it->sync == IVM_SYNC_ASKED || ivm__log_state_of(it->log).synced >= sequence;
    return kept || ivm__log_sync(it->log, cause) == IVM_OK;
}

/* Which of the group's pushes are kept cannot be said, but for those that are known to be on the disk. */
static void group_lose(ivm__durable *it, ivm__request *group, const ivm_error *cause)
{
    uint64_t synced = ivm__log_state_of(it->log).synced;
    for (ivm__request *request = group; request; request = request->next) {
        if (request->status == IVM_OK && request->sequence > synced) {
            request->status = ivm__fail(request->error, IVM_IO, "the push is in the log or not: %s", cause->message);
        }
    }
    ivm__telling_drop(it->engine);
    ivm__states_end(it->engine);
    it->engine->unreadable = true;
}

static void group_run(ivm__durable *it, ivm__request *group)
{
    ivm_error cause = IVM_ERROR_INIT;
    it->engine->withheld = true;
    for (ivm__request *request = group; request; request = request->next) {
        request_run(it, request);
    }
    it->engine->withheld = false;
    if (group_keep(it, group, &cause)) {
        ivm__states_publish(it->engine, it->engine->texts.epoch);
    } else {
        group_lose(it, group, &cause);
    }
}

/* An engine that cannot be entered takes none of those that wait. */
static void group_refuse(ivm__request *group, ivm_status status, const ivm_error *cause)
{
    for (ivm__request *request = group; request; request = request->next) {
        request->status = ivm__fail(request->error, status, "%s", cause->message);
    }
}

/* Carries a group through, once the engine's turn has come: until then more may join. Statuses are given out behind the callbacks. */
static void group_lead(ivm__durable *it)
{
    ivm_error cause = IVM_ERROR_INIT;
    ivm_status status = ivm__engine_enter(it->engine, &cause);
    ivm__request *group = group_take(it);
    if (status == IVM_OK) {
        group_run(it, group);
        ivm__engine_leave_telling(it->engine);
    } else {
        group_refuse(group, status, &cause);
    }
    pthread_mutex_lock(&it->waiting_lock);
    for (ivm__request *request = group; request; request = request->next) {
        request->done = true;
    }
    it->led = false;
    pthread_cond_broadcast(&it->waiting_wake);
    pthread_mutex_unlock(&it->waiting_lock);
}

/* Whether somebody else has done it; if not, the caller leads from now on. */
static bool request_wait(ivm__durable *it, const ivm__request *request)
{
    pthread_mutex_lock(&it->waiting_lock);
    while (!request->done && it->led) {
        pthread_cond_wait(&it->waiting_wake, &it->waiting_lock);
    }
    bool done = request->done;
    it->led |= !done;
    pthread_mutex_unlock(&it->waiting_lock);
    return done;
}

ivm_status ivm__durable_submit(ivm__journal *self, ivm_batch *batch, ivm_stats *stats, ivm_error *error)
{
    ivm__durable *it = (ivm__durable *)self;
    ivm__request own = { .batch = batch, .stats = stats, .error = error };
    if (ivm__engine_is_inside(it->engine)) {
        return ivm__fail(error, IVM_IN_USE, "the engine is in use: a callback of it may not call it");
    }
    pthread_mutex_lock(&it->waiting_lock);
    *it->waiting_last = &own;
    it->waiting_last = &own.next;
    pthread_mutex_unlock(&it->waiting_lock);
    while (!request_wait(it, &own)) {
        group_lead(it);
    }
    return own.status;
}
