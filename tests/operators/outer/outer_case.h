/* Outer, semi and anti joins for tests: one drawn at random or by hand, as a program of two feeds, the join and its root; and a nested loop
 * over plain arrays that says what the root must hold and how many partners each row must be counted for. */
#ifndef TEST_OUTER_CASE_H
#define TEST_OUTER_CASE_H

#include "feed.h"

#define OUTER_COLUMNS 4u /* of each side: int64, int64, string, decimal */

typedef struct outer_case {
    ivm_join_kind kind;
    uint32_t left_keys[3], right_keys[3], keys_count;
    bool condition; /* left c0 * 2^61 <= right c1 * 2^61, out of range from 4 on */
    bool negative[2];
    /* made of it */
    hand it;
    feed *feeds[2];
    ivm__operator *join, *root;
    hand_bag rows[2]; /* what the sides hold */
} outer_case;

extern const ivm_type outer_types[OUTER_COLUMNS];

void outer_draw(outer_case *join, uint64_t *random);
void outer_open(outer_case *join, const ivm_allocator *allocator);
void outer_close(outer_case *join);
/* Adds to what a side's feed sends in the next step. */
void outer_send(outer_case *join, uint32_t side, hand_row row, __int128 weight);
/* Runs a step of what was sent; `rows` follows it where it was kept. The feeds are then empty. */
ivm_status outer_step(outer_case *join, bool initial, bool keep);
/* Whether the condition is out of range for a pair that stands side by side once what was sent is there. */
bool outer_fails(const outer_case *join);
/* Whether the root holds what the nested loop says. */
bool outer_holds(outer_case *join);
/* NULL, or what is wrong with the sides' counts and indexes. */
const char *outer_validate(outer_case *join);

#endif
