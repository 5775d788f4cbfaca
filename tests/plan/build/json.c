/* Plans from JSON: what is read, what is refused with which code, and that nothing is left of what was refused. */
#include "builder_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <jansson.h>
#include <stdlib.h>

TestSuite(plan_json, .init = builder_count, .fini = builder_assert_nothing);

/* JSON is written here with ' for ". */
static char *quoted(const char *text)
{
    char *copy = strdup(text);
    for (char *at = copy; (at = strchr(at, '\''));) {
        *at = '"';
    }
    return copy;
}

static ivm_plan *reads(const char *text)
{
    ivm_plan *plan = NULL;
    ivm_error error = IVM_ERROR_INIT;
    char *json = quoted(text);
    cr_assert_eq(ivm_plan_from_json(json, strlen(json), &plan, &error), IVM_OK, "%s: %s", text, error.message);
    cr_assert_not_null(plan);
    free(json);
    return plan;
}

static void refuses(const char *text, ivm_status status, const char *part)
{
    ivm_plan *plan = NULL;
    ivm_error error = IVM_ERROR_INIT;
    char *json = quoted(text);
    ivm_status got = ivm_plan_from_json(json, strlen(json), &plan, &error);
    free(json);
    cr_expect_eq(got, status, "%s: %s, not %s: %s", text, ivm_status_name(got), ivm_status_name(status), error.message);
    cr_expect_eq(error.status, status);
    cr_expect_not_null(strstr(error.message, part), "%s: \"%s\" is not in \"%s\"", text, part, error.message);
    cr_expect_null(plan);
    cr_expect_eq(builder_allocator.blocks, 0, "%s: blocks left", text);
}

#define T "{'op': 'scan', 'table': 't'}"
#define U "{'op': 'scan', 'table': 'u', 'as': 'v'}"
#define COMPUTE(expression) "{'op': 'project', 'input': " T ", 'columns': [{'as': 'x', 'expr': " expression "}]}"

/* ---- Operators ----------------------------------------------------------------------------------------------------------------------- */

Test(plan_json, scans)
{
    ivm_plan *plan = reads(U);
    cr_expect_eq(plan->op, IVM__PLAN_SCAN);
    cr_expect_str_eq(plan->table, "u");
    cr_expect_str_eq(plan->alias, "v");
    ivm_plan_free(plan);
    plan = reads(T);
    cr_expect_str_eq(plan->alias, "t");
    ivm_plan_free(plan);
}

Test(plan_json, filters_and_projects)
{
    ivm_plan *plan = reads("{'op': 'project', 'input': {'op': 'filter', 'input': " T ", 'where': ['and', 'p', true]},"
                           " 'columns': ['t.a', {'as': 'b', 'expr': 'c'}], 'note': 'passed over'}");
    cr_expect_eq(plan->op, IVM__PLAN_PROJECT);
    cr_assert_eq(plan->columns_count, (size_t)2);
    cr_expect_null(plan->columns[0].name);
    cr_expect_str_eq(plan->columns[0].value->text, "t.a");
    cr_expect_str_eq(plan->columns[1].name, "b");
    cr_expect_str_eq(plan->columns[1].value->text, "c");
    ivm_plan *filter = plan->inputs[0];
    cr_expect_eq(filter->op, IVM__PLAN_FILTER);
    cr_expect_str_eq(filter->where->text, "and");
    ivm_plan_free(plan);
}

Test(plan_json, names_in_lists_may_hold_commas_and_equals_signs)
{
    ivm_plan *plan = reads("{'op': 'project', 'input': " T ", 'columns': ['a, b']}");
    cr_assert_eq(plan->columns_count, (size_t)1);
    cr_expect_str_eq(plan->columns[0].value->text, "a, b");
    ivm_plan_free(plan);
    plan = reads("{'op': 'join', 'inputs': [" T ", " U "], 'on': [['a=b', 'c,d']]}");
    cr_expect_str_eq(plan->on[0], "a=b");
    cr_expect_str_eq(plan->on[1], "c,d");
    ivm_plan_free(plan);
}

