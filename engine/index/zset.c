/* Z-sets: rows found by all they hold.
 *
 *     chunk -> packed rows and hashes -> those that stand already: weight added          (all looked up together, with prefetch)
 *                                     -> the others, one by one: an equal row of this chunk may have come before; else a new row
 *
 * A packed row holds the row's body in another order (cells, then null words), so that a new row is two copies. A row whose weights cancel
 * stays, with weight 0, until the step ends. Cost: one lookup a row that stands, two a new row. */
#include "zset.h"

#include "index_inside.h"

ivm_status ivm__zset_init(ivm__zset *zset, ivm__memory *memory, ivm__texts *texts, uint64_t seed, ivm__layout *layout)
{
    uint32_t columns_count = layout->columns_count;
    *zset = (ivm__zset){ 0 };
    uint32_t *columns = ivm__allocate(memory, columns_count * sizeof *columns);
    if (!columns) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t c = 0; c < columns_count; c++) {
        columns[c] = c;
    }
    ivm_status status = ivm__store_init(&zset->store, memory, texts, seed, layout);
    if (status == IVM_OK) {
        status = ivm__store_index(&zset->store, columns, columns_count, true, &zset->whole);
    }
    if (status != IVM_OK) {
        ivm__zset_deinit(zset);
        *zset = (ivm__zset){ 0 };
    }
    ivm__release(memory, columns, columns_count * sizeof *columns);
    return status;
}

ivm_status ivm__zset_init_typed(ivm__zset *zset, ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm_type *types,
                                uint32_t columns_count, bool packed)
{
    ivm__layout *layout;
    *zset = (ivm__zset){ 0 };
    IVM_TRY(ivm__layout_create(memory, types, NULL, columns_count, packed, &layout));
    ivm_status status = ivm__zset_init(zset, memory, texts, seed, layout);
    ivm__layout_release(layout);
    return status;
}

void ivm__zset_deinit(ivm__zset *zset)
{
    ivm__store_deinit(&zset->store);
    zset->whole = NULL;
}

/* ---- Adding ---------------------------------------------------------------------------------------------------------------------- */

/* A chunk being added. */
typedef struct addition {
    ivm__store *store;
    ivm__index *whole;
    const ivm__chunk *chunk;
    int sign;
    ivm__keys keys;
    uint32_t *missing; /* positions of the rows that stand not yet; then, from the start on, the ids of those that came */
    uint32_t missing_count, came_count;
} addition;

static ivm__weight row_weight(const addition *adding, uint32_t row)
{
    unsigned __int128 weight = (unsigned __int128)ivm__chunk_weight(adding->chunk, row);
    return (ivm__weight)(adding->sign < 0 ? -weight : weight);
}

static const uint64_t *row_words(const addition *adding, uint32_t row)
{
    return adding->keys.words + (size_t)row * adding->keys.words_count;
}

static void missing_note(addition *adding, uint32_t *first, uint32_t end)
{
    for (; *first < end; ++*first) {
        if (row_weight(adding, *first) != 0) {
            adding->missing[adding->missing_count++] = *first;
        }
    }
}

/* Adds the weights of the rows that stand, and notes those that do not. */
static ivm_status standing_add(addition *adding, uint32_t *positions, ivm__row_id *rows)
{
    ivm__store *store = adding->store;
    uint32_t rows_count = adding->keys.rows_count, expected = 0;
    assert(adding->whole->doubles == 0);
    ivm__probe probe = { 0 };
    uint32_t found = ivm__index_probe(adding->whole, &adding->keys, &probe, rows_count, positions, rows);
    assert(probe.key == rows_count);
    for (uint32_t i = 0; i < found; i++) {
        missing_note(adding, &expected, positions[i]);
        ivm__weight weight = row_weight(adding, positions[i]);
        if (weight != 0) {
            IVM_TRY(ivm__store_weight_add(store, rows[i], weight));
        }
        expected = positions[i] + 1;
    }
    missing_note(adding, &expected, rows_count);
    return IVM_OK;
}

static void body_write(const ivm__index *whole, const uint64_t *words, uint8_t *at)
{
    size_t nulls_size = whole->null_words * sizeof *words;
    size_t cells_size = (whole->words_count - whole->null_words) * sizeof *words;
    memcpy(at + IVM__ROW_HEADER, words + (whole->words_count - whole->null_words), nulls_size);
    memcpy(at + IVM__ROW_HEADER + nulls_size, words, cells_size);
}

/* The rows that stood not; there is room. */
static ivm_status missing_add(addition *adding)
{
    ivm__store *store = adding->store;
    ivm__index *whole = adding->whole;
    for (uint32_t i = 0; i < adding->missing_count; i++) {
        uint32_t position = adding->missing[i], next = 0;
        const uint64_t *words = row_words(adding, position);
        uint64_t hash = adding->keys.hashes[position];
        ivm__weight weight = row_weight(adding, position);
        ivm__row_id row = ivm__index_find(whole, words, hash, &next);
        if (row != IVM__ROW_NONE) {
            IVM_TRY(ivm__store_weight_add(store, row, weight));
            continue;
        }
        row = ivm__store_put(store, weight);
        body_write(whole, words, ivm__store_row(store, row));
        ivm__index_link_hashed(whole, row, hash);
        adding->missing[adding->came_count++] = row;
    }
    return IVM_OK;
}

static ivm_status keys_add(addition *adding, ivm__arena *arena)
{
    size_t bytes = adding->keys.rows_count * sizeof(uint32_t);
    uint32_t *positions = ivm__arena_allocate(arena, bytes);
    ivm__row_id *rows = ivm__arena_allocate(arena, bytes);
    adding->missing = ivm__arena_allocate(arena, bytes);
    if (!positions || !rows || !adding->missing) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(standing_add(adding, positions, rows));
    IVM_TRY(ivm__store_reserve(adding->store, adding->missing_count));
    ivm_status status = missing_add(adding);
    ivm__store_link_others(adding->store, adding->missing, adding->came_count, adding->whole);
    return status;
}

ivm_status ivm__store_add(ivm__store *store, ivm__index *whole, ivm__arena *arena, const ivm__chunk *chunk, const uint32_t *columns,
                          int sign)
{
    assert(sign == 1 || sign == -1);
    assert(whole->store == store && whole->unique && whole->columns_count == store->layout->columns_count);
    addition adding = { .store = store, .whole = whole, .chunk = chunk, .sign = sign };
    ivm__arena_mark mark = ivm__arena_here(arena);
    ivm_status status = ivm__index_keys(whole, arena, chunk, columns, true, &adding.keys);
    if (status == IVM_OK && chunk->rows_count > 0) {
        status = keys_add(&adding, arena);
    }
    ivm__arena_back(arena, mark);
    return status;
}

ivm_status ivm__zset_add(ivm__zset *zset, ivm__arena *arena, const ivm__chunk *chunk, const uint32_t *columns, int sign)
{
    return ivm__store_add(&zset->store, zset->whole, arena, chunk, columns, sign);
}
