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
    "usage: ivm feed [OPTIONS] PLAN [INPUT...]\n"
    "\n"
    "Reads changes of tables as newline-delimited JSON and writes what they change in each view as newline-delimited JSON, for as long\n"
    "as lines come; first of all what views hold without any (a sum over nothing). PLAN is a scenario file of catalog lines alone:\n"
    "table, foreign_key, view, set (tests/scenario.md has the format).\n"
    "\n"
    "INPUT is FILE or FILE:TABLE, whose lines are all for that table and need not name it; - is standard input, which is read where there\n"
    "is no INPUT. Files are read first, in the order given, each to its end; then pipes, a line of each in turn as lines come. Up to 13.\n"
    "\n"
    "  --from feldera|debezium|upsert|rows\n"
    "                                    what comes (default feldera)\n"
    "  --to feldera|debezium|upsert      what is written (default: as it comes, of rows feldera)\n"
    "  --table NAME                      the table of every line that no INPUT says; else the line names it: \"table\", in\n"
    "                                    debezium source.table; where PLAN has one table it is that\n"
    "  --view NAME,NAME...               the views to write (default all)\n"
    "  --key VIEW=N,VIEW=N...            to write upserts: how many of a view's first columns are its key\n"
    "  --timestamps micros|millis|nanos  what an integer in a timestamp column counts since 1970 (default micros),\n"
    "                                    where a debezium line has no schema that says it\n"
    "  --memory MB                       what the engine may hold; the run ends where it would hold more\n"
    "  --batch N                         push when so many lines are there (default 1000) ...\n"
    "  --wait MS                         ... or the first has waited so long (default 100), or the input ends\n"
    "  --line-max BYTES                  a longer line is bad (default 1048576)\n"
    "  --strict                          a member that is no column is bad, so is a row without a column (else: null, and each\n"
    "                                    such member is told of once, up to 16 of them)\n"
    "  --bad skip|stop                   a bad line is told by its number, counted and left out (default), or ends the run\n"
    "  --bad-max N                       so does one more bad line than N since the first start (default: no limit)\n"
    "  --checkpoint FILE                 go on from it if it is there; write it now and then and at the end\n"
    "  --durable DIR                     keep the engine there instead: each batch is on the disk before its changes are\n"
    "                                    written; for input that cannot be read twice (--continue)\n"
    "  --every MS                        a checkpoint so often, when lines came (default 60000)\n"
    "  --continue                        standard input and pipes go on where they were left: pass over nothing\n"
    "  --output FILE                     write there; who goes on cuts it to what it is to go on from\n"
    "\n"
    "  feldera   {\"table\": \"t\", \"insert\": {\"id\": 1}}  {\"table\": \"t\", \"delete\": {\"id\": 1}}\n"
    "  debezium  {\"before\": {...}, \"after\": {...}, \"op\": \"c|r|u|d\", \"source\": {\"table\": \"t\"}}, also in {\"payload\": ...}\n"
    "            or {\"key\": ..., \"value\": ...}\n"
    "  upsert    {\"table\": \"t\", \"key\": {\"id\": 1}, \"value\": {...}}, null for the value: the key goes\n"
    "  rows      {\"id\": 1} or [1]: a row that comes\n"
    "\n"
    "Of a table with a key an insert replaces the row of its key, a delete takes the key alone and may come twice. Decimals come as\n"
    "strings or numbers, exact either way. A batch with a line that only the engine can refuse goes in by parts. Where children may\n"
    "come before their parents declare the foreign key tracked: an enforced one refuses them.\n"
    "\n"
    "A full pipe behind holds up the pipe before. SIGTERM and SIGINT end the run: what was read is pushed, changes and checkpoint\n"
    "are written. A run that ended, or was killed at any moment, and is run again with the same inputs goes on from its checkpoint or\n"
    "directory: no line is lost or counted twice, if those before can be read again. What its output is then:\n"
    "\n"
    "                  --checkpoint                              --durable, also for input that cannot be read again\n"
    "  --output FILE   each change exactly once                  each change exactly once\n"
    "  a pipe          at least once: what was written since     at least once: after a kill what the last batch changed\n"
    "                  the checkpoint comes again                comes again\n"
    "\n"
    "So, too, when the machine goes without warning: checkpoint and directory say nothing of FILE that is not on its disk.\n"
    "Of a pipe that cannot be read again what was read and not pushed yet (--batch, --wait) goes with a kill. FILE is one run's byte\n"
    "for byte where batches are cut at the same lines (--wait too long to count, no line that the engine refuses), else in sum.\n"
    "Exit codes: 0 the input or a signal ended it; 1 a bad line (--bad stop, --bad-max), an input or an output did; 2 PLAN, an input or\n"
    "the command line could not be used. The last line on standard error counts lines since the first start, then of this run.\n";

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

