/* A durable engine whose allocations fail, one after the other: a step that fails for it has changed neither the engine nor its directory, and an
 * opening that fails for it leaves the directory as it was. Prints how many allocations failed. */
#include "allocator.h"
#include "disk.h"
#include "story.h"

#define STEPS 62 /* the first large push is the last step of all */

static ivm_status engine_open(const char *directory, const ivm__files *files, const ivm_engine_options *options, ivm_engine **engine,
                              ivm_error *why)
{
    ivm_durable_options how = { .version = IVM_DURABLE_OPTIONS_VERSION, .engine = options, .segment_bytes = 2000 };
    return ivm__durable_open(directory, &how, files, engine, NULL, why);
}

/* Does the step, having tried it with each of its allocations failing. */
static uint64_t step_do(ivm_engine *engine, test_allocator *allocator, uint64_t step)
{
    uint64_t digest = story_digest(engine), nth = 1;
    for (;; nth++) {
        ivm_error why = IVM_ERROR_INIT;
        test_allocator_arm(allocator, nth);
        ivm_status status = story_step(engine, step, &why);
        bool failed = test_allocator_disarm(allocator);
        NEED(status != IVM_IO);
        if (status != IVM_OUT_OF_MEMORY) { /* one may have been for memory that would only have been nice to have */
            if (failed && status == IVM_OK) {
                nth++;
            }
            return nth - 1;
        }
        NEED(failed && story_digest(engine) == digest);
    }
}

static uint64_t openings(const char *directory, const ivm__files *files, test_allocator *allocator, const ivm_engine_options *options,
                         uint64_t digest)
{
    ivm_engine *engine;
    for (uint64_t nth = 1;; nth += 1 + nth / 40) {
        ivm_error why = IVM_ERROR_INIT;
        test_allocator_arm(allocator, nth);
        ivm_status status = engine_open(directory, files, options, &engine, &why);
        bool failed = test_allocator_disarm(allocator);
        if (status == IVM_OK) {
            NEED(story_digest(engine) == digest);
            OK(ivm_engine_close(engine, error));
        } else {
            NEED(status == IVM_OUT_OF_MEMORY && failed);
        }
        NEED(test_allocator_is_clean(allocator));
        if (!failed) {
            return nth;
        }
    }
}

int main(void)
{
    uint64_t failed = 0;
    story_place place;
    test_allocator allocator;
    disk under = { .pretends = true };
    ivm__files files = disk_files(&under);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    ivm_engine *engine, *like;
    test_allocator_init(&allocator);
    options.allocator = test_allocator_functions(&allocator);
    story_place_make(&place);
    OK(ivm_engine_open(NULL, &like, error));
    OK(engine_open(place.directory, &files, &options, &engine, error));
    for (uint64_t step = 0; step < STEPS; step++) {
        ivm_error ignored;
        failed += step_do(engine, &allocator, step);
        (void)!story_step(like, step, &ignored);
        NEED(story_digest(engine) == story_digest(like));
    }
    uint64_t digest = story_digest(like);
    OK(ivm_engine_close(engine, error));
    OK(ivm_engine_close(like, error));
    printf("%llu allocations failed in %u steps", (unsigned long long)failed, STEPS);
    printf(", and every tenth or so of %llu while the directory was opened\n",
           (unsigned long long)openings(place.directory, &files, &allocator, &options, digest));
    story_place_remove(&place);
    return 0;
}
