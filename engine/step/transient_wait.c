/* Which rows wait: carried, a chunk at a time, through the hops of each view for which its table's rows may, from parent to parent. See transient.h. Cost: a
 * lookup a row and hop along which someone is awaited. */
#include "track.h"
#include "transient_inside.h"

enum { WAITING = 1, SETTLED = 2 };

/* A chunk of the table's rows on its way through the hops of one view. */
typedef struct walk {
    ivm__step *step;
    const ivm__hops *hops;
    const ivm__chunk *chunk;
    bool *seeks;         /* by hop: parents are looked for; else its keys are only looked at for nulls */
    ivm__row_id **found; /* by hop that seeks, and row of the chunk: the parent's row */
    uint8_t *state;      /* by row */
} walk;

ivm_table *ivm__hop_child(const ivm__hops *hops, uint32_t hop)
{
    assert(hops->hop[hop].fact->child == (hops->hop[hop].from == IVM__HOP_ROW ? hops->table : hops->hop[hops->hop[hop].from].fact->parent));
    return hops->hop[hop].fact->child;
}

bool ivm__hop_chunk_read(ivm__arena *arena, const ivm_table *table, const ivm__row_id *rows, const uint32_t *columns,
                         uint32_t columns_count, ivm__chunk *chunk)
{
    for (uint32_t i = 0; i < columns_count; i++) {
        ivm__vector *to = &chunk->columns[columns[i]];
        if (to->cells) {
            continue;
        }
        if (!ivm__vector_make(arena, to, table->types[columns[i]], chunk->rows_count, table->store.layout->nullable[columns[i]])) {
            return false;
        }
        ivm__store_gather(&table->store, rows, chunk->rows_count, columns[i], to);
    }
    return true;
}

ivm__chunk *ivm__hop_chunk(ivm__arena *arena, const ivm_table *table, uint32_t rows_count)
{
    ivm__chunk *chunk = ivm__chunk_make(arena, table->types, table->columns_count);
    if (chunk) {
        chunk->rows_count = rows_count;
    }
    return chunk;
}

/* The rows whose way has led to the table that the hop sets out from: their positions in the walk's chunk, and a chunk that has the hop's
 * columns of them. */
static ivm_status hop_rows(const walk *it, uint32_t hop, uint32_t *positions, const ivm__chunk **rows)
{
    uint32_t from = it->hops->hop[hop].from, count = 0;
    if (from == IVM__HOP_ROW) {
        for (; count < it->chunk->rows_count; count++) {
            positions[count] = count;
        }
        *rows = it->chunk;
        return IVM_OK;
    }
    ivm__arena *scratch = it->step->scratch;
    const ivm_table *child = ivm__hop_child(it->hops, hop);
    const ivm_fact *fact = it->hops->hop[hop].fact;
    ivm__row_id *ids = ivm__arena_allocate(scratch, it->chunk->rows_count * sizeof *ids);
    if (!ids) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < it->chunk->rows_count; i++) {
        if (it->found[from][i] != IVM__ROW_NONE) {
            positions[count] = i;
            ids[count++] = it->found[from][i];
        }
    }
    ivm__chunk *made = ivm__hop_chunk(scratch, child, count);
    if (!made || (count && !ivm__hop_chunk_read(scratch, child, ids, fact->child_columns, fact->columns_count, made))) {
        return IVM_OUT_OF_MEMORY;
    }
    *rows = made;
    return IVM_OK;
}

static ivm_status parents_find(const walk *it, const ivm_fact *fact, const ivm__keys *keys, const uint32_t *positions, ivm__row_id *found)
{
    const ivm__store *store = &fact->parent->store;
    uint32_t *at = ivm__arena_allocate(it->step->scratch, keys->rows_count * sizeof *at);
    ivm__row_id *rows = ivm__arena_allocate(it->step->scratch, keys->rows_count * sizeof *rows);
    if (!at || !rows) {
        return IVM_OUT_OF_MEMORY;
    }
    for (ivm__probe probe = { 0 }; probe.key < keys->rows_count;) {
        uint32_t count = ivm__index_probe(fact->parent->key_index, keys, &probe, keys->rows_count, at, rows);
        for (uint32_t i = 0; i < count; i++) {
            if (ivm__store_weight(store, rows[i], IVM__READ_CUR) != 0) {
                found[positions[at[i]]] = rows[i];
            }
        }
    }
    return IVM_OK;
}

