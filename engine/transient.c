/* Rows that wait: which rows of a chunk do, those of a delta put aside, those whose parents have come let go. See transient.h. */
#include "transient.h"

#include "track.h"
#include "weights.h"

/* ---- Hops in force ------------------------------------------------------------------------------------------------------------------ */

static void list(ivm__hops *hops)
{
    hops->next_of_table = hops->table->hops;
    hops->table->hops = hops;
    hops->table->engine->waits_count++;
}

void ivm__hops_publish(const ivm_view *view)
{
    for (ivm__hops *hops = view->hops; hops; hops = hops->next) {
        for (uint32_t h = 0; h < hops->count; h++) {
            hops->hop[h].fact->pins++;
        }
        if (hops->waits) {
            list(hops);
        }
    }
}

static void unlist(ivm__hops *hops)
{
    ivm_table *table = hops->table;
    ivm__hops **at = &table->hops;
    while (*at != hops) {
        at = &(*at)->next_of_table;
    }
    *at = hops->next_of_table;
    table->engine->waits_count--;
    table->stale = table->hops != NULL;
    if (!table->hops) {
        ivm__store_clear(&table->store);
    }
}

void ivm__hops_retire(const ivm_view *view)
{
    for (ivm__hops *hops = view->hops; hops; hops = hops->next) {
        for (uint32_t h = 0; h < hops->count; h++) {
            assert(hops->hop[h].fact->pins > 0);
            hops->hop[h].fact->pins--;
        }
        if (hops->waits) {
            unlist(hops);
        }
    }
}

static void hops_free(ivm__hops *hops, ivm__memory *memory)
{
    for (ivm__hops *next; hops; hops = next) {
        next = hops->next;
        ivm__release(memory, hops->hop, hops->capacity * sizeof *hops->hop);
        ivm__release(memory, hops, sizeof *hops);
    }
}

void ivm__hops_free(ivm_view *view)
{
    hops_free(view->hops, &view->engine->memory);
    view->hops = NULL;
}

/* ---- Facts' own ------------------------------------------------------------------------------------------------------------------------ */

ivm_status ivm__fact_hops_make(ivm_fact *fact)
{
    ivm__memory *memory = &fact->engine->memory;
    assert(ivm__fact_keeps_waiting(fact) && !fact->hops);
    ivm__hops *hops = ivm__allocate_zeroed(memory, sizeof *hops);
    if (!hops) {
        return IVM_OUT_OF_MEMORY;
    }
    fact->hops = hops;
    IVM_TRY(ivm__grow(memory, (void **)&hops->hop, &hops->capacity, 1, sizeof *hops->hop));
    hops->table = fact->child;
    hops->hop[hops->count++] = (ivm__hop){ .fact = fact, .from = IVM__HOP_ROW };
    hops->waits = true;
    return IVM_OK;
}

void ivm__fact_hops_publish(ivm_fact *fact)
{
    if (fact->hops) {
        list(fact->hops);
    }
}

void ivm__fact_hops_retire(ivm_fact *fact)
{
    if (fact->hops) {
        unlist(fact->hops);
    }
}

void ivm__fact_hops_free(ivm_fact *fact)
{
    hops_free(fact->hops, &fact->engine->memory);
    fact->hops = NULL;
}

static bool rests_on(const ivm_view *view, const ivm_fact *fact)
{
    bool rests = false;
    for (const ivm__hops *hops = view->hops; hops; hops = hops->next) {
        for (uint32_t h = 0; h < hops->count; h++) {
            rests |= hops->hop[h].fact == fact;
        }
    }
    return rests;
}

const ivm_view *ivm__hops_view(const ivm_fact *fact)
{
    const ivm_view *view = fact->engine->views;
    assert(fact->pins > 0);
    while (!rests_on(view, fact)) {
        view = view->next;
    }
    return view;
}

/* ---- Who waits ---------------------------------------------------------------------------------------------------------------------- */

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

