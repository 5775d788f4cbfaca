/* Sorted rows: how rows compare, and paths through the tree by that comparison.
 *
 *     cell = word of the first key * 2^64 + word of the second        a < b in the order  =>  cell(a) <= cell(b)
 *
 * A key's word is its value in 64 bits that compare as the values do; a first key that is a decimal takes all 128, and so do the first 16 bytes
 * of a text, but for a group's, which goes by where it lies. What cells leave open the rows decide: most searches read nodes alone, where a row
 * would be a cache miss a comparison.
 *
 * Cost: an insertion, a removal, the first of a group is one descent, of five nodes in a million rows. Memory: 30 to 40 bytes a row. */
#include "sorted.h"

#define SIGN_BIT ((uint64_t)1 << 63)

void ivm__sorted_init(ivm__sorted *sorted, const ivm__store *store, const ivm__sorted_key *keys, uint32_t keys_count, uint32_t groups_count)
{
    assert(groups_count <= keys_count);
    *sorted = (ivm__sorted){ .store = store, .keys = keys, .keys_count = keys_count, .groups_count = groups_count };
    sorted->tree = (ivm__ordered){ .memory = store->memory, .form = IVM__ORDERED_ROW };
}

void ivm__sorted_deinit(ivm__sorted *sorted)
{
    ivm__ordered_tree_free(&sorted->tree);
    *sorted = (ivm__sorted){ 0 };
}

/* ---- Cells: what an order begins with ------------------------------------------------------------------------------------------------ */

static ivm_type key_type(const ivm__sorted *sorted, uint32_t nth)
{
    return sorted->store->layout->types[sorted->keys[nth].column];
}

/* Whether the key's values are texts in their order. Those of a group's key need none: they go by where they lie, as each text lies once. */
static bool key_is_text(const ivm__sorted *sorted, uint32_t nth)
{
    return nth >= sorted->groups_count && IVM_TYPE_KIND(key_type(sorted, nth)) == IVM_STRING;
}

/* Whether the value of this key takes one word, which says all of it unless it is 0 or the greatest: nulls are these too. */
static bool key_is_word(const ivm__sorted *sorted, uint32_t nth)
{
    return !key_is_text(sorted, nth) && !ivm__type_is_wide(key_type(sorted, nth));
}

static bool word_is_exact(uint64_t word)
{
    return word != 0 && word != UINT64_MAX;
}

/* The first 16 bytes, 0 behind the end. */
static ivm__ordered_cell text_head(const ivm__text *text)
{
    uint8_t bytes[sizeof(ivm__ordered_cell)] = { 0 };
    ivm__ordered_cell head = 0;
    memcpy(bytes, text->bytes, text->size < sizeof bytes ? text->size : sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        head = head << 8 | bytes[i];
    }
    return head;
}

/* The value's bits from the highest on, in the ascending order. */
static ivm__ordered_cell value_head(const ivm__sorted *sorted, const uint8_t *row, uint32_t nth)
{
    const ivm__layout *layout = sorted->store->layout;
    uint32_t column = sorted->keys[nth].column;
    ivm_type type = layout->types[column];
    if (ivm__type_is_wide(type)) {
        return (ivm__ordered_cell)ivm__row_wide(layout, row, column) ^ (ivm__ordered_cell)SIGN_BIT << 64;
    }
    uint64_t word = ivm__row_word(layout, row, column);
    switch (IVM_TYPE_KIND(type)) {
    case IVM_STRING:
        return key_is_text(sorted, nth) ? text_head((const ivm__text *)(uintptr_t)word) : (ivm__ordered_cell)word << 64;
    case IVM_FLOAT64: /* negative ones run backwards; the one NaN has the greatest bits */
        return (ivm__ordered_cell)(word & SIGN_BIT ? ~word : word | SIGN_BIT) << 64;
    default:
        return (ivm__ordered_cell)(word ^ SIGN_BIT) << 64;
    }
}

