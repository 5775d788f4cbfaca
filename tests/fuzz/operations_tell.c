/* Plans and rows as text, for traces and for what is told of a difference. */
#include "operations.h"

#include <stdio.h>

void operations_value_print(const ivm_value *value, FILE *out)
{
    char text[64];
    if (!value->is_null && value->type == IVM_STRING) {
        fprintf(out, "\"%.*s\"", (int)value->as.string.size, value->as.string.bytes);
    } else {
        ivm_value_format(value, text, sizeof text);
        fputs(text, out);
    }
}

void operations_relation_print(const char *what, const naive_relation *rows, FILE *out)
{
    fprintf(out, "%s:\n", what);
    for (size_t r = 0; r < rows->count && r < 24; r++) {
        fprintf(out, "  %lld (", (long long)rows->weights[r]);
        for (size_t c = 0; c < rows->width; c++) {
            fputs(c ? ", " : "", out);
            operations_value_print(&naive_row(rows, r)[c], out);
        }
        fputs(")\n", out);
    }
}

static void expr_print(const naive_expr *expr, FILE *out)
{
    char type[IVM_TYPE_TEXT_SIZE];
    if (!expr || expr->kind == NAIVE_COLUMN) {
        fputs(expr ? expr->name : "*", out);
        return;
    }
    if (expr->kind == NAIVE_LITERAL) {
        operations_value_print(&expr->literal, out);
        return;
    }
    ivm_type_format(expr->target, type);
    fprintf(out, "(%s", expr->kind == NAIVE_CAST ? type : naive_function_names[expr->function]);
    for (size_t i = 0; i < expr->arguments_count; i++) {
        fputc(' ', out);
        expr_print(expr->arguments[i], out);
    }
    fputc(')', out);
}

static void details_print(const naive_plan *plan, FILE *out)
{
    for (size_t i = 0; i < plan->on_count; i++) {
        fprintf(out, " [%s = %s]", plan->on[i].left, plan->on[i].right);
    }
    for (size_t i = 0; i < plan->columns_count; i++) {
        fprintf(out, " %s=", plan->columns[i].name ? plan->columns[i].name : "");
        expr_print(plan->columns[i].value, out);
    }
    for (size_t i = 0; i < plan->aggregates_count; i++) {
        fprintf(out, " %s=%s(", plan->aggregates[i].name, naive_aggregate_names[plan->aggregates[i].function]);
        expr_print(plan->aggregates[i].argument, out);
        if (plan->aggregates[i].where) {
            fputs(" where ", out);
            expr_print(plan->aggregates[i].where, out);
        }
        fputc(')', out);
    }
    for (size_t i = 0; i < plan->partitions_count; i++) {
        fputs(" partition ", out);
        expr_print(plan->partitions[i], out);
    }
    for (size_t i = 0; i < plan->orders_count; i++) {
        fputs(plan->orders[i].descending ? " down " : " up ", out);
        expr_print(plan->orders[i].value, out);
        fputs(plan->orders[i].nulls_first ? " nulls first" : "", out);
    }
    if (plan->where) {
        fputs(" where ", out);
        expr_print(plan->where, out);
    }
}

void operations_plan_print(const naive_plan *plan, unsigned depth, FILE *out)
{
    static const char *const joins[] = { "inner", "left", "right", "full", "semi", "anti" };
    static const char *const sets[] = { "union_all", "union", "except_all", "except", "intersect_all", "intersect" };
    static const char *const names[] = { "scan", "filter", "project", "join", "aggregate", "distinct", "set", "top_k" };
    const char *name = plan->op == NAIVE_JOIN ? joins[plan->join] : plan->op == NAIVE_SET ? sets[plan->set] : names[plan->op];
    fprintf(out, "%*s%s", (int)(4 + 2 * depth), "", name);
    if (plan->op == NAIVE_SCAN) {
        fprintf(out, " %s as %s", plan->table, plan->alias);
    } else if (plan->op == NAIVE_TOP_K) {
        fprintf(out, " %llu from %llu", (unsigned long long)plan->limit, (unsigned long long)plan->offset);
    }
    details_print(plan, out);
    fputc('\n', out);
    for (size_t i = 0; i < plan->inputs_count; i++) {
        operations_plan_print(plan->inputs[i], depth + 1, out);
    }
}
