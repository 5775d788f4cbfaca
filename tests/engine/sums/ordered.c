/* Tests of engine/sums/ordered.c, its tree and its nodes: random steps against a plain list of (group, cell, weight), validated after each
 * operation, for every type. */
#include "ordered.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "allocator.h"
#include "random.h"

static ivm_status add(ivm__ordered *to, uint32_t group, ivm__wide cell, ivm__weight weight)
{
    int crossed;
    return ivm__ordered_add_crossing(to, group, cell, weight, &crossed);
}

/* ---- The model ---------------------------------------------------------------------------------------------------------------------- */

#define ENTRIES_MAX 4096u

typedef struct entry {
    uint32_t group;
    ivm__wide cell;
    ivm__weight weight;
} entry;

typedef struct list {
    entry entries[ENTRIES_MAX];
    uint32_t count;
} list;

static void list_add(list *to, uint32_t group, ivm__wide cell, ivm__weight weight)
{
    uint32_t i = 0;
    while (i < to->count && (to->entries[i].group != group || to->entries[i].cell != cell)) {
        i++;
    }
    if (i == to->count) {
        cr_assert_lt(to->count, ENTRIES_MAX);
        to->entries[to->count++] = (entry){ group, cell, 0 };
    }
    to->entries[i].weight += weight;
}

static void list_sweep(list *from)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        if (from->entries[i].weight) {
            from->entries[kept++] = from->entries[i];
        }
    }
    from->count = kept;
}

/* The least (direction 1) or greatest (-1) cell of weight above 0. */
static bool list_extreme(const list *in, ivm_type type, uint32_t group, int direction, ivm__wide *cell)
{
    bool found = false;
    for (uint32_t i = 0; i < in->count; i++) {
        const entry *at = &in->entries[i];
        if (at->group == group && at->weight > 0 && (!found || direction * ivm__cell_compare(type, at->cell, *cell) < 0)) {
            *cell = at->cell;
            found = true;
        }
    }
    return found;
}

/* ---- One engine's worth ------------------------------------------------------------------------------------------------------------- */

typedef struct fixture {
    test_allocator allocator;
    ivm__memory memory;
    ivm__texts texts;
    ivm__ordered ordered;
} fixture;

static void fixture_open(fixture *with, ivm_type type)
{
    test_allocator_init(&with->allocator);
    ivm_allocator functions = test_allocator_functions(&with->allocator);
    ivm__memory_init(&with->memory, &functions);
    ivm__texts_init(&with->texts, &with->memory, 1);
    ivm__ordered_init(&with->ordered, &with->memory, &with->texts, type);
}

static void fixture_close(fixture *with)
{
    ivm__ordered_deinit(&with->ordered);
    for (uint32_t i = 0; i < with->texts.capacity; i++) {
        cr_assert(!with->texts.slots[i].text || !with->texts.slots[i].text->references, "a text is still held");
    }
    ivm__texts_deinit(&with->texts);
    cr_assert(test_allocator_is_clean(&with->allocator));
}

static ivm__wide text_cell(fixture *with, uint64_t number)
{
    char bytes[32];
    /* shorter ones are beginnings of longer ones, and one is empty */
    int size = snprintf(bytes, sizeof bytes, "%llo", (unsigned long long)number);
    const ivm__text *text;
    cr_assert_eq(ivm__texts_intern(&with->texts, bytes, (size_t)size - (number % 8 == 0), &text), IVM_OK);
    return (ivm__wide)(uintptr_t)text;
}

static ivm__wide float_cell(uint64_t bits, uint64_t number)
{
    static const double some[] = { 0, NAN, INFINITY, -INFINITY, DBL_MAX, -DBL_MAX, 5e-324, -5e-324, 1, -1 };
    return number < sizeof some / sizeof *some ? ivm__float_word(some[number]) : ivm__float_word(ivm__word_float(bits));
}

/* One of about `domain` cells. */
static ivm__wide random_cell(fixture *with, uint64_t *state, uint64_t domain)
{
    uint64_t number = random_next(state) % domain, mixed = number * 0x9e3779b97f4a7c15ull;
    switch (IVM_TYPE_KIND(with->ordered.type)) {
    case IVM_BOOL:
        return number % 2;
    case IVM_STRING:
        return text_cell(with, number);
    case IVM_FLOAT64:
        return float_cell(mixed, number);
    case IVM_DECIMAL_KIND: /* high halves that are often equal, of both signs */
        return (ivm__wide)(unsigned __int128)mixed | (ivm__wide)((int64_t)(number % 5) - 2) * ((ivm__wide)1 << 64);
    case IVM_DATE:
        return (uint64_t)(int64_t)(int32_t)mixed;
    default:
        return mixed;
    }
}

