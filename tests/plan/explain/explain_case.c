/* See explain_case.h. */
#include "explain_case.h"

#include <criterion/criterion.h>

ivm_table *day;
ivm_view *star;

const char explain_legend[] =
    "delta = a leaf's change, the first of a term drives it; old = the leaf before the step, cur = after it, both with\n"
    "the rows set aside; sign - = what other terms counted twice is taken off (Moebius)\n";

char *explain(ivm_view *view, const ivm_explain_options *stated, ivm_explain_format format)
{
    char *text = NULL;
    ivm_status status = ivm_explain(view, stated, format, &text, &shop.error);
    cr_assert_eq(status, IVM_OK, "%s", shop.error.message);
    return text;
}

static const json_t *member(const json_t *object, const char *name, json_type type)
{
    const json_t *found = json_object_get(object, name);
    cr_assert_not_null(found, "no \"%s\"", name);
    cr_assert_eq(json_typeof(found), type, "\"%s\" is of type %d", name, (int)json_typeof(found));
    return found;
}

const char *explain_text_of(const json_t *object, const char *name)
{
    return json_string_value(member(object, name, JSON_STRING));
}

static size_t number_of(const json_t *object, const char *name)
{
    return (size_t)json_integer_value(member(object, name, JSON_INTEGER));
}

static uint64_t count_of(const json_t *object, const char *name)
{
    const json_t *found = json_object_get(object, name);
    cr_assert_not_null(found, "no \"%s\"", name);
    if (json_is_string(found)) {
        uint64_t value = strtoull(json_string_value(found), NULL, 10);
        cr_assert_gt(value, (uint64_t)INT64_MAX, "a string where a number fits");
        return value;
    }
    cr_assert(json_is_integer(found));
    return (uint64_t)json_integer_value(found);
}

static uint64_t mask_of(const char *text, size_t leaves_count)
{
    uint64_t mask = 0;
    cr_assert_eq(strlen(text), leaves_count);
    for (size_t i = 0; i < leaves_count; i++) {
        cr_assert(text[i] == '0' || text[i] == '1');
        mask = mask << 1 | (text[i] == '1');
    }
    return mask;
}

/* The masks of leaves that are unchanged and of those that are skipped. */
static void check_leaves(const json_t *join, size_t leaves_count, uint64_t *empty, uint64_t *skip)
{
    const json_t *leaves = member(join, "leaves", JSON_ARRAY);
    cr_assert_eq(json_array_size(leaves), leaves_count);
    *empty = *skip = 0;
    for (size_t i = 0; i < leaves_count; i++) {
        const json_t *leaf = json_array_get(leaves, i), *skipped = json_object_get(leaf, "skipped"), *columns;
        const char *delta = explain_text_of(leaf, "delta");
        cr_assert_eq(number_of(leaf, "leaf"), i);
        cr_assert_gt(strlen(explain_text_of(leaf, "name")), 0u);
        columns = member(leaf, "columns", JSON_ARRAY);
        cr_assert_gt(json_array_size(columns), 0u);
        cr_assert(strcmp(delta, "unchanged") == 0 || strcmp(delta, "insert_only") == 0 || strcmp(delta, "mixed") == 0);
        cr_assert(strcmp(delta, "unchanged") != 0 || number_of(leaf, "delta_rows") == 0);
        cr_assert(json_is_boolean(skipped));
        cr_assert(!json_is_true(skipped) || strcmp(delta, "mixed") != 0 || number_of(leaf, "delta_rows") == 0);
        size_t fated = number_of(leaf, "fresh") + number_of(leaf, "gone") + number_of(leaf, "changed");
        cr_assert(fated == 0 || number_of(leaf, "delta_rows") <= fated, "more rows drive than the table's delta has");
        cr_assert_leq(number_of(leaf, "awaited"), number_of(leaf, "fresh"));
        cr_assert_leq(number_of(leaf, "kept"), number_of(leaf, "gone"));
        *empty |= (uint64_t)(strcmp(delta, "unchanged") == 0) << i;
        *skip |= (uint64_t)json_is_true(skipped) << i;
    }
}

