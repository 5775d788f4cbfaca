/* Terms: which run for which shapes of a batch, the published table of a star, and that their sum is the delta.
 *
 * Sums are checked with symbols: a leaf that reads delta is D, old is O, cur is O + D, so that a term is a set of products of O and D, and
 * the sum of all terms must hold each product that has a D once. Where pruning took leaves out, products in which an old child would meet a
 * new parent are nothing and may stand or not. */
#include "fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* ---- Graphs by hand -------------------------------------------------------------------------------------------------------------------- */

/* Leaves of one column each over tables of their own, every probe a cross product. */
typedef struct cross {
    ivm__graph graph;
    ivm_table tables[IVM_JOIN_LEAVES_MAX];
    ivm__graph_leaf leaves[IVM_JOIN_LEAVES_MAX];
    ivm__probe_order orders[IVM_JOIN_LEAVES_MAX];
    ivm__probe_spec probes[IVM_JOIN_LEAVES_MAX][IVM_JOIN_LEAVES_MAX];
} cross;

static ivm__graph *cross_make(cross *made, uint32_t leaves_count)
{
    memset(made, 0, sizeof *made);
    made->graph =
        (ivm__graph){ .leaves = made->leaves, .leaves_count = leaves_count, .columns_count = leaves_count, .orders = made->orders };
    for (uint32_t i = 0; i < leaves_count; i++) {
        made->leaves[i] = (ivm__graph_leaf){ .columns_first = i, .columns_count = 1, .table = &made->tables[i] };
        made->orders[i].probes = made->probes[i];
        for (uint32_t other = 0; other < leaves_count; other++) {
            if (other != i) {
                made->probes[i][made->orders[i].probes_count++].leaf = other;
            }
        }
    }
    return &made->graph;
}

/* What is decided about: bits by leaf. */
typedef struct shapes {
    uint64_t insert_only, empty;
    uint64_t rows_seed; /* sizes of leaves and deltas */
    bool initial;
} shapes;

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

static void decide(const ivm__graph *graph, const ivm_planner_options *options, const ivm__edges *edges, const shapes *given,
                   ivm__decision *decision)
{
    ivm__leaf_delta leaves[IVM_JOIN_LEAVES_MAX];
    uint64_t state = given->rows_seed;
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        bool empty = given->empty >> i & 1;
        leaves[i] = (ivm__leaf_delta){
            .rows_count = empty ? 0 : 1 + random_next(&state) % 5,
            .rows_live = 1 + random_next(&state) % 5,
            .table_insert_only = given->insert_only >> i & 1,
        };
    }
    ivm__term_decide(graph, options, edges, leaves, given->empty, given->initial, decision);
}

/* ---- Sums with symbols -------------------------------------------------------------------------------------------------------------------- */

#define LEAVES_MAX 4u

/* How often each product stands in the sum; bit i of a product: leaf i is D. */
typedef struct polynomial {
    int of[1u << LEAVES_MAX];
} polynomial;

static bool product_in_term(const ivm__term *term, uint32_t leaves_count, uint32_t product)
{
    for (uint32_t i = 0; i < leaves_count; i++) {
        bool is_delta = product >> i & 1;
        if ((term->readings[i] == IVM__LEAF_DELTA && !is_delta) || (term->readings[i] == IVM__LEAF_OLD && is_delta)) {
            return false;
        }
    }
    return true;
}

