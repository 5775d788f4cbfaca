/* Feeds: operators that send a bag's rows, whatever their weights, for tests of what reads any delta. */
#ifndef TEST_FEED_H
#define TEST_FEED_H

#include "bytes.h" /* which has parameters of this name */
#include "hand.h"

typedef struct feed {
    ivm__operator head;
    ivm_type types[HAND_COLUMNS_MAX];
    hand_bag rows;                   /* sent in every step, in this order, not added up */
    uint32_t chunk_rows;             /* at most so many a chunk */
    bool left_out[HAND_COLUMNS_MAX]; /* columns not carried */
} feed;

feed *feed_add(hand *it, const ivm_type *types, uint32_t columns_count);
/* Sends its rows, from the start of the program on, to this port. */
void feed_wire(feed *from, ivm__operator *reader, uint32_t port);
void feed_clear(feed *from);
/* A step, or one that fills a view, with what the feeds hold. */
ivm_status feed_step(hand *it, bool keep);

#endif
