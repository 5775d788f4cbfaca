/* A plan for each operator that `ivm bench operators` measures. Aggregates have one group of all rows, so that a cost that grows with
 * the group shows. */
#include "operators.h"

static ivm_plan *f(void)
{
    return ivm_plan_scan_name("f", NULL);
}

static ivm_plan *d(void)
{
    return ivm_plan_scan_name("d", NULL);
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------------------ */

static ivm_plan *filter(void)
{
    ivm_expr *odd = ivm_call2("%", ivm_column("f.v"), ivm_literal(ivm_int64(2)));
    return ivm_plan_filter(f(), ivm_call2("=", odd, ivm_literal(ivm_int64(1))));
}

static ivm_plan *project(void)
{
    ivm_expr *twice = ivm_call2("*", ivm_column("f.v"), ivm_literal(ivm_int64(2)));
    return ivm_plan_compute(ivm_plan_project(f(), "f.id"), "twice", twice);
}

/* ---- Joins ----------------------------------------------------------------------------------------------------------------------- */

static ivm_plan *join_of(ivm_join_kind kind)
{
    return ivm_plan_join_kind(kind, f(), d(), "f.k = d.id");
}

static ivm_plan *joined(ivm_join_kind kind)
{
    return ivm_plan_project(join_of(kind), "f.id, f.v, d.a");
}

static ivm_plan *join(void)
{
    return joined(IVM_INNER_JOIN);
}

static ivm_plan *left_join(void)
{
    return joined(IVM_LEFT_JOIN);
}

static ivm_plan *full_join(void)
{
    return joined(IVM_FULL_JOIN);
}

static ivm_plan *semi_join(void)
{
    return join_of(IVM_SEMI_JOIN);
}

/* The rows of f that find no row of d in another column, most of them. */
static ivm_plan *anti_join(void)
{
    return ivm_plan_join_kind(IVM_ANTI_JOIN, f(), d(), "f.v = d.a");
}

static ivm_plan *anti_join_of_all(void)
{
    return join_of(IVM_ANTI_JOIN);
}

/* ---- Aggregates -------------------------------------------------------------------------------------------------------------------- */

static ivm_plan *aggregate(const char *function, const char *column)
{
    return ivm_plan_add(ivm_plan_aggregate(f(), NULL), "value", function, ivm_column(column));
}

static ivm_plan *sum(void)
{
    return aggregate("sum", "f.v");
}

static ivm_plan *sum_float64(void)
{
    return aggregate("sum", "f.x");
}

static ivm_plan *average(void)
{
    return aggregate("avg", "f.x");
}

static ivm_plan *variance(void)
{
    return aggregate("var_pop", "f.v");
}

static ivm_plan *variance_float64(void)
{
    return aggregate("var_pop", "f.x");
}

static ivm_plan *count_distinct(void)
{
    return aggregate("count_distinct", "f.v");
}

static ivm_plan *sum_distinct(void)
{
    return aggregate("sum_distinct", "f.v");
}

static ivm_plan *min(void)
{
    return aggregate("min", "f.rank");
}

static ivm_plan *bool_and(void)
{
    ivm_expr *positive = ivm_call2(">", ivm_column("f.rank"), ivm_literal(ivm_int64(0)));
    ivm_plan *plan = ivm_plan_add(ivm_plan_aggregate(f(), NULL), "value", "bool_and", positive);
    return ivm_plan_count(plan, "rows");
}

/* As many groups as f has rows, divided by PARTNERS. */
static ivm_plan *groups(void)
{
    return ivm_plan_add(ivm_plan_aggregate(f(), "f.k"), "total", "sum", ivm_column("f.v"));
}

static ivm_plan *join_groups(void)
{
    ivm_plan *plan = ivm_plan_aggregate(ivm_plan_join(f(), d(), "f.k = d.id"), "d.a");
    return ivm_plan_add(plan, "total", "sum", ivm_column("f.v"));
}

/* ---- Sets and orders ----------------------------------------------------------------------------------------------------------------- */

static ivm_plan *distinct(void)
{
    return ivm_plan_distinct(ivm_plan_project(f(), "f.v"));
}

static ivm_plan *set(ivm_set_operation operation)
{
    ivm_plan *inputs[] = { ivm_plan_project(f(), "f.v"), ivm_plan_project(d(), "d.a") };
    return ivm_plan_set(operation, inputs, 2);
}

static ivm_plan *union_all(void)
{
    return set(IVM_UNION_ALL);
}

static ivm_plan *union_once(void)
{
    return set(IVM_UNION);
}

static ivm_plan *except_all(void)
{
    return set(IVM_EXCEPT_ALL);
}

static ivm_plan *except(void)
{
    return set(IVM_EXCEPT);
}

static ivm_plan *intersect_all(void)
{
    return set(IVM_INTERSECT_ALL);
}

static ivm_plan *intersect(void)
{
    return set(IVM_INTERSECT);
}

static ivm_plan *top_k(void)
{
    return ivm_plan_order_by(ivm_plan_top_k(f(), 10, 0), ivm_column("f.rank"), false, false);
}

/* ---- Views over views ---------------------------------------------------------------------------------------------------------------- */

static ivm_plan *over_groups(void)
{
    ivm_expr *digit = ivm_call2("%", ivm_column("u.total"), ivm_literal(ivm_int64(1000)));
    ivm_plan *plan = ivm_plan_group(ivm_plan_aggregate(ivm_plan_scan_name("under", "u"), NULL), "digit", digit);
    return ivm_plan_count(plan, "groups");
}

const operator_case operator_cases[] = {
    { "table", NULL, NULL, ANY_ROW, false },
    { "filter", filter, NULL, ANY_ROW, false },
    { "project", project, NULL, ANY_ROW, false },
    { "join", join, NULL, ANY_ROW, false },
    { "join_partner", join, NULL, PARTNER_ROW, false },
    { "left_join", left_join, NULL, ANY_ROW, false },
    { "left_join_partner", left_join, NULL, PARTNER_ROW, false },
    { "full_join_partner", full_join, NULL, PARTNER_ROW, false },
    { "semi_join", semi_join, NULL, ANY_ROW, false },
    { "semi_join_partner", semi_join, NULL, PARTNER_ROW, false },
    { "anti_join", anti_join, NULL, ANY_ROW, false },
    { "anti_join_partner", anti_join_of_all, NULL, PARTNER_ROW, false },
    { "sum", sum, NULL, ANY_ROW, false },
    { "sum_float64", sum_float64, NULL, ANY_ROW, false },
    { "avg_float64", average, NULL, ANY_ROW, false },
    { "variance", variance, NULL, ANY_ROW, false },
    { "variance_float64", variance_float64, NULL, ANY_ROW, false },
    { "count_distinct", count_distinct, NULL, ANY_ROW, false },
    { "sum_distinct", sum_distinct, NULL, ANY_ROW, false },
    { "bool_and", bool_and, NULL, ANY_ROW, false },
    { "min_deleted", min, NULL, FIRST_ROW, false },
    { "groups", groups, NULL, ANY_ROW, false },
    { "join_groups", join_groups, NULL, ANY_ROW, false },
    { "distinct", distinct, NULL, ANY_ROW, false },
    { "union_all", union_all, NULL, ANY_ROW, false },
    { "union", union_once, NULL, ANY_ROW, false },
    { "except_all", except_all, NULL, ANY_ROW, false },
    { "except", except, NULL, ANY_ROW, false },
    { "intersect_all", intersect_all, NULL, ANY_ROW, false },
    { "intersect", intersect, NULL, ANY_ROW, false },
    { "top_k_deleted", top_k, NULL, FIRST_ROW, false },
    { "view_over_view", over_groups, groups, ANY_ROW, false },
    { "deferred", join_groups, NULL, ANY_ROW, true },
    { NULL, NULL, NULL, ANY_ROW, false },
};
