/* Expressions: typed trees computed over chunks, a function and a loop a node, no dispatch a row.
 *
 * `and or coalesce in case` compute an argument only for the rows that the ones before did not decide; all others compute all arguments.
 * A row whose result is out of range is marked failed and goes on as null; what its failing means is the operator's business. */
#ifndef IVM__EXPRESSION_H
#define IVM__EXPRESSION_H

#include "program.h"

typedef enum ivm__function {
    IVM__ADD,
    IVM__SUBTRACT,
    IVM__MULTIPLY,
    IVM__DIVIDE,
    IVM__NEGATE,
    IVM__DIV,
    IVM__REMAINDER,
    IVM__EQUAL,
    IVM__NOT_EQUAL,
    IVM__LESS,
    IVM__LESS_EQUAL,
    IVM__GREATER,
    IVM__GREATER_EQUAL,
    IVM__AND,
    IVM__OR,
    IVM__NOT,
    IVM__IS_NULL,
    IVM__IS_NOT_NULL,
    IVM__COALESCE,
    IVM__CASE,
    IVM__IN,
    IVM__LEAST,
    IVM__GREATEST,
    IVM__ABS,
    IVM__CONCAT,
    IVM__LOWER,
    IVM__UPPER,
    IVM__LENGTH,
    IVM__CAST,
    IVM__COLUMN,
    IVM__LITERAL
} ivm__function;

/* A checked node: its type is settled and its arguments are of the types the function wants, casts made explicit, with these exceptions:
 * decimals of different scale, and int64 with decimal, go uncast into arithmetic, comparisons, in, least and greatest, which are exact on
 * them (a cast could overflow where the result does not). type 0: an untyped null, whose vector is all null. */
typedef struct ivm__expression {
    ivm__function function;
    ivm_type type;
    uint32_t column;   /* IVM__COLUMN: of the chunk */
    bool is_null;      /* IVM__LITERAL */
    bool fallible;     /* some row can fail */
    bool makes_texts;  /* worth computing for the rows alone that need it */
    ivm__wide cell;    /* IVM__LITERAL; a string holds a reference to its text */
    ivm__texts *texts; /* IVM__LITERAL of a string: where that reference goes back to */
    uint32_t arguments_count;
    struct ivm__expression **arguments;
} ivm__expression;

/* Nodes are made by these three alone. Takes the arguments, whatever the outcome, and copies the array; a NULL among them is passed on.
 * NULL: out of memory. */
ivm__expression *ivm__expression_make(ivm__memory *memory, ivm__function function, ivm_type type, ivm__expression **arguments,
                                      uint32_t arguments_count);
ivm__expression *ivm__expression_column(ivm__memory *memory, uint32_t column, ivm_type type);
ivm__expression *ivm__expression_literal(ivm__memory *memory, ivm__texts *texts, ivm_type type, bool is_null, ivm__wide cell);
/* NULL is fine. */
void ivm__expression_free(ivm__expression *expression, ivm__memory *memory, ivm__texts *texts);
/* Whether a row can fail: used to keep what is fallible in its place. Computing what is not never touches `failed`, which may be NULL. */
bool ivm__expression_is_fallible(const ivm__expression *expression);
/* Marks the columns it reads. */
void ivm__expression_mark_columns(const ivm__expression *expression, bool *read);

/* Computes the expression for all rows of the chunk into a vector in the arena (a plain column: the chunk's own vector). failed: a byte a
 * row, set to 1 where the row fails, never cleared. Fails for memory alone. */
ivm_status ivm__expression_compute(const ivm__expression *expression, ivm__step *step, const ivm__chunk *chunk, ivm__vector *out,
                                   uint8_t *failed) IVM_MUST_CHECK;
/* A condition: writes the positions of the rows for which it is true and that did not fail; *count of them. */
ivm_status ivm__expression_select(const ivm__expression *condition, ivm__step *step, const ivm__chunk *chunk, uint32_t *rows,
                                  uint32_t *count, uint8_t *failed) IVM_MUST_CHECK;

#endif