/* Looks for the parents of rows of a hop. */
static ivm_status hop_seek(const walk *it, uint32_t hop, const ivm__chunk *rows, const uint32_t *positions)
{
    const ivm_fact *fact = it->hops->hop[hop].fact;
    ivm__arena *scratch = it->step->scratch;
    uint32_t rows_count = it->chunk->rows_count;
    uint32_t *columns = ivm__arena_allocate(scratch, fact->columns_count * sizeof *columns);
    ivm__row_id *found = it->found[hop] = ivm__arena_allocate(scratch, rows_count * sizeof *found);
    ivm__keys keys;
    if (!columns || !found) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(found, 0xff, rows_count * sizeof *found); /* IVM__ROW_NONE */
    if (rows->rows_count == 0) {
        return IVM_OK;
    }
    ivm__fact_child_columns(fact, columns);
    IVM_TRY(ivm__index_keys(fact->parent->key_index, scratch, rows, columns, false, &keys));
    IVM_TRY(parents_find(it, fact, &keys, positions, found));
    for (uint32_t i = 0; i < rows->rows_count; i++) {
        it->state[positions[i]] |= found[positions[i]] == IVM__ROW_NONE && fact->trust == IVM_TRACKED ? WAITING : 0;
    }
    return IVM_OK;
}

/* Whether a key of the hop may have a null in it. */
static bool hop_is_nullable(const ivm__hop *hop)
{
    bool nullable = false;
    for (uint32_t i = 0; i < hop->fact->columns_count; i++) {
        nullable |= hop->fact->child->columns[hop->fact->child_columns[i]].nullable;
    }
    return nullable;
}

static ivm_status hop_follow(const walk *it, uint32_t hop)
{
    const ivm_fact *fact = it->hops->hop[hop].fact;
    const ivm__chunk *rows;
    if (!it->seeks[hop] && !hop_is_nullable(&it->hops->hop[hop])) {
        return IVM_OK;
    }
    uint32_t *positions = ivm__arena_allocate(it->step->scratch, it->chunk->rows_count * sizeof *positions);
    if (!positions) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(hop_rows(it, hop, positions, &rows));
    if (it->seeks[hop]) {
        IVM_TRY(hop_seek(it, hop, rows, positions));
    }
    for (uint32_t c = 0; rows->rows_count > 0 && c < fact->columns_count; c++) {
        const ivm__vector *key = &rows->columns[fact->child_columns[c]];
        for (uint32_t i = 0; key->nulls && i < rows->rows_count; i++) {
            it->state[positions[i]] |= key->nulls[i] ? SETTLED : 0;
        }
    }
    return IVM_OK;
}

/* Whether, as the step leaves it, a row refers along the hop to a parent that is not there and may yet come. */
static bool is_awaited(const ivm__hop *hop)
{
    return hop->fact->trust == IVM_TRACKED && ivm__track_waiting(hop->fact)->rows_live > 0;
}

bool ivm__hops_are_awaited(const ivm__hops *hops)
{
    bool waits = false;
    for (uint32_t h = 0; h < hops->count; h++) {
        waits |= is_awaited(&hops->hop[h]);
    }
    return waits;
}

/* Parents are looked for where one is awaited, and where their rows are asked for keys of their own. */
static void hops_seek(const ivm__hops *hops, bool *seeks)
{
    memset(seeks, false, hops->count * sizeof *seeks);
    for (uint32_t h = hops->count; h > 0; h--) {
        const ivm__hop *hop = &hops->hop[h - 1];
        seeks[h - 1] |= is_awaited(hop);
        if (hop->from != IVM__HOP_ROW && (seeks[h - 1] || hop_is_nullable(hop))) {
            assert(hop->from < h - 1);
            seeks[hop->from] = true;
        }
    }
}

ivm_status ivm__rows_wait(ivm__step *step, const ivm_table *table, const ivm__chunk *chunk, bool *waits)
{
    memset(waits, false, chunk->rows_count * sizeof *waits);
    for (const ivm__hops *hops = table->hops; hops; hops = hops->next_of_table) {
        if (!ivm__hops_are_awaited(hops)) {
            continue;
        }
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        walk it = { .step = step, .hops = hops, .chunk = chunk };
        it.seeks = ivm__arena_allocate(step->scratch, hops->count * sizeof *it.seeks);
        it.found = ivm__arena_allocate(step->scratch, hops->count * sizeof *it.found);
        it.state = ivm__arena_allocate(step->scratch, chunk->rows_count);
        if (!it.seeks || !it.found || !it.state) {
            return IVM_OUT_OF_MEMORY;
        }
        hops_seek(hops, it.seeks);
        memset(it.state, 0, chunk->rows_count);
        for (uint32_t h = 0; h < hops->count; h++) {
            IVM_TRY(hop_follow(&it, h));
        }
        for (uint32_t i = 0; i < chunk->rows_count; i++) {
            waits[i] |= it.state[i] == WAITING;
        }
        ivm__arena_back(step->scratch, mark);
    }
    return IVM_OK;
}
