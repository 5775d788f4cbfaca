/* Scenario commands that save an engine and go on from a saved one. Where the engine has the saved catalog still it is restored into as it stands,
 * else into a new one. What is restored, or opened again from its directory, is saved again at once: it must be the same bytes. Planner options are
 * no part of a checkpoint; they are kept beside it. */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

typedef struct replay_saved {
    const char *name; /* borrowed from the file */
    uint8_t *bytes;
    size_t size, capacity, at; /* `at`: read so far */
    uint64_t fingerprint;
    ivm_planner_options planner;
    const char **views; /* of the digest */
    size_t views_count;
} replay_saved;

static ivm_status bytes_write(void *context, const void *bytes, size_t size)
{
    replay_saved *saved = context;
    if (saved->size + size > saved->capacity) {
        saved->capacity = 2 * (saved->size + size);
        saved->bytes = memory_grow(saved->bytes, saved->capacity);
    }
    memcpy(saved->bytes + saved->size, bytes, size);
    saved->size += size;
    return IVM_OK;
}

static ivm_status bytes_read(void *context, void *bytes, size_t size, size_t *got)
{
    replay_saved *saved = context;
    size_t left = saved->size - saved->at;
    *got = size < left ? size : left;
    memcpy(bytes, saved->bytes + saved->at, *got);
    saved->at += *got;
    return IVM_OK;
}

static void saved_free(replay_saved *saved)
{
    free(saved->bytes);
    free(saved->views);
    *saved = (replay_saved){ 0 };
}

void checkpoints_free(replay_session *replay)
{
    for (size_t i = 0; i < replay->saved_count; i++) {
        saved_free(&replay->saved[i]);
    }
    free(replay->saved);
    replay->saved = NULL;
    replay->saved_count = replay->saved_capacity = 0;
}

/* ---- Saving ------------------------------------------------------------------------------------------------------------------------ */

static ivm_status save(replay_session *replay, replay_saved *saved)
{
    ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION, .compression = IVM_COMPRESSION_NONE };
    saved->planner = ivm_engine_planner(replay->engine);
    ivm_status status = ivm_checkpoint(replay->engine, bytes_write, saved, &options, &replay->error);
    return status == IVM_OK ? ivm_engine_fingerprint(replay->engine, &saved->fingerprint, &replay->error) : status;
}

static replay_saved *saved_find(const replay_session *replay, const char *name)
{
    for (size_t i = 0; i < replay->saved_count; i++) {
        if (strcmp(replay->saved[i].name, name) == 0) {
            return &replay->saved[i];
        }
    }
    return NULL;
}

ivm_status replay_checkpoint(replay_session *replay, const json_t *line)
{
    const char *name = member_text(line, "checkpoint");
    if (!name) {
        return replay_fail(replay, IVM_INVALID_ARGUMENT, "a checkpoint wants a name");
    }
    replay_saved made = { .name = name, .views_count = replay->digest.views_count };
    ivm_status status = save(replay, &made);
    if (status != IVM_OK) {
        saved_free(&made);
        return status;
    }
    made.views = memory_take((made.views_count + 1) * sizeof *made.views);
    for (size_t i = 0; i < made.views_count; i++) {
        made.views[i] = replay->digest.views[i];
    }
    digest_bytes(&replay->digest, made.bytes, made.size);
    replay_saved *place = saved_find(replay, name);
    if (place) {
        saved_free(place);
    } else {
        replay->saved = memory_room(replay->saved, replay->saved_count, &replay->saved_capacity, sizeof *replay->saved);
        place = &replay->saved[replay->saved_count++];
    }
    *place = made;
    return IVM_OK;
}

/* ---- Going on ---------------------------------------------------------------------------------------------------------------------- */

static ivm_status same_again(replay_session *replay, const replay_saved *saved)
{
    replay_saved again = { 0 };
    ivm_status status = save(replay, &again);
    if (status == IVM_OK && (again.size != saved->size || memcmp(again.bytes, saved->bytes, again.size) != 0)) {
        size_t at = 0;
        while (at < again.size && at < saved->size && again.bytes[at] == saved->bytes[at]) {
            at++;
        }
        status = replay_fail(replay, IVM_CORRUPT, "what was restored is saved as other bytes, from byte %zu on", at);
    }
    saved_free(&again);
    return status;
}

static ivm_status restore(replay_session *replay, replay_saved *saved, bool anew)
{
    uint64_t fingerprint;
    ivm_engine *engine = replay->engine, *made = NULL;
    ivm_status status = ivm_engine_fingerprint(engine, &fingerprint, &replay->error);
    if (status == IVM_OK && (anew || replay->is_durable || fingerprint != saved->fingerprint)) {
        status = ivm_engine_open(&replay->how, &made, &replay->error);
        engine = made;
    }
    if (status == IVM_OK) {
        saved->at = 0;
        status = ivm_restore(engine, bytes_read, saved, &replay->error);
    }
    if (status == IVM_OK) {
        status = ivm_engine_planner_set(engine, &saved->planner, &replay->error);
    }
    if (status == IVM_OK && made) {
        replay->is_durable = false;
        engine = replay->engine;
        replay->engine = made;
        made = engine;
    }
    if (made) {
        ivm_error ignored;
        ivm_status closed = ivm_engine_close(made, &ignored);
        status = status == IVM_OK ? closed : status;
    }
    return status == IVM_OK ? same_again(replay, saved) : status;
}

ivm_status replay_restore(replay_session *replay, const json_t *line)
{
    const char *name = member_text(line, "restore");
    replay_saved *saved = name ? saved_find(replay, name) : NULL;
    if (!saved) {
        return replay_fail(replay, name ? IVM_IO : IVM_INVALID_ARGUMENT, "there is no checkpoint %s", name ? name : "without a name");
    }
    ivm_status status = restore(replay, saved, false);
    if (status == IVM_OK) {
        digest_views_set(&replay->digest, saved->views, saved->views_count);
        replay->explained = NULL;
    }
    return status;
}

ivm_status replay_reopen(replay_session *replay)
{
    replay_saved saved = { 0 };
    ivm_status status = save(replay, &saved);
    if (status == IVM_OK && replay->is_durable) {
        status = replay_durable_reopen(replay);
        status = status == IVM_OK ? same_again(replay, &saved) : status;
    } else if (status == IVM_OK) {
        replay->reopened++;
        status = restore(replay, &saved, replay->reopened % 2 == 0);
    }
    saved_free(&saved);
    return status;
}
