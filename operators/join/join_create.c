/* A join made from its spec, which is copied: leaves with the layouts of their kept columns, and a probe order for each driver with the moment at
 * which each column is read for the last time, so that a run carries no column longer than it is needed.
 *
 * An order's arrays are slices of four that all orders share. */
#include "join_state.h"

/* ---- Leaves ------------------------------------------------------------------------------------------------------------------------- */

static ivm_status leaf_layout(ivm__join *join, ivm__join_leaf *leaf, const ivm__leaf_spec *spec)
{
    static const ivm_type zeros = IVM_INT64;
    if (leaf->kept_count == 0) {
        return ivm__layout_create(join->memory, &zeros, NULL, 1, false, &leaf->layout);
    }
    size_t size = leaf->kept_count * sizeof(ivm_type);
    ivm_type *types = ivm__allocate(join->memory, size);
    if (!types) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < leaf->kept_count; i++) {
        types[i] = spec->types[leaf->kept[i]];
    }
    ivm_status status = ivm__layout_create(join->memory, types, NULL, leaf->kept_count, false, &leaf->layout);
    ivm__release(join->memory, types, size);
    return status;
}

static ivm_status leaf_init(ivm__join *join, ivm__join_leaf *leaf, const ivm__leaf_spec *spec, uint32_t columns_first)
{
    leaf->bare = (ivm__source){ spec->table, spec->view, spec->table && !spec->heading ? spec->table->heading : spec->heading };
    assert(!(ivm__leaf_is_bare(leaf) && spec->scan) && !(spec->table && spec->view));
    leaf->scan = spec->scan;
    const ivm_table *table = spec->scan ? ivm__scan_source(spec->scan).table : spec->table;
    leaf->transient = table && table->transient ? table : NULL;
    leaf->columns_first = columns_first;
    leaf->columns_count = spec->columns_count;
    leaf->kept = ivm__allocate(join->memory, spec->columns_count * sizeof *leaf->kept);
    leaf->place = ivm__allocate(join->memory, spec->columns_count * sizeof *leaf->place);
    if (!leaf->kept || !leaf->place) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t c = 0; c < spec->columns_count; c++) {
        leaf->place[c] = spec->needed[c] ? leaf->kept_count : UINT32_MAX;
        if (spec->needed[c]) {
            leaf->kept[leaf->kept_count++] = c;
        }
    }
    IVM_TRY(leaf_layout(join, leaf, spec));
    if (!ivm__leaf_is_bare(leaf) && !leaf->scan) {
        IVM_TRY(ivm__leaf_rows_make(join, leaf, &leaf->rows));
        leaf->keeps = true;
    }
    return IVM_OK;
}

static void leaf_deinit(ivm__join_leaf *leaf, ivm__memory *memory)
{
    ivm__zset_deinit(&leaf->rows);
    ivm__zset_deinit(&leaf->delta);
    ivm__layout_release(leaf->layout);
    ivm__release(memory, leaf->kept, leaf->columns_count * sizeof *leaf->kept);
    ivm__release(memory, leaf->place, leaf->columns_count * sizeof *leaf->place);
}

/* ---- Orders -------------------------------------------------------------------------------------------------------------------------- */

static ivm_status shared_allocate(ivm__join *join, const ivm__join_spec *spec)
{
    struct ivm__join_store *shared = &join->shared;
    for (uint32_t i = 0; i < spec->leaves_count; i++) {
        const ivm__probe_order *order = &spec->orders[i];
        assert(order->probes_count + 1 == spec->leaves_count);
        shared->probes_count += order->probes_count;
        shared->equal_count += order->equal_count;
        for (uint32_t p = 0; p < order->probes_count; p++) {
            shared->words_count += 3 * order->probes[p].keys_count;
            shared->equal_count += order->probes[p].equal_count;
        }
    }
    shared->probes = ivm__allocate_zeroed(join->memory, shared->probes_count * sizeof *shared->probes);
    shared->words = ivm__allocate(join->memory, shared->words_count * sizeof *shared->words);
    shared->equal = ivm__allocate(join->memory, shared->equal_count * sizeof *shared->equal);
    shared->last = ivm__allocate_zeroed(join->memory, (size_t)spec->leaves_count * join->head.columns_count);
    return shared->probes && shared->words && shared->equal && shared->last ? IVM_OK : IVM_OUT_OF_MEMORY;
}