Test(plan_json, joins)
{
    ivm_plan *plan =
        reads("{'op': 'join', 'inputs': [" T ", " U ", " T "], 'on': [['a', 'b'], ['c', 'd'], ['e', 'f']], 'where': ['<', 'a', 1]}");
    cr_expect_eq(plan->op, IVM__PLAN_JOIN);
    cr_expect_eq(plan->inputs_count, (size_t)3);
    cr_assert_eq(plan->on_count, (size_t)3);
    cr_expect_str_eq(plan->on[4], "e");
    cr_expect_str_eq(plan->where->text, "<");
    ivm_plan_free(plan);
    plan = reads("{'op': 'join', 'kind': 'inner', 'inputs': [" T ", " U "], 'where': null}");
    cr_expect_eq(plan->on_count, (size_t)0);
    cr_expect_null(plan->where);
    ivm_plan_free(plan);
}

Test(plan_json, aggregates)
{
    ivm_plan *plan =
        reads("{'op': 'aggregate', 'input': " T ", 'group_by': ['a', {'as': 'g', 'expr': ['lower', 's']}], 'aggregates': ["
              "{'as': 'n', 'fn': 'count'}, {'as': 'm', 'fn': 'count', 'arg': null}, {'as': 's', 'fn': 'sum', 'arg': 'x', 'where': 'p'}],"
              " 'having': ['>', 'n', 1]}");
    cr_expect_eq(plan->op, IVM__PLAN_AGGREGATE);
    cr_assert_eq(plan->columns_count, (size_t)2);
    cr_expect_str_eq(plan->columns[1].name, "g");
    cr_assert_eq(plan->aggregates_count, (size_t)3);
    cr_expect_null(plan->aggregates[0].value);
    cr_assert_not_null(plan->aggregates[1].value);
    cr_expect(plan->aggregates[1].value->value.is_null);
    cr_expect_str_eq(plan->aggregates[2].where->text, "p");
    cr_expect_str_eq(plan->where->text, ">");
    ivm_plan_free(plan);
    plan = reads("{'op': 'aggregate', 'input': " T ", 'having': null}");
    cr_expect_eq(plan->columns_count + plan->aggregates_count, (size_t)0);
    ivm_plan_free(plan);
}

/* ---- Expressions --------------------------------------------------------------------------------------------------------------------- */

static ivm_plan *literal(const char *text, ivm_type type, ivm_value *value)
{
    char json[512];
    snprintf(json, sizeof json, COMPUTE("%s"), text);
    ivm_plan *plan = reads(json);
    const ivm_expr *expr = plan->columns[0].value;
    cr_assert_eq(expr->kind, IVM__EXPR_LITERAL, "%s", text);
    cr_expect_eq(expr->value.type, type, "%s", text);
    *value = expr->value;
    return plan;
}

static void literal_is(const char *text, ivm_type type, const char *wanted)
{
    ivm_value value;
    char got[64];
    ivm_plan *plan = literal(text, type, &value);
    ivm_value_format(&value, got, sizeof got);
    cr_expect_str_eq(got, wanted, "%s: %s", text, got);
    ivm_plan_free(plan);
}

Test(plan_json, literals_of_every_type)
{
    literal_is("12", IVM_INT64, "12");
    literal_is("-9223372036854775808", IVM_INT64, "-9223372036854775808");
    literal_is("2.5", IVM_FLOAT64, "2.5");
    literal_is("1e3", IVM_FLOAT64, "1000");
    literal_is("true", IVM_BOOL, "true");
    literal_is("false", IVM_BOOL, "false");
    literal_is("null", 0, "null");
    literal_is("{'lit': 'text'}", IVM_STRING, "text");
    literal_is("{'lit': 'Zo\\u00eb'}", IVM_STRING, "Zo\xc3\xab");
    literal_is("{'lit': null}", IVM_STRING, "null");
    literal_is("{'lit': 7, 'type': 'int64'}", IVM_INT64, "7");
    literal_is("{'lit': 7, 'type': 'float64'}", IVM_FLOAT64, "7");
    literal_is("{'lit': 'NaN', 'type': 'float64'}", IVM_FLOAT64, "NaN");
    literal_is("{'lit': '-Infinity', 'type': 'float64'}", IVM_FLOAT64, "-Infinity");
    literal_is("{'lit': true, 'type': ' BOOL '}", IVM_BOOL, "true");
    literal_is("{'lit': '1.5', 'type': 'decimal(10,2)'}", IVM_DECIMAL(10, 2), "1.50");
    literal_is("{'lit': 3, 'type': 'decimal(10,2)'}", IVM_DECIMAL(10, 2), "3.00");
    literal_is("{'lit': '2026-11-29', 'type': 'date'}", IVM_DATE, "2026-11-29");
    literal_is("{'lit': '2026-11-29T20:01:27Z', 'type': 'timestamp'}", IVM_TIMESTAMP, "2026-11-29T20:01:27.000000Z");
    literal_is("{'lit': null, 'type': 'date'}", IVM_DATE, "null");
    literal_is("{'lit': 'x', 'type': 'string'}", IVM_STRING, "x");
}

