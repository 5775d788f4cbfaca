/* `ivm flights`: the main job. Reads the slice, verifies the foreign keys that it relies on, pushes a day at a time, checks every view against
 * recomputation and the engine's own audit and every tracked key against the data, now and then and at the end, and tells what was kept,
 * what was pruned and what it cost. */
#include "flights.h"

#include "command.h"
#include "measure.h"
#include "option.h"
#include "replay.h"

#include <sys/resource.h>

static const char help[] = "usage: ivm flights [OPTIONS]\n"
                           "\n"
                           "Flights out of New York in early 2013, joined to airlines, airports, planes and hourly weather and\n"
                           "kept as three views: average delay by carrier, flights and seats by plane manufacturer, delay by\n"
                           "origin airport and visibility. A day is a batch; a dimension's row comes in the batch that is the\n"
                           "first to need it, and some are corrected later. Foreign keys are relied on where every flight keeps\n"
                           "them, which is verified first, and tracked where some do not: such flights wait. Every view is checked\n"
                           "against recomputation and audited, and who waits is counted in the data too.\n"
                           "\n"
                           "  --data DIR                   where the compressed CSV files are (default: beside the sources)\n"
                           "  --days N                     stop after N days\n"
                           "  --fk-pruning row|batch|off   what foreign keys take out of the joins (default row)\n"
                           "  --keys                       only tell which keys the data keeps, and fail if one relied on is not kept\n"
                           "  --json                       no views, one line per figure\n";

#define CHECK_EVERY 30 /* days */

/* ---- Keys ---------------------------------------------------------------------------------------------------------------------- */

/* Whether each key that is relied on is kept. */
static bool keys_verify(const flights_data *data, bool tell)
{
    bool kept = true;
    for (int l = 0; l < LINKS_COUNT; l++) {
        const flights_link *link = &flights_links[l];
        size_t orphans = 0;
        for (size_t f = 0; f < data->sheets[FLIGHT].rows_count; f++) {
            orphans += flights_orphan(data, (flights_link_name)l, f);
        }
        bool broken = link->trust == IVM_RELY && orphans;
        if (tell || broken) {
            printf("flight (%s) -> %s: %zu flights without a parent, %s\n", link->columns, table_schemas[link->parent].name, orphans,
                   broken                    ? "relied on but NOT kept"
                   : link->trust == IVM_RELY ? "relied on"
                                             : "tracked");
        }
        kept = kept && !broken;
    }
    return kept;
}

/* ---- Checks -------------------------------------------------------------------------------------------------------------------- */

typedef struct job_findings {
    uint64_t rows_unequal, audit_differences, keys_unequal;
    ivm_fact_state facts[LINKS_COUNT]; /* of those that are tracked */
} job_findings;

static bool findings_hold(const job_findings *findings)
{
    return !findings->rows_unequal && !findings->audit_differences && !findings->keys_unequal;
}

static void views_check(const flights_data *data, const flights_engine *engine, size_t flights, bool tell, job_findings *findings)
{
    for (size_t v = 0; v < FLIGHTS_VIEWS_COUNT; v++) {
        size_t rows, unequal = flights_view_check(data, flights, &flights_views[v], engine->views[v], &rows);
        uint64_t differences = flights_view_audit(engine->views[v]);
        if (unequal) {
            printf("%s: %zu rows are NOT what recomputation gives\n", flights_views[v].name, unequal);
        }
        if (differences) {
            printf("%s: %llu rows are NOT what the audit gives\n", flights_views[v].name, (unsigned long long)differences);
        }
        if (tell && !unequal && !differences) {
            printf("%-22s  all %zu rows equal recomputation over %zu flights, audited: 0 differences\n", flights_views[v].name, rows,
                   flights);
        }
        findings->rows_unequal += unequal;
        findings->audit_differences += differences;
    }
}

static void links_check(const flights_data *data, const flights_engine *engine, size_t flights, bool tell, job_findings *findings)
{
    for (int l = 0; l < LINKS_COUNT; l++) {
        const flights_link *link = &flights_links[l];
        if (link->trust != IVM_TRACKED) {
            continue;
        }
        ivm_fact_state *state = &findings->facts[l];
        size_t unequal = flights_link_check(data, flights, (flights_link_name)l, engine->facts[l], state);
        if (unequal) {
            printf("flight (%s) -> %s: %zu keys are NOT waited for as the data says\n", link->columns, table_schemas[link->parent].name,
                   unequal);
        } else if (tell) {
            printf("flight (%s) -> %s: %llu flights wait for %llu keys, as the data says\n", link->columns,
                   table_schemas[link->parent].name, (unsigned long long)state->orphans, (unsigned long long)state->orphans_keys);
        }
        findings->keys_unequal += unequal;
    }
}