/* The key of the probe that is this column of the leaf's table. */
static uint32_t key_to(const ivm__probe_spec *spec, ivm__source source, uint32_t column)
{
    uint32_t i = 0;
    while (i < spec->keys_count && ivm__source_column(source, spec->keys[i].to) != column) {
        i++;
    }
    return i;
}

static bool is_table_key(const ivm__probe_spec *spec, ivm__source source)
{
    const ivm_table *table = source.table;
    if (!table || table->key_count == 0 || table->key_count != spec->keys_count) {
        return false;
    }
    for (uint32_t k = 0; k < table->key_count; k++) {
        if (key_to(spec, source, table->key[k]) == spec->keys_count) {
            return false;
        }
    }
    return true;
}

/* The next `count` items of a shared array. */
static uint32_t *words_take(uint32_t **words, uint32_t count)
{
    uint32_t *taken = *words;
    *words += count;
    return taken;
}
static ivm__probe_key *equal_copy(ivm__probe_key **equal, const ivm__probe_key *from, uint32_t count)
{
    ivm__probe_key *taken = *equal;
    if (count) {
        memcpy(taken, from, count * sizeof *from);
    }
    *equal += count;
    return taken;
}

static void probe_fill(const ivm__join *join, ivm__join_probe *probe, const ivm__probe_spec *spec, uint32_t **words, ivm__probe_key **equal)
{
    const ivm__join_leaf *leaf = &join->leaves[spec->leaf];
    probe->leaf = spec->leaf;
    probe->keys_count = spec->keys_count;
    probe->from = words_take(words, spec->keys_count);
    probe->to = words_take(words, spec->keys_count);
    probe->place = words_take(words, spec->keys_count);
    probe->unique = is_table_key(spec, leaf->bare);
    for (uint32_t k = 0; k < spec->keys_count; k++) {
        const ivm__probe_key *key = &spec->keys[probe->unique ? key_to(spec, leaf->bare, leaf->bare.table->key[k]) : k];
        probe->from[k] = key->from;
        probe->to[k] = key->to;
        probe->place[k] = leaf->place[key->to];
        assert(probe->place[k] != UINT32_MAX);
    }
    probe->equal_count = spec->equal_count;
    probe->equal = equal_copy(equal, spec->equal, spec->equal_count);
}

static void read_at(uint8_t *last, uint32_t column, uint32_t moment)
{
    if (last[column] < moment) {
        last[column] = (uint8_t)moment;
    }
}

static void order_moments(const ivm__join *join, ivm__join_order *order)
{
    for (uint32_t c = 0; c < join->head.columns_count; c++) {
        order->last[c] = join->needed_above[c] ? IVM__READ_ABOVE : join->read_last[c] ? IVM__READ_RESIDUAL : 0;
    }
    for (uint32_t p = 0; p + 1 < join->leaves_count; p++) {
        const ivm__join_probe *probe = &order->probes[p];
        for (uint32_t k = 0; k < probe->keys_count; k++) {
            read_at(order->last, probe->from[k], IVM__READ_ENTERING(p));
        }
        for (uint32_t e = 0; e < probe->equal_count; e++) {
            read_at(order->last, probe->equal[e].from, IVM__READ_BEHIND(p));
            read_at(order->last, probe->equal[e].to, IVM__READ_BEHIND(p));
        }
    }
}

static void orders_fill(ivm__join *join, const ivm__join_spec *spec)
{
    ivm__join_probe *probes = join->shared.probes;
    uint32_t *words = join->shared.words;
    ivm__probe_key *equal = join->shared.equal;
    for (uint32_t i = 0; i < spec->leaves_count; i++) {
        const ivm__probe_order *from = &spec->orders[i];
        ivm__join_order *order = &join->orders[i];
        order->probes = probes;
        probes += from->probes_count;
        order->equal_count = from->equal_count;
        order->equal = equal_copy(&equal, from->equal, from->equal_count);
        for (uint32_t p = 0; p < from->probes_count; p++) {
            probe_fill(join, &order->probes[p], &from->probes[p], &words, &equal);
        }
        order->last = join->shared.last + (size_t)i * join->head.columns_count;
        order_moments(join, order);
    }
}

