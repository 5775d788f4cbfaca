/* A process that stops, as if killed, before every system call of its log, one after the other, and in the middle of every write: for each n a
 * child tells the story to a fresh directory until its n-th call. What is recovered must be the engine after some number of steps, all those that
 * were acknowledged and at most one more; and the story goes on from there to the same end. Prints how many stops were survived.
 *
 *     stops [STEPS]     how many steps the story has */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "disk.h"
#include "story.h"

typedef struct told {
    _Atomic uint64_t tried, acknowledged;
} told;

static void tell(ivm_engine *engine, uint64_t from, uint64_t steps, told *it)
{
    for (uint64_t step = from; step < steps; step++) {
        ivm_error error = IVM_ERROR_INIT;
        if (it) {
            atomic_store(&it->tried, step + 1);
        }
        ivm_status status = story_step(engine, step, &error);
        if (status == IVM_IO || status == IVM_CORRUPT || status == IVM_OUT_OF_MEMORY) {
            fprintf(stderr, "step %llu: %s\n", (unsigned long long)step, error.message);
            _exit(3);
        }
        if (it) {
            atomic_store(&it->acknowledged, step + 1);
        }
    }
}

/* False: it came to its end. */
static bool stopped(const char *directory, uint64_t steps, uint64_t nth, bool halfway, told *it)
{
    int status;
    pid_t pid = fork();
    NEED(pid >= 0);
    if (pid == 0) {
        disk under = { .pretends = true, .nth = nth, .what = halfway ? DISK_STOPS_HALFWAY : DISK_STOPS };
        ivm__files files = disk_files(&under);
        ivm_engine *engine;
        OK(story_open(directory, &files, &engine, NULL, error));
        tell(engine, 0, steps, it);
        OK(ivm_engine_close(engine, error));
        _exit(0);
    }
    NEED(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status)) {
        NEED(WEXITSTATUS(status) == 0);
        return false;
    }
    NEED(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return true;
}

/* After how many steps the engine is as this one. */
static uint64_t steps_of(ivm_engine *engine, const uint64_t *digests, const told *it)
{
    uint64_t digest = story_digest(engine), step = atomic_load(&it->acknowledged);
    if (digest != digests[step]) {
        step = atomic_load(&it->tried);
    }
    NEED(digest == digests[step]);
    return step;
}

static void go_on(const char *directory, const uint64_t *digests, uint64_t steps, const told *it, uint64_t *under_way)
{
    disk under = { .pretends = true };
    ivm__files files = disk_files(&under);
    ivm_engine *engine;
    OK(story_open(directory, &files, &engine, NULL, error));
    uint64_t step = steps_of(engine, digests, it);
    *under_way += step != atomic_load(&it->acknowledged);
    tell(engine, step, steps, NULL);
    NEED(story_digest(engine) == digests[steps]);
    OK(ivm_engine_close(engine, error));
    OK(story_open(directory, &files, &engine, NULL, error));
    NEED(story_digest(engine) == digests[steps]);
    OK(ivm_engine_close(engine, error));
}

/* A plain engine's after each step. */
static uint64_t *digests_make(uint64_t steps)
{
    uint64_t *digests = malloc((steps + 1) * sizeof *digests);
    ivm_engine *engine;
    OK(ivm_engine_open(NULL, &engine, error));
    digests[0] = story_digest(engine);
    for (uint64_t step = 0; step < steps; step++) {
        tell(engine, step, step + 1, NULL);
        digests[step + 1] = story_digest(engine);
    }
    OK(ivm_engine_close(engine, error));
    return digests;
}

int main(int argc, char **argv)
{
    uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : STORY_LONG, stops[2] = { 0 }, under_way = 0;
    story_place place;
    told *it = mmap(NULL, sizeof *it, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    NEED(it != MAP_FAILED);
    story_place_make(&place);
    uint64_t *digests = digests_make(steps);
    for (int halfway = 0; halfway < 2; halfway++) {
        for (uint64_t nth = 1;; nth++) {
            atomic_store(&it->tried, 0);
            atomic_store(&it->acknowledged, 0);
            if (!stopped(place.directory, steps, nth, halfway, it)) {
                break;
            }
            go_on(place.directory, digests, steps, it, &under_way);
            story_place_clear(&place);
            stops[halfway]++;
        }
        story_place_clear(&place);
    }
    printf("%llu stops survived, one before each system call, and %llu amid each write; %llu steps found that were under way\n",
           (unsigned long long)stops[0], (unsigned long long)stops[1], (unsigned long long)under_way);
    free(digests);
    story_place_remove(&place);
    munmap(it, sizeof *it);
    return stops[0] > steps && stops[1] > 0 ? 0 : 1;
}