static job_findings job_check(const flights_data *data, const flights_engine *engine, size_t flights, bool tell)
{
    job_findings findings = { 0 };
    views_check(data, engine, flights, tell, &findings);
    links_check(data, engine, flights, tell, &findings);
    return findings;
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
    printf("\njoin terms        %llu of %llu run (%.0f %%), %llu pruned, %llu empty\n", (unsigned long long)s->terms_run,
           (unsigned long long)totals->masks, all > 0 ? 100 * (double)s->terms_run / all : 0, (unsigned long long)s->terms_pruned,
           (unsigned long long)s->terms_empty);
    printf("rows              %llu in %llu batches, %llu probed, %llu changed in views\n", (unsigned long long)s->rows_in,
           (unsigned long long)s->batches, (unsigned long long)s->rows_probed, (unsigned long long)s->rows_out);
    printf("speed             %.0f rows a second inside the engine (%.3f s of %.2f s in all)\n", (double)s->rows_in / engine, engine,
           seconds);
    printf("memory            %.1f MB held by the engine, %.1f MB by the process at most\n", (double)s->bytes_held / 1048576,
           memory_megabytes());
}

static void figures_print(const flights_totals *totals, const job_findings *findings)
{
    const ivm_stats *s = &totals->stats;
    char metric[2 * CELL_TEXT_SIZE];
    figure_print(&(figure){ "flights", "rows_per_second", (double)s->rows_in / ((double)s->nanoseconds / 1e9), NULL, 0 });
    figure_print(&(figure){ "flights", "terms_all", (double)totals->masks, NULL, 0 });
    figure_print(&(figure){ "flights", "terms_pruned", (double)s->terms_pruned, NULL, 0 });
    figure_print(&(figure){ "flights", "terms_empty", (double)s->terms_empty, NULL, 0 });
    figure_print(&(figure){ "flights", "terms_run", (double)s->terms_run, NULL, 0 });
    figure_print(&(figure){ "flights", "engine_megabytes", (double)s->bytes_held / 1048576, NULL, 0 });
    for (int l = 0; l < LINKS_COUNT; l++) {
        const ivm_fact_state *state = &findings->facts[l];
        if (flights_links[l].trust == IVM_TRACKED) {
            snprintf(metric, sizeof metric, "%s_orphans", flights_links[l].name);
            figure_print(&(figure){ "flights", metric, (double)state->orphans, NULL, 0 });
            snprintf(metric, sizeof metric, "%s_orphans_keys", flights_links[l].name);
            figure_print(&(figure){ "flights", metric, (double)state->orphans_keys, NULL, 0 });
        }
    }
    figure_print(&(figure){ "flights", "audit_differences", (double)findings->audit_differences, NULL, 0 });
}

/* Every mask is run, pruned or empty. */
static bool terms_add_up(const flights_totals *totals)
{
    const ivm_stats *s = &totals->stats;
    bool equal = s->terms_run + s->terms_pruned + s->terms_empty == totals->masks;
    if (!equal) {
        printf("join terms: those run, pruned and empty are NOT all there are\n");
    }
    return equal;
}

/* ---- Days ---------------------------------------------------------------------------------------------------------------------- */

static int job_end(const flights_engine *engine, const flights_data *data, size_t days, const flights_totals *totals, bool json)
{
    job_findings findings = job_check(data, engine, data->days[days], !json);
    if (json) {
        figures_print(totals, &findings);
    }
    return terms_add_up(totals) && findings_hold(&findings) ? EXIT_HOLDS : EXIT_WRONG;
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
        if ((day + 1) % CHECK_EVERY == 0 && day + 1 < days) {
            job_findings findings = job_check(data, engine, data->days[day + 1], false);
            if (!findings_hold(&findings)) {
                return EXIT_WRONG;
            }
        }
    }
    double seconds = (double)(clock_nanoseconds() - start) / 1e9;
    for (size_t v = 0; v < FLIGHTS_VIEWS_COUNT && !json; v++) {
        flights_top_show(&flights_views[v], engine->views[v]);
    }
    if (!json) {
        figures_show(&totals, seconds);
        putchar('\n');
    }
    return job_end(engine, data, days, &totals, json);
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
    int pruning = IVM_FK_PRUNING_ROW, code;
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
    /* The Moebius form, whose terms are masks: each is run, pruned or empty. */
    const ivm_planner_options planner = { (ivm_fk_pruning)pruning, IVM_JOIN_MOBIUS, false };
    code = keys ? (keys_verify(&data, true) ? EXIT_HOLDS : EXIT_WRONG) : slice_run(&data, &planner, days, json);
    flights_data_free(&data);
    return code;
}
