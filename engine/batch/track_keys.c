/* Keys of a tracked fact: read from rows or taken from chunks, nulls left out, looked up in the Z-sets that count them. Cost: a load a cell, a
 * lookup a key. */
#include "track_inside.h"

ivm_status ivm__track_child(const ivm_fact *fact, ivm__arena *arena, ivm__key_source *child)
{
    uint32_t *columns = ivm__arena_allocate(arena, fact->columns_count * sizeof *columns);
    if (!columns) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm__fact_child_columns(fact, columns);
    *child = (ivm__key_source){ &fact->child->store, columns, fact->columns_count, fact->child->allow_negative, 0, NULL };
    return IVM_OK;
}

ivm__key_source ivm__track_parent(const ivm_fact *fact)
{
    return (ivm__key_source){ &fact->parent->store, fact->parent->key, fact->parent->key_count, false, 0, NULL };
}

ivm_status ivm__track_keys(const ivm_fact *fact, ivm__zset *made)
{
    const ivm_table *parent = fact->parent;
    ivm_engine *engine = fact->engine;
    ivm__memory *memory = &engine->memory;
    uint32_t count = parent->key_count;
    ivm_type *types = ivm__allocate(memory, count * sizeof *types);
    bool *nullable = ivm__allocate_zeroed(memory, count * sizeof *nullable);
    ivm__layout *layout = NULL;
    ivm_status status = types && nullable ? IVM_OK : IVM_OUT_OF_MEMORY;
    for (uint32_t k = 0; status == IVM_OK && k < count; k++) {
        types[k] = parent->types[parent->key[k]];
    }
    if (status == IVM_OK) {
        status = ivm__layout_create(memory, types, nullable, count, false, &layout);
    }
    if (status == IVM_OK) {
        status = ivm__zset_init(made, memory, &engine->texts, engine->seed, layout);
    }
    ivm__layout_release(layout);
    ivm__release(memory, types, count * sizeof *types);
    ivm__release(memory, nullable, count * sizeof *nullable);
    return status;
}

/* ---- Rows as keys ------------------------------------------------------------------------------------------------------------------ */

static void nulls_forget(ivm__chunk *keys)
{
    for (uint32_t c = 0; c < keys->columns_count; c++) {
        keys->columns[c].nulls = NULL;
    }
}

/* A chunk of the source's columns, uncarried. NULL: out of memory. */
static ivm__chunk *keys_make(const ivm__key_source *source, ivm__arena *arena)
{
    ivm_type *types = ivm__arena_allocate(arena, source->columns_count * sizeof *types);
    for (uint32_t k = 0; types && k < source->columns_count; k++) {
        types[k] = source->store->layout->types[source->columns[k]];
    }
    return types ? ivm__chunk_make(arena, types, source->columns_count) : NULL;
}

/* The rows without a null in any column. */
static uint32_t whole_rows(const ivm__chunk *keys, uint32_t *rows)
{
    uint8_t null[IVM__CHUNK_ROWS] = { 0 };
    uint32_t count = 0;
    for (uint32_t c = 0; c < keys->columns_count; c++) {
        const uint8_t *nulls = keys->columns[c].nulls;
        for (uint32_t i = 0; nulls && i < keys->rows_count; i++) {
            null[i] |= nulls[i];
        }
    }
    for (uint32_t i = 0; i < keys->rows_count; i++) {
        rows[count] = i;
        count += !null[i];
    }
    return count;
}

ivm_status ivm__track_rows(const ivm__key_source *source, ivm__arena *arena, const ivm__row_id *rows, ivm__weight *weights, uint32_t count,
                           ivm__chunk **keys)
{
    const ivm__layout *layout = source->store->layout;
    ivm__chunk *made = keys_make(source, arena);
    assert(count > 0 && count <= IVM__CHUNK_ROWS);
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    made->rows_count = count;
    made->weights = weights;
    for (uint32_t k = 0; k < source->columns_count; k++) {
        uint32_t column = source->columns[k];
        if (!ivm__vector_make(arena, &made->columns[k], made->columns[k].type, count, layout->nullable[column])) {
            return IVM_OUT_OF_MEMORY;
        }
        ivm__store_gather(source->store, rows, count, column, &made->columns[k]);
    }
    uint32_t whole[IVM__CHUNK_ROWS], whole_count = whole_rows(made, whole);
    if (whole_count < count) {
        made = whole_count ? ivm__chunk_gather(arena, made, whole, whole_count) : NULL;
        if (whole_count && !made) {
            return IVM_OUT_OF_MEMORY;
        }
    }
    if (made) {
        nulls_forget(made);
    }
    *keys = made;
    return IVM_OK;
}

ivm_status ivm__track_chosen(ivm__arena *arena, const ivm__chunk *chunk, const uint32_t *columns, const ivm__layout *like,
                             const uint32_t *rows, uint32_t count, ivm__chunk **keys)
{
    ivm__chunk *made = ivm__chunk_make(arena, like->types, like->columns_count);
    assert(count > 0 && count <= chunk->rows_count);
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t k = 0; k < like->columns_count; k++) {
        made->columns[k] = chunk->columns[columns ? columns[k] : k];
        assert(made->columns[k].type == like->types[k]);
    }
    nulls_forget(made);
    made->rows_count = chunk->rows_count;
    made->weights = chunk->weights;
    *keys = count < chunk->rows_count ? ivm__chunk_gather(arena, made, rows, count) : made;
    return *keys ? IVM_OK : IVM_OUT_OF_MEMORY;
}