static ivm__weight random_weight(uint64_t *state)
{
    uint64_t kind = random_next(state) % 32;
    ivm__weight sign = random_next(state) % 3 ? 1 : -1;
    return kind == 0   ? sign * ((ivm__weight)1 << 90)
           : kind == 1 ? sign * ((ivm__weight)1 << 30)
           : kind == 2 ? sign * (((ivm__weight)1 << 30) - 1)
                       : sign * (ivm__weight)(random_next(state) % 3);
}

/* What a walk gives, held against the model: it starts from nothing, and the least of the cells above the one before is next. */
typedef struct walk {
    const list *model;
    ivm_type type;
    uint32_t group, count;
    ivm__wide last;
} walk;

static ivm_status walk_visit(void *context, ivm__wide cell, ivm__weight weight)
{
    walk *it = context;
    const entry *next = NULL;
    for (uint32_t i = 0; i < it->model->count; i++) {
        const entry *at = &it->model->entries[i];
        bool above = at->group == it->group && at->weight && (!it->count || ivm__cell_compare(it->type, at->cell, it->last) > 0);
        next = above && (!next || ivm__cell_compare(it->type, at->cell, next->cell) < 0) ? at : next;
    }
    cr_assert(next && next->cell == cell && next->weight == weight);
    it->last = cell;
    it->count++;
    return IVM_OK;
}

static void walks_agree(const fixture *with, const list *model, uint32_t group, uint64_t seed)
{
    walk it = { model, with->ordered.type, group };
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->count; i++) {
        count += model->entries[i].group == group && model->entries[i].weight;
    }
    cr_assert_eq(ivm__ordered_walk(&with->ordered, group, walk_visit, &it), IVM_OK);
    cr_assert_eq(it.count, count, "seed %lu, group %u", (unsigned long)seed, group);
}

static void agree(const fixture *with, const list *model, uint32_t group, uint64_t seed)
{
    for (int direction = -1; direction <= 1; direction += 2) {
        ivm__wide expected = 0, given = 0;
        bool some = list_extreme(model, with->ordered.type, group, direction, &expected);
        bool found = direction > 0 ? ivm__ordered_first(&with->ordered, group, &given) : ivm__ordered_last(&with->ordered, group, &given);
        cr_assert_eq(found, some, "seed %lu, group %u", (unsigned long)seed, group);
        cr_assert(given == expected, "seed %lu, group %u", (unsigned long)seed, group);
    }
}

static void valid(const fixture *with, uint64_t seed)
{
    const char *reason = ivm__ordered_validate(&with->ordered);
    cr_assert_null(reason, "seed %lu: %s", (unsigned long)seed, reason);
}

/* ---- Random steps ------------------------------------------------------------------------------------------------------------------- */

static const ivm_type types[] = { IVM_BOOL, IVM_INT64, IVM_FLOAT64, IVM_STRING, IVM_DATE, IVM_TIMESTAMP, IVM_DECIMAL(38, 4) };

/* The last of them is the greatest number a group can have. */
#define GROUPS 6u
#define GROUP_STRIDE (UINT32_MAX / (GROUPS - 1))

/* A step of additions, some of which take an entry's whole weight away. */
static void step_run(fixture *with, list *model, uint64_t *state, uint64_t seed)
{
    uint64_t domain = seed % 3 == 0 ? 20 : 3000;
    uint32_t groups = seed % 4 == 0 ? 1 : GROUPS, additions = (uint32_t)(random_next(state) % 120);
    uint64_t taken = random_next(state) % 100;
    for (uint32_t i = 0; i < additions; i++) {
        uint32_t group = (uint32_t)(random_next(state) % groups) * GROUP_STRIDE;
        ivm__wide cell = random_cell(with, state, domain);
        ivm__weight weight = random_weight(state);
        if (model->count && random_next(state) % 100 < taken) {
            const entry *at = &model->entries[random_next(state) % model->count];
            group = at->group;
            cell = at->cell;
            weight = -at->weight;
        }
        cr_assert_eq(add(&with->ordered, group, cell, weight), IVM_OK);
        if (weight) {
            list_add(model, group, cell, weight);
        }
        valid(with, seed);
        agree(with, model, group, seed);
    }
}