/* What every term must be like, by itself. */
static const char *term_fault(const ivm__decision *decision, uint32_t leaves_count, const ivm__term *term)
{
    uint64_t deltas = 0;
    for (uint32_t i = 0; i < leaves_count; i++) {
        deltas |= (uint64_t)(term->readings[i] == IVM__LEAF_DELTA) << i;
        if (decision->skip >> i & 1 && term->readings[i] != IVM__LEAF_CUR) {
            return "a skipped leaf is read as cur";
        }
        if (!decision->telescoping && term->readings[i] == IVM__LEAF_OLD) {
            return "a Moebius term reads no old";
        }
    }
    if (!term->mask || deltas != term->mask) {
        return "delta is read for the leaves of the mask";
    }
    if (!(term->mask >> term->driver & 1)) {
        return "the driver is in the mask";
    }
    if (!decision->options.run_empty && (term->mask & decision->empty)) {
        return "no empty leaf is in the mask";
    }
    if (decision->telescoping) {
        return term->sign == 1 && !(term->mask & (term->mask - 1)) ? NULL : "telescoping: one leaf, plus";
    }
    return term->sign == (__builtin_popcountll(term->mask) % 2 ? 1 : -1) ? NULL : "Moebius: the sign is the mask's";
}

static uint32_t sum_terms(const ivm__decision *decision, uint32_t leaves_count, polynomial *sum, const char **fault)
{
    uint64_t next = 0, mask_last = 0;
    uint32_t count = 0;
    ivm__term term;
    *sum = (polynomial){ { 0 } };
    for (; ivm__decision_term(decision, leaves_count, &next, &term); count++) {
        const char *wrong = term_fault(decision, leaves_count, &term);
        if (!decision->telescoping && term.mask <= mask_last) {
            wrong = "Moebius: masks ascend";
        }
        *fault = wrong ? wrong : *fault;
        mask_last = term.mask;
        for (uint32_t product = 0; product < 1u << leaves_count; product++) {
            sum->of[product] += product_in_term(&term, leaves_count, product) ? term.sign : 0;
        }
    }
    return count;
}

/* Whether the product is nothing whatever the rows: an empty delta, or an old row of a child beside a new row of its parent. */
static bool product_is_nothing(const ivm__edges *edges, const shapes *given, uint32_t product)
{
    bool nothing = product & given->empty;
    for (uint32_t e = 0; e < edges->count; e++) {
        uint32_t child = edges->edge[e].child, parent = edges->edge[e].parent;
        nothing |= !(product >> child & 1) && (product >> parent & 1) && (given->insert_only >> parent & 1);
    }
    return nothing;
}

static void assert_sum(const ivm__graph *graph, const ivm_planner_options *options, const ivm__edges *edges, const shapes *given)
{
    ivm__decision decision;
    polynomial sum;
    const char *fault = NULL;
    uint32_t leaves_count = graph->leaves_count;
    decide(graph, options, edges, given, &decision);
    uint32_t count = sum_terms(&decision, leaves_count, &sum, &fault);
    uint32_t changed =
        (uint32_t)__builtin_popcountll(((1ull << leaves_count) - 1) & ~decision.skip & ~(options->run_empty ? 0 : given->empty));
    if (count != (decision.telescoping ? changed : decision.counts.run) || decision.counts.run != (1ull << changed) - 1) {
        fault = "as many terms as counted";
    }
    for (uint32_t product = 0; product < 1u << leaves_count && !fault; product++) {
        bool nothing =
            options->fk_pruning == IVM_FK_PRUNING_OFF ? (product & given->empty) != 0 : product_is_nothing(edges, given, product);
        fault = sum.of[product] == (product != 0) || nothing ? NULL : "the sum of the terms is the delta";
    }
    if (fault) {
        for (uint32_t e = 0; e < edges->count; e++) {
            fprintf(stderr, "%u->%u ", edges->edge[e].child, edges->edge[e].parent);
        }
        cr_assert_fail("%u leaves, insert-only %llx, empty %llx, rule %d, run_empty %d: %s", leaves_count,
                       (unsigned long long)given->insert_only, (unsigned long long)given->empty, (int)options->join_rule,
                       (int)options->run_empty, fault);
    }
}

/* Every rule, with and without empty terms, pruned and not. */
static void assert_sums(const ivm__graph *graph, const ivm__edges *edges, const shapes *given)
{
    for (int rule = IVM_JOIN_AUTO; rule <= IVM_JOIN_TELESCOPING; rule++) {
        for (int run_empty = 0; run_empty <= 1; run_empty++) {
            assert_sum(graph, &(ivm_planner_options){ IVM_FK_PRUNING_BATCH, (ivm_join_rule)rule, run_empty }, edges, given);
            if (edges->count == 0) {
                assert_sum(graph, &(ivm_planner_options){ IVM_FK_PRUNING_OFF, (ivm_join_rule)rule, run_empty }, edges, given);
            }
        }
    }
}