Test(plan_json, a_string_literal_may_hold_a_null_byte_and_a_name_may_not)
{
    ivm_value value;
    ivm_plan *plan = literal("{'lit': 'a\\u0000b'}", IVM_STRING, &value);
    cr_assert_eq(value.as.string.size, (size_t)3);
    cr_expect_arr_eq(value.as.string.bytes, "a\0b", 3);
    ivm_plan_free(plan);
    refuses(COMPUTE("'a\\u0000b'"), IVM_UNKNOWN_COLUMN, "null byte");
    refuses("{'op': 'scan', 'table': 't\\u0000'}", IVM_UNKNOWN_TABLE, "table");
}

Test(plan_json, literals_that_are_none)
{
    refuses(COMPUTE("{'lit': 5}"), IVM_TYPE_MISMATCH, "string");
    refuses(COMPUTE("{'lit': 1.0, 'type': 'int64'}"), IVM_TYPE_MISMATCH, "int64");
    refuses(COMPUTE("{'lit': true, 'type': 'int64'}"), IVM_TYPE_MISMATCH, "int64");
    refuses(COMPUTE("{'lit': '1', 'type': 'int64'}"), IVM_TYPE_MISMATCH, "int64");
    refuses(COMPUTE("{'lit': '1.5', 'type': 'float64'}"), IVM_TYPE_MISMATCH, "float64");
    refuses(COMPUTE("{'lit': true, 'type': 'float64'}"), IVM_TYPE_MISMATCH, "float64");
    refuses(COMPUTE("{'lit': 1, 'type': 'bool'}"), IVM_TYPE_MISMATCH, "bool");
    refuses(COMPUTE("{'lit': 1.5, 'type': 'decimal(5,2)'}"), IVM_TYPE_MISMATCH, "decimal(5,2)");
    refuses(COMPUTE("{'lit': '1.005', 'type': 'decimal(5,2)'}"), IVM_TYPE_MISMATCH, "1.005");
    refuses(COMPUTE("{'lit': '1000', 'type': 'decimal(5,2)'}"), IVM_TYPE_MISMATCH, "1000");
    refuses(COMPUTE("{'lit': '2026-02-30', 'type': 'date'}"), IVM_TYPE_MISMATCH, "2026-02-30");
    refuses(COMPUTE("{'lit': 1, 'type': 'timestamp'}"), IVM_TYPE_MISMATCH, "timestamp");
    refuses(COMPUTE("{'lit': 1, 'type': 'number'}"), IVM_INVALID_ARGUMENT, "number");
    refuses(COMPUTE("{'lit': 1, 'type': 'decimal(39,0)'}"), IVM_INVALID_ARGUMENT, "decimal(39,0)");
    refuses(COMPUTE("{'lit': 1, 'type': 5}"), IVM_INVALID_PLAN, "type");
    refuses(COMPUTE("{'lit': 'a', 'kind': 'string'}"), IVM_INVALID_PLAN, "lit");
    refuses(COMPUTE("{'type': 'string'}"), IVM_INVALID_PLAN, "lit");
    refuses(COMPUTE("9223372036854775808"), IVM_INVALID_PLAN, "big");
}

