/* The B+ tree of the ordered Z-sets and of sorted rows: paths from leaf to root, and the one entry that a path leads to put in or taken
 * out. All nodes that an insertion's splits need are made before it touches any; a removal makes none, and neighbours with little left
 * become one.
 * Cost: a node a level searched, and moved within where an entry comes or goes. */
#include "ordered_tree.h"

/* ---- Paths -------------------------------------------------------------------------------------------------------------------------- */

bool ivm__ordered_path_find(const ivm__ordered *ordered, ivm__ordered_key key, ivm__ordered_path *path)
{
    ivm__ordered_node *node = ordered->root;
    for (uint32_t level = ordered->height; level-- > 0;) {
        uint32_t rank = ivm__ordered_node_rank(node, key);
        bool equal =
            rank < node->count && ivm__ordered_key_compare((ivm__ordered_form)node->form, ivm__ordered_node_key(node, rank), key) == 0;
        path->node[level] = node;
        path->at[level] = rank;
        if (level == 0) {
            return equal;
        }
        path->at[level] = equal || !rank ? rank : rank - 1;
        node = ivm__ordered_children(node)[path->at[level]];
        ivm__ordered_keys_prefetch(node);
    }
    return false;
}

bool ivm__ordered_path_next(ivm__ordered_path *path, uint32_t height)
{
    uint32_t level = 1;
    while (level < height && path->at[level] + 1 == path->node[level]->count) {
        level++;
    }
    if (level >= height) {
        return false;
    }
    path->at[level]++;
    for (; level > 0; level--) {
        path->node[level - 1] = ivm__ordered_children(path->node[level])[path->at[level]];
        path->at[level - 1] = 0;
    }
    return true;
}

bool ivm__ordered_path_previous(ivm__ordered_path *path, uint32_t height)
{
    uint32_t level = 1;
    while (level < height && path->at[level] == 0) {
        level++;
    }
    if (level >= height) {
        return false;
    }
    path->at[level]--;
    for (; level > 0; level--) {
        path->node[level - 1] = ivm__ordered_children(path->node[level])[path->at[level]];
        path->at[level - 1] = path->node[level - 1]->count - (level > 1);
    }
    return true;
}

void ivm__ordered_path_find_group(const ivm__ordered *ordered, uint64_t group, ivm__ordered_path *path)
{
    ivm__ordered_node *node = ordered->root;
    for (uint32_t level = ordered->height; level-- > 0;) {
        uint32_t rank = ivm__ordered_node_group_rank(node, group);
        path->node[level] = node;
        path->at[level] = level && rank ? rank - 1 : rank;
        node = level ? ivm__ordered_children(node)[path->at[level]] : NULL;
    }
}

/* ---- Insertion ---------------------------------------------------------------------------------------------------------------------- */

static void node_drop(ivm__ordered *ordered, ivm__ordered_node *node)
{
    ordered->nodes_bytes -= ivm__ordered_node_size((ivm__ordered_form)node->form, node->level);
    ivm__ordered_node_free(ordered->memory, node);
}

/* One node for each level from 0 to count - 1. On failure none. */
static ivm_status spares_make(ivm__ordered *ordered, ivm__ordered_node **spares, uint32_t count)
{
    ivm__ordered_form form = (ivm__ordered_form)ordered->form;
    assert(count <= IVM__ORDERED_LEVELS_MAX);
    for (uint32_t level = 0; level < count; level++) {
        spares[level] = ivm__ordered_node_make(ordered->memory, form, level);
        if (!spares[level]) {
            while (level > 0) {
                node_drop(ordered, spares[--level]);
            }
            return IVM_OUT_OF_MEMORY;
        }
        ordered->nodes_bytes += ivm__ordered_node_size(form, level);
    }
    return IVM_OK;
}