static void edges_of(uint32_t leaves_count, uint32_t number, ivm__edge edge[12], ivm__edges *edges)
{
    *edges = (ivm__edges){ .edge = edge };
    for (uint32_t pair = 0; pair < leaves_count * (leaves_count - 1); pair++) {
        uint32_t parent = pair % (leaves_count - 1), child = pair / (leaves_count - 1);
        if (number >> pair & 1) {
            edge[edges->count++] = (ivm__edge){ .child = child, .parent = parent + (parent >= child) };
        }
    }
}

static cross crossed;

Test(plan_terms, sum_to_the_delta_for_every_digraph_and_shape_of_up_to_three_leaves)
{
    for (uint32_t leaves_count = 1; leaves_count <= 3; leaves_count++) {
        const ivm__graph *graph = cross_make(&crossed, leaves_count);
        for (uint32_t number = 0; number < 1u << leaves_count * (leaves_count - 1); number++) {
            ivm__edge edge[12];
            ivm__edges edges;
            edges_of(leaves_count, number, edge, &edges);
            for (uint32_t shape = 0; shape < 1u << 2 * leaves_count; shape++) {
                uint64_t all = (1u << leaves_count) - 1;
                assert_sums(graph, &edges, &(shapes){ shape & all, shape >> leaves_count, number + shape, false });
            }
        }
    }
}

Test(plan_terms, sum_to_the_delta_for_every_digraph_of_four_leaves)
{
    const ivm__graph *graph = cross_make(&crossed, 4);
    for (uint32_t number = 0; number < 1u << 12; number++) {
        ivm__edge edge[12];
        ivm__edges edges;
        edges_of(4, number, edge, &edges);
        for (uint64_t insert_only = 0; insert_only < 16; insert_only++) {
            uint64_t state = number * 16 + insert_only, empty = random_next(&state) & random_next(&state) & 15;
            assert_sums(graph, &edges, &(shapes){ insert_only, empty, state, false });
        }
    }
}

Test(plan_terms, every_shape_of_four_leaves_sums_to_the_delta_without_facts)
{
    const ivm__graph *graph = cross_make(&crossed, 4);
    ivm__edges none = { 0 };
    for (uint32_t shape = 0; shape < 256; shape++) {
        assert_sums(graph, &none, &(shapes){ shape & 15, shape >> 4, shape, false });
    }
}

Test(plan_terms, a_view_is_filled_by_one_term_over_all_that_there_is)
{
    for (uint32_t leaves_count = 1; leaves_count <= 4; leaves_count++) {
        const ivm__graph *graph = cross_make(&crossed, leaves_count);
        ivm__edge edge[12];
        ivm__edges edges;
        edges_of(leaves_count, (1u << leaves_count * (leaves_count - 1)) - 1, edge, &edges);
        for (int rule = IVM_JOIN_AUTO; rule <= IVM_JOIN_TELESCOPING; rule++) {
            ivm__decision decision;
            polynomial sum;
            const char *fault = NULL;
            ivm_planner_options options = { IVM_FK_PRUNING_BATCH, (ivm_join_rule)rule, false };
            decide(graph, &options, &edges, &(shapes){ 15, 0, (uint64_t)rule + leaves_count, true }, &decision);
            cr_assert_eq(sum_terms(&decision, leaves_count, &sum, &fault), 1u);
            cr_assert_null(fault, "%s", fault);
            cr_assert_eq(decision.skip, 0u, "before is nothing: no fact holds over it");
            cr_assert_eq(sum.of[(1u << leaves_count) - 1], 1, "old is nothing: of all products the one of deltas is left");
        }
    }
}

/* ---- The published table --------------------------------------------------------------------------------------------------------------------- */