static void steps_run(ivm_type type, uint64_t seed)
{
    static list model, before;
    uint64_t state = seed * 0x9e3779b97f4a7c15ull;
    fixture with;
    fixture_open(&with, type);
    model.count = 0;
    for (uint32_t step = 0; step < 25; step++) {
        memcpy(&before, &model, sizeof model);
        step_run(&with, &model, &state, seed);
        if (random_next(&state) % 3 == 0) {
            ivm__ordered_undo(&with.ordered);
            memcpy(&model, &before, sizeof model);
        } else {
            ivm__ordered_commit(&with.ordered);
            list_sweep(&model);
        }
        valid(&with, seed);
        cr_assert_eq(with.ordered.entries_count, model.count, "seed %lu, step %u", (unsigned long)seed, step);
        for (uint32_t group = 0; group < GROUPS; group++) {
            agree(&with, &model, group * GROUP_STRIDE, seed);
            walks_agree(&with, &model, group * GROUP_STRIDE, seed);
        }
        agree(&with, &model, 5, seed);
    }
    fixture_close(&with);
}

Test(engine_ordered, random_steps_equal_a_list)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        for (uint64_t seed = 1; seed <= 8; seed++) {
            steps_run(types[i], seed);
        }
    }
}

static ivm_status third_fails(void *context, ivm__wide cell, ivm__weight weight)
{
    uint32_t *visits = context;
    cr_assert(cell == *visits && weight == 1);
    return ++*visits == 3 ? IVM_OVERFLOW : IVM_OK;
}

Test(engine_ordered, a_walk_ends_where_a_visit_fails)
{
    fixture with;
    fixture_open(&with, IVM_INT64);
    uint32_t visits = 0;
    cr_assert_eq(ivm__ordered_walk(&with.ordered, 3, third_fails, &visits), IVM_OK);
    for (uint32_t i = 0; i < 50; i++) {
        cr_assert_eq(add(&with.ordered, 3, i, 1), IVM_OK);
    }
    cr_assert_eq(ivm__ordered_walk(&with.ordered, 3, third_fails, &visits), IVM_OVERFLOW);
    cr_assert_eq(visits, 3);
    fixture_close(&with);
}

Test(engine_ordered, order_of_float_cells)
{
    static const double ascending[] = { -INFINITY, -DBL_MAX, -1, -5e-324, 0, 5e-324, 1, DBL_MAX, INFINITY, NAN };
    enum { COUNT = sizeof ascending / sizeof *ascending };
    fixture with;
    fixture_open(&with, IVM_FLOAT64);
    for (uint32_t i = 0; i < COUNT; i++) {
        cr_assert_eq(add(&with.ordered, 3, ivm__float_word(ascending[i * 7 % COUNT]), 1), IVM_OK);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        ivm__wide cell = 0;
        cr_assert(ivm__ordered_first(&with.ordered, 3, &cell));
        cr_assert(cell == ivm__float_word(ascending[i]), "place %u", i);
        cr_assert_eq(add(&with.ordered, 3, cell, -1), IVM_OK);
    }
    ivm__ordered_commit(&with.ordered);
    cr_assert_eq(with.ordered.entries_count, 0);
    fixture_close(&with);
}

/* ---- Large trees -------------------------------------------------------------------------------------------------------------------- */

#define LARGE 30000u

/* The i-th of 0..LARGE-1 in an order: ascending, descending, or scattered. */
static uint32_t place(uint32_t order, uint32_t i)
{
    return order == 0 ? i : order == 1 ? LARGE - 1 - i : (uint32_t)((uint64_t)i * 7919 % LARGE);
}

static void large_fill(fixture *with, uint32_t order)
{
    for (uint32_t i = 0; i < LARGE; i++) {
        uint32_t number = place(order, i);
        cr_assert_eq(add(&with->ordered, number / 1000, number % 1000, 1), IVM_OK);
        if (i % 1000 == 0) {
            valid(with, order);
        }
    }
    ivm__ordered_commit(&with->ordered);
    valid(with, order);
    cr_assert_eq(with->ordered.entries_count, LARGE);
}

static void large_empty(fixture *with, uint32_t order)
{
    for (uint32_t i = 0; i < LARGE; i++) {
        uint32_t number = place(order, i);
        cr_assert_eq(add(&with->ordered, number / 1000, number % 1000, -1), IVM_OK);
        if (i % 700 == 699) {
            ivm__ordered_commit(&with->ordered);
            valid(with, order);
            cr_assert_leq(with->ordered.nodes_bytes, with->ordered.entries_count * 1024 / 9 + 8192);
        }
    }
    ivm__ordered_commit(&with->ordered);
    cr_assert_null(with->ordered.root);
    cr_assert_eq(with->ordered.height, 0);
    cr_assert_eq(with->ordered.nodes_bytes, 0);
    cr_assert_eq(with->memory.bytes_held, ivm__ordered_bytes(&with->ordered));
}

