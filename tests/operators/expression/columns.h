/* Columns by hand: eight rows of a few columns, expressions over them, and what is expected of each row. A test names its suite with
 * COLUMNS_SUITE(name). */
#ifndef TEST_COLUMNS_H
#define TEST_COLUMNS_H

#include "allocator.h"
#include "expression.h"
#include "wide.h"

#define ROWS 8u
#define COLUMNS 12u
#define NARROW IVM_DECIMAL(38, 0)
#define BROAD IVM_DECIMAL(38, 1)
#define NIL (INT64_MIN + 12345) /* a null among cells */
#define MIN INT64_MIN
#define MAX INT64_MAX
#define FAIL (INT64_MIN + 54321) /* a row that is expected to fail */

extern test_allocator allocator;
extern ivm__memory memory;
extern ivm__texts texts;
extern ivm__arena scratch;
extern ivm__step step;
extern ivm__vector vectors[COLUMNS];
extern ivm__wide cells[COLUMNS][ROWS];
extern uint8_t nulls[COLUMNS][ROWS], failed[ROWS];
extern ivm__chunk chunk;
extern ivm__vector result; /* of the last compute() */

void open_step(void);
void close_step(void); /* asserts that nothing is left */
#define COLUMNS_SUITE(name) TestSuite(name, .init = open_step, .fini = close_step)

/* Fills a column. */
void wides(uint32_t c, ivm_type type, const ivm__wide *values);
void floats(uint32_t c, const double *values);
#define CELLS(c, type, ...) wides(c, type, (const ivm__wide[ROWS]){ __VA_ARGS__ })
#define FLOATS(c, ...) floats(c, (const double[ROWS]){ __VA_ARGS__ })
ivm__wide text(const char *bytes);
ivm__wide ten(uint32_t exponent);

ivm__expression *column(uint32_t c);
ivm__expression *literal(ivm_type type, ivm__wide value);
ivm__expression *call1(ivm__function function, ivm_type type, ivm__expression *a);
ivm__expression *call2(ivm__function function, ivm_type type, ivm__expression *a, ivm__expression *b);
#define CALL(function, type, ...)                                                                                                          \
    ivm__expression_make(&memory, function, type, (ivm__expression *[]){ __VA_ARGS__ },                                                    \
                         sizeof((ivm__expression *[]){ __VA_ARGS__ }) / sizeof(ivm__expression *))
/* column + 1, which fails at INT64_MAX; and whether that is above 0 */
ivm__expression *plus_one(uint32_t c);
ivm__expression *plus_one_positive(uint32_t c);

/* Computes into `result` and `failed`, and frees. */
void compute(ivm__expression *expression);
void expect_cells(const char *file, int line, const ivm__wide *wanted);
void expect_floats(const char *file, int line, const double *wanted); /* a null is a 0 */
void expect_texts(const char *file, int line, const char *const *wanted);
void expect_failed(const char *file, int line, const uint8_t *wanted);
#define EXPECT(...) expect_cells(__FILE__, __LINE__, (const ivm__wide[ROWS]){ __VA_ARGS__ })
#define EXPECT_FLOATS(...) expect_floats(__FILE__, __LINE__, (const double[ROWS]){ __VA_ARGS__ })
#define EXPECT_TEXTS(...) expect_texts(__FILE__, __LINE__, (const char *const[ROWS]){ __VA_ARGS__ })
#define EXPECT_FAILED(...) expect_failed(__FILE__, __LINE__, (const uint8_t[ROWS]){ __VA_ARGS__ })

#endif
