/* `ivm feed`: the command and its loop. See feed.h. */
#include "feed.h"

#include "command.h"
#include "option.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH_BYTES_MAX ((size_t)4 << 20) /* of lines; one longer line is a batch by itself */

static const char help[] =
    "usage: ivm feed [OPTIONS] PLAN [INPUT]\n"
    "\n"
    "Reads changes of tables as newline-delimited JSON (from INPUT, or standard input) and writes what they change in each view as\n"
    "newline-delimited JSON, for as long as lines come; first of all what views hold without any (a sum over nothing). PLAN is a\n"
    "scenario file of catalog lines alone: table, foreign_key, view, set (tests/scenario.md has the format).\n"
    "\n"
    "  --from feldera|debezium|upsert    what comes (default feldera)\n"
    "  --to feldera|debezium|upsert      what is written (default: as it comes)\n"
    "  --table NAME                      the table of every line; else the line names it: \"table\", in debezium\n"
    "                                    source.table; where PLAN has one table it is that\n"
    "  --view NAME,NAME...               the views to write (default all)\n"
    "  --key VIEW=N,VIEW=N...            to write upserts: how many of a view's first columns are its key\n"
    "  --timestamps micros|millis|nanos  what an integer in a timestamp column counts since 1970 (default micros),\n"
    "                                    where a debezium line has no schema that says it\n"
    "  --memory MB                       what the engine may hold; the run ends where it would hold more\n"
    "  --batch N                         push when so many lines are there (default 1000) ...\n"
    "  --wait MS                         ... or the first has waited so long (default 100), or the input ends\n"
    "  --line-max BYTES                  a longer line is bad (default 1048576)\n"
    "  --strict                          a member that is no column is bad, so is a row without a column (else: null)\n"
    "  --bad skip|stop                   a bad line is told by its number, counted and left out (default), or ends the run\n"
    "  --checkpoint FILE                 go on from it if it is there; write it now and then and at the end\n"
    "  --durable DIR                     keep the engine there instead: each batch is on the disk before its changes are\n"
    "                                    written; for input that cannot be read twice (--continue). After a kill the changes\n"
    "                                    of one batch may not have been written; the next run tells\n"
    "  --every MS                        a checkpoint so often, when lines came (default 60000)\n"
    "  --continue                        the input goes on where it was left: pass over nothing\n"
    "  --output FILE                     write there; from a checkpoint on the file is cut to what had been written then\n"
    "\n"
    "  feldera   {\"table\": \"t\", \"insert\": {\"id\": 1}}  {\"table\": \"t\", \"delete\": {\"id\": 1}}\n"
    "  debezium  {\"before\": {...}, \"after\": {...}, \"op\": \"c|r|u|d\", \"source\": {\"table\": \"t\"}}, also in {\"payload\": ...}\n"
    "            or {\"key\": ..., \"value\": ...}\n"
    "  upsert    {\"table\": \"t\", \"key\": {\"id\": 1}, \"value\": {...}}, null for the value: the key goes\n"
    "\n"
    "Of a table with a key an insert replaces the row of its key, a delete takes the key alone and may come twice. Decimals come as\n"
    "strings or numbers, exact either way. A batch with a line that only the engine can refuse goes in by parts. Where children may\n"
    "come before their parents declare the foreign key tracked: an enforced one refuses them.\n"
    "\n"
    "A full pipe behind holds up the pipe before. SIGTERM and SIGINT end the run: what was read is pushed, changes and checkpoint\n"
    "are written. A run that was killed and is run again on the same input, with --checkpoint and --output, leaves the output of one\n"
    "that was not; without --output what was written since the checkpoint is written again.\n"
    "Exit codes: 0 the input or a signal ended it; 1 a bad line (--bad stop), an input or an output did; 2 PLAN or the command line\n"
    "could not be used.\n";

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- The loop -------------------------------------------------------------------------------------------------------------------------- */

typedef struct feed_loop {
    feed_session *feed;
    feed_batch batch;
    uint64_t due, save_due; /* of a batch that has lines; of a checkpoint where `unsaved` */
    bool unsaved;
} feed_loop;

static int wait_of(const feed_loop *loop)
{
    bool saves = loop->unsaved && (loop->feed->options.checkpoint || loop->feed->options.durable);
    if (!loop->batch.lines_count && !saves) {
        return -1;
    }
    uint64_t now = now_ms(), due = loop->batch.lines_count ? loop->due : loop->save_due;
    return due <= now ? 0 : due - now > 3600000 ? 3600000 : (int)(due - now);
}

static bool loop_push(feed_loop *loop)
{
    return !loop->batch.lines_count || feed_push(loop->feed, &loop->batch);
}

