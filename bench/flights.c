/* `ivm flights`: the main job. Reads the slice, verifies the foreign keys that it declares, pushes a day at a time, checks every view
 * against recomputation now and then and at the end, and tells what was kept, what was pruned and what it cost. */
#include "flights.h"

#include "command.h"
#include "measure.h"
#include "option.h"
#include "replay.h"

#include <stdlib.h>
#include <sys/resource.h>

static const char help[] = "usage: ivm flights [OPTIONS]\n"
                           "\n"
                           "Flights out of New York in early 2013, joined to airlines, airports, planes and hourly weather and\n"
                           "kept as three views: average delay by carrier, flights and seats by plane manufacturer, delay by\n"
                           "origin airport and visibility. A day is a batch; a dimension's row comes in the batch that is the\n"
                           "first to need it, and some are corrected later. Foreign keys are declared where every flight keeps\n"
                           "them, which is verified first. Every view is checked against recomputation.\n"
                           "\n"
                           "  --data DIR               where the compressed CSV files are (default: beside the sources)\n"
                           "  --days N                 stop after N days\n"
                           "  --fk-pruning off|batch   whether declared keys take join terms out (default batch)\n"
                           "  --keys                   only tell which keys the data keeps, and fail if one declared is not kept\n"
                           "  --json                   no views, one line per figure\n";

#define CHECK_EVERY 30 /* days */

/* ---- Keys ---------------------------------------------------------------------------------------------------------------------- */

/* Whether each key that is declared is kept. */
static bool keys_verify(const flights_data *data, bool tell)
{
    bool kept = true;
    for (int l = 0; l < LINKS_COUNT; l++) {
        const flights_link *link = &flights_links[l];
        size_t orphans = flights_orphans(data, (flights_link_name)l);
        bool broken = link->declared && orphans;
        if (tell || broken) {
            printf("flight (%s) -> %s: %zu flights without a parent, %s\n", link->columns, table_schemas[link->parent].name, orphans,
                   broken           ? "declared but not kept"
                   : link->declared ? "declared"
                                    : "not declared");
        }
        kept = kept && !broken;
    }
    return kept;
}

/* ---- Figures ------------------------------------------------------------------------------------------------------------------- */

static double memory_megabytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static void figures_show(const flights_totals *totals, double seconds)
{
    const ivm_stats *s = &totals->stats;
    double engine = (double)s->nanoseconds / 1e9, all = (double)totals->masks;
    printf("\njoin terms        %llu in all, %llu pruned (%.0f %%), %llu of unchanged leaves, %llu run\n",
           (unsigned long long)totals->masks, (unsigned long long)s->terms_pruned, all > 0 ? 100 * (double)s->terms_pruned / all : 0,
           (unsigned long long)s->terms_empty, (unsigned long long)s->terms_run);
    printf("rows              %llu in %llu batches, %llu probed, %llu changed in views\n", (unsigned long long)s->rows_in,
           (unsigned long long)s->batches, (unsigned long long)s->rows_probed, (unsigned long long)s->rows_out);
    printf("speed             %.0f rows a second inside the engine (%.3f s of %.2f s in all)\n", (double)s->rows_in / engine, engine,
           seconds);
    printf("memory            %.1f MB held by the engine, %.1f MB by the process at most\n", (double)s->bytes_held / 1048576,
           memory_megabytes());
}

static void figures_print(const flights_totals *totals)
{
    const ivm_stats *s = &totals->stats;
    figure_print(&(figure){ "flights", "rows_per_second", (double)s->rows_in / ((double)s->nanoseconds / 1e9), NULL, 0 });
    figure_print(&(figure){ "flights", "terms_all", (double)totals->masks, NULL, 0 });
    figure_print(&(figure){ "flights", "terms_pruned", (double)s->terms_pruned, NULL, 0 });
    figure_print(&(figure){ "flights", "terms_run", (double)s->terms_run, NULL, 0 });
    figure_print(&(figure){ "flights", "engine_megabytes", (double)s->bytes_held / 1048576, NULL, 0 });
}

/* ---- Days ---------------------------------------------------------------------------------------------------------------------- */

static bool views_check(const flights_data *data, const flights_engine *engine, size_t flights, bool tell)
{
    bool equal = true;
    for (size_t v = 0; v < FLIGHTS_VIEWS_COUNT; v++) {
        size_t rows, unequal = flights_view_check(data, flights, &flights_views[v], engine->views[v], &rows);
        if (unequal) {
            printf("%s: %zu rows are NOT what recomputation gives\n", flights_views[v].name, unequal);
        } else if (tell) {
            printf("%-22s  all %zu rows equal recomputation over %zu flights\n", flights_views[v].name, rows, flights);
        }
        equal = equal && !unequal;
    }
    return equal;
}

static int days_run(flights_engine *engine, flights_data *data, size_t days, bool json)
{
    flights_totals totals = { 0 };
    uint64_t start = clock_nanoseconds();
    for (size_t day = 0; day < days; day++) {
        if (!flights_day_push(engine, data, day, &totals)) {
            return EXIT_USAGE;
        }
        if (!json) {
            flights_progress(data, day, days, &totals);
        }
        bool check = (day + 1) % CHECK_EVERY == 0 && day + 1 < days;
        if (check && !views_check(data, engine, data->days[day + 1], false)) {
            return EXIT_WRONG;
        }
    }
    double seconds = (double)(clock_nanoseconds() - start) / 1e9;
    for (size_t v = 0; v < FLIGHTS_VIEWS_COUNT && !json; v++) {
        flights_top_show(&flights_views[v], engine->views[v]);
    }
    if (json) {
        figures_print(&totals);
    } else {
        figures_show(&totals, seconds);
        putchar('\n');
    }
    return views_check(data, engine, data->days[days], !json) ? EXIT_HOLDS : EXIT_WRONG;
}

static int slice_run(flights_data *data, const ivm_planner_options *planner, uint64_t days, bool json)
{
    flights_engine engine;
    if (!keys_verify(data, !json)) {
        return EXIT_WRONG;
    }
    if (!flights_engine_open(&engine, planner)) {
        return EXIT_USAGE;
    }
    if (!json) {
        putchar('\n');
    }
    int code = days_run(&engine, data, days < data->days_count ? (size_t)days : data->days_count, json);
    flights_engine_close(&engine);
    return code;
}

int flights_command(int argc, char **argv)
{
    const char *directory = IVM_BENCH_DATA;
    uint64_t days = UINT32_MAX;
    int pruning = IVM_FK_PRUNING_BATCH, code;
    bool keys = false, json = false;
    operand_list operands;
    flights_data data;
    const option_definition options[] = { { "--data", OPTION_TEXT, &directory },
                                          { "--days", OPTION_NUMBER, &days },
                                          { "--fk-pruning", OPTION_WORD, &pruning, fk_pruning_words },
                                          { "--keys", OPTION_FLAG, &keys },
                                          { "--json", OPTION_FLAG, &json },
                                          { NULL } };
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        return code;
    }
    if (operands.count) {
        return usage_error("flights takes options only; --help says more");
    }
    if (!flights_data_read(&data, directory)) {
        return EXIT_USAGE;
    }
    /* The Moebius form, whose terms are the masks that pruning takes out. */
    const ivm_planner_options planner = { (ivm_fk_pruning)pruning, IVM_JOIN_MOBIUS, true };
    code = keys ? (keys_verify(&data, true) ? EXIT_HOLDS : EXIT_WRONG) : slice_run(&data, &planner, days, json);
    flights_data_free(&data);
    return code;
}
