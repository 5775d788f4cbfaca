/* `ivm bench all`: every measurement one after the other in this process, then a line for each figure that the engine is held to and that one of them
 * gives. Whether bars are met does not change the exit code: that tells whether views held what they must. */
#include "bench.h"
#include "command.h"
#include "measure.h"
#include "option.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: ivm bench all [OPTIONS] [NAME...]\n"
    "\n"
    "Every measurement with its default sizes, in about ten minutes, and at the end each figure that the engine\n"
    "is held to: its bar, its goal, what was measured, and whether that meets them. With names, only these\n"
    "measurements and their figures.\n"
    "\n"
    "  --quick     smaller sizes, in about a minute: a smoke run, its figures decide nothing\n"
    "  --json      one line per figure; those of the bars are named \"bar\" and have the members what, bar, goal, met\n";

#define ARGUMENTS_MAX 16

/* ---- What is run --------------------------------------------------------------------------------------------------------------- */

typedef struct planned_run {
    const char *full, *quick; /* the measurement's name and options, with single spaces between; NULL: not run */
} planned_run;

static const planned_run runs[] = {
    { "star --threads 2 --batch 100000", "star --threads 2 --batch 100000 --rows 400000 --runs 1" },
    { "star", "star --rows 400000 --runs 3" },
    { "star --shape star4l", "star --shape star4l --rows 400000 --runs 3" },
    { "star --keys zipf", "star --keys zipf --rows 200000 --runs 1" },
    { "star --shape star4l --keys zipf", "star --shape star4l --keys zipf --rows 200000 --runs 1" },
    { "star --shape wide", "star --shape wide --rows 200000 --runs 1" },
    { "star --shape wide --keys zipf --runs 3", NULL },
    { "star --sweep --runs 3", "star --sweep --rows 100000 --runs 1" },
    { "star --shape star4l --sweep --runs 3", NULL },
    { "star --change mixed --runs 3", "star --change mixed --rows 200000 --runs 1" },
    { "star --change mixed --batch 100000 --runs 3", NULL },
    { "star --change update --runs 3", "star --change update --rows 200000 --runs 1" },
    { "star --change everything --runs 3", "star --change everything --rows 200000 --runs 1" },
    { "snowflake", "snowflake --batches 4 --runs 1 --rows 20000" },
    { "prune", "prune --batches 2 --runs 1 --rows 20000" },
    { "hotkey", "hotkey --batches 5 --runs 2" },
    { "latency", "latency --rows 200000 --pushes 2000 --grow 20000 --runs 3" },
    { "scale", "scale --rows 1000000 --pushes 500 --runs 3" },
    { "tpch", "tpch --scale 0.002 --runs 1" },
    { "memory", "memory --kept 200000 --rows 2000000" },
    { "operators", "operators --few 2000 --many 50000 --changes 100" },
    { "checkpoint", "checkpoint --rows 100000 --products 5000 --runs 2" },
    { "arrow", "arrow --rows 100000 --runs 2" },
};

static int run_start(const char *words, bool json)
{
    static char lines[] = "--json";
    char text[256], *argv[ARGUMENTS_MAX + 2], *rest;
    int argc = 0;
    snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok_r(text, " ", &rest); word && argc < ARGUMENTS_MAX; word = strtok_r(NULL, " ", &rest)) {
        argv[argc++] = word;
    }
    if (json) {
        argv[argc++] = lines;
    } else {
        printf("\n%s\n", words);
        fflush(stdout);
    }
    argv[argc] = NULL;
    return bench_run(argv[0], argc, argv);
}

/* ---- What is judged ------------------------------------------------------------------------------------------------------------ */

typedef struct bar {
    const char *what, *bench, *metric, *variant;
    bool at_most;
    double bar, goal; /* both 0: only reported */
} bar;

