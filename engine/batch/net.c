/* Net rows: equal rows found through an open-addressed table of {32 bits of the hash, row + 1} at a load of at most a half, the rows of a key
 * through another. Rows come as chunks, are laid out and hashed as a block, and their slots are fetched ahead. */
#include "net.h"

#define NONE UINT32_MAX

#define PREFETCH_AHEAD 16u

static void *zeroed(ivm__arena *arena, size_t size)
{
    void *made = ivm__arena_allocate(arena, size);
    if (made) {
        memset(made, 0, size);
    }
    return made;
}

static bool keys_init(ivm__net_keys *keys, ivm__arena *arena, uint32_t rows_max, size_t slots_size)
{
    keys->slots = zeroed(arena, slots_size);
    keys->rows = ivm__arena_allocate(arena, rows_max * sizeof *keys->rows);
    keys->heads = ivm__arena_allocate(arena, rows_max * sizeof *keys->heads);
    keys->next = ivm__arena_allocate(arena, rows_max * sizeof *keys->next);
    keys->linked = zeroed(arena, rows_max * sizeof *keys->linked);
    return keys->slots && keys->rows && keys->heads && keys->next && keys->linked;
}

ivm_status ivm__net_init(ivm__net *net, ivm__arena *arena, const ivm_table *table, uint64_t rows_max, bool by_key)
{
    uint64_t capacity = 16;
    assert(rows_max <= IVM_BATCH_ROWS_MAX);
    while (capacity < rows_max * 2) {
        capacity *= 2;
    }
    size_t slots_size = capacity * sizeof(uint64_t);
    *net = (ivm__net){ .table = table, .rows_max = (uint32_t)rows_max, .slots_mask = (uint32_t)(capacity - 1) };
    net->stride = IVM__ROW_HEADER + table->store.layout->body_bytes;
    net->rows = ivm__arena_allocate(arena, rows_max * net->stride);
    net->weights = ivm__arena_allocate(arena, rows_max * sizeof *net->weights);
    net->slots = zeroed(arena, slots_size);
    if (!net->rows || !net->weights || !net->slots) {
        return IVM_OUT_OF_MEMORY;
    }
    return !by_key || keys_init(&net->keys, arena, net->rows_max, slots_size) ? IVM_OK : IVM_OUT_OF_MEMORY;
}

/* ---- Equal rows ------------------------------------------------------------------------------------------------------------------ */

static uint64_t row_hash(const ivm__net *net, const uint8_t *row)
{
    return ivm__hash_words(row + IVM__ROW_HEADER, (net->stride - IVM__ROW_HEADER) / (uint32_t)sizeof(uint64_t), net->table->store.seed);
}

/* The row equal to this one, made with weight 0 where there is none. */
static uint32_t row_of(ivm__net *net, const uint8_t *row, uint64_t hash)
{
    uint64_t tag = hash >> 32 << 32;
    uint32_t at = (uint32_t)hash & net->slots_mask;
    for (; net->slots[at]; at = (at + 1) & net->slots_mask) {
        uint32_t found = (uint32_t)net->slots[at] - 1;
        if ((net->slots[at] ^ tag) >> 32 == 0 && ivm__net_equal(net, found, row)) {
            return found;
        }
    }
    assert(net->rows_count < net->rows_max);
    uint32_t made = net->rows_count++;
    memcpy(ivm__net_at(net, made) + IVM__ROW_HEADER, row + IVM__ROW_HEADER, net->stride - IVM__ROW_HEADER);
    net->weights[made] = 0;
    net->slots[at] = tag | (made + 1);
    return made;
}

/* ---- Rows of a key --------------------------------------------------------------------------------------------------------------- */

static bool key_equal(const ivm__net *net, const uint8_t *a, const uint8_t *b)
{
    const ivm__layout *layout = net->table->store.layout;
    for (uint32_t i = 0; i < net->table->key_count; i++) {
        uint32_t column = net->table->key[i], offset = layout->offsets[column];
        if (memcmp(a + offset, b + offset, ivm__type_words(layout->types[column]) * sizeof(uint64_t)) != 0) {
            return false;
        }
    }
    return true;
}

/* Where the row's key is or would be. */
static uint32_t key_slot(const ivm__net *net, const uint8_t *row, uint64_t hash)
{
    const ivm__net_keys *keys = &net->keys;
    uint32_t at = (uint32_t)hash & net->slots_mask;
    for (; keys->slots[at]; at = (at + 1) & net->slots_mask) {
        uint32_t key = (uint32_t)keys->slots[at] - 1;
        if (keys->slots[at] >> 32 == hash >> 32 && key_equal(net, ivm__net_at(net, keys->rows[key]), row)) {
            break;
        }
    }
    return at;
}

static void key_link(ivm__net *net, uint32_t row, uint64_t hash)
{
    ivm__net_keys *keys = &net->keys;
    if (keys->linked[row]) {
        return;
    }
    uint32_t at = key_slot(net, ivm__net_at(net, row), hash);
    if (!keys->slots[at]) {
        uint32_t made = keys->count++;
        assert(made < net->rows_max);
        keys->rows[made] = row;
        keys->heads[made] = NONE;
        keys->slots[at] = hash >> 32 << 32 | (made + 1);
    }
    uint32_t key = (uint32_t)keys->slots[at] - 1;
    keys->next[row] = keys->heads[key];
    keys->heads[key] = row;
    keys->linked[row] = true;
}

