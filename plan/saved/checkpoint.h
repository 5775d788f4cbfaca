/* Writing a checkpoint, for whoever has to do something of his own as it begins. */
#ifndef IVM__CHECKPOINT_H
#define IVM__CHECKPOINT_H

#include "ivm/checkpoint.h"

typedef struct ivm__checkpoint_target {
    /* Called before the first byte, under the engine's lock: what the checkpoint stands for is what is there now. NULL: nothing to do. */
    ivm_status (*begin)(void *context);
    ivm_write write;
    /* Called when all is written, or has failed with `status`, before the engine may be closed; what it returns is what the call does. NULL: nothing
     * to do. */
    ivm_status (*end)(void *context, ivm_status status);
    void *context; /* of all */
} ivm__checkpoint_target;

/* What ivm_checkpoint() and its like are given, `options` not NULL: invalid_argument where that cannot be. `function` for the message. */
ivm_status ivm__checkpoint_options_check(const char *function, const ivm_engine *engine, bool writes, const ivm_checkpoint_options *options,
                                         ivm_error *error) IVM_MUST_CHECK;

/* ivm_checkpoint(), over options that have been checked. Where `begin` failed, with what it returned; it has told why; the same of `end`. */
ivm_status ivm__checkpoint_write(ivm_engine *engine, const ivm__checkpoint_target *to, const ivm_checkpoint_options *options,
                                 ivm_error *error) IVM_MUST_CHECK;

#endif
