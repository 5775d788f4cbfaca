/* Builders of distinct, the set operations and top_k. */
#include "build.h"

ivm_plan *ivm_plan_distinct(ivm_plan *input)
{
    ivm_plan *plan = ivm__plan_over(IVM__PLAN_SET, "ivm_plan_distinct", input);
    if (plan) {
        plan->set = IVM__SET_DISTINCT;
    }
    return plan;
}

ivm_plan *ivm_plan_set(ivm_set_operation operation, ivm_plan **inputs, size_t inputs_count)
{
    static const ivm__set_kind kinds[] = {
        [IVM_UNION_ALL] = IVM__SET_UNION_ALL,         [IVM_UNION] = IVM__SET_UNION,
        [IVM_EXCEPT_ALL] = IVM__SET_EXCEPT_ALL,       [IVM_EXCEPT] = IVM__SET_EXCEPT,
        [IVM_INTERSECT_ALL] = IVM__SET_INTERSECT_ALL, [IVM_INTERSECT] = IVM__SET_INTERSECT,
    };
    if ((unsigned)operation > IVM_INTERSECT) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_set: %d is no set operation", (int)operation);
        for (size_t i = 0; inputs && i < inputs_count; i++) {
            ivm_plan_free(inputs[i]);
        }
        return NULL;
    }
    ivm_plan *plan = ivm__plan_many(IVM__PLAN_SET, "ivm_plan_set", inputs, inputs_count);
    if (plan) {
        plan->set = kinds[operation];
    }
    return plan;
}

/* ---- top_k ------------------------------------------------------------------------------------------------------------------------- */

ivm_plan *ivm_plan_top_k(ivm_plan *input, uint64_t limit, uint64_t offset)
{
    ivm_plan *plan = ivm__plan_over(IVM__PLAN_TOP_K, "ivm_plan_top_k", input);
    if (plan) {
        plan->limit = limit;
        plan->offset = offset;
    }
    return plan;
}

ivm_plan *ivm_plan_partition_by(ivm_plan *top_k, ivm_expr *value)
{
    if (!ivm__plan_is(top_k, IVM__PLAN_TOP_K, "ivm_plan_partition_by", "top_k") || !value) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_partition_by: the value is NULL");
        ivm_expr_free(value);
        return ivm__plan_drop(top_k);
    }
    bool added = ivm__plan_column_add(&top_k->partitions, &top_k->partitions_count, (ivm__plan_column){ .value = value });
    return added ? top_k : ivm__plan_drop(top_k);
}

ivm_plan *ivm_plan_order_by(ivm_plan *top_k, ivm_expr *value, bool descending, bool nulls_first)
{
    if (!ivm__plan_is(top_k, IVM__PLAN_TOP_K, "ivm_plan_order_by", "top_k") || !value) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_order_by: the value is NULL");
        ivm_expr_free(value);
        return ivm__plan_drop(top_k);
    }
    ivm__plan_order *grown = ivm__builder_grow(top_k->orders, top_k->orders_count, sizeof *grown);
    if (!grown) {
        ivm_expr_free(value);
        return ivm__plan_drop(top_k);
    }
    grown[top_k->orders_count++] = (ivm__plan_order){ value, descending, nulls_first };
    top_k->orders = grown;
    return top_k;
}