/* A new root above the present one, if any; the path goes through it. */
static void root_add(ivm__ordered *ordered, ivm__ordered_node *root, ivm__ordered_path *path)
{
    assert(root->level == ordered->height);
    if (ordered->root) {
        ivm__ordered_node_insert(root, 0, ivm__ordered_node_key(ordered->root, 0));
        ivm__ordered_children(root)[0] = ordered->root;
    }
    path->node[ordered->height] = root;
    path->at[ordered->height] = 0;
    ordered->root = root;
    ordered->height++;
}

/* Puts the key at *at of **into, or of `spare` if that one is full and splits; then *into and *at are where it went. Returns the spare if
 * it was used. Keys that come in ascending order leave nodes three quarters full. */
static ivm__ordered_node *key_put(ivm__ordered_node **into, uint32_t *at, ivm__ordered_key key, ivm__ordered_node *spare)
{
    ivm__ordered_node *right = NULL;
    if ((*into)->count == IVM__ORDERED_FANOUT) {
        uint32_t split = *at == IVM__ORDERED_FANOUT ? IVM__ORDERED_FANOUT - IVM__ORDERED_FILL_MIN : IVM__ORDERED_FANOUT / 2;
        right = spare;
        ivm__ordered_node_split(*into, split, right);
        if (*at > split) {
            *into = right;
            *at -= split;
        }
    }
    ivm__ordered_node_insert(*into, *at, key);
    return right;
}

ivm_status ivm__ordered_tree_insert(ivm__ordered *ordered, ivm__ordered_path *path, ivm__ordered_key key, ivm__weight **weight)
{
    uint32_t full = 0;
    while (full < ordered->height && path->node[full]->count == IVM__ORDERED_FANOUT) {
        full++;
    }
    bool higher = full == ordered->height;
    ivm__ordered_node *spares[IVM__ORDERED_LEVELS_MAX] = { NULL };
    IVM_TRY(spares_make(ordered, spares, full + higher));
    if (higher) {
        root_add(ordered, spares[full], path);
        spares[full] = NULL;
    }
    ivm__ordered_node *leaf = path->node[0];
    uint32_t at = path->at[0];
    ivm__ordered_node *right = key_put(&leaf, &at, key, spares[0]);
    *weight = ordered->form == IVM__ORDERED_ROW ? NULL : &ivm__ordered_weights(leaf)[at];
    if (*weight) {
        **weight = 0;
    }
    ordered->entries_count++;
    for (uint32_t level = 1; level < ordered->height && (right || !at); level++) {
        ivm__ordered_node *parent = path->node[level], *child = right;
        at = path->at[level];
        ivm__ordered_node_refresh(parent, at);
        if (child) {
            uint32_t child_at = at + 1;
            right = key_put(&parent, &child_at, ivm__ordered_node_key(child, 0), spares[level]);
            ivm__ordered_children(parent)[child_at] = child;
        }
    }
    assert(!right);
    return IVM_OK;
}

/* ---- Removal ------------------------------------------------------------------------------------------------------------------------ */

/* Drops roots with one child, or the last leaf with its last entry. */
static void root_lower(ivm__ordered *ordered)
{
    while (ordered->height > 1 && ordered->root->count == 1) {
        ivm__ordered_node *root = ordered->root;
        ordered->root = ivm__ordered_children(root)[0];
        ordered->height--;
        node_drop(ordered, root);
    }
    if (ordered->root->count == 0) {
        assert(ordered->height == 1 && ordered->entries_count == 0);
        node_drop(ordered, ordered->root);
        ordered->root = NULL;
        ordered->height = 0;
    }
}

void ivm__ordered_tree_remove(ivm__ordered *ordered, const ivm__ordered_path *path)
{
    if (ordered->form == IVM__ORDERED_TEXT) {
        ivm__texts_release(ordered->texts, ivm__ordered_key_text(ivm__ordered_node_key(path->node[0], path->at[0])));
    }
    ivm__ordered_node_erase(path->node[0], path->at[0]);
    ordered->entries_count--;
    for (uint32_t level = 1; level < ordered->height; level++) {
        ivm__ordered_node *parent = path->node[level];
        if (path->node[level - 1]->count >= IVM__ORDERED_FILL_MIN) {
            ivm__ordered_node_refresh(parent, path->at[level]);
            continue;
        }
        ivm__ordered_node *emptied = ivm__ordered_node_balance(parent, path->at[level]);
        if (emptied) {
            node_drop(ordered, emptied);
        }
    }
    root_lower(ordered);
}

