/* `ivm bench star`: star.c reads the options, star_inserts.c measures fact rows that come against the floor, star_changes.c batches that change
 * dimensions too. */
#ifndef IVM_BENCH_STAR_H
#define IVM_BENCH_STAR_H

#include "measure.h"
#include "star_engine.h"

typedef struct star_request {
    star_name name;
    bool zipf;
    uint64_t rows, batch, runs; /* batch 0: those that the bars are about */
    uint64_t threads;           /* of inserts: engines with so many are measured too; 1: none */
    bool sweep, json;
    char variant[32]; /* what figures are labelled with */
} star_request;

typedef enum star_change { STAR_INSERTS, STAR_MIXED, STAR_UPDATE, STAR_EVERYTHING } star_change;

/* Each prints its figures and is false where a view does not hold what it must. */
bool star_inserts(const star_request *request);
bool star_changes(const star_request *request, star_change change);

#endif
