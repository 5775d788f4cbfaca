/* The B+ tree of the ordered Z-sets, and of sorted rows. */
#ifndef IVM__ORDERED_TREE_H
#define IVM__ORDERED_TREE_H

#include "ordered.h"
#include "ordered_node.h"

#define IVM__ORDERED_LEVELS_MAX 16u /* 9^16 entries at least */

/* Where an entry is or belongs: the leaf is node[0], node[i] the child at at[i + 1] of node[i + 1]. */
typedef struct ivm__ordered_path {
    ivm__ordered_node *node[IVM__ORDERED_LEVELS_MAX];
    uint32_t at[IVM__ORDERED_LEVELS_MAX];
} ivm__ordered_path;

/* Whether there is an entry of this key; else the path leads to where it belongs. */
bool ivm__ordered_path_find(const ivm__ordered *ordered, ivm__ordered_key key, ivm__ordered_path *path);
/* To the first entry of a group at or past this one: perhaps the end of a leaf. The tree is not empty. */
void ivm__ordered_path_find_group(const ivm__ordered *ordered, uint64_t group, ivm__ordered_path *path);
/* On to the next leaf, at its first entry. */
bool ivm__ordered_path_next(ivm__ordered_path *path, uint32_t height);
/* Back to the leaf before, past its last entry. */
bool ivm__ordered_path_previous(ivm__ordered_path *path, uint32_t height);

/* Inserts an entry of weight 0 where the path leads and tells where its weight is (of a sorted row: NULL); a text's reference is the caller's to
 * take. Fails for memory alone, then nothing has changed. */
ivm_status ivm__ordered_tree_insert(ivm__ordered *ordered, ivm__ordered_path *path, ivm__ordered_key key,
                                    ivm__weight **weight) IVM_MUST_CHECK;
/* Removes the entry and its text's reference. */
void ivm__ordered_tree_remove(ivm__ordered *ordered, const ivm__ordered_path *path);
void ivm__ordered_tree_free(ivm__ordered *ordered);

static inline ivm__weight *ivm__ordered_path_weight(const ivm__ordered_path *path)
{
    return &ivm__ordered_weights(path->node[0])[path->at[0]];
}

#endif