static bool loop_save(feed_loop *loop)
{
    if (!loop->unsaved || loop->batch.lines_count || now_ms() < loop->save_due) {
        return true;
    }
    loop->unsaved = false;
    return feed_save(loop->feed);
}

static void unsaved_mark(feed_loop *loop)
{
    if (!loop->unsaved) {
        loop->unsaved = true;
        loop->save_due = now_ms() + loop->feed->options.every_ms;
    }
}

static bool line_take(feed_loop *loop, const feed_input *input, const char *bytes, size_t size)
{
    while (size && isspace((unsigned char)bytes[size - 1])) {
        size--;
    }
    while (size && isspace((unsigned char)*bytes)) {
        bytes++;
        size--;
    }
    if (!size) {
        return true;
    }
    if (!loop->batch.lines_count) {
        loop->due = now_ms() + loop->feed->options.wait_ms;
    }
    unsaved_mark(loop);
    batch_add(&loop->batch, bytes, size, input->number, input->offset);
    bool full = loop->batch.lines_count >= loop->feed->options.batch_lines || loop->batch.bytes_count >= BATCH_BYTES_MAX;
    return !full || loop_push(loop);
}

static bool line_too_long(feed_loop *loop, const feed_input *input)
{
    feed_session *feed = loop->feed;
    char message[64];
    if (!loop_push(loop)) {
        return false;
    }
    if (!feed->stopped) {
        snprintf(message, sizeof message, "longer than %" PRIu64 " bytes", feed->options.line_max);
        feed_tell_bad(feed, input->number, message);
        unsaved_mark(loop);
    }
    if (!feed->stopped) {
        feed->position.lines = input->number;
        feed->position.input_bytes = input->offset;
    }
    return true;
}

/* Until the input ends, or a signal, a bad line or a failure does. False after a failure, of which a line on standard error has told. */
static bool loop_run(feed_loop *loop, feed_input *input, bool *input_failed)
{
    const char *bytes = NULL;
    size_t size = 0;
    bool ok = true;
    while (ok && !loop->feed->stopped) {
        feed_got got = input_next(input, wait_of(loop), &bytes, &size);
        if (got == FEED_LINE) {
            ok = line_take(loop, input, bytes, size);
            if (ok && loop->batch.lines_count && now_ms() >= loop->due) {
                ok = loop_push(loop);
            }
        } else if (got == FEED_LINE_TOO_LONG) {
            ok = line_too_long(loop, input);
        } else {
            ok = loop_push(loop);
            if (got != FEED_NOTHING_YET) {
                *input_failed = got == FEED_FAILED;
                return ok;
            }
        }
        ok = ok && !loop->feed->stopped ? loop_save(loop) : ok;
    }
    return ok;
}

static int feed_run(feed_session *feed, feed_input *input)
{
    feed_loop loop = { .feed = feed };
    bool input_failed = false;
    bool ok = (feed->restored || feed_write(feed, true)) && loop_run(&loop, input, &input_failed);
    if (input_failed) {
        usage_error("feed: cannot read on behind line %" PRIu64, input->number);
    }
    ok = ok && feed_save(feed);
    fprintf(stderr,
            "ivm feed: %" PRIu64 " lines, %" PRIu64 " bad, %" PRIu64 " deletions of what was not there, %" PRIu64 " changes written\n",
            feed->position.lines, feed->position.bad + feed->stopped, feed->absent_count, feed->changes_count);
    free(loop.batch.bytes);
    free(loop.batch.lines);
    return ok && !input_failed && !feed->stopped ? EXIT_HOLDS : EXIT_WRONG;
}

/* ---- The catalog ------------------------------------------------------------------------------------------------------------------------ */

static bool plan_is_catalog(const scenario_file *plan)
{
    static const char *const commands[] = { "table", "foreign_key", "view", "set", "#", NULL };
    for (size_t i = 0; i < plan->lines_count; i++) {
        size_t c = 0;
        while (commands[c] && !json_object_get(plan->lines[i].json, commands[c])) {
            c++;
        }
        if (!commands[c] || json_object_get(plan->lines[i].json, "error")) {
            usage_error("%s:%zu: a feed's plan has table, foreign_key, view and set lines alone", plan->path, plan->lines[i].number);
            return false;
        }
    }
    return true;
}

