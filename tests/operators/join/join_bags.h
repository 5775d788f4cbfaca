/* The bags of a join's tables: what the tables of a test hold, for the oracle. */
#ifndef TEST_JOIN_BAGS_H
#define TEST_JOIN_BAGS_H

#include "join_case.h"

void bags_copy(hand_bag to[CASE_TABLES], const hand_bag from[CASE_TABLES]);
void bags_free(hand_bag bags[CASE_TABLES]);
/* Whether the view holds what the oracle says of these bags. */
bool bags_hold(const join_case *join, const hand_bag tables[CASE_TABLES]);
/* A row for the batch and for the table's bag. */
void bag_insert(ivm_batch *batch, ivm_table *table, hand_bag *bag, hand_row row, int64_t weight);

#endif
