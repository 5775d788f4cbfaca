/* Plans from JSON, by the builders: each node reads its inputs first, then its own members, so that the first mistake in reading order is
 * the one that is told. An object with a member that its operator does not have is refused before any of it is read: a misspelled one that may be
 * missing would give another view. Names, types, functions and aggregates are checked when a view is made of the plan. Cost: the text, once. */
#include "build.h"

#if !IVM_WITH_JSON

ivm_status ivm_plan_from_json(const char *text, size_t size, ivm_plan **plan, ivm_error *error)
{
    (void)text;
    (void)size;
    (void)plan;
    return ivm__fail(error, IVM_UNSUPPORTED, "ivm_plan_from_json: built without JSON");
}

#else

#include "json.h"

#include <stdio.h>

static ivm_plan *read_plan(const json_t *json);

static ivm_plan *fail(ivm_status status, const char *what, const char *why)
{
    ivm__builder_fail(status, "%s: %s", what, why);
    return NULL;
}

/* ---- Members ----------------------------------------------------------------------------------------------------------------------- */

/* Whether the object has no members but those listed, with a space before and behind each. What is no object is left to who reads it. */
static bool members_known(const json_t *object, const char *op, const char *members)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        char spaced[24];
        size_t size = (size_t)snprintf(spaced, sizeof spaced, " %s ", name);
        if (size >= sizeof spaced || strchr(name, ' ') || !strstr(members, spaced)) {
            ivm__builder_fail(IVM_INVALID_PLAN, "%s has no member \"%s\"", op, name);
            return false;
        }
    }
    return true;
}

/* A member that must be a name; NULL with the cause set where it is none. */
static const char *name_member(const json_t *object, const char *op, const char *key)
{
    const json_t *member = json_object_get(object, key);
    const char *name = ivm__json_name(member);
    if (!name) {
        ivm__builder_fail(IVM_INVALID_PLAN, "%s: \"%s\" is %s", op, key, member ? "no name" : "missing");
    }
    return name;
}

/* A member that must be an array, or may be missing where `optional`: *array NULL then. */
static bool array_member(const json_t *object, const char *op, const char *key, bool optional, const json_t **array)
{
    *array = json_object_get(object, key);
    if (json_is_array(*array) || (!*array && optional)) {
        return true;
    }
    ivm__builder_fail(IVM_INVALID_PLAN, "%s: \"%s\" is %s", op, key, *array ? "no list" : "missing");
    return false;
}

static ivm_expr *expr_member(const json_t *object, const char *op, const char *key)
{
    const json_t *member = json_object_get(object, key);
    if (!member) {
        ivm__builder_fail(IVM_INVALID_PLAN, "%s: \"%s\" is missing", op, key);
        return NULL;
    }
    return ivm__json_expr(member);
}

static ivm_plan *read_input(const json_t *json, const char *op)
{
    const json_t *input = json_object_get(json, "input");
    return input ? read_plan(input) : fail(IVM_INVALID_PLAN, op, "\"input\" is missing");
}

/* Reads all of "inputs"; the caller frees the array. False: the cause is set and nothing is left. */
static bool read_inputs(const json_t *json, const char *op, ivm_plan ***inputs, size_t *count)
{
    const json_t *array;
    if (!array_member(json, op, "inputs", false, &array)) {
        return false;
    }
    *count = json_array_size(array);
    *inputs = ivm__allocate_zeroed(&ivm__builder_memory, *count * sizeof(ivm_plan *));
    if (!*inputs) {
        ivm__builder_fail_memory();
        return false;
    }
    for (size_t i = 0; i < *count; i++) {
        if (!((*inputs)[i] = read_plan(json_array_get(array, i)))) {
            while (i) {
                ivm_plan_free((*inputs)[--i]);
            }
            ivm__release(&ivm__builder_memory, *inputs, *count * sizeof(ivm_plan *));
            return false;
        }
    }
    return true;
}

/* ---- Operators, a function each ------------------------------------------------------------------------------------------------------ */

static ivm_plan *read_scan(const json_t *json, const char *op)
{
    const char *table = ivm__json_name(json_object_get(json, "table"));
    if (!table) {
        return fail(IVM_UNKNOWN_TABLE, op, "\"table\" names none");
    }
    const char *alias = json_object_get(json, "as") ? name_member(json, op, "as") : table;
    return alias ? ivm_plan_scan_name(table, alias) : NULL;
}

