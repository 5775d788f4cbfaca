/* `ivm bench prune`: what foreign keys save. The duels (prune.h) and the command; what is pushed is in prune_growing.c and prune_mixed.c. */
#include "prune.h"

#include "command.h"
#include "option.h"

#include <stdio.h>

static const char help[] = "usage: ivm bench prune [OPTIONS]\n"
                           "\n"
                           "Stars whose foreign keys are declared, in engines that differ in one setting and get the same batches in\n"
                           "turn. Each figure is a ratio of median times of pushes; the views are compared row by row.\n"
                           "\n"
                           "  growing   3, 4, 5 and 8 dimensions of 1,000 rows: every batch brings 1,000 fact rows and 100 new rows of\n"
                           "            each dimension, which the fact rows refer to with the old ones. All join terms (Moebius form,\n"
                           "            pruning off), and telescoping without pruning, over what pruning leaves\n"
                           "  mixed     4, 5 and 8 dimensions of 10,000 rows: every batch brings 1,000 fact rows, 1,000 new rows of each\n"
                           "            dimension and one changed row, and takes 10 rows of each away with the fact rows that refer to\n"
                           "            them. Pruning by batch, as it was published (Moebius form), over pruning by row, and beside it\n"
                           "            pruning by batch in the telescoping form\n"
                           "  tracked   four dimensions of 100,000 rows: tracked foreign keys over relied ones, where 1,000 fact rows\n"
                           "            come with 100 new rows of each dimension, and where fact rows come alone; no row waits\n"
                           "  hot       four dimensions of 100 rows: one row changed 1,000 times in a batch over changed once\n"
                           "\n"
                           "  --part NAME      this part alone\n"
                           "  --dimensions N   of growing and mixed, this star alone, 1 to 8\n"
                           "  --rows N         fact rows before the first batch (default 100000)\n"
                           "  --batches N      timed batches a round (default 10; tracked and hot take ten times as many)\n"
                           "  --runs N         rounds (default 3)\n"
                           "  --json           one line per figure: pruned_speedup_N and telescoping_speedup_N, mixed_row_speedup_N,\n"
                           "                   tracked_over_rely and tracked_over_rely_facts, hot_over_once, and the times behind them\n";

/* ---- Duels --------------------------------------------------------------------------------------------------------------------- */

static uint64_t batch_push(const duel_story *story, star_engine *star, size_t side, uint64_t number, uint64_t *terms)
{
    ivm_batch *batch = star_batch(star);
    ivm_stats stats;
    story->fill(story->context, star, batch, side, number);
    uint64_t start = clock_nanoseconds();
    star_push(star, batch, &stats);
    uint64_t spent = clock_nanoseconds() - start;
    *terms += number > 1 ? stats.terms_run : 0;
    return number > 1 ? spent : 0;
}

static void round_run(duel *it, const duel_story *story, uint64_t round)
{
    star_engine stars[DUEL_SIDES_MAX];
    uint64_t spent[DUEL_SIDES_MAX] = { 0 };
    for (size_t side = 0; side < it->sides_count; side++) {
        star_engine_open(&stars[side], &story->shape, &it->sides[side]);
        it->terms[side] = 0;
    }
    for (uint64_t number = 0; number <= story->batches + 1; number++) {
        for (size_t turn = 0; turn < it->sides_count; turn++) {
            size_t side = (size_t)((turn + number) % it->sides_count);
            spent[side] += batch_push(story, &stars[side], side, number, &it->terms[side]);
        }
    }
    uint64_t digest = star_rows_digest(&stars[0]);
    for (size_t side = 0; side < it->sides_count; side++) {
        it->spent[side][round] = (double)spent[side] / (double)story->batches;
        it->unequal |= star_rows_digest(&stars[side]) != digest;
        star_engine_close(&stars[side]);
    }
}

void duel_run(duel *it, const duel_story *story)
{
    for (uint64_t round = 0; round < it->runs; round++) {
        round_run(it, story, round);
    }
    for (size_t side = 0; side < it->sides_count; side++) {
        it->median[side] = median(it->spent[side], (size_t)it->runs);
    }
}

/* ---- The command --------------------------------------------------------------------------------------------------------------- */

enum { PART_GROWING, PART_MIXED, PART_TRACKED, PART_HOT, PART_ALL };
static const char *const parts[] = { "growing", "mixed", "tracked", "hot", NULL };

static bool growing_run(const prune_options *options, uint64_t dimensions)
{
    static const uint32_t stars[] = { 3, 4, 5, 8 };
    bool equal = true;
    if (dimensions) {
        return prune_growing(options, (uint32_t)dimensions);
    }
    for (size_t i = 0; i < sizeof stars / sizeof *stars; i++) {
        equal &= prune_growing(options, stars[i]);
    }
    return equal;
}

static bool mixed_run(const prune_options *options, uint64_t dimensions)
{
    if (dimensions) {
        return prune_mixed(options, (uint32_t)dimensions);
    }
    bool four = prune_mixed(options, 4), five = prune_mixed(options, 5), eight = prune_mixed(options, 8);
    return four && five && eight;
}

static bool tracked_run(const prune_options *options)
{
    bool first = prune_tracked(options, true), second = prune_tracked(options, false);
    return first && second;
}

static bool part_run(const prune_options *options, int part, uint64_t dimensions)
{
    switch (part) {
    case PART_GROWING:
        return growing_run(options, dimensions);
    case PART_MIXED:
        return mixed_run(options, dimensions);
    case PART_TRACKED:
        return tracked_run(options);
    default:
        return prune_hot(options);
    }
}

int prune_command(int argc, char **argv)
{
    prune_options asked = { .rows = 100000, .batches = 10, .runs = 3 };
    uint64_t dimensions = 0;
    int part = PART_ALL, code;
    bool equal = true;
    operand_list operands;
    const option_definition options[] = { { "--part", OPTION_WORD, &part, parts },
                                          { "--dimensions", OPTION_NUMBER, &dimensions },
                                          { "--rows", OPTION_NUMBER, &asked.rows },
                                          { "--batches", OPTION_NUMBER, &asked.batches },
                                          { "--runs", OPTION_NUMBER, &asked.runs },
                                          { "--json", OPTION_FLAG, &asked.json },
                                          { NULL } };
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        return code;
    }
    bool fits = asked.runs <= RUNS_MAX && dimensions <= STAR_DIMENSIONS_MAX && asked.batches <= 1000 && asked.rows <= 100000000;
    if (operands.count || !fits) {
        return usage_error("bench prune: at most %d dimensions, %d runs, 1000 batches, 100000000 rows; --help says more",
                           STAR_DIMENSIONS_MAX, RUNS_MAX);
    }
    for (int p = 0; p < PART_ALL; p++) {
        if (part == p || (part == PART_ALL && (p == PART_GROWING || !dimensions))) {
            equal &= part_run(&asked, p, dimensions);
        }
    }
    if (!equal) {
        fprintf(stderr, "ivm: bench prune: the views of two engines differ\n");
    }
    return equal ? EXIT_HOLDS : EXIT_WRONG;
}
