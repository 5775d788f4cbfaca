/* Pruning by row: batches in which dimensions gain rows, lose some and change some, and a row that changes many times in one. */
#include "arena.h"
#include "prune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIMENSIONS 4
#define ATTRIBUTES 16
#define FACT_ROWS_A_BATCH 1000
#define ROWS_NEW 1000
#define ROWS_GONE 10
#define GROUPED 2

/* ---- Coming, going and changing ------------------------------------------------------------------------------------------------ */

typedef struct mixed_star {
    star_data data;
    int64_t *leaving[STAR_DIMENSIONS_MAX + 1]; /* columns of the first fact rows that go, those of one batch together */
    uint32_t *leaving_first;                   /* of batch i, which ends where that of i + 1 begins */
} mixed_star;

typedef struct gone_key {
    int64_t key;
    uint32_t batch;
} gone_key;

static int key_order(const void *a, const void *b)
{
    int64_t x = ((const gone_key *)a)->key, y = ((const gone_key *)b)->key;
    return (x > y) - (x < y);
}

/* The keys of the dimension's rows that go, sorted: rows [(b - 1) * ROWS_GONE, b * ROWS_GONE) with batch b. */
static gone_key *gone_keys_make(const star_data *data, uint32_t dimension)
{
    uint32_t count = data->shape.rows_leaving;
    gone_key *keys = memory_take(count * sizeof *keys);
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = (gone_key){ data->keys[dimension][i], i / ROWS_GONE + 1 };
    }
    qsort(keys, count, sizeof *keys, key_order);
    return keys;
}

/* The first batch that takes a row of each fact's dimensions away; 0: none does. */
static uint32_t *leaving_batches(const star_data *data)
{
    uint32_t *batches = memory_take(data->shape.fact_rows_first * sizeof *batches);
    for (uint32_t d = 0; d < data->shape.dimensions; d++) {
        gone_key *keys = gone_keys_make(data, d);
        for (uint32_t i = 0; i < data->shape.fact_rows_first; i++) {
            gone_key wanted = { data->fact_columns[d][i], 0 };
            const gone_key *found = bsearch(&wanted, keys, data->shape.rows_leaving, sizeof *keys, key_order);
            if (found && (!batches[i] || found->batch < batches[i])) {
                batches[i] = found->batch;
            }
        }
        free(keys);
    }
    return batches;
}

static void leaving_make(mixed_star *star, uint64_t batches_count)
{
    const star_data *data = &star->data;
    uint32_t rows = data->shape.fact_rows_first, *batches = leaving_batches(data);
    uint32_t *first = star->leaving_first = memory_take((batches_count + 3) * sizeof *first);
    for (uint32_t i = 0; i < rows; i++) {
        first[batches[i] ? batches[i] + 1 : 0]++;
    }
    first[0] = 0;
    for (uint64_t b = 1; b < batches_count + 3; b++) {
        first[b] += first[b - 1];
    }
    uint32_t *next = memory_take((batches_count + 3) * sizeof *next);
    memcpy(next, first, (batches_count + 3) * sizeof *next);
    for (uint32_t c = 0; c <= data->shape.dimensions; c++) {
        star->leaving[c] = memory_take((first[batches_count + 2] + 1) * sizeof(int64_t));
    }
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t place = batches[i] ? next[batches[i]]++ : 0;
        for (uint32_t c = 0; c <= data->shape.dimensions && batches[i]; c++) {
            star->leaving[c][place] = data->fact_columns[c][i];
        }
    }
    free(next);
    free(batches);
}

static void mixed_fill(const void *context, star_engine *star, ivm_batch *batch, size_t side, uint64_t number)
{
    (void)side;
    const mixed_star *mixed = context;
    const star_data *data = &mixed->data;
    const star_shape *shape = &data->shape;
    star_part rows = { data, 0, shape->rows_first }, facts = { data, 0, shape->fact_rows_first };
    if (number) {
        rows = (star_part){ data, shape->rows_first + (number - 1) * ROWS_NEW, ROWS_NEW };
        facts = (star_part){ data, shape->fact_rows_first + (number - 1) * FACT_ROWS_A_BATCH, FACT_ROWS_A_BATCH };
        uint32_t first = mixed->leaving_first[number];
        star_columns leaving = { .columns_count = shape->dimensions + 1, .rows_count = mixed->leaving_first[number + 1] - first };
        for (uint32_t c = 0; c <= data->shape.dimensions; c++) {
            leaving.columns[c] = mixed->leaving[c] + first;
        }
        star_batch_columns(batch, star->fact_table, IVM_DELETE, &leaving);
    }
    for (uint32_t d = 0; d < data->shape.dimensions; d++) {
        star_batch_dimension(star, batch, d, rows);
        if (number) {
            star_columns gone = { { data->keys[d] + (number - 1) * ROWS_GONE }, 1, ROWS_GONE };
            star_batch_columns(batch, star->dimensions[d], IVM_DELETE_KEY, &gone);
            size_t row = shape->rows_leaving + number;
            int64_t attribute = (data->attributes[d][row] + 1) % ATTRIBUTES;
            ivm_batch_upsert(batch, star->dimensions[d], ivm_int64(data->keys[d][row]), ivm_int64(attribute));
        }
    }
    star_batch_fact_rows(star, batch, facts);
}