static void check_pairs(const json_t *pairs)
{
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const json_t *pair = json_array_get(pairs, i);
        cr_assert_eq(json_array_size(pair), 2u);
        cr_assert(json_is_string(json_array_get(pair, 0)) && json_is_string(json_array_get(pair, 1)));
    }
}

static void check_facts(const json_t *join, size_t leaves_count)
{
    const json_t *facts = member(join, "facts", JSON_ARRAY);
    for (size_t i = 0; i < json_array_size(facts); i++) {
        const json_t *fact = json_array_get(facts, i);
        cr_assert_lt(number_of(fact, "child"), leaves_count);
        cr_assert_lt(number_of(fact, "parent"), leaves_count);
        const char *trust = explain_text_of(fact, "trust");
        cr_assert(strcmp(trust, "rely") == 0 || strcmp(trust, "enforced") == 0 || strcmp(trust, "tracked") == 0);
        cr_assert_gt(json_array_size(member(fact, "on", JSON_ARRAY)), 0u);
        check_pairs(member(fact, "on", JSON_ARRAY));
    }
}

static void check_unused(const json_t *join, size_t leaves_count)
{
    const json_t *unused = member(join, "unused", JSON_ARRAY);
    cr_assert_leq(json_array_size(unused), 64u);
    for (size_t i = 0; i < json_array_size(unused); i++) {
        const json_t *fact = json_array_get(unused, i);
        cr_assert_lt(number_of(fact, "child"), leaves_count);
        cr_assert_lt(number_of(fact, "parent"), leaves_count);
        cr_assert_neq(number_of(fact, "child"), number_of(fact, "parent"));
        size_t columns = json_array_size(member(fact, "columns", JSON_ARRAY));
        cr_assert(columns > 0 && columns == json_array_size(member(fact, "parent_columns", JSON_ARRAY)));
        cr_assert_not_null(
            ivm__table_named(shop.engine, explain_text_of(fact, "child_table"), strlen(explain_text_of(fact, "child_table"))));
        cr_assert_not_null(
            ivm__table_named(shop.engine, explain_text_of(fact, "parent_table"), strlen(explain_text_of(fact, "parent_table"))));
        cr_assert_gt(strlen(explain_text_of(fact, "trust")), 0u);
        cr_assert_gt(strlen(explain_text_of(fact, "reason")), 0u);
        cr_assert_gt(strlen(explain_text_of(fact, "why")), 0u);
    }
}

/* The listed masks are the first of those that run. */
static void check_masks(const json_t *join, size_t leaves_count, uint64_t empty, uint64_t skip)
{
    uint64_t all = leaves_count == 64 ? UINT64_MAX : (1ull << leaves_count) - 1, run = count_of(join, "run"), mask = 0;
    uint64_t free = all & ~skip & ~empty;
    cr_assert_eq(count_of(join, "all"), all);
    cr_assert_eq(count_of(join, "pruned") + count_of(join, "empty") + run, all);
    cr_assert_eq(run, free == UINT64_MAX ? UINT64_MAX : (1ull << __builtin_popcountll(free)) - 1);
    const json_t *masks = member(join, "masks", JSON_ARRAY), *states = json_object_get(join, "all_masks");
    cr_assert_eq(json_array_size(masks), run < 64 ? run : 64);
    for (size_t i = 0; i < json_array_size(masks); i++) {
        mask = (mask - free) & free;
        cr_assert_eq(mask_of(json_string_value(json_array_get(masks, i)), leaves_count), mask);
    }
    cr_assert_eq(states != NULL, leaves_count <= 6);
    cr_assert(!states || json_array_size(states) == all);
    for (uint64_t at = 1; states && at <= all; at++) {
        const json_t *one = json_array_get(states, at - 1);
        cr_assert_eq(mask_of(explain_text_of(one, "mask"), leaves_count), at);
        cr_assert_str_eq(explain_text_of(one, "state"), at & skip ? "pruned" : at & empty ? "empty" : "run");
    }
}