static ivm_plan *read_filter(const json_t *json, const char *op)
{
    ivm_plan *input = read_input(json, op);
    return input ? ivm_plan_filter(input, expr_member(json, op, "where")) : NULL;
}

/* A name or {"as", "expr"}; `add` is the builder for the latter. */
static ivm_plan *read_column(ivm_plan *plan, const char *op, const json_t *json, ivm_plan *(*add)(ivm_plan *, const char *, ivm_expr *))
{
    const char *name = ivm__json_name(json);
    if (name) {
        return ivm__plan_keep(plan, name, strlen(name));
    }
    name = members_known(json, op, " as expr ") ? name_member(json, op, "as") : NULL;
    ivm_expr *value = name ? expr_member(json, op, "expr") : NULL;
    if (!value) {
        ivm_plan_free(plan);
        return NULL;
    }
    return add(plan, name, value);
}

static ivm_plan *read_project(const json_t *json, const char *op)
{
    const json_t *columns;
    ivm_plan *plan = read_input(json, op);
    if (!plan || !array_member(json, op, "columns", false, &columns)) {
        ivm_plan_free(plan);
        return NULL;
    }
    plan = ivm_plan_project(plan, NULL);
    for (size_t i = 0; plan && i < json_array_size(columns); i++) {
        plan = read_column(plan, op, json_array_get(columns, i), ivm_plan_compute);
    }
    return plan;
}

/* ---- Joins ------------------------------------------------------------------------------------------------------------------------- */

static ivm_plan *read_on(ivm_plan *join, const char *op, const json_t *json)
{
    const json_t *pairs;
    if (!array_member(json, op, "on", true, &pairs)) {
        ivm_plan_free(join);
        return NULL;
    }
    for (size_t i = 0; join && i < json_array_size(pairs); i++) {
        const json_t *pair = json_array_get(pairs, i);
        const char *a = ivm__json_name(json_array_get(pair, 0)), *b = ivm__json_name(json_array_get(pair, 1));
        if (json_array_size(pair) != 2 || !a || !b) {
            ivm_plan_free(join);
            return fail(IVM_INVALID_PLAN, op, "\"on\" holds what is no pair of names");
        }
        join = ivm__plan_equate(join, a, strlen(a), b, strlen(b));
    }
    return join;
}

/* Whether a join of this kind can be made of so many inputs; the cause is set where not. */
static bool read_kind(const json_t *json, size_t inputs_count, ivm_join_kind *kind)
{
    static const char *const kinds[] = { "inner", "left", "right", "full", "semi", "anti" }; /* in the order of ivm_join_kind */
    const char *name = json ? ivm__json_name(json) : "inner";
    size_t at = 0, kinds_count = sizeof kinds / sizeof *kinds;
    while (name && at < kinds_count && strcmp(name, kinds[at]) != 0) {
        at++;
    }
    if (!name || at == kinds_count) {
        ivm__builder_fail(IVM_INVALID_PLAN, "join: unknown kind %s", name ? name : "that is no name");
        return false;
    }
    *kind = (ivm_join_kind)at;
    if (inputs_count < 2 || (*kind != IVM_INNER_JOIN && inputs_count != 2)) {
        ivm__builder_fail(IVM_INVALID_PLAN, "join: %s of %zu inputs", name, inputs_count);
        return false;
    }
    return true;
}

/* The join without conditions. Takes the inputs. */
static ivm_plan *make_join(const json_t *json, ivm_plan **inputs, size_t count)
{
    ivm_join_kind kind;
    if (!read_kind(json_object_get(json, "kind"), count, &kind)) {
        for (size_t i = 0; i < count; i++) {
            ivm_plan_free(inputs[i]);
        }
        return NULL;
    }
    return kind == IVM_INNER_JOIN ? ivm_plan_join_many(inputs, count, NULL) : ivm_plan_join_kind(kind, inputs[0], inputs[1], NULL);
}

