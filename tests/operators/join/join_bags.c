/* See join_bags.h. */
#include "join_bags.h"

void bags_copy(hand_bag to[CASE_TABLES], const hand_bag from[CASE_TABLES])
{
    for (uint32_t t = 0; t < CASE_TABLES; t++) {
        hand_bag_copy(&to[t], &from[t]);
    }
}

void bags_free(hand_bag bags[CASE_TABLES])
{
    for (uint32_t t = 0; t < CASE_TABLES; t++) {
        hand_bag_free(&bags[t]);
    }
}

bool bags_hold(const join_case *join, const hand_bag tables[CASE_TABLES])
{
    hand_bag got = { 0 }, want;
    bool failing;
    case_oracle(join, tables, &want, &failing);
    hand_store_rows(ivm__materialize_result(join->root), &got);
    bool equal = !failing && hand_bag_equal(&got, &want);
    hand_bag_free(&got);
    hand_bag_free(&want);
    return equal;
}

void bag_insert(ivm_batch *batch, ivm_table *table, hand_bag *bag, hand_row row, int64_t weight)
{
    hand_change(batch, table, row, weight);
    row.weight = weight;
    hand_bag_add(bag, &row);
}