Test(engine_ordered, large_trees_come_and_go_in_any_order)
{
    for (uint32_t order = 0; order < 9; order++) {
        fixture with;
        fixture_open(&with, IVM_INT64);
        large_fill(&with, order / 3);
        cr_assert_geq(with.ordered.height, 3);
        cr_assert_eq(with.memory.bytes_held, ivm__ordered_bytes(&with.ordered));
        large_empty(&with, order % 3);
        fixture_close(&with);
    }
}

Test(engine_ordered, ascending_cells_fill_nodes_three_quarters)
{
    fixture with;
    fixture_open(&with, IVM_TIMESTAMP);
    large_fill(&with, 0);
    cr_assert_leq(with.ordered.nodes_bytes, LARGE * 40);
    fixture_close(&with);
}

Test(engine_ordered, undo_of_a_large_step_leaves_what_was)
{
    fixture with;
    fixture_open(&with, IVM_INT64);
    for (uint32_t i = 0; i < 40; i++) {
        cr_assert_eq(add(&with.ordered, 9, i * 1000, 1 + i), IVM_OK);
    }
    ivm__ordered_commit(&with.ordered);
    uint64_t calls_before;
    for (uint32_t i = 0; i < 100000; i++) {
        cr_assert_eq(add(&with.ordered, 9, i % 50000, i % 7 ? 1 : -1), IVM_OK);
    }
    calls_before = with.allocator.calls;
    ivm__ordered_undo(&with.ordered);
    cr_assert_eq(with.allocator.calls, calls_before, "undo must not allocate");
    valid(&with, 0);
    cr_assert_eq(with.ordered.entries_count, 40);
    cr_assert_leq(ivm__ordered_bytes(&with.ordered), 8192, "neither nodes nor a long list of changes stay");
    for (uint32_t i = 0; i < 40; i++) {
        ivm__wide cell = 0;
        cr_assert(ivm__ordered_first(&with.ordered, 9, &cell) && cell == i * 1000);
        cr_assert_eq(add(&with.ordered, 9, cell, -(ivm__weight)(1 + i)), IVM_OK);
    }
    ivm__ordered_commit(&with.ordered);
    cr_assert_null(with.ordered.root);
    fixture_close(&with);
}

Test(engine_ordered, entries_not_above_zero_are_passed_over)
{
    fixture with;
    fixture_open(&with, IVM_INT64);
    for (uint32_t i = 0; i < 2000; i++) {
        cr_assert_eq(add(&with.ordered, 1, i, i == 777 || i == 1333 ? 2 : -1), IVM_OK);
        cr_assert_eq(add(&with.ordered, 2, i, -1), IVM_OK);
    }
    cr_assert_eq(add(&with.ordered, 1, 1333, -2), IVM_OK);
    for (uint32_t round = 0; round < 2; round++) {
        ivm__wide first = 0, last = 0;
        cr_assert(ivm__ordered_first(&with.ordered, 1, &first) && first == 777);
        cr_assert(ivm__ordered_last(&with.ordered, 1, &last) && last == 777);
        for (uint32_t group = 0; group < 4; group += 1 + (group == 0)) {
            cr_assert_not(ivm__ordered_first(&with.ordered, group, &first));
            cr_assert_not(ivm__ordered_last(&with.ordered, group, &last));
        }
        ivm__ordered_commit(&with.ordered);
    }
    fixture_close(&with);
}

/* A cell is there while its weight is above 0: what crossings add up to is 0 or 1, on the way too, and past the ends of 128 bits. */
Test(engine_ordered, crossings_are_of_zero)
{
    const ivm__weight huge = (ivm__weight)1 << 126;
    const struct {
        ivm__weight weight;
        int crossed;
    } additions[] = { { 2, 1 },   { -1, 0 }, { -1, -1 },  { -3, 0 },    { 0, 0 },     { 3, 0 },     { 1, 1 },
                      { -5, -1 }, { 9, 1 },  { huge, 0 }, { huge, -1 }, { -huge, 1 }, { -huge, 0 }, { -5, -1 } };
    fixture with;
    fixture_open(&with, IVM_INT64);
    for (uint32_t i = 0; i < sizeof additions / sizeof *additions; i++) {
        for (uint32_t group = 0; group < 2; group++) {
            int crossed = 7;
            cr_assert_eq(ivm__ordered_add_crossing(&with.ordered, group, -4, additions[i].weight, &crossed), IVM_OK);
            cr_assert_eq(crossed, additions[i].crossed, "addition %u: %d", i, crossed);
        }
    }
    ivm__ordered_commit(&with.ordered);
    cr_assert_eq(with.ordered.entries_count, 0u);
    fixture_close(&with);
}

