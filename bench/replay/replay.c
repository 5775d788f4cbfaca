/* `ivm replay`: applies each scenario file to an engine of its own and tells what does not hold. A line's command is the first member
 * of it that names one; "error" says that it must fail. */
#include "replay.h"

#include "command.h"
#include "option.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *const fk_pruning_words[] = { "row", "batch", "off", NULL };
const char *const join_rule_words[] = { "auto", "mobius", "telescoping", NULL };
static const char *const yes_no_words[] = { "no", "yes", NULL };

static const char help[] =
    "usage: ivm replay [OPTIONS] FILE...\n"
    "\n"
    "Applies scenario files (JSON Lines, one command a line; - is standard input), each to a fresh\n"
    "engine, through the public C interface alone. Prints a line on standard error for each command\n"
    "or expectation that does not hold (FILE:LINE: what) and at the end, on standard output,\n"
    "\"N scenarios, M expectations, K wrong\". Exit codes: 0 if K is 0, 1 if not, 2 for a file that cannot\n"
    "be read or parsed; such a file is found before any is applied.\n"
    "\n"
    "  --join-rule auto|mobius|telescoping   how a join's delta is written as terms\n"
    "  --fk-pruning row|batch|off            which terms foreign keys take out\n"
    "  --skip-empty yes|no                   whether terms of empty deltas are left out\n"
    "  --threads N                           threads of each engine\n"
    "  --audit                               audit every view after each push and refresh that goes through:\n"
    "                                        it is computed anew, without foreign keys, and each row that is\n"
    "                                        missing or should not be there counts as wrong\n"
    "  --restored                            save the engine before each push and refresh, and go on from what was\n"
    "                                        saved, restored into it or into a new one in turn\n"
    "  --durable DIR                         each engine lives in a directory, DIR/engine, made anew for each file\n"
    "                                        and removed behind it; before each push and refresh it is closed and\n"
    "                                        opened again\n"
    "  --digest                              a line for each file before the last: DIGEST  FILE\n"
    "\n"
    "The options are set before the first line; a file's own \"set\" lines change them from there on.\n"
    "float64 values are compared within a relative 1e-12, columns that a line lists as \"exact\" to the bit.\n"
    "Bounds on delta rows (\"expect_deltas\") are judged where the view's last step pruned by row, for other\n"
    "settings they are not meant.\n"
    "\n"
    "A digest sums up (XXH3, 16 hexadecimal digits) what every view held after each push and refresh: rows\n"
    "sorted, equal ones as one with their weight, every cell to the bit, which steps failed and how, and the bytes of\n"
    "checkpoints. Two\n"
    "runs of a file with one digest went through the same contents, whatever the settings.\n";

/* ---- Lines --------------------------------------------------------------------------------------------------------------------- */

typedef struct line_handler {
    const char *name;
    ivm_status (*run)(replay_session *replay, const json_t *line);
    bool expects;
    bool changes; /* contents of views */
} line_handler;

static const line_handler handlers[] = {
    { "expect", replay_expect, true },
    { "expect_changes", replay_expect_changes, true },
    { "expect_terms", replay_expect_terms, true },
    { "expect_deltas", replay_expect_deltas, true },
    { "checkpoint", replay_checkpoint, false },
    { "restore", replay_restore, false },
    { "table", replay_table, false },
    { "foreign_key", replay_foreign_key, false },
    { "view", replay_view, false },
    { "push", replay_push, false, true },
    { "refresh", replay_refresh, false, true },
    { "set", replay_set, false },
    { "explain", replay_explain, false },
    { "drop_table", replay_drop_table, false },
    { "drop_view", replay_drop_view, false },
};

ivm_status replay_fail(replay_session *replay, ivm_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    replay->error.status = status;
    vsnprintf(replay->error.message, sizeof replay->error.message, format, arguments);
    va_end(arguments);
    return status;
}

int word_position(const char *const *words, const char *word)
{
    for (int i = 0; word && words[i]; i++) {
        if (strcmp(words[i], word) == 0) {
            return i;
        }
    }
    return -1;
}

const char *member_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

