/* Nodes of the ordered Z-sets' B+ tree: search within one and moves between two neighbours. Every function keeps keys ascending and, in
 * inner nodes, key i = first key of child i. Cost: a search is six steps without a branch (but for texts); a move is three memmoves. */
#include "ordered_node.h"

/* Two neighbours become one where that leaves room; then the next insertion does not split it again. */
#define MERGE_MAX (IVM__ORDERED_FANOUT * 3 / 4)

static_assert(sizeof(ivm__ordered_node) % 16 == 0, "cells of 16 bytes are aligned");
static_assert(IVM__ORDERED_FANOUT % 2 == 0, "weights are aligned behind cells of 8 bytes");
static_assert((MERGE_MAX + 1) / 2 >= IVM__ORDERED_FILL_MIN, "two neighbours that do not become one both have enough");

/* Bytes of a weight or child. */
static size_t payload_size(ivm__ordered_form form, uint32_t level)
{
    return level ? sizeof(ivm__ordered_node *) : form == IVM__ORDERED_ROW ? 0 : sizeof(ivm__weight);
}

size_t ivm__ordered_node_size(ivm__ordered_form form, uint32_t level)
{
    return sizeof(ivm__ordered_node) + IVM__ORDERED_FANOUT * (ivm__ordered_cell_size(form) + payload_size(form, level));
}

ivm__ordered_node *ivm__ordered_node_make(ivm__memory *memory, ivm__ordered_form form, uint32_t level)
{
    ivm__ordered_node *node = ivm__allocate(memory, ivm__ordered_node_size(form, level));
    if (node) {
        *node = (ivm__ordered_node){ .level = (uint16_t)level, .form = (uint16_t)form };
    }
    return node;
}

void ivm__ordered_node_free(ivm__memory *memory, ivm__ordered_node *node)
{
    ivm__release(memory, node, ivm__ordered_node_size((ivm__ordered_form)node->form, node->level));
}

int ivm__ordered_key_compare(ivm__ordered_form form, ivm__ordered_key a, ivm__ordered_key b)
{
    assert(form != IVM__ORDERED_ROW);
    if (a.group != b.group) {
        return a.group < b.group ? -1 : 1;
    }
    if (form == IVM__ORDERED_TEXT) {
        return ivm__text_compare(ivm__ordered_key_text(a), ivm__ordered_key_text(b));
    }
    return (a.cell > b.cell) - (a.cell < b.cell);
}

/* ---- Search ---------------------------------------------------------------------------------------------------------------------- */

static inline ivm__ordered_cell word_key(uint32_t group, uint64_t word)
{
    return (ivm__ordered_cell)group << 64 | word;
}

static uint32_t rank_word(const ivm__ordered_node *node, ivm__ordered_key key)
{
    const uint32_t *groups = node->groups;
    const uint64_t *words = ivm__ordered_words(node);
    ivm__ordered_cell wanted = word_key(key.group, (uint64_t)key.cell);
    uint32_t base = 0, count = node->count;
    while (count > 0) {
        uint32_t half = count / 2, middle = base + half;
        bool below = word_key(groups[middle], words[middle]) < wanted;
        base = below ? middle + 1 : base;
        count = below ? count - half - 1 : half;
    }
    return base;
}

static uint32_t rank_wide(const ivm__ordered_node *node, ivm__ordered_key key)
{
    const uint32_t *groups = node->groups;
    const ivm__ordered_cell *wides = ivm__ordered_wides(node);
    uint32_t base = 0, count = node->count;
    while (count > 0) {
        uint32_t half = count / 2, middle = base + half;
        bool below = groups[middle] < key.group || (groups[middle] == key.group && wides[middle] < key.cell);
        base = below ? middle + 1 : base;
        count = below ? count - half - 1 : half;
    }
    return base;
}

