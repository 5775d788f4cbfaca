/* Steps: what a push and a refresh have in common. One of them at a time carries its changes through the views, and then either all is committed or
 * all is undone; who asked to be told is told after that, with the lock given back. */
#ifndef IVM__STEP_H
#define IVM__STEP_H

#include "catalog.h"

/* Runs the immediate views that a push reaches, all of them, or, where the step is no push, those that read a view that has run. Collects what
 * deferred views will want. On failure all of it must be undone. */
ivm_status ivm__views_run(ivm__step *step, bool pushed) IVM_MUST_CHECK;
/* Of views that did not run the last changes are none from now on. Neither can fail. */
void ivm__views_commit(ivm__step *step);
void ivm__views_undo(ivm_engine *engine);

/* Does the work in a step of its own: timed, counted, its arenas given back. `stats` and `error` may be NULL; the error is touched only where the work
 * failed, and then in both members. The engine has been entered. */
typedef ivm_status ivm__work(ivm__step *step, void *subject);
ivm_status ivm__step_do(ivm_engine *engine, ivm__work *work, void *subject, ivm_stats *stats, ivm_error *error) IVM_MUST_CHECK;
/* Calls the callbacks that the step has left to call, and leaves the engine. */
void ivm__engine_leave_telling(ivm_engine *engine);
/* Several steps that end as one group: what one of them has to tell waits for the leaving, where callbacks are called step by step. */
void ivm__telling_keep(ivm_engine *engine);
/* Nobody is told of the steps kept. */
void ivm__telling_drop(ivm_engine *engine);
/* A push, of an ivm_batch: work of a step. */
ivm_status ivm__push_step(ivm__step *step, void *batch) IVM_MUST_CHECK;

/* Sets the caller's error, in both members, from a step's cause. Returns the status. */
ivm_status ivm__cause_pass(ivm_error *error, const ivm_error *cause, ivm_status status) IVM_MUST_CHECK;

#endif