/* ---- Walks ------------------------------------------------------------------------------------------------------------------------- */

uint32_t ivm__track_standing(const ivm__key_source *source, uint32_t *next, ivm__row_id *rows, ivm__weight *weights)
{
    uint32_t count = ivm__store_scan(source->store, IVM__READ_CUR, next, IVM__CHUNK_ROWS, rows, weights);
    for (uint32_t i = 0; source->once && i < count; i++) {
        weights[i] = 1;
    }
    return count;
}

/* Of rows that changed: how much more often each counts. */
static void changes_count(const ivm__key_source *source, const ivm__row_id *rows, uint32_t count, ivm__weight *weights)
{
    for (uint32_t i = 0; source->once && i < count; i++) {
        int before = ivm__store_weight(source->store, rows[i], IVM__READ_OLD) != 0;
        int after = ivm__store_weight(source->store, rows[i], IVM__READ_CUR) != 0;
        weights[i] = after - before;
    }
}

uint32_t ivm__track_changed(const ivm__key_source *source, uint32_t *next, ivm__row_id *rows, ivm__weight *weights)
{
    uint32_t count = ivm__store_changes(source->store, next, IVM__CHUNK_ROWS, rows, weights);
    changes_count(source, rows, count, weights);
    return count;
}

uint32_t ivm__track_touched(const ivm__key_source *source, uint32_t *next, ivm__row_id *rows, ivm__weight *weights)
{
    const ivm__store *store = source->store;
    uint32_t count = 0;
    for (; *next < store->touched_count && count < IVM__CHUNK_ROWS; (*next)++) {
        const ivm__touch *touch = &store->touched[*next];
        rows[count] = touch->row;
        weights[count] = touch->after - touch->before;
        count += touch->row < source->end && touch->after != touch->before;
    }
    changes_count(source, rows, count, weights);
    return count;
}

ivm_status ivm__track_add(const ivm__key_source *source, ivm__track_walk *walk, ivm__row_id first, ivm__arena *scratch, ivm__zset *to)
{
    ivm__row_id rows[IVM__CHUNK_ROWS];
    ivm__weight weights[IVM__CHUNK_ROWS];
    uint32_t next = first, count;
    while ((count = walk(source, &next, rows, weights)) > 0) {
        ivm__arena_mark mark = ivm__arena_here(scratch);
        ivm__chunk *keys;
        if (ivm__cancel_asked(source->cancel)) {
            return IVM_CANCELLED;
        }
        IVM_TRY(ivm__track_rows(source, scratch, rows, weights, count, &keys));
        if (keys) {
            IVM_TRY(ivm__zset_add(to, scratch, keys, NULL, 1));
        }
        ivm__arena_back(scratch, mark);
    }
    return IVM_OK;
}

uint32_t ivm__split_rows(const ivm__split *split, ivm__fate fate, uint32_t *next, ivm__row_id *rows, uint32_t *places)
{
    const ivm__store *store = &split->table->store;
    uint32_t touched = ivm__split_touched(split), end = touched + ivm__split_appended(split), count = 0;
    for (; *next < end && count < IVM__CHUNK_ROWS; (*next)++) {
        uint32_t place = *next;
        bool is_touched = place < touched;
        if ((is_touched ? split->touched[place] : split->appended[place - touched]) == fate) {
            rows[count] = is_touched ? store->touched[place].row : store->step_end + (place - touched);
            if (places) {
                places[count] = place;
            }
            count++;
        }
    }
    return count;
}

/* ---- Looking up -------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__track_find(const ivm__zset *in, ivm__arena *arena, const ivm__chunk *chunk, ivm__track_found *found)
{
    ivm__keys keys;
    ivm__probe probe = { 0 };
    size_t bytes = chunk->rows_count * sizeof(uint32_t);
    *found = (ivm__track_found){ ivm__arena_allocate(arena, bytes), ivm__arena_allocate(arena, bytes), 0 };
    if (!found->positions || !found->rows || ivm__index_keys(in->whole, arena, chunk, NULL, true, &keys) != IVM_OK) {
        return IVM_OUT_OF_MEMORY;
    }
    assert(in->whole->doubles == 0);
    found->count = ivm__index_probe(in->whole, &keys, &probe, keys.rows_count, found->positions, found->rows);
    assert(probe.key == keys.rows_count);
    return IVM_OK;
}

ivm_status ivm__track_weigh(const ivm__zset *in, ivm__arena *arena, const ivm__chunk *keys, ivm__chunk **weighed)
{
    ivm__track_found found;
    IVM_TRY(ivm__track_find(in, arena, keys, &found));
    ivm__weight *weights = ivm__arena_allocate(arena, found.count * sizeof *weights);
    if (!weights) {
        return IVM_OUT_OF_MEMORY;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < found.count; i++) {
        found.positions[count] = found.positions[i];
        weights[count] = ivm__store_weight(&in->store, found.rows[i], IVM__READ_CUR);
        count += weights[count] != 0;
    }
    *weighed = NULL;
    if (count == 0) {
        return IVM_OK;
    }
    IVM_TRY(ivm__track_chosen(arena, keys, NULL, in->store.layout, found.positions, count, weighed));
    (*weighed)->weights = weights;
    return IVM_OK;
}
