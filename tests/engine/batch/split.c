/* Splits against a model: what became of each key between two states of a table that a plain array holds, in pushes, in refreshes over any number of
 * them, and when memory runs out. */
#include "split.h"

#include <criterion/criterion.h>

#include "allocator.h"
#include "index.h"
#include "onlooker.h"
#include "random.h"

#define ARENA_BLOCK ((size_t)64 << 10) /* an arena's first */
#define KEYS 24                        /* (a, b): a of 4 values, b of 6 */
#define NONE (-1)

/* What the table holds: by key a value of three, or none. */
typedef struct state {
    int8_t of[KEYS];
} state;

typedef struct split_case {
    test_allocator allocator;
    ivm_engine *engine;
    ivm_error error;
    ivm_table *table, *other;
    ivm_view *now, *late;
    state is, was, refreshed; /* once the push under way is through, before it, at the last refresh */
    uint64_t random;
    bool hungry;                  /* splits are first made with ever less room */
    uint64_t failed;              /* such that failed */
    uint64_t seen[IVM__GONE + 1]; /* rows of each fate */
    uint64_t reused, refreshes;   /* rows under ids given before; refreshes with changes */
} split_case;

static split_case it;

static uint32_t below(uint32_t bound)
{
    return (uint32_t)random_below(&it.random, bound);
}

/* ---- A split beside two states ------------------------------------------------------------------------------------------------------------- */

static uint32_t key_of(ivm__row_id row)
{
    const ivm__store *store = &it.table->store;
    const uint8_t *at = ivm__store_row(store, row);
    return (uint32_t)(ivm__row_word(store->layout, at, 0) * 6 + ivm__row_word(store->layout, at, 2));
}

static ivm__fate fate_between(const state *before, const state *after, uint32_t key)
{
    bool was = before->of[key] != NONE, is = after->of[key] != NONE;
    return before->of[key] == after->of[key] ? IVM__UNTOUCHED : was && is ? IVM__CHANGED : is ? IVM__FRESH : IVM__GONE;
}

/* One row of the split, which the step did or did not change. */
static void check_row(const state *before, const state *after, ivm__row_id row, uint8_t fate, uint8_t moved, uint64_t counts[])
{
    const ivm__store *store = &it.table->store;
    bool changed = ivm__store_weight(store, row, IVM__READ_OLD) != ivm__store_weight(store, row, IVM__READ_CUR);
    cr_assert_eq(moved, fate >= IVM__FRESH);
    cr_assert_eq(fate, changed ? fate_between(before, after, key_of(row)) : IVM__UNTOUCHED);
    counts[fate]++;
}

static void check_split(const ivm__split *split, const state *before, const state *after)
{
    const ivm__store *store = &it.table->store;
    uint64_t counts[IVM__GONE + 1] = { 0 }, want[IVM__GONE + 1] = { 0 };
    cr_assert_eq(split->table, it.table);
    cr_assert_eq(ivm__split_touched(split), store->touched_count);
    for (uint32_t i = 0; i < store->touched_count; i++) {
        check_row(before, after, store->touched[i].row, split->touched[i], split->moved.touched[i], counts);
        it.reused += store->touched[i].before == 0;
    }
    for (uint32_t i = 0; i < ivm__split_appended(split); i++) {
        if (ivm__header_is_touch(ivm__row_header_of(ivm__store_row(store, store->step_end + i)))) { /* told of among the touched */
            cr_assert(split->appended[i] == IVM__UNTOUCHED && !split->moved.appended[i]);
        } else {
            check_row(before, after, store->step_end + i, split->appended[i], split->moved.appended[i], counts);
        }
    }
    for (uint32_t key = 0; key < KEYS; key++) {
        ivm__fate fate = fate_between(before, after, key);
        want[fate] += fate == IVM__CHANGED ? 2 : 1;
    }
    cr_assert(counts[IVM__FRESH] == want[IVM__FRESH] && split->fresh == want[IVM__FRESH]);
    cr_assert(counts[IVM__GONE] == want[IVM__GONE] && split->gone == want[IVM__GONE]);
    cr_assert(counts[IVM__CHANGED] == want[IVM__CHANGED] && split->changed == want[IVM__CHANGED]);
    cr_assert(split->moved.fresh == (split->fresh > 0) && split->moved.gone == (split->gone > 0));
    for (uint32_t fate = 0; fate <= IVM__GONE; fate++) {
        it.seen[fate] += counts[fate];
    }
}

