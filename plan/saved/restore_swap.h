/* All that a restore builds beside an engine's catalog, and the exchange that puts it in place: twice, and all is as it was. */
#ifndef IVM__RESTORE_SWAP_H
#define IVM__RESTORE_SWAP_H

#include "checkpoint_state.h"
#include "load_table.h"
#include "plan.h"

/* A view's program anew, over the view's own tree, which stays the view's until the move. */
typedef struct ivm__view_beside {
    ivm__planned *planned;
    ivm__program program;
    struct ivm__pending *pending; /* a deferred view's */
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
/* The rows of tables, the programs of views, what is pending and who waits become those beside, and the other way round. Cannot fail. */
void ivm__beside_exchange(ivm__beside *it);
/* Once exchanged: whether what the engine holds now can be (load_check.h). corrupt, out_of_memory. */
ivm_status ivm__beside_check(const ivm__beside *it, ivm__step *step) IVM_MUST_CHECK;
/* Once exchanged: places in time and position are those of beside, too. Cannot fail. */
void ivm__beside_publish(const ivm__beside *it);
void ivm__beside_end(ivm__beside *it); /* frees what is beside */

#endif
