/* Batches that change more than the fact table, against STAR4: `mixed` brings fact rows and takes some away while dimensions gain rows, `update`
 * changes one dimension row that a thousand fact rows refer to, `everything` does all of it at once and takes dimension rows away too. Loading and
 * two batches that build what terms need are not timed. After each round the view is compared with a recomputation from the rows there are
 * now. */
#include "arena.h"
#include "floor.h"
#include "star.h"

#include <stdlib.h>
#include <string.h>

#define DIMENSIONS 4
#define FAN_OUT 1000
#define WARM_BATCHES 2

typedef struct changes_bench {
    const star_request *request;
    star_change change;
    uint64_t batches, size; /* timed batches; fact rows in one, come and gone */
    uint32_t come, gone, rows_new, rows_updated;
    star_data data;
    int64_t *attributes_first[DIMENSIONS]; /* as they are loaded */
    uint64_t affected;
    double spent[RUNS_MAX];
    uint64_t unequal;
} changes_bench;

/* ---- The data ------------------------------------------------------------------------------------------------------------------ */

/* New rows of a dimension come in pairs under `everything`: fact rows refer to neither, and the batch after the next takes the second away. */
static void bench_shape(changes_bench *bench)
{
    uint64_t all = bench->batches + WARM_BATCHES;
    star_shape shape = star_shape_named(STAR4, (uint32_t)bench->request->rows);
    uint32_t first = shape.dimension_rows;
    bench->come = (uint32_t)(bench->size - bench->size / 10);
    bench->gone = (uint32_t)(bench->size / 10);
    bench->rows_new = (uint32_t)(bench->size / 100 / DIMENSIONS ? bench->size / 100 / DIMENSIONS : 1);
    if (bench->change == STAR_UPDATE) {
        shape.rows[0] = shape.fact_rows / FAN_OUT ? shape.fact_rows / FAN_OUT : 1;
        bench->come = bench->gone = bench->rows_new = 0;
    } else {
        shape.fact_rows_first = shape.fact_rows;
        shape.rows_first = first;
        shape.fact_rows_step = bench->come;
        shape.rows_step = bench->change == STAR_MIXED ? bench->rows_new : 0;
        shape.fact_rows += (uint32_t)(all * bench->come);
        shape.dimension_rows += (uint32_t)(all * bench->rows_new);
    }
    bench->rows_updated = bench->change == STAR_EVERYTHING ? bench->rows_new : 0;
    star_data_make(&bench->data, &shape);
    for (uint32_t d = 0; d < DIMENSIONS; d++) {
        size_t size = star_dimension_rows(&shape, d) * sizeof(int64_t);
        bench->attributes_first[d] = memory_take(size);
        memcpy(bench->attributes_first[d], bench->data.attributes[d], size);
    }
}

static uint32_t rows_loaded(const changes_bench *bench, uint32_t dimension)
{
    return bench->data.shape.rows_first ? bench->data.shape.rows_first : star_dimension_rows(&bench->data.shape, dimension);
}

/* ---- Batches ------------------------------------------------------------------------------------------------------------------- */

static void row_update(changes_bench *bench, star_engine *star, ivm_batch *batch, uint32_t dimension, uint32_t row)
{
    int64_t *attribute = &bench->data.attributes[dimension][row];
    *attribute = (*attribute + 1) % bench->data.shape.attributes[dimension];
    ivm_batch_upsert(batch, star->dimensions[dimension], ivm_int64(bench->data.keys[dimension][row]), ivm_int64(*attribute));
}

static void facts_fill(changes_bench *bench, star_engine *star, ivm_batch *batch, uint64_t number)
{
    star_columns leaving = { .columns_count = DIMENSIONS + 1, .rows_count = bench->gone };
    for (uint32_t c = 0; c <= DIMENSIONS; c++) {
        leaving.columns[c] = bench->data.fact_columns[c] + number * bench->gone;
    }
    star_batch_columns(batch, star->fact_table, IVM_DELETE, &leaving);
    star_batch_fact_rows(star, batch, (star_part){ &bench->data, bench->data.shape.fact_rows_first + number * bench->come, bench->come });
}

static void dimensions_fill(changes_bench *bench, star_engine *star, ivm_batch *batch, uint64_t number, random_state *random)
{
    for (uint32_t d = 0; d < DIMENSIONS; d++) {
        size_t first = bench->data.shape.rows_first + number * bench->rows_new;
        star_batch_dimension(star, batch, d, (star_part){ &bench->data, first, bench->rows_new });
        for (uint32_t i = 0; i < bench->rows_updated; i++) {
            row_update(bench, star, batch, d, random_below(random, bench->data.shape.rows_first));
        }
        if (bench->change == STAR_EVERYTHING && number) {
            star_columns gone = { { bench->data.keys[d] + first - bench->rows_new }, 1, bench->rows_new };
            star_batch_columns(batch, star->dimensions[d], IVM_DELETE_KEY, &gone);
        }
    }
}

/* Returns how many fact rows the change of a dimension row reaches. */
static uint64_t hot_fill(changes_bench *bench, star_engine *star, ivm_batch *batch, random_state *random)
{
    uint32_t row = random_below(random, star_dimension_rows(&bench->data.shape, 0));
    int64_t key = bench->data.keys[0][row];
    uint64_t affected = 0;
    for (uint32_t i = 0; i < bench->data.shape.fact_rows; i++) {
        affected += bench->data.fact_columns[0][i] == key;
    }
    row_update(bench, star, batch, 0, row);
    return affected;
}