Test(plan_json, calls_and_casts)
{
    ivm_plan *plan = reads(COMPUTE("['case', ['=', 'a', {'lit': 'b'}], ['cast', 'c', 'decimal(5,2)'], ['-', 'd']]"));
    const ivm_expr *call = plan->columns[0].value;
    cr_expect_str_eq(call->text, "case");
    cr_assert_eq(call->arguments_count, (size_t)3);
    cr_expect_eq(call->arguments[0]->arguments_count, (size_t)2);
    cr_expect_eq(call->arguments[1]->kind, IVM__EXPR_CAST);
    cr_expect_eq(call->arguments[1]->type, IVM_DECIMAL(5, 2));
    cr_expect_eq(call->arguments[2]->arguments_count, (size_t)1);
    ivm_plan_free(plan);
    refuses(COMPUTE("[]"), IVM_INVALID_PLAN, "function");
    refuses(COMPUTE("[1, 2]"), IVM_INVALID_PLAN, "function");
    refuses(COMPUTE("['cast', 'a']"), IVM_INVALID_PLAN, "cast");
    refuses(COMPUTE("['cast', 'a', 'int64', 1]"), IVM_INVALID_PLAN, "cast");
    refuses(COMPUTE("['cast', 'a', 'int65']"), IVM_INVALID_ARGUMENT, "int65");
    refuses(COMPUTE("['cast', ['+', []], 'int64']"), IVM_INVALID_PLAN, "function");
    refuses(COMPUTE("['+', 'a', {'lit': 1}, []]"), IVM_TYPE_MISMATCH, "string");
}

/* ---- Joins of all kinds, sets, top_k ---------------------------------------------------------------------------------------------------- */

Test(plan_json, joins_have_kinds)
{
    static const struct {
        const char *name;
        ivm_join_kind kind;
    } kinds[] = { { "inner", IVM_INNER_JOIN }, { "left", IVM_LEFT_JOIN }, { "right", IVM_RIGHT_JOIN },
                  { "full", IVM_FULL_JOIN },   { "semi", IVM_SEMI_JOIN }, { "anti", IVM_ANTI_JOIN } };
    char json[256];
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        snprintf(json, sizeof json,
                 "{'op': 'join', 'kind': '%s', 'inputs': [" T ", " U "], 'on': [['t.a', 'v.b']], 'where': ['<', 'c', 1]}", kinds[i].name);
        ivm_plan *plan = reads(json);
        cr_expect_eq(plan->op, i ? IVM__PLAN_OUTER : IVM__PLAN_JOIN);
        cr_expect_eq(plan->kind, kinds[i].kind);
        cr_expect_eq(plan->inputs_count, (size_t)2);
        cr_expect_eq(plan->on_count, (size_t)1);
        cr_expect_not_null(plan->where);
        ivm_plan_free(plan);
    }
}

Test(plan_json, sets_of_all_kinds)
{
    static const struct {
        const char *name;
        ivm__set_kind kind;
    } sets[] = { { "union_all", IVM__SET_UNION_ALL }, { "union", IVM__SET_UNION },         { "except_all", IVM__SET_EXCEPT_ALL },
                 { "except", IVM__SET_EXCEPT },       { "intersect", IVM__SET_INTERSECT }, { "intersect_all", IVM__SET_INTERSECT_ALL } };
    char json[256];
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        snprintf(json, sizeof json, "{'op': '%s', 'inputs': [" T ", " U ", " T "]}", sets[i].name);
        ivm_plan *plan = reads(json);
        cr_expect_eq(plan->op, IVM__PLAN_SET);
        cr_expect_eq(plan->set, sets[i].kind);
        cr_expect_eq(plan->inputs_count, (size_t)3);
        ivm_plan_free(plan);
    }
    ivm_plan *plan = reads("{'op': 'distinct', 'input': " T "}");
    cr_expect_eq(plan->op, IVM__PLAN_SET);
    cr_expect_eq(plan->set, IVM__SET_DISTINCT);
    ivm_plan_free(plan);
}

