/* `ivm bench hotkey`: statements that hammer few rows in one batch. Two engines hold the same star of two dimensions, joined (three leaves) and
 * aggregated; one gets every statement, its twin the change they come to. What the first takes longer is the price of consolidation: work on
 * keys, not on the join. Filling a batch is not timed; the views must be equal, and equal what the audit computes anew. */
#include "arena.h"
#include "command.h"
#include "measure.h"
#include "option.h"
#include "star_engine.h"

#include <stdlib.h>

static const char help[] = "usage: ivm bench hotkey [OPTIONS]\n"
                           "\n"
                           "Statements in one batch on ten fact rows (taken away and brought back with another amount) and ten rows of\n"
                           "each of two dimensions (updated), under a join of the three tables and an aggregate: the median time of a\n"
                           "push of all statements, over that of their net change. Both views are compared, and audited.\n"
                           "\n"
                           "  --statements N   in a batch (default 10000)\n"
                           "  --rows N         fact rows (default 100000), with 1,000 rows in each dimension\n"
                           "  --batches N      timed batches a round (default 20)\n"
                           "  --runs N         rounds (default 5)\n"
                           "  --json           one line per figure: statements_us, net_us, statement_ns, statements_over_net\n";

#define DIMENSIONS 2
#define HOT 10 /* rows of each table */
#define WARM_BATCHES 2
enum { EVERY, NET, SIDES };

typedef struct hotkey_bench {
    uint64_t statements, rows, batches, runs;
    bool json;
    star_data data; /* the hot rows are the first ones, kept up to date */
    star_engine stars[SIDES];
    double spent[SIDES][RUNS_MAX], ratio[RUNS_MAX];
    bool wrong;
} hotkey_bench;

static void fact_statement(hotkey_bench *bench, ivm_batch *batch, int side, ivm_change change, uint32_t row)
{
    ivm_value values[DIMENSIONS + 1];
    for (int c = 0; c <= DIMENSIONS; c++) {
        values[c] = ivm_int64(bench->data.fact_columns[c][row]);
    }
    (void)ivm_batch_row(batch, bench->stars[side].fact_table, change, 1, values, DIMENSIONS + 1);
}

static void dimension_statement(hotkey_bench *bench, ivm_batch *batch, int side, uint32_t dimension, uint32_t row)
{
    int64_t key = bench->data.keys[dimension][row], attribute = bench->data.attributes[dimension][row];
    ivm_batch_upsert(batch, bench->stars[side].dimensions[dimension], ivm_int64(key), ivm_int64(attribute));
}

/* Fills both batches. Statement s is about hot row s modulo HOT of the table whose turn it is; a fact row goes, then comes with another amount. */
static void batches_fill(hotkey_bench *bench, ivm_batch **batches)
{
    for (uint32_t row = 0; row < HOT; row++) {
        fact_statement(bench, batches[NET], NET, IVM_DELETE, row);
    }
    for (uint64_t s = 0; s < bench->statements; s++) {
        uint32_t row = (uint32_t)(s / 4 % HOT), kind = (uint32_t)(s % 4);
        if (kind < DIMENSIONS) {
            int64_t *attribute = &bench->data.attributes[kind][row];
            *attribute = (*attribute + 1) % bench->data.shape.attributes[kind];
            dimension_statement(bench, batches[EVERY], EVERY, kind, row);
        } else if (kind == 2) {
            fact_statement(bench, batches[EVERY], EVERY, IVM_DELETE, row);
        } else {
            bench->data.fact_columns[DIMENSIONS][row] += 1;
            fact_statement(bench, batches[EVERY], EVERY, IVM_INSERT, row);
        }
    }
    for (uint32_t row = 0; row < HOT; row++) {
        fact_statement(bench, batches[NET], NET, IVM_INSERT, row);
        dimension_statement(bench, batches[NET], NET, 0, row);
        dimension_statement(bench, batches[NET], NET, 1, row);
    }
}

/* Who is first changes with every batch. */
static void batch_run(hotkey_bench *bench, uint64_t number, uint64_t *spent)
{
    ivm_batch *batches[SIDES];
    for (int side = 0; side < SIDES; side++) {
        batches[side] = star_batch(&bench->stars[side]);
    }
    batches_fill(bench, batches);
    for (uint64_t turn = 0; turn < SIDES; turn++) {
        int side = (int)((turn + number) % SIDES);
        uint64_t start = clock_nanoseconds();
        star_push(&bench->stars[side], batches[side], NULL);
        spent[side] += number < WARM_BATCHES ? 0 : clock_nanoseconds() - start;
    }
}

