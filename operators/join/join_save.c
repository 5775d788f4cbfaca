/* A join's holdings: the rows of each leaf that has an operator below it which is no scan with filters and projects alone. Those of all other leaves
 * are read in their sources, or loaded from them once a term reads them: which are there depends on how terms were planned, and is not saved. */
#include "holding.h"
#include "join_state.h"

static bool is_held(const ivm__join_leaf *leaf)
{
    bool held = !ivm__leaf_is_bare(leaf) && !leaf->scan;
    assert(!held || leaf->keeps);
    return held;
}

ivm_status ivm__join_save(const ivm__operator *self, ivm__saver *saver)
{
    const ivm__join *join = (const ivm__join *)self;
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        const ivm__join_leaf *leaf = &join->leaves[i];
        if (is_held(leaf)) {
            IVM_TRY(saver->rows(saver, &leaf->rows.store, leaf->layout->columns_count, NULL, NULL));
        }
    }
    return IVM_OK;
}

static ivm__join_leaf *leaf_of(ivm__join *join, uint32_t holding)
{
    uint32_t i = 0;
    for (;; i++) {
        assert(i < join->leaves_count);
        if (is_held(&join->leaves[i]) && holding-- == 0) {
            return &join->leaves[i];
        }
    }
}

/* Whether the chunk is the one row that stands for a leaf's where nobody needs its columns. */
static bool is_zero(const ivm__chunk *chunk)
{
    return chunk->rows_count == 1 && !ivm__is_null(&chunk->columns[0], 0) && ivm__word(&chunk->columns[0], 0) == 0;
}

ivm_status ivm__join_load(ivm__operator *self, ivm__step *step, uint32_t holding, const ivm__chunk *chunk, ivm__feed *from)
{
    ivm__join_leaf *leaf = leaf_of((ivm__join *)self, holding);
    assert(chunk->columns_count == leaf->layout->columns_count);
    (void)from;
    if (leaf->kept_count == 0 && !is_zero(chunk)) {
        return ivm__holding_corrupt(self, step, "a row of no columns that is not empty");
    }
    return ivm__holding_rows_alone(self, &leaf->rows, step, chunk);
}

ivm_status ivm__join_settle(ivm__operator *self, ivm__step *step)
{
    ivm__join *join = (ivm__join *)self;
    (void)step;
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        if (is_held(&join->leaves[i])) {
            ivm__leaf_commit(&join->leaves[i]); /* of nothing */
        }
    }
    return IVM_OK;
}
