/* Loading rows into stores of their own. See load_table.h. Rows that are pending for deferred views and were there at no earlier refresh are put in last,
 * those of the view refreshed last behind all others: then it is from which id on that tells of them, as if they had just come, and a refresh need
 * not look them up.
 *
 *     rows in order less pending 0 | pending 0 less pending 1 | ... | pending n          pending i + 1 within pending i, all weights above 0
 *
 * Cost: an insertion a row, and a lookup where rows are pending so; the index over a key is filled once they are all there. */
#include "load_table.h"

#include "index_inside.h"
#include "save_table.h"

/* ---- Rows that came late ------------------------------------------------------------------------------------------------------------ */

/* Rows less those of a Z-set, on their way into a store. */
typedef struct intake {
    ivm__store *to;
    const ivm__zset *less; /* NULL: nothing */
    uint64_t less_found;   /* rows of it */
    ivm__arena *scratch;
    ivm_error *error;
} intake;

static ivm_status intake_put(const intake *in, const ivm__chunk *chunk)
{
    if (in->to->rows_live + chunk->rows_count > IVM_TABLE_ROWS_MAX) {
        return ivm__fail(in->error, IVM_CORRUPT, "more than %u rows of a table", IVM_TABLE_ROWS_MAX);
    }
    IVM_TRY(ivm__store_put_chunk(in->to, chunk, NULL));
    ivm__store_commit(in->to);
    return IVM_OK;
}

/* The chunk with weights less what is found of it; left[]: its rows that weigh anything still. */
static ivm_status chunk_lessen(intake *in, const ivm__chunk *chunk, ivm__chunk *lessened, uint32_t *left, uint32_t *left_count)
{
    ivm__keys keys;
    ivm__probe probe = { 0 };
    uint32_t positions[IVM__CHUNK_ROWS];
    ivm__row_id rows[IVM__CHUNK_ROWS];
    ivm__weight *weights = ivm__arena_allocate(in->scratch, chunk->rows_count * sizeof *weights);
    if (!weights || ivm__index_keys(in->less->whole, in->scratch, chunk, NULL, true, &keys) != IVM_OK) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        weights[i] = ivm__chunk_weight(chunk, i);
    }
    uint32_t found = ivm__index_probe(in->less->whole, &keys, &probe, IVM__CHUNK_ROWS, positions, rows);
    in->less_found += found;
    for (uint32_t i = 0; i < found; i++) {
        weights[positions[i]] -= ivm__store_weight(&in->less->store, rows[i], IVM__READ_CUR);
        if (weights[positions[i]] < 0) {
            return ivm__fail(in->error, IVM_CORRUPT, "a row that is pending weighs more than all that there is of it");
        }
    }
    *left_count = 0;
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        left[*left_count] = i;
        *left_count += weights[i] != 0;
    }
    *lessened = *chunk;
    lessened->weights = weights;
    return IVM_OK;
}

static ivm_status intake_take(intake *in, const ivm__chunk *chunk)
{
    ivm__chunk lessened;
    uint32_t left[IVM__CHUNK_ROWS], left_count = 0;
    if (!in->less) {
        return intake_put(in, chunk);
    }
    IVM_TRY(chunk_lessen(in, chunk, &lessened, left, &left_count));
    const ivm__chunk *rest = left_count == 0                   ? NULL
                             : left_count == chunk->rows_count ? &lessened
                                                               : ivm__chunk_gather(in->scratch, &lessened, left, left_count);
    return left_count == 0 ? IVM_OK : rest ? intake_put(in, rest) : IVM_OUT_OF_MEMORY;
}

static ivm_status rows_take(void *context, const ivm__chunk *chunk, ivm__feed *from)
{
    (void)from;
    return intake_take(context, chunk);
}