Test(plan_json, top_k)
{
    ivm_plan *plan =
        reads("{'op': 'top_k', 'input': " T ", 'partition_by': ['p', ['+', 'q', 1]], 'limit': 9223372036854775807, 'offset': 2,"
              " 'order_by': ['a', {'expr': 'b', 'desc': true, 'nulls': 'first'}, ['-', 'c'], {'lit': 'd'}, {'expr': 'e'}]}");
    cr_expect_eq(plan->op, IVM__PLAN_TOP_K);
    cr_expect_eq(plan->limit, (uint64_t)INT64_MAX);
    cr_expect_eq(plan->offset, 2u);
    cr_assert_eq(plan->partitions_count, (size_t)2);
    cr_expect_str_eq(plan->partitions[1].value->text, "+");
    cr_assert_eq(plan->orders_count, (size_t)5);
    for (size_t i = 0; i < 5; i++) {
        cr_expect_eq(plan->orders[i].descending, i == 1);
        cr_expect_eq(plan->orders[i].nulls_first, i == 1);
    }
    cr_expect_str_eq(plan->orders[1].value->text, "b");
    cr_expect_eq(plan->orders[3].value->kind, IVM__EXPR_LITERAL);
    ivm_plan_free(plan);
    plan = reads("{'op': 'top_k', 'input': " T ", 'order_by': [{'expr': 'a', 'nulls': 'last', 'desc': false}], 'limit': 0}");
    cr_expect_eq(plan->offset, 0u);
    cr_expect_not(plan->orders[0].descending);
    cr_expect_not(plan->orders[0].nulls_first);
    ivm_plan_free(plan);
}

/* ---- Refused ------------------------------------------------------------------------------------------------------------------------- */

Test(plan_json, what_is_no_plan)
{
    refuses("", IVM_INVALID_PLAN, "line 1");
    refuses("{'op': 'scan', 'table': 't'", IVM_INVALID_PLAN, "JSON");
    refuses(T " x", IVM_INVALID_PLAN, "JSON");
    refuses("[]", IVM_INVALID_PLAN, "op");
    refuses("{'table': 't'}", IVM_INVALID_PLAN, "op");
    refuses("{'op': 5}", IVM_INVALID_PLAN, "op");
    refuses("{'op': 'sort', 'input': " T "}", IVM_INVALID_PLAN, "sort");
    refuses("{'op': 'scan'}", IVM_UNKNOWN_TABLE, "scan");
    refuses("{'op': 'scan', 'table': 't', 'as': 5}", IVM_INVALID_PLAN, "as");
    refuses("{'op': 'filter', 'where': 'p'}", IVM_INVALID_PLAN, "input");
    refuses("{'op': 'filter', 'input': " T "}", IVM_INVALID_PLAN, "where");
    refuses("{'op': 'project', 'input': " T "}", IVM_INVALID_PLAN, "columns");
    refuses("{'op': 'project', 'input': " T ", 'columns': 'a'}", IVM_INVALID_PLAN, "columns");
    refuses("{'op': 'project', 'input': " T ", 'columns': ['a', {'as': 'b'}]}", IVM_INVALID_PLAN, "expr");
    refuses("{'op': 'project', 'input': " T ", 'columns': ['a', {'expr': 'b'}]}", IVM_INVALID_PLAN, "as");
    refuses("{'op': 'project', 'input': " T ", 'columns': ['a', 5]}", IVM_INVALID_PLAN, "project");
    refuses("{'op': 'join', 'on': []}", IVM_INVALID_PLAN, "inputs");
    refuses("{'op': 'join', 'inputs': []}", IVM_INVALID_PLAN, "0 inputs");
    refuses("{'op': 'join', 'inputs': [" T "]}", IVM_INVALID_PLAN, "1 inputs");
    refuses("{'op': 'join', 'inputs': [" T ", {'op': 'sort'}]}", IVM_INVALID_PLAN, "sort");
    refuses("{'op': 'join', 'inputs': [" T ", " U "], 'on': [['a']]}", IVM_INVALID_PLAN, "pair");
    refuses("{'op': 'join', 'inputs': [" T ", " U "], 'on': [['a', 'b'], ['a', 'b', 'c']]}", IVM_INVALID_PLAN, "pair");
    refuses("{'op': 'join', 'inputs': [" T ", " U "], 'on': [['a', 5]]}", IVM_INVALID_PLAN, "pair");
    refuses("{'op': 'join', 'inputs': [" T ", " U "], 'on': 'a = b'}", IVM_INVALID_PLAN, "on");
    refuses("{'op': 'join', 'kind': 'outer', 'inputs': [" T ", " U "]}", IVM_INVALID_PLAN, "outer");
    refuses("{'op': 'join', 'kind': 'left', 'inputs': [" T ", " U ", " T "]}", IVM_INVALID_PLAN, "left of 3");
    refuses("{'op': 'aggregate', 'input': " T ", 'group_by': 'a'}", IVM_INVALID_PLAN, "group_by");
    refuses("{'op': 'aggregate', 'input': " T ", 'aggregates': [{'as': 'n'}]}", IVM_INVALID_PLAN, "fn");
    refuses("{'op': 'aggregate', 'input': " T ", 'aggregates': [{'fn': 'count'}]}", IVM_INVALID_PLAN, "as");
    refuses("{'op': 'aggregate', 'input': " T ", 'aggregates': [{'as': 'n', 'fn': 'count', 'arg': []}]}", IVM_INVALID_PLAN, "function");
    refuses("{'op': 'aggregate', 'input': " T ", 'aggregates': [{'as': 'n', 'fn': 'count', 'where': []}]}", IVM_INVALID_PLAN, "function");
    refuses("{'op': 'aggregate', 'input': " T ", 'having': []}", IVM_INVALID_PLAN, "function");
}

