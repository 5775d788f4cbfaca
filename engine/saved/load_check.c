/* What was loaded, judged as a whole: see load_check.h. Every part was right by itself: rows in order, keys once, weights in range. */
#include "load_check.h"

#include "enforce.h"
#include "pending.h"
#include "track_inside.h"
#include "transient.h"

/* ---- Facts ------------------------------------------------------------------------------------------------------------------------------ */

static ivm_status fact_fail(ivm__step *step, const ivm_fact *fact, const char *what)
{
    char text[IVM__FACT_TEXT_SIZE];
    ivm__fact_text(fact, text);
    return ivm__fail(step->error, IVM_CORRUPT, "track %u: table %s: %s through %s", ivm__fact_ordinal(fact), fact->child->name, what, text);
}

/* Whether the chunk's keys weigh in `in` what they do in the chunk. */
static ivm_status chunk_compare(ivm__arena *scratch, const ivm__chunk *chunk, const ivm__zset *in, bool *same)
{
    ivm__track_found found;
    IVM_TRY(ivm__track_find(in, scratch, chunk, &found));
    *same = found.count == chunk->rows_count;
    for (uint32_t i = 0; *same && i < found.count; i++) {
        *same = ivm__store_weight(&in->store, found.rows[i], IVM__READ_CUR) == ivm__chunk_weight(chunk, found.positions[i]);
    }
    return IVM_OK;
}

static ivm_status keys_compare(const ivm__step *step, const ivm__zset *keys, const ivm__zset *in, bool *same)
{
    ivm__arena *scratch = step->scratch;
    *same = keys->store.rows_live == in->store.rows_live;
    for (uint32_t next = 0; *same;) {
        ivm__arena_mark mark = ivm__arena_here(scratch);
        ivm__chunk *chunk;
        IVM_TRY(ivm__step_poll(step));
        IVM_TRY(ivm__store_chunk(&keys->store, scratch, IVM__READ_CUR, &next, &chunk));
        if (!chunk) {
            break;
        }
        IVM_TRY(chunk_compare(scratch, chunk, in, same));
        ivm__arena_back(scratch, mark);
    }
    return IVM_OK;
}

/* Rows that are kept are counted again. */
static ivm_status kept_check(ivm__step *step, const ivm_fact *fact)
{
    struct ivm__track *counted = NULL;
    bool same = false;
    uint32_t *columns = ivm__arena_allocate(step->scratch, fact->columns_count * sizeof *columns);
    if (!columns) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm__fact_child_columns(fact, columns);
    ivm_status status = ivm__track_remake(fact, &fact->child->store, columns, &step->cancel, &counted);
    if (status == IVM_OK) {
        status = keys_compare(step, &fact->track->waiting, &counted->waiting, &same);
    }
    ivm__track_discard(step->engine, counted);
    if (status == IVM_OVERFLOW || (status == IVM_OK && !same)) {
        return fact_fail(step, fact, "those said to wait are not those that do");
    }
    return status;
}

/* The keys of a chunk that no parent has; *absent NULL: none. */
static ivm_status chunk_absent(ivm__arena *scratch, const ivm_fact *fact, const ivm__chunk *chunk, const ivm__chunk **absent)
{
    ivm__keys keys;
    uint32_t rows[IVM__CHUNK_ROWS];
    IVM_TRY(ivm__index_keys(fact->parent->key_index, scratch, chunk, NULL, false, &keys));
    uint32_t count = ivm__index_absent(fact->parent->key_index, &keys, rows);
    *absent = count ? ivm__chunk_gather(scratch, chunk, rows, count) : NULL;
    return count && !*absent ? IVM_OUT_OF_MEMORY : IVM_OK;
}

/* What is told of keys without a parent, where rows are not kept. */
typedef struct absence {
    const ivm_fact *fact;
    const ivm__zset *waiting; /* must say the same; NULL: there may be none of weight above 0 */
    uint64_t count;
    bool sound;
} absence;

static ivm_status absent_check(ivm__arena *scratch, const ivm__chunk *absent, absence *it)
{
    it->count += absent->rows_count;
    if (it->waiting) {
        return chunk_compare(scratch, absent, it->waiting, &it->sound);
    }
    for (uint32_t i = 0; i < absent->rows_count; i++) {
        it->sound &= ivm__chunk_weight(absent, i) < 0;
    }
    return IVM_OK;
}