const char *member_names(replay_session *replay, const json_t *object, const char *name)
{
    const json_t *list = json_object_get(object, name);
    size_t size = 1;
    if (list && !json_is_array(list)) {
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        size += json_string_length(json_array_get(list, i)) + 2;
    }
    char *text = arena_take(&replay->memory, size), *end = text;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        if (!word) {
            return NULL;
        }
        end = stpcpy(stpcpy(end, i ? ", " : ""), word);
    }
    return text;
}

static const line_handler *handler_find(const json_t *line)
{
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
        if (json_object_get(line, handlers[i].name)) {
            return &handlers[i];
        }
    }
    return NULL;
}

/* Goes on with the engine as it was saved, where that is wanted. */
static ivm_status replay_again(replay_session *replay)
{
    return replay->restored || replay->is_durable ? replay_reopen(replay) : IVM_OK;
}

static ivm_status line_apply(replay_session *replay, const line_handler *handler, const json_t *line)
{
    if (handler) {
        bool reopens = handler->changes && !json_object_get(line, "error"); /* that tells of the step before */
        ivm_status status = reopens ? replay_again(replay) : IVM_OK;
        status = status == IVM_OK ? handler->run(replay, line) : status;
        ivm_status summed = handler->changes && replay->digest.wanted ? digest_step(replay, status) : IVM_OK;
        return summed == IVM_OK ? status : summed;
    }
    if (json_object_get(line, "#")) {
        return IVM_OK;
    }
    const char *name = json_object_iter_key(json_object_iter((json_t *)line));
    return replay_fail(replay, IVM_INVALID_ARGUMENT, "unknown command %s", name ? name : "{}");
}

/* Tells what does not hold of a line; false if all of it does. */
static bool line_judge(const replay_session *replay, const json_t *line, ivm_status status, FILE *out)
{
    const char *wanted = member_text(line, "error"), *got = status == IVM_OK ? NULL : ivm_status_name(status);
    if (!wanted && !got && !replay->unheld) {
        return false;
    }
    if (wanted && got && strcmp(wanted, got) == 0) {
        return false;
    }
    if (replay->unheld && !wanted) {
        fputs(replay->unheld, out);
    } else if (!got) {
        fprintf(out, "succeeded, but error %s was expected", wanted);
    } else if (!wanted) {
        fprintf(out, "failed with %s: %s", got, replay->error.message);
    } else {
        fprintf(out, "failed with %s (%s), but error %s was expected", got, replay->error.message, wanted);
    }
    return true;
}

ivm_view *replay_view_made(replay_session *replay, const scenario_file *file, size_t at)
{
    const char *name = member_text(json_object_get(file->lines[at].json, "view"), "name");
    ivm_view *view;
    for (size_t i = 0; name && i < at; i++) {
        const char *earlier = member_text(json_object_get(file->lines[i].json, "view"), "name");
        if (earlier && strcmp(earlier, name) == 0) {
            return NULL;
        }
    }
    return name && ivm_view_find(replay->engine, name, &view, &replay->error) == IVM_OK ? view : NULL;
}

static void line_run(replay_session *replay, const scenario_file *file, size_t at, bool silent, replay_counts *counts)
{
    const scenario_line *line = &file->lines[at];
    const line_handler *handler = handler_find(line->json);
    replay->error = (ivm_error)IVM_ERROR_INIT;
    ivm_status status = line_apply(replay, handler, line->json);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out) {
        bool wrong = line_judge(replay, line->json, status, out);
        fclose(out);
        bool expects = handler && handler->expects;
        counts->wrong += wrong;
        counts->failed += wrong && !expects;
        if (wrong && !(silent && expects)) {
            const json_t *members = handler ? json_object_get(line->json, handler->name) : NULL;
            const char *view = member_text(members, "view");
            fprintf(stderr, "%s:%zu: %s%s%s: %s\n", file->path, line->number, handler ? handler->name : "command", view ? " " : "",
                    view ? view : "", text);
        }
    }
    free(text);
    free(replay->unheld);
    replay->unheld = NULL;
    counts->expectations += handler && handler->expects;
    if (replay->audits && handler && handler->changes && status == IVM_OK) {
        replay_audit(replay, file, at, counts);
    }
    arena_clear(&replay->memory);
}

