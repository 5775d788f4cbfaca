/* `ivm replay --durable DIR`: each scenario's engine lives in a directory, DIR/engine, that is empty at first and removed at the end. Before each push and
 * refresh it is closed and opened again, every other time behind a checkpoint: it must be saved as the bytes it was saved as before. Pushes are synced
 * when the engine is closed. A "restore" line goes on with an engine that is not durable. */
#include "replay.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void place_of(const replay_session *replay, const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/engine%s%s", replay->durable, name ? "/" : "", name ? name : "");
}

/* What an earlier scenario left, if anything. */
static void place_clear(const replay_session *replay)
{
    char path[4096];
    place_of(replay, NULL, path, sizeof path);
    DIR *files = opendir(path);
    for (const struct dirent *entry; files && (entry = readdir(files));) {
        place_of(replay, entry->d_name, path, sizeof path);
        unlink(path); /* but for . and .. */
    }
    if (files) {
        closedir(files);
        place_of(replay, NULL, path, sizeof path);
        rmdir(path);
    }
}

ivm_status replay_durable_open(replay_session *replay, bool anew)
{
    char path[4096];
    ivm_durable_options options = { .version = IVM_DURABLE_OPTIONS_VERSION, .engine = &replay->how, .sync = IVM_SYNC_ASKED };
    if (anew) {
        mkdir(replay->durable, 0777); /* where it cannot be made opening says so */
        place_clear(replay);
    }
    place_of(replay, NULL, path, sizeof path);
    return ivm_durable_open(path, &options, &replay->engine, NULL, &replay->error);
}

ivm_status replay_durable_reopen(replay_session *replay)
{
    ivm_planner_options planner = ivm_engine_planner(replay->engine);
    ivm_status status = IVM_OK;
    if (replay->reopened++ % 2) {
        status = ivm_durable_checkpoint(replay->engine, &replay->error);
    }
    if (status == IVM_OK) {
        status = ivm_engine_close(replay->engine, &replay->error);
    }
    if (status == IVM_OK) {
        replay->engine = NULL;
        status = replay_durable_open(replay, false);
    }
    if (!replay->engine) { /* the lines that follow want one */
        ivm_error ignored;
        replay->is_durable = false;
        if (ivm_engine_open(&replay->how, &replay->engine, &ignored) != IVM_OK) {
            abort();
        }
    }
    return status == IVM_OK ? ivm_engine_planner_set(replay->engine, &planner, &replay->error) : status;
}

void replay_durable_end(replay_session *replay)
{
    place_clear(replay);
    rmdir(replay->durable); /* the last of several */
}
