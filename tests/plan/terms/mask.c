/* Skip masks against their definition tried set by set, and counts of masks against masks counted out. */
#include "plan.h"
#include "random.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define EDGES_MAX 128u

typedef struct digraph {
    uint32_t leaves_count, edges_count;
    ivm__edge edges[EDGES_MAX];
} digraph;

static void edge(digraph *graph, uint32_t child, uint32_t parent)
{
    cr_assert_lt(graph->edges_count, EDGES_MAX);
    graph->edges[graph->edges_count++] = (ivm__edge){ .child = child, .parent = parent };
}

static uint64_t skip(const digraph *graph, uint64_t insert_only)
{
    return ivm__skip_mask(graph->leaves_count, graph->edges, graph->edges_count, insert_only);
}

/* ---- The definition ---------------------------------------------------------------------------------------------------------------- */

/* The leaves to which a way of at least one edge leads from each leaf. */
static void reach_all(const digraph *graph, uint64_t reach[IVM_JOIN_LEAVES_MAX])
{
    memset(reach, 0, IVM_JOIN_LEAVES_MAX * sizeof *reach);
    for (uint32_t round = 0; round < graph->leaves_count; round++) {
        for (uint32_t e = 0; e < graph->edges_count; e++) {
            const ivm__edge *one = &graph->edges[e];
            reach[one->child] |= reach[one->parent] | 1ull << one->parent;
        }
    }
}

/* Every member is an insert-only parent that can be reached, child to parent, from a leaf outside the set. */
static bool may_be_skipped(uint32_t leaves_count, const uint64_t *reach, uint64_t insert_only, uint64_t set)
{
    uint64_t reached = 0;
    for (uint32_t i = 0; i < leaves_count; i++) {
        reached |= set >> i & 1 ? 0 : reach[i];
    }
    return (set & ~insert_only) == 0 && (set & ~reached) == 0;
}

/* The largest such set; of several that differ in which leaf of a cycle stays outside, the one that leaves the lowest: the greatest. */
static uint64_t skip_by_definition(const digraph *graph, uint64_t insert_only)
{
    uint64_t reach[IVM_JOIN_LEAVES_MAX], best = 0;
    reach_all(graph, reach);
    for (uint64_t set = 0; set < 1ull << graph->leaves_count; set++) {
        if (may_be_skipped(graph->leaves_count, reach, insert_only, set) && __builtin_popcountll(set) >= __builtin_popcountll(best)) {
            best = set;
        }
    }
    return best;
}

static void assert_skip(const digraph *graph, uint64_t insert_only)
{
    uint64_t want = skip_by_definition(graph, insert_only), got = skip(graph, insert_only);
    if (got == want) {
        return;
    }
    fprintf(stderr, "%u leaves, insert-only %llx:", graph->leaves_count, (unsigned long long)insert_only);
    for (uint32_t e = 0; e < graph->edges_count; e++) {
        fprintf(stderr, " %u->%u", graph->edges[e].child, graph->edges[e].parent);
    }
    cr_assert_fail(" skips %llx, not %llx", (unsigned long long)got, (unsigned long long)want);
}

/* ---- Skip masks -------------------------------------------------------------------------------------------------------------------- */

/* The digraph whose edges are the bits of `number`, in an order that `backwards` turns round. */
static digraph digraph_of(uint32_t leaves_count, uint32_t number, bool backwards)
{
    digraph graph = { .leaves_count = leaves_count };
    uint32_t pairs_count = leaves_count * (leaves_count - 1);
    for (uint32_t p = 0; p < pairs_count; p++) {
        uint32_t pair = backwards ? pairs_count - 1 - p : p;
        uint32_t child = pair / (leaves_count - 1), parent = pair % (leaves_count - 1);
        if (number >> pair & 1) {
            edge(&graph, child, parent + (parent >= child));
        }
    }
    return graph;
}

Test(plan_mask, every_digraph_of_up_to_four_leaves_skips_the_largest_set)
{
    for (uint32_t leaves_count = 1; leaves_count <= 4; leaves_count++) {
        for (uint32_t number = 0; number < 1u << leaves_count * (leaves_count - 1); number++) {
            digraph forth = digraph_of(leaves_count, number, false), back = digraph_of(leaves_count, number, true);
            for (uint64_t insert_only = 0; insert_only < 1ull << leaves_count; insert_only++) {
                assert_skip(&forth, insert_only);
                assert_skip(&back, insert_only);
            }
        }
    }
}

Test(plan_mask, random_digraphs_of_five_to_nine_leaves_skip_the_largest_set)
{
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        uint64_t state = seed;
        digraph graph = { .leaves_count = 5 + (uint32_t)random_short(&state) % 5 };
        uint32_t count = (uint32_t)random_short(&state) % (2 * graph.leaves_count);
        for (uint32_t e = 0; e < count; e++) {
            uint32_t child = (uint32_t)random_short(&state) % graph.leaves_count;
            uint32_t parent = (uint32_t)random_short(&state) % (graph.leaves_count - 1);
            edge(&graph, child, parent + (parent >= child)); /* twice, now and then: two facts between two leaves */
        }
        uint64_t all = (1ull << graph.leaves_count) - 1;
        assert_skip(&graph, all);
        assert_skip(&graph, random_short(&state) & all);
    }
}

Test(plan_mask, no_fact_skips_nothing)
{
    digraph graph = { .leaves_count = 64 };
    cr_assert_eq(skip(&graph, UINT64_MAX), 0u);
}

