/* Pruning by row against its definition: in every step of random tables under random facts of every trust, what is set aside of each leaf of random
 * joins is what the rules say of the tables' rows, read one by one. */
#include "fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "engine/onlooker.h"

#define TABLES 3u
#define LEAVES_MAX 4u
#define KEYS 5
#define ARENA_BLOCK ((size_t)64 << 10) /* an arena's first */

typedef struct prune_case {
    fixture in;
    ivm_table *tables[TABLES];
    ivm__node *node; /* the join that is looked at */
    ivm__graph *graph;
    ivm__edges edges;
    uint64_t random;
    bool hungry;
    uint64_t failed, pruned, held, later; /* allocations; leaves; rows held on; leaves reached after the first round */
    uint64_t stayed, left;                /* leaves with awaited rows, with kept ones */
    ivm__arena arenas[1200];              /* used up so far in the step under way */
    uint32_t arenas_count;
} prune_case;

static prune_case it;

static uint32_t below(uint32_t bound)
{
    it.random = it.random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((it.random >> 33) % bound);
}

/* ---- The rules, row by row ------------------------------------------------------------------------------------------------------------------- */

/* Whether a row of weight under the reading has this in its column. */
static bool stands(const ivm_table *table, uint32_t column, uint64_t value, ivm__reading reading)
{
    const ivm__store *store = &table->store;
    bool found = false;
    for (ivm__row_id row = 0; row < store->rows_end; row++) {
        const uint8_t *at = ivm__store_row(store, row);
        found |= ivm__store_weight(store, row, reading) != 0 && !ivm__row_is_null(store->layout, at, column) &&
                 ivm__row_word(store->layout, at, column) == value;
    }
    return found;
}

/* Whether the changed row of the fact's parent is prunable under it. */
static bool is_prunable(const ivm_fact *fact, ivm__row_id row)
{
    const ivm__store *store = &fact->parent->store;
    uint64_t key = ivm__row_word(store->layout, ivm__store_row(store, row), 0);
    bool was = stands(fact->parent, 0, key, IVM__READ_OLD), is = stands(fact->parent, 0, key, IVM__READ_CUR);
    if (was && is) {
        return false;
    }
    bool held = fact->trust == IVM_TRACKED && stands(fact->child, fact->child_columns[0], key, is ? IVM__READ_OLD : IVM__READ_CUR);
    it.held += held;
    return !held;
}

static bool has_changed(const ivm__store *store, ivm__row_id row)
{
    return ivm__store_weight(store, row, IVM__READ_OLD) != ivm__store_weight(store, row, IVM__READ_CUR);
}

static bool offers_rows(const ivm_fact *fact)
{
    const ivm__store *store = &fact->parent->store;
    bool some = false;
    for (ivm__row_id row = 0; row < store->rows_end; row++) {
        some |= has_changed(store, row) && is_prunable(fact, row);
    }
    return some;
}

static void find_rounds(uint64_t skip, uint32_t rounds[LEAVES_MAX])
{
    for (uint32_t leaf = 0; leaf < it.graph->leaves_count; leaf++) {
        rounds[leaf] = skip >> leaf & 1 ? UINT32_MAX : 0;
    }
    for (uint32_t round = 1; round < LEAVES_MAX; round++) {
        for (uint32_t e = 0; e < it.edges.count; e++) {
            const ivm__edge *edge = &it.edges.edge[e];
            if (rounds[edge->child] < round && rounds[edge->parent] == UINT32_MAX) {
                rounds[edge->parent] = round;
            }
        }
    }
}

static bool is_set_aside(uint32_t leaf, const uint32_t rounds[LEAVES_MAX], ivm__row_id row)
{
    bool aside = false;
    for (uint32_t e = 0; e < it.edges.count; e++) {
        const ivm__edge *edge = &it.edges.edge[e];
        aside |= edge->parent == leaf && rounds[edge->child] < rounds[leaf] && is_prunable(edge->fact, row);
    }
    return aside;
}

