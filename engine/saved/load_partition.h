/* Rows of a table that come partition by partition, into a store beside the table's, and the two exchanged.
 *
 *     begin -> part, part, ... in any order of partitions, each once -> end -> exchange, which can be taken back by another */
#ifndef IVM__LOAD_PARTITION_H
#define IVM__LOAD_PARTITION_H

#include "load_table.h"

/* No rows yet. On failure nothing was made. */
ivm_status ivm__table_parts_begin(const ivm_table *table, ivm__step *step, ivm__table_rows *made) IVM_MUST_CHECK;
/* Adds the rows of one partition. corrupt, in from->error, where they are not of it or cannot be; duplicate_key where a key is in another partition too:
 * the message names both. On failure what was made is good for nothing but to be freed. Cost: an insertion a row, and a lookup where the key does not
 * name the partition. */
ivm_status ivm__table_part_load(const ivm_table *table, ivm__step *step, ivm__feed *from, uint32_t partition,
                                ivm__table_rows *made) IVM_MUST_CHECK;
/* All rows are there: they are as after a step that changed nothing. out_of_memory. */
ivm_status ivm__table_parts_end(const ivm_table *table, ivm__step *step, ivm__table_rows *made) IVM_MUST_CHECK;

#endif
