/* Explain inside: one decision told in three forms. */
#ifndef IVM__EXPLAIN_H
#define IVM__EXPLAIN_H

#include "plan.h"

#define IVM__EXPLAIN_MASKS_MAX 64     /* masks and terms that are listed */
#define IVM__EXPLAIN_ALL_LEAVES_MAX 6 /* joins of so many leaves list every mask */

/* Text that grows; malloc, for the caller frees it without an engine. */
typedef struct ivm__writer {
    char *text;
    size_t size, capacity;
    bool failed;
} ivm__writer;

void ivm__write(ivm__writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* In quotes, escaped as JSON (and DOT) wants. */
void ivm__write_quoted(ivm__writer *writer, const char *text, size_t size);
/* The mask in binary, highest leaf first. */
void ivm__write_mask(ivm__writer *writer, uint64_t mask, uint32_t leaves_count);

/* One join as it is told. */
typedef struct ivm__told_join {
    const ivm__graph *graph;
    ivm__decision decision;
    const ivm__edges *edges; /* those of the decision's facts; empty where pruning is off */
    const ivm__operator *operator;
    uint64_t drivers; /* the leaves that may ever drive a term */
} ivm__told_join;

/* An index that terms of some drivers read, or would. */
typedef struct ivm__told_index {
    ivm__join_index index;
    uint64_t bytes; /* 0 where it is not built */
    uint64_t drivers;
} ivm__told_index;

typedef struct ivm__told {
    const char *view;
    bool stated;
    const ivm__told_join *joins;
    uint32_t joins_count;
} ivm__told;

/* A leaf's alias; of a derived leaf the operator's name. */
void ivm__leaf_name(const ivm__graph *graph, uint32_t leaf, const char **name, size_t *size);
/* "unchanged", "insert_only" or "mixed". */
const char *ivm__leaf_shape(const ivm__told_join *join, uint32_t leaf);
/* A join column's name with its alias. */
const char *ivm__join_column_name(const ivm__graph *graph, uint32_t column);
/* The first masks that are run in ascending order; how many were written. */
uint32_t ivm__masks_run(const ivm__told_join *join, uint64_t masks[IVM__EXPLAIN_MASKS_MAX]);
/* "pruned", "empty" or, of one that is neither, the word given. */
const char *ivm__mask_state(const ivm__told_join *join, uint64_t mask, const char *left);
/* "off", "batch" or "row". */
const char *ivm__pruning_word(ivm_fk_pruning pruning);

/* The join's indexes one by one, by leaves: *next 0 at first; false at the end. */
bool ivm__told_index_next(const ivm__told_join *join, uint32_t *next, ivm__told_index *told);

void ivm__explain_text(ivm__writer *writer, const ivm__told *told);
void ivm__explain_json(ivm__writer *writer, const ivm__told *told);
void ivm__explain_dot(ivm__writer *writer, const ivm__told *told);

#endif
