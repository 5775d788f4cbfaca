/* A process that is killed while it pushes, at random moments, again and again: SIGKILL, as often as the first argument says (200 times where there is
 * none). After each, the directory must hold just the pushes that were acknowledged, or one more: the one under way. The next process goes on from
 * the position it finds, so that at the end each was counted once. Prints how many kills were survived. */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "disk.h"
#include "story.h"

/* What the child has told its parent when it dies. */
typedef struct told {
    _Atomic uint64_t tried, acknowledged; /* steps: the next one begins here */
    _Atomic uint64_t opened, checkpoints;
    _Atomic bool wrong;
} told;

typedef struct model {
    ivm_engine *engine;
    uint64_t steps; /* it was told */
} model;

static void wrong(told *it, const char *what)
{
    fprintf(stderr, "child: %s\n", what);
    atomic_store(&it->wrong, true);
    _exit(3);
}

/* Goes on with the story until it is killed. Where it pretends to sync it is killed less often while it waits for the disk. */
static void child(const char *directory, told *it, bool pretends)
{
    disk under = { .pretends = pretends };
    ivm__files files = disk_files(&under);
    ivm_engine *engine;
    ivm_error error = IVM_ERROR_INIT;
    if (story_open(directory, &files, &engine, NULL, &error) != IVM_OK) {
        wrong(it, error.message);
    }
    uint64_t step = story_position(engine);
    step = step ? step : STORY_DECLARES;
    if (step != atomic_load(&it->acknowledged) && step != atomic_load(&it->tried)) {
        wrong(it, "the position is neither that of the last push acknowledged nor that of the one under way");
    }
    atomic_store(&it->acknowledged, step);
    atomic_fetch_add(&it->opened, 1);
    for (;; step++) {
        atomic_store(&it->tried, step + 1);
        ivm_status status = story_push(engine, step, &error);
        if (status == IVM_OK) {
            atomic_store(&it->acknowledged, step + 1);
        } else if (status == IVM_IO || status == IVM_CORRUPT) {
            wrong(it, error.message);
        }
        if (step % 23 == 0) {
            if (ivm_durable_checkpoint(engine, &error) != IVM_OK) {
                wrong(it, error.message);
            }
            atomic_fetch_add(&it->checkpoints, 1);
        }
    }
}

static void kill_one(const char *directory, told *it, bool pretends, uint64_t microseconds)
{
    int status;
    pid_t pid = fork();
    NEED(pid >= 0);
    if (pid == 0) {
        child(directory, it, pretends);
    }
    struct timespec time = { (time_t)(microseconds / 1000000), (long)(microseconds % 1000000) * 1000 };
    nanosleep(&time, NULL);
    NEED(kill(pid, SIGKILL) == 0);
    NEED(waitpid(pid, &status, 0) == pid);
    NEED(!atomic_load(&it->wrong) && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* The directory holds what the model does that was told as many pushes. */
static uint64_t compare(const char *directory, const told *it, model *like, uint64_t *cut)
{
    ivm_engine *engine;
    ivm_recovery found = { .version = IVM_RECOVERY_VERSION };
    OK(story_open(directory, NULL, &engine, &found, error));
    uint64_t position = story_position(engine);
    uint64_t steps = position ? position : STORY_DECLARES;
    NEED(steps == atomic_load(&it->acknowledged) || steps == atomic_load(&it->tried));
    NEED((found.bytes_cut == 0) == (found.message[0] == 0));
    for (; like->steps < steps; like->steps++) {
        ivm_error ignored;
        (void)!story_push(like->engine, like->steps, &ignored);
    }
    NEED(like->steps == steps);
    NEED(story_digest(engine) == story_digest(like->engine));
    OK(ivm_engine_close(engine, error));
    *cut += found.bytes_cut > 0;
    return steps;
}

static void directory_make(const char *directory)
{
    ivm_engine *engine;
    ivm_recovery found = { .version = IVM_RECOVERY_VERSION };
    OK(story_open(directory, NULL, &engine, &found, error));
    NEED(found.created);
    story_declare(engine);
    OK(ivm_engine_close(engine, error));
}

int main(int argc, char **argv)
{
    uint64_t kills = argc > 1 ? strtoull(argv[1], NULL, 10) : 200, seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    uint64_t opening = 0, under_way = 0, cut = 0, longest = 30000;
    story_place place;
    model like = { .steps = STORY_DECLARES };
    told *it = mmap(NULL, sizeof *it, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    NEED(it != MAP_FAILED);
    story_place_make(&place);
    OK(ivm_engine_open(NULL, &like.engine, error));
    story_declare(like.engine);
    directory_make(place.directory);
    atomic_store(&it->acknowledged, STORY_DECLARES);
    atomic_store(&it->tried, STORY_DECLARES);
    for (uint64_t i = 0; i < kills; i++) {
        uint64_t opened = atomic_load(&it->opened);
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        kill_one(place.directory, it, i % 4 < 2, (seed >> 33) % longest);
        bool came_up = atomic_load(&it->opened) > opened;
        opening += !came_up;
        longest = came_up ? longest : longest < 2000000 ? longest + longest / 50 + 1 : longest; /* a slow machine gets more time */
        if (i % 2) { /* else the next process finds what this one left */
            uint64_t steps = compare(place.directory, it, &like, &cut);
            under_way += steps != atomic_load(&it->acknowledged);
        }
    }
    uint64_t steps = compare(place.directory, it, &like, &cut);
    printf("%llu kills survived: %llu of them while it was opened; %llu steps pushed, %llu checkpoints, %llu pushes found that were under "
           "way, %llu torn "
           "tails cut\n",
           (unsigned long long)kills, (unsigned long long)opening, (unsigned long long)(steps - STORY_DECLARES),
           (unsigned long long)atomic_load(&it->checkpoints), (unsigned long long)under_way, (unsigned long long)cut);
    OK(ivm_engine_close(like.engine, error));
    story_place_remove(&place);
    munmap(it, sizeof *it);
    return 0;
}