static uint32_t rank_text(const ivm__ordered_node *node, ivm__ordered_key key)
{
    uint32_t low = 0, high = node->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (ivm__ordered_key_compare(IVM__ORDERED_TEXT, ivm__ordered_node_key(node, middle), key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t ivm__ordered_node_rank(const ivm__ordered_node *node, ivm__ordered_key key)
{
    switch ((ivm__ordered_form)node->form) {
    case IVM__ORDERED_WORD:
        return rank_word(node, key);
    case IVM__ORDERED_WIDE:
        return rank_wide(node, key);
    default:
        break;
    }
    assert(node->form == IVM__ORDERED_TEXT);
    return rank_text(node, key);
}

uint32_t ivm__ordered_node_group_rank(const ivm__ordered_node *node, uint64_t group)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        rank += node->groups[i] < group;
    }
    return rank;
}

/* ---- Moves ----------------------------------------------------------------------------------------------------------------------- */

static void entries_move(ivm__ordered_node *to, uint32_t to_at, const ivm__ordered_node *from, uint32_t from_at, uint32_t count)
{
    assert(to->level == from->level && to_at + count <= IVM__ORDERED_FANOUT && from_at + count <= IVM__ORDERED_FANOUT);
    memmove(to->groups + to_at, from->groups + from_at, count * sizeof *to->groups);
    size_t cell_size = ivm__ordered_cell_size((ivm__ordered_form)to->form);
    uint8_t *cells = (uint8_t *)ivm__ordered_words(to);
    const uint8_t *from_cells = (const uint8_t *)ivm__ordered_words(from);
    memmove(cells + to_at * cell_size, from_cells + from_at * cell_size, count * cell_size);
    size_t size = payload_size((ivm__ordered_form)to->form, to->level);
    memmove(ivm__ordered_payload(to) + to_at * size, ivm__ordered_payload(from) + from_at * size, count * size);
}

static void key_write(ivm__ordered_node *node, uint32_t at, ivm__ordered_key key)
{
    node->groups[at] = key.group;
    if (ivm__ordered_cell_size((ivm__ordered_form)node->form) == sizeof(ivm__ordered_cell)) {
        ivm__ordered_wides(node)[at] = key.cell;
    } else {
        ivm__ordered_words(node)[at] = (uint64_t)key.cell;
    }
}

void ivm__ordered_node_insert(ivm__ordered_node *node, uint32_t at, ivm__ordered_key key)
{
    assert(at <= node->count && node->count < IVM__ORDERED_FANOUT);
    entries_move(node, at + 1, node, at, node->count - at);
    key_write(node, at, key);
    node->count++;
}

void ivm__ordered_node_erase(ivm__ordered_node *node, uint32_t at)
{
    assert(at < node->count);
    entries_move(node, at, node, at + 1, node->count - at - 1);
    node->count--;
}

void ivm__ordered_node_refresh(ivm__ordered_node *node, uint32_t at)
{
    assert(at < node->count);
    key_write(node, at, ivm__ordered_node_key(ivm__ordered_children(node)[at], 0));
}

void ivm__ordered_node_split(ivm__ordered_node *left, uint32_t at, ivm__ordered_node *right)
{
    assert(right->count == 0 && at > 0 && at < left->count);
    right->count = left->count - at;
    entries_move(right, 0, left, at, right->count);
    left->count = at;
}

/* Both then have half of the two nodes' entries. */
static void neighbours_even(ivm__ordered_node *left, ivm__ordered_node *right)
{
    uint32_t half = (left->count + right->count) / 2;
    if (left->count > half) {
        uint32_t moved = left->count - half;
        entries_move(right, moved, right, 0, right->count);
        entries_move(right, 0, left, half, moved);
        left->count -= moved;
        right->count += moved;
    } else {
        uint32_t moved = half - left->count;
        entries_move(left, left->count, right, 0, moved);
        entries_move(right, 0, right, moved, right->count - moved);
        left->count += moved;
        right->count -= moved;
    }
}

ivm__ordered_node *ivm__ordered_node_balance(ivm__ordered_node *parent, uint32_t at)
{
    assert(parent->count > 1 && at < parent->count);
    uint32_t left_at = at ? at - 1 : 0;
    ivm__ordered_node *left = ivm__ordered_children(parent)[left_at], *right = ivm__ordered_children(parent)[left_at + 1];
    if (left->count + right->count > MERGE_MAX) {
        neighbours_even(left, right);
        ivm__ordered_node_refresh(parent, left_at);
        ivm__ordered_node_refresh(parent, left_at + 1);
        return NULL;
    }
    entries_move(left, left->count, right, 0, right->count);
    left->count += right->count;
    right->count = 0;
    ivm__ordered_node_erase(parent, left_at + 1);
    ivm__ordered_node_refresh(parent, left_at);
    return right;
}