/* Nanoseconds of the push. */
static uint64_t batch_run(changes_bench *bench, star_engine *star, uint64_t number, random_state *random)
{
    ivm_batch *batch = star_batch(star);
    if (bench->change == STAR_UPDATE) {
        uint64_t affected = hot_fill(bench, star, batch, random);
        bench->affected += number < WARM_BATCHES ? 0 : affected;
    } else {
        facts_fill(bench, star, batch, number);
        dimensions_fill(bench, star, batch, number, random);
    }
    uint64_t start = clock_nanoseconds();
    star_push(star, batch, NULL);
    return clock_nanoseconds() - start;
}

/* ---- Rounds -------------------------------------------------------------------------------------------------------------------- */

static void load(changes_bench *bench, star_engine *star)
{
    ivm_batch *batch = star_batch(star);
    for (uint32_t d = 0; d < DIMENSIONS; d++) {
        memcpy(bench->data.attributes[d], bench->attributes_first[d], star_dimension_rows(&bench->data.shape, d) * sizeof(int64_t));
        star_batch_dimension(star, batch, d, (star_part){ &bench->data, 0, rows_loaded(bench, d) });
    }
    star_batch_fact_rows(star, batch, (star_part){ &bench->data, 0, (size_t)bench->request->rows });
    star_push(star, batch, NULL);
}

/* The fact rows there are now stand side by side: the first are gone, all others have come. */
static uint64_t recomputation_unequal(changes_bench *bench, star_engine *star)
{
    floor_star floor;
    size_t gone = (size_t)((bench->batches + WARM_BATCHES) * bench->gone);
    floor_open(&floor, &bench->data);
    floor_push(&floor, &bench->data, gone, bench->data.shape.fact_rows - gone);
    uint64_t unequal = floor_unequal(&floor, star);
    floor_close(&floor);
    return unequal;
}

static void round_run(changes_bench *bench, size_t round)
{
    star_engine star;
    random_state random = { 0x13198A2E03707344ull };
    uint64_t spent = 0, changed = 0;
    star_engine_open(&star, &bench->data.shape, &(star_options){ .grouped = DIMENSIONS });
    load(bench, &star);
    bench->affected = 0;
    for (uint64_t number = 0; number < bench->batches + WARM_BATCHES; number++) {
        uint64_t push = batch_run(bench, &star, number, &random);
        spent += number < WARM_BATCHES ? 0 : push;
    }
    uint64_t rows_a_batch = bench->come + bench->gone + DIMENSIONS * (uint64_t)bench->rows_new * (bench->change == STAR_MIXED ? 1 : 3);
    changed = bench->change == STAR_UPDATE ? bench->affected : bench->batches * rows_a_batch;
    bench->spent[round] = (double)spent / (double)(changed ? changed : 1);
    bench->unequal += recomputation_unequal(bench, &star);
    star_engine_close(&star);
}

static void figures_show(changes_bench *bench)
{
    static const char *const metrics[] = { NULL, "mixed_ns", "update_ns", "everything_ns" };
    static const char *const texts[] = { NULL, "a changed row, dimensions gaining 1 %, facts 90 % come and 10 % gone",
                                         "a fact row under an updated dimension row", "a changed row, everything changing" };
    spread ns = spread_of(bench->spent, (size_t)bench->request->runs);
    figure_add(&(figure){ "star", metrics[bench->change], ns.median, bench->change == STAR_UPDATE ? "fan_out" : "batch",
                          bench->change == STAR_UPDATE ? FAN_OUT : bench->size, bench->request->variant, ns.low, ns.high,
                          bench->request->runs, bench->request->rows });
    if (!bench->request->json) {
        printf("%-20s %s: %.1f ns (%.1f to %.1f); %llu batches onto %llu fact rows, median of %llu rounds\n", bench->request->variant,
               texts[bench->change], ns.median, ns.low, ns.high, (unsigned long long)bench->batches,
               (unsigned long long)bench->request->rows, (unsigned long long)bench->request->runs);
        fflush(stdout);
    }
}

bool star_changes(const star_request *request, star_change change)
{
    changes_bench *bench = memory_take(sizeof *bench);
    bench->request = request;
    bench->change = change;
    bench->size = request->batch ? request->batch : 1000;
    bench->batches = 100;
    /* Fact rows leave from the front of those that were loaded. */
    while (bench->batches > 1 && (bench->batches + WARM_BATCHES) * (bench->size / 10) > request->rows) {
        bench->batches /= 2;
    }
    if ((bench->batches + WARM_BATCHES) * (bench->size / 10) > request->rows) {
        bench->size = request->rows;
    }
    bench_shape(bench);
    for (size_t round = 0; round < request->runs; round++) {
        round_run(bench, round);
    }
    uint64_t unequal = bench->unequal;
    if (!unequal) {
        figures_show(bench);
    } else {
        fprintf(stderr, "ivm: bench star: %llu groups differ from recomputation\n", (unsigned long long)unequal);
    }
    for (uint32_t d = 0; d < DIMENSIONS; d++) {
        free(bench->attributes_first[d]);
    }
    star_data_free(&bench->data);
    free(bench);
    return !unequal;
}