static bool states_equal(const state *a, const state *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* Makes the split in arenas that are less and less full, so that each of its allocations is the first to need a block that is not to be had. */
static void starve(ivm__step *step, const state *before)
{
    ivm__arena *real = step->arena;
    bool made = false;
    for (uint32_t room = 0; !made; room++) {
        ivm__arena arena;
        const ivm__split *split = NULL;
        ivm__arena_init(&arena, &it.engine->memory);
        cr_assert_not_null(ivm__arena_allocate(&arena, 1)); /* of a block, and as long as all that follow, gaps of the sanitizer with it */
        for (size_t full = ARENA_BLOCK / arena.used - room - 1; full > 0; full--) {
            cr_assert_not_null(ivm__arena_allocate(&arena, 1));
        }
        step->arena = &arena;
        test_allocator_arm(&it.allocator, 1);
        ivm_status status = ivm__split_of(step, it.table, &split);
        made = !test_allocator_disarm(&it.allocator);
        cr_assert_eq(status, made ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(step->splits != NULL, made, "none that is half made");
        if (made) {
            check_split(split, before, &it.is);
        }
        it.failed += !made;
        step->splits = NULL;
        ivm__arena_deinit(&arena);
    }
    step->arena = real;
}

static ivm_status look(void *context, ivm__step *step)
{
    const state *before = step->refreshing ? &it.refreshed : &it.was;
    const ivm__split *split = NULL, *again = NULL;
    (void)context;
    if (!ivm__split_is_wanted(it.table)) {
        cr_assert(states_equal(before, &it.is), "a table that changed");
        return IVM_OK;
    }
    if (it.hungry) {
        starve(step, before);
    }
    cr_assert_eq(ivm__split_of(step, it.table, &split), IVM_OK);
    check_split(split, before, &it.is);
    cr_assert_eq(ivm__split_of(step, it.table, &again), IVM_OK);
    cr_assert_eq(again, split, "made once a step");
    it.refreshes += step->refreshing && !states_equal(before, &it.is);
    cr_assert(!ivm__split_is_wanted(it.other) || (ivm__split_of(step, it.other, &again) == IVM_OK && again->table == it.other));
    return IVM_OK;
}

/* ---- Batches ------------------------------------------------------------------------------------------------------------------------------- */

static void open_with(uint64_t seed)
{
    static const ivm_column_definition columns[] = { { "a", IVM_INT64, true }, { "v", IVM_STRING, true }, { "b", IVM_INT64, true } };
    memset(&it, 0, sizeof it);
    memset(&it.is, NONE, sizeof it.is);
    it.was = it.refreshed = it.is;
    it.random = seed;
    test_allocator_init(&it.allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&it.allocator);
    options.hash_seed = seed;
    cr_assert_eq(ivm_engine_open(&options, &it.engine, &it.error), IVM_OK);
    ivm_table_options table = { .columns = columns, .columns_count = 3, .key = seed % 2 ? "b, a" : "a, b" };
    cr_assert_eq(ivm_table_create(it.engine, "t", &table, &it.table, &it.error), IVM_OK);
    cr_assert_eq(ivm_table_create(it.engine, "o", &table, &it.other, &it.error), IVM_OK);
    ivm_table *tables[] = { it.table, it.other };
    it.now = onlooker_make(it.engine, "now", IVM_IMMEDIATE, tables, 2, look, NULL);
    it.late = onlooker_make(it.engine, "late", IVM_DEFERRED, tables, 2, look, NULL);
}

static void close_it(void)
{
    cr_assert_eq(ivm_engine_close(it.engine, &it.error), IVM_OK, "%s", it.error.message);
    cr_assert(test_allocator_is_clean(&it.allocator));
}

/* The key's row as it is to be, or its end. */
static void put(ivm_batch *batch, state *to, uint32_t key, int8_t value)
{
    static const char *const values[] = { "one", "a longer text than a word holds", "" };
    ivm_value row[] = { ivm_int64(key / 6), ivm_string(value == NONE ? "" : values[value]), ivm_int64(key % 6) };
    bool b_first = it.table->key[0] == 2;
    ivm_value only[] = { row[b_first ? 2 : 0], row[b_first ? 0 : 2] };
    if (value != NONE) {
        (void)ivm_batch_row(batch, it.table, IVM_UPSERT, 1, row, 3);
    } else if (to->of[key] != NONE) {
        (void)ivm_batch_row(batch, it.table, IVM_DELETE_KEY, 1, only, 2);
    }
    to->of[key] = value;
}

/* Keys come, change, go, go and come back within the batch, as they were or otherwise, and are put as they are. */
static ivm_batch *batch_draw(state *to, uint32_t rows)
{
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK);
    uint32_t kind = below(4);
    for (; rows > 0; rows--) {
        uint32_t key = below(KEYS);
        int8_t value = to->of[key];
        if (kind == 0 && value != NONE) {
            continue;
        }
        switch (kind ? below(4) : 0) {
        case 0:
            put(batch, to, key, (int8_t)below(3));
            break;
        case 1:
            put(batch, to, key, NONE);
            break;
        case 2:
            put(batch, to, key, NONE);
            put(batch, to, key, below(2) && value != NONE ? value : (int8_t)below(3));
            break;
        default:
            put(batch, to, key, value);
        }
    }
    if (below(4) == 0) {
        ivm_batch_upsert(batch, it.other, ivm_int64(below(4)), ivm_string("other"), ivm_int64(below(6)));
    }
    return batch;
}

static ivm_status push(uint32_t rows)
{
    state to = it.is;
    ivm_batch *batch = batch_draw(&to, rows);
    it.was = it.is;
    it.is = to;
    ivm_status status = ivm_push_batch(it.engine, batch, NULL, &it.error);
    if (status != IVM_OK) {
        it.is = it.was;
    }
    return status;
}

static ivm_status refresh(void)
{
    ivm_status status = ivm_refresh_view(it.late, NULL, &it.error);
    if (status == IVM_OK) {
        it.refreshed = it.is;
    }
    return status;
}

/* A refresh carries the immediate view along, for which nothing has changed. */
Test(engine_split, agrees_with_a_model_in_pushes_and_refreshes)
{
    uint64_t seen[IVM__GONE + 1] = { 0 }, reused = 0, refreshes = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        open_with(seed);
        for (uint32_t n = 0; n < 80; n++) {
            cr_assert_eq(push(below(n % 10 ? 8 : 40)), IVM_OK, "seed %llu: %s", (unsigned long long)seed, it.error.message);
            if (below(4) == 0) {
                it.was = it.is;
                cr_assert_eq(refresh(), IVM_OK, "seed %llu: %s", (unsigned long long)seed, it.error.message);
            }
        }
        for (uint32_t fate = 0; fate <= IVM__GONE; fate++) {
            seen[fate] += it.seen[fate];
        }
        reused += it.reused;
        refreshes += it.refreshes;
        close_it();
    }
    cr_assert(seen[IVM__UNTOUCHED] > 20 && seen[IVM__CHANGED] > 1000 && seen[IVM__FRESH] > 1000 && seen[IVM__GONE] > 1000);
    cr_assert(reused > 1000 && refreshes > 500, "%llu, %llu", (unsigned long long)reused, (unsigned long long)refreshes);
}

