/* The `ivm` command: finds the command that is asked for and hands over. Everything behind it uses the public headers alone. */
#include "command.h"
#include "ivm/ivm.h"
#include "option.h"

#include <stdio.h>
#include <string.h>

static const char help[] = "usage: ivm COMMAND [OPTIONS] [ARGUMENTS]\n"
                           "\n"
                           "ivm keeps joins and aggregates over changing tables up to date. This command drives the\n"
                           "library from scenario files and measures it.\n"
                           "\n"
                           "  flights          three months of real flights joined to their dimensions, day by day\n"
                           "  replay FILE...   applies scenario files (JSON Lines) and checks what they expect\n"
                           "  explain FILE     replays one file and tells how its views were last brought up to date\n"
                           "  bench NAME       measurements: star (against a hand-written loop), prune (what foreign keys\n"
                           "                   save), memory (what rows cost), operators (few rows against many);\n"
                           "                   dump, stream (the same batches for other engines: bench/peers)\n"
                           "\n"
                           "ivm COMMAND --help says more. ivm --version prints the library's version.\n"
                           "Exit codes: 0 all checks hold, 1 some do not, 2 the command line or a file could not be used.\n";

static const char bench_help[] =
    "usage: ivm bench NAME [OPTIONS]\n"
    "\n"
    "  star        fact rows joined to four dimensions and aggregated: the engine against a hand-written loop\n"
    "  prune       stars whose dimensions gain, lose and change rows: with and without pruning, by trust\n"
    "  memory      bytes a dimension row and a fact row, and what transient fact rows leave behind\n"
    "  operators   one changed row against each operator: 10,000 rows against 1,000,000\n"
    "  dump        writes a workload's batches into a folder, for other engines to read\n"
    "  stream      pushes the batches of such a folder and times them\n"
    "\n"
    "Those that compare run both sides in turn in one process and print medians. Those but operators fail (exit 1)\n"
    "if views do not hold what they must. --json prints one line per figure. ivm bench NAME --help says more.\n";

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
    { "flights", flights_command }, { "replay", replay_command }, { "explain", explain_command }, { "bench", bench_command }, { NULL, NULL }
};
static const command benches[] = { { "star", star_command },
                                   { "prune", prune_command },
                                   { "memory", memory_command },
                                   { "operators", operators_command },
                                   { "dump", dump_command },
                                   { "stream", stream_command },
                                   { NULL, NULL } };

static int dispatch(const command *list, const char *kind, const char *text, int argc, char **argv)
{
    if (argc < 2) {
        fputs(text, stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        fputs(text, stdout);
        return EXIT_HOLDS;
    }
    for (const command *c = list; c->name; c++) {
        if (strcmp(c->name, argv[1]) == 0) {
            return c->run(argc - 1, argv + 1);
        }
    }
    return usage_error("unknown %s %s; --help lists what there is", argv[1][0] == '-' ? "option" : kind, argv[1]);
}

int bench_command(int argc, char **argv)
{
    return dispatch(benches, "bench", bench_help, argc, argv);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("ivm %s\n", ivm_version());
        return EXIT_HOLDS;
    }
    return dispatch(commands, "command", help, argc, argv);
}
