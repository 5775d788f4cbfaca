/* Ordered Z-sets: cells of many groups in one B+ tree ordered by (group, cell), each with the net weight of the rows that hold it, so
 * that min and max survive any deletion in O(log n). An entry whose weight falls to 0 stays until the step ends. */
#ifndef IVM__ORDERED_H
#define IVM__ORDERED_H

#include "chunk.h"

typedef struct ivm__ordered {
    ivm__memory *memory;
    ivm__texts *texts;
    ivm_type type; /* of the cells; strings are held by reference */
    uint32_t form; /* of the tree's cells: ivm__ordered_form */
    struct ivm__ordered_node *root;
    uint32_t height; /* levels of nodes */
    uint64_t entries_count;
    struct ivm__ordered_change *changes; /* what this step added, for undo and sweep */
    uint32_t changes_count, changes_capacity;
    uint64_t nodes_bytes;
} ivm__ordered;

void ivm__ordered_init(ivm__ordered *ordered, ivm__memory *memory, ivm__texts *texts, ivm_type type);
void ivm__ordered_deinit(ivm__ordered *ordered);
/* Adds to the weight of the group's cell (a wide: 8-byte cells zero-extended), and tells whether the cell came to be there (1), is there no more (-1),
 * or neither: its weight rose above 0, or fell to 0 or below. Fails for memory alone, then nothing has changed. */
ivm_status ivm__ordered_add_crossing(ivm__ordered *ordered, uint32_t group, ivm__wide cell, ivm__weight weight,
                                     int *crossed) IVM_MUST_CHECK;
/* The group's least or greatest cell of weight above 0. False: none. */
bool ivm__ordered_first(const ivm__ordered *ordered, uint32_t group, ivm__wide *cell);
bool ivm__ordered_last(const ivm__ordered *ordered, uint32_t group, ivm__wide *cell);
/* The group's entries, cells ascending, whatever the sign of their weights. A visit that fails ends the walk, which fails likewise. */
typedef ivm_status ivm__ordered_visit(void *context, ivm__wide cell, ivm__weight weight);
ivm_status ivm__ordered_walk(const ivm__ordered *ordered, uint32_t group, ivm__ordered_visit *visit, void *context) IVM_MUST_CHECK;
/* Neither can fail. */
void ivm__ordered_commit(ivm__ordered *ordered);
void ivm__ordered_undo(ivm__ordered *ordered);
uint64_t ivm__ordered_bytes(const ivm__ordered *ordered);
const char *ivm__ordered_validate(const ivm__ordered *ordered); /* for tests */

#endif
