/* Explain inside: one decision told in three forms. */
#ifndef IVM__EXPLAIN_H
#define IVM__EXPLAIN_H

#include "plan.h"

#define IVM__EXPLAIN_MASKS_MAX 64     /* masks and terms that are listed */
#define IVM__EXPLAIN_UNUSED_MAX 64    /* facts that prune nothing, by leaves */
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
    bool made;               /* false: no push has come yet */
    const ivm__edges *edges; /* those of the decision's facts; empty where pruning is off */
    uint64_t entries;        /* the leaves that cycles of them keep outside the skip mask */
    ivm_fact *const *facts;  /* declared now, or stated */
    size_t facts_count;
    const ivm__operator *operator;
    uint64_t drivers; /* the leaves that may ever drive a term */
} ivm__told_join;

/* Why a fact takes no part in pruning from one leaf to another. */
typedef enum ivm__unused_why {
    IVM__UNUSED_NOT,       /* it does, or has nothing to do with the two */
    IVM__UNUSED_BEFORE,    /* the view's first push */
    IVM__UNUSED_OFF,       /* pruning is */
    IVM__UNUSED_LATER,     /* declared after the state that the step started from */
    IVM__UNUSED_WITHIN,    /* a table's own, by batch */
    IVM__UNUSED_AWAITED,   /* by batch, a tracked child waited */
    IVM__UNUSED_CYCLE,     /* the parent cannot be reached from outside */
    IVM__UNUSED_DERIVED,   /* a leaf is more than its table's rows */
    IVM__UNUSED_CONCEALED, /* a leaf does not have the column as it is */
    IVM__UNUSED_APART      /* a pair of columns is not equated */
} ivm__unused_why;

typedef struct ivm__told_unused {
    const ivm_fact *fact;
    uint32_t child, parent; /* leaves */
    ivm__unused_why why;
    uint32_t column; /* concealed or apart: the first pair that is */
} ivm__told_unused;

/* Where a walk over them is; zeroed at first. */
typedef struct ivm__unused_walk {
    size_t fact;
    uint32_t pair;
    uint64_t children, parents;       /* the leaves that the fact leads from and to */
    uint64_t read_child, read_parent; /* those that read its tables, whatever they make of their rows */
} ivm__unused_walk;

/* An index that terms of some drivers read, or would. */
typedef struct ivm__told_index {
    ivm__join_index index;
    uint64_t bytes; /* 0 where it is not built */
    uint64_t drivers;
} ivm__told_index;

typedef struct ivm__told {
    const char *view;
    bool stated;
    bool pushed; /* a push is told of; false: none has come yet, or it is stated */
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

/* The facts that prune nothing one by one; false at the end. */
bool ivm__told_unused_next(const ivm__told_join *join, ivm__unused_walk *walk, ivm__told_unused *told);
/* The reason as JSON tells it, and as a sentence. */
const char *ivm__unused_word(ivm__unused_why why);
void ivm__write_unused_why(ivm__writer *writer, const ivm__told_join *join, const ivm__told_unused *told);

void ivm__explain_text(ivm__writer *writer, const ivm__told *told);
void ivm__explain_json(ivm__writer *writer, const ivm__told *told);
void ivm__explain_dot(ivm__writer *writer, const ivm__told *told);

#endif
