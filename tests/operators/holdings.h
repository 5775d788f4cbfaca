/* What operators hold, as bytes, and loaded from them: a plain saver and loader for tests. Rows are sorted by their values with the C library's
 * sort; equal content gives equal bytes. The loader leaves order and doubled rows to the operators. */
#ifndef TEST_HOLDINGS_H
#define TEST_HOLDINGS_H

#include "bytes.h"
#include "catalog.h"

typedef struct holdings {
    uint8_t *bytes;
    size_t size, capacity;
    uint32_t chunk_rows; /* at most so many a chunk; 0: as many as chunks have */
} holdings;

/* Appends what an operator, or all of a program, hold. */
void holdings_save(holdings *it, const ivm__operator *operator);
void holdings_save_program(holdings *it, const ivm__program *program);
/* Into operators just made, by a step of its own; all are settled. */
ivm_status holdings_load(const holdings *it, ivm_engine *engine, ivm__operator *operator, ivm_error * error);
ivm_status holdings_load_program(const holdings *it, ivm_engine *engine, const ivm__program *program, ivm_error *error);
bool holdings_equal(const holdings *a, const holdings *b); /* says where not */
void holdings_copy(holdings *to, const holdings *from);
/* Bits turned, bytes overwritten, cut, doubled: a few of these. */
void holdings_spoil(holdings *it, uint64_t *random);
void holdings_free(holdings *it);

/* Whether the store's last step changed nothing. */
bool holdings_is_still(const ivm__store *store);
/* Asserts that the program holds what `it` says, and frees `it`. */
void holdings_assert_program(holdings *it, const ivm__program *program, const char *what, uint64_t seed);

#endif