static void check_term(const json_t *term, size_t leaves_count, uint64_t skip)
{
    uint64_t deltas = 0, probed = 1ull << number_of(term, "driver");
    const json_t *readings = member(term, "readings", JSON_ARRAY), *probes = member(term, "probes", JSON_ARRAY);
    cr_assert_eq(json_array_size(readings), leaves_count);
    for (size_t i = 0; i < leaves_count; i++) {
        const char *reading = json_string_value(json_array_get(readings, i));
        cr_assert(strcmp(reading, "delta") == 0 || strcmp(reading, "cur") == 0 || strcmp(reading, "old") == 0);
        cr_assert(!(skip >> i & 1) || strcmp(reading, "cur") == 0);
        deltas |= (uint64_t)(strcmp(reading, "delta") == 0) << i;
    }
    cr_assert_eq(mask_of(explain_text_of(term, "mask"), leaves_count), deltas);
    cr_assert(deltas & probed, "the driver reads its delta");
    cr_assert(json_integer_value(member(term, "sign", JSON_INTEGER)) == 1 || __builtin_popcountll(deltas) % 2 == 0);
    cr_assert_eq(json_array_size(probes), leaves_count - 1);
    for (size_t i = 0; i < json_array_size(probes); i++) {
        size_t leaf = number_of(json_array_get(probes, i), "leaf");
        cr_assert(leaf < leaves_count && !(probed >> leaf & 1), "each leaf is probed once");
        probed |= 1ull << leaf;
        check_pairs(member(json_array_get(probes, i), "on", JSON_ARRAY));
    }
}

static void check_terms(const json_t *join, size_t leaves_count, uint64_t empty, uint64_t skip)
{
    const json_t *terms = member(join, "terms", JSON_ARRAY), *estimates = member(join, "estimated_probes", JSON_OBJECT);
    uint64_t all = leaves_count == 64 ? UINT64_MAX : (1ull << leaves_count) - 1, run = count_of(join, "run");
    bool mobius = strcmp(explain_text_of(join, "join_rule"), "mobius") == 0;
    cr_assert(mobius || strcmp(explain_text_of(join, "join_rule"), "telescoping") == 0);
    cr_assert(json_is_number(json_object_get(estimates, "mobius")) && json_is_number(json_object_get(estimates, "telescoping")));
    uint64_t want = mobius ? run : (uint64_t)__builtin_popcountll(all & ~skip & ~empty);
    cr_assert_eq(json_array_size(terms), want < 64 ? want : 64);
    for (size_t i = 0; i < json_array_size(terms); i++) {
        check_term(json_array_get(terms, i), leaves_count, skip);
    }
}

/* Each by leaf and columns once, read by other leaves, and the columns its leaf's; built ones have bytes. */
static void check_indexes(const json_t *join, size_t leaves_count)
{
    const json_t *indexes = member(join, "indexes", JSON_ARRAY), *leaves = member(join, "leaves", JSON_ARRAY);
    for (size_t i = 0; i < json_array_size(indexes); i++) {
        const json_t *index = json_array_get(indexes, i), *built = json_object_get(index, "built");
        const json_t *drivers = member(index, "drivers", JSON_ARRAY), *columns = member(index, "columns", JSON_ARRAY);
        size_t leaf = number_of(index, "leaf");
        cr_assert_lt(leaf, leaves_count);
        cr_assert(json_is_boolean(built));
        cr_assert_eq(number_of(index, "bytes") > 0, json_is_true(built));
        cr_assert_gt(json_array_size(drivers), 0u);
        for (size_t d = 0; d < json_array_size(drivers); d++) {
            size_t driver = (size_t)json_integer_value(json_array_get(drivers, d));
            cr_assert(driver < leaves_count && driver != leaf);
        }
        const json_t *of_leaf = member(json_array_get(leaves, leaf), "columns", JSON_ARRAY);
        for (size_t c = 0; c < json_array_size(columns); c++) {
            bool found = false;
            for (size_t l = 0; l < json_array_size(of_leaf); l++) {
                found |= json_equal(json_array_get(columns, c), json_array_get(of_leaf, l));
            }
            cr_assert(found, "%s", json_string_value(json_array_get(columns, c)));
        }
        for (size_t other = 0; other < i; other++) {
            const json_t *before = json_array_get(indexes, other);
            cr_assert(number_of(before, "leaf") != leaf || !json_equal(json_object_get(before, "columns"), columns));
        }
    }
}

