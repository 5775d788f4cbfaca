/* Pruning while dimensions gain rows: stars without pruning over pruned ones, and tracked foreign keys over relied ones. */
#include "arena.h"
#include "prune.h"

#include <stdio.h>
#include <stdlib.h>

#define FACT_ROWS_A_BATCH 1000
#define ROWS_A_BATCH 100
#define GROUPED 2

typedef struct growing_star {
    star_data data;
} growing_star;

/* Rows known before batch 1, then a step's worth of each with every batch. */
static star_shape growing_shape(uint32_t dimensions, uint32_t rows_first, uint32_t rows_step, uint64_t fact_rows, uint64_t batches)
{
    star_shape shape = { .dimensions = dimensions,
                         .dimension_rows = (uint32_t)(rows_first + (batches + 1) * rows_step),
                         .fact_rows = (uint32_t)(fact_rows + (batches + 1) * FACT_ROWS_A_BATCH),
                         .fact_rows_first = (uint32_t)fact_rows,
                         .rows_first = rows_first,
                         .fact_rows_step = FACT_ROWS_A_BATCH,
                         .rows_step = rows_step };
    for (uint32_t d = 0; d < dimensions; d++) {
        shape.attributes[d] = 16;
    }
    return shape;
}

static void growing_fill(const void *context, star_engine *star, ivm_batch *batch, size_t side, uint64_t number)
{
    (void)side;
    const star_data *data = &((const growing_star *)context)->data;
    const star_shape *shape = &data->shape;
    star_part rows = { data, 0, shape->rows_first }, facts = { data, 0, shape->fact_rows_first };
    if (number) {
        rows = (star_part){ data, shape->rows_first + (number - 1) * shape->rows_step, shape->rows_step };
        facts = (star_part){ data, shape->fact_rows_first + (number - 1) * FACT_ROWS_A_BATCH, FACT_ROWS_A_BATCH };
    }
    for (uint32_t d = 0; d < shape->dimensions && rows.count; d++) {
        star_batch_dimension(star, batch, d, rows);
    }
    star_batch_fact_rows(star, batch, facts);
}

static void growing_duel(duel *it, const star_shape *shape, uint64_t batches)
{
    growing_star star;
    star_data_make(&star.data, shape);
    duel_run(it, &(duel_story){ *shape, growing_fill, &star, batches });
    star_data_free(&star.data);
}

/* ---- Without pruning ----------------------------------------------------------------------------------------------------------- */

static void growing_print(const duel *it, const prune_options *options, uint32_t n)
{
    double pruned = it->median[0], mobius = it->median[1], telescoping = it->median[2];
    char speedup[32], beside[40];
    snprintf(speedup, sizeof speedup, "pruned_speedup_%u", n);
    snprintf(beside, sizeof beside, "telescoping_speedup_%u", n);
    figure_add(&(figure){ "prune", "pruned_ns", pruned / FACT_ROWS_A_BATCH, "dimensions", n });
    figure_add(&(figure){ "prune", "unpruned_ns", mobius / FACT_ROWS_A_BATCH, "dimensions", n });
    figure_add(&(figure){ "prune", "telescoping_ns", telescoping / FACT_ROWS_A_BATCH, "dimensions", n });
    figure_add(&(figure){ "prune", speedup, mobius / pruned, "dimensions", n });
    figure_add(&(figure){ "prune", beside, telescoping / pruned, "dimensions", n });
    if (options->json) {
        return;
    }
    printf("%u dimensions gaining rows: pruned to %llu terms a batch %6.1f ns a fact row; all %llu (Moebius) %8.1f, %5.1f times as long; "
           "%llu (telescoping) %6.1f, %4.1f times\n",
           n, (unsigned long long)(it->terms[0] / options->batches), pruned / FACT_ROWS_A_BATCH,
           (unsigned long long)(it->terms[1] / options->batches), mobius / FACT_ROWS_A_BATCH, mobius / pruned,
           (unsigned long long)(it->terms[2] / options->batches), telescoping / FACT_ROWS_A_BATCH, telescoping / pruned);
    fflush(stdout);
}

bool prune_growing(const prune_options *options, uint32_t dimensions)
{
    static const ivm_planner_options mobius = { IVM_FK_PRUNING_OFF, IVM_JOIN_MOBIUS, false };
    static const ivm_planner_options telescoping = { IVM_FK_PRUNING_OFF, IVM_JOIN_TELESCOPING, false };
    star_shape shape = growing_shape(dimensions, 1000, ROWS_A_BATCH, options->rows, options->batches);
    duel *it = memory_take(sizeof *it);
    *it = (duel){ .runs = options->runs, .sides_count = 3 };
    it->sides[0] = (star_options){ .grouped = GROUPED };
    it->sides[1] = (star_options){ .grouped = GROUPED, .planner = &mobius };
    it->sides[2] = (star_options){ .grouped = GROUPED, .planner = &telescoping };
    growing_duel(it, &shape, options->batches);
    growing_print(it, options, dimensions);
    bool equal = !it->unequal;
    free(it);
    return equal;
}

/* ---- Tracked ------------------------------------------------------------------------------------------------------------------- */

bool prune_tracked(const prune_options *options, bool dimensions_grow)
{
    uint64_t batches = options->batches * 10;
    star_shape shape = growing_shape(4, 100000, dimensions_grow ? ROWS_A_BATCH : 0, options->rows, batches);
    duel *it = memory_take(sizeof *it);
    *it = (duel){ .runs = options->runs, .sides_count = 2 };
    it->sides[0] = (star_options){ .grouped = GROUPED, .trust = IVM_RELY };
    it->sides[1] = (star_options){ .grouped = GROUPED, .trust = IVM_TRACKED };
    growing_duel(it, &shape, batches);
    double rely = it->median[0] / FACT_ROWS_A_BATCH, tracked = it->median[1] / FACT_ROWS_A_BATCH;
    uint32_t rows = dimensions_grow ? ROWS_A_BATCH : 0;
    figure_add(&(figure){ "prune", "rely_ns", rely, "dimension_rows", rows });
    figure_add(&(figure){ "prune", "tracked_ns", tracked, "dimension_rows", rows });
    figure_add(&(figure){ "prune", dimensions_grow ? "tracked_over_rely" : "tracked_over_rely_facts", tracked / rely, NULL, 0 });
    if (!options->json) {
        printf("foreign keys tracked, %3u new rows of each dimension: %6.1f ns a fact row; relied on %6.1f; tracked over rely %.2f\n", rows,
               tracked, rely, tracked / rely);
        fflush(stdout);
    }
    bool equal = !it->unequal;
    free(it);
    return equal;
}