/* A star of n leaves, its fact table at position `at`, the dimensions around it. */
static ivm__edges star(uint32_t leaves_count, uint32_t at, ivm__edge *edge)
{
    ivm__edges edges = { .edge = edge };
    for (uint32_t i = 0; i < leaves_count; i++) {
        if (i != at) {
            edge[edges.count++] = (ivm__edge){ .child = at, .parent = i };
        }
    }
    return edges;
}

Test(plan_terms, a_star_whose_dimensions_gain_rows_runs_one_term)
{
    ivm__edge edge[8];
    for (uint32_t leaves_count = 2; leaves_count <= 8; leaves_count++) {
        const ivm__graph *graph = cross_make(&crossed, leaves_count);
        uint64_t all = (1ull << leaves_count) - 1;
        for (uint32_t at = 0; at < leaves_count; at++) {
            ivm__edges edges = star(leaves_count, at, edge);
            for (int rule = IVM_JOIN_AUTO; rule <= IVM_JOIN_TELESCOPING; rule++) {
                ivm__decision decision;
                ivm_planner_options options = { IVM_FK_PRUNING_BATCH, (ivm_join_rule)rule, false };
                shapes given = { all & ~(1ull << at), 0, at, false };
                decide(graph, &options, &edges, &given, &decision);
                uint64_t next = 0;
                ivm__term term;
                cr_assert_eq(decision.counts.all, all);
                cr_assert_eq(decision.counts.run, 1u);
                cr_assert_eq(decision.counts.pruned, all - 1);
                cr_assert_eq(decision.counts.empty, 0u);
                cr_assert(ivm__decision_term(&decision, leaves_count, &next, &term));
                cr_assert_eq(term.mask, 1ull << at);
                cr_assert_eq(term.driver, at);
                cr_assert_not(ivm__decision_term(&decision, leaves_count, &next, &term));
                options.fk_pruning = IVM_FK_PRUNING_OFF;
                decide(graph, &options, &edges, &given, &decision);
                cr_assert_eq(decision.counts.run, all);
                cr_assert_eq(decision.counts.pruned, 0u);
            }
        }
    }
}

Test(plan_terms, a_dimension_with_a_negative_row_is_not_skipped)
{
    ivm__edge edge[8];
    ivm_planner_options options = { IVM_FK_PRUNING_BATCH, IVM_JOIN_MOBIUS, false };
    for (uint32_t leaves_count = 2; leaves_count <= 8; leaves_count++) {
        const ivm__graph *graph = cross_make(&crossed, leaves_count);
        ivm__edges edges = star(leaves_count, 0, edge);
        uint64_t all = (1ull << leaves_count) - 1;
        for (uint64_t negative = 0; negative <= all; negative++) {
            ivm__decision decision;
            decide(graph, &options, &edges, &(shapes){ all & ~negative, 0, negative, false }, &decision);
            cr_assert_eq(decision.skip, all & ~negative & ~1ull);
            cr_assert_eq(decision.counts.run, (2ull << __builtin_popcountll(negative & ~1ull)) - 1);
        }
    }
}

/* ---- Choosing the rule ------------------------------------------------------------------------------------------------------------------------ */

Test(plan_terms, auto_takes_the_form_with_fewer_estimated_probes)
{
    const ivm_planner_options options = { IVM_FK_PRUNING_OFF, IVM_JOIN_AUTO, false };
    ivm__edges none = { 0 };
    uint32_t telescoping = 0;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        const ivm__graph *graph = cross_make(&crossed, 1 + seed % 6);
        ivm__decision decision;
        decide(graph, &options, &none, &(shapes){ 0, seed % 7, seed, false }, &decision);
        cr_assert_eq(decision.telescoping, decision.estimate_telescoping < decision.estimate_mobius);
        cr_assert_leq(decision.estimate_telescoping, decision.estimate_mobius);
        telescoping += decision.telescoping;
    }
    cr_assert_gt(telescoping, 100u);
    cr_assert_lt(telescoping, 500u, "one changed leaf is one term either way");
}

