/* The command line: options anywhere among the operands, as --name value or --name=value. One mistake is one line on standard error
 * and exit code 2. */
#ifndef IVM_BENCH_OPTION_H
#define IVM_BENCH_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_HOLDS = 0, EXIT_WRONG = 1, EXIT_USAGE = 2 };

/* FLAG: *target is a bool. WORD: an int, the word's position in `words`. NUMBER: a uint64_t of at least 1. TEXT: a const char *. */
typedef enum option_kind { OPTION_FLAG, OPTION_WORD, OPTION_NUMBER, OPTION_TEXT } option_kind;

typedef struct option_definition {
    const char *name; /* "--rows"; NULL ends a list */
    option_kind kind;
    void *target;
    const char *const *words; /* ends with NULL */
} option_definition;

typedef struct operand_list {
    char **texts;
    size_t count;
} operand_list;

/* Reads argv[1..]; the operands are gathered at the front of argv, which `operands` borrows. Returns false where the command is
 * over: after --help (*exit_code 0) and after a mistake (*exit_code 2). */
bool options_read(const option_definition *options, const char *help, int argc, char **argv, operand_list *operands, int *exit_code);

/* Prints "ivm: ..." as one line on standard error and gives EXIT_USAGE. */
int usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
