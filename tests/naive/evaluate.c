/* Plans of the oracle computed whole, and its operators of one input's rows; joins, aggregates have files of their own. */
#include "naive.h"

/* ---- Rows one by one --------------------------------------------------------------------------------------------------------------- */

/* The source's columns where they are now; null for one that was dropped. */
static ivm_status scan(naive_pool *pool, const naive_database *database, const naive_plan *plan, naive_relation *out)
{
    const naive_table *table = naive_table_find(database, plan->table);
    const naive_relation *rows = naive_source(database, plan->table);
    ivm_value *row = naive_take(pool, plan->width * sizeof *row);
    for (size_t r = 0; r < rows->count; r++) {
        for (size_t c = 0; c < plan->width; c++) {
            size_t at = table ? naive_table_column_find(table, plan->ids[c]) : plan->ids[c];
            row[c] = at < rows->width ? naive_row(rows, r)[at] : ivm_null();
        }
        NAIVE_TRY(naive_row_add(out, row, rows->weights[r]));
    }
    return IVM_OK;
}

static ivm_status filter(naive_pool *pool, const naive_expr *where, const naive_relation *input, naive_relation *out)
{
    for (size_t r = 0; r < input->count; r++) {
        bool holds;
        NAIVE_TRY(naive_holds(pool, where, naive_row(input, r), &holds));
        if (holds) {
            NAIVE_TRY(naive_row_add(out, naive_row(input, r), input->weights[r]));
        }
    }
    return IVM_OK;
}

static ivm_status project(naive_pool *pool, const naive_plan *plan, const naive_relation *input, naive_relation *out)
{
    ivm_value *row = naive_take(pool, plan->width * sizeof *row);
    for (size_t r = 0; r < input->count; r++) {
        for (size_t c = 0; c < plan->columns_count; c++) {
            NAIVE_TRY(naive_compute(pool, plan->columns[c].value, naive_row(input, r), &row[c]));
        }
        NAIVE_TRY(naive_row_add(out, row, input->weights[r]));
    }
    return IVM_OK;
}

/* ---- Sets -------------------------------------------------------------------------------------------------------------------------- */

/* The rows that are there; `once`: each with weight 1. */
static ivm_status present(const naive_relation *input, bool once, naive_relation *out)
{
    for (size_t r = 0; r < input->count; r++) {
        if (input->weights[r] > 0) {
            NAIVE_TRY(naive_row_add(out, naive_row(input, r), once ? 1 : input->weights[r]));
        }
    }
    return IVM_OK;
}

/* What is left of weight a beside weight b. */
static naive_int set_weight(ivm_set_operation set, naive_int a, naive_int b)
{
    if (set == IVM_EXCEPT || set == IVM_EXCEPT_ALL) {
        return a > b ? a - b : 0;
    }
    return a < b ? a : b;
}

static ivm_status fold(const naive_plan *plan, const naive_relation *input, naive_relation *out)
{
    bool once = plan->set == IVM_UNION || plan->set == IVM_EXCEPT || plan->set == IVM_INTERSECT;
    naive_relation side;
    naive_relation_init(&side, plan->width);
    ivm_status status = present(input, once, &side);
    if (plan->set == IVM_UNION) {
        status = status == IVM_OK ? naive_rows_add(out, &side, 1) : status;
        naive_consolidate(out);
        for (size_t r = 0; r < out->count; r++) {
            out->weights[r] = 1;
        }
    } else {
        for (size_t r = 0; r < out->count; r++) {
            out->weights[r] = set_weight(plan->set, out->weights[r], naive_weight(&side, naive_row(out, r)));
        }
        naive_consolidate(out);
    }
    naive_relation_free(&side);
    return status;
}

ivm_status naive_set(const naive_plan *plan, const naive_relation *inputs, naive_relation *out)
{
    if (plan->set == IVM_UNION_ALL) {
        for (size_t i = 0; i < plan->inputs_count; i++) {
            NAIVE_TRY(naive_rows_add(out, &inputs[i], 1));
        }
        return IVM_OK;
    }
    NAIVE_TRY(present(&inputs[0], plan->set == IVM_UNION || plan->set == IVM_EXCEPT || plan->set == IVM_INTERSECT, out));
    for (size_t i = 1; i < plan->inputs_count; i++) {
        NAIVE_TRY(fold(plan, &inputs[i], out));
    }
    return IVM_OK;
}

/* ---- Whole plans ------------------------------------------------------------------------------------------------------------------- */

static bool inner_join(const naive_plan *plan)
{
    return plan->op == NAIVE_JOIN && plan->join == IVM_INNER_JOIN;
}

static ivm_status having(naive_pool *pool, const naive_plan *plan, const naive_relation *input, naive_relation *out)
{
    if (!plan->where) {
        return naive_aggregate_rows(pool, plan, input, out);
    }
    naive_relation groups;
    naive_relation_init(&groups, plan->width);
    ivm_status status = naive_aggregate_rows(pool, plan, input, &groups);
    status = status == IVM_OK ? filter(pool, plan->where, &groups, out) : status;
    naive_relation_free(&groups);
    return status;
}

static ivm_status operate(naive_pool *pool, const naive_database *database, const naive_plan *plan, const naive_relation *inputs,
                          naive_relation *out)
{
    switch (plan->op) {
    case NAIVE_SCAN:
        return scan(pool, database, plan, out);
    case NAIVE_FILTER:
        return filter(pool, plan->where, inputs, out);
    case NAIVE_PROJECT:
        return project(pool, plan, inputs, out);
    case NAIVE_JOIN:
        return naive_join(pool, plan, inputs, out);
    case NAIVE_AGGREGATE:
        return having(pool, plan, inputs, out);
    case NAIVE_DISTINCT:
        return present(inputs, true, out);
    case NAIVE_SET:
        return naive_set(plan, inputs, out);
    default:
        return naive_top_k(pool, plan, inputs, out);
    }
}

ivm_status naive_evaluate(naive_pool *pool, const naive_database *database, const naive_plan *plan, bool part, naive_relation *out)
{
    naive_relation inputs[IVM_JOIN_LEAVES_MAX] = { 0 };
    ivm_status status = IVM_OK;
    naive_relation_init(out, plan->width);
    for (size_t i = 0; i < plan->inputs_count && status == IVM_OK; i++) {
        status = naive_evaluate(pool, database, plan->inputs[i], inner_join(plan) && inner_join(plan->inputs[i]), &inputs[i]);
    }
    if (status == IVM_OK) {
        status = operate(pool, database, plan, inputs, out);
        naive_consolidate(out);
        status = status == IVM_OK && out->count > NAIVE_ROWS_KEPT_MAX ? NAIVE_UNJUDGED : status;
        status = status == IVM_OVERFLOW && part ? NAIVE_UNJUDGED : status; /* the rows it is of may find no partner in the whole join */
        status = status == IVM_OK && !part ? naive_weights_check(out) : status;
    }
    for (size_t i = 0; i < plan->inputs_count; i++) {
        naive_relation_free(&inputs[i]);
    }
    if (status != IVM_OK) {
        naive_relation_free(out);
    }
    return status;
}
