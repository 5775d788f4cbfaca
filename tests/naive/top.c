/* top_k of the oracle: each row's place is found by counting the rows of its partition that come before it. */
#include "naive.h"

/* 1 for a null that comes last, -1 for one that comes first, 0 for none. */
static int null_place(const ivm_value *value, bool nulls_first)
{
    return !value->is_null ? 0 : nulls_first ? -1 : 1;
}

static int orders_compare(const naive_plan *plan, const ivm_value *a, const ivm_value *b)
{
    for (size_t i = 0; i < plan->orders_count; i++) {
        const naive_order *one = &plan->orders[i];
        int x = null_place(&a[i], one->nulls_first), y = null_place(&b[i], one->nulls_first);
        int order = x != y ? (x < y ? -1 : 1) : x ? 0 : naive_compare(&a[i], &b[i]) * (one->descending ? -1 : 1);
        if (order) {
            return order;
        }
    }
    return 0;
}

/* Partitions and orders side by side, of the rows that are there; of others nothing is computed. */
static ivm_status keys_make(naive_pool *pool, const naive_plan *plan, const naive_relation *input, naive_relation *keys)
{
    ivm_value *row = naive_take(pool, keys->width * sizeof *row);
    for (size_t r = 0; r < input->count; r++) {
        for (size_t i = 0; i < plan->partitions_count && input->weights[r] > 0; i++) {
            NAIVE_TRY(naive_compute(pool, plan->partitions[i], naive_row(input, r), &row[i]));
        }
        for (size_t i = 0; i < plan->orders_count && input->weights[r] > 0; i++) {
            NAIVE_TRY(naive_compute(pool, plan->orders[i].value, naive_row(input, r), &row[plan->partitions_count + i]));
        }
        NAIVE_TRY(naive_row_add(keys, row, input->weights[r]));
    }
    return IVM_OK;
}

static ivm_status place(const naive_plan *plan, const naive_relation *input, const naive_relation *keys, naive_relation *out)
{
    size_t partitions = plan->partitions_count;
    for (size_t r = 0; r < input->count; r++) {
        naive_int before = 0, weight = input->weights[r];
        if (weight <= 0) {
            continue;
        }
        for (size_t other = 0; other < input->count; other++) {
            const ivm_value *mine = naive_row(keys, r), *its = naive_row(keys, other);
            if (input->weights[other] <= 0 || naive_rows_compare(mine, its, partitions)) {
                continue;
            }
            int order = orders_compare(plan, its + partitions, mine + partitions);
            order = order ? order : naive_rows_compare(naive_row(input, other), naive_row(input, r), input->width);
            before += order < 0 ? input->weights[other] : 0;
        }
        naive_int first = before > plan->offset ? before : (naive_int)plan->offset;
        naive_int end = before + weight, limit = (naive_int)plan->offset + (naive_int)plan->limit;
        end = end < limit ? end : limit;
        if (end > first) {
            NAIVE_TRY(naive_row_add(out, naive_row(input, r), end - first));
        }
    }
    return IVM_OK;
}

ivm_status naive_top_k(naive_pool *pool, const naive_plan *plan, const naive_relation *input, naive_relation *out)
{
    naive_relation keys;
    naive_relation_init(&keys, plan->partitions_count + plan->orders_count);
    ivm_status status = keys_make(pool, plan, input, &keys);
    status = status == IVM_OK ? place(plan, input, &keys, out) : status;
    naive_relation_free(&keys);
    return status;
}