static bool line_take(feed_loop *loop, feed_line line)
{
    while (line.size && isspace((unsigned char)line.bytes[line.size - 1])) {
        line.size--;
    }
    while (line.size && isspace((unsigned char)*line.bytes)) {
        line.bytes++;
        line.size--;
    }
    if (!line.size) {
        return true;
    }
    if (!loop->batch.lines_count) {
        loop->due = now_ms() + loop->feed->options.wait_ms;
    }
    unsaved_mark(loop);
    batch_add(&loop->batch, &line, loop->feed->inputs.list[line.input].place);
    bool full = loop->batch.lines_count >= loop->feed->options.batch_lines || loop->batch.bytes_count >= BATCH_BYTES_MAX;
    return !full || loop_push(loop);
}

static bool line_too_long(feed_loop *loop, size_t input)
{
    feed_session *feed = loop->feed;
    feed_place end = feed->inputs.list[input].place;
    char message[64];
    if (!loop_push(loop)) {
        return false;
    }
    if (!feed->stopped) {
        snprintf(message, sizeof message, "longer than %" PRIu64 " bytes", feed->options.line_max);
        feed_tell_bad(feed, input, end.lines, message);
        unsaved_mark(loop);
    }
    if (!feed->stopped) {
        feed->position.inputs[input] = end;
    }
    return true;
}

/* Until the inputs end (*end: how), or a signal, a bad line or a failure does. False after a failure, of which a line on standard error has told. */
static bool loop_run(feed_loop *loop, feed_got *end)
{
    feed_line line = { NULL };
    bool ok = true;
    while (ok && !loop->feed->stopped) {
        feed_got got = inputs_next(&loop->feed->inputs, wait_of(loop), &line);
        if (got == FEED_LINE) {
            ok = line_take(loop, line);
            if (ok && loop->batch.lines_count && now_ms() >= loop->due) {
                ok = loop_push(loop);
            }
        } else if (got == FEED_LINE_TOO_LONG) {
            ok = line_too_long(loop, line.input);
        } else {
            ok = loop_push(loop);
            if (got != FEED_NOTHING_YET) {
                *end = got;
                return ok;
            }
        }
        ok = ok && !loop->feed->stopped ? loop_save(loop) : ok;
    }
    return ok;
}

/* What is to be written before any line: what views hold without one, or what the last batch before changed, as that may be missing. */
static bool write_first(feed_session *feed)
{
    return feed->restored && feed->position.written ? true : feed_write(feed, !feed->restored);
}

static uint64_t lines_count(const feed_session *feed)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < feed->inputs.count; i++) {
        lines += feed->position.inputs[i].lines;
    }
    return lines;
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Lines since the first start, then what this run did. */
static void counts_tell(const feed_session *feed)
{
    uint64_t lines = lines_count(feed), bad = feed->position.bad + feed->stopped, now = lines - feed->lines_before;
    fprintf(stderr, "ivm feed: %" PRIu64 " line%s, %" PRIu64 " bad since the first start; this run: %" PRIu64 " line%s, %" PRIu64 " bad, ",
            lines, plural(lines), bad, now, plural(now), bad - feed->bad_before);
    fprintf(stderr, "%" PRIu64 " deletion%s of keys that were not there, %" PRIu64 " change%s written\n", feed->absent_count,
            plural(feed->absent_count), feed->changes_count, plural(feed->changes_count));
}