/* The table that the hop sets out from. */
static ivm_table *hop_child(const ivm__hops *hops, uint32_t hop)
{
    assert(hops->hop[hop].fact->child == (hops->hop[hop].from == IVM__HOP_ROW ? hops->table : hops->hop[hops->hop[hop].from].fact->parent));
    return hops->hop[hop].fact->child;
}

/* Reads columns of these rows into a chunk of the table's columns that may have some of them already. False: out of memory. */
static bool chunk_read(ivm__arena *arena, const ivm_table *table, const ivm__row_id *rows, const uint32_t *columns, uint32_t columns_count,
                       ivm__chunk *chunk)
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

/* A chunk of these rows in which no column is read yet. NULL: out of memory. */
static ivm__chunk *chunk_of(ivm__arena *arena, const ivm_table *table, uint32_t rows_count)
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
    const ivm_table *child = hop_child(it->hops, hop);
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
    ivm__chunk *made = chunk_of(scratch, child, count);
    if (!made || (count && !chunk_read(scratch, child, ids, fact->child_columns, fact->columns_count, made))) {
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

static bool anyone_waits(const ivm__hops *hops)
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

/* waits[i] is set for rows that wait for one of the views. The chunk has the columns of the table's own facts. */
static ivm_status rows_wait(ivm__step *step, const ivm_table *table, const ivm__chunk *chunk, bool *waits)
{
    memset(waits, false, chunk->rows_count * sizeof *waits);
    for (const ivm__hops *hops = table->hops; hops; hops = hops->next_of_table) {
        if (!anyone_waits(hops)) {
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

/* ---- Rows that come ------------------------------------------------------------------------------------------------------------------ */

static ivm_status whole_make(ivm__step *step, ivm_table *table)
{
    uint32_t *columns = ivm__arena_allocate(step->scratch, table->columns_count * sizeof *columns);
    if (!columns) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t c = 0; c < table->columns_count; c++) {
        columns[c] = c;
    }
    return table->whole ? IVM_OK : ivm__store_index(&table->store, columns, table->columns_count, true, &table->whole);
}

/* The rows of the chunk that wait, those that come; of a table whose weights may be below zero both kinds. */
static ivm_status rows_come(ivm__step *step, ivm_table *table, const ivm__chunk *chunk)
{
    uint32_t rows[IVM__CHUNK_ROWS], count = 0;
    bool *waits = ivm__arena_allocate(step->scratch, chunk->rows_count * sizeof *waits);
    if (!waits) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(rows_wait(step, table, chunk, waits));
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        rows[count] = i;
        count += waits[i] && (table->allow_negative || ivm__chunk_weight(chunk, i) > 0);
    }
    if (count == 0) {
        return IVM_OK;
    }
    if (table->store.rows_live + count > IVM_TABLE_ROWS_MAX) {
        return ivm__fail(step->error, IVM_OVERFLOW, "table %s: more than %u rows wait", table->name, IVM_TABLE_ROWS_MAX);
    }
    const ivm__chunk *chosen = ivm__chunk_gather(step->scratch, chunk, rows, count);
    if (!chosen) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(whole_make(step, table));
    return ivm__store_add(&table->store, table->whole, step->scratch, chosen, NULL, 1);
}

/* Takes what goes from rows that are there, whether or not they wait still. Of a row that is not there nothing is known: its parents have
 * come, or it never did. */
static ivm_status rows_go(ivm__step *step, ivm_table *table, const ivm__chunk *chunk)
{
    ivm__keys keys;
    IVM_TRY(ivm__index_keys(table->whole, step->scratch, chunk, NULL, true, &keys));
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        uint32_t next = 0;
        ivm__weight change = ivm__chunk_weight(chunk, i), weight = 0;
        ivm__row_id row = IVM__ROW_NONE;
        if (change < 0) {
            row = ivm__index_find(table->whole, keys.words + (size_t)i * keys.words_count, keys.hashes[i], &next);
        }
        if (row != IVM__ROW_NONE) {
            weight = ivm__store_weight(&table->store, row, IVM__READ_CUR);
        }
        if (weight != 0) {
            IVM_TRY(ivm__store_touch(&table->store, row));
            ivm__store_weight_set(&table->store, row, weight + change > 0 ? weight + change : 0);
        }
    }
    return IVM_OK;
}

static ivm_status delta_keep(ivm__step *step, ivm_table *table)
{
    const ivm__table_delta *delta = &table->delta;
    bool come = false, go = delta->shape == IVM_MIXED && !table->allow_negative;
    for (const ivm__hops *hops = table->hops; hops; hops = hops->next_of_table) {
        come |= anyone_waits(hops);
    }
    for (uint32_t c = 0; c < delta->chunks_count; c++) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        if (come) {
            IVM_TRY(rows_come(step, table, delta->chunks[c]));
        }
        if (go && table->store.rows_live > 0) {
            IVM_TRY(rows_go(step, table, delta->chunks[c]));
        }
        ivm__arena_back(step->scratch, mark);
    }
    return IVM_OK;
}