/* Of a leaf from which nothing is set aside, and of one by the facts that may be used: whether every one that leads to it holds the row on. */
static bool is_held(uint32_t leaf, const uint32_t rounds[LEAVES_MAX], ivm__row_id row)
{
    bool some = false, all = true;
    for (uint32_t e = 0; e < it.edges.count; e++) {
        const ivm__edge *edge = &it.edges.edge[e];
        if (edge->parent == leaf && (rounds[leaf] == 0 || rounds[edge->child] < rounds[leaf])) {
            some = true;
            all &= !is_prunable(edge->fact, row);
        }
    }
    return some && all;
}

/* ---- What was decided ------------------------------------------------------------------------------------------------------------------------ */

/* Everything that the leaf was told, beside what its rows come to. */
static void check_leaf(const ivm__leaf_prune *prune, uint32_t leaf, const uint32_t rounds[LEAVES_MAX], bool led)
{
    const ivm__store *store = &it.graph->leaves[leaf].table->store;
    uint64_t fresh = 0, gone = 0, changed = 0, aside_fresh = 0, aside_gone = 0, awaited = 0, kept = 0;
    for (ivm__row_id row = 0; row < store->rows_end; row++) {
        if (!has_changed(store, row)) {
            continue;
        }
        uint64_t key = ivm__row_word(store->layout, ivm__store_row(store, row), 0);
        bool is = stands(it.graph->leaves[leaf].table, 0, key, IVM__READ_CUR),
             was = stands(it.graph->leaves[leaf].table, 0, key, IVM__READ_OLD);
        bool aside = rounds[leaf] && is_set_aside(leaf, rounds, row);
        fresh += is && !was;
        gone += was && !is;
        changed += was && is;
        aside_fresh += aside && is;
        aside_gone += aside && was;
        awaited += is && !was && is_held(leaf, rounds, row);
        kept += was && !is && is_held(leaf, rounds, row);
        cr_assert(!prune->aside || (ivm__store_row_is_aside(store, row, prune->aside) != 0) == aside, "row %u of leaf %u", row, leaf);
    }
    bool whole = aside_fresh + aside_gone == fresh + gone + changed && aside_fresh + aside_gone > 0;
    cr_assert_eq(prune->whole, whole);
    cr_assert(prune->aside || aside_gone == 0, "rows that went are set aside one by one");
    cr_assert(prune->aside || whole || aside_fresh == 0);
    cr_assert(!prune->aside || (prune->aside->fresh == (aside_fresh > 0) && prune->aside->gone == (aside_gone > 0)));
    cr_assert(led ? prune->fresh == fresh && prune->gone == gone && prune->changed == changed
                  : prune->fresh + prune->gone + prune->changed == 0);
    cr_assert(prune->awaited == awaited && prune->kept == kept, "leaf %u: %llu and %llu, not %llu and %llu", leaf,
              (unsigned long long)prune->awaited, (unsigned long long)prune->kept, (unsigned long long)awaited, (unsigned long long)kept);
    it.stayed += awaited > 0;
    it.left += kept > 0;
    it.pruned += aside_fresh + aside_gone > 0;
    it.later += aside_fresh + aside_gone > 0 && rounds[leaf] > 1;
}

static void check(const ivm__leaf_prune *prunes)
{
    uint64_t candidates = 0, led = 0;
    uint32_t rounds[LEAVES_MAX];
    for (uint32_t e = 0; e < it.edges.count; e++) {
        const ivm__edge *edge = &it.edges.edge[e];
        candidates |= (uint64_t)offers_rows(edge->fact) << edge->parent;
        led |= 1ull << edge->parent;
    }
    find_rounds(ivm__skip_mask(it.graph->leaves_count, it.edges.edge, it.edges.count, candidates), rounds);
    for (uint32_t leaf = 0; leaf < it.graph->leaves_count; leaf++) {
        check_leaf(&prunes[leaf], leaf, rounds, led >> leaf & 1);
    }
}

