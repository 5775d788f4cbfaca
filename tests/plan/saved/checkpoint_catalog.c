/* Restoring into an engine that declared a catalog of its own: one that differs in anything is refused, and what differs first is named. */
#include "checkpoint_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static void refuses(tape *saved, void (*make)(fixture *), const char *part)
{
    fixture other;
    tape before = { 0 };
    fixture_open(&other);
    make(&other);
    case_save(&other, &before);
    cr_expect_eq(case_restore(&other, saved), IVM_INVALID_ARGUMENT, "%s", part);
    cr_expect_not_null(strstr(other.error.message, part), "\"%s\" is not in \"%s\"", part, other.error.message);
    case_assert_saved_as(&other, &before, part);
    tape_free(&before);
    fixture_close(&other);
}

static void small(fixture *it)
{
    ivm_table *p = fixture_table(it, "p", "id int64; s string", "id"), *c = fixture_table(it, "c", "p int64; n int64", NULL);
    fixture_fact(it, c, "p", p, "id", IVM_RELY);
    fixture_make(it, "v", ivm_plan_filter(scan_of("c", NULL), call_of(">", "n", 1)));
}

static void small_renamed(fixture *it)
{
    fixture_table(it, "p", "id int64; t string", "id");
    fixture_table(it, "c", "p int64; n int64", NULL);
}

static void small_typed(fixture *it)
{
    fixture_table(it, "p", "id int64; s string", "id");
    fixture_table(it, "c", "p int64; n float64", NULL);
}

static void small_trusted(fixture *it)
{
    ivm_table *p = fixture_table(it, "p", "id int64; s string", "id"), *c = fixture_table(it, "c", "p int64; n int64", NULL);
    fixture_fact(it, c, "p", p, "id", IVM_TRACKED);
}

static void small_without_view(fixture *it)
{
    ivm_table *p = fixture_table(it, "p", "id int64; s string", "id"), *c = fixture_table(it, "c", "p int64; n int64", NULL);
    fixture_fact(it, c, "p", p, "id", IVM_RELY);
}

static void small_literal(fixture *it)
{
    small_without_view(it);
    fixture_make(it, "v", ivm_plan_filter(scan_of("c", NULL), call_of(">", "n", 2)));
}

static void small_more(fixture *it)
{
    small(it);
    fixture_make(it, "w", scan_of("v", NULL));
}

static void small_ordered(fixture *it)
{
    fixture_table(it, "c", "p int64; n int64", NULL);
    fixture_table(it, "p", "id int64; s string", "id");
}

/* One program, and what may be otherwise in it. */
typedef enum vary {
    NOTHING,
    APPEND_ONLY,
    NEGATIVE,
    TRANSIENT,
    KEY,
    KEY_ORDER,
    NO_KEY,
    NOT_NULL,
    TYPE,
    SCALE,
    COLUMN_NAME,
    COLUMN_ORDER,
    COLUMN_MORE,
    TABLE_NAME,
    TABLE_ORDER,
    TABLE_MORE,
    FACT_ORDER,
    FACT_TRUST,
    FACT_COLUMN,
    FACT_LESS,
    VIEW_ORDER,
    VIEW_NAME,
    VIEW_REFRESH,
    VIEW_LESS,
    PLAN_LITERAL,
    PLAN_LITERAL_TYPE,
    PLAN_ALIAS,
    PLAN_COLUMN,
    PLAN_FUNCTION
} vary;

static void program_tables(fixture *it, vary otherwise)
{
    ivm_table_options c = { .append_only = otherwise == APPEND_ONLY, .allow_negative = otherwise == NEGATIVE };
    ivm_table_options t = { .transient = otherwise == TRANSIENT };
    const char *key = otherwise == KEY ? "n" : otherwise == KEY_ORDER ? "n, id" : otherwise == NO_KEY ? NULL : "id, n";
    const char *columns = otherwise == NOT_NULL       ? "a int64 not null; b int64; m decimal(8,2)"
                          : otherwise == TYPE         ? "a int64; b int64; m float64"
                          : otherwise == SCALE        ? "a int64; b int64; m decimal(8,3)"
                          : otherwise == COLUMN_NAME  ? "a int64; b int64; k decimal(8,2)"
                          : otherwise == COLUMN_ORDER ? "b int64; a int64; m decimal(8,2)"
                          : otherwise == COLUMN_MORE  ? "a int64; b int64; m decimal(8,2); z bool"
                                                      : "a int64; b int64; m decimal(8,2)";
    fixture_table(it, "p", "id int64; s string", "id");
    if (otherwise == TABLE_ORDER) {
        fixture_table_like(it, "t", "x date", &t);
    }
    fixture_table_like(it, "c", columns, &c);
    fixture_table(it, "k", "id int64; n int64", key);
    if (otherwise != TABLE_ORDER) {
        fixture_table_like(it, otherwise == TABLE_NAME ? "u" : "t", "x date", &t);
    }
    if (otherwise == TABLE_MORE) {
        fixture_table(it, "more", "x date", NULL);
    }
}

