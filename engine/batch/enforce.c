/* Enforced facts: judged on the batch's net result, whatever the order of its parts.
 *
 *     a child row that came       its key, unless a null is in it, must be in the parent before or after the batch
 *     a parent row that went      unless its key came back, no child row may hold it after the batch, those that came among them
 *
 * Rows that were there before and stay need no look: they kept the fact. The child's rows are found through an index over its columns, built
 * when the first parent goes; those that are not kept, by the count of the keys that they hold (track.h). */
#include "enforce.h"

#include "staging.h"
#include "track.h"

static bool is_held(const ivm__index *index, const ivm__keys *keys, uint32_t row)
{
    uint32_t next = 0;
    ivm__row_id found;
    while ((found = ivm__index_find(index, keys->words + (size_t)row * keys->words_count, keys->hashes[row], &next)) != IVM__ROW_NONE) {
        if (ivm__store_weight(index->store, found, IVM__READ_CUR) != 0) {
            return true;
        }
    }
    return false;
}

static ivm_status violation(const ivm_fact *fact, const ivm__chunk *chunk, const uint32_t *columns, uint32_t row, bool gone,
                            ivm_error *error)
{
    char key[IVM__ROW_TEXT_SIZE], names[IVM__FACT_TEXT_SIZE];
    ivm__fact_text(fact, names);
    ivm__stage_row_text(chunk, columns, fact->columns_count, row, key);
    return ivm__fail(error, IVM_FK_VIOLATION,
                     gone ? "table %s: rows still refer through %s to key %s of %s, which goes"
                          : "table %s: a row refers through %s to key %s, which is not in %s",
                     fact->child->name, names, key, fact->parent->name);
}

/* Rows of the child with weight above 0 have their parents, be it such as go. */
static ivm_status children_have_parents(ivm__arena *scratch, const ivm_fact *fact, const ivm__chunk *chunk, ivm_error *error)
{
    uint32_t *columns = ivm__arena_allocate(scratch, fact->columns_count * sizeof *columns);
    ivm__keys keys;
    if (!columns) {
        return ivm__fail_memory(error);
    }
    ivm__fact_child_columns(fact, columns);
    if (ivm__index_keys(fact->parent->key_index, scratch, chunk, columns, false, &keys) != IVM_OK) {
        return ivm__fail_memory(error);
    }
    uint32_t absent[IVM__CHUNK_ROWS], count = ivm__index_absent(fact->parent->key_index, &keys, absent);
    for (uint32_t i = 0; i < count; i++) {
        if (ivm__chunk_weight(chunk, absent[i]) > 0) {
            return violation(fact, chunk, columns, absent[i], false, error);
        }
    }
    return IVM_OK;
}

/* By which the child's rows that hold a key are found: made where it is missing. */
static ivm_status holders_find(ivm__step *step, const ivm_fact *fact, ivm__index **holders)
{
    if (fact->track) {
        *holders = ivm__track_holders(fact);
        return IVM_OK;
    }
    uint32_t *columns = ivm__arena_allocate(step->scratch, fact->columns_count * sizeof *columns);
    if (!columns) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm__fact_child_columns(fact, columns);
    return ivm__step_index(step, &fact->child->store, columns, fact->columns_count, false, holders);
}

/* No row of the child refers to a key that goes with a row of weight below 0. */
static ivm_status parents_are_free(ivm__step *step, const ivm_fact *fact, const ivm__chunk *chunk)
{
    ivm__index *holders = NULL;
    ivm__keys gone, wanted;
    IVM_TRY(ivm__step_status(step, holders_find(step, fact, &holders)));
    if (ivm__index_keys(fact->parent->key_index, step->scratch, chunk, fact->parent->key, false, &gone) != IVM_OK ||
        ivm__index_keys(holders, step->scratch, chunk, fact->parent->key, true, &wanted) != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        if (ivm__chunk_weight(chunk, i) < 0 && !is_held(fact->parent->key_index, &gone, i) && is_held(holders, &wanted, i)) {
            return violation(fact, chunk, fact->parent->key, i, true, step->error);
        }
    }
    return IVM_OK;
}

static ivm_status children_judge(ivm__step *step, const ivm_fact *fact, const ivm__chunk *chunk)
{
    return children_have_parents(step->scratch, fact, chunk, step->error);
}

typedef ivm_status check(ivm__step *step, const ivm_fact *fact, const ivm__chunk *chunk);

static ivm_status each_chunk(ivm__step *step, const ivm_fact *fact, const ivm__table_delta *delta, check *judge)
{
    for (uint32_t i = 0; i < delta->chunks_count; i++) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        IVM_TRY(ivm__step_poll(step));
        IVM_TRY(judge(step, fact, delta->chunks[i]));
        ivm__arena_back(step->scratch, mark);
    }
    return IVM_OK;
}

ivm_status ivm__enforce_check(ivm__step *step)
{
    for (const ivm_fact *fact = step->engine->facts; fact; fact = fact->next) {
        if (fact->trust != IVM_ENFORCED) {
            continue;
        }
        IVM_TRY(each_chunk(step, fact, &fact->child->delta, children_judge));
        if (fact->parent->delta.shape == IVM_MIXED) {
            IVM_TRY(each_chunk(step, fact, &fact->parent->delta, parents_are_free));
        }
    }
    return IVM_OK;
}

ivm_status ivm__enforce_present(ivm__arena *scratch, const ivm_fact *fact, ivm_error *error)
{
    ivm__arena_mark mark = ivm__arena_here(scratch);
    ivm_status status = IVM_OK;
    ivm__cancel cancel = ivm__engine_cancel_of(fact->engine);
    for (uint32_t next = 0; status == IVM_OK;) {
        ivm__chunk *chunk;
        if (ivm__cancel_asked(&cancel)) {
            status = ivm__fail_cancelled(error);
        } else if (ivm__store_chunk(&fact->child->store, scratch, IVM__READ_CUR, &next, &chunk) != IVM_OK) {
            status = ivm__fail_memory(error);
        } else if (!chunk) {
            break;
        } else {
            status = children_have_parents(scratch, fact, chunk, error);
            ivm__arena_back(scratch, mark);
        }
    }
    ivm__arena_back(scratch, mark);
    return status;
}