/* In an arena with little room, of which the next block is not to be had. */
static bool prune_starved(ivm__step *step, uint32_t room, ivm__leaf_prune *prunes)
{
    ivm__arena *arena = &it.arenas[it.arenas_count++], *real = step->arena;
    ivm__arena_init(arena, &it.in.engine->memory);
    cr_assert_not_null(ivm__arena_allocate(arena, 1)); /* of a block, and as long as all that follow, gaps of the sanitizer with it */
    for (size_t full = ARENA_BLOCK / arena->used - room - 1; full > 0; full--) {
        cr_assert_not_null(ivm__arena_allocate(arena, 1));
    }
    step->arena = arena;
    test_allocator_arm(&it.in.allocator, 1);
    ivm_status status = ivm__prune_rows(step, it.graph, &it.edges, &(ivm__prune_rounds){ 0 }, prunes);
    bool failed = test_allocator_disarm(&it.in.allocator);
    cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
    step->arena = real;
    step->splits = NULL;
    it.failed += failed;
    return failed;
}

static ivm_status look(void *context, ivm__step *step)
{
    ivm__leaf_prune prunes[LEAVES_MAX] = { { 0 } };
    (void)context;
    for (uint32_t room = 0; it.hungry && prune_starved(step, room, prunes); room++) {
        memset(prunes, 0, sizeof prunes);
    }
    if (it.hungry) {
        check(prunes);
        memset(prunes, 0, sizeof prunes);
    }
    cr_assert_eq(ivm__prune_rows(step, it.graph, &it.edges, &(ivm__prune_rounds){ 0 }, prunes), IVM_OK);
    check(prunes);
    return IVM_OK;
}

/* ---- Tables, facts and joins ----------------------------------------------------------------------------------------------------------------- */

static void open_tables(uint64_t seed)
{
    memset(&it, 0, sizeof it);
    it.random = seed;
    fixture_open(&it.in);
    for (uint32_t t = 0; t < TABLES; t++) {
        char name[8];
        snprintf(name, sizeof name, "t%u", t);
        it.tables[t] = fixture_table(&it.in, name, "k int64 not null; a int64; b int64", "k");
    }
}

/* One that is there with another trust stays. */
static ivm_status declare_any(uint32_t child, const char *column, uint32_t parent, ivm_trust trust)
{
    ivm_status status = ivm_foreign_key_declare(it.tables[child], column, it.tables[parent], "k", trust, NULL, &it.in.error);
    cr_assert(status == IVM_OK || status == IVM_ALREADY_EXISTS, "%s", it.in.error.message);
    return status;
}

static void declare(uint32_t child, const char *column, uint32_t parent, ivm_trust trust)
{
    cr_assert_eq(declare_any(child, column, parent, trust), IVM_OK, "%s", it.in.error.message);
}

/* The join of these tables as l0, l1, ..., and onlookers. */
static void join(const uint32_t *tables, uint32_t count, const char *on)
{
    ivm_plan *inputs[LEAVES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        char alias[16];
        snprintf(alias, sizeof alias, "l%u", i);
        inputs[i] = ivm_plan_scan(it.tables[tables[i]], alias);
    }
    it.node = fixture_accepts(&it.in, ivm_plan_join_many(inputs, count, on));
    cr_assert_eq(ivm__graph_make(it.in.engine, it.node, &it.graph, &it.in.error), IVM_OK);
    for (ivm_fact *fact = it.in.engine->facts; fact; fact = fact->next) {
        cr_assert_eq(ivm__edges_add(&it.edges, it.graph, fact), IVM_OK);
    }
    onlooker_make(it.in.engine, "now", IVM_IMMEDIATE, it.tables, TABLES, look, NULL);
}

