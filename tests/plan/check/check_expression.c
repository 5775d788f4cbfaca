/* Checking expressions: names, types and casts; and expressions from JSON to values, against what the oracle says of random ones
 * (expression_cases.py). */
#include "fixture.h"
#include "names.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct expression_column {
    const char *name, *type;
} expression_column;
/* `type`: of the result, or the code with which the expression is refused; values: of each row of the table, "!" where it overflows. */
typedef struct expression_case {
    uint32_t table;
    const char *json, *type, *values;
} expression_case;
#include "expression_cases.inc"

#define COLUMNS_COUNT (sizeof expression_columns / sizeof *expression_columns)
#define CASES_COUNT (sizeof expression_cases / sizeof *expression_cases)

static fixture it;
static ivm__named_column columns[COLUMNS_COUNT];

static void open_columns(void)
{
    fixture_open(&it);
    for (uint32_t i = 0; i < COLUMNS_COUNT; i++) {
        columns[i].name = (char *)(uintptr_t)expression_columns[i].name;
        cr_assert_eq(ivm_type_parse(expression_columns[i].type, &columns[i].type, NULL), IVM_OK);
    }
}

static void close_columns(void)
{
    fixture_close(&it);
}

TestSuite(plan_check_expression, .init = open_columns, .fini = close_columns);

/* ---- From JSON to an expression ------------------------------------------------------------------------------------------------------ */

static ivm_status read_plan(const char *json, ivm_plan **plan)
{
    char text[2048];
    int size = snprintf(
        text, sizeof text,
        "{\"op\": \"project\", \"input\": {\"op\": \"scan\", \"table\": \"r\"}, \"columns\": [{\"as\": \"v\", \"expr\": %s}]}", json);
    cr_assert_lt(size, (int)sizeof text);
    return ivm_plan_from_json(text, (size_t)size, plan, &it.error);
}

static ivm_status check_json(const char *json, ivm__expression **expression)
{
    ivm_plan *plan = NULL;
    ivm_status status = read_plan(json, &plan);
    if (status == IVM_OK) {
        ivm__names names;
        ivm__names_init(&names, &it.engine->memory, columns, COLUMNS_COUNT);
        status = ivm__expression_check(it.engine, plan->columns[0].value, &names, expression, &it.error);
        ivm__names_deinit(&names);
        ivm_plan_free(plan);
    }
    return status;
}

static void expression_free(ivm__expression *expression)
{
    ivm__expression_free(expression, &it.engine->memory, &it.engine->texts);
}

static const char *type_text(ivm_type type)
{
    static char text[IVM_TYPE_TEXT_SIZE];
    strcpy(text, "null");
    if (type) {
        ivm_type_format(type, text);
    }
    return text;
}

/* ---- Cells as the cases write them --------------------------------------------------------------------------------------------------- */

static __int128 parse_wide(const char *text)
{
    bool negative = *text == '-';
    __int128 value = 0;
    for (text += negative; *text >= '0' && *text <= '9'; text++) {
        value = value * 10 + (*text - '0');
    }
    return negative ? -value : value;
}

static void format_wide(__int128 value, char *text)
{
    char digits[48], *at = digits + sizeof digits - 1;
    unsigned __int128 rest = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
    *at = 0;
    do {
        *--at = (char)('0' + (int)(rest % 10));
        rest /= 10;
    } while (rest);
    sprintf(text, "%s%s", value < 0 ? "-" : "", at);
}

/* Sets one cell from the text up to the next bar; returns what follows it. */
static const char *set_cell(ivm__vector *vector, uint32_t row, const char *text)
{
    size_t size = strcspn(text, "|");
    char cell[128];
    cr_assert_lt(size, sizeof cell);
    memcpy(cell, text, size);
    cell[size] = 0;
    ivm__wide value = 0;
    vector->nulls[row] = strcmp(cell, "null") == 0;
    if (vector->nulls[row]) {
        value = 0;
    } else if (vector->type == IVM_STRING) {
        const ivm__text *interned;
        cr_assert_eq(ivm__texts_intern(&it.engine->texts, cell + 1, size - 1, &interned), IVM_OK);
        value = (ivm__wide)(uintptr_t)interned;
    } else {
        value = vector->type == IVM_FLOAT64 ? (ivm__wide)strtoull(cell, NULL, 16) : parse_wide(cell);
    }
    if (ivm__type_is_wide(vector->type)) {
        ((ivm__wide *)vector->cells)[row] = value;
    } else {
        ((uint64_t *)vector->cells)[row] = (uint64_t)value;
    }
    return text[size] ? text + size + 1 : text + size;
}