static void check(hotkey_bench *bench)
{
    bench->wrong |= star_rows_digest(&bench->stars[EVERY]) != star_rows_digest(&bench->stars[NET]);
    for (int side = 0; side < SIDES; side++) {
        ivm_snapshot *differences;
        ivm_error error = IVM_ERROR_INIT;
        if (ivm_audit_view(bench->stars[side].view, &differences, &error) != IVM_OK) {
            exit(usage_error("bench hotkey: %s", error.message));
        }
        bench->wrong |= ivm_snapshot_rows_count(differences) != 0;
        ivm_snapshot_close(differences);
    }
}

static void round_run(hotkey_bench *bench, size_t round)
{
    uint64_t spent[SIDES] = { 0 };
    for (int side = 0; side < SIDES; side++) {
        star_engine_open(&bench->stars[side], &bench->data.shape, &(star_options){ .grouped = DIMENSIONS });
        ivm_batch *batch = star_batch(&bench->stars[side]);
        for (uint32_t d = 0; d < DIMENSIONS; d++) {
            star_batch_dimension(&bench->stars[side], batch, d, (star_part){ &bench->data, 0, bench->data.shape.dimension_rows });
        }
        star_batch_fact_rows(&bench->stars[side], batch, (star_part){ &bench->data, 0, bench->data.shape.fact_rows });
        star_push(&bench->stars[side], batch, NULL);
    }
    for (uint64_t number = 0; number < bench->batches + WARM_BATCHES; number++) {
        batch_run(bench, number, spent);
    }
    check(bench);
    for (int side = 0; side < SIDES; side++) {
        bench->spent[side][round] = (double)spent[side] / (double)bench->batches;
        star_engine_close(&bench->stars[side]);
    }
    bench->ratio[round] = bench->spent[EVERY][round] / bench->spent[NET][round];
}

static void figures_show(hotkey_bench *bench)
{
    size_t runs = (size_t)bench->runs;
    spread every = spread_of(bench->spent[EVERY], runs), net = spread_of(bench->spent[NET], runs), ratio = spread_of(bench->ratio, runs);
    double statements = (double)bench->statements;
    figure_add(&(figure){ "hotkey", "statements_us", every.median / 1000, "statements", bench->statements, NULL, every.low / 1000,
                          every.high / 1000, runs, bench->rows });
    figure_add(&(figure){ "hotkey", "net_us", net.median / 1000, "statements", bench->statements, NULL, net.low / 1000, net.high / 1000,
                          runs, bench->rows });
    figure_add(&(figure){ "hotkey", "statement_ns", every.median / statements, "statements", bench->statements, NULL,
                          every.low / statements, every.high / statements, runs, bench->rows });
    figure_add(&(figure){ "hotkey", "statements_over_net", ratio.median, NULL, 0, NULL, ratio.low, ratio.high, runs, bench->rows });
    if (!bench->json) {
        printf("%llu statements on %d rows of %llu in one batch: %.1f us, %.1f ns each; their net change %.1f us; over it %.2f (%.2f to "
               "%.2f)\n",
               (unsigned long long)bench->statements, (DIMENSIONS + 1) * HOT, (unsigned long long)bench->rows, every.median / 1000,
               every.median / statements, net.median / 1000, ratio.median, ratio.low, ratio.high);
    }
}

int hotkey_command(int argc, char **argv)
{
    hotkey_bench *bench = memory_take(sizeof *bench);
    *bench = (hotkey_bench){ .statements = 10000, .rows = 100000, .batches = 20, .runs = 5 };
    int code;
    operand_list operands;
    const option_definition options[] = { { "--statements", OPTION_NUMBER, &bench->statements },
                                          { "--rows", OPTION_NUMBER, &bench->rows },
                                          { "--batches", OPTION_NUMBER, &bench->batches },
                                          { "--runs", OPTION_NUMBER, &bench->runs },
                                          { "--json", OPTION_FLAG, &bench->json },
                                          { NULL } };
    bool read = options_read(options, help, argc, argv, &operands, &code);
    bool fits = bench->runs <= RUNS_MAX && bench->rows <= 100000000 && bench->rows >= HOT && bench->statements <= 10000000;
    if (!read || operands.count || !fits) {
        free(bench);
        return read ? usage_error("bench hotkey: %d to 100000000 rows, at most 10000000 statements, %d runs; --help says more", HOT,
                                  RUNS_MAX)
                    : code;
    }
    /* Statements come in fours; a fact row taken away is brought back. */
    bench->statements = (bench->statements + 3) / 4 * 4;
    star_data_make(
        &bench->data,
        &(star_shape){ .dimensions = DIMENSIONS, .dimension_rows = 1000, .attributes = { 64, 16 }, .fact_rows = (uint32_t)bench->rows });
    for (size_t round = 0; round < bench->runs; round++) {
        round_run(bench, round);
    }
    code = bench->wrong ? EXIT_WRONG : EXIT_HOLDS;
    if (!bench->wrong) {
        figures_show(bench);
    } else {
        fprintf(stderr, "ivm: bench hotkey: a view is not what it must be\n");
    }
    star_data_free(&bench->data);
    free(bench);
    return code;
}