static ivm_status absence_check(const ivm__step *step, const ivm__zset *keys, absence *it)
{
    ivm__arena *scratch = step->scratch;
    it->sound = true;
    for (uint32_t next = 0; it->sound;) {
        ivm__arena_mark mark = ivm__arena_here(scratch);
        ivm__chunk *chunk;
        const ivm__chunk *absent;
        IVM_TRY(ivm__step_poll(step));
        IVM_TRY(ivm__store_chunk(&keys->store, scratch, IVM__READ_CUR, &next, &chunk));
        if (!chunk) {
            break;
        }
        IVM_TRY(chunk_absent(scratch, it->fact, chunk, &absent));
        if (absent) {
            IVM_TRY(absent_check(scratch, absent, it));
        }
        ivm__arena_back(scratch, mark);
    }
    return IVM_OK;
}

/* Rows that are not kept have left their keys: those of all, where parents may leave, and those that wait. */
static ivm_status lost_check(ivm__step *step, const ivm_fact *fact)
{
    const ivm__track *track = fact->track;
    const ivm__zset *waiting = track->waiting.whole ? &track->waiting : NULL, *keys = track->held.whole ? &track->held : waiting;
    absence it = { .fact = fact, .waiting = waiting };
    IVM_TRY(absence_check(step, keys, &it));
    bool all = !waiting || it.count == waiting->store.rows_live;
    return it.sound && all ? IVM_OK : fact_fail(step, fact, "keys are said to wait or to be held that are not, or cannot be so");
}

static ivm_status enforced_check(ivm__step *step, const ivm_fact *fact)
{
    ivm_error cause = IVM_ERROR_INIT;
    ivm_status status = ivm__enforce_present(step->scratch, fact, &cause);
    return status == IVM_FK_VIOLATION ? ivm__fail(step->error, IVM_CORRUPT, "rows %u: %s", ivm__table_ordinal(fact->child), cause.message)
                                      : status;
}

ivm_status ivm__fact_check_loaded(ivm__step *step, ivm_fact *fact)
{
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = fact->trust == IVM_ENFORCED ? enforced_check(step, fact) : IVM_OK;
    if (status == IVM_OK && fact->track) {
        status = fact->child->transient ? lost_check(step, fact) : kept_check(step, fact);
    }
    ivm__arena_back(step->scratch, mark);
    return ivm__step_status(step, status);
}

/* ---- Tables ----------------------------------------------------------------------------------------------------------------------------- */

static ivm_status table_fail(ivm__step *step, const ivm_table *table, const char *what)
{
    return ivm__fail(step->error, IVM_CORRUPT, "rows %u: table %s: %s", ivm__table_ordinal(table), table->name, what);
}

static bool has_keys(const ivm_table *table)
{
    bool some = false;
    for (const ivm_fact *fact = table->facts; fact; fact = fact->next_of_child) {
        const ivm__track *track = fact->track;
        some |= track && (track->waiting.store.rows_live || track->held.store.rows_live);
    }
    return some;
}

ivm_status ivm__table_check_loaded(ivm__step *step, const ivm_table *table, bool came)
{
    ivm__zset waiting;
    uint64_t rows = table->store.rows_live;
    assert(table->transient && !table->stale);
    if (!came && (rows || has_keys(table))) {
        return table_fail(step, table, "rows wait and none is said to have come");
    }
    if (!rows) {
        return IVM_OK;
    }
    IVM_TRY(ivm__step_status(step, ivm__transient_waiting(step, table, &waiting)));
    bool all = waiting.store.rows_live == rows;
    ivm__zset_deinit(&waiting);
    return all ? IVM_OK : table_fail(step, table, "a row is kept that waits for nothing");
}

/* ---- What is pending -------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__view_check_loaded(ivm__step *step, const ivm_view *view, uint32_t nth)
{
    for (uint32_t i = 0; i < ivm__pendings_count(view); i++) {
        const ivm__pending *it = &view->pending[i];
        ivm__row_id wrong;
        IVM_TRY(ivm__step_status(step, ivm__pending_check(it, step, &wrong)));
        if (wrong != IVM__ROW_NONE) {
            return ivm__fail(step->error, IVM_CORRUPT, "pending %u.%u, row %u: view %s: what was in %s before it cannot be", nth, i, wrong,
                             view->name, it->source.table ? it->source.table->name : it->source.view->name);
        }
    }
    return IVM_OK;
}