/* ---- The join ------------------------------------------------------------------------------------------------------------------------ */

static ivm_status columns_init(ivm__join *join, const ivm__join_spec *spec)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < spec->leaves_count; i++) {
        count += spec->leaves[i].columns_count;
    }
    ivm_type *types = ivm__allocate(join->memory, count * sizeof *types);
    join->head = (ivm__operator){ .class = &ivm__join_class, .columns_count = count, .types = types };
    join->needed_above = ivm__allocate(join->memory, count * sizeof *join->needed_above);
    join->read_last = ivm__allocate(join->memory, count * sizeof *join->read_last);
    if (!types || !join->needed_above || !join->read_last) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0, first = 0; i < spec->leaves_count; first += spec->leaves[i++].columns_count) {
        memcpy(types + first, spec->leaves[i].types, spec->leaves[i].columns_count * sizeof *types);
    }
    memcpy(join->needed_above, spec->needed_above, count * sizeof *join->needed_above);
    memcpy(join->read_last, spec->needed_above, count * sizeof *join->read_last);
    if (join->residual) {
        ivm__expression_mark_columns(join->residual, join->read_last);
    }
    return IVM_OK;
}

static ivm_status leaves_init(ivm__join *join, const ivm__join_spec *spec)
{
    join->leaves = ivm__allocate_zeroed(join->memory, spec->leaves_count * sizeof *join->leaves);
    join->orders = ivm__allocate_zeroed(join->memory, spec->leaves_count * sizeof *join->orders);
    join->leaves_count = spec->leaves_count;
    if (!join->leaves || !join->orders) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0, first = 0; i < spec->leaves_count; first += spec->leaves[i++].columns_count) {
        IVM_TRY(leaf_init(join, &join->leaves[i], &spec->leaves[i], first));
    }
    return IVM_OK;
}

void ivm__join_free(ivm__operator *self, ivm__memory *memory)
{
    ivm__join *join = (ivm__join *)self;
    struct ivm__join_store *shared = &join->shared;
    uint32_t columns_count = self->columns_count, leaves_count = join->leaves_count;
    for (uint32_t i = 0; join->leaves && i < leaves_count; i++) {
        leaf_deinit(&join->leaves[i], memory);
    }
    ivm__failures_deinit(&join->failures);
    ivm__expression_free(join->residual, memory, join->texts);
    join->planner.free(join->planner.state, memory);
    ivm__release(memory, shared->probes, shared->probes_count * sizeof *shared->probes);
    ivm__release(memory, shared->words, shared->words_count * sizeof *shared->words);
    ivm__release(memory, shared->equal, shared->equal_count * sizeof *shared->equal);
    ivm__release(memory, shared->last, (size_t)leaves_count * columns_count);
    ivm__release(memory, join->leaves, leaves_count * sizeof *join->leaves);
    ivm__release(memory, join->orders, leaves_count * sizeof *join->orders);
    ivm__release(memory, (void *)self->types, columns_count * sizeof *self->types);
    ivm__release(memory, join->needed_above, columns_count * sizeof *join->needed_above);
    ivm__release(memory, join->read_last, columns_count * sizeof *join->read_last);
    ivm__release(memory, join, sizeof *join);
}

ivm_status ivm__join_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm__join_spec *spec, ivm__operator **made)
{
    assert(spec->leaves_count >= 1 && spec->leaves_count <= IVM_JOIN_LEAVES_MAX);
    ivm__join *join = ivm__allocate_zeroed(memory, sizeof *join);
    if (!join) {
        ivm__expression_free(spec->residual, memory, texts);
        spec->planner.free(spec->planner.state, memory);
        return IVM_OUT_OF_MEMORY;
    }
    join->memory = memory;
    join->texts = texts;
    join->seed = seed;
    join->residual = spec->residual;
    join->residual_fallible = spec->residual && ivm__expression_is_fallible(spec->residual);
    join->planner = spec->planner;
    ivm_status status = columns_init(join, spec);
    if (status == IVM_OK) {
        status = leaves_init(join, spec);
    }
    if (status == IVM_OK) {
        status = shared_allocate(join, spec);
    }
    if (status != IVM_OK) {
        ivm__join_free(&join->head, memory);
        return status;
    }
    orders_fill(join, spec);
    *made = &join->head;
    return IVM_OK;
}
