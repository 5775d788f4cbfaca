/* `ivm bench tpch`: streams of orders with their lines under the views; see tpch.h. Two engines, one that prunes with the foreign keys and one that does
 * not, get the same batches in turn: the population in batches of orders with their lines, then the refresh functions, a set of orders that comes
 * and one that goes. Pushes are timed, the filling of batches and the other tables are not. */
#include "tpch.h"

#include "arena.h"
#include "command.h"
#include "measure.h"
#include "option.h"

#include <stdlib.h>

static const char help[] = "usage: ivm bench tpch [OPTIONS]\n"
                           "\n"
                           "Orders and their lines streamed under the joins and aggregates of the TPC-H queries 1, 3, 5, 6, 10, 12 and\n"
                           "19: nanoseconds a row while the population is loaded in batches of 1,000 orders, and while the refresh\n"
                           "functions bring and take away sets of orders (a thousandth of the population each), with pruning and\n"
                           "without. The data is our own, by the specification's distributions; these are no TPC-H results. Every view\n"
                           "is audited, queries 1 and 6 are compared with loops over the rows too.\n"
                           "\n"
                           "  --scale X      scale factor, 0.001 to 10 (default 0.02: 30,000 orders, 120,000 lines)\n"
                           "  --query NAME   this view alone: q1, q3, q5, q6, q10, q12, q19\n"
                           "  --sets N       refresh sets (default 20)\n"
                           "  --runs N       rounds (default 3)\n"
                           "  --json         one line per figure: load_ns, refresh_insert_ns, refresh_delete_ns, and of each a\n"
                           "                 ..._speedup, without pruning over with\n";

#define ORDERS_A_BATCH 1000
enum { PRUNED, UNPRUNED, SIDES };
enum { LOAD, REFRESH_INSERT, REFRESH_DELETE, PARTS };
static const char *const part_names[PARTS] = { "load", "refresh_insert", "refresh_delete" };

typedef struct tpch_bench {
    double scale;
    uint64_t sets, runs;
    int query; /* -1: all */
    bool json;
    tpch_data data;
    tpch_engine engines[SIDES];
    uint64_t spent[SIDES][PARTS], rows[SIDES][PARTS]; /* of one round */
    double ns[SIDES][PARTS][RUNS_MAX], ratio[PARTS][RUNS_MAX];
    uint64_t unequal;
} tpch_bench;

/* Who is first changes with every batch. */
static void orders_push(tpch_bench *bench, int part, uint32_t first, uint32_t end, uint32_t number)
{
    for (uint32_t turn = 0; turn < SIDES; turn++) {
        uint32_t side = (turn + number) % SIDES;
        ivm_change change = part == REFRESH_DELETE ? IVM_DELETE : IVM_INSERT;
        bench->spent[side][part] += tpch_push_orders(&bench->engines[side], &bench->data, change, first, end, &bench->rows[side][part]);
    }
}

static void stream_run(tpch_bench *bench)
{
    const tpch_data *data = &bench->data;
    uint32_t loaded = data->loaded, orders = data->refresh_orders;
    for (uint32_t first = 0, number = 0; first < loaded; first += ORDERS_A_BATCH, number++) {
        orders_push(bench, LOAD, first, loaded - first < ORDERS_A_BATCH ? loaded : first + ORDERS_A_BATCH, number);
    }
    for (uint32_t set = 0; set < data->refresh_sets; set++) {
        orders_push(bench, REFRESH_INSERT, loaded + set * orders, loaded + (set + 1) * orders, set);
        orders_push(bench, REFRESH_DELETE, set * orders, (set + 1) * orders, set);
    }
}

