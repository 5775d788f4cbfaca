/* Compiling, inside: what compile.c, compile_join.c and weights.c share. */
#ifndef IVM__COMPILE_H
#define IVM__COMPILE_H

#include "plan.h"

typedef struct ivm__compiler {
    ivm_engine *engine;
    const char *view;
    ivm__planned *planned;
    ivm__program *program;
    uint32_t joins_next;
    bool judges; /* the program is one that judges rows, not the view's: see weights.c */
} ivm__compiler;

static inline void ivm__wire(ivm__operator *operator, ivm__operator * reader, uint32_t port)
{
    operator->next = reader;
    operator->next_port = port;
}

/* The operator of a node, after those of its inputs. `judged`: its reader finds out by itself whether one of its rows weighs too much. */
ivm_status ivm__compile_node(ivm__compiler *it, ivm__node *node, bool judged, ivm__operator **operator) IVM_MUST_CHECK;
ivm_status ivm__compile_join(ivm__compiler *it, ivm__node *node, ivm__operator **operator) IVM_MUST_CHECK;
ivm_status ivm__compile_outer(ivm__compiler *it, ivm__node *node, ivm__operator **operator) IVM_MUST_CHECK;
/* Hands an operator, if it could be made, to the program. */
ivm_status ivm__compile_add(ivm__compiler *it, ivm_status status, ivm__operator *made, ivm__operator **operator) IVM_MUST_CHECK;
/* A copy of the tree's expression; NULL of NULL. */
ivm_status ivm__compile_copy(ivm__compiler *it, const ivm__expression *from, ivm__expression **to) IVM_MUST_CHECK;
/* Which of a node's columns the program carries. NULL: out of memory. */
const bool *ivm__compile_needed(ivm__compiler *it, const ivm__node *node);

/* ---- Weights (weights.c) ------------------------------------------------------------------------------------------------------------- */

/* Whether the column still is: a view's plan keeps the places of columns that were dropped from its tables and that it does not read. */
bool ivm__column_is_there(const ivm__node *node, uint32_t column);
/* Puts what watches the node's weights above its operator, where one is wanted; *operator becomes it. */
ivm_status ivm__compile_watch(ivm__compiler *it, const ivm__node *node, bool judged, ivm__operator **operator) IVM_MUST_CHECK;
/* Whether a reader like this one judges its input's rows with its own. */
bool ivm__node_judges_input(const ivm__node *node, const ivm__node *input, bool judged);

#endif
