/* Joins of the oracle: nested loops over all combinations of rows, an input at a time. */
#include "naive.h"

#include <string.h>

/* Products past this are taken as this: past int64 for good, and an overflow where the combination is a row in the end. */
#define WEIGHT_MAX ((naive_int)1 << 100)

#define LOOKED_AT_MAX 2000000u /* rows: some hundredths of a second */

typedef struct joining {
    naive_pool *pool;
    const naive_plan *plan;
    const naive_relation *inputs;
    size_t *ends;   /* of each input's columns in the heading */
    ivm_value *row; /* so far */
    size_t *at;     /* row of each input */
    bool *found[2]; /* for the two inputs of a join that is not inner: rows that have a partner */
    naive_relation *out;
    size_t looked_at; /* rows, all inputs' together */
    bool gives;       /* rows of both */
} joining;

/* Whether the pairs that the columns up to here complete, and did not before, are equal. */
static ivm_status pairs_hold(const joining *it, size_t level, bool *hold)
{
    size_t first = level ? it->ends[level - 1] : 0, end = it->ends[level];
    *hold = true;
    for (size_t i = 0; i < it->plan->on_count && *hold; i++) {
        const naive_pair *pair = &it->plan->on[i];
        size_t last = pair->a > pair->b ? pair->a : pair->b;
        const ivm_value *a = &it->row[pair->a], *b = &it->row[pair->b];
        ivm_value x, y;
        if (last < first || last >= end) {
            continue;
        }
        if (a->is_null || b->is_null) {
            *hold = false;
        } else if (naive_convert(a, it->plan->heading[pair->a].type, pair->type, &x) != IVM_OK ||
                   naive_convert(b, it->plan->heading[pair->b].type, pair->type, &y) != IVM_OK) {
            return NAIVE_UNJUDGED;
        } else {
            *hold = naive_compare(&x, &y) == 0;
        }
    }
    return IVM_OK;
}

static ivm_status combination(joining *it, naive_int weight)
{
    bool holds = true;
    if (it->plan->where) {
        NAIVE_TRY(naive_holds(it->pool, it->plan->where, it->row, &holds));
    }
    if (!holds) {
        return IVM_OK;
    }
    if (it->plan->join != IVM_INNER_JOIN) { /* a row of weight below zero is no partner */
        it->found[0][it->at[0]] |= it->inputs[1].weights[it->at[1]] > 0;
        it->found[1][it->at[1]] |= it->inputs[0].weights[it->at[0]] > 0;
    }
    return it->gives ? naive_row_add(it->out, it->row, weight) : IVM_OK;
}

static ivm_status combine(joining *it, size_t level, naive_int weight)
{
    if (level == it->plan->inputs_count) {
        return combination(it, weight);
    }
    const naive_relation *input = &it->inputs[level];
    ivm_value *place = it->row + (level ? it->ends[level - 1] : 0);
    for (size_t r = 0; r < input->count; r++) {
        bool hold;
        naive_int product;
        if (it->looked_at++ == LOOKED_AT_MAX) {
            return NAIVE_UNJUDGED;
        }
        it->at[level] = r;
        if (input->width) {
            memcpy(place, naive_row(input, r), input->width * sizeof *place);
        }
        NAIVE_TRY(pairs_hold(it, level, &hold));
        if (!hold) {
            continue;
        }
        if (!naive_multiply(weight, input->weights[r], &product) || product > WEIGHT_MAX || product < -WEIGHT_MAX) {
            product = (weight < 0) == (input->weights[r] < 0) ? WEIGHT_MAX : -WEIGHT_MAX;
        }
        NAIVE_TRY(combine(it, level + 1, product));
    }
    return IVM_OK;
}

/* Rows of an input that are there and have a partner or none: by themselves, or beside nulls in place of the other's columns. */
static ivm_status add_found(joining *it, size_t input, bool found, bool alone)
{
    const naive_relation *rows = &it->inputs[input];
    size_t width = it->ends[1], first = input && !alone ? it->ends[0] : 0;
    for (size_t r = 0; r < rows->count; r++) {
        if (rows->weights[r] <= 0 || it->found[input][r] != found) {
            continue;
        }
        for (size_t c = 0; c < width; c++) {
            it->row[c] = ivm_null();
        }
        if (rows->width) {
            memcpy(it->row + first, naive_row(rows, r), rows->width * sizeof *it->row);
        }
        NAIVE_TRY(naive_row_add(it->out, it->row, rows->weights[r]));
    }
    return IVM_OK;
}

static ivm_status rest(joining *it)
{
    ivm_join_kind kind = it->plan->join;
    if (kind == IVM_SEMI_JOIN || kind == IVM_ANTI_JOIN) {
        return add_found(it, 0, kind == IVM_SEMI_JOIN, true);
    }
    if (kind == IVM_LEFT_JOIN || kind == IVM_FULL_JOIN) {
        NAIVE_TRY(add_found(it, 0, false, false));
    }
    if (kind == IVM_RIGHT_JOIN || kind == IVM_FULL_JOIN) {
        NAIVE_TRY(add_found(it, 1, false, false));
    }
    return IVM_OK;
}

ivm_status naive_join(naive_pool *pool, const naive_plan *plan, const naive_relation *inputs, naive_relation *out)
{
    naive_pool room = { 0 };
    joining it = { .pool = pool, .plan = plan, .inputs = inputs, .out = out };
    size_t width = 0;
    it.ends = naive_take(&room, plan->inputs_count * sizeof *it.ends);
    it.at = naive_take(&room, plan->inputs_count * sizeof *it.at);
    for (size_t i = 0; i < plan->inputs_count; i++) {
        width += inputs[i].width;
        it.ends[i] = width;
    }
    it.row = naive_take(&room, width * sizeof *it.row);
    for (size_t i = 0; i < 2; i++) {
        it.found[i] = naive_take(&room, inputs[i].count * sizeof *it.found[i]);
    }
    it.gives = plan->join != IVM_SEMI_JOIN && plan->join != IVM_ANTI_JOIN;
    ivm_status status = combine(&it, 0, 1);
    status = status == IVM_OK ? rest(&it) : status;
    naive_pool_free(&room);
    return status;
}
