/* `ivm feed --durable DIR`: the engine lives in a directory, and each batch is on the disk, with its places in the inputs, before its changes are written. For
 * input that cannot be read twice. Nothing that was pushed is lost or counted twice, whatever ends the process, and no change is missing from the output:
 *
 *     push i           position: the inputs behind batch i, the output before its changes, "not written"
 *     its changes      written; on the disk, where the output is a file
 *     push i + 1       says by being there that they are
 *
 * The last push alone can lack its changes. Opening the directory plays it again, so that the engine has them to give: the output is cut to where they
 * begin and they are written, for a second time to a pipe that had got some. */
#include "feed.h"
#include "option.h"

/* ---- The catalog ------------------------------------------------------------------------------------------------------------------------ */

/* A part of the plan's lines. */
static scenario_file plan_part(const scenario_file *plan, size_t first, size_t count)
{
    return (scenario_file){ plan->path, plan->lines + first, count, count };
}

/* How many of the plan's lines make what the directory holds; above their count: it is none of the plan's. */
static bool plan_measure(feed_session *feed, replay_session *scratch, const scenario_file *plan, size_t *made)
{
    replay_counts counts = { 0 };
    ivm_error error = IVM_ERROR_INIT;
    uint64_t wanted = 0, found = 0;
    if (ivm_engine_fingerprint(feed->replay.engine, &found, &error) != IVM_OK) {
        usage_error("%s: %s", feed->options.durable, error.message);
        return false;
    }
    for (*made = 0; *made <= plan->lines_count; ++*made) {
        if (ivm_engine_fingerprint(scratch->engine, &wanted, &error) != IVM_OK) {
            usage_error("%s: %s", plan->path, error.message);
            return false;
        }
        if (wanted == found) {
            break;
        }
        scenario_file line = plan_part(plan, *made, *made < plan->lines_count);
        replay_run(scratch, &line, false, &counts);
    }
    return !counts.wrong;
}

static bool catalog_line(const scenario_line *line)
{
    return json_object_get(line->json, "table") || json_object_get(line->json, "foreign_key") || json_object_get(line->json, "view");
}

/* A process may have ended amid the plan's first run; behind the first push the directory holds all of it. */
static bool plan_fits(feed_session *feed, const ivm_engine_options *how, const scenario_file *plan, size_t *made)
{
    replay_session scratch;
    ivm_error error = IVM_ERROR_INIT;
    size_t position_size = 0;
    if (!replay_open(&scratch, how, NULL)) {
        return false;
    }
    bool ok = plan_measure(feed, &scratch, plan, made);
    replay_close(&scratch);
    bool fits = *made <= plan->lines_count;
    bool pushed = ivm_engine_position(feed->replay.engine, NULL, 0, &position_size, &error) != IVM_OK || position_size;
    for (size_t i = *made; ok && pushed && fits && i < plan->lines_count; i++) {
        fits = !catalog_line(&plan->lines[i]);
    }
    if (ok && !fits) {
        usage_error("%s: holds the tables and views of another plan", feed->options.durable);
    }
    return ok && fits;
}

/* ---- Opening and saving ------------------------------------------------------------------------------------------------------------------ */

bool durable_restore(feed_session *feed)
{
    ivm_error error = IVM_ERROR_INIT;
    size_t size = 0;
    if (ivm_engine_position(feed->replay.engine, NULL, 0, &size, &error) == IVM_OK && size == 0) {
        return true; /* no line has come yet */
    }
    feed->restored = position_read(feed, &error);
    if (!feed->restored) {
        usage_error("%s: %s", feed->options.durable, error.message);
    }
    return feed->restored;
}

bool durable_open(feed_session *feed, const ivm_engine_options *how, const scenario_file *plan, size_t *made)
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
    if (recovery.created || plan_fits(feed, how, plan, made)) {
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
