/* Durable engines in a library built without them: none can be opened. */
#include "ivm/durable.h"

#include "memory.h"

static ivm_status none(ivm_error *error)
{
    return ivm__fail(error, IVM_UNSUPPORTED, "this library was built without durable engines (IVM_DURABLE)");
}

ivm_status ivm_durable_open(const char *directory, const ivm_durable_options *options, ivm_engine **engine, ivm_recovery *recovery,
                            ivm_error *error)
{
    (void)directory;
    (void)options;
    (void)engine;
    (void)recovery;
    return none(error);
}

ivm_status ivm_durable_checkpoint(ivm_engine *engine, ivm_error *error)
{
    (void)engine;
    return none(error);
}

ivm_status ivm_durable_sync(ivm_engine *engine, ivm_error *error)
{
    (void)engine;
    return none(error);
}

ivm_status ivm_durable_state(ivm_engine *engine, ivm_durable_status *status, ivm_error *error)
{
    (void)engine;
    (void)status;
    return none(error);
}