static void format_cell(const ivm__vector *vector, uint32_t row, char *text)
{
    if (ivm__is_null(vector, row)) {
        bool zero = ivm__type_is_wide(vector->type) ? ivm__wide_cell(vector, row) == 0 : ivm__word(vector, row) == 0;
        strcpy(text, zero ? "null" : "a null that is not zero");
    } else if (vector->type == IVM_STRING) {
        sprintf(text, "'%.100s", ivm__text_cell(vector, row)->bytes);
    } else if (vector->type == IVM_FLOAT64) {
        sprintf(text, "%016" PRIx64, ivm__word(vector, row));
    } else {
        format_wide(ivm__type_is_wide(vector->type) ? ivm__wide_cell(vector, row) : (int64_t)ivm__word(vector, row), text);
    }
}

static ivm__chunk *make_chunk(const char *const *table)
{
    ivm_type types[COLUMNS_COUNT];
    for (uint32_t c = 0; c < COLUMNS_COUNT; c++) {
        types[c] = columns[c].type;
    }
    ivm__chunk *chunk = ivm__chunk_make(&it.engine->arena, types, COLUMNS_COUNT);
    chunk->rows_count = EXPRESSION_ROWS;
    for (uint32_t c = 0; c < COLUMNS_COUNT; c++) {
        cr_assert(ivm__vector_make(&it.engine->arena, &chunk->columns[c], types[c], EXPRESSION_ROWS, true));
    }
    for (uint32_t row = 0; row < EXPRESSION_ROWS; row++) {
        const char *text = table[row];
        for (uint32_t c = 0; c < COLUMNS_COUNT; c++) {
            text = set_cell(&chunk->columns[c], row, text);
        }
    }
    return chunk;
}

/* ---- Against the oracle -------------------------------------------------------------------------------------------------------------- */

static void compare_values(const expression_case *expected, const ivm__vector *values, const uint8_t *failed)
{
    const char *text = expected->values;
    for (uint32_t row = 0; row < EXPRESSION_ROWS; row++) {
        size_t size = strcspn(text, "|");
        char got[160];
        format_cell(values, row, got);
        if (failed[row]) {
            strcpy(got, "!");
        }
        cr_expect(strlen(got) == size && memcmp(got, text, size) == 0, "%s, table %u, row %u: %s, not %.*s", expected->json,
                  expected->table, row, got, (int)size, text);
        text += size + 1;
    }
}

static void run_case(const expression_case *expected, const ivm__chunk *chunk)
{
    ivm__expression *expression = NULL;
    ivm_status status = check_json(expected->json, &expression);
    if (status != IVM_OK) {
        cr_expect_str_eq(ivm_status_name(status), expected->type, "%s: %s", expected->json, it.error.message);
        return;
    }
    cr_expect_str_eq(type_text(expression->type), expected->type, "%s", expected->json);
    if (strcmp(type_text(expression->type), expected->type) == 0) {
        ivm__step step = { 0 };
        ivm__vector values;
        uint8_t failed[EXPRESSION_ROWS] = { 0 };
        ivm__step_init(&step, it.engine, NULL, &it.error);
        bool fallible = ivm__expression_is_fallible(expression);
        cr_assert_eq(ivm__expression_compute(expression, &step, chunk, &values, fallible ? failed : NULL), IVM_OK);
        cr_expect_eq(values.type, expression->type, "%s", expected->json);
        compare_values(expected, &values, failed);
    }
    expression_free(expression);
    ivm__arena_reset(&it.engine->scratch);
}

Test(plan_check_expression, random_expressions_have_the_types_and_values_the_oracle_gives_them)
{
    uint32_t fallible = 0;
    for (uint32_t table = 0; table < sizeof expression_tables / sizeof *expression_tables; table++) {
        ivm__chunk *chunk = make_chunk(expression_tables[table]);
        for (uint32_t i = 0; i < CASES_COUNT; i++) {
            if (expression_cases[i].table == table) {
                run_case(&expression_cases[i], chunk);
                fallible += strchr(expression_cases[i].values, '!') != NULL;
            }
        }
        ivm__arena_reset(&it.engine->arena);
    }
    cr_expect_gt(fallible, (uint32_t)20, "the cases are to hold overflows");
}