/* Probes of a term are those of its driver; Moebius gives each mask to its cheapest member. */
Test(plan_terms, estimates_are_the_sums_over_the_terms)
{
    ivm__edges none = { 0 };
    for (uint64_t seed = 1; seed <= 200; seed++) {
        const ivm__graph *graph = cross_make(&crossed, 1 + seed % 5);
        for (int rule = IVM_JOIN_MOBIUS; rule <= IVM_JOIN_TELESCOPING; rule++) {
            const ivm_planner_options options = { IVM_FK_PRUNING_OFF, (ivm_join_rule)rule, false };
            ivm__decision decision;
            decide(graph, &options, &none, &(shapes){ 0, seed % 3, seed, false }, &decision);
            double sum = 0;
            uint64_t next = 0;
            for (ivm__term term; ivm__decision_term(&decision, graph->leaves_count, &next, &term);) {
                sum += decision.cost[term.driver];
                for (uint32_t i = 0; i < graph->leaves_count; i++) {
                    cr_assert(!(term.mask >> i & 1) || decision.cost[i] >= decision.cost[term.driver], "seed %lu", (unsigned long)seed);
                }
            }
            cr_assert_float_eq(sum, rule == IVM_JOIN_MOBIUS ? decision.estimate_mobius : decision.estimate_telescoping, 1e-9 * sum);
        }
    }
}

Test(plan_terms, the_greatest_leaf_comes_last)
{
    const ivm__graph *graph = cross_make(&crossed, 4);
    const ivm_planner_options options = { IVM_FK_PRUNING_OFF, IVM_JOIN_TELESCOPING, false };
    static const uint64_t rows[] = { 500, 20, 1000000, 3 };
    ivm__leaf_delta leaves[4];
    for (uint32_t i = 0; i < 4; i++) {
        leaves[i] = (ivm__leaf_delta){ .rows_count = 1, .rows_live = rows[i] };
    }
    ivm__decision decision;
    ivm__term_decide(graph, &options, &(ivm__edges){ 0 }, leaves, 0, false, &decision);
    static const uint32_t want[] = { 3, 1, 0, 2 };
    cr_assert_eq(decision.order_count, 4u);
    cr_assert_arr_eq(decision.order, want, sizeof want);
    uint64_t next = 0;
    ivm__term term;
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert(ivm__decision_term(&decision, 4, &next, &term));
        cr_assert_eq(term.driver, want[i]);
    }
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(term.readings[i], i == 2 ? IVM__LEAF_DELTA : IVM__LEAF_CUR, "the fact table finds every dimension as it is now");
    }
}

static uint64_t parents_of(const ivm__edges *edges, uint32_t leaf)
{
    uint64_t parents = 0;
    for (uint32_t e = 0; e < edges->count; e++) {
        parents |= (uint64_t)(edges->edge[e].child == leaf) << edges->edge[e].parent;
    }
    return parents;
}

/* Each leaf is the smallest of those whose parents have their place; where all that are left wait, the smallest of them. */
static void assert_ordered(const ivm__decision *decision, const ivm__edges *edges, const ivm__leaf_delta *leaves, uint32_t number)
{
    uint64_t left = 0;
    for (uint32_t i = 0; i < decision->order_count; i++) {
        left |= 1ull << decision->order[i];
    }
    for (uint32_t i = 0; i < decision->order_count; i++) {
        uint32_t leaf = decision->order[i];
        bool waits = parents_of(edges, leaf) & left;
        for (uint64_t rest = left & ~(1ull << leaf); rest; rest &= rest - 1) {
            uint32_t other = (uint32_t)__builtin_ctzll(rest);
            bool other_waits = parents_of(edges, other) & left;
            cr_assert(!waits || other_waits, "digraph %u: leaf %u comes before a parent, %u would not", number, leaf, other);
            cr_assert(waits != other_waits || leaves[leaf].rows_live <= leaves[other].rows_live, "digraph %u", number);
        }
        left &= ~(1ull << leaf);
    }
}

