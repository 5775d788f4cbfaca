/* Record batches made of a fuzzer's bytes: a table's columns, a schema and an array for it. Memory is what Arrow says it must be wherever a consumer cannot tell:
 * buffers have the bytes that length and offset call for, each a block of its own; bytes of strings are as many as offsets say. All else may lie: formats, names, counts,
 * lengths, nulls, offsets that decrease, views, indexes, lists and buffers that are NULL, structs that were released. */
#ifndef FUZZ_ARROW_MAKE_H
#define FUZZ_ARROW_MAKE_H

#include "arrow_form.h"
#include "fuzz.h"
#include "ivm/ivm.h"

#define MADE_FIELDS 4
#define MADE_BUFFERS 8
#define MADE_NODES (2 * MADE_FIELDS)

/* The bytes that are left; 0 for ever behind them. */
typedef struct byte_source {
    const uint8_t *at;
    size_t left;
} byte_source;
uint8_t byte_draw(byte_source *from);
size_t draw_below(byte_source *from, size_t bound);

typedef struct made_node {
    struct ArrowSchema schema;
    struct ArrowArray array;
    const void *buffers[MADE_BUFFERS];
    size_t buffers_count, shift; /* shift: of each buffer from an aligned place */
    char drawn[IVM__ARROW_FORMAT_SIZE];
    const char *format; /* as it is, whatever the schema says */
    bool coded;         /* the next node is its dictionary */
} made_node;

typedef struct made_batch {
    struct ArrowSchema schema, *schema_children[MADE_FIELDS + 1];
    struct ArrowArray array, *children[MADE_FIELDS + 1];
    const void *validity[1];
    made_node nodes[MADE_NODES];
    char names[MADE_FIELDS][2];
    size_t nodes_count;
    int released;
} made_batch;

/* Draws a batch of `fields` fields, called "a" and so on for the most part, in the formats of `like` if that is one. The array's release frees its buffers. */
void made_batch_draw(made_batch *made, byte_source *from, size_t fields, const made_batch *like);
/* Frees what was not released. */
void made_batch_free(made_batch *made);

#endif
