/* The whole catalog as bytes: tables and facts (engine/saved/catalog_code.h), then views.
 *
 *     views    count, each: name, how it is refreshed, plan, of each scan of a table the columns as they were then and are now, of each join
 *              that reads rows not kept the facts that it goes by
 *
 * Equal bytes mean equal programs: what a checkpoint was written with and what it is restored into. */
#ifndef IVM__CATALOG_VIEW_H
#define IVM__CATALOG_VIEW_H

#include "catalog_code.h"
#include "plan.h"

void ivm__catalog_code(ivm__code *code, const ivm_engine *engine);
void ivm__view_code(ivm__code *code, const ivm_view *view); /* of one view */
/* Declares one view, as ivm__view_code() wrote it; the engine may have others. corrupt, out_of_memory. */
ivm_status ivm__view_decode(ivm__decode *decode, ivm_engine *engine, ivm_error *error) IVM_MUST_CHECK;
/* Declares all of it in an engine whose catalog is empty; on failure it is empty again. corrupt where that could not have been written; out_of_memory. */
ivm_status ivm__catalog_decode(ivm_engine *engine, const uint8_t *bytes, size_t size, ivm_error *error) IVM_MUST_CHECK;
/* invalid_argument: the engine's catalog is not the one of these bytes; names the first table, fact or view that differs. */
ivm_status ivm__catalog_compare(ivm_engine *engine, const uint8_t *bytes, size_t size, ivm_error *error) IVM_MUST_CHECK;
uint64_t ivm__catalog_fingerprint(const uint8_t *bytes, size_t size);

#endif
