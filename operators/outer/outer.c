/* Outer, semi and anti joins: two inputs, both of which may change in one step.
 *
 *     left, right, full     matching pairs, and the rows of the preserved side or sides that have no partner, padded with nulls
 *     semi, anti            the left rows that have a partner, or none, with their own weights
 *
 *     consume: rows of the sides += delta      finish: pairs of changed rows met and counted -> rows whose standing changed
 *
 * Each side keeps its whole rows, which is why it knows by itself which are present.
 * Memory: both inputs, and 8 bytes a row that is counted for. Cost: a lookup a changed row, and the rows it matches by its keys. */
#include "outer_state.h"
#include "weights.h"

static ivm_status outer_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    ivm__outer *outer = (ivm__outer *)self;
    assert(port == IVM__OUTER_LEFT || port == IVM__OUTER_RIGHT);
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = ivm__outer_side_add(port == IVM__OUTER_LEFT ? &outer->left : &outer->right, step, chunk);
    ivm__arena_back(step->scratch, mark);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(step->error);
}

static ivm_status finish(ivm__outer *outer, ivm__step *step)
{
    if (!ivm__touched_weights_fit(&outer->left.rows.store) || !ivm__touched_weights_fit(&outer->right.rows.store)) {
        return ivm__fail(step->error, IVM_OVERFLOW, "view %s: the weight of a row is out of range", outer->head.view);
    }
    IVM_TRY(ivm__outer_side_reserve(&outer->left));
    IVM_TRY(ivm__outer_side_reserve(&outer->right));
    IVM_TRY(ivm__outer_match(outer, step, &outer->left, IVM__READ_CUR));
    if (!step->initial) {
        IVM_TRY(ivm__outer_match(outer, step, &outer->right, IVM__READ_OLD));
    }
    if (outer->left.preserved) {
        IVM_TRY(ivm__outer_stand(outer, step, &outer->left));
    }
    if (outer->right.preserved) {
        IVM_TRY(ivm__outer_stand(outer, step, &outer->right));
    }
    return ivm__outer_nulls_check(outer, step);
}

static ivm_status outer_finish(ivm__operator *self, ivm__step *step)
{
    ivm_status status = finish((ivm__outer *)self, step);
    return status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(step->error) : status;
}

static void outer_commit(ivm__operator *self)
{
    ivm__outer *outer = (ivm__outer *)self;
    ivm__outer_side_commit(&outer->left);
    ivm__outer_side_commit(&outer->right);
}

static void outer_undo(ivm__operator *self)
{
    ivm__outer *outer = (ivm__outer *)self;
    ivm__outer_side_undo(&outer->left);
    ivm__outer_side_undo(&outer->right);
}

static void outer_free(ivm__operator *self, ivm__memory *memory)
{
    ivm__outer *outer = (ivm__outer *)self;
    ivm__outer_side_deinit(&outer->left);
    ivm__outer_side_deinit(&outer->right);
    ivm__expression_free(outer->condition, memory, outer->texts);
    ivm__release(memory, outer->read, outer->columns_count * sizeof *outer->read);
    ivm__release(memory, (void *)self->types, outer->columns_count * sizeof *self->types);
    ivm__release(memory, outer, sizeof *outer);
}

static const ivm__operator_class outer_class = {
    .name = "outer join",
    .consume = outer_consume,
    .finish = outer_finish,
    .commit = outer_commit,
    .undo = outer_undo,
    .free = outer_free,
    .save = ivm__outer_save,
    .load = ivm__outer_load,
    .settle = ivm__outer_settle,
};

/* ---- Made from its spec --------------------------------------------------------------------------------------------------------------- */

static ivm_status columns_init(ivm__outer *outer, ivm__memory *memory, const ivm__outer_spec *spec)
{
    uint32_t count = spec->left_count + spec->right_count;
    ivm_type *types = ivm__allocate(memory, count * sizeof *types);
    outer->columns_count = count;
    outer->head.types = types;
    outer->head.columns_count = outer->joins ? count : spec->left_count;
    outer->read = ivm__allocate_zeroed(memory, count * sizeof *outer->read);
    if (!types || !outer->read) {
        return IVM_OUT_OF_MEMORY;
    }
    memcpy(types, spec->left_types, spec->left_count * sizeof *types);
    memcpy(types + spec->left_count, spec->right_types, spec->right_count * sizeof *types);
    if (spec->condition) {
        ivm__expression_mark_columns(spec->condition, outer->read);
    }
    return IVM_OK;
}

static ivm_status keys_copy(ivm__outer_side *side, ivm__memory *memory, const uint32_t *keys, uint32_t keys_count)
{
    side->memory = memory;
    side->keys = ivm__allocate(memory, keys_count * sizeof *side->keys);
    side->keys_count = keys_count;
    if (side->keys && keys_count) {
        memcpy(side->keys, keys, keys_count * sizeof *side->keys);
    }
    return side->keys ? IVM_OK : IVM_OUT_OF_MEMORY;
}

static ivm_status sides_init(ivm__outer *outer, ivm__memory *memory, uint64_t seed, const ivm__outer_spec *spec)
{
    outer->left.columns_count = spec->left_count;
    outer->left.preserved = spec->kind != IVM_RIGHT_JOIN;
    outer->right.columns_first = spec->left_count;
    outer->right.columns_count = spec->right_count;
    outer->right.preserved = spec->kind == IVM_RIGHT_JOIN || spec->kind == IVM_FULL_JOIN;
    IVM_TRY(keys_copy(&outer->left, memory, spec->left_keys, spec->keys_count));
    IVM_TRY(keys_copy(&outer->right, memory, spec->right_keys, spec->keys_count));
    IVM_TRY(ivm__outer_side_init(&outer->left, memory, outer->texts, seed, spec->left_types));
    return ivm__outer_side_init(&outer->right, memory, outer->texts, seed, spec->right_types);
}

ivm_status ivm__outer_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm__outer_spec *spec, ivm__operator **made)
{
    assert(spec->kind != IVM_INNER_JOIN);
    ivm__outer *outer = ivm__allocate_zeroed(memory, sizeof *outer);
    if (!outer) {
        ivm__expression_free(spec->condition, memory, texts);
        return IVM_OUT_OF_MEMORY;
    }
    outer->head.class = &outer_class;
    outer->texts = texts;
    outer->kind = spec->kind;
    outer->joins = spec->kind != IVM_SEMI_JOIN && spec->kind != IVM_ANTI_JOIN;
    outer->condition = spec->condition;
    ivm_status status = columns_init(outer, memory, spec);
    if (status == IVM_OK) {
        status = sides_init(outer, memory, seed, spec);
    }
    if (status != IVM_OK) {
        outer_free(&outer->head, memory);
        return status;
    }
    *made = &outer->head;
    return IVM_OK;
}
