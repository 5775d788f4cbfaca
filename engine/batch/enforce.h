/* Enforced facts: a batch that would leave a child row without its parent is refused. */
#ifndef IVM__ENFORCE_H
#define IVM__ENFORCE_H

#include "stage.h"

/* Checks every enforced fact against what the batch changed, net; the tables' deltas are applied. fk_violation names both tables, the columns and
 * the key. Cost: a lookup for each child row that came and each parent row that went. */
ivm_status ivm__enforce_check(ivm__step *step) IVM_MUST_CHECK;
/* The same for all rows that a fact's child holds now: before the fact is declared. */
ivm_status ivm__enforce_present(ivm__arena *scratch, const ivm_fact *fact, ivm_error *error) IVM_MUST_CHECK;

#endif