static ivm_plan *read_join(const json_t *json, const char *op)
{
    ivm_plan **inputs;
    size_t count;
    if (!read_inputs(json, op, &inputs, &count)) {
        return NULL;
    }
    ivm_plan *join = make_join(json, inputs, count);
    ivm__release(&ivm__builder_memory, inputs, count * sizeof(ivm_plan *));
    join = join ? read_on(join, op, json) : NULL;
    const json_t *where = json_object_get(json, "where");
    return join && where && !json_is_null(where) ? ivm_plan_join_where(join, ivm__json_expr(where)) : join;
}

/* ---- Aggregates -------------------------------------------------------------------------------------------------------------------- */

static ivm_plan *read_call(ivm_plan *plan, const char *op, const json_t *json)
{
    const char *name = members_known(json, op, " as fn arg where ") ? name_member(json, op, "as") : NULL;
    const char *function = name ? name_member(json, op, "fn") : NULL;
    const json_t *argument = json_object_get(json, "arg"), *where = json_object_get(json, "where");
    if (!function) {
        ivm_plan_free(plan);
        return NULL;
    }
    plan = argument ? ivm_plan_add(plan, name, function, ivm__json_expr(argument)) : ivm__plan_add_rows(plan, name, function);
    return plan && where ? ivm_plan_add_where(plan, ivm__json_expr(where)) : plan;
}

static ivm_plan *read_aggregate(const json_t *json, const char *op)
{
    const json_t *groups, *calls, *having = json_object_get(json, "having");
    ivm_plan *plan = read_input(json, op);
    if (!plan || !array_member(json, op, "group_by", true, &groups) || !array_member(json, op, "aggregates", true, &calls)) {
        ivm_plan_free(plan);
        return NULL;
    }
    plan = ivm_plan_aggregate(plan, NULL);
    for (size_t i = 0; plan && i < json_array_size(groups); i++) {
        plan = read_column(plan, op, json_array_get(groups, i), ivm_plan_group);
    }
    for (size_t i = 0; plan && i < json_array_size(calls); i++) {
        plan = read_call(plan, op, json_array_get(calls, i));
    }
    return plan && having && !json_is_null(having) ? ivm_plan_having(plan, ivm__json_expr(having)) : plan;
}

/* ---- distinct, set operations and top_k ------------------------------------------------------------------------------------------------ */

static ivm_plan *read_distinct(const json_t *json, const char *op)
{
    ivm_plan *input = read_input(json, op);
    return input ? ivm_plan_distinct(input) : NULL;
}

static ivm_plan *read_set(const json_t *json, const char *op)
{
    static const char *const operations[] = { "union_all", "union",         "except_all", /* in the order of ivm_set_operation */
                                              "except",    "intersect_all", "intersect" };
    ivm_plan **inputs;
    size_t count, operation = 0;
    if (!read_inputs(json, op, &inputs, &count)) {
        return NULL;
    }
    while (strcmp(operations[operation], op) != 0) {
        operation++;
        assert(operation < sizeof operations / sizeof *operations);
    }
    ivm_plan *plan = ivm_plan_set((ivm_set_operation)operation, inputs, count);
    ivm__release(&ivm__builder_memory, inputs, count * sizeof(ivm_plan *));
    return plan;
}

/* A count from 0; one that may be missing is 0 then. */
static bool count_member(const json_t *object, const char *op, const char *key, bool optional, uint64_t *count)
{
    const json_t *member = json_object_get(object, key);
    *count = 0;
    if (!member && optional) {
        return true;
    }
    if (!json_is_integer(member) || json_integer_value(member) < 0) {
        ivm__builder_fail(IVM_INVALID_PLAN, "%s: \"%s\" is %s", op, key, member ? "no count from 0" : "missing");
        return false;
    }
    *count = (uint64_t)json_integer_value(member);
    return true;
}

/* An expression, or {"expr", "desc"?, "nulls"?}. */
static ivm_plan *read_order(ivm_plan *plan, const char *op, const json_t *json)
{
    const json_t *expr = json_object_get(json, "expr"), *nulls = json_object_get(json, "nulls");
    if (!expr) {
        return ivm_plan_order_by(plan, ivm__json_expr(json), false, false);
    }
    if (!members_known(json, op, " expr desc nulls ")) {
        ivm_plan_free(plan);
        return NULL;
    }
    const char *word = nulls ? ivm__json_name(nulls) : "last";
    bool first = word && strcmp(word, "first") == 0;
    if (!first && (!word || strcmp(word, "last") != 0)) {
        ivm_plan_free(plan);
        return fail(IVM_INVALID_PLAN, op, "\"nulls\" is \"first\" or \"last\"");
    }
    return ivm_plan_order_by(plan, ivm__json_expr(expr), json_is_true(json_object_get(json, "desc")), first);
}

