/* Each system call of a log failing, one after the other, once or from then on, with a full disk, a broken one, or a write that is cut short: a step
 * that fails with io has changed nothing, and goes through when it is done again; where the log is broken, as a new segment's failed rename always
 * does, nothing changes any more, the engine is read as it was, and the directory, opened anew, has all that was acknowledged and at most the step that failed. Prints how many calls failed.
 *
 *     mishaps [STEPS]     how many steps the story has */
#include <errno.h>

#include "disk.h"
#include "story.h"

typedef struct run {
    const story_place *place;
    const uint64_t *digests; /* a plain engine's after each step */
    uint64_t steps, io, broken, unnamed;
    disk under;
    ivm__files files;
    ivm_engine *engine;
} run;

/* A log that cannot be synced is given up by the second call. */
static void engine_close(run *it)
{
    ivm_error why = IVM_ERROR_INIT;
    ivm_status status = ivm_engine_close(it->engine, &why);
    NEED(status == IVM_OK || status == IVM_IO);
    if (status == IVM_IO) {
        OK(ivm_engine_close(it->engine, error));
    }
}

static void engine_open(run *it)
{
    ivm_error why = IVM_ERROR_INIT;
    ivm_status status = story_open(it->place->directory, &it->files, &it->engine, NULL, &why);
    if (status != IVM_OK) {
        NEED(it->under.happened && status == IVM_IO && why.message[0]);
        it->under.nth = 0;
        it->io++;
        OK(story_open(it->place->directory, &it->files, &it->engine, NULL, error));
    }
}

static bool is_broken(run *it)
{
    ivm_durable_status status = { .version = IVM_DURABLE_STATUS_VERSION };
    OK(ivm_durable_state(it->engine, &status, error));
    return status.broken;
}

static ivm_status nothing_push(ivm_engine *engine)
{
    ivm_batch *batch;
    ivm_error why = IVM_ERROR_INIT;
    OK(ivm_batch_create(engine, &batch, error));
    return ivm_push_batch(engine, batch, NULL, &why);
}

/* After a step that failed with io; the step to go on with. */
static uint64_t recover(run *it, uint64_t step)
{
    bool broken = is_broken(it);
    it->io++;
    it->broken += broken;
    it->unnamed += it->under.segment_unnamed;
    NEED(it->under.happened);
    NEED(broken || !it->under.segment_unnamed);
    NEED(story_digest(it->engine) == it->digests[step]);
    it->under.nth = broken && it->under.what == DISK_FAILS_FROM ? it->under.nth : 0;
    if (!broken) {
        return step;
    }
    NEED(nothing_push(it->engine) == IVM_IO);
    NEED(story_digest(it->engine) == it->digests[step]);
    engine_close(it);
    it->under.nth = 0;
    engine_open(it);
    uint64_t digest = story_digest(it->engine);
    NEED(digest == it->digests[step] || digest == it->digests[step + 1]);
    return digest == it->digests[step] ? step : step + 1;
}

/* False: the mishap did not come. */
static bool story_tell(run *it)
{
    engine_open(it);
    for (uint64_t step = 0; step < it->steps;) {
        ivm_error error = IVM_ERROR_INIT;
        ivm_status status = story_step(it->engine, step, &error);
        step = status == IVM_IO ? recover(it, step) : step + 1;
    }
    engine_close(it);
    it->under.nth = 0;
    engine_open(it);
    NEED(story_digest(it->engine) == it->digests[it->steps]);
    engine_close(it);
    story_place_clear(it->place);
    return it->under.happened;
}

/* An open that fails leaves all as it was. */
static uint64_t openings(run *it, int number)
{
    it->under = (disk){ .pretends = true };
    engine_open(it);
    for (uint64_t step = 0; step < it->steps; step++) {
        ivm_error ignored;
        (void)!story_step(it->engine, step, &ignored);
    }
    engine_close(it);
    uint64_t nth = 1;
    for (;; nth++) {
        it->under = (disk){ .pretends = true, .nth = nth, .what = DISK_FAILS, .number = number };
        engine_open(it);
        bool happened = it->under.happened;
        it->under.nth = 0;
        NEED(story_digest(it->engine) == it->digests[it->steps]);
        engine_close(it);
        if (!happened) {
            break;
        }
    }
    story_place_clear(it->place);
    return nth - 1;
}

int main(int argc, char **argv)
{
    static const struct {
        disk_mishap what;
        int number;
        const char *name;
    } kinds[] = { { DISK_FAILS, EIO, "failed" },
                  { DISK_FAILS, ENOSPC, "had no room" },
                  { DISK_FAILS_FROM, EIO, "and all after it failed" },
                  { DISK_SHORT, 0, "wrote less" } };
    uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 52;
    story_place place;
    run it = { .place = &place, .digests = story_digests(steps), .steps = steps };
    it.files = disk_files(&it.under);
    story_place_make(&place);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint64_t nth = 1;
        it.io = it.broken = it.unnamed = 0;
        for (;; nth++) {
            it.under = (disk){ .pretends = true, .nth = nth, .what = kinds[k].what, .number = kinds[k].number };
            if (!story_tell(&it)) {
                break;
            }
        }
        printf("%llu calls %s: %llu steps or openings failed with io, %llu logs were broken by it, %llu as a new segment was named\n",
               (unsigned long long)nth - 1, kinds[k].name, (unsigned long long)it.io, (unsigned long long)it.broken,
               (unsigned long long)it.unnamed);
        NEED(nth > steps && (kinds[k].what == DISK_SHORT) == (it.io == 0));
        NEED((kinds[k].what == DISK_SHORT) == (it.unnamed == 0));
    }
    printf("%llu calls failed while a directory was opened\n", (unsigned long long)openings(&it, EIO));
    free((void *)it.digests);
    story_place_remove(&place);
    return 0;
}
