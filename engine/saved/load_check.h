/* Whether what was loaded can be together: asked once an engine holds it, between steps, so that each part is found where it always is. corrupt names the
 * section of the stream and what of it cannot be; out_of_memory. What is read of views cannot contradict tables, for a promise may have been broken. */
#ifndef IVM__LOAD_CHECK_H
#define IVM__LOAD_CHECK_H

#include "catalog.h"

/* Children of an enforced fact have their parents; who waits under a tracked one is who has none. Cost: a lookup a row of the child; of a transient one, a
 * key. */
ivm_status ivm__fact_check_loaded(ivm__step *step, ivm_fact *fact) IVM_MUST_CHECK;
/* Of a transient table: its rows are those that wait, and there are none, nor keys of it, unless some have come. Cost: a row's, a lookup a fact. */
ivm_status ivm__table_check_loaded(ivm__step *step, const ivm_table *table, bool came) IVM_MUST_CHECK;
/* The sources of the nth view could have been what they were before what is pending. Cost: a lookup a row that is pending apart. */
ivm_status ivm__view_check_loaded(ivm__step *step, const ivm_view *view, uint32_t nth) IVM_MUST_CHECK;

#endif
