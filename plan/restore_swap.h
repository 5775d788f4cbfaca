/* All that a restore builds beside an engine's catalog, and the move that puts it in place. */
#ifndef IVM__RESTORE_SWAP_H
#define IVM__RESTORE_SWAP_H

#include "checkpoint_state.h"
#include "load_table.h"
#include "plan.h"

/* A view's program anew, over the view's own tree, which stays the view's until the move. */
typedef struct ivm__view_beside {
    ivm__planned *planned;
    ivm__program program;
    ivm__zset *pending; /* by source of a deferred view */
} ivm__view_beside;

/* Arrays by the engine's lists, in the arena. */
typedef struct ivm__beside {
    ivm_engine *engine;
    ivm__arena *arena;
    ivm__table_rows *tables;
    struct ivm__track **tracks; /* by fact; NULL where none is kept */
    ivm__view_beside *views;
    ivm__state state;
    uint8_t position[IVM_POSITION_SIZE_MAX];
    uint32_t position_size;
} ivm__beside;

/* Compiles each view's program; rows, tracks and pending rows are none yet. End it, whatever the outcome. */
ivm_status ivm__beside_make(ivm__beside *it, ivm_engine *engine, ivm__arena *arena, ivm_error *error) IVM_MUST_CHECK;
/* The engine becomes what was built, and gives up what it was. Cannot fail. */
void ivm__beside_move(ivm__beside *it);
/* Rows, programs and tracks change places with the engine's; nothing else does. Cannot fail, and is taken back by another. */
void ivm__beside_exchange(ivm__beside *it);
void ivm__beside_end(ivm__beside *it); /* frees what was not moved */

#endif