/* ---- The whole tree ----------------------------------------------------------------------------------------------------------------- */

static void node_free_all(ivm__ordered *ordered, ivm__ordered_node *top)
{
    for (uint32_t i = 0; i < top->count; i++) {
        if (top->level) {
            node_free_all(ordered, ivm__ordered_children(top)[i]);
        } else if (top->form == IVM__ORDERED_TEXT) {
            ivm__texts_release(ordered->texts, ivm__ordered_key_text(ivm__ordered_node_key(top, i)));
        }
    }
    node_drop(ordered, top);
}

void ivm__ordered_tree_free(ivm__ordered *ordered)
{
    if (ordered->root) {
        node_free_all(ordered, ordered->root);
    }
    assert(ordered->nodes_bytes == 0);
    ordered->root = NULL;
    ordered->height = 0;
    ordered->entries_count = 0;
}

struct audit {
    const ivm__ordered *ordered;
    uint64_t entries_count, nodes_bytes;
    ivm__ordered_key last; /* where entries_count > 0 */
};

static const char *leaf_validate(struct audit *audit, const ivm__ordered_node *leaf)
{
    for (uint32_t i = 0; i < leaf->count; i++) {
        ivm__ordered_key key = ivm__ordered_node_key(leaf, i);
        bool row = leaf->form == IVM__ORDERED_ROW; /* of equal cells: sorted.c knows their order */
        if (audit->entries_count && row && audit->last.cell > key.cell) {
            return "cells not ascending";
        }
        if (audit->entries_count && !row && ivm__ordered_key_compare((ivm__ordered_form)leaf->form, audit->last, key) >= 0) {
            return "entries not ascending";
        }
        if (!row && !ivm__ordered_weights(leaf)[i] && !audit->ordered->changes_count) {
            return "an entry of weight 0 between steps";
        }
        if (leaf->form == IVM__ORDERED_TEXT && ivm__ordered_key_text(key)->references == 0) {
            return "a text not held";
        }
        audit->last = key;
        audit->entries_count++;
    }
    return NULL;
}

static const char *tree_validate(struct audit *audit, const ivm__ordered_node *top, uint32_t level)
{
    uint32_t least = top != audit->ordered->root ? IVM__ORDERED_FILL_MIN : level ? 2 : 1;
    if (top->level != level || top->form != audit->ordered->form) {
        return "a node of the wrong kind";
    }
    if (top->count < least || top->count > IVM__ORDERED_FANOUT) {
        return "a node of too few or too many entries";
    }
    audit->nodes_bytes += ivm__ordered_node_size((ivm__ordered_form)top->form, level);
    if (!level) {
        return leaf_validate(audit, top);
    }
    for (uint32_t i = 0; i < top->count; i++) {
        const ivm__ordered_node *child = ivm__ordered_children(top)[i];
        const char *reason = tree_validate(audit, child, level - 1);
        if (reason) {
            return reason;
        }
        ivm__ordered_key own = ivm__ordered_node_key(top, i), first = ivm__ordered_node_key(child, 0);
        if (own.group != first.group || own.cell != first.cell) {
            return "a key that is not its child's first";
        }
    }
    return NULL;
}

const char *ivm__ordered_validate(const ivm__ordered *ordered)
{
    struct audit audit = { .ordered = ordered };
    if (!ordered->root != !ordered->height) {
        return "a root without a height, or a height without a root";
    }
    const char *reason = ordered->root ? tree_validate(&audit, ordered->root, ordered->height - 1) : NULL;
    if (!reason && audit.entries_count != ordered->entries_count) {
        reason = "entries counted wrongly";
    }
    if (!reason && audit.nodes_bytes != ordered->nodes_bytes) {
        reason = "bytes counted wrongly";
    }
    return reason;
}