static ivm_plan *read_top_k(const json_t *json, const char *op)
{
    const json_t *partitions, *orders;
    uint64_t limit, offset;
    ivm_plan *plan = read_input(json, op);
    if (!plan || !count_member(json, op, "limit", false, &limit) || !count_member(json, op, "offset", true, &offset) ||
        !array_member(json, op, "partition_by", true, &partitions) || !array_member(json, op, "order_by", false, &orders)) {
        ivm_plan_free(plan);
        return NULL;
    }
    plan = ivm_plan_top_k(plan, limit, offset);
    for (size_t i = 0; plan && i < json_array_size(partitions); i++) {
        plan = ivm_plan_partition_by(plan, ivm__json_expr(json_array_get(partitions, i)));
    }
    for (size_t i = 0; plan && i < json_array_size(orders); i++) {
        plan = read_order(plan, op, json_array_get(orders, i));
    }
    return plan;
}

/* ---- The tree ---------------------------------------------------------------------------------------------------------------------- */

static ivm_plan *read_plan(const json_t *json)
{
    static const struct {
        const char *op, *members;
        ivm_plan *(*read)(const json_t *json, const char *op);
    } ops[] = {
        { "scan", " op table as ", read_scan },
        { "filter", " op input where ", read_filter },
        { "project", " op input columns ", read_project },
        { "join", " op kind inputs on where ", read_join },
        { "aggregate", " op input group_by aggregates having ", read_aggregate },
        { "distinct", " op input ", read_distinct },
        { "union_all", " op inputs ", read_set },
        { "union", " op inputs ", read_set },
        { "except_all", " op inputs ", read_set },
        { "except", " op inputs ", read_set },
        { "intersect_all", " op inputs ", read_set },
        { "intersect", " op inputs ", read_set },
        { "top_k", " op input partition_by order_by limit offset ", read_top_k },
    };
    const char *op = ivm__json_name(json_object_get(json, "op"));
    if (!op) {
        ivm__builder_fail(IVM_INVALID_PLAN, "a plan is an object with an \"op\"");
        return NULL;
    }
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strcmp(op, ops[i].op) == 0) {
            return members_known(json, op, ops[i].members) ? ops[i].read(json, ops[i].op) : NULL;
        }
    }
    ivm__builder_fail(IVM_INVALID_PLAN, "unknown op %s", op);
    return NULL;
}

/* Where memory ends jansson says little: an error without words, or none at all. */
static ivm_status parse(const char *text, size_t size, json_t **json, ivm_error *error)
{
    json_error_t where = { 0 };
    *json = json_loadb(text, size, JSON_ALLOW_NUL, &where);
    if (*json) {
        return IVM_OK;
    }
    if (!where.text[0] || json_error_code(&where) == json_error_out_of_memory) {
        return ivm__fail_memory(error);
    }
    return ivm__fail(error, IVM_INVALID_PLAN, "JSON, line %d, column %d: %s", where.line, where.column, where.text);
}

/* Causes of before are kept aside, so that the one told is this plan's own. */
ivm_status ivm_plan_from_json(const char *text, size_t size, ivm_plan **plan, ivm_error *error)
{
    if (!text || !plan) {
        return ivm__fail_null(error, "ivm_plan_from_json", text ? "plan" : "text");
    }
    json_t *json;
    IVM_TRY(parse(text, size, &json, error));
    ivm_error before = ivm__builder_cause_exchange((ivm_error)IVM_ERROR_INIT);
    ivm_plan *made = read_plan(json);
    ivm_error cause = ivm__builder_cause_exchange(before);
    json_decref(json);
    if (!made) {
        assert(cause.status != IVM_OK);
        return ivm__fail(error, cause.status, "%s", cause.message);
    }
    *plan = made;
    return IVM_OK;
}

#endif
