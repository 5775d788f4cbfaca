/* Checking expressions, inside: what check_expression.c and check_function.c share. Not for other files. */
#ifndef IVM__CHECK_EXPRESSION_H
#define IVM__CHECK_EXPRESSION_H

#include "names.h"

/* What an expression may name. */
typedef struct ivm__scope {
    ivm_engine *engine;
    ivm__memory *memory;
    ivm__names *names;
    ivm_error *error;
} ivm__scope;

/* The value as this type; takes it, whatever the outcome. NULL: out of memory. */
ivm__expression *ivm__scope_cast(const ivm__scope *scope, ivm__expression *value, ivm_type type);

/* A function and its checked arguments; the check finds the function, puts casts into the arguments' places and sets the type. */
typedef struct ivm__call {
    const char *name;
    ivm__expression **arguments;
    uint32_t arguments_count;
    ivm__function function;
    ivm_type type;
} ivm__call;

/* invalid_plan: no such function, or not of so many arguments; type_mismatch. After a failure the arguments are still the caller's, one
 * that memory ended on is NULL. */
ivm_status ivm__call_check(const ivm__scope *scope, ivm__call *call) IVM_MUST_CHECK;

/* A type for a message; "null" for none. */
typedef struct ivm__type_name {
    char text[IVM_TYPE_TEXT_SIZE];
} ivm__type_name;
ivm__type_name ivm__type_name_of(ivm_type type);

#endif