static void program_facts(fixture *it, vary otherwise)
{
    ivm_table *p = fixture_table_find(it, "p"), *c = fixture_table_find(it, "c");
    fixture_fact(it, c, otherwise == FACT_ORDER ? "b" : "a", p, "id", IVM_RELY);
    if (otherwise != FACT_LESS) {
        bool a = otherwise == FACT_ORDER || otherwise == FACT_COLUMN;
        fixture_fact(it, c, a ? "a" : "b", p, "id", otherwise == FACT_TRUST ? IVM_ENFORCED : IVM_RELY);
    }
}

static void program_views(fixture *it, vary otherwise)
{
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = otherwise == VIEW_REFRESH ? IVM_DEFERRED : IVM_IMMEDIATE };
    ivm_value literal = otherwise == PLAN_LITERAL ? ivm_int64(2) : otherwise == PLAN_LITERAL_TYPE ? ivm_float64(1) : ivm_int64(1);
    const char *alias = otherwise == PLAN_ALIAS ? "d" : NULL, *column = otherwise == PLAN_COLUMN ? "b" : "a";
    ivm_plan *v =
        ivm_plan_filter(scan_of("c", alias), ivm_call2(otherwise == PLAN_FUNCTION ? ">=" : ">", ivm_column(column), ivm_literal(literal)));
    ivm_plan *w = ivm_plan_distinct(scan_of("p", NULL));
    if (otherwise == VIEW_ORDER) {
        fixture_make(it, "w", w);
    }
    fixture_make_with(it, otherwise == VIEW_NAME ? "x" : "v", v, &options);
    if (otherwise == VIEW_LESS) {
        ivm_plan_free(w);
    } else if (otherwise != VIEW_ORDER) {
        fixture_make(it, "w", w);
    }
}

static vary varied;

static void program(fixture *it)
{
    program_tables(it, varied);
    program_facts(it, varied);
    program_views(it, varied);
}

Test(plan_checkpoint_catalog, each_difference_of_a_catalog_is_refused_by_name)
{
    static const char *const parts[] = {
        [APPEND_ONLY] = "table c ",
        [NEGATIVE] = "table c ",
        [TRANSIENT] = "table t ",
        [KEY] = "table k ",
        [KEY_ORDER] = "table k ",
        [NO_KEY] = "table k ",
        [NOT_NULL] = "table c ",
        [TYPE] = "table c ",
        [SCALE] = "table c ",
        [COLUMN_NAME] = "table c ",
        [COLUMN_ORDER] = "table c ",
        [COLUMN_MORE] = "table c ",
        [TABLE_NAME] = "table u ",
        [TABLE_ORDER] = "table t ",
        [TABLE_MORE] = "table more ",
        [FACT_ORDER] = "key of c",
        [FACT_TRUST] = "key of c",
        [FACT_COLUMN] = "key of c",
        [FACT_LESS] = "foreign keys",
        [VIEW_ORDER] = "view w ",
        [VIEW_NAME] = "view x ",
        [VIEW_REFRESH] = "view v ",
        [VIEW_LESS] = "1 more views",
        [PLAN_LITERAL] = "view v ",
        [PLAN_LITERAL_TYPE] = "view v ",
        [PLAN_ALIAS] = "view v ",
        [PLAN_COLUMN] = "view v ",
        [PLAN_FUNCTION] = "view v ",
    };
    fixture it, same;
    tape saved = { 0 };
    uint64_t fingerprint = 0, another = 0;
    fixture_open(&it);
    varied = NOTHING;
    program(&it);
    case_push(&it, "p", IVM_INSERT, "1,a");
    case_push(&it, "c", IVM_INSERT, "1,1,0.5");
    case_save(&it, &saved);
    cr_assert_eq(ivm_engine_fingerprint(it.engine, &fingerprint, &it.error), IVM_OK);
    fixture_open(&same);
    program(&same);
    cr_assert_eq(case_restore(&same, &saved), IVM_OK, "%s", same.error.message);
    fixture_close(&same);
    for (varied = APPEND_ONLY; varied <= PLAN_FUNCTION; varied++) {
        refuses(&saved, program, parts[varied]);
        fixture_open(&same);
        program(&same);
        cr_assert_eq(ivm_engine_fingerprint(same.engine, &another, &same.error), IVM_OK);
        cr_expect_neq(another, fingerprint, "%d", (int)varied);
        fixture_close(&same);
    }
    tape_free(&saved);
    fixture_close(&it);
}

Test(plan_checkpoint_catalog, another_catalog_is_refused_and_what_differs_named)
{
    fixture it;
    tape saved = { 0 };
    fixture_open(&it);
    small(&it);
    case_save(&it, &saved);
    refuses(&saved, small_renamed, "table p ");
    refuses(&saved, small_ordered, "table c ");
    refuses(&saved, small_typed, "table c ");
    refuses(&saved, small_trusted, "foreign key of c");
    refuses(&saved, small_without_view, "1 more views");
    refuses(&saved, small_literal, "view v ");
    refuses(&saved, small_more, "view w ");
    tape_free(&saved);
    fixture_close(&it);
}