json_t *explained(ivm_view *view, const ivm_explain_options *stated)
{
    char *text = explain(view, stated, IVM_EXPLAIN_JSON);
    json_error_t wrong;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &wrong);
    cr_assert_not_null(root, "%s at %d in %s", wrong.text, wrong.position, text);
    ivm_text_free(text);
    cr_assert_str_eq(explain_text_of(root, "view"), ivm_view_name(view));
    cr_assert_eq(json_is_true(json_object_get(root, "stated")), stated != NULL);
    const json_t *joins = member(root, "joins", JSON_ARRAY);
    for (size_t i = 0; i < json_array_size(joins); i++) {
        const json_t *join = json_array_get(joins, i);
        size_t leaves_count = number_of(join, "inputs");
        uint64_t empty, skip;
        check_leaves(join, leaves_count, &empty, &skip);
        check_facts(join, leaves_count);
        check_unused(join, leaves_count);
        number_of(join, "rows_probed");
        number_of(join, "rows_matched");
        cr_assert_eq(mask_of(explain_text_of(join, "skip_mask"), leaves_count), skip);
        check_indexes(join, leaves_count);
        check_masks(join, leaves_count, ivm_engine_planner(shop.engine).run_empty ? 0 : empty, skip);
        check_terms(join, leaves_count, ivm_engine_planner(shop.engine).run_empty ? 0 : empty, skip);
    }
    return root;
}

const json_t *explain_join(const json_t *root)
{
    return json_array_get(json_object_get(root, "joins"), 0);
}

void explain_member(const json_t *object, const char *name, const char *want)
{
    json_t *parsed = json_loads(want, JSON_DECODE_ANY, NULL);
    cr_assert_not_null(parsed, "%s", want);
    char *got = json_dumps(json_object_get(object, name), JSON_ENCODE_ANY);
    cr_assert(json_equal(json_object_get(object, name), parsed), "\"%s\" is %s", name, got);
    free(got);
    json_decref(parsed);
}

/* ---- A star ------------------------------------------------------------------------------------------------------------------------- */

/* sale with product and day, which its facts lead to. */
ivm_plan *star_plan(void)
{
    ivm_plan *inputs[] = { scan_of("sale", "s"), scan_of("product", "p"), scan_of("day", "d") };
    ivm_plan *join = ivm_plan_join_many(inputs, 3, "s.product = p.id, s.day = d.id");
    return ivm_plan_add(ivm_plan_aggregate(join, "p.name"), "total", "sum", ivm_column("amount"));
}

ivm_fact *declare(ivm_table *child, const char *columns, ivm_table *parent)
{
    return fixture_fact(&shop, child, columns, parent, "id", IVM_RELY);
}

void star_open(void)
{
    fixture_open(&shop);
    sale = fixture_table(&shop, "sale", "product int64; day int64; amount int64", NULL);
    product = fixture_table(&shop, "product", "id int64; name string", "id");
    day = fixture_table(&shop, "day", "id int64; week int64", "id");
    declare(sale, "product", product);
    declare(sale, "day", day);
    star = fixture_make(&shop, "star", star_plan());
}

void star_close(void)
{
    fixture_close(&shop);
}

const json_t *leaf_at(const json_t *join, size_t leaf)
{
    return json_array_get(json_object_get(join, "leaves"), leaf);
}

void set_planner(ivm_fk_pruning pruning, ivm_join_rule rule, bool run_empty)
{
    cr_assert_eq(ivm_engine_planner_set(shop.engine, &(ivm_planner_options){ pruning, rule, run_empty }, &shop.error), IVM_OK);
}