Test(plan_terms, parents_come_before_their_children_then_the_smaller_leaf)
{
    const ivm__graph *graph = cross_make(&crossed, 4);
    const ivm_planner_options options = { IVM_FK_PRUNING_ROW, IVM_JOIN_TELESCOPING, false };
    for (uint32_t number = 0; number < 1u << 12; number++) {
        ivm__edge edge[12];
        ivm__edges edges;
        ivm__decision decision;
        ivm__leaf_delta leaves[4];
        uint64_t state = number, empty = random_next(&state) & random_next(&state) & 15;
        edges_of(4, number, edge, &edges);
        for (uint32_t i = 0; i < 4; i++) {
            leaves[i] = (ivm__leaf_delta){ .rows_count = empty >> i & 1 ? 0 : 1, .rows_live = 1 + random_next(&state) % 9 };
        }
        ivm__term_decide(graph, &options, &edges, leaves, empty, false, &decision);
        cr_assert_eq(decision.order_count, 4u - (uint32_t)__builtin_popcountll(empty));
        assert_ordered(&decision, &edges, leaves, number);
    }
}

/* By row the leaves say what is set aside: they are skipped, and read as cur. */
Test(plan_terms, leaves_of_which_all_is_set_aside_are_skipped_by_row)
{
    const ivm__graph *graph = cross_make(&crossed, 3);
    for (uint32_t number = 0; number < 64; number++) {
        ivm_planner_options options = { IVM_FK_PRUNING_ROW, (ivm_join_rule)(number % 3), number & 1 };
        ivm__leaf_delta leaves[3];
        ivm__decision decision;
        polynomial sum;
        const char *fault = NULL;
        uint64_t set_aside = number >> 3;
        for (uint32_t i = 0; i < 3; i++) {
            bool aside = set_aside >> i & 1;
            leaves[i] = (ivm__leaf_delta){ .rows_count = !aside, .rows_live = 3, .table_insert_only = true, .set_aside = aside };
        }
        if (set_aside == 7) {
            continue; /* one leaf stays outside */
        }
        ivm__term_decide(graph, &options, &(ivm__edges){ 0 }, leaves, set_aside, false, &decision);
        cr_assert_eq(decision.skip, set_aside);
        (void)sum_terms(&decision, 3, &sum, &fault);
        cr_assert_null(fault, "%s", fault);
        options.fk_pruning = IVM_FK_PRUNING_BATCH;
        ivm__term_decide(graph, &options, &(ivm__edges){ 0 }, leaves, 0, false, &decision);
        cr_assert_eq(decision.skip, 0u, "no fact leads anywhere");
    }
}

Test(plan_terms, sixty_four_leaves)
{
    static ivm__edge edge[64];
    const ivm__graph *graph = cross_make(&crossed, 64);
    ivm__edges edges = star(64, 63, edge);
    ivm__decision decision;
    ivm_planner_options options = { IVM_FK_PRUNING_BATCH, IVM_JOIN_AUTO, false };
    decide(graph, &options, &edges, &(shapes){ UINT64_MAX >> 1, 0, 1, false }, &decision);
    cr_assert_eq(decision.counts.all, UINT64_MAX);
    cr_assert_eq(decision.counts.run, 1u);
    cr_assert_eq(decision.skip, UINT64_MAX >> 1);
    options.fk_pruning = IVM_FK_PRUNING_OFF;
    decide(graph, &options, &edges, &(shapes){ UINT64_MAX, 0, 1, false }, &decision);
    cr_assert_eq(decision.counts.run, UINT64_MAX);
    cr_assert(decision.telescoping, "no one runs 2^64 masks");
    uint64_t next = 0, seen = 0;
    uint32_t count = 0;
    for (ivm__term term; ivm__decision_term(&decision, 64, &next, &term); count++) {
        seen |= term.mask;
    }
    cr_assert_eq(count, 64u);
    cr_assert_eq(seen, UINT64_MAX);
}
