/* Names of columns, looked up. The first few are sought one by one; where many are asked for, the names are sorted, as they are and without their
 * aliases, and found by halving.
 *
 *     column = the only one of this name        or, where there is none,        the only one with this name behind its alias
 *
 * Cost: n log n comparisons for n names asked of n columns. */
#include "names.h"

#include <stdlib.h>

#define COMPARED_MAX 2048u /* so many and one name's are sought one by one */

void ivm__names_init(ivm__names *names, ivm__memory *memory, const ivm__named_column *columns, uint32_t columns_count)
{
    *names = (ivm__names){ .memory = memory, .columns = columns, .columns_count = columns_count };
}

void ivm__names_deinit(ivm__names *names)
{
    ivm__release(names->memory, names->sorted, 2 * (size_t)names->columns_count * sizeof *names->sorted);
    names->sorted = NULL;
}

static const char *name_of(const ivm__names *names, uint32_t column, bool exact)
{
    const char *name = names->columns[column].name;
    return exact ? name : ivm__name_bare(name);
}

/* ---- One by one --------------------------------------------------------------------------------------------------------------------- */

/* How many columns answer to the name, and the last of them. */
static uint32_t count_all(ivm__names *names, const char *name, bool exact, uint32_t *column)
{
    uint32_t found = 0;
    names->compared += names->columns_count;
    for (uint32_t i = 0; i < names->columns_count; i++) {
        if (strcmp(name_of(names, i, exact), name) == 0) {
            *column = i;
            found++;
        }
    }
    return found;
}

/* ---- Sorted --------------------------------------------------------------------------------------------------------------------------- */

static int entries_compare(const void *a, const void *b)
{
    const ivm__name_entry *one = a, *other = b;
    int order = strcmp(one->name, other->name);
    return order ? order : (one->column > other->column) - (one->column < other->column);
}

static ivm_status names_sort(ivm__names *names)
{
    uint32_t count = names->columns_count;
    names->sorted = ivm__allocate(names->memory, 2 * (size_t)count * sizeof *names->sorted);
    if (!names->sorted) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        names->sorted[i] = (ivm__name_entry){ name_of(names, i, true), i };
        names->sorted[count + i] = (ivm__name_entry){ name_of(names, i, false), i };
    }
    qsort(names->sorted, count, sizeof *names->sorted, entries_compare);
    qsort(names->sorted + count, count, sizeof *names->sorted, entries_compare);
    return IVM_OK;
}

/* The same as count_all(). */
static uint32_t count_sorted(ivm__names *names, const char *name, bool exact, uint32_t *column)
{
    const ivm__name_entry *entries = names->sorted + (exact ? 0 : names->columns_count);
    uint32_t low = 0, high = names->columns_count, found = 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        bool before = strcmp(entries[middle].name, name) < 0;
        low = before ? middle + 1 : low;
        high = before ? high : middle;
        names->compared++;
    }
    for (; low < names->columns_count && strcmp(entries[low].name, name) == 0; low++, found++) {
        *column = entries[low].column;
        names->compared++;
    }
    return found;
}

/* ---- Found ---------------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__column_find(ivm__names *names, const char *name, uint32_t *column, ivm_error *error)
{
    uint32_t at = 0;
    if (!names->sorted && names->compared > COMPARED_MAX && names_sort(names) != IVM_OK) {
        return ivm__fail_memory(error);
    }
    uint32_t (*count)(ivm__names *, const char *, bool, uint32_t *) = names->sorted ? count_sorted : count_all;
    uint32_t found = count(names, name, true, &at);
    if (found == 0) {
        found = count(names, name, false, &at);
    }
    if (found != 1) {
        return found ? ivm__fail(error, IVM_AMBIGUOUS_COLUMN, "%u columns are named %s", found, name)
                     : ivm__fail(error, IVM_UNKNOWN_COLUMN, "there is no column %s", name);
    }
    *column = at;
    return IVM_OK;
}