Test(plan_mask, cycle_of_two_keys_prunes_one)
{
    digraph graph = { .leaves_count = 2 };
    edge(&graph, 0, 1);
    edge(&graph, 1, 0);
    cr_assert_eq(skip(&graph, 3), 2u, "the lowest leaf of the cycle stays");
    cr_assert_eq(skip(&graph, 1), 1u, "a leaf that is no candidate is outside already");
    cr_assert_eq(skip(&graph, 0), 0u);
}

Test(plan_mask, a_cycle_entered_from_outside_is_pruned_whole)
{
    digraph graph = { .leaves_count = 4 };
    edge(&graph, 1, 2);
    edge(&graph, 2, 3);
    edge(&graph, 3, 1);
    cr_assert_eq(skip(&graph, 0xf), 0xcu);
    edge(&graph, 0, 2);
    cr_assert_eq(skip(&graph, 0xf), 0xeu);
}

Test(plan_mask, sixty_four_leaves)
{
    digraph star = { .leaves_count = 64 }, chain = { .leaves_count = 64 }, ring = { .leaves_count = 64 }, rings = { .leaves_count = 64 };
    for (uint32_t i = 0; i < 64; i++) {
        if (i < 63) {
            edge(&star, 63, i);
            edge(&chain, i + 1, i);
        }
        edge(&ring, i, (i + 1) % 64);
        edge(&rings, i, (i & 32) | ((i + 1) & 31));
    }
    cr_assert_eq(skip(&star, UINT64_MAX), UINT64_MAX >> 1);
    cr_assert_eq(skip(&star, UINT64_MAX & ~(1ull << 40)), UINT64_MAX >> 1 & ~(1ull << 40));
    cr_assert_eq(skip(&chain, UINT64_MAX), UINT64_MAX >> 1);
    cr_assert_eq(skip(&chain, 1ull << 7 | 1ull << 9), 1ull << 7 | 1ull << 9);
    cr_assert_eq(skip(&ring, UINT64_MAX), UINT64_MAX & ~1ull);
    cr_assert_eq(skip(&ring, UINT64_MAX & ~(1ull << 63)), UINT64_MAX >> 1);
    cr_assert_eq(skip(&rings, UINT64_MAX), UINT64_MAX & ~1ull & ~(1ull << 32));
    cr_assert_eq(skip(&rings, UINT64_MAX & ~(1ull << 50)), UINT64_MAX & ~1ull & ~(1ull << 50));
}

/* ---- Counts ------------------------------------------------------------------------------------------------------------------------- */

static void assert_counts(uint32_t leaves_count, uint64_t skipped, uint64_t empty)
{
    ivm__mask_counts want = { 0 }, got = ivm__mask_count(leaves_count, skipped, empty);
    for (uint64_t mask = 1; mask < 1ull << leaves_count; mask++) {
        want.all++;
        *(mask & skipped ? &want.pruned : mask & empty ? &want.empty : &want.run) += 1;
    }
    if (memcmp(&got, &want, sizeof got) != 0) {
        cr_assert_fail("%u leaves, skip %llx, empty %llx: %llu pruned %llu empty %llu run", leaves_count, (unsigned long long)skipped,
                       (unsigned long long)empty, (unsigned long long)got.pruned, (unsigned long long)got.empty,
                       (unsigned long long)got.run);
    }
}

Test(plan_mask, counts_are_those_of_the_masks_counted_out)
{
    for (uint32_t leaves_count = 1; leaves_count <= 5; leaves_count++) {
        uint64_t all = (1ull << leaves_count) - 1;
        for (uint64_t skipped = 0; skipped < all; skipped++) {
            for (uint64_t empty = 0; empty <= all; empty++) {
                assert_counts(leaves_count, skipped, empty);
            }
        }
    }
    uint64_t state = 1;
    for (uint32_t leaves_count = 6; leaves_count <= 10; leaves_count++) {
        uint64_t all = (1ull << leaves_count) - 1;
        for (uint32_t round = 0; round < 400; round++) {
            uint64_t skipped = random_short(&state) & all;
            assert_counts(leaves_count, skipped == all ? 0 : skipped, random_short(&state) & random_short(&state) & all);
        }
    }
}

Test(plan_mask, counts_of_sixty_four_leaves_do_not_overflow)
{
    ivm__mask_counts counts = ivm__mask_count(64, 0, 0);
    cr_assert_eq(counts.all, UINT64_MAX);
    cr_assert_eq(counts.run, UINT64_MAX);
    cr_assert_eq(counts.pruned, 0u);
    cr_assert_eq(counts.empty, 0u);
    counts = ivm__mask_count(64, 0, UINT64_MAX);
    cr_assert_eq(counts.empty, UINT64_MAX);
    cr_assert_eq(counts.run, 0u);
    counts = ivm__mask_count(64, UINT64_MAX >> 1, 0);
    cr_assert_eq(counts.pruned, UINT64_MAX - 1);
    cr_assert_eq(counts.run, 1u);
    counts = ivm__mask_count(64, UINT64_MAX >> 1, 1ull << 63);
    cr_assert_eq(counts.empty, 1u);
    cr_assert_eq(counts.run, 0u);
    counts = ivm__mask_count(64, 1, 2);
    cr_assert_eq(counts.pruned, 1ull << 63);
    cr_assert_eq(counts.empty, 1ull << 62);
    cr_assert_eq(counts.run, (1ull << 62) - 1);
    cr_assert_eq(ivm__mask_count(63, 0, 0).all, UINT64_MAX >> 1);
}