/* ---- Rows that wait no longer ---------------------------------------------------------------------------------------------------------- */

/* Lets go those of these rows of the store that wait for nothing. */
static ivm_status rows_check(ivm__step *step, ivm_table *table, const ivm__row_id *rows, uint32_t rows_count)
{
    ivm__arena *scratch = step->scratch;
    ivm__chunk *chunk = chunk_of(scratch, table, rows_count);
    bool *waits = ivm__arena_allocate(scratch, rows_count * sizeof *waits);
    if (!chunk || !waits) {
        return IVM_OUT_OF_MEMORY;
    }
    for (const ivm__hops *hops = table->hops; hops; hops = hops->next_of_table) {
        for (uint32_t h = 0; h < hops->count; h++) {
            const ivm_fact *fact = hops->hop[h].fact;
            if (hops->hop[h].from == IVM__HOP_ROW && !chunk_read(scratch, table, rows, fact->child_columns, fact->columns_count, chunk)) {
                return IVM_OUT_OF_MEMORY;
            }
        }
    }
    IVM_TRY(rows_wait(step, table, chunk, waits));
    for (uint32_t i = 0; i < rows_count; i++) {
        if (!waits[i]) {
            IVM_TRY(ivm__store_touch(&table->store, rows[i]));
            ivm__store_weight_set(&table->store, rows[i], 0);
        }
    }
    return IVM_OK;
}

/* From parents of a hop, given with their keys, back to the rows of the table that may have waited for them. */
static ivm_status climb(ivm__step *step, const ivm__hops *hops, uint32_t hop, const ivm__chunk *parents)
{
    const ivm_fact *fact = hops->hop[hop].fact;
    ivm_table *child = hop_child(hops, hop);
    ivm__arena *scratch = step->scratch;
    uint32_t from = hops->hop[hop].from;
    ivm__index *index;
    ivm__keys keys;
    uint32_t *at = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *at);
    ivm__row_id *rows = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *rows);
    if (!at || !rows) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__store_index(&child->store, fact->child_columns, fact->columns_count, false, &index));
    IVM_TRY(ivm__index_keys(index, scratch, parents, fact->parent_columns, true, &keys));
    for (ivm__probe probe = { 0 }; probe.key < keys.rows_count;) {
        ivm__arena_mark mark = ivm__arena_here(scratch);
        uint32_t found = ivm__index_probe(index, &keys, &probe, IVM__CHUNK_ROWS, at, rows), count = 0;
        for (uint32_t i = 0; i < found; i++) {
            rows[count] = rows[i];
            count += ivm__store_weight(&child->store, rows[i], IVM__READ_CUR) != 0;
        }
        if (count && from == IVM__HOP_ROW) {
            IVM_TRY(rows_check(step, child, rows, count));
        } else if (count) {
            const ivm_fact *next = hops->hop[from].fact;
            ivm__chunk *chunk = chunk_of(scratch, child, count);
            if (!chunk || !chunk_read(scratch, child, rows, next->parent_columns, next->columns_count, chunk)) {
                return IVM_OUT_OF_MEMORY;
            }
            IVM_TRY(climb(step, hops, from, chunk));
        }
        ivm__arena_back(scratch, mark);
    }
    return IVM_OK;
}

