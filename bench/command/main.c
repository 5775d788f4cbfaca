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
                           "  feed PLAN        keeps views of a stream of JSON lines, and writes what changes in them as such\n"
                           "  bench NAME       measurements: star, snowflake, prune, hotkey, latency, scale, tpch, memory,\n"
                           "                   durable, operators, checkpoint, arrow, cancel; all runs every one and tells\n"
                           "                   which bars are met; dump, stream: the same batches for other engines\n"
                           "                   (bench/peers)\n"
                           "\n"
                           "ivm COMMAND --help says more. ivm --version prints the library's version.\n"
                           "Exit codes: 0 all checks hold, 1 some do not, 2 the command line or a file could not be used.\n";

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = { { "flights", flights_command }, { "replay", replay_command }, { "explain", explain_command },
                                    { "feed", feed_command },       { "bench", bench_command },   { NULL, NULL } };

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        fputs(help, stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        fputs(help, stdout);
        return EXIT_HOLDS;
    }
    for (const command *c = commands; c->name; c++) {
        if (strcmp(c->name, argv[1]) == 0) {
            return c->run(argc - 1, argv + 1);
        }
    }
    return usage_error("unknown %s %s; --help lists what there is", argv[1][0] == '-' ? "option" : "command", argv[1]);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("ivm %s\n", ivm_version());
        return EXIT_HOLDS;
    }
    return dispatch(argc, argv);
}
