/* Net rows: the rows of one table's part of a batch as they add up while it is staged. A Z-set that lives in an arena until staging ends:
 * it needs neither undo nor references to texts, and since the batch bounds its size it never grows.
 *
 *     weight(row) = sum of the weights of the equal rows added so far
 *
 * Rows lie as the table's store lays them out. Where the batch names keys, the rows of a key also hang on a list, so that an upsert sees what came
 * before it; rows that have cancelled drop out of the lists as these are walked. Cost: one lookup a row. */
#ifndef IVM__NET_H
#define IVM__NET_H

#include "catalog.h"

/* Lists of the rows of each key. */
typedef struct ivm__net_keys {
    uint64_t *slots; /* upper half of the hash, key + 1; NULL: the batch names no key of this table */
    uint32_t count;
    uint32_t *rows;  /* by key: a row that has it */
    uint32_t *heads; /* by key: the first row of its list */
    uint32_t *next;  /* by row */
    bool *linked;    /* by row */
} ivm__net_keys;

typedef struct ivm__net {
    const ivm_table *table;
    uint32_t stride; /* header (not used) and body */
    uint32_t rows_count, rows_max;
    uint64_t added; /* rows of non-zero weight that came; more than rows_count: some were equal */
    uint8_t *rows;
    ivm__weight *weights;
    uint64_t *slots; /* upper half of the hash, row + 1 */
    uint32_t slots_mask;
    ivm__net_keys keys;
} ivm__net;

/* An empty one for at most `rows_max` different rows, IVM_BATCH_ROWS_MAX at most. */
ivm_status ivm__net_init(ivm__net *net, ivm__arena *arena, const ivm_table *table, uint64_t rows_max, bool by_key) IVM_MUST_CHECK;

static inline uint8_t *ivm__net_at(const ivm__net *net, uint32_t row)
{
    return net->rows + (size_t)row * net->stride;
}

/* Room for `count` rows side by side, as the net lays them out. NULL: out of memory. */
uint8_t **ivm__net_room(const ivm__net *net, ivm__arena *arena, uint32_t count);

/* Adds the chunk's rows, each its weight times sign. `key_hashes`: of the table's key index, if by key. */
ivm_status ivm__net_add(ivm__net *net, ivm__arena *scratch, const ivm__chunk *chunk, int sign, const uint64_t *key_hashes) IVM_MUST_CHECK;
/* Adds one row, laid out as in the net. */
void ivm__net_add_row(ivm__net *net, const uint8_t *row, ivm__weight weight, uint64_t key_hash);
/* Takes away once each row of the key that is there now, in the table or through the batch so far. `row` has the key's cells, `old` is the
 * table's row of this key (NULL: none). Returns how many were taken. */
uint32_t ivm__net_take_key(ivm__net *net, const uint8_t *row, uint64_t key_hash, const uint8_t *old);

/* The rows of non-zero weight, in the order of their coming. NULL: out of memory. */
uint32_t *ivm__net_live(const ivm__net *net, ivm__arena *arena, uint32_t *count);
/* Those rows as a chunk with all columns; weights NULL where all are 1. NULL: out of memory. */
ivm__chunk *ivm__net_chunk(const ivm__net *net, ivm__arena *arena, const uint32_t *rows, uint32_t count);

static inline bool ivm__net_equal(const ivm__net *net, uint32_t row, const uint8_t *other)
{
    return memcmp(ivm__net_at(net, row) + IVM__ROW_HEADER, other + IVM__ROW_HEADER, net->stride - IVM__ROW_HEADER) == 0;
}

#endif
