/* An engine of test_growth: the tables and views of model.h, what they hold as digests, and how often it was met while larger slots were filled beside those in
 * use (growth.h). */
#ifndef TEST_GROWTH_SIDE_H
#define TEST_GROWTH_SIDE_H

#include "allocator.h"
#include "model.h"
#include "need.h"

typedef enum growth_trust { GROWTH_NO_FACT, GROWTH_RELY, GROWTH_ENFORCED, GROWTH_TRACKED, GROWTH_TRUSTS } growth_trust;

typedef struct growth_side {
    test_allocator allocator;
    ivm_engine *engine;
    ivm_table *dim, *fact;
    ivm_fact *foreign_key; /* NULL: none */
    ivm_view *views[GROWTH_VIEWS], *late;
    bool dim_extra, fact_extra; /* the table has one more column, null in every row */
} growth_side;

typedef struct growth_engine_kind {
    uint64_t hash_seed;
    uint32_t threads;
    ivm_planner_options planner;
    growth_trust trust;
    bool bag;
} growth_engine_kind;

extern ivm_error growth_error;

#define NEED_OK(call) NEED_STATUS(call, IVM_OK)
#define NEED_STATUS(call, wanted)                                                                                                          \
    do {                                                                                                                                   \
        ivm_status got_status = (call);                                                                                                    \
        if (got_status != (wanted)) {                                                                                                      \
            fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, ivm_status_name(got_status), growth_error.message);          \
            abort();                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

/* An engine without a catalog; the same with tables, a fact and views. */
void growth_open_empty(growth_side *it, const growth_engine_kind *kind);
void growth_open(growth_side *it, const growth_engine_kind *kind);
/* The tables and views of an engine that was restored. */
void growth_find_all(growth_side *it, bool has_fact);
/* Nothing may be left. */
void growth_close(growth_side *it);
/* The model's last changes in one batch. */
ivm_status growth_push(growth_side *it, const growth_model *model);

/* Of all rows; the snapshot stays open and starts anew. */
uint64_t growth_snapshot_digest(ivm_snapshot *snapshot);
uint64_t growth_view_digest(ivm_view *view);
uint64_t growth_changes_digest(ivm_view *view);
uint64_t growth_table_digest(ivm_table *table);
uint64_t growth_orphans_digest(ivm_fact *fact);
uint64_t growth_rows_digest(ivm_snapshot *snapshot, const ivm_rows *rows);

/* What grows beside now. */
typedef struct growth_beside {
    uint64_t slots, wide_from_narrow, pairs, words, words_failed, texts, finders;
} growth_beside;
/* Adds one to each that does, checks every invariant where `validate`. Whether any does. */
bool growth_look(const growth_side *it, bool validate, growth_beside *beside);
/* A key that free pairs of covers of dim.v have. */
int64_t growth_special(const growth_side *it);

#endif