static ivm_view *look_late(void)
{
    return onlooker_make(it.in.engine, "late", IVM_DEFERRED, it.tables, TABLES, look, NULL);
}

static void close_tables(void)
{
    ivm__edges_free(&it.edges, &it.in.engine->memory);
    ivm__graph_free(it.graph);
    ivm__node_free(it.node, it.in.engine);
    fixture_close(&it.in);
}

static void arenas_free(void)
{
    while (it.arenas_count > 0) {
        ivm__arena_deinit(&it.arenas[--it.arenas_count]);
    }
}

static void push(uint32_t table, ivm_change change, const char *rows)
{
    cr_assert_eq(fixture_push(&it.in, it.tables[table], change, rows), IVM_OK, "%s", it.in.error.message);
    arenas_free();
}

static void push_random(void)
{
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(it.in.engine, &batch, &it.in.error), IVM_OK);
    for (uint32_t t = 0; t < TABLES; t++) {
        for (uint32_t n = below(5); n > 0; n--) {
            ivm_value key = ivm_int64(below(KEYS));
            if (below(3) && stands(it.tables[t], 0, (uint64_t)key.as.int64, IVM__READ_CUR)) {
                ivm_batch_upsert(batch, it.tables[t], key, ivm_int64(0), ivm_null()); /* so that it is there to go */
                ivm_batch_delete_key(batch, it.tables[t], key);
            } else {
                ivm_value a = below(6) ? ivm_int64(below(KEYS)) : ivm_null(), b = below(6) ? ivm_int64(below(KEYS)) : ivm_null();
                ivm_batch_upsert(batch, it.tables[t], key, a, b);
            }
        }
    }
    cr_assert_eq(ivm_push_batch(it.in.engine, batch, NULL, &it.in.error), IVM_OK, "%s", it.in.error.message);
    arenas_free();
}

/* ---- Any tables, facts and joins --------------------------------------------------------------------------------------------------------------- */

static void random_join(void)
{
    uint32_t tables[LEAVES_MAX], count = 2 + below(LEAVES_MAX - 1);
    char on[256] = "";
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        tables[i] = below(TABLES);
    }
    for (uint32_t pairs = 1 + below(5); pairs > 0; pairs--) {
        uint32_t child = below(count), parent = below(count);
        if (child != parent) {
            size +=
                (size_t)snprintf(on + size, sizeof on - size, "%sl%u.%c = l%u.k", size ? ", " : "", child, below(2) ? 'a' : 'b', parent);
        }
    }
    join(tables, count, on);
}

Test(plan_prune, agrees_with_the_rules_for_random_facts_and_joins)
{
    uint64_t pruned = 0, held = 0, later = 0, stayed = 0, left = 0;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        open_tables(seed);
        for (uint32_t n = 1 + below(5); n > 0; n--) {
            declare_any(below(TABLES), below(2) ? "a" : "b", below(TABLES), below(3) ? IVM_TRACKED : IVM_RELY);
        }
        random_join();
        ivm_view *late = look_late();
        for (uint32_t n = 0; n < 12; n++) {
            push_random();
            if (below(4) == 0) {
                cr_assert_eq(ivm_refresh_view(late, NULL, &it.in.error), IVM_OK, "%s", it.in.error.message);
            }
        }
        pruned += it.pruned;
        held += it.held;
        later += it.later;
        stayed += it.stayed;
        left += it.left;
        close_tables();
    }
    cr_assert(pruned > 5000 && held > 5000 && later > 50, "%llu, %llu, %llu", (unsigned long long)pruned, (unsigned long long)held,
              (unsigned long long)later);
    cr_assert(stayed > 1000 && left > 1000, "%llu, %llu", (unsigned long long)stayed, (unsigned long long)left);
}

/* ---- By hand ----------------------------------------------------------------------------------------------------------------------------------- */

static void pruned_so_far(uint64_t want)
{
    cr_assert_eq(it.pruned, want, "%llu", (unsigned long long)it.pruned);
}

