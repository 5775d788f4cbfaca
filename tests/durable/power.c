/* The power goes at every system call of a durable engine's log, over a disk that keeps, drops or tears what was not synced: what was acknowledged
 * is there when it comes again, with at most the one step that was under way; and the story goes on to the same end. Where syncs were to be asked for
 * what is there is the engine after some step not before the last that was asked for. Prints how many cuts were survived.
 *
 *     power [SEEDS [STEPS]] */
#include "engine/log/disk_model.h"
#include "story.h"

#define ASKED_EVERY 9 /* steps */

typedef struct run {
    const uint64_t *digests; /* a plain engine's after each step */
    uint64_t steps;
    ivm_sync sync;
    disk_model *disk;
    ivm_engine *engine;
    uint64_t kept; /* steps that must be there */
    uint64_t done; /* steps that went through */
    uint64_t torn;
} run;

static ivm_status engine_open(run *it, ivm_error *why)
{
    ivm_recovery found = { .version = IVM_RECOVERY_VERSION };
    ivm_durable_options options = { .version = IVM_DURABLE_OPTIONS_VERSION, .segment_bytes = 2000, .sync = it->sync };
    ivm_status status = ivm__durable_open("engine", &options, disk_files(it->disk), &it->engine, &found, why);
    it->torn += status == IVM_OK && found.bytes_cut > 0;
    return status;
}

static void engine_close(run *it)
{
    ivm_error why = IVM_ERROR_INIT;
    if (ivm_engine_close(it->engine, &why) != IVM_OK) {
        OK(ivm_engine_close(it->engine, error));
    }
}

/* False: the power went. */
static bool tell(run *it, uint64_t from)
{
    for (uint64_t step = from; step < it->steps; step++) {
        ivm_error why = IVM_ERROR_INIT;
        if (story_step(it->engine, step, &why) == IVM_IO) {
            return false;
        }
        it->done = step + 1;
        if (it->sync == IVM_SYNC_ASKED && step % ASKED_EVERY == 0 && ivm_durable_sync(it->engine, &why) != IVM_OK) {
            return false;
        }
        if (it->sync == IVM_SYNC_PUSH || step % ASKED_EVERY == 0) {
            it->kept = it->done;
        }
    }
    return true;
}

/* After which step the engine is as it is now: the first that may be. */
static uint64_t step_found(run *it)
{
    uint64_t digest = story_digest(it->engine), last = it->done < it->steps ? it->done + 1 : it->done;
    for (uint64_t step = it->kept; step <= last; step++) {
        if (digest == it->digests[step]) {
            return step;
        }
    }
    NEED(!"the engine after a step that was acknowledged");
    return 0;
}

/* False: the power did not go. */
static bool cut(run *it, uint64_t seed, uint64_t nth)
{
    ivm_error why = IVM_ERROR_INIT;
    it->disk = disk_create(seed);
    it->done = it->kept = 0;
    disk_arm(it->disk, nth, DISK_CUT, 0);
    bool opened = engine_open(it, &why) == IVM_OK;
    if (opened) {
        (void)tell(it, 0);
        engine_close(it);
    }
    bool went = disk_disarm(it->disk);
    disk_reboot(it->disk);
    OK(engine_open(it, error));
    NEED(tell(it, step_found(it)));
    NEED(story_digest(it->engine) == it->digests[it->steps]);
    engine_close(it);
    disk_reboot(it->disk);
    OK(engine_open(it, error));
    NEED(story_digest(it->engine) == it->digests[it->steps]);
    engine_close(it);
    disk_free(it->disk);
    return went;
}

int main(int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 2, steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 61, cuts = 0;
    run it = { .digests = story_digests(steps), .steps = steps };
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        for (int asked = 0; asked < 2; asked++) {
            it.sync = asked ? IVM_SYNC_ASKED : IVM_SYNC_PUSH;
            for (uint64_t nth = 1; cut(&it, seed * 100000 + nth, nth); nth++) {
                cuts++;
            }
        }
    }
    printf("%llu power cuts survived, one at each system call; %llu torn tails cut\n", (unsigned long long)cuts,
           (unsigned long long)it.torn);
    free((void *)it.digests);
    return cuts > steps * seeds && it.torn ? 0 : 1;
}
