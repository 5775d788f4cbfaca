/* Plans from bytes: each node is bound as it is made, so that what is put above it can be drawn by its columns' types. A node that cannot be bound is
 * left out. */
#include "operations.h"

#include <string.h>

typedef enum wanted { WANT_ANY, WANT_BOOL, WANT_NUMBER, WANT_INT, WANT_TEXT } wanted;

static naive_expr *expr_draw(operations *it, const naive_plan *input, wanted kind, unsigned depth);

/* ---- Expressions ------------------------------------------------------------------------------------------------------------------- */

static bool fits(ivm_type type, wanted kind)
{
    uint32_t is = IVM_TYPE_KIND(type);
    switch (kind) {
    case WANT_BOOL:
        return is == IVM_BOOL;
    case WANT_NUMBER:
        return is == IVM_INT64 || is == IVM_FLOAT64 || is == IVM_DECIMAL_KIND;
    case WANT_INT:
        return is == IVM_INT64;
    case WANT_TEXT:
        return is == IVM_STRING;
    default:
        return true;
    }
}

static naive_expr *literal_draw(operations *it, wanted kind)
{
    static const ivm_type types[] = { IVM_INT64, IVM_BOOL, IVM_INT64, IVM_INT64, IVM_STRING };
    ivm_type type = kind == WANT_ANY ? operations_type(it) : kind == WANT_NUMBER && operations_once_in(it, 3) ? IVM_FLOAT64 : types[kind];
    return naive_expr_literal(&it->pool, operations_value(it, type, false));
}

/* A column of the kind, from a drawn place on; NULL where there is none. */
static naive_expr *column_draw(operations *it, const naive_plan *input, wanted kind)
{
    size_t first = operations_pick(it, (unsigned)input->width);
    for (size_t i = 0; i < input->width; i++) {
        const naive_column *column = &input->heading[(first + i) % input->width];
        if (fits(column->type, kind)) {
            return naive_expr_column(&it->pool, column->name);
        }
    }
    return NULL;
}

static naive_expr *leaf_draw(operations *it, const naive_plan *input, wanted kind)
{
    naive_expr *column = operations_once_in(it, 4) ? NULL : column_draw(it, input, kind);
    return column ? column : literal_draw(it, kind);
}

static naive_expr *call(operations *it, naive_function function, naive_expr *a, naive_expr *b)
{
    naive_expr *made = naive_expr_call(&it->pool, function, b ? 2 : 1);
    made->arguments[0] = a;
    if (b) {
        made->arguments[1] = b;
    }
    operations_count(naive_function_names[function]);
    return made;
}

/* A function of `count` arguments of one kind. */
static naive_expr *call_many(operations *it, const naive_plan *input, naive_function function, size_t count, wanted kind, unsigned depth)
{
    naive_expr *made = naive_expr_call(&it->pool, function, count);
    for (size_t i = 0; i < count; i++) {
        made->arguments[i] = expr_draw(it, input, kind, depth);
    }
    operations_count(naive_function_names[function]);
    return made;
}

static naive_expr *case_draw(operations *it, const naive_plan *input, wanted kind, unsigned depth)
{
    naive_expr *made = naive_expr_call(&it->pool, NAIVE_CASE, 3);
    made->arguments[0] = expr_draw(it, input, WANT_BOOL, depth);
    made->arguments[1] = expr_draw(it, input, kind, depth);
    made->arguments[2] = expr_draw(it, input, kind, depth);
    operations_count("case");
    return made;
}

