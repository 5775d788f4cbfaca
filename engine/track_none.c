#include "track.h"
ivm_status ivm__track_held(ivm__step *step, ivm_fact *fact, const ivm__split *split, ivm__held *held)
{
    (void)step;
    (void)fact;
    (void)split;
    *held = (ivm__held){ 0 };
    return IVM_OK;
}
ivm_status ivm__track_awaited(ivm__step *step, ivm_fact *fact, bool *awaited)
{
    (void)step;
    (void)fact;
    *awaited = false;
    return IVM_OK;
}