/* One orphan waits for both parents, which refer to each other: neither rests on the other. */
Test(plan_prune, facts_within_a_round_or_back_are_not_used)
{
    open_tables(1);
    declare(0, "a", 1, IVM_TRACKED);
    declare(0, "b", 2, IVM_TRACKED);
    declare(1, "a", 2, IVM_TRACKED);
    declare(2, "a", 1, IVM_TRACKED);
    join((const uint32_t[]){ 0, 1, 2 }, 3, "l0.a = l1.k, l0.b = l2.k, l1.a = l2.k, l2.a = l1.k");
    push(0, IVM_INSERT, "1,1,1");
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(it.in.engine, &batch, &it.in.error), IVM_OK);
    ivm_batch_insert(batch, it.tables[1], ivm_int64(1), ivm_int64(1), ivm_null());
    ivm_batch_insert(batch, it.tables[2], ivm_int64(1), ivm_int64(1), ivm_null());
    cr_assert_eq(ivm_push_batch(it.in.engine, batch, NULL, &it.in.error), IVM_OK);
    pruned_so_far(0);
    push(1, IVM_INSERT, "2,1,null");
    pruned_so_far(1);
    close_tables();
}

/* Under each of two facts one row is held on; together they set both aside. */
Test(plan_prune, several_tracked_facts_set_aside_what_any_of_them_does)
{
    open_tables(1);
    declare(0, "a", 2, IVM_TRACKED);
    declare(1, "a", 2, IVM_TRACKED);
    join((const uint32_t[]){ 0, 1, 2 }, 3, "l0.a = l2.k, l1.a = l2.k");
    push(0, IVM_INSERT, "1,1,null");
    push(1, IVM_INSERT, "1,2,null");
    push(2, IVM_INSERT, "1,0,0 2,0,0 3,0,0");
    pruned_so_far(1);
    cr_assert_gt(it.held, 0u);
    push(0, IVM_INSERT, "2,4,null");
    push(1, IVM_INSERT, "2,4,null");
    push(2, IVM_INSERT, "4,0,0");
    pruned_so_far(1);
    close_tables();
}

/* A fact that is relied on sets aside all, whatever a tracked one holds on. */
Test(plan_prune, the_fact_that_says_most_counts)
{
    open_tables(1);
    declare(0, "a", 1, IVM_TRACKED);
    declare(0, "b", 1, IVM_RELY);
    join((const uint32_t[]){ 0, 1 }, 2, "l0.a = l1.k, l0.b = l1.k");
    push(0, IVM_INSERT, "1,1,null");
    push(1, IVM_INSERT, "1,0,0");
    pruned_so_far(1);
    close_tables();
}

Test(plan_prune, a_table_s_reference_to_itself_counts)
{
    open_tables(1);
    declare(0, "a", 0, IVM_RELY);
    join((const uint32_t[]){ 0, 0, 0 }, 3, "l0.a = l1.k, l1.a = l2.k");
    push(0, IVM_INSERT, "1,1,null 2,1,null");
    pruned_so_far(2);
    cr_assert_eq(it.later, 1u, "the third through the second");
    push(0, IVM_UPSERT, "2,2,null");
    pruned_so_far(2);
    close_tables();
}

Test(plan_prune, out_of_memory_anywhere)
{
    open_tables(1);
    declare(0, "a", 2, IVM_TRACKED);
    declare(1, "a", 2, IVM_TRACKED);
    join((const uint32_t[]){ 0, 1, 2 }, 3, "l0.a = l2.k, l1.a = l2.k");
    push(0, IVM_INSERT, "1,1,null");
    push(1, IVM_INSERT, "1,2,null");
    it.hungry = true;
    push(2, IVM_INSERT, "1,0,0 2,0,0 3,0,0");
    cr_assert_geq(it.failed, 8u, "%llu: a split, two facts' marks, their union", (unsigned long long)it.failed);
    close_tables();
}