/* The same in the key's order, nulls at its beginning or end. */
static ivm__ordered_cell key_head(const ivm__sorted *sorted, const uint8_t *row, uint32_t nth)
{
    const ivm__sorted_key *key = &sorted->keys[nth];
    if (ivm__row_is_null(sorted->store->layout, row, key->column)) {
        return key->nulls_first ? 0 : ~(ivm__ordered_cell)0;
    }
    ivm__ordered_cell head = value_head(sorted, row, nth);
    return key->descending ? ~head : head;
}

ivm__ordered_key ivm__sorted_entry(const ivm__sorted *sorted, ivm__row_id row)
{
    const uint8_t *at = ivm__store_row(sorted->store, row);
    ivm__ordered_cell cell = sorted->keys_count ? key_head(sorted, at, 0) : 0;
    if (sorted->keys_count && key_is_word(sorted, 0)) {
        uint64_t first = (uint64_t)(cell >> 64);
        bool second = word_is_exact(first) && sorted->keys_count > 1;
        cell = (ivm__ordered_cell)first << 64 | (second ? (uint64_t)(key_head(sorted, at, 1) >> 64) : 0);
    }
    return (ivm__ordered_key){ cell, row };
}

/* How many keys rows of this cell are equal in. */
static uint32_t keys_known(const ivm__sorted *sorted, ivm__ordered_cell cell)
{
    if (sorted->keys_count == 0 || key_is_text(sorted, 0)) {
        return 0;
    }
    if (!key_is_word(sorted, 0)) {
        return cell != 0 && cell != ~(ivm__ordered_cell)0;
    }
    if (!word_is_exact((uint64_t)(cell >> 64))) {
        return 0;
    }
    return sorted->keys_count > 1 && key_is_word(sorted, 1) && word_is_exact((uint64_t)cell) ? 2 : 1;
}

/* The part of cells that tells groups apart. */
static ivm__ordered_cell group_mask(const ivm__sorted *sorted)
{
    if (sorted->groups_count == 0) {
        return 0;
    }
    bool half = sorted->groups_count == 1 && key_is_word(sorted, 0);
    return half ? (ivm__ordered_cell)UINT64_MAX << 64 : ~(ivm__ordered_cell)0;
}

/* ---- Rows compared -------------------------------------------------------------------------------------------------------------------- */

static int key_compare(const ivm__sorted *sorted, uint32_t nth, const uint8_t *a, const uint8_t *b)
{
    const ivm__layout *layout = sorted->store->layout;
    const ivm__sorted_key *key = &sorted->keys[nth];
    bool a_null = ivm__row_is_null(layout, a, key->column), b_null = ivm__row_is_null(layout, b, key->column);
    if (a_null || b_null) {
        return key->nulls_first ? b_null - a_null : a_null - b_null;
    }
    ivm_type type = layout->types[key->column];
    int order;
    if (ivm__type_is_wide(type)) {
        order = ivm__cell_compare(type, ivm__row_wide(layout, a, key->column), ivm__row_wide(layout, b, key->column));
    } else {
        uint64_t a_word = ivm__row_word(layout, a, key->column), b_word = ivm__row_word(layout, b, key->column);
        bool by_place = IVM_TYPE_KIND(type) == IVM_STRING && !key_is_text(sorted, nth);
        order = by_place ? (a_word > b_word) - (a_word < b_word) : ivm__cell_compare(type, a_word, b_word);
    }
    return key->descending ? -order : order;
}

/* By keys[first] to keys[end - 1]. */
static int rows_compare(const ivm__sorted *sorted, uint32_t first, uint32_t end, ivm__row_id a, ivm__row_id b)
{
    const uint8_t *a_at = ivm__store_row(sorted->store, a), *b_at = ivm__store_row(sorted->store, b);
    int order = 0;
    for (uint32_t i = first; order == 0 && i < end; i++) {
        order = key_compare(sorted, i, a_at, b_at);
    }
    return order;
}