Test(plan_json, joins_sets_and_top_k_that_are_none)
{
    static const char *const kinds[] = { "left", "right", "full", "semi", "anti" };
    static const char *const sets[] = { "union_all", "union", "except_all", "except", "intersect_all", "intersect" };
    char json[256], part[32];
    for (int i = 0; i < 5; i++) {
        snprintf(json, sizeof json, "{'op': 'join', 'kind': '%s', 'inputs': [" T "]}", kinds[i]);
        snprintf(part, sizeof part, "%s of 1", kinds[i]);
        refuses(json, IVM_INVALID_PLAN, part);
    }
    for (int i = 0; i < 6; i++) {
        snprintf(json, sizeof json, "{'op': '%s', 'inputs': [" T "]}", sets[i]);
        refuses(json, IVM_INVALID_PLAN, "two inputs");
        snprintf(json, sizeof json, "{'op': '%s', 'input': " T "}", sets[i]);
        refuses(json, IVM_INVALID_PLAN, "inputs");
    }
    refuses("{'op': 'distinct'}", IVM_INVALID_PLAN, "input");
    refuses("{'op': 'top_k', 'order_by': ['a'], 'limit': 1}", IVM_INVALID_PLAN, "input");
    refuses("{'op': 'top_k', 'input': " T ", 'order_by': ['a'], 'limit': -1}", IVM_INVALID_PLAN, "count");
    refuses("{'op': 'top_k', 'input': " T ", 'order_by': ['a'], 'limit': 1.0}", IVM_INVALID_PLAN, "count");
    refuses("{'op': 'top_k', 'input': " T ", 'order_by': ['a'], 'limit': 1, 'offset': true}", IVM_INVALID_PLAN, "count");
    refuses("{'op': 'top_k', 'input': " T ", 'order_by': ['a'], 'limit': 1, 'offset': null}", IVM_INVALID_PLAN, "count");
    refuses("{'op': 'top_k', 'input': " T ", 'order_by': ['a']}", IVM_INVALID_PLAN, "limit");
    refuses("{'op': 'top_k', 'input': " T ", 'limit': 1}", IVM_INVALID_PLAN, "order_by");
    refuses("{'op': 'top_k', 'input': " T ", 'limit': 1, 'order_by': 'a'}", IVM_INVALID_PLAN, "order_by");
    refuses("{'op': 'top_k', 'input': " T ", 'limit': 1, 'order_by': [], 'partition_by': 'a'}", IVM_INVALID_PLAN, "partition_by");
    refuses("{'op': 'top_k', 'input': " T ", 'limit': 1, 'order_by': [], 'partition_by': [[]]}", IVM_INVALID_PLAN, "function");
    refuses("{'op': 'top_k', 'input': " T ", 'limit': 1, 'order_by': ['a', []]}", IVM_INVALID_PLAN, "function");
    refuses("{'op': 'top_k', 'input': " T ", 'limit': 1, 'order_by': [{'expr': 'a', 'nulls': 'middle'}]}", IVM_INVALID_PLAN, "nulls");
    refuses("{'op': 'top_k', 'input': " T ", 'limit': 1, 'order_by': [{'expr': 'a', 'nulls': 5}]}", IVM_INVALID_PLAN, "nulls");
}

