/* `ivm explain`: replays one scenario file without a word and prints how each view was brought up to date in the last push. */
#include "command.h"
#include "option.h"
#include "replay.h"

#include <string.h>

static const char help[] = "usage: ivm explain [OPTIONS] FILE\n"
                           "\n"
                           "Replays a scenario file (- is standard input) and prints, for each view it leaves, how the last\n"
                           "push brought its joins up to date: leaves and the foreign keys between them, those that prune\n"
                           "nothing with the reason, the skip mask, how many masks there are and how many were pruned, empty or\n"
                           "left, how many rows were probed for and found, for each term that ran what it reads of every leaf and\n"
                           "in which order it probes, and which indexes its terms read, built or not yet. Before any push every\n"
                           "mask is empty.\n"
                           "\n"
                           "  --format text|json|dot   text to read (default), one JSON document a view, or graphs for dot(1)\n"
                           "  --view NAME              this view alone\n"
                           "\n"
                           "Expectations in the file are not judged here; ivm replay does that. A command that fails is told, and\n"
                           "then the exit code is 1.\n";

static int view_explain(replay_session *replay, const char *name, ivm_explain_format format)
{
    ivm_view *view;
    char *text;
    ivm_status status = ivm_view_find(replay->engine, name, &view, &replay->error);
    if (status == IVM_OK) {
        status = ivm_explain(view, NULL, format, &text, &replay->error);
    }
    if (status != IVM_OK) {
        return usage_error("%s: %s: %s", name, ivm_status_name(status), replay->error.message);
    }
    size_t size = strlen(text);
    fputs(text, stdout);
    if (size && text[size - 1] != '\n') {
        putchar('\n');
    }
    ivm_text_free(text);
    return EXIT_HOLDS;
}

static int views_explain(replay_session *replay, const scenario_file *file, ivm_explain_format format)
{
    int code = EXIT_HOLDS;
    for (size_t i = 0; i < file->lines_count && code == EXIT_HOLDS; i++) {
        ivm_view *view = replay_view_made(replay, file, i);
        if (view) {
            code = view_explain(replay, ivm_view_name(view), format);
        }
    }
    return code;
}

int explain_command(int argc, char **argv)
{
    static const char *const formats[] = { "text", "json", "dot", NULL };
    int format = IVM_EXPLAIN_TEXT, code;
    const char *name = NULL;
    const option_definition options[] = { { "--format", OPTION_WORD, &format, formats }, { "--view", OPTION_TEXT, &name }, { NULL } };
    operand_list operands;
    ivm_engine_options defaults = IVM_ENGINE_OPTIONS_INIT;
    replay_counts counts = { 0 };
    scenario_file file;
    replay_session replay;
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        return code;
    }
    if (operands.count != 1) {
        return usage_error("explain wants one file; --help says more");
    }
    if (!scenario_file_read(operands.texts[0], &file)) {
        return EXIT_USAGE;
    }
    code = EXIT_USAGE;
    if (replay_open(&replay, &defaults, NULL)) {
        replay_run(&replay, &file, true, &counts);
        code = name ? view_explain(&replay, name, (ivm_explain_format)format) : views_explain(&replay, &file, (ivm_explain_format)format);
        replay_close(&replay);
        code = code == EXIT_HOLDS && counts.failed ? EXIT_WRONG : code;
    }
    scenario_file_free(&file);
    return code;
}