int ivm__sorted_compare(const ivm__sorted *sorted, ivm__ordered_key a, ivm__ordered_key b)
{
    if (ivm__likely(a.cell != b.cell)) {
        return a.cell < b.cell ? -1 : 1;
    }
    return a.group == b.group ? 0 : rows_compare(sorted, keys_known(sorted, a.cell), sorted->keys_count, a.group, b.group);
}

/* The same by the group's keys alone. */
static int groups_compare(const ivm__sorted *sorted, ivm__ordered_cell mask, ivm__ordered_key a, ivm__ordered_key b)
{
    ivm__ordered_cell a_cell = a.cell & mask, b_cell = b.cell & mask;
    if (a_cell != b_cell) {
        return a_cell < b_cell ? -1 : 1;
    }
    uint32_t known = keys_known(sorted, a_cell);
    return a.group == b.group || known >= sorted->groups_count ? 0 : rows_compare(sorted, known, sorted->groups_count, a.group, b.group);
}

bool ivm__sorted_same_group(const ivm__sorted *sorted, ivm__ordered_key a, ivm__ordered_key b)
{
    return groups_compare(sorted, group_mask(sorted), a, b) == 0;
}

/* ---- Sorting -------------------------------------------------------------------------------------------------------------------------- */

/* Two runs that become one: how far each has been read. */
typedef struct halves {
    uint32_t left, right, half, count;
} halves;

/* The next of both halves, from[0..half) and [half..count), up to number `end`. */
static void halves_merge(const ivm__sorted *sorted, const ivm__ordered_key *from, halves *at, ivm__ordered_key *to, uint32_t end)
{
    uint32_t left = at->left, right = at->right, half = at->half, count = at->count;
    for (uint32_t i = left + right - half; i < end; i++) {
        bool take_left = right == count || (left < half && ivm__sorted_compare(sorted, from[left], from[right]) <= 0);
        to[i] = from[take_left ? left++ : right++];
    }
    at->left = left;
    at->right = right;
}

static ivm_status run_merge(const ivm__sorted *sorted, const ivm__ordered_key *from, halves at, ivm__ordered_key *to,
                            const ivm__cancel *cancel)
{
    for (uint32_t done = 0; done < at.count;) {
        if (ivm__cancel_asked(cancel)) {
            return IVM_CANCELLED;
        }
        done = at.count - done < IVM__ROWS_UNASKED ? at.count : done + IVM__ROWS_UNASKED;
        halves_merge(sorted, from, &at, to, done);
    }
    return IVM_OK;
}

ivm_status ivm__sorted_sort(const ivm__sorted *sorted, ivm__ordered_key *entries, ivm__ordered_key *spare, uint32_t count,
                            const ivm__cancel *cancel)
{
    ivm__ordered_key *from = entries, *to = spare;
    for (uint64_t width = 1; width < count; width *= 2) {
        for (uint64_t first = 0; first < count; first += 2 * width) {
            uint64_t left = count - first;
            uint32_t half = (uint32_t)(left < width ? left : width), both = (uint32_t)(left < 2 * width ? left : 2 * width);
            IVM_TRY(run_merge(sorted, from + first, (halves){ 0, half, half, both }, to + first, cancel));
        }
        ivm__ordered_key *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != entries && count) {
        memcpy(entries, from, count * sizeof *entries);
    }
    return IVM_OK;
}

/* ---- Paths ---------------------------------------------------------------------------------------------------------------------------- */