Test(plan_json, arguments_are_checked)
{
    ivm_plan *plan = NULL;
    ivm_error error = IVM_ERROR_INIT;
    cr_expect_eq(ivm_plan_from_json(NULL, 0, &plan, &error), IVM_INVALID_ARGUMENT);
    cr_expect_eq(ivm_plan_from_json("{}", 2, NULL, NULL), IVM_INVALID_ARGUMENT);
}

Test(plan_json, an_earlier_cause_is_neither_told_nor_lost)
{
    cr_expect_null(ivm_column(NULL));
    refuses("{'op': 'sort'}", IVM_INVALID_PLAN, "sort");
    ivm_plan_free(reads("{'op': 'aggregate', 'input': " T ", 'aggregates': [{'as': 'n', 'fn': 'count'}]}"));
    ivm_error error = IVM_ERROR_INIT;
    ivm__builder_cause_take(&error);
    cr_expect_eq(error.status, IVM_INVALID_ARGUMENT);
    cr_expect_not_null(strstr(error.message, "ivm_column"));
}

static char *nested(const char *open, const char *middle, const char *close, size_t depth)
{
    char *text = calloc(1, (strlen(open) + strlen(close)) * depth + strlen(middle) + 64), *at = text;
    for (size_t i = 0; i < depth; i++) {
        at = stpcpy(at, open);
    }
    at = stpcpy(at, middle);
    for (size_t i = 0; i < depth; i++) {
        at = stpcpy(at, close);
    }
    return text;
}

Test(plan_json, what_is_nested_too_deep_is_refused)
{
    char *deep = nested("{'op': 'distinct', 'input': ", T, "}", 1500);
    refuses(deep, IVM_INVALID_PLAN, "deep");
    free(deep);
    deep = nested("{'op': 'filter', 'where': true, 'input': ", T, "}", 1500);
    refuses(deep, IVM_INVALID_PLAN, "deep");
    free(deep);
    deep = nested("{'op': 'filter', 'where': true, 'input': ", T, "}", 100000);
    refuses(deep, IVM_INVALID_PLAN, "depth");
    free(deep);
}

static void refuses_expression(const char *open, const char *inside, const char *close, size_t depth)
{
    char *middle = nested(open, inside, close, depth), *plan;
    cr_assert_gt(asprintf(&plan, COMPUTE("%s"), middle), 0);
    refuses(plan, IVM_INVALID_PLAN, " de"); /* deep, or the depth of the parser */
    free(plan);
    free(middle);
}

Test(plan_json, expressions_nested_too_deep_are_refused)
{
    refuses_expression("['-', ", "1", "]", 1500);
    refuses_expression("['cast', ", "'a'", ", 'float64']", 1500);
    refuses_expression("['-', ", "1", "]", 100000);
    refuses_expression("[", "", "]", 1000000);
}

Test(plan_json, enormous_numbers_are_refused_or_right)
{
    static const char *const numbers[] = { "9223372036854775808", "-9223372036854775809", "1e309", "-1e309", "1e99999999999" };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char text[256];
        snprintf(text, sizeof text, COMPUTE("%s"), numbers[i]);
        refuses(text, IVM_INVALID_PLAN, "");
        snprintf(text, sizeof text, "{'op': 'top_k', 'input': " T ", 'order_by': ['a'], 'limit': %s}", numbers[i]);
        refuses(text, IVM_INVALID_PLAN, "");
    }
    char *digits = nested("9", "", "", 100000);
    char *text;
    cr_assert_gt(asprintf(&text, COMPUTE("%s"), digits), 0);
    refuses(text, IVM_INVALID_PLAN, "");
    free(text);
    cr_assert_gt(asprintf(&text, COMPUTE("{'lit': '%s', 'type': 'decimal(38,0)'}"), digits), 0);
    refuses(text, IVM_TYPE_MISMATCH, "decimal");
    free(text);
    free(digits);
}