static bool all_above_0(const ivm__store *store)
{
    ivm__row_id rows[64];
    ivm__weight weights[64];
    bool above = true;
    for (uint32_t next = 0, count; above && (count = ivm__store_scan(store, IVM__READ_CUR, &next, 64, rows, weights)) > 0;) {
        for (uint32_t i = 0; i < count; i++) {
            above &= weights[i] > 0;
        }
    }
    return above;
}

/* Whether each row of `in` is in `all` with as much weight or more. */
static ivm_status is_within(const ivm__zset *in, const ivm__zset *all, ivm__arena *scratch, bool *within)
{
    ivm__row_id rows[64];
    ivm__weight weights[64];
    uint32_t next = 0, count;
    uint64_t *words = ivm__arena_allocate(scratch, all->whole->words_count * sizeof *words);
    *within = true;
    while (words && *within && (count = ivm__store_scan(&in->store, IVM__READ_CUR, &next, 64, rows, weights)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            const uint8_t *row = ivm__store_row(&in->store, rows[i]);
            uint32_t at = 0;
            ivm__index_row_pack(all->whole, row, words);
            ivm__row_id found = ivm__index_find(all->whole, words, ivm__index_row_hash(all->whole, row), &at);
            *within &= found != IVM__ROW_NONE && ivm__store_weight(&all->store, found, IVM__READ_CUR) >= weights[i];
        }
    }
    return words ? IVM_OK : IVM_OUT_OF_MEMORY;
}

