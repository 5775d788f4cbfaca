/* Ordered Z-sets: the state of min, max and the distinct family, one B+ tree of (group, cell) -> net weight for all groups of an
 * aggregate.
 *
 * A step adds weights and writes each addition down. Commit removes the entries that this left at weight 0; undo subtracts what was
 * written and removes those that fall to 0 by it, so that between two steps no entry has weight 0. Neither allocates: only an insertion
 * does, and it gets all nodes that the splits on its path need before it touches any.
 *
 * Cost: an addition is one descent, of five nodes in a million entries; a removal is one more; so are first and last, and a look at each
 * entry of weight 0 or less before the answer. Memory: about 40 bytes an entry (28 in full nodes; 36 for decimals), 16 an addition of the
 * step under way. */
#include "ordered.h"

#include "ordered_tree.h"

#define CHANGES_KEPT_MAX (64u << 10)     /* a larger list is given back when its step ends */
#define LIGHT_WEIGHT_MAX ((1 << 30) - 1) /* fits a change of one slot */
#define SIGN_BIT ((uint64_t)1 << 63)

/* An addition takes one slot; for a decimal its cell fills another, and so does a weight that is not light, last. */
struct ivm__ordered_change {
    uint64_t cell;
    uint32_t group;
    int32_t weight : 31; /* 0: not light */
    uint32_t zeroed : 1; /* it left its entry at weight 0 */
};
static_assert(sizeof(struct ivm__ordered_change) == sizeof(ivm__wide), "a slot takes a cell or a weight");

static ivm__ordered_form form_of(ivm_type type)
{
    return IVM_TYPE_KIND(type) == IVM_STRING ? IVM__ORDERED_TEXT : ivm__type_is_wide(type) ? IVM__ORDERED_WIDE : IVM__ORDERED_WORD;
}

void ivm__ordered_init(ivm__ordered *ordered, ivm__memory *memory, ivm__texts *texts, ivm_type type)
{
    *ordered = (ivm__ordered){ .memory = memory, .texts = texts, .type = type, .form = form_of(type) };
}

static void changes_release(ivm__ordered *ordered)
{
    ivm__release(ordered->memory, ordered->changes, ordered->changes_capacity * sizeof *ordered->changes);
    ordered->changes = NULL;
    ordered->changes_capacity = 0;
}

void ivm__ordered_deinit(ivm__ordered *ordered)
{
    ivm__ordered_tree_free(ordered);
    if (ordered->memory) {
        changes_release(ordered);
    }
    ivm__ordered_init(ordered, ordered->memory, ordered->texts, ordered->type);
}

/* ---- Keys: cells whose order is that of their bits ---------------------------------------------------------------------------------- */

static ivm__ordered_key key_of(const ivm__ordered *ordered, uint32_t group, ivm__wide cell)
{
    uint64_t word = (uint64_t)cell;
    switch (IVM_TYPE_KIND(ordered->type)) {
    case IVM_STRING:
        return (ivm__ordered_key){ word, group };
    case IVM_DECIMAL_KIND:
        return (ivm__ordered_key){ (ivm__ordered_cell)cell ^ (ivm__ordered_cell)SIGN_BIT << 64, group };
    case IVM_FLOAT64: /* negative ones run backwards; the one NaN has the greatest bits */
        return (ivm__ordered_key){ word & SIGN_BIT ? ~word : word | SIGN_BIT, group };
    default:
        return (ivm__ordered_key){ word ^ SIGN_BIT, group };
    }
}

static ivm__wide cell_of(const ivm__ordered *ordered, ivm__ordered_key key)
{
    uint64_t word = (uint64_t)key.cell;
    switch (IVM_TYPE_KIND(ordered->type)) {
    case IVM_STRING:
        return word;
    case IVM_DECIMAL_KIND:
        return (ivm__wide)(key.cell ^ (ivm__ordered_cell)SIGN_BIT << 64);
    case IVM_FLOAT64:
        return word & SIGN_BIT ? word ^ SIGN_BIT : ~word;
    default:
        return word ^ SIGN_BIT;
    }
}

/* ---- Changes ------------------------------------------------------------------------------------------------------------------------ */

typedef struct addition {
    struct ivm__ordered_change *change;
    ivm__ordered_key key;
    ivm__weight weight;
} addition;

/* The addition at *at, which then passes it. */
static addition addition_read(const ivm__ordered *ordered, uint32_t *at)
{
    struct ivm__ordered_change *change = &ordered->changes[(*at)++];
    addition read = { change, { change->cell, change->group }, change->weight };
    if (ivm__type_is_wide(ordered->type)) {
        memcpy(&read.key.cell, &ordered->changes[(*at)++], sizeof read.key.cell);
    }
    if (!change->weight) {
        memcpy(&read.weight, &ordered->changes[(*at)++], sizeof read.weight);
    }
    assert(*at <= ordered->changes_count && read.weight);
    return read;
}

/* Room was made. */
static void addition_write(ivm__ordered *ordered, ivm__ordered_key key, ivm__weight weight, bool zeroed)
{
    bool light = weight >= -LIGHT_WEIGHT_MAX && weight <= LIGHT_WEIGHT_MAX;
    ordered->changes[ordered->changes_count++] =
        (struct ivm__ordered_change){ (uint64_t)key.cell, key.group, light ? (int32_t)weight : 0, zeroed };
    if (ivm__type_is_wide(ordered->type)) {
        memcpy(&ordered->changes[ordered->changes_count++], &key.cell, sizeof key.cell);
    }
    if (!light) {
        memcpy(&ordered->changes[ordered->changes_count++], &weight, sizeof weight);
    }
    assert(ordered->changes_count <= ordered->changes_capacity);
}