static void mixed_print(const duel *it, const prune_options *options, uint32_t dimensions)
{
    double row = it->median[0] / 1000, mobius = it->median[1] / 1000, telescoping = it->median[2] / 1000;
    char metric[32];
    snprintf(metric, sizeof metric, "mixed_row_speedup_%u", dimensions);
    figure_add(&(figure){ "prune", "mixed_row_us", row, "dimensions", dimensions });
    figure_add(&(figure){ "prune", "mixed_batch_us", mobius, "dimensions", dimensions });
    figure_add(&(figure){ "prune", "mixed_batch_telescoping_us", telescoping, "dimensions", dimensions });
    figure_add(&(figure){ "prune", metric, mobius / row, "dimensions", dimensions });
    if (options->json) {
        return;
    }
    printf("rows of %u dimensions come, go and change: pruned by row to %llu terms %8.1f us a batch; by batch to %llu %8.1f, %.1f times as "
           "long (telescoping: %llu terms, %.1f times)\n",
           dimensions, (unsigned long long)(it->terms[0] / options->batches), row, (unsigned long long)(it->terms[1] / options->batches),
           mobius, mobius / row, (unsigned long long)(it->terms[2] / options->batches), telescoping / row);
    fflush(stdout);
}

bool prune_mixed(const prune_options *options, uint32_t dimensions)
{
    static const ivm_planner_options mobius = { IVM_FK_PRUNING_BATCH, IVM_JOIN_MOBIUS, false };
    static const ivm_planner_options telescoping = { IVM_FK_PRUNING_BATCH, IVM_JOIN_TELESCOPING, false };
    uint64_t batches = options->batches + 1;
    star_shape shape = { .dimensions = dimensions,
                         .dimension_rows = (uint32_t)(10000 + batches * (ROWS_NEW + ROWS_GONE)),
                         .fact_rows = (uint32_t)(options->rows + batches * FACT_ROWS_A_BATCH),
                         .fact_rows_first = (uint32_t)options->rows,
                         .rows_first = (uint32_t)(10000 + batches * ROWS_GONE),
                         .fact_rows_step = FACT_ROWS_A_BATCH,
                         .rows_step = ROWS_NEW,
                         .rows_leaving = (uint32_t)(batches * ROWS_GONE) };
    for (uint32_t d = 0; d < dimensions; d++) {
        shape.attributes[d] = ATTRIBUTES;
    }
    mixed_star star;
    star_data_make(&star.data, &shape);
    leaving_make(&star, batches);
    duel *it = memory_take(sizeof *it);
    *it = (duel){ .runs = options->runs, .sides_count = 3 };
    it->sides[0] = (star_options){ .grouped = GROUPED };
    it->sides[1] = (star_options){ .grouped = GROUPED, .planner = &mobius };
    it->sides[2] = (star_options){ .grouped = GROUPED, .planner = &telescoping };
    duel_run(it, &(duel_story){ shape, mixed_fill, &star, options->batches });
    mixed_print(it, options, dimensions);
    bool equal = !it->unequal;
    free(it);
    for (uint32_t c = 0; c <= dimensions; c++) {
        free(star.leaving[c]);
    }
    free(star.leaving_first);
    star_data_free(&star.data);
    return equal;
}

/* ---- A hot row ----------------------------------------------------------------------------------------------------------------- */

#define HOT_CHANGES 1000

/* Side 0 sets the row's attribute once, side 1 to others before. */
static void hot_fill(const void *context, star_engine *star, ivm_batch *batch, size_t side, uint64_t number)
{
    const star_data *data = context;
    if (!number) {
        for (uint32_t d = 0; d < DIMENSIONS; d++) {
            star_batch_dimension(star, batch, d, (star_part){ data, 0, data->shape.dimension_rows });
        }
        star_batch_fact_rows(star, batch, (star_part){ data, 0, data->shape.fact_rows });
        return;
    }
    for (uint64_t left = side ? HOT_CHANGES : 1; left-- > 0;) {
        int64_t attribute = (int64_t)((number + left) % ATTRIBUTES);
        ivm_batch_upsert(batch, star->dimensions[0], ivm_int64(data->keys[0][0]), ivm_int64(attribute));
    }
}

bool prune_hot(const prune_options *options)
{
    star_shape shape = { .dimensions = DIMENSIONS,
                         .dimension_rows = 100,
                         .attributes = { ATTRIBUTES, ATTRIBUTES, ATTRIBUTES, ATTRIBUTES },
                         .fact_rows = (uint32_t)options->rows };
    star_data data;
    star_data_make(&data, &shape);
    duel *it = memory_take(sizeof *it);
    *it = (duel){ .runs = options->runs, .sides_count = 2 };
    it->sides[0] = it->sides[1] = (star_options){ .grouped = GROUPED };
    duel_run(it, &(duel_story){ shape, hot_fill, &data, options->batches * 10 });
    double once = it->median[0] / 1000, hot = it->median[1] / 1000;
    figure_add(&(figure){ "prune", "once_us", once, NULL, 0 });
    figure_add(&(figure){ "prune", "hot_us", hot, NULL, 0 });
    figure_add(&(figure){ "prune", "hot_over_once", hot / once, NULL, 0 });
    if (!options->json) {
        printf("a dimension row under %llu fact rows changed %d times in a batch: %8.1f us; once: %8.1f; hot over once %.2f\n",
               (unsigned long long)(options->rows / 100), HOT_CHANGES, hot, once, hot / once);
    }
    bool equal = !it->unequal;
    free(it);
    star_data_free(&data);
    return equal;
}