Test(engine_ordered, commit_does_not_allocate)
{
    fixture with;
    fixture_open(&with, IVM_DECIMAL(10, 2));
    for (uint32_t round = 0; round < 3; round++) {
        for (int32_t i = 0; i < 5000; i++) {
            cr_assert_eq(add(&with.ordered, (uint32_t)i % 3, 2500 - i, round % 2 ? -1 : 1), IVM_OK);
        }
        uint64_t calls_before = with.allocator.calls;
        ivm__ordered_commit(&with.ordered);
        cr_assert_eq(with.allocator.calls, calls_before);
        valid(&with, round);
        cr_assert_eq(with.ordered.entries_count, round % 2 ? 0 : 5000);
    }
    fixture_close(&with);
}

Test(engine_ordered, texts_are_held_while_their_entries_are)
{
    fixture with;
    fixture_open(&with, IVM_STRING);
    const ivm__text *text = (const ivm__text *)(uintptr_t)text_cell(&with, 01234567);
    ivm__wide cell = (ivm__wide)(uintptr_t)text;
    for (uint32_t group = 0; group < 100; group++) {
        cr_assert_eq(add(&with.ordered, group, cell, 1), IVM_OK);
        cr_assert_eq(add(&with.ordered, group, cell, 1), IVM_OK);
    }
    cr_assert_eq(text->references, 100);
    ivm__ordered_commit(&with.ordered);
    for (uint32_t group = 0; group < 100; group++) {
        cr_assert_eq(add(&with.ordered, group, cell, group % 2 ? -2 : -1), IVM_OK);
        cr_assert_eq(add(&with.ordered, group + 1000, cell, 1), IVM_OK);
    }
    cr_assert_eq(text->references, 200, "entries of weight 0 stay until the step ends");
    ivm__ordered_undo(&with.ordered);
    cr_assert_eq(text->references, 100);
    for (uint32_t group = 1; group < 100; group += 2) {
        cr_assert_eq(add(&with.ordered, group, cell, -2), IVM_OK);
    }
    ivm__ordered_commit(&with.ordered);
    cr_assert_eq(text->references, 50);
    fixture_close(&with);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------------------- */

/* Fills until a call fails; then nothing of that addition is there, and undo goes back to the 100 entries of the step before. */
static bool fill_failing(fixture *with, uint64_t n)
{
    test_allocator_arm(&with->allocator, n);
    ivm_status status = IVM_OK;
    uint64_t entries = with->ordered.entries_count;
    for (uint32_t i = 0; i < 3000 && status == IVM_OK; i++) {
        entries = with->ordered.entries_count;
        status = add(&with->ordered, i % 5, i * 7919 % 3000, 1);
    }
    bool failed = test_allocator_disarm(&with->allocator);
    cr_assert_eq(failed, status == IVM_OUT_OF_MEMORY);
    if (failed) {
        cr_assert_eq(with->ordered.entries_count, entries, "n %lu", (unsigned long)n);
    }
    valid(with, n);
    ivm__ordered_undo(&with->ordered);
    valid(with, n);
    cr_assert_eq(with->ordered.entries_count, 100, "n %lu", (unsigned long)n);
    cr_assert_eq(with->memory.bytes_held, ivm__ordered_bytes(&with->ordered), "n %lu", (unsigned long)n);
    return failed;
}

Test(engine_ordered, running_out_of_memory_changes_nothing)
{
    uint64_t failures = 0;
    for (uint64_t n = 1, done = 0; !done; n++) {
        fixture with;
        fixture_open(&with, n % 2 ? IVM_INT64 : IVM_DECIMAL(20, 0));
        for (uint32_t i = 0; i < 100; i++) {
            cr_assert_eq(add(&with.ordered, 2, 10000 + i, 3), IVM_OK);
        }
        ivm__ordered_commit(&with.ordered);
        bool failed = fill_failing(&with, n);
        failures += failed;
        done = !failed;
        fixture_close(&with);
    }
    cr_assert_gt(failures, 100);
}

Test(engine_ordered, first_addition_out_of_memory)
{
    for (uint64_t n = 1, done = 0; !done; n++) {
        fixture with;
        fixture_open(&with, IVM_STRING);
        ivm__wide cell = text_cell(&with, 77);
        test_allocator_arm(&with.allocator, n);
        ivm_status status = add(&with.ordered, 0, cell, 1);
        done = !test_allocator_disarm(&with.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(with.ordered.entries_count, done);
        cr_assert_eq(((const ivm__text *)(uintptr_t)cell)->references, done);
        valid(&with, n);
        fixture_close(&with);
    }
}
