/* Names of columns, looked up: exact, or behind an alias. See names.c. */
#ifndef IVM__NAMES_H
#define IVM__NAMES_H

#include "plan.h"

typedef struct ivm__name_entry {
    const char *name;
    uint32_t column;
} ivm__name_entry;

/* Columns that expressions may name. They are borrowed, and must stay as they are. */
typedef struct ivm__names {
    ivm__memory *memory;
    const ivm__named_column *columns;
    uint32_t columns_count;
    ivm__name_entry *sorted; /* by name; then by the name behind the alias. NULL until many are asked for */
    uint64_t compared;       /* names, so far */
} ivm__names;

void ivm__names_init(ivm__names *names, ivm__memory *memory, const ivm__named_column *columns, uint32_t columns_count);
void ivm__names_deinit(ivm__names *names);

/* A name without the alias before it. */
static inline const char *ivm__name_bare(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* The position of a name: exact, or the only column with this name behind its alias. unknown_column, ambiguous_column, out_of_memory. */
ivm_status ivm__column_find(ivm__names *names, const char *name, uint32_t *column, ivm_error *error) IVM_MUST_CHECK;
/* A typed expression over these columns. */
ivm_status ivm__expression_check(ivm_engine *engine, const ivm_expr *expr, ivm__names *names, ivm__expression **expression,
                                 ivm_error *error) IVM_MUST_CHECK;

#endif
