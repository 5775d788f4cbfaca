/* Nodes of the B+ trees of ordered Z-sets and of sorted rows: arrays of groups, of cells in a form that compares as integers, and of weights
 * or children.
 *
 * A cell is kept as 64 bits, as 128 (decimals) or as a text. Of a sorted row the group is its id and the cell what its order begins with; it
 * has no weight here, and keys are compared by sorted.c. Key i of an inner node is the first key of child i, which is of an entry that exists: a
 * text is held by its entry alone. A leaf of 8-byte cells takes 1024 bytes. */
#ifndef IVM__ORDERED_NODE_H
#define IVM__ORDERED_NODE_H

#include "chunk.h"

#define IVM__ORDERED_FANOUT 36u
#define IVM__ORDERED_FILL_MIN 9u /* of every node but the root */

typedef unsigned __int128 ivm__ordered_cell;

typedef enum ivm__ordered_form { IVM__ORDERED_WORD, IVM__ORDERED_WIDE, IVM__ORDERED_TEXT, IVM__ORDERED_ROW } ivm__ordered_form;

typedef struct ivm__ordered_key {
    ivm__ordered_cell cell;
    uint32_t group;
} ivm__ordered_key;

typedef struct ivm__ordered_node {
    uint32_t count;
    uint16_t level; /* 0: a leaf */
    uint16_t form;
    uint64_t reserved;
    uint32_t groups[IVM__ORDERED_FANOUT];
    /* then the cells, then the weights or children */
} ivm__ordered_node;

static inline size_t ivm__ordered_cell_size(ivm__ordered_form form)
{
    return form == IVM__ORDERED_WIDE || form == IVM__ORDERED_ROW ? sizeof(ivm__ordered_cell) : sizeof(uint64_t);
}
static inline uint64_t *ivm__ordered_words(const ivm__ordered_node *node)
{
    return (uint64_t *)(uintptr_t)(node + 1);
}
static inline ivm__ordered_cell *ivm__ordered_wides(const ivm__ordered_node *node)
{
    return (ivm__ordered_cell *)(uintptr_t)(node + 1);
}
static inline uint8_t *ivm__ordered_payload(const ivm__ordered_node *node)
{
    return (uint8_t *)(uintptr_t)(node + 1) + IVM__ORDERED_FANOUT * ivm__ordered_cell_size((ivm__ordered_form)node->form);
}
static inline ivm__weight *ivm__ordered_weights(const ivm__ordered_node *leaf)
{
    assert(leaf->level == 0 && leaf->form != IVM__ORDERED_ROW);
    return (ivm__weight *)(void *)ivm__ordered_payload(leaf);
}
static inline ivm__ordered_node **ivm__ordered_children(const ivm__ordered_node *node)
{
    assert(node->level > 0);
    return (ivm__ordered_node **)(void *)ivm__ordered_payload(node);
}
static inline ivm__ordered_key ivm__ordered_node_key(const ivm__ordered_node *node, uint32_t at)
{
    assert(at < node->count);
    bool wide = ivm__ordered_cell_size((ivm__ordered_form)node->form) == sizeof(ivm__ordered_cell);
    return (ivm__ordered_key){ wide ? ivm__ordered_wides(node)[at] : ivm__ordered_words(node)[at], node->groups[at] };
}
static inline const ivm__text *ivm__ordered_key_text(ivm__ordered_key key)
{
    return (const ivm__text *)(uintptr_t)(uint64_t)key.cell;
}

/* All lines of a node's keys at once (of half, for cells of 16 bytes), where a search would wait for one after the other: measured at 5 to
 * 25 % of an insertion into a tree of a million. */
static inline void ivm__ordered_keys_prefetch(const ivm__ordered_node *node)
{
    for (size_t offset = 0; offset < sizeof *node + IVM__ORDERED_FANOUT * sizeof(uint64_t); offset += 64) {
        __builtin_prefetch((const uint8_t *)node + offset);
    }
}

/* <0, 0, >0; neither this nor ranks are for sorted rows */
int ivm__ordered_key_compare(ivm__ordered_form form, ivm__ordered_key a, ivm__ordered_key b);

ivm__ordered_node *ivm__ordered_node_make(ivm__memory *memory, ivm__ordered_form form, uint32_t level); /* NULL: out of memory */
void ivm__ordered_node_free(ivm__memory *memory, ivm__ordered_node *node);
size_t ivm__ordered_node_size(ivm__ordered_form form, uint32_t level);

/* How many keys of the node are below `key`. */
uint32_t ivm__ordered_node_rank(const ivm__ordered_node *node, ivm__ordered_key key);
/* How many keys of the node are of a group below this. */
uint32_t ivm__ordered_node_group_rank(const ivm__ordered_node *node, uint64_t group);

/* Makes room at `at` and writes the key; the caller writes the weight or child. The node is not full. */
void ivm__ordered_node_insert(ivm__ordered_node *node, uint32_t at, ivm__ordered_key key);
void ivm__ordered_node_erase(ivm__ordered_node *node, uint32_t at);
/* Key i becomes the first key of child i. */
void ivm__ordered_node_refresh(ivm__ordered_node *node, uint32_t at);
/* Moves what is from `at` on to the front of `right`, which is empty. */
void ivm__ordered_node_split(ivm__ordered_node *left, uint32_t at, ivm__ordered_node *right);
/* Child `at` has too few entries: takes some from a neighbour, or becomes one with it. Returns the child that is empty then, no longer the
 * parent's; NULL: none. */
ivm__ordered_node *ivm__ordered_node_balance(ivm__ordered_node *parent, uint32_t at);

#endif