Test(plan_json, what_is_no_utf8_is_refused)
{
    static const char *const wrong[] = { "\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\\ud800" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[256];
        snprintf(text, sizeof text, "{'op': 'scan', 'table': 't%s'}", wrong[i]);
        refuses(text, IVM_INVALID_PLAN, "");
        snprintf(text, sizeof text, COMPUTE("{'lit': '%s'}"), wrong[i]);
        refuses(text, IVM_INVALID_PLAN, "");
    }
}

/* ---- Memory -------------------------------------------------------------------------------------------------------------------------- */

#define EVERYTHING                                                                                                                         \
    "{'op': 'aggregate', 'group_by': ['a', {'as': 'g', 'expr': ['lower', 's']}], 'having': ['>', 'n', 1], 'aggregates': ["                 \
    "{'as': 'n', 'fn': 'count'}, {'as': 's', 'fn': 'sum', 'arg': ['+', 'x', {'lit': '1.5', 'type': 'decimal(5,2)'}], 'where': 'p'}],"      \
    " 'input': {'op': 'project', 'columns': ['a', 'b', {'as': 'c', 'expr': ['cast', 'd', 'float64']}], 'input':"                           \
    " {'op': 'filter', 'where': ['in', 's', {'lit': 'a'}, {'lit': 'b'}, null], 'input':"                                                   \
    " {'op': 'join', 'where': ['<', 'e', 2.5], 'on': [['t.a', 'v.b'], ['t.c', 'v.d']], 'inputs': [" T ", " U                               \
    ", {'op': 'distinct', 'input':"                                                                                                        \
    " {'op': 'join', 'kind': 'left', 'on': [['a', 'b']], 'inputs': [{'op': 'union', 'inputs': [" T ", " U "]}, {'op': 'top_k', 'input':" T \
    ","                                                                                                                                    \
    " 'partition_by': ['p'], 'order_by': [{'expr': 'q', 'desc': true}, 'r'], 'limit': 3}]}}]}}}}"

Test(plan_json, the_nth_allocation_failing_leaves_nothing)
{
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        char *json = quoted(EVERYTHING);
        ivm_plan *plan = NULL;
        ivm_error error = IVM_ERROR_INIT;
        test_allocator_arm(&builder_allocator, n);
        ivm_status status = ivm_plan_from_json(json, strlen(json), &plan, &error);
        done = !test_allocator_disarm(&builder_allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY, "call %u: %s", (unsigned)n, error.message);
        cr_assert(done || (!plan && builder_allocator.blocks == 0), "call %u", (unsigned)n);
        ivm_plan_free(plan);
        free(json);
    }
}

static uint64_t fuse;

static void *failing_malloc(size_t size)
{
    return fuse && --fuse == 0 ? NULL : malloc(size);
}

/* Inside a string jansson takes the end of memory for a token that is none. */
Test(plan_json, the_nth_allocation_of_the_parser_failing_leaves_nothing)
{
    uint32_t told = 0;
    json_set_alloc_funcs(failing_malloc, free);
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        char *json = quoted(EVERYTHING);
        ivm_plan *plan = NULL;
        ivm_error error = IVM_ERROR_INIT;
        fuse = n;
        ivm_status status = ivm_plan_from_json(json, strlen(json), &plan, &error);
        done = fuse != 0;
        fuse = 0;
        cr_assert_eq(status == IVM_OK, done, "call %u: %s", (unsigned)n, error.message);
        cr_assert(done || !plan, "call %u", (unsigned)n);
        told += status == IVM_OUT_OF_MEMORY;
        ivm_plan_free(plan);
        free(json);
    }
    json_set_alloc_funcs(malloc, free);
    cr_expect_gt(told, 100u);
}