/* ---- By hand ------------------------------------------------------------------------------------------------------------------------------- */

static void push_key(uint32_t key, int8_t value)
{
    ivm_batch *batch = NULL;
    state to = it.is;
    cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK);
    put(batch, &to, key, value);
    it.was = it.is;
    it.is = to;
    memset(it.seen, 0, sizeof it.seen);
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_OK, "%s", it.error.message);
}

static void refresh_seeing(uint64_t changed, uint64_t fresh, uint64_t gone)
{
    it.was = it.is;
    memset(it.seen, 0, sizeof it.seen);
    cr_assert_eq(refresh(), IVM_OK, "%s", it.error.message);
    cr_assert(it.seen[IVM__CHANGED] == changed && it.seen[IVM__FRESH] == fresh && it.seen[IVM__GONE] == gone);
}

Test(engine_split, a_refresh_goes_by_the_keys_of_its_two_states)
{
    open_with(1);
    push_key(3, 0);
    cr_assert_eq(it.seen[IVM__FRESH], 1u);
    push_key(3, 1);
    cr_assert_eq(it.seen[IVM__CHANGED], 2u);
    refresh_seeing(0, 1, 0); /* came and changed since: fresh */
    push_key(3, NONE);
    cr_assert_eq(it.seen[IVM__GONE], 1u);
    push_key(3, 2);
    cr_assert_eq(it.seen[IVM__FRESH], 1u);
    refresh_seeing(2, 0, 0); /* went and came back otherwise: changed */
    push_key(3, NONE);
    push_key(3, 2);
    refresh_seeing(0, 0, 0); /* as it was */
    push_key(4, 0);
    push_key(4, NONE);
    refresh_seeing(0, 0, 0); /* never there, for the view */
    push_key(4, 0);
    push_key(3, NONE);
    refresh_seeing(0, 1, 1);
    close_it();
}

/* ---- Memory -------------------------------------------------------------------------------------------------------------------------------- */

Test(engine_split, out_of_memory_anywhere_makes_none)
{
    open_with(2);
    cr_assert_eq(push(30), IVM_OK);
    it.hungry = true;
    cr_assert_eq(push(30), IVM_OK);
    cr_assert_geq(it.failed, 4u, "%llu allocations", (unsigned long long)it.failed);
    it.failed = 0;
    it.was = it.is;
    cr_assert_eq(refresh(), IVM_OK);
    cr_assert_geq(it.failed, 4u);
    close_it();
}
