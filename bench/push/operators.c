/* `ivm bench operators`: what one changed row costs where an operator's inputs have few rows and where they have many. Both engines stay
 * open; each operator gets a view in both, a few changes that do not count (they build the indexes), then changes in turns. A cost
 * that follows the change alone differs only by the caches: the bar is a ratio of 3. */
#include "operators.h"

#include "arena.h"
#include "command.h"
#include "option.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] = "usage: ivm bench operators [OPTIONS]\n"
                           "\n"
                           "Pushes of one row each against a view of one operator: median nanoseconds of a push (a row deleted, a\n"
                           "row inserted; for min_deleted and top_k_deleted the row that is now the smallest is deleted) with few\n"
                           "rows in the table and with many, and their ratio, which is to be at most 3. A row of a join's other\n"
                           "table, NAME_partner, meets 8 rows. Aggregates are over one group of all rows, but for groups.\n"
                           "\n"
                           "  --operator NAME   this one alone\n"
                           "  --few N           rows (default 10000)\n"
                           "  --many N          rows (default 1000000)\n"
                           "  --changes N       rows changed in each (default 1000)\n"
                           "  --json            one line per figure: NAME_ns with rows, NAME_ratio\n"
                           "\n"
                           "Fails (exit 1) where changes did not reach the view.\n";

#define BAR 3.0
#define COUNT_MAX 100000000 /* rows, changes */
#define TURNS 20
#define WARM_CHANGES 64
enum { FEW, MANY, SIZES };

typedef struct operators_bench {
    operator_tables tables[SIZES];
    uint64_t rows[SIZES], changes;
    double *spent[SIZES]; /* of each change */
    uint64_t reached;     /* rows of views that changed */
    bool json, unreached;
} operators_bench;

static ivm_view *view_make(const operators_bench *bench, int size, const char *name, ivm_plan *plan, bool deferred)
{
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = deferred ? IVM_DEFERRED : IVM_IMMEDIATE };
    ivm_error error = IVM_ERROR_INIT;
    ivm_view *view;
    operator_must(ivm_view_create(bench->tables[size].engine, name, plan, &options, &view, &error), &error);
    return view;
}

static void view_drop(ivm_view *view)
{
    ivm_error error = IVM_ERROR_INIT;
    if (view) {
        operator_must(ivm_view_drop(view, &error), &error);
    }
}

static void turns_run(operators_bench *bench, const operator_case *of, ivm_view *const *views)
{
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        for (int size = 0; size < SIZES; size++) {
            for (uint64_t i = turn * bench->changes / TURNS; i < (turn + 1) * bench->changes / TURNS; i++) {
                ivm_view *deferred = of->deferred ? views[size] : NULL;
                bench->spent[size][i] = operator_change(&bench->tables[size], of->which, deferred, &bench->reached);
            }
        }
    }
}

static void figures_print(operators_bench *bench, const operator_case *of)
{
    double few = median(bench->spent[FEW], bench->changes), many = median(bench->spent[MANY], bench->changes);
    char ns[64], ratio[64];
    snprintf(ns, sizeof ns, "%s_ns", of->name);
    snprintf(ratio, sizeof ratio, "%s_ratio", of->name);
    figure_add(&(figure){ "operators", ns, few, "rows", bench->rows[FEW] });
    figure_add(&(figure){ "operators", ns, many, "rows", bench->rows[MANY] });
    figure_add(&(figure){ "operators", ratio, many / few, NULL, 0 });
    if (bench->json) {
        return;
    }
    printf("%-18s %8.0f ns of %llu rows   %8.0f ns of %llu rows   ratio %.2f%s\n", of->name, few, (unsigned long long)bench->rows[FEW],
           many, (unsigned long long)bench->rows[MANY], many / few, many / few > BAR ? "   over the bar of 3" : "");
    fflush(stdout);
}

static void operator_measure(operators_bench *bench, const operator_case *of)
{
    ivm_view *under[SIZES] = { NULL }, *views[SIZES] = { NULL };
    bench->reached = 0;
    for (int size = 0; size < SIZES; size++) {
        under[size] = of->under ? view_make(bench, size, "under", of->under(), false) : NULL;
        views[size] = of->plan ? view_make(bench, size, "view", of->plan(), of->deferred) : NULL;
        for (int i = 0; i < WARM_CHANGES; i++) {
            operator_change(&bench->tables[size], of->which, of->deferred ? views[size] : NULL, &bench->reached);
        }
    }
    bench->reached = 0;
    turns_run(bench, of, views);
    for (int size = 0; size < SIZES; size++) {
        view_drop(views[size]);
        view_drop(under[size]);
    }
    if (of->plan && !bench->reached) {
        bench->unreached = true;
        fprintf(stderr, "ivm: bench operators: %s: no change reached the view\n", of->name);
    }
    figures_print(bench, of);
}

static int cases_measure(operators_bench *bench, const char *name)
{
    for (int size = 0; size < SIZES; size++) {
        operator_tables_open(&bench->tables[size], (uint32_t)bench->rows[size]);
        bench->spent[size] = memory_take(bench->changes * sizeof *bench->spent[size]);
    }
    for (const operator_case *of = operator_cases; of->name; of++) {
        if (!name || strcmp(name, of->name) == 0) {
            operator_measure(bench, of);
        }
    }
    for (int size = 0; size < SIZES; size++) {
        operator_tables_close(&bench->tables[size]);
        free(bench->spent[size]);
    }
    return bench->unreached ? EXIT_WRONG : EXIT_HOLDS;
}

static bool case_known(const char *name)
{
    const operator_case *of = operator_cases;
    while (of->name && strcmp(of->name, name) != 0) {
        of++;
    }
    return of->name;
}

int operators_command(int argc, char **argv)
{
    operators_bench bench = { .rows = { 10000, 1000000 }, .changes = 1000 };
    const char *name = NULL;
    int code;
    operand_list operands;
    const option_definition options[] = { { "--operator", OPTION_TEXT, &name },           { "--few", OPTION_NUMBER, &bench.rows[FEW] },
                                          { "--many", OPTION_NUMBER, &bench.rows[MANY] }, { "--changes", OPTION_NUMBER, &bench.changes },
                                          { "--json", OPTION_FLAG, &bench.json },         { NULL } };
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        return code;
    }
    if (operands.count || bench.changes > COUNT_MAX || bench.rows[FEW] > COUNT_MAX || bench.rows[MANY] > COUNT_MAX) {
        return usage_error("bench operators: at most %d rows and changes; --help says more", COUNT_MAX);
    }
    if (name && !case_known(name)) {
        return usage_error("bench operators: no operator %s", name);
    }
    return cases_measure(&bench, name);
}
