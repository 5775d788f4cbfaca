/* Explain's indexes: for each leaf the column lists over which some driver's terms probe it, whether the index is there, and who reads it. One that is
 * not is built by the first push that runs such a term, which waits for it: that is what the reader is warned of. */
#include "explain.h"

/* Whether this driver's terms read the index, too. */
static bool reads(const ivm__told_join *join, uint32_t driver, const ivm__join_index *index)
{
    ivm__join_index other;
    return ivm__join_index_of(join->operator, driver, index->leaf, &other) && other.columns_count == index->columns_count &&
           memcmp(other.columns, index->columns, index->columns_count * sizeof *index->columns) == 0;
}

/* The readers of the index among these drivers. */
static uint64_t readers(const ivm__told_join *join, uint64_t drivers, const ivm__join_index *index)
{
    uint64_t found = 0;
    for (; drivers; drivers &= drivers - 1) {
        uint32_t driver = (uint32_t)__builtin_ctzll(drivers);
        found |= (uint64_t)reads(join, driver, index) << driver;
    }
    return found;
}

/* *next is 64 * leaf + driver: an index is told of at the first driver that reads it. */
bool ivm__told_index_next(const ivm__told_join *join, uint32_t *next, ivm__told_index *told)
{
    for (uint32_t end = IVM_JOIN_LEAVES_MAX * join->graph->leaves_count; *next < end;) {
        uint32_t leaf = *next / IVM_JOIN_LEAVES_MAX, driver = *next % IVM_JOIN_LEAVES_MAX;
        ++*next;
        if (!(join->drivers >> driver & 1) || !ivm__join_index_of(join->operator, driver, leaf, &told->index)) {
            continue;
        }
        told->drivers = readers(join, join->drivers, &told->index);
        if ((uint32_t)__builtin_ctzll(told->drivers) == driver) {
            told->bytes = told->index.index ? ivm__index_bytes(told->index.index) : 0;
            return true;
        }
    }
    return false;
}
