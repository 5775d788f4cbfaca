/* Holdings on their way in: what every operator's load() has in common (saver.h). */
#ifndef IVM__HOLDING_H
#define IVM__HOLDING_H

#include "program.h"

/* The chunk's rows, of which there is none yet, as part of the store's step: row i gets the id rows_end + i. corrupt where a row comes twice, weighs
 * nothing or more than int64. The caller commits. Cost: a lookup a row. */
ivm_status ivm__holding_rows(const ivm__operator *self, ivm__zset *rows, ivm__step *step, const ivm__chunk *chunk) IVM_MUST_CHECK;
/* The same, committed: for rows that have no payload and nothing beside them. */
ivm_status ivm__holding_rows_alone(const ivm__operator *self, ivm__zset *rows, ivm__step *step, const ivm__chunk *chunk) IVM_MUST_CHECK;
/* Whether every row weighs 1. */
bool ivm__holding_is_single(const ivm__chunk *chunk);
/* A sum of weights, 16 bytes: corrupt where it is so near an end of 128 bits that rows added one by one could bring it there. */
ivm_status ivm__holding_count(const ivm__operator *self, ivm__step *step, ivm__feed *from, ivm__weight *count) IVM_MUST_CHECK;
/* The bytes of this operator's state cannot be. Returns corrupt. */
ivm_status ivm__holding_corrupt(const ivm__operator *self, ivm__step *step, const char *what);

#endif