void replay_run(replay_session *replay, const scenario_file *file, bool silent, replay_counts *counts)
{
    for (size_t i = 0; i < file->lines_count; i++) {
        line_run(replay, file, i, silent, counts);
    }
    counts->scenarios++;
}

/* ---- Engines ------------------------------------------------------------------------------------------------------------------- */

bool replay_open(replay_session *replay, const ivm_engine_options *options, const char *durable)
{
    *replay = (replay_session){ .how = *options, .durable = durable, .is_durable = durable };
    ivm_status status = durable ? replay_durable_open(replay, true) : ivm_engine_open(options, &replay->engine, &replay->error);
    if (status == IVM_OK) {
        return true;
    }
    usage_error("cannot open an engine: %s: %s", ivm_status_name(status), replay->error.message);
    return false;
}

void replay_close(replay_session *replay)
{
    ivm_error error = IVM_ERROR_INIT;
    if (ivm_engine_close(replay->engine, &error) != IVM_OK) {
        usage_error("cannot close the engine: %s", error.message);
    }
    if (replay->durable) {
        replay_durable_end(replay);
    }
    arena_clear(&replay->memory);
    digest_free(&replay->digest);
    checkpoints_free(replay);
    *replay = (replay_session){ 0 };
}

/* ---- The command --------------------------------------------------------------------------------------------------------------- */

static bool files_read(const operand_list *operands, scenario_file *files)
{
    for (size_t i = 0; i < operands->count; i++) {
        if (!scenario_file_read(operands->texts[i], &files[i])) {
            return false;
        }
    }
    return true;
}

static int files_replay(const operand_list *operands, scenario_file *files, const ivm_engine_options *how, const replay_session *like,
                        bool digest)
{
    replay_counts counts = { 0 };
    for (size_t i = 0; i < operands->count; i++) {
        replay_session replay;
        if (!replay_open(&replay, how, like->durable)) {
            return EXIT_USAGE;
        }
        replay.digest.wanted = digest;
        replay.audits = like->audits;
        replay.restored = like->restored;
        replay_run(&replay, &files[i], false, &counts);
        if (digest) {
            printf("%016llx  %s\n", (unsigned long long)replay.digest.value, files[i].path);
        }
        replay_close(&replay);
    }
    printf("%zu scenarios, %zu expectations, %zu wrong\n", counts.scenarios, counts.expectations, counts.wrong);
    return counts.wrong ? EXIT_WRONG : EXIT_HOLDS;
}

int replay_command(int argc, char **argv)
{
    ivm_engine_options how = IVM_ENGINE_OPTIONS_INIT;
    int rule = how.planner.join_rule, pruning = how.planner.fk_pruning, skip = !how.planner.run_empty, code;
    uint64_t threads = how.threads;
    bool digest = false;
    replay_session like = { 0 };
    const option_definition options[] = { { "--join-rule", OPTION_WORD, &rule, join_rule_words },
                                          { "--fk-pruning", OPTION_WORD, &pruning, fk_pruning_words },
                                          { "--skip-empty", OPTION_WORD, &skip, yes_no_words },
                                          { "--threads", OPTION_NUMBER, &threads },
                                          { "--audit", OPTION_FLAG, &like.audits },
                                          { "--restored", OPTION_FLAG, &like.restored },
                                          { "--durable", OPTION_TEXT, &like.durable },
                                          { "--digest", OPTION_FLAG, &digest },
                                          { NULL } };
    operand_list operands;
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        return code;
    }
    if (!operands.count) {
        return usage_error("replay wants a file; --help says more");
    }
    if (like.restored && like.durable) {
        return usage_error("replay: --restored or --durable, not both");
    }
    if (threads > IVM_THREADS_MAX) {
        return usage_error("replay: at most %u threads", IVM_THREADS_MAX);
    }
    how.planner = (ivm_planner_options){ (ivm_fk_pruning)pruning, (ivm_join_rule)rule, skip != 1 };
    how.threads = (uint32_t)threads;
    scenario_file *files = memory_take(operands.count * sizeof *files);
    code = files_read(&operands, files) ? files_replay(&operands, files, &how, &like, digest) : EXIT_USAGE;
    for (size_t i = 0; i < operands.count; i++) {
        scenario_file_free(&files[i]);
    }
    free(files);
    return code;
}
