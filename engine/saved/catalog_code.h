/* The catalog as bytes: tables and facts; views follow them (plan/saved/catalog_view.h).
 *
 *     tables   count, each: name, flags, columns (name, type, may it be null), key (positions), partition (position) where it has one
 *     facts    count, each: child and parent (positions in the list of tables), trust, pairs of columns (positions)
 *
 * It says what was declared, in its order: not ids, handles, callbacks or how often anything was pushed. */
#ifndef IVM__CATALOG_CODE_H
#define IVM__CATALOG_CODE_H

#include "catalog.h"
#include "code.h"

void ivm__tables_code(ivm__code *code, const ivm_engine *engine);
void ivm__facts_code(ivm__code *code, const ivm_engine *engine);
/* One of each, for whoever compares or tells which one differs. */
void ivm__table_code(ivm__code *code, const ivm_table *table);
void ivm__fact_code(ivm__code *code, const ivm_fact *fact);

/* Declares what the bytes say, in an engine that has none yet. What cannot be declared is corrupt; what was by then stays, for
 * ivm__catalog_clear(). corrupt, out_of_memory. */
ivm_status ivm__tables_decode(ivm__decode *decode, ivm_engine *engine, ivm_error *error) IVM_MUST_CHECK;
ivm_status ivm__facts_decode(ivm__decode *decode, ivm_engine *engine, ivm_error *error) IVM_MUST_CHECK;
/* What a declaration made from bytes failed with: corrupt, but for memory. `what`: a table, a fact or a view. */
ivm_status ivm__catalog_fail(const ivm_error *cause, const char *what, ivm_error *error);

/* The same of one each; the engine may have others. */
ivm_status ivm__table_decode(ivm__decode *decode, ivm_engine *engine, ivm_error *error) IVM_MUST_CHECK;
ivm_status ivm__fact_decode(ivm__decode *decode, ivm_engine *engine, ivm_error *error) IVM_MUST_CHECK;

#endif
