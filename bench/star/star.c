/* `ivm bench star`: its options; see star.h. */
#include "star.h"

#include "command.h"
#include "option.h"

static const char help[] = "usage: ivm bench star [OPTIONS]\n"
                           "\n"
                           "Fact rows (four keys and an amount, int64) joined to four dimensions and aggregated: nanoseconds a fact\n"
                           "row of the engine, of a loop written by hand for the same query that keeps the same rows (the floor), and\n"
                           "of bare probes over packed rows, which show that the floor is no slow one. Both results are compared\n"
                           "group by group.\n"
                           "\n"
                           "  --shape star4    dimensions of 100,000 rows, 4096 groups (the default)\n"
                           "          star4l   of 1,000,000, 100,000, 10,000 and 1,000 rows, 10,000 groups\n"
                           "          wide     of 100,000 rows with strings for attributes, 100,000 groups\n"
                           "  --keys uniform   fact rows refer to all rows of a dimension evenly (the default)\n"
                           "         zipf      or by Zipf's law with exponent 1\n"
                           "  --change KIND    against a star4 of evenly drawn keys, checked against recomputation:\n"
                           "           inserts      fact rows come (the default)\n"
                           "           mixed        90 % of the fact rows come, 10 % go, dimensions gain 1 % as many rows\n"
                           "           update       a dimension row that 1,000 fact rows refer to: time for each of these\n"
                           "           everything   mixed, with dimension rows updated and taken away too\n"
                           "  --rows N         fact rows a round (default 2000000)\n"
                           "  --batch N        fact rows a batch (default: 1000, then 100000; 1000 for other changes)\n"
                           "  --sweep          inserts in batches of 1, 10 and so on to 1000000, at most 20000 of each\n"
                           "  --threads N      of inserts: engines with so many threads too, in turn with those of one (default 1: none)\n"
                           "  --runs N         rounds that count, after one that does not (default 5)\n"
                           "  --json           one line per figure: engine_over_floor (the larger of those in batches of 1,000 and more),\n"
                           "                   floor_over_probe, and per batch size engine_ns, floor_ns and their ratio; of other\n"
                           "                   changes mixed_ns, update_ns, everything_ns\n";

static const char *const shapes[] = { "star4", "star4l", "wide", NULL };
static const char *const keys[] = { "uniform", "zipf", NULL };
static const char *const changes[] = { "inserts", "mixed", "update", "everything", NULL };

int star_command(int argc, char **argv)
{
    star_request request = { .rows = 2000000, .runs = 5, .threads = 1 };
    int shape = STAR4, zipf = 0, change = STAR_INSERTS, code;
    operand_list operands;
    const option_definition options[] = { { "--shape", OPTION_WORD, &shape, shapes },    { "--keys", OPTION_WORD, &zipf, keys },
                                          { "--change", OPTION_WORD, &change, changes }, { "--rows", OPTION_NUMBER, &request.rows },
                                          { "--batch", OPTION_NUMBER, &request.batch },  { "--sweep", OPTION_FLAG, &request.sweep },
                                          { "--runs", OPTION_NUMBER, &request.runs },    { "--threads", OPTION_NUMBER, &request.threads },
                                          { "--json", OPTION_FLAG, &request.json },      { NULL } };
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        return code;
    }
    if (operands.count || request.runs > RUNS_MAX || request.rows > 100000000 || request.threads > IVM_THREADS_MAX) {
        return usage_error("bench star takes options only, at most %d runs, 100000000 rows and %u threads; --help says more", RUNS_MAX,
                           IVM_THREADS_MAX);
    }
    if (change != STAR_INSERTS && (shape != STAR4 || zipf || request.sweep || request.threads > 1)) {
        return usage_error("bench star: --change %s is about --shape star4 and --keys uniform, and has no --sweep nor --threads",
                           changes[change]);
    }
    if (request.sweep && request.batch) {
        return usage_error("bench star: --sweep has batch sizes of its own, --batch gives one");
    }
    request.name = (star_name)shape;
    request.zipf = zipf;
    snprintf(request.variant, sizeof request.variant, "%s %s%s", shapes[shape], keys[zipf], request.sweep ? " sweep" : "");
    bool right = change == STAR_INSERTS ? star_inserts(&request) : star_changes(&request, (star_change)change);
    return right ? EXIT_HOLDS : EXIT_WRONG;
}
