/* The floor: the star query written out by hand for one shape, keeping the same rows as the engine. What an engine takes beyond it is the
 * price of generality.
 *
 * And the bare probes: the same slots read a row at a time, sixteen rows ahead, over fact rows packed as rows of 48 bytes, with nothing kept.
 * It shows that the floor is no slow one. */
#ifndef IVM_BENCH_FLOOR_H
#define IVM_BENCH_FLOOR_H

#include "star_data.h"
#include "star_engine.h"

typedef struct floor_slot {
    int64_t key; /* FLOOR_KEY_NONE: empty */
    uint32_t code, used;
} floor_slot;
#define FLOOR_KEY_NONE INT64_MIN

typedef struct floor_dimension {
    floor_slot *slots;
    uint64_t mask;
    uint32_t codes_count;
} floor_dimension;

typedef struct floor_group {
    int64_t sum, count;
} floor_group;

#define FLOOR_DIMENSIONS 4

typedef struct floor_star {
    floor_dimension dimensions[FLOOR_DIMENSIONS];
    floor_group *groups; /* one more than there are: rows without a partner go there */
    uint32_t groups_count;
    int64_t *kept[FLOOR_DIMENSIONS + 1]; /* the fact rows so far, appended */
    size_t kept_count;
} floor_star;

/* Fills the dimensions and touches the memory that the fact rows will take. */
void floor_open(floor_star *floor, const star_data *data);
void floor_close(floor_star *floor);
/* Forgets fact rows and groups. */
void floor_clear(floor_star *floor);
/* Takes in `count` fact rows from position `first` on: one batch. */
void floor_push(floor_star *floor, const star_data *data, size_t first, size_t count);

/* How many groups are not the same in the engine's view, grouped by all four attributes, or are in one of the two alone (floor_compare.c). */
uint64_t floor_unequal(const floor_star *floor, star_engine *star);

/* A fact row as it is packed. */
typedef struct probe_row {
    int64_t keys[FLOOR_DIMENSIONS], amount, weight;
} probe_row;
probe_row *probe_rows_make(const star_data *data);
void probe_run(floor_star *floor, const probe_row *rows, size_t count);

#endif
