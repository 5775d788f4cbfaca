/* `ivm bench NAME`: finds the measurement and takes --plot and --clock, which all have; see bench.h. */
#include "bench.h"

#include "command.h"
#include "conditions.h"
#include "measure.h"
#include "option.h"
#include "plot.h"

#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: ivm bench NAME [OPTIONS]\n"
    "\n"
    "  star        fact rows joined to four dimensions and aggregated: the engine against a hand-written loop\n"
    "  snowflake   a star whose dimensions have dimensions, seven leaves: with and without pruning\n"
    "  prune       stars whose dimensions gain, lose and change rows: with and without pruning, by trust\n"
    "  hotkey      10,000 statements on few rows in one batch against the change they come to\n"
    "  latency     pushes of one row, by kind: percentiles, also while tables grow and beside readers\n"
    "  scale       one changed row as the fact table grows from 100,000 to 10,000,000 rows\n"
    "  tpch        streams of orders and their lines under seven queries of TPC-H\n"
    "  memory      bytes a dimension row and a fact row, and what transient fact rows leave behind\n"
    "  durable     pushes of one row to an engine in a directory: alone, by several threads, replayed\n"
    "  operators   one changed row against each operator: 10,000 rows against 1,000,000\n"
    "  checkpoint  an engine written as a stream and restored, and how long pushes wait for it\n"
    "  arrow       batches from Arrow arrays against column arrays, tables read as Arrow streams\n"
    "  cancel      long calls cancelled at random moments: how soon they end\n"
    "  dump        writes a workload's batches into a folder, for other engines to read\n"
    "  stream      pushes the batches of such a folder and times them\n"
    "  all         every one of these, then each figure the engine is held to: its bar, its goal, what was measured\n"
    "\n"
    "Those that compare run both sides in turn in one process and print medians. A view that does not hold what it\n"
    "must fails the run (exit 1). ivm bench NAME --help says more. All take:\n"
    "\n"
    "  --json              one line per figure, and one for the conditions of the run\n"
    "  --plot DIR          writes the lines to DIR/NAME.jsonl and draws them as SVG files beside it (needs gnuplot)\n"
    "  --clock wall|cpu    time that passes (the default), or time the thread ran, for machines that others use too\n";

typedef struct bench {
    const char *name;
    int (*run)(int argc, char **argv);
} bench;

static const bench benches[] = {
    { "star", star_command },
    { "snowflake", snowflake_command },
    { "prune", prune_command },
    { "hotkey", hotkey_command },
    { "latency", latency_command },
    { "scale", scale_command },
    { "tpch", tpch_command },
    { "memory", memory_command },
    { "durable", durable_command },
    { "operators", operators_command },
    { "checkpoint", checkpoint_command },
    { "arrow", arrow_command },
    { "cancel", cancel_command },
    { "dump", dump_command },
    { "stream", stream_command },
    { "all", all_command },
    { NULL, NULL },
};

int bench_run(const char *name, int argc, char **argv)
{
    for (const bench *b = benches; b->name; b++) {
        if (strcmp(b->name, name) == 0) {
            return b->run(argc, argv);
        }
    }
    return -1;
}

typedef struct shared_options {
    const char *plot, *clock;
    bool json;
} shared_options;

/* The value of --name where argv[*at] is it, as `--name value` or `--name=value`; *at moves to the last argument it used. */
static const char *value_of(const char *name, int argc, char **argv, int *at)
{
    size_t size = strlen(name);
    if (strncmp(argv[*at], name, size) != 0 || (argv[*at][size] && argv[*at][size] != '=')) {
        return NULL;
    }
    if (argv[*at][size]) {
        return argv[*at] + size + 1;
    }
    return ++*at < argc ? argv[*at] : "";
}

/* Takes the shared options out of argv, but for --json, which each measurement reads too. Returns how many arguments are left. */
static int shared_take(shared_options *shared, int argc, char **argv)
{
    int left = 1;
    for (int i = 1; i < argc; i++) {
        const char *value;
        int at = i;
        if ((value = value_of("--plot", argc, argv, &at))) {
            shared->plot = value;
        } else if ((value = value_of("--clock", argc, argv, &at))) {
            shared->clock = value;
        } else {
            shared->json |= strcmp(argv[i], "--json") == 0;
            argv[left++] = argv[i];
        }
        i = at;
    }
    argv[left] = NULL;
    return left;
}

static int measure_and_plot(const char *name, const shared_options *shared, int argc, char **argv)
{
    bool cpu = shared->clock && strcmp(shared->clock, "cpu") == 0;
    if (shared->clock && !cpu && strcmp(shared->clock, "wall") != 0) {
        return usage_error("--clock is one of wall, cpu, not %s", shared->clock);
    }
    if (shared->plot && !plot_possible(shared->plot)) {
        return EXIT_USAGE;
    }
    clock_select(cpu ? CLOCK_CPU : CLOCK_WALL);
    figures_json(shared->json);
    int code = bench_run(name, argc, argv);
    if (code < 0) {
        return usage_error("unknown bench %s; --help lists what there is", name);
    }
    if (code != EXIT_USAGE && figures_count()) {
        conditions_print(stdout, name, shared->json, cpu ? CLOCK_CPU : CLOCK_WALL);
        if (shared->plot && !plot_write(shared->plot, name, cpu ? CLOCK_CPU : CLOCK_WALL)) {
            return EXIT_USAGE;
        }
    }
    return code;
}

int bench_command(int argc, char **argv)
{
    shared_options shared = { 0 };
    if (argc < 2) {
        fputs(help, stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        fputs(help, stdout);
        return EXIT_HOLDS;
    }
    if (argv[1][0] == '-') {
        return usage_error("unknown option %s; --help lists what there is", argv[1]);
    }
    int left = shared_take(&shared, argc - 1, argv + 1);
    return measure_and_plot(argv[1], &shared, left, argv + 1);
}