/* Puts those of the list first whose rows can come last, each within the one before; how many these are. */
static ivm_status late_choose(ivm__pending **late, uint32_t count, ivm__arena *scratch, uint32_t *chosen)
{
    *chosen = 0;
    for (uint32_t i = 0; i < count; i++) { /* the greatest first */
        for (uint32_t k = i; k > 0 && late[k]->rows.store.rows_live > late[k - 1]->rows.store.rows_live; k--) {
            ivm__pending *other = late[k];
            late[k] = late[k - 1];
            late[k - 1] = other;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        bool fits = all_above_0(&late[i]->rows.store);
        if (fits && *chosen) {
            IVM_TRY(is_within(&late[i]->rows, &late[*chosen - 1]->rows, scratch, &fits));
        }
        if (fits) {
            late[(*chosen)++] = late[i];
        }
    }
    return IVM_OK;
}

/* The rows of the first of them less those of the second, and so on; then they tell of no rows themselves any more. */
static ivm_status late_put(ivm__pending **late, uint32_t count, intake *in)
{
    for (uint32_t i = 0; i < count; i++) {
        late[i]->first = in->to->rows_end;
        in->less = i + 1 < count ? &late[i + 1]->rows : NULL;
        for (uint32_t next = 0;;) {
            ivm__arena_mark mark = ivm__arena_here(in->scratch);
            ivm__chunk *chunk;
            IVM_TRY(ivm__store_chunk(&late[i]->rows.store, in->scratch, IVM__READ_CUR, &next, &chunk));
            if (!chunk) {
                break;
            }
            IVM_TRY(intake_take(in, chunk));
            ivm__arena_back(in->scratch, mark);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        ivm__zset_deinit(&late[i]->rows);
        late[i]->apart = false;
    }
    return IVM_OK;
}

/* ---- Tables ----------------------------------------------------------------------------------------------------------------------- */

static ivm_status rows_read(const ivm_table *table, ivm__step *step, ivm__feed *from, ivm__pending **late, uint32_t late_count,
                            ivm__store *to)
{
    ivm__row_shape shape = ivm__table_shape(table);
    uint32_t chosen = 0;
    intake in = { .to = to, .scratch = step->scratch, .error = from->error };
    if (!table->allow_negative && !table->transient) {
        IVM_TRY(late_choose(late, late_count, step->scratch, &chosen));
    }
    in.less = chosen ? &late[0]->rows : NULL;
    IVM_TRY(ivm__rows_load(from, step->scratch, step->texts, &shape, rows_take, &in));
    if (chosen && in.less_found < late[0]->rows.store.rows_live) {
        return ivm__fail(from->error, IVM_CORRUPT, "a row that is pending is not there");
    }
    return late_put(late, chosen, &in);
}

ivm_status ivm__table_rows_index(const ivm_table *table, ivm__step *step, ivm__table_rows *made)
{
    if (table->key_count) {
        return ivm__step_index(step, &made->store, table->key, table->key_count, true, &made->key_index);
    }
    if ((!table->allow_negative && !table->transient) || made->store.rows_live == 0) {
        return IVM_OK;
    }
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    uint32_t *columns = ivm__arena_allocate(step->scratch, table->columns_count * sizeof *columns);
    for (uint32_t c = 0; columns && c < table->columns_count; c++) {
        columns[c] = c;
    }
    ivm_status status =
        columns ? ivm__step_index(step, &made->store, columns, table->columns_count, true, &made->whole) : IVM_OUT_OF_MEMORY;
    ivm__arena_back(step->scratch, mark);
    return status;
}

ivm_status ivm__table_load(const ivm_table *table, ivm__step *step, ivm__feed *from, ivm__pending **late, uint32_t late_count,
                           ivm__table_rows *made)
{
    IVM_TRY(ivm__store_init(&made->store, step->memory, step->texts, step->seed, table->store.layout));
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = rows_read(table, step, from, late, late_count, &made->store);
    ivm__arena_back(step->scratch, mark);
    if (status == IVM_OK) {
        status = ivm__table_rows_index(table, step, made);
    }
    if (status != IVM_OK) {
        ivm__store_undo(&made->store);
        ivm__store_deinit(&made->store);
        *made = (ivm__table_rows){ 0 };
        return status;
    }
    ivm__store_commit(&made->store); /* the last step has changed nothing */
    return IVM_OK;
}

void ivm__table_exchange(ivm_table *table, ivm__table_rows *rows)
{
    ivm__table_rows was = { .key_index = table->key_index, .whole = table->whole, .stale = table->stale };
    ivm__store_exchange(&table->store, &rows->store);
    table->key_index = rows->key_index;
    table->whole = rows->whole;
    table->stale = rows->stale;
    rows->key_index = was.key_index;
    rows->whole = was.whole;
    rows->stale = was.stale;
}

/* ---- What is pending ---------------------------------------------------------------------------------------------------------------- */

typedef struct zset_intake {
    ivm__zset *rows;
    ivm__step *step;
} zset_intake;

/* Rows are apart from each other already: they ascend. */
static ivm_status zset_take(void *context, const ivm__chunk *chunk, ivm__feed *from)
{
    const zset_intake *in = context;
    (void)from;
    IVM_TRY(ivm__zset_add(in->rows, in->step->scratch, chunk, NULL, 1));
    ivm__store_commit(&in->rows->store);
    return IVM_OK;
}

ivm_status ivm__zset_load(ivm__zset *rows, const ivm__row_shape *shape, ivm__step *step, ivm__feed *from)
{
    zset_intake in = { rows, step };
    IVM_TRY(ivm__rows_load(from, step->scratch, step->texts, shape, zset_take, &in));
    ivm__store_commit(&rows->store);
    return IVM_OK;
}

ivm_status ivm__pending_load(ivm__layout *like, ivm__step *step, ivm__feed *from, ivm__pending *made)
{
    ivm__row_shape shape = ivm__pending_shape(like);
    assert(!made->apart);
    IVM_TRY(ivm__zset_init(&made->rows, step->memory, step->texts, step->seed, like));
    ivm_status status = ivm__zset_load(&made->rows, &shape, step, from);
    made->apart = status == IVM_OK && made->rows.store.rows_live > 0;
    if (!made->apart) {
        ivm__store_undo(&made->rows.store);
        ivm__zset_deinit(&made->rows);
    }
    return status;
}