/* How many entries of the node come before this one; *equal: the next is the same row. */
static uint32_t node_rank(const ivm__sorted *sorted, const ivm__ordered_node *node, ivm__ordered_key entry, bool *equal)
{
    uint32_t low = 0, high = node->count;
    *equal = false;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        int order = ivm__sorted_compare(sorted, ivm__ordered_node_key(node, middle), entry);
        if (order == 0) {
            *equal = true;
            return middle;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return low;
}

/* Whether the row is there; else the path leads to where it belongs. */
static bool path_find(const ivm__sorted *sorted, ivm__ordered_key entry, ivm__ordered_path *path)
{
    ivm__ordered_node *node = sorted->tree.root;
    bool equal = false;
    for (uint32_t level = sorted->tree.height; level-- > 0;) {
        uint32_t rank = node_rank(sorted, node, entry, &equal);
        path->node[level] = node;
        path->at[level] = level && rank && !equal ? rank - 1 : rank;
        if (level) {
            node = ivm__ordered_children(node)[path->at[level]];
            ivm__ordered_keys_prefetch(node);
        }
    }
    return equal;
}

/* How many entries of the node are of groups before the entry's. */
static uint32_t node_group_rank(const ivm__sorted *sorted, const ivm__ordered_node *node, ivm__ordered_cell mask, ivm__ordered_key entry)
{
    uint32_t low = 0, high = node->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        bool before = groups_compare(sorted, mask, ivm__ordered_node_key(node, middle), entry) < 0;
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return low;
}

bool ivm__sorted_find_group(const ivm__sorted *sorted, ivm__ordered_key entry, ivm__ordered_path *path)
{
    ivm__ordered_cell mask = group_mask(sorted);
    ivm__ordered_node *node = sorted->tree.root;
    for (uint32_t level = sorted->tree.height; level-- > 0;) {
        uint32_t rank = node_group_rank(sorted, node, mask, entry);
        path->node[level] = node;
        path->at[level] = level && rank ? rank - 1 : rank;
        node = level ? ivm__ordered_children(node)[path->at[level]] : node;
    }
    bool more = node && (path->at[0] < node->count || ivm__ordered_path_next(path, sorted->tree.height));
    return more && ivm__sorted_same_group(sorted, ivm__sorted_at(path), entry);
}

bool ivm__sorted_next(const ivm__sorted *sorted, ivm__ordered_path *path)
{
    return ++path->at[0] < path->node[0]->count || ivm__ordered_path_next(path, sorted->tree.height);
}

/* ---- Rows put in and taken out -------------------------------------------------------------------------------------------------------- */

ivm_status ivm__sorted_insert(ivm__sorted *sorted, ivm__ordered_key entry)
{
    ivm__ordered_path path;
    ivm__weight *none;
    bool found = path_find(sorted, entry, &path);
    assert(!found);
    (void)found;
    return ivm__ordered_tree_insert(&sorted->tree, &path, entry, &none);
}

void ivm__sorted_remove(ivm__sorted *sorted, ivm__row_id row)
{
    ivm__ordered_path path;
    bool found = path_find(sorted, ivm__sorted_entry(sorted, row), &path);
    assert(found && ivm__sorted_at(&path).group == row);
    (void)found;
    ivm__ordered_tree_remove(&sorted->tree, &path);
}

void ivm__sorted_clear(ivm__sorted *sorted)
{
    ivm__ordered_tree_free(&sorted->tree);
}

uint64_t ivm__sorted_bytes(const ivm__sorted *sorted)
{
    return sorted->tree.nodes_bytes;
}

const char *ivm__sorted_validate(const ivm__sorted *sorted)
{
    const char *reason = ivm__ordered_validate(&sorted->tree);
    ivm__ordered_path path = { 0 };
    bool more = !reason && sorted->tree.root;
    for (uint32_t level = sorted->tree.height; more && level-- > 0;) {
        path.node[level] = level + 1 == sorted->tree.height ? sorted->tree.root : ivm__ordered_children(path.node[level + 1])[0];
    }
    ivm__ordered_key last = { 0 };
    for (bool first = true; !reason && more; first = false) {
        ivm__ordered_key at = ivm__sorted_at(&path);
        if (ivm__sorted_entry(sorted, at.group).cell != at.cell) {
            reason = "a cell that is not its row's";
        } else if (!first && rows_compare(sorted, 0, sorted->keys_count, last.group, at.group) >= 0) {
            reason = "rows not ascending";
        }
        last = at;
        more = ivm__sorted_next(sorted, &path);
    }
    return reason;
}