static naive_expr *bool_draw(operations *it, const naive_plan *input, unsigned depth)
{
    static const wanted kinds[] = { WANT_NUMBER, WANT_TEXT, WANT_INT, WANT_INT };
    switch (operations_pick(it, 10)) {
    case 0:
        return call_many(it, input, NAIVE_AND, 1 + operations_pick(it, 3), WANT_BOOL, depth);
    case 1:
        return call_many(it, input, NAIVE_OR, 1 + operations_pick(it, 3), WANT_BOOL, depth);
    case 2:
        return call(it, NAIVE_NOT, expr_draw(it, input, WANT_BOOL, depth), NULL);
    case 3:
        return call(it, operations_pick(it, 2) ? NAIVE_IS_NULL : NAIVE_IS_NOT_NULL, expr_draw(it, input, WANT_ANY, depth), NULL);
    case 4:
        return call_many(it, input, NAIVE_IN, 2 + operations_pick(it, 3), kinds[operations_pick(it, 4)], depth);
    case 5:
        return leaf_draw(it, input, WANT_BOOL);
    default: {
        naive_function function = (naive_function)(NAIVE_EQUAL + operations_pick(it, 6));
        wanted kind = kinds[operations_pick(it, 4)];
        naive_expr *a = expr_draw(it, input, kind, depth);
        return call(it, function, a, expr_draw(it, input, kind, depth));
    }
    }
}

static naive_expr *number_draw(operations *it, const naive_plan *input, wanted kind, unsigned depth)
{
    static const ivm_type casts[] = { IVM_FLOAT64, IVM_DECIMAL(30, 4), IVM_INT64 };
    unsigned drawn = operations_pick(it, 14);
    if (drawn < 4) {
        static const naive_function functions[] = { NAIVE_ADD, NAIVE_SUBTRACT, NAIVE_MULTIPLY, NAIVE_ADD };
        naive_expr *a = expr_draw(it, input, kind, depth);
        return call(it, functions[drawn], a, expr_draw(it, input, kind, depth));
    }
    switch (drawn) {
    case 4:
        return call(it, operations_pick(it, 2) ? NAIVE_NEGATE : NAIVE_ABS, expr_draw(it, input, kind, depth), NULL);
    case 5:
        return call_many(it, input, operations_pick(it, 2) ? NAIVE_DIV : NAIVE_REMAINDER, 2, WANT_INT, depth);
    case 6:
        return call_many(it, input, kind == WANT_INT ? NAIVE_DIV : NAIVE_DIVIDE, 2, WANT_INT, depth);
    case 7:
        return call_many(it, input, operations_pick(it, 2) ? NAIVE_LEAST : NAIVE_GREATEST, 1 + operations_pick(it, 3), kind, depth);
    case 8:
        return call_many(it, input, NAIVE_COALESCE, 1 + operations_pick(it, 3), kind, depth);
    case 9:
        return case_draw(it, input, kind, depth);
    case 10:
        return call(it, NAIVE_LENGTH, expr_draw(it, input, WANT_TEXT, depth), NULL);
    case 11:
        operations_count("cast");
        return naive_expr_cast(&it->pool, expr_draw(it, input, operations_pick(it, 3) ? WANT_INT : WANT_BOOL, depth),
                               kind == WANT_INT ? IVM_INT64 : casts[operations_pick(it, 3)]);
    default:
        return leaf_draw(it, input, kind);
    }
}

static naive_expr *text_draw(operations *it, const naive_plan *input, unsigned depth)
{
    switch (operations_pick(it, 6)) {
    case 0:
        return call_many(it, input, NAIVE_CONCAT, 1 + operations_pick(it, 3), WANT_TEXT, depth);
    case 1:
        return call(it, operations_pick(it, 2) ? NAIVE_LOWER : NAIVE_UPPER, expr_draw(it, input, WANT_TEXT, depth), NULL);
    case 2:
        return case_draw(it, input, WANT_TEXT, depth);
    default:
        return leaf_draw(it, input, WANT_TEXT);
    }
}

static naive_expr *expr_draw(operations *it, const naive_plan *input, wanted kind, unsigned depth)
{
    if (!depth) {
        return leaf_draw(it, input, kind);
    }
    switch (kind) {
    case WANT_BOOL:
        return bool_draw(it, input, depth - 1);
    case WANT_NUMBER:
    case WANT_INT:
        return number_draw(it, input, kind, depth - 1);
    case WANT_TEXT:
        return text_draw(it, input, depth - 1);
    default:
        return operations_pick(it, 3) ? leaf_draw(it, input, kind) : expr_draw(it, input, (wanted)(1 + operations_pick(it, 4)), depth);
    }
}

