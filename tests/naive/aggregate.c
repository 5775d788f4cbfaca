/* Aggregates of the oracle: rows are gathered by group, then each aggregate is computed over all the rows of a group. */
#include "naive.h"

#include <stdlib.h>

/* The values that are not null of one aggregate's argument in the rows of group `group`, with the rows' weights; 1 where rows are counted. */
static ivm_status values_gather(naive_pool *pool, const naive_aggregate *one, const naive_relation *input, const size_t *groups,
                                size_t group, naive_relation *values)
{
    for (size_t r = 0; r < input->count; r++) {
        bool counts = groups[r] == group;
        ivm_value value = ivm_int64(1);
        if (counts && one->where) {
            NAIVE_TRY(naive_holds(pool, one->where, naive_row(input, r), &counts));
        }
        if (counts && one->argument) {
            NAIVE_TRY(naive_compute(pool, one->argument, naive_row(input, r), &value));
        }
        if (counts && !value.is_null) {
            NAIVE_TRY(naive_row_add(values, &value, input->weights[r]));
        }
    }
    return IVM_OK;
}

/* Arguments of all functions are computed for all rows that count, before anything is concluded from them. */
static ivm_status group_compute(naive_pool *pool, const naive_plan *plan, const naive_relation *input, const size_t *groups, size_t group,
                                ivm_value *row)
{
    for (size_t a = 0; a < plan->aggregates_count; a++) {
        const naive_aggregate *one = &plan->aggregates[a];
        ivm_type type = one->argument ? one->argument->type : IVM_INT64;
        naive_relation values;
        naive_relation_init(&values, 1);
        ivm_status status = values_gather(pool, one, input, groups, group, &values);
        status = status == IVM_OK ? naive_accumulate(one->function, type, &values, &row[plan->columns_count + a]) : status;
        naive_relation_free(&values);
        NAIVE_TRY(status);
    }
    return IVM_OK;
}

/* The number of each row's group; the groups' own columns in *keys, in the order of their first rows. */
static ivm_status groups_find(naive_pool *pool, const naive_plan *plan, const naive_relation *input, size_t *groups, naive_relation *keys)
{
    ivm_value *row = naive_take(pool, (plan->columns_count + 1) * sizeof *row);
    for (size_t r = 0; r < input->count; r++) {
        for (size_t c = 0; c < plan->columns_count; c++) {
            NAIVE_TRY(naive_compute(pool, plan->columns[c].value, naive_row(input, r), &row[c]));
        }
        size_t group = 0;
        while (group < keys->count && naive_rows_compare(naive_row(keys, group), row, keys->width)) {
            group++;
        }
        if (group == keys->count) {
            NAIVE_TRY(naive_row_add(keys, row, 1));
        }
        groups[r] = group;
    }
    return plan->columns_count || keys->count ? IVM_OK : naive_row_add(keys, row, 1); /* one group without columns always is */
}

static ivm_status groups_compute(naive_pool *pool, const naive_plan *plan, const naive_relation *input, const size_t *groups,
                                 const naive_relation *keys, naive_relation *out)
{
    ivm_value *row = naive_take(pool, plan->width * sizeof *row);
    for (size_t group = 0; group < keys->count; group++) {
        for (size_t c = 0; c < plan->columns_count; c++) {
            row[c] = naive_row(keys, group)[c];
        }
        NAIVE_TRY(group_compute(pool, plan, input, groups, group, row));
        NAIVE_TRY(naive_row_add(out, row, 1));
    }
    return IVM_OK;
}

ivm_status naive_aggregate_rows(naive_pool *pool, const naive_plan *plan, const naive_relation *input, naive_relation *out)
{
    size_t *groups = naive_grow(NULL, input->count, sizeof *groups);
    naive_relation keys;
    naive_relation_init(&keys, plan->columns_count);
    ivm_status status = groups_find(pool, plan, input, groups, &keys);
    status = status == IVM_OK ? groups_compute(pool, plan, input, groups, &keys, out) : status;
    naive_relation_free(&keys);
    free(groups);
    return status;
}