/* ---- Types --------------------------------------------------------------------------------------------------------------------------- */

static void unifies(const char *a, const char *b, const char *wanted)
{
    ivm_type types[3] = { 0 }, got = 99;
    const char *const texts[3] = { a, b, wanted };
    for (int i = 0; i < 3; i++) {
        cr_assert(strcmp(texts[i], "null") == 0 || ivm_type_parse(texts[i], &types[i], NULL) == IVM_OK, "%s", texts[i]);
    }
    cr_expect_eq(ivm__type_unify(types[0], types[1], &got, NULL), IVM_OK, "%s, %s", a, b);
    cr_expect_eq(got, types[2], "%s, %s: %s, not %s", a, b, type_text(got), wanted);
}

Test(plan_check_expression, types_unify)
{
    unifies("null", "null", "null");
    unifies("null", "date", "date");
    unifies("string", "null", "string");
    unifies("int64", "int64", "int64");
    unifies("int64", "float64", "float64");
    unifies("decimal(5,2)", "float64", "float64");
    unifies("int64", "decimal(5,2)", "decimal(21,2)");
    unifies("decimal(5,2)", "decimal(4,3)", "decimal(6,3)");
    unifies("decimal(38,0)", "decimal(38,38)", "decimal(38,38)");
    unifies("decimal(5,2)", "decimal(9,2)", "decimal(9,2)");
    ivm_type type;
    ivm_error error = IVM_ERROR_INIT;
    cr_expect_eq(ivm__type_unify(IVM_STRING, IVM_DECIMAL(4, 1), &type, &error), IVM_TYPE_MISMATCH);
    cr_expect_str_eq(error.message, "string against decimal(4,1)");
    cr_expect_eq(ivm__type_unify(IVM_DATE, IVM_TIMESTAMP, &type, NULL), IVM_TYPE_MISMATCH);
    cr_expect_eq(ivm__type_unify(IVM_BOOL, IVM_INT64, &type, NULL), IVM_TYPE_MISMATCH);
}

static void refused(const char *json, ivm_status status, const char *part)
{
    int64_t blocks = it.allocator.blocks;
    ivm__expression *expression = NULL;
    cr_assert_eq(check_json(json, &expression), status, "%s: %s", json, it.error.message);
    cr_expect_not_null(strstr(it.error.message, part), "%s: \"%s\" is not in \"%s\"", json, part, it.error.message);
    cr_expect_eq(it.allocator.blocks, blocks, "%s leaves blocks", json);
}

Test(plan_check_expression, what_is_wrong_is_named)
{
    refused("[\"sqrt\", \"x\"]", IVM_INVALID_PLAN, "sqrt");
    refused("[\"sqrt\", \"nope\"]", IVM_UNKNOWN_COLUMN, "nope");
    refused("[\"=\", \"i\"]", IVM_INVALID_PLAN, "=");
    refused("[\"-\"]", IVM_INVALID_PLAN, "-");
    refused("[\"-\", \"i\", \"i\", \"i\"]", IVM_INVALID_PLAN, "3");
    refused("[\"and\"]", IVM_INVALID_PLAN, "and");
    refused("[\"in\", \"i\"]", IVM_INVALID_PLAN, "in");
    refused("[\"case\", \"p\", 1]", IVM_INVALID_PLAN, "case");
    refused("[\"case\", \"p\", 1, \"q\", 2]", IVM_INVALID_PLAN, "case");
    refused("[\"case\", \"i\", 1, 2]", IVM_TYPE_MISMATCH, "case");
    refused("[\"case\", \"p\", 1, \"s\"]", IVM_TYPE_MISMATCH, "string");
    refused("[\"+\", \"i\", \"s\"]", IVM_TYPE_MISMATCH, "string");
    refused("[\"+\", \"day\", 1]", IVM_TYPE_MISMATCH, "date");
    refused("[\"and\", \"p\", \"i\"]", IVM_TYPE_MISMATCH, "argument 2");
    refused("[\"div\", \"x\", 2]", IVM_TYPE_MISMATCH, "div");
    refused("[\"%\", 7, \"d\"]", IVM_TYPE_MISMATCH, "decimal(6,2)");
    refused("[\"length\", \"i\"]", IVM_TYPE_MISMATCH, "length");
    refused("[\"abs\", \"p\"]", IVM_TYPE_MISMATCH, "bool");
    refused("[\"<\", \"day\", \"at\"]", IVM_TYPE_MISMATCH, "date against timestamp");
    refused("[\"cast\", \"x\", \"int64\"]", IVM_TYPE_MISMATCH, "float64 to int64");
    refused("[\"cast\", \"d\", \"decimal(6,1)\"]", IVM_TYPE_MISMATCH, "decimal(6,2) to decimal(6,1)");
    refused("[\"*\", {\"lit\": \"0\", \"type\": \"decimal(20,20)\"}, {\"lit\": \"0\", \"type\": \"decimal(19,19)\"}]", IVM_TYPE_MISMATCH,
            "39");
}