/* All rows of the store. */
static ivm_status store_check(ivm__step *step, ivm_table *table)
{
    ivm__row_id rows[IVM__CHUNK_ROWS];
    ivm__weight weights[IVM__CHUNK_ROWS];
    for (uint32_t next = 0, count; (count = ivm__store_scan(&table->store, IVM__READ_CUR, &next, IVM__CHUNK_ROWS, rows, weights)) > 0;) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        IVM_TRY(rows_check(step, table, rows, count));
        ivm__arena_back(step->scratch, mark);
    }
    return IVM_OK;
}

static ivm_status waiting_add(ivm__step *step, const ivm_table *table, const ivm__chunk *chunk, ivm__zset *waiting)
{
    uint32_t rows[IVM__CHUNK_ROWS], count = 0;
    bool *waits = ivm__arena_allocate(step->scratch, chunk->rows_count * sizeof *waits);
    if (!waits) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(rows_wait(step, table, chunk, waits));
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        rows[count] = i;
        count += waits[i];
    }
    const ivm__chunk *chosen = count ? ivm__chunk_gather(step->scratch, chunk, rows, count) : NULL;
    return !count ? IVM_OK : chosen ? ivm__zset_add(waiting, step->scratch, chosen, NULL, 1) : IVM_OUT_OF_MEMORY;
}

ivm_status ivm__transient_waiting(ivm__step *step, const ivm_table *table, ivm__zset *waiting)
{
    IVM_TRY(ivm__zset_init(waiting, step->memory, step->texts, step->seed, table->store.layout));
    for (uint32_t next = 0;;) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm__chunk *chunk;
        ivm_status status = ivm__store_chunk(&table->store, step->scratch, IVM__READ_CUR, &next, &chunk);
        bool more = status == IVM_OK && chunk;
        if (more) {
            status = waiting_add(step, table, chunk, waiting);
        }
        ivm__arena_back(step->scratch, mark);
        if (status != IVM_OK) {
            ivm__store_undo(&waiting->store);
            ivm__zset_deinit(waiting);
            return status;
        }
        if (!more) {
            ivm__store_commit(&waiting->store);
            return IVM_OK;
        }
    }
}

/* Those for whom a parent came. All that changes of a parent is that rows come. */
static ivm_status fresh_check(ivm__step *step, const ivm__hops *hops)
{
    for (uint32_t h = 0; h < hops->count; h++) {
        const ivm_fact *fact = hops->hop[h].fact;
        const ivm__table_delta *delta = &fact->parent->delta;
        assert(delta->shape != IVM_MIXED);
        for (uint32_t c = 0; fact->trust == IVM_TRACKED && c < delta->chunks_count; c++) {
            ivm__arena_mark mark = ivm__arena_here(step->scratch);
            IVM_TRY(climb(step, hops, h, delta->chunks[c]));
            ivm__arena_back(step->scratch, mark);
        }
    }
    return IVM_OK;
}

/* ---- The step ------------------------------------------------------------------------------------------------------------------------ */

static ivm_status table_step(ivm__step *step, ivm_table *table)
{
    ivm__table_list(table);
    IVM_TRY(delta_keep(step, table));
    if (!ivm__touched_weights_fit(&table->store)) {
        return ivm__fail(step->error, IVM_OVERFLOW, "table %s: the weight of a row that waits is out of range", table->name);
    }
    if (table->stale && table->store.rows_live) {
        return store_check(step, table);
    }
    for (const ivm__hops *hops = table->hops; hops && table->store.rows_live; hops = hops->next_of_table) {
        IVM_TRY(fresh_check(step, hops));
    }
    return IVM_OK;
}

ivm_status ivm__transient_step(ivm__step *step)
{
    for (ivm_table *table = step->engine->waits_count ? step->engine->tables : NULL; table; table = table->next) {
        if (table->hops) {
            ivm__arena_mark mark = ivm__arena_here(step->scratch);
            ivm_status status = table_step(step, table);
            ivm__arena_back(step->scratch, mark);
            IVM_TRY(status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(step->error) : status);
        }
    }
    return IVM_OK;
}