static const bar bars[] = {
    { "STAR4, fact inserts in batches of 1,000 and more: engine over floor", "star", "engine_over_floor", "star4 uniform", true, 2.5, 1.5 },
    { "STAR4L, the same", "star", "engine_over_floor", "star4l uniform", true, 2.0, 1.4 },
    { "STAR4: floor over bare probes", "star", "floor_over_probe", "star4 uniform", true, 1.2, 1.2 },
    { "STAR4L: floor over bare probes", "star", "floor_over_probe", "star4l uniform", true, 1.2, 1.2 },
    { "two threads over one, fact rows in batches of 100,000", "star", "one_thread_over_threads", "star4 uniform", false, 1.5, 1.8 },
    { "one-row push: p99 over p50, the worst kind of change", "latency", "p99_over_p50", NULL, true, 20, 8 },
    { "3 dimensions gaining rows: Moebius without pruning over pruned", "prune", "pruned_speedup_3", NULL, false, 3, 5 },
    { "5 dimensions", "prune", "pruned_speedup_5", NULL, false, 8, 20 },
    { "8 dimensions", "prune", "pruned_speedup_8", NULL, false, 30, 100 },
    { "8 dimensions, telescoping without pruning over pruned", "prune", "telescoping_speedup_8", NULL, false, 0, 0 },
    { "one changed row, base of 10^7 facts over 10^5, the worst kind", "scale", "ratio", NULL, true, 2, 1.3 },
    { "bytes of a retained fact over its raw 40", "memory", "fact_row_over_raw", NULL, true, 1.6, 1.2 },
    { "the same with all four reverse indexes", "memory", "fact_row_over_raw_indexed", NULL, true, 2.5, 1.8 },
    { "bytes of a dimension row (16 raw), the most at steady load", "memory", "dimension_row_bytes_max", NULL, true, 40, 28 },
    { "bytes grown by over transient facts", "memory", "transient_growth_bytes", NULL, true, 0, 0 },
};

static bool meets(const bar *b, double value, double limit)
{
    return b->at_most ? value <= limit : value >= limit;
}

/* The growth has a limit of 0, and where nothing is asked for there is none. */
static bool judged(const bar *b)
{
    return b->bar > 0 || b->at_most;
}

static void bar_show(const bar *b, double value, bool json)
{
    bool met = meets(b, value, b->bar), goal = meets(b, value, b->goal);
    const char *verdict = !judged(b) ? "reported" : goal ? "bar and goal met" : met ? "bar met, goal not" : "not met";
    if (json) {
        printf("{\"bench\": \"all\", \"metric\": \"bar\", \"value\": %.6g, \"what\": \"%s\", \"at_most\": %s, \"bar\": %g, \"goal\": %g, "
               "\"met\": %s, \"goal_met\": %s}\n",
               value, b->what, b->at_most ? "true" : "false", b->bar, b->goal,
               !judged(b) ? "null"
               : met      ? "true"
                          : "false",
               !judged(b) ? "null"
               : goal     ? "true"
                          : "false");
    } else if (!judged(b)) {
        printf("%-66s %26s   measured %8.2f   %s\n", b->what, "", value, verdict);
    } else {
        printf("%-66s %s %5g, goal %5g   measured %8.2f   %s\n", b->what, b->at_most ? "at most" : "bar    ", b->bar, b->goal, value,
               verdict);
    }
}

static void bars_show(bool quick, bool json)
{
    if (!json) {
        printf("\nwhat the engine is held to%s\n", quick ? " (a quick run: these figures decide nothing)" : "");
    }
    for (size_t i = 0; i < sizeof bars / sizeof *bars; i++) {
        const figure *f = figures_find(bars[i].bench, bars[i].metric, bars[i].variant);
        if (f) {
            bar_show(&bars[i], f->value, json);
        }
    }
    fflush(stdout);
}

/* Whether `words` begin with one of the names, or there are none. */
static bool run_wanted(const char *words, const operand_list *names)
{
    bool wanted = !names->count;
    for (size_t i = 0; i < names->count; i++) {
        size_t size = strlen(names->texts[i]);
        wanted |= strncmp(words, names->texts[i], size) == 0 && (words[size] == ' ' || !words[size]);
    }
    return wanted;
}

static bool name_known(char *name)
{
    bool known = false;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        known |= run_wanted(runs[i].full, &(operand_list){ &name, 1 });
    }
    return known;
}

int all_command(int argc, char **argv)
{
    bool quick = false, json = false;
    int code;
    operand_list names;
    const option_definition options[] = { { "--quick", OPTION_FLAG, &quick }, { "--json", OPTION_FLAG, &json }, { NULL } };
    if (!options_read(options, help, argc, argv, &names, &code)) {
        return code;
    }
    for (size_t i = 0; i < names.count; i++) {
        if (!name_known(names.texts[i])) {
            return usage_error("bench all: no measurement %s; --help says more", names.texts[i]);
        }
    }
    code = EXIT_HOLDS;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const char *words = quick ? runs[i].quick : runs[i].full;
        int one = words && run_wanted(words, &names) ? run_start(words, json) : EXIT_HOLDS;
        code = one > code ? one : code;
    }
    bars_show(quick, json);
    return code;
}