/* Weights in flight have 128 bits and may wrap in a sum of them; then the others of the step bring them back. */
static inline ivm__weight weight_sum(ivm__weight a, ivm__weight b)
{
    return (ivm__weight)((unsigned __int128)a + (unsigned __int128)b);
}

/* ---- Steps -------------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__ordered_add_crossing(ivm__ordered *ordered, uint32_t group, ivm__wide cell, ivm__weight weight, int *crossed)
{
    *crossed = 0;
    if (weight == 0) {
        return IVM_OK;
    }
    if (ivm__unlikely(ordered->changes_count + 3ull > ordered->changes_capacity)) {
        IVM_TRY(ivm__grow(ordered->memory, (void **)&ordered->changes, &ordered->changes_capacity, ordered->changes_count + 3ull,
                          sizeof *ordered->changes));
    }
    ivm__ordered_key key = key_of(ordered, group, cell);
    ivm__ordered_path path;
    ivm__weight *net;
    if (ivm__ordered_path_find(ordered, key, &path)) {
        net = ivm__ordered_path_weight(&path);
    } else {
        IVM_TRY(ivm__ordered_tree_insert(ordered, &path, key, &net));
        if (IVM_TYPE_KIND(ordered->type) == IVM_STRING) {
            ivm__texts_acquire(ordered->texts, ivm__ordered_key_text(key));
        }
    }
    bool was = *net > 0;
    *net = weight_sum(*net, weight);
    *crossed = (*net > 0) - was;
    addition_write(ordered, key, weight, *net == 0);
    return IVM_OK;
}

/* Removes the entries of weight 0 that changes left so, and ends the step. */
static void changes_sweep(ivm__ordered *ordered)
{
    for (uint32_t at = 0; at < ordered->changes_count;) {
        addition added = addition_read(ordered, &at);
        ivm__ordered_path path;
        if (added.change->zeroed && ivm__ordered_path_find(ordered, added.key, &path) && !*ivm__ordered_path_weight(&path)) {
            ivm__ordered_tree_remove(ordered, &path);
        }
    }
    ordered->changes_count = 0;
    if (ordered->changes_capacity > CHANGES_KEPT_MAX) {
        changes_release(ordered);
    }
}

void ivm__ordered_commit(ivm__ordered *ordered)
{
    changes_sweep(ordered);
}

void ivm__ordered_undo(ivm__ordered *ordered)
{
    for (uint32_t at = 0; at < ordered->changes_count;) {
        addition added = addition_read(ordered, &at);
        ivm__ordered_path path;
        bool found = ivm__ordered_path_find(ordered, added.key, &path);
        assert(found);
        (void)found;
        ivm__weight *net = ivm__ordered_path_weight(&path);
        *net = weight_sum(*net, (ivm__weight) - (unsigned __int128)added.weight);
        added.change->zeroed = *net == 0;
    }
    changes_sweep(ordered);
}

bool ivm__ordered_first(const ivm__ordered *ordered, uint32_t group, ivm__wide *cell)
{
    ivm__ordered_path path;
    bool more = ordered->root;
    if (more) {
        ivm__ordered_path_find_group(ordered, group, &path);
    }
    for (; more; more = ivm__ordered_path_next(&path, ordered->height)) {
        const ivm__ordered_node *leaf = path.node[0];
        for (uint32_t i = path.at[0]; i < leaf->count; i++) {
            if (leaf->groups[i] != group) {
                return false;
            }
            if (ivm__ordered_weights(leaf)[i] > 0) {
                *cell = cell_of(ordered, ivm__ordered_node_key(leaf, i));
                return true;
            }
        }
    }
    return false;
}

bool ivm__ordered_last(const ivm__ordered *ordered, uint32_t group, ivm__wide *cell)
{
    ivm__ordered_path path;
    bool more = ordered->root;
    if (more) {
        ivm__ordered_path_find_group(ordered, group + 1ull, &path);
    }
    for (; more; more = ivm__ordered_path_previous(&path, ordered->height)) {
        const ivm__ordered_node *leaf = path.node[0];
        for (uint32_t i = path.at[0]; i-- > 0;) {
            if (leaf->groups[i] != group) {
                return false;
            }
            if (ivm__ordered_weights(leaf)[i] > 0) {
                *cell = cell_of(ordered, ivm__ordered_node_key(leaf, i));
                return true;
            }
        }
    }
    return false;
}

ivm_status ivm__ordered_walk(const ivm__ordered *ordered, uint32_t group, ivm__ordered_visit *visit, void *context)
{
    ivm__ordered_path path;
    bool more = ordered->root;
    if (more) {
        ivm__ordered_path_find_group(ordered, group, &path);
    }
    for (; more; more = ivm__ordered_path_next(&path, ordered->height)) {
        const ivm__ordered_node *leaf = path.node[0];
        for (uint32_t i = path.at[0]; i < leaf->count; i++) {
            if (leaf->groups[i] != group) {
                return IVM_OK;
            }
            if (ivm__ordered_weights(leaf)[i]) {
                IVM_TRY(visit(context, cell_of(ordered, ivm__ordered_node_key(leaf, i)), ivm__ordered_weights(leaf)[i]));
            }
        }
    }
    return IVM_OK;
}

uint64_t ivm__ordered_bytes(const ivm__ordered *ordered)
{
    return ordered->nodes_bytes + ordered->changes_capacity * sizeof *ordered->changes;
}