static void round_run(tpch_bench *bench, size_t round)
{
    static const ivm_planner_options planners[SIDES] = { { IVM_FK_PRUNING_ROW, IVM_JOIN_AUTO, false },
                                                         { IVM_FK_PRUNING_OFF, IVM_JOIN_AUTO, false } };
    for (int side = 0; side < SIDES; side++) {
        tpch_open(&bench->engines[side], &planners[side], bench->query);
        tpch_push_others(&bench->engines[side], &bench->data);
        for (int part = 0; part < PARTS; part++) {
            bench->spent[side][part] = bench->rows[side][part] = 0;
        }
    }
    stream_run(bench);
    for (int side = 0; side < SIDES; side++) {
        bench->unequal += tpch_unequal(&bench->engines[side], &bench->data, bench->data.refresh_sets * bench->data.refresh_orders,
                                       bench->data.orders_count);
        tpch_close(&bench->engines[side]);
        for (int part = 0; part < PARTS; part++) {
            bench->ns[side][part][round] = (double)bench->spent[side][part] / (double)bench->rows[side][part];
        }
    }
    for (int part = 0; part < PARTS; part++) {
        bench->ratio[part][round] = bench->ns[UNPRUNED][part][round] / bench->ns[PRUNED][part][round];
    }
}

static void figures_show(tpch_bench *bench)
{
    size_t runs = (size_t)bench->runs;
    const char *variant = bench->query < 0 ? "all queries" : tpch_queries[bench->query].name;
    for (int part = 0; part < PARTS; part++) {
        char metric[64];
        uint64_t rows = bench->rows[PRUNED][part];
        spread ns = spread_of(bench->ns[PRUNED][part], runs), off = spread_of(bench->ns[UNPRUNED][part], runs);
        spread ratio = spread_of(bench->ratio[part], runs);
        snprintf(metric, sizeof metric, "%s_ns", part_names[part]);
        figure_add(&(figure){ "tpch", metric, ns.median, NULL, 0, variant, ns.low, ns.high, runs, rows });
        snprintf(metric, sizeof metric, "%s_unpruned_ns", part_names[part]);
        figure_add(&(figure){ "tpch", metric, off.median, NULL, 0, variant, off.low, off.high, runs, rows });
        snprintf(metric, sizeof metric, "%s_speedup", part_names[part]);
        figure_add(&(figure){ "tpch", metric, ratio.median, NULL, 0, variant, ratio.low, ratio.high, runs, rows });
        if (!bench->json) {
            printf("%-15s %-12s %8.1f ns a row (%.1f to %.1f); without pruning %.1f, %.2f times as long; %llu rows\n", part_names[part],
                   variant, ns.median, ns.low, ns.high, off.median, ratio.median, (unsigned long long)rows);
        }
    }
}

int tpch_command(int argc, char **argv)
{
    static const char *const names[] = { "q1", "q3", "q5", "q6", "q10", "q12", "q19", NULL };
    tpch_bench *bench = memory_take(sizeof *bench);
    *bench = (tpch_bench){ .sets = 20, .runs = 3, .query = -1 };
    const char *scale = "0.02";
    char *end;
    int code;
    operand_list operands;
    const option_definition options[] = { { "--scale", OPTION_TEXT, &scale },        { "--query", OPTION_WORD, &bench->query, names },
                                          { "--sets", OPTION_NUMBER, &bench->sets }, { "--runs", OPTION_NUMBER, &bench->runs },
                                          { "--json", OPTION_FLAG, &bench->json },   { NULL } };
    bool read = options_read(options, help, argc, argv, &operands, &code);
    bench->scale = read ? strtod(scale, &end) : 0;
    if (!read || operands.count || *end || !(bench->scale >= 0.001 && bench->scale <= 10) || bench->sets > 500 || bench->runs > RUNS_MAX) {
        free(bench);
        return read ? usage_error("bench tpch: a scale of 0.001 to 10, at most 500 sets, %d runs; --help says more", RUNS_MAX) : code;
    }
    tpch_data_make(&bench->data, bench->scale, (uint32_t)bench->sets);
    for (size_t round = 0; round < bench->runs; round++) {
        round_run(bench, round);
    }
    code = bench->unequal ? EXIT_WRONG : EXIT_HOLDS;
    if (!bench->unequal) {
        figures_show(bench);
    } else {
        fprintf(stderr, "ivm: bench tpch: %llu rows of views are not what they must be\n", (unsigned long long)bench->unequal);
    }
    tpch_data_free(&bench->data);
    free(bench);
    return code;
}
