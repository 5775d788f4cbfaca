/* `ivm feed --durable DIR`: the engine lives in a directory, and each batch is on the disk, with its place in the input, before its changes are written. For
 * input that cannot be read twice. Nothing that was pushed is lost or counted twice, whatever ends the process; the changes of one batch may be: the
 * one that was in when the process was killed, and not written yet. The next run tells which lines' these are. */
#include "feed.h"
#include "option.h"

#include <inttypes.h>

/* Whether the directory holds what the plan declares. */
static bool plan_fits(feed_session *feed, const ivm_engine_options *how, const scenario_file *plan)
{
    replay_session scratch;
    replay_counts counts = { 0 };
    ivm_error error = IVM_ERROR_INIT;
    uint64_t wanted = 0, found = 0;
    if (!replay_open(&scratch, how, NULL)) {
        return false;
    }
    replay_run(&scratch, plan, false, &counts);
    bool ok = !counts.wrong && ivm_engine_fingerprint(scratch.engine, &wanted, &error) == IVM_OK &&
              ivm_engine_fingerprint(feed->replay.engine, &found, &error) == IVM_OK;
    replay_close(&scratch);
    if (ok && wanted != found) {
        usage_error("%s: holds the tables and views of another plan", feed->options.durable);
    }
    return ok && wanted == found;
}

static bool feed_go_on(feed_session *feed)
{
    ivm_error error = IVM_ERROR_INIT;
    size_t size = 0;
    if (ivm_engine_position(feed->replay.engine, NULL, 0, &size, &error) == IVM_OK && size == 0) {
        return true; /* no line has come yet */
    }
    if (!position_read(feed, &error)) {
        usage_error("%s: %s", feed->options.durable, error.message);
        return false;
    }
    feed->restored = true;
    if (!feed->position.written) {
        fprintf(stderr, "ivm feed: ended without warning: what lines up to %" PRIu64 " changed last may not have been written\n",
                feed->position.lines);
    }
    return true;
}

bool durable_open(feed_session *feed, const ivm_engine_options *how, const scenario_file *plan, bool *created)
{
    ivm_durable_options options = { .version = IVM_DURABLE_OPTIONS_VERSION, .engine = how };
    ivm_recovery recovery = { .version = IVM_RECOVERY_VERSION };
    ivm_error error = IVM_ERROR_INIT;
    feed->replay = (replay_session){ .how = *how };
    if (ivm_durable_open(feed->options.durable, &options, &feed->replay.engine, &recovery, &error) != IVM_OK) {
        usage_error("%s: %s: %s", feed->options.durable, ivm_status_name(error.status), error.message);
        return false;
    }
    if (recovery.message[0]) {
        fprintf(stderr, "ivm feed: %s\n", recovery.message);
    }
    *created = recovery.created;
    if (recovery.created || (plan_fits(feed, how, plan) && feed_go_on(feed))) {
        return true;
    }
    replay_close(&feed->replay);
    return false;
}

bool durable_save(feed_session *feed)
{
    ivm_error error = IVM_ERROR_INIT;
    if (position_give(feed, &error) != IVM_OK || ivm_durable_checkpoint(feed->replay.engine, &error) != IVM_OK) {
        usage_error("%s: %s", feed->options.durable, error.message);
        return false;
    }
    return true;
}