static bool tables_find(feed_session *feed, const scenario_file *plan)
{
    feed->tables = memory_take((plan->lines_count + 1) * sizeof *feed->tables);
    for (size_t i = 0; i < plan->lines_count; i++) {
        const char *name = member_text(json_object_get(plan->lines[i].json, "table"), "name");
        feed_table *table = &feed->tables[feed->tables_count];
        if (!name || ivm_table_find(feed->replay.engine, name, &table->table, &feed->replay.error) != IVM_OK) {
            continue;
        }
        table->name = ivm_table_name(table->table);
        table->columns_count = ivm_table_columns_count(table->table);
        table->key_count = ivm_table_key(table->table, table->key, IVM_TABLE_COLUMNS_MAX);
        for (size_t c = 0; c < table->columns_count; c++) {
            feed->exact |= IVM_TYPE_KIND(ivm_table_column_type(table->table, c)) == IVM_DECIMAL_KIND;
        }
        feed->tables_count++;
    }
    for (size_t i = 0; feed->options.table && i < feed->tables_count; i++) {
        if (strcmp(feed->tables[i].name, feed->options.table) == 0) {
            return true;
        }
    }
    if (feed->options.table) {
        usage_error("feed: PLAN has no table %s", feed->options.table);
    }
    return !feed->options.table;
}

static bool catalog_make(feed_session *feed, const scenario_file *plan, bool made)
{
    replay_counts counts = { 0 };
    if (!made) {
        replay_run(&feed->replay, plan, false, &counts);
    }
    return !counts.wrong && tables_find(feed, plan) && views_find(feed, plan);
}

/* ---- The command ------------------------------------------------------------------------------------------------------------------------ */

static int feed_start(feed_session *feed, const scenario_file *plan, bool made)
{
    feed_input input = { .descriptor = -1 };
    int code = EXIT_USAGE;
    if (catalog_make(feed, plan, made) && feed_restore(feed) && output_open(feed) && input_open(&input, &feed->options, &feed->position)) {
        signals_take();
        code = feed_run(feed, &input);
        input_close(&input);
    }
    if (!output_close(feed, code == EXIT_HOLDS) && code == EXIT_HOLDS) {
        code = EXIT_WRONG;
    }
    views_free(feed);
    free(feed->tables);
    return code;
}

int feed_command(int argc, char **argv)
{
    static const char *const formats[] = { "feldera", "debezium", "upsert", NULL };
    static const char *const integers[] = { "micros", "millis", "nanos", NULL };
    static const char *const bad[] = { "skip", "stop", NULL };
    feed_session feed = { .options = { .to = -1, .batch_lines = 1000, .wait_ms = 100, .line_max = 1 << 20, .every_ms = 60000 } };
    feed_options *to = &feed.options;
    uint64_t memory = 0;
    int stop = 0, code;
    const option_definition options[] = { { "--from", OPTION_WORD, &to->from, formats },
                                          { "--to", OPTION_WORD, &to->to, formats },
                                          { "--table", OPTION_TEXT, &to->table },
                                          { "--view", OPTION_TEXT, &to->views },
                                          { "--key", OPTION_TEXT, &to->key },
                                          { "--timestamps", OPTION_WORD, &to->integers, integers },
                                          { "--memory", OPTION_NUMBER, &memory },
                                          { "--batch", OPTION_NUMBER, &to->batch_lines },
                                          { "--wait", OPTION_NUMBER, &to->wait_ms },
                                          { "--line-max", OPTION_NUMBER, &to->line_max },
                                          { "--strict", OPTION_FLAG, &to->strict },
                                          { "--bad", OPTION_WORD, &stop, bad },
                                          { "--checkpoint", OPTION_TEXT, &to->checkpoint },
                                          { "--durable", OPTION_TEXT, &to->durable },
                                          { "--every", OPTION_NUMBER, &to->every_ms },
                                          { "--continue", OPTION_FLAG, &to->goes_on },
                                          { "--output", OPTION_TEXT, &to->output },
                                          { NULL } };
    operand_list operands;
    scenario_file plan;
    ivm_engine_options how = IVM_ENGINE_OPTIONS_INIT;
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        return code;
    }
    if (!operands.count || operands.count > 2) {
        return usage_error("feed wants a plan, and one input at most; --help says more");
    }
    to->to = to->to < 0 ? to->from : to->to;
    to->stop = stop == 1;
    how.memory_max = memory << 20;
    to->input = operands.count == 2 ? operands.texts[1] : NULL;
    if (to->checkpoint && to->durable) {
        return usage_error("feed: --checkpoint or --durable, not both");
    }
    if (!scenario_file_read(operands.texts[0], &plan)) {
        return EXIT_USAGE;
    }
    code = EXIT_USAGE;
    bool created = true;
    if (plan_is_catalog(&plan) && (to->durable ? durable_open(&feed, &how, &plan, &created) : replay_open(&feed.replay, &how, NULL))) {
        code = feed_start(&feed, &plan, !created);
        replay_close(&feed.replay);
    }
    scenario_file_free(&plan);
    return code;
}