static naive_expr *operations_condition(operations *it, const naive_plan *input, unsigned depth)
{
    return bool_draw(it, input, depth);
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------------------------- */

static const char *fresh(operations *it, const char *kind)
{
    return naive_text(&it->pool, "%s%u", kind, it->names++);
}

/* The node, bound, or what to have in its place. */
static naive_plan *bound(operations *it, naive_plan *plan, naive_plan *instead, const char *name)
{
    if (naive_bind(&it->pool, &it->expected, plan) != IVM_OK) {
        operations_count("node that cannot be bound");
        return instead;
    }
    operations_count(name);
    return plan;
}

static naive_plan *scan_of(operations *it, const char *name, const char *what)
{
    naive_plan *plan = naive_plan_make(&it->pool, NAIVE_SCAN, 0);
    plan->table = name;
    plan->alias = fresh(it, "s");
    return bound(it, plan, NULL, what);
}

static naive_plan *scan_draw(operations *it)
{
    size_t tables = it->expected.tables_count, views = it->expected.views_count;
    size_t at = operations_pick(it, (unsigned)(2 * tables + views)); /* tables twice as often */
    bool table = at < 2 * tables;
    const char *name = table ? it->expected.tables[at / 2].name : it->expected.views[at - 2 * tables].name;
    return scan_of(it, name, table ? "op scan" : "op scan of a view");
}

static naive_plan *over(operations *it, naive_operator op, naive_plan *input)
{
    naive_plan *plan = naive_plan_make(&it->pool, op, 1);
    plan->inputs[0] = input;
    return plan;
}

/* All columns, or the given positions, under names of their own. */
static naive_plan *rename_all(operations *it, naive_plan *input, const size_t *positions, size_t count)
{
    naive_plan *plan = over(it, NAIVE_PROJECT, input);
    plan->columns_count = count;
    plan->columns = naive_take(&it->pool, count * sizeof *plan->columns);
    for (size_t c = 0; c < count; c++) {
        const char *from = input->heading[positions ? positions[c] : c].name;
        plan->columns[c] = (naive_named){ fresh(it, "p"), naive_expr_column(&it->pool, from) };
    }
    return bound(it, plan, input, "op project");
}

/* Of the input as a whole, so that its names meet none of another's and none is there twice. */
static naive_plan *named_apart(operations *it, naive_plan *input)
{
    for (size_t a = 0; a < input->width; a++) {
        bool bare = !strchr(input->heading[a].name, '.');
        for (size_t b = 0; b < a; b++) {
            bare |= strcmp(input->heading[a].name, input->heading[b].name) == 0;
        }
        if (bare) {
            return rename_all(it, input, NULL, input->width);
        }
    }
    return input;
}

static naive_plan *filter_draw(operations *it, naive_plan *input)
{
    naive_plan *plan = over(it, NAIVE_FILTER, input);
    plan->where = operations_condition(it, input, operations_pick(it, 3));
    return bound(it, plan, input, "op filter");
}

static naive_plan *project_draw(operations *it, naive_plan *input)
{
    naive_plan *plan = over(it, NAIVE_PROJECT, input);
    plan->columns_count = 1 + operations_pick(it, 4);
    plan->columns = naive_take(&it->pool, plan->columns_count * sizeof *plan->columns);
    for (size_t c = 0; c < plan->columns_count; c++) {
        bool plain = operations_once_in(it, 3);
        naive_expr *value = plain ? column_draw(it, input, WANT_ANY) : expr_draw(it, input, WANT_ANY, 1 + operations_pick(it, 2));
        plan->columns[c] = (naive_named){ plain ? NULL : fresh(it, "p"), value };
    }
    return bound(it, plan, input, "op project");
}

/* ---- Joins ------------------------------------------------------------------------------------------------------------------------- */

/* Pairs the last input with one before it: two columns of one type, from drawn places on. */
static bool pair_draw(operations *it, naive_plan *const *inputs, size_t count, naive_pair *pair)
{
    const naive_plan *right = inputs[count - 1], *left = inputs[operations_pick(it, (unsigned)count - 1)];
    size_t l = operations_pick(it, (unsigned)left->width), r = operations_pick(it, (unsigned)right->width);
    for (size_t i = 0; i < left->width; i++) {
        for (size_t k = 0; k < right->width; k++) {
            const naive_column *a = &left->heading[(l + i) % left->width], *b = &right->heading[(r + k) % right->width];
            if (a->type == b->type || (fits(a->type, WANT_NUMBER) && fits(b->type, WANT_NUMBER) && i + k > 3)) {
                *pair = (naive_pair){ .left = a->name, .right = b->name };
                return true;
            }
        }
    }
    return false;
}

/* A pair as a declared fact has it, where there is one between the scans that the inputs are. */
static size_t fact_pairs(operations *it, naive_plan *const *inputs, size_t count, naive_pair *pairs)
{
    const naive_plan *right = inputs[count - 1];
    for (size_t f = 0; f < it->expected.facts_count; f++) {
        const naive_fact *fact = &it->expected.facts[f];
        for (size_t i = 0; i + 1 < count; i++) {
            bool forth = inputs[i]->op == NAIVE_SCAN && right->op == NAIVE_SCAN && strcmp(inputs[i]->table, fact->child) == 0 &&
                         strcmp(right->table, fact->parent) == 0;
            bool back = inputs[i]->op == NAIVE_SCAN && right->op == NAIVE_SCAN && strcmp(inputs[i]->table, fact->parent) == 0 &&
                        strcmp(right->table, fact->child) == 0;
            const naive_plan *child = forth ? inputs[i] : right, *parent = forth ? right : inputs[i];
            if (!forth && !back) {
                continue;
            }
            for (size_t k = 0; k < fact->count; k++) {
                size_t c = naive_table_column_find(naive_table_find(&it->expected, fact->child), fact->child_ids[k]);
                size_t p = naive_table_column_find(naive_table_find(&it->expected, fact->parent), fact->parent_ids[k]);
                pairs[k] = (naive_pair){ .left = child->heading[c].name, .right = parent->heading[p].name };
            }
            bool half = fact->count > 1 && operations_once_in(it, 4);
            operations_count(half ? "join along half a fact" : "join along a fact");
            return half ? 1 : fact->count;
        }
    }
    return 0;
}

/* A table that a fact leads to or from, from a drawn fact on, where one of the inputs scans the other. */
static naive_plan *related_draw(operations *it, naive_plan *const *inputs, size_t count)
{
    size_t facts = it->expected.facts_count, first = operations_pick(it, (unsigned)facts);
    for (size_t f = 0; f < facts; f++) {
        const naive_fact *fact = &it->expected.facts[(first + f) % facts];
        for (size_t i = 0; i < count; i++) {
            bool child = inputs[i]->op == NAIVE_SCAN && strcmp(inputs[i]->table, fact->child) == 0;
            bool parent = inputs[i]->op == NAIVE_SCAN && strcmp(inputs[i]->table, fact->parent) == 0;
            if (child || parent) {
                return scan_of(it, child ? fact->parent : fact->child, "op scan");
            }
        }
    }
    return scan_draw(it);
}

static naive_plan *join_draw(operations *it, naive_plan *first, unsigned depth)
{
    static const char *const kinds[] = { "op join inner", "op join left", "op join right", "op join full", "op join semi", "op join anti" };
    unsigned drawn = operations_pick(it, 12);
    ivm_join_kind kind = drawn < 7 ? IVM_INNER_JOIN : (ivm_join_kind)(drawn - 6);
    size_t count = kind == IVM_INNER_JOIN ? 2 + operations_pick(it, 3) : 2;
    naive_plan *plan = naive_plan_make(&it->pool, NAIVE_JOIN, count);
    plan->join = kind;
    plan->on = naive_take(&it->pool, 4 * NAIVE_KEY_MAX * sizeof *plan->on);
    for (size_t i = 0; i < count; i++) {
        naive_plan *input = first;
        if (i) {
            unsigned how = operations_pick(it, 6);
            input = how < 3 ? related_draw(it, plan->inputs, i) : how < 5 ? scan_draw(it) : operations_plan(it, depth);
        }
        plan->inputs[i] = named_apart(it, input);
        size_t along = i && operations_pick(it, 4) ? fact_pairs(it, plan->inputs, i + 1, &plan->on[plan->on_count]) : 0;
        plan->on_count += along;
        if (i && !along && !operations_once_in(it, 10)) {
            plan->on_count += pair_draw(it, plan->inputs, i + 1, &plan->on[plan->on_count]);
        }
    }
    naive_plan *made = bound(it, plan, first, kinds[kind]);
    if (made == plan && operations_once_in(it, 4)) {
        naive_plan all = *plan;
        all.width = plan->width;
        for (size_t i = 1; i < count && (kind == IVM_SEMI_JOIN || kind == IVM_ANTI_JOIN); i++) {
            all.width += plan->inputs[i]->width; /* the condition sees both */
        }
        naive_expr *where = operations_condition(it, &all, 1);
        if (naive_bind_condition(where, all.heading, all.width) == IVM_OK) {
            plan->where = where;
            operations_count("join with a condition");
        }
    }
    return made;
}

/* ---- Aggregates -------------------------------------------------------------------------------------------------------------------- */

static void aggregate_one(operations *it, const naive_plan *input, naive_aggregate *out)
{
    static const wanted arguments[NAIVE_AGGREGATES_COUNT] = {
        WANT_ANY,    WANT_NUMBER, WANT_NUMBER, WANT_ANY,    WANT_ANY,  WANT_ANY,  WANT_NUMBER,
        WANT_NUMBER, WANT_NUMBER, WANT_NUMBER, WANT_NUMBER, WANT_BOOL, WANT_BOOL,
    };
    *out = (naive_aggregate){ .name = fresh(it, "g"), .function = (naive_aggregate_function)operations_pick(it, NAIVE_AGGREGATES_COUNT) };
    if (out->function != NAIVE_COUNT || operations_pick(it, 2)) {
        out->argument = expr_draw(it, input, arguments[out->function], operations_pick(it, 2));
    }
    if (operations_once_in(it, 4)) {
        out->where = operations_condition(it, input, 1);
        operations_count("aggregate with a condition");
    }
    operations_count(naive_aggregate_names[out->function]);
}

static naive_plan *aggregate_draw(operations *it, naive_plan *input)
{
    naive_plan *plan = over(it, NAIVE_AGGREGATE, input);
    plan->columns_count = operations_pick(it, 3);
    plan->columns = naive_take(&it->pool, plan->columns_count * sizeof *plan->columns);
    for (size_t c = 0; c < plan->columns_count; c++) {
        bool plain = operations_pick(it, 3);
        naive_expr *value = plain ? column_draw(it, input, WANT_ANY) : expr_draw(it, input, WANT_ANY, 1);
        plan->columns[c] = (naive_named){ plain && operations_pick(it, 2) ? NULL : fresh(it, "k"), value };
    }
    plan->aggregates_count = 1 + operations_pick(it, 3);
    plan->aggregates = naive_take(&it->pool, plan->aggregates_count * sizeof *plan->aggregates);
    for (size_t a = 0; a < plan->aggregates_count; a++) {
        aggregate_one(it, input, &plan->aggregates[a]);
    }
    naive_plan *made = bound(it, plan, input, plan->columns_count ? "op aggregate by groups" : "op aggregate of all");
    if (made == plan && operations_once_in(it, 4)) {
        naive_expr *where = operations_condition(it, plan, 1);
        if (naive_bind_condition(where, plan->heading, plan->width) == IVM_OK) {
            plan->where = where;
            operations_count("having");
        }
    }
    return made;
}

/* ---- Sets and tops ----------------------------------------------------------------------------------------------------------------- */

/* The input cut to columns of these types; a literal where it has none. */
static naive_plan *shaped(operations *it, naive_plan *input, const naive_column *types, size_t count)
{
    naive_plan *plan = over(it, NAIVE_PROJECT, input);
    plan->columns_count = count;
    plan->columns = naive_take(&it->pool, count * sizeof *plan->columns);
    for (size_t c = 0; c < count; c++) {
        size_t first = operations_pick(it, (unsigned)input->width);
        naive_expr *value = naive_expr_cast(&it->pool, naive_expr_literal(&it->pool, ivm_null()), types[c].type);
        for (size_t i = 0; i < input->width; i++) {
            const naive_column *column = &input->heading[(first + i) % input->width];
            if (column->type == types[c].type) {
                value = naive_expr_column(&it->pool, column->name);
                break;
            }
        }
        plan->columns[c] = (naive_named){ fresh(it, "p"), value };
    }
    return bound(it, plan, NULL, "op project");
}

static naive_plan *set_draw(operations *it, naive_plan *first, unsigned depth)
{
    static const char *const names[] = { "op union_all", "op union", "op except_all", "op except", "op intersect_all", "op intersect" };
    size_t positions[2], width = 1 + operations_pick(it, 2), count = 2 + operations_once_in(it, 4);
    for (size_t c = 0; c < width; c++) {
        positions[c] = operations_pick(it, (unsigned)first->width);
    }
    naive_plan *plan = naive_plan_make(&it->pool, NAIVE_SET, count);
    plan->set = (ivm_set_operation)operations_pick(it, 6);
    plan->inputs[0] = rename_all(it, first, positions, width);
    for (size_t i = 1; i < count; i++) {
        naive_plan *input = operations_pick(it, 2) ? scan_draw(it) : operations_plan(it, depth);
        plan->inputs[i] = shaped(it, input, plan->inputs[0]->heading, plan->inputs[0]->width);
        if (!plan->inputs[i]) {
            return first;
        }
    }
    return bound(it, plan, first, names[plan->set]);
}

static naive_plan *top_draw(operations *it, naive_plan *input)
{
    naive_plan *plan = over(it, NAIVE_TOP_K, input);
    plan->limit = operations_pick(it, 6);
    plan->offset = operations_once_in(it, 3) ? operations_pick(it, 3) : 0;
    plan->partitions_count = operations_pick(it, 2);
    plan->orders_count = 1 + operations_pick(it, 2);
    plan->partitions = naive_take(&it->pool, sizeof(naive_expr *));
    plan->orders = naive_take(&it->pool, plan->orders_count * sizeof *plan->orders);
    for (size_t i = 0; i < plan->partitions_count; i++) {
        plan->partitions[i] = expr_draw(it, input, WANT_ANY, operations_pick(it, 2));
    }
    for (size_t i = 0; i < plan->orders_count; i++) {
        unsigned how = operations_byte(it);
        plan->orders[i] = (naive_order){ expr_draw(it, input, WANT_ANY, how / 4 % 2), how % 2, how / 2 % 2 };
    }
    return bound(it, plan, input, plan->partitions_count ? "op top_k of partitions" : "op top_k");
}

/* ---- Plans ------------------------------------------------------------------------------------------------------------------------- */

static naive_plan *node_draw(operations *it, naive_plan *input, unsigned depth)
{
    switch (operations_pick(it, 14)) {
    case 0:
    case 1:
        return filter_draw(it, input);
    case 2:
        return project_draw(it, input);
    case 3:
    case 4:
    case 5:
    case 6:
    case 7:
        return join_draw(it, input, depth);
    case 8:
    case 9:
        return aggregate_draw(it, input);
    case 10:
        return bound(it, over(it, NAIVE_DISTINCT, input), input, "op distinct");
    case 11:
    case 12:
        return set_draw(it, input, depth);
    default:
        return top_draw(it, input);
    }
}

/* No two columns of one name once aliases are gone, but once in a while. */
static naive_plan *root(operations *it, naive_plan *plan)
{
    for (size_t a = 0; a < plan->width; a++) {
        for (size_t b = 0; b < a; b++) {
            if (strcmp(naive_bare_name(plan->heading[a].name), naive_bare_name(plan->heading[b].name)) == 0) {
                return operations_once_in(it, 30) ? plan : rename_all(it, plan, NULL, plan->width);
            }
        }
    }
    return plan;
}

naive_plan *operations_plan(operations *it, unsigned depth)
{
    naive_plan *plan = scan_draw(it);
    for (unsigned i = 0; i < depth; i++) {
        plan = node_draw(it, plan, depth - 1);
    }
    return root(it, plan);
}