static int feed_run(feed_session *feed)
{
    feed_loop loop = { .feed = feed };
    feed_got end = FEED_END;
    feed->lines_before = lines_count(feed);
    feed->bad_before = feed->position.bad;
    bool ok = write_first(feed) && loop_run(&loop, &end);
    free(loop.batch.bytes);
    free(loop.batch.lines);
    if (end == FEED_SHORT) {
        return EXIT_USAGE;
    }
    ok = ok && feed_save(feed);
    counts_tell(feed);
    return ok && end != FEED_FAILED && !feed->stopped ? EXIT_HOLDS : EXIT_WRONG;
}

/* ---- The catalog ------------------------------------------------------------------------------------------------------------------------ */

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

/* The first `made` lines have been, but for what the engine does not keep. */
static bool catalog_make(feed_session *feed, const scenario_file *plan, size_t made)
{
    replay_counts counts = { 0 };
    for (size_t i = 0; i < plan->lines_count; i++) {
        scenario_file line = { plan->path, plan->lines + i, 1, 1 };
        if (i >= made || json_object_get(line.lines->json, "set")) {
            replay_run(&feed->replay, &line, false, &counts);
        }
    }
    return !counts.wrong && tables_find(feed, plan) && views_find(feed, plan);
}

/* ---- The command ------------------------------------------------------------------------------------------------------------------------ */

static int feed_start(feed_session *feed, const scenario_file *plan, size_t made, const operand_list *inputs)
{
    int code = EXIT_USAGE;
    if (catalog_make(feed, plan, made) && inputs_find(feed, inputs->texts, inputs->count) && feed_restore(feed) && inputs_open(feed) &&
        output_open(feed)) {
        signals_take();
        code = feed_run(feed);
    }
    inputs_close(&feed->inputs);
    if (!output_close(feed, code == EXIT_HOLDS) && code == EXIT_HOLDS) {
        code = EXIT_WRONG;
    }
    views_free(feed);
    free(feed->tables);
    return code;
}

int feed_command(int argc, char **argv)
{
    static const char *const from[] = { "feldera", "debezium", "upsert", "rows", NULL };
    static const char *const formats[] = { "feldera", "debezium", "upsert", NULL };
    static const char *const integers[] = { "micros", "millis", "nanos", NULL };
    static const char *const bad[] = { "skip", "stop", NULL };
    feed_session feed = { .options = { .to = -1, .batch_lines = 1000, .wait_ms = 100, .line_max = 1 << 20, .every_ms = 60000 } };
    feed_options *to = &feed.options;
    feed_unknown unknown = { .count = 0 };
    feed.unknown = &unknown;
    uint64_t memory = 0;
    int stop = 0, code;
    const option_definition options[] = { { "--from", OPTION_WORD, &to->from, from },
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
                                          { "--bad-max", OPTION_NUMBER, &to->bad_max },
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
    if (!operands.count) {
        return usage_error("feed wants a plan; --help says more");
    }
    to->to = to->to >= 0 ? to->to : to->from == FEED_ROWS ? FEED_FELDERA : to->from;
    to->stop = stop == 1;
    how.memory_max = memory << 20;
    operand_list inputs = { operands.texts + 1, operands.count - 1 };
    if (to->checkpoint && to->durable) {
        return usage_error("feed: --checkpoint or --durable, not both");
    }
    if (!scenario_file_read(operands.texts[0], &plan)) {
        return EXIT_USAGE;
    }
    code = EXIT_USAGE;
    size_t made = 0;
    if (plan_is_catalog(&plan) && (to->durable ? durable_open(&feed, &how, &plan, &made) : replay_open(&feed.replay, &how, NULL))) {
        code = feed_start(&feed, &plan, made, &inputs);
        replay_close(&feed.replay);
    }
    scenario_file_free(&plan);
    unknown_free(&unknown);
    return code;
}