uint32_t ivm__net_take_key(ivm__net *net, const uint8_t *row, uint64_t key_hash, const uint8_t *old)
{
    ivm__net_keys *keys = &net->keys;
    uint32_t at = key_slot(net, row, key_hash), taken = 0;
    bool old_seen = false;
    uint32_t *place = keys->slots[at] ? &keys->heads[(uint32_t)keys->slots[at] - 1] : NULL;
    while (place && *place != NONE) {
        uint32_t found = *place;
        if (net->weights[found] == 0) { /* as if the batch had never named it */
            keys->linked[found] = false;
            *place = keys->next[found];
            continue;
        }
        old_seen |= old && ivm__net_equal(net, found, old); /* once the table's, it is there if it is above 0 here too */
        if (net->weights[found] > 0) {
            net->weights[found]--;
            taken++;
        }
        place = &keys->next[found];
    }
    if (old && !old_seen) {
        ivm__net_add_row(net, old, -1, key_hash);
        taken++;
    }
    return taken;
}

/* ---- In and out ------------------------------------------------------------------------------------------------------------------ */

void ivm__net_add_row(ivm__net *net, const uint8_t *row, ivm__weight weight, uint64_t key_hash)
{
    uint32_t found = row_of(net, row, row_hash(net, row));
    net->weights[found] += weight;
    net->added++;
    if (net->keys.slots) {
        key_link(net, found, key_hash);
    }
}

uint8_t **ivm__net_room(const ivm__net *net, ivm__arena *arena, uint32_t count)
{
    uint8_t *room = ivm__arena_allocate(arena, (size_t)count * net->stride);
    uint8_t **rows = ivm__arena_allocate(arena, count * sizeof *rows);
    for (uint32_t i = 0; room && rows && i < count; i++) {
        rows[i] = room + (size_t)i * net->stride;
    }
    return room ? rows : NULL;
}

static void rows_hash(const ivm__net *net, uint8_t *const *rows, uint32_t count, uint64_t *hashes)
{
    for (uint32_t i = 0; i < count; i++) {
        hashes[i] = row_hash(net, rows[i]);
    }
}

ivm_status ivm__net_add(ivm__net *net, ivm__arena *scratch, const ivm__chunk *chunk, int sign, const uint64_t *key_hashes)
{
    uint32_t count = chunk->rows_count;
    uint8_t **rows = ivm__net_room(net, scratch, count);
    uint64_t *hashes = ivm__arena_allocate(scratch, count * sizeof *hashes);
    if (!rows || !hashes) {
        return IVM_OUT_OF_MEMORY;
    }
    assert(!net->keys.slots || key_hashes);
    ivm__layout_scatter(net->table->store.layout, chunk, NULL, 0, count, rows);
    rows_hash(net, rows, count, hashes);
    for (uint32_t i = 0; i < count; i++) {
        if (i + PREFETCH_AHEAD < count) {
            __builtin_prefetch(&net->slots[(uint32_t)hashes[i + PREFETCH_AHEAD] & net->slots_mask]);
        }
        ivm__weight weight = ivm__chunk_weight(chunk, i);
        if (weight == 0) {
            continue;
        }
        uint32_t row = row_of(net, rows[i], hashes[i]);
        net->weights[row] += weight * sign;
        net->added++;
        if (net->keys.slots) {
            key_link(net, row, key_hashes[i]);
        }
    }
    return IVM_OK;
}

uint32_t *ivm__net_live(const ivm__net *net, ivm__arena *arena, uint32_t *count)
{
    uint32_t *rows = ivm__arena_allocate(arena, net->rows_count * sizeof *rows);
    *count = 0;
    for (uint32_t row = 0; rows && row < net->rows_count; row++) {
        if (net->weights[row] != 0) {
            rows[(*count)++] = row;
        }
    }
    return rows;
}

static bool weights_copy(const ivm__net *net, ivm__arena *arena, const uint32_t *rows, ivm__chunk *chunk)
{
    bool all_one = true;
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        all_one &= net->weights[rows[i]] == 1;
    }
    if (all_one) {
        return true;
    }
    chunk->weights = ivm__arena_allocate(arena, chunk->rows_count * sizeof *chunk->weights);
    for (uint32_t i = 0; chunk->weights && i < chunk->rows_count; i++) {
        chunk->weights[i] = net->weights[rows[i]];
    }
    return chunk->weights != NULL;
}

ivm__chunk *ivm__net_chunk(const ivm__net *net, ivm__arena *arena, const uint32_t *rows, uint32_t count)
{
    assert(count > 0 && count <= IVM__CHUNK_ROWS);
    const ivm__layout *layout = net->table->store.layout;
    const uint8_t *at[IVM__CHUNK_ROWS];
    for (uint32_t i = 0; i < count; i++) {
        at[i] = ivm__net_at(net, rows[i]);
    }
    ivm__chunk *chunk = ivm__chunk_make(arena, layout->types, layout->columns_count);
    if (!chunk) {
        return NULL;
    }
    chunk->rows_count = count;
    for (uint32_t c = 0; c < layout->columns_count; c++) {
        if (!ivm__vector_make(arena, &chunk->columns[c], layout->types[c], count, net->table->columns[c].nullable)) {
            return NULL;
        }
        ivm__layout_gather(layout, c, at, count, &chunk->columns[c]);
    }
    return weights_copy(net, arena, rows, chunk) ? chunk : NULL;
}