static void fallible(const char *json, bool wanted)
{
    ivm__expression *expression = NULL;
    cr_assert_eq(check_json(json, &expression), IVM_OK, "%s: %s", json, it.error.message);
    cr_expect_eq(ivm__expression_is_fallible(expression), wanted, "%s", json);
    expression_free(expression);
}

Test(plan_check_expression, what_can_fail_follows_from_the_types)
{
    fallible("[\"+\", \"i\", 1]", true);
    fallible("[\"-\", \"i\"]", true);
    fallible("[\"abs\", \"i\"]", true);
    fallible("[\"%\", \"i\", \"j\"]", false);
    fallible("[\"div\", \"i\", \"j\"]", true);
    fallible("[\"div\", \"i\", 7]", false);
    fallible("[\"div\", \"i\", -1]", true);
    fallible("[\"+\", \"x\", \"i\"]", false);
    fallible("[\"*\", \"d\", \"e\"]", false);
    fallible("[\"*\", \"d\", \"big\"]", true);
    fallible("[\"*\", {\"lit\": \"1\", \"type\": \"decimal(19,0)\"}, \"i\"]", false);
    fallible("[\"*\", {\"lit\": \"1\", \"type\": \"decimal(20,0)\"}, \"i\"]", true);
    fallible("[\"+\", \"d\", \"e\"]", false);
    fallible("[\"+\", \"d\", \"big\"]", true);
    fallible("[\"-\", {\"lit\": \"1\", \"type\": \"decimal(37,1)\"}, {\"lit\": \"1\", \"type\": \"decimal(37,1)\"}]", false);
    fallible("[\"-\", {\"lit\": \"1\", \"type\": \"decimal(37,1)\"}, {\"lit\": \"1\", \"type\": \"decimal(37,0)\"}]", true);
    fallible("[\"-\", \"big\"]", false);
    fallible("[\"=\", \"big\", \"wide\"]", false);
    fallible("[\"coalesce\", \"d\", \"e\"]", false);
    fallible("[\"coalesce\", \"big\", \"wide\"]", true);
    fallible("[\"least\", \"big\", \"wide\"]", true);
    fallible("[\"cast\", \"i\", \"decimal(21,2)\"]", false);
    fallible("[\"cast\", \"i\", \"decimal(20,2)\"]", true);
    fallible("[\"cast\", \"d\", \"float64\"]", false);
    fallible("[\"and\", \"p\", [\">\", [\"+\", \"i\", 1], 0]]", true);
    fallible("[\"upper\", \"s\"]", false);
}

Test(plan_check_expression, the_nth_allocation_failing_leaves_nothing)
{
    static const char json[] = "[\"case\", [\"in\", [\"concat\", \"s\", {\"lit\": \"never seen before\"}], \"t\"], [\"+\", \"d\", 1.5],"
                               " [\"coalesce\", null, [\"cast\", \"i\", \"float64\"]]]";
    ivm_plan *plan = NULL;
    cr_assert_eq(read_plan(json, &plan), IVM_OK);
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        ivm__expression *expression = NULL;
        int64_t blocks = it.allocator.blocks;
        test_allocator_arm(&it.allocator, n);
        ivm__names names;
        ivm__names_init(&names, &it.engine->memory, columns, COLUMNS_COUNT);
        ivm_status status = ivm__expression_check(it.engine, plan->columns[0].value, &names, &expression, &it.error);
        ivm__names_deinit(&names);
        done = !test_allocator_disarm(&it.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY, "call %u", (unsigned)n);
        expression_free(expression);
        it.engine->texts.epoch++;
        ivm__texts_sweep(&it.engine->texts, it.engine->texts.epoch);
        cr_assert_leq(it.allocator.blocks, blocks + 1, "call %u", (unsigned)n); /* the texts' own table may be made */
    }
    ivm_plan_free(plan);
}
