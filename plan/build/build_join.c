/* Builders of joins, inner and outer: what they equate is kept as pairs of names until a view is made. */
#include "build.h"

#include "catalog.h"

/* ---- Pairs of names ---------------------------------------------------------------------------------------------------------------- */

static bool equate(ivm_plan *join, const char *a, size_t a_size, const char *b, size_t b_size)
{
    char *left = ivm__builder_text(a, a_size), *right = left ? ivm__builder_text(b, b_size) : NULL;
    char **grown = right ? ivm__builder_grow(join->on, join->on_count, 2 * sizeof(char *)) : NULL;
    if (!grown) {
        ivm__builder_text_free(left);
        ivm__builder_text_free(right);
        return false;
    }
    join->on = grown;
    grown[2 * join->on_count] = left;
    grown[2 * join->on_count + 1] = right;
    join->on_count++;
    return true;
}

static size_t trimmed(const char **name, size_t size)
{
    static const char space[] = " \t\n\r\f\v";
    while (size && strchr(space, **name)) {
        (*name)++;
        size--;
    }
    while (size && strchr(space, (*name)[size - 1])) {
        size--;
    }
    return size;
}

/* "a = b": one equals sign, a name on either side. */
static bool equate_text(ivm_plan *join, const char *pair, size_t size)
{
    const char *sign = memchr(pair, '=', size), *end = pair + size;
    const char *left = pair, *right = sign ? sign + 1 : end;
    size_t left_size = sign ? trimmed(&left, (size_t)(sign - left)) : 0, right_size = trimmed(&right, (size_t)(end - right));
    if (!left_size || !right_size || memchr(right, '=', right_size)) {
        ivm__builder_fail(IVM_INVALID_PLAN, "ivm_plan_join: \"%.*s\" is no pair of names with one = between them; a comma separates pairs",
                          (int)size, pair);
        return false;
    }
    return equate(join, left, left_size, right, right_size);
}

static bool equate_list(ivm_plan *join, const char *list)
{
    const char *at = ivm__list_is_blank(list) ? NULL : list, *pair;
    size_t size;
    while (at && ivm__name_next(&at, &pair, &size)) {
        if (!equate_text(join, pair, size)) {
            return false;
        }
    }
    return true;
}

/* ---- Joins ------------------------------------------------------------------------------------------------------------------------- */

ivm_plan *ivm_plan_join_many(ivm_plan **inputs, size_t inputs_count, const char *on)
{
    ivm_plan *join = ivm__plan_many(IVM__PLAN_JOIN, "ivm_plan_join", inputs, inputs_count);
    return join && equate_list(join, on) ? join : ivm__plan_drop(join);
}

ivm_plan *ivm_plan_join(ivm_plan *left, ivm_plan *right, const char *on)
{
    return ivm_plan_join_many((ivm_plan *[]){ left, right }, 2, on);
}

ivm_plan *ivm_plan_join_kind(ivm_join_kind kind, ivm_plan *left, ivm_plan *right, const char *on)
{
    if ((unsigned)kind > IVM_ANTI_JOIN) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_join_kind: %d is no kind of join", (int)kind);
        ivm_plan_free(left);
        return ivm__plan_drop(right);
    }
    ivm_plan *inputs[] = { left, right };
    ivm_plan *join = ivm__plan_many(kind == IVM_INNER_JOIN ? IVM__PLAN_JOIN : IVM__PLAN_OUTER, "ivm_plan_join_kind", inputs, 2);
    if (join) {
        join->kind = kind;
    }
    return join && equate_list(join, on) ? join : ivm__plan_drop(join);
}

ivm_plan *ivm__plan_equate(ivm_plan *join, const char *a, size_t a_size, const char *b, size_t b_size)
{
    return join && equate(join, a, a_size, b, b_size) ? join : ivm__plan_drop(join);
}

ivm_plan *ivm_plan_join_where(ivm_plan *join, ivm_expr *where)
{
    bool outer = join && join->op == IVM__PLAN_OUTER;
    if (!ivm__plan_is(join, outer ? IVM__PLAN_OUTER : IVM__PLAN_JOIN, "ivm_plan_join_where", "join") || !where) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_join_where: the condition is NULL");
        ivm_expr_free(where);
        return ivm__plan_drop(join);
    }
    return ivm__plan_where_add(join, where) ? join : ivm__plan_drop(join);
}
