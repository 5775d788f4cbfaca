/* Masks: which of a join's 2^n - 1 terms can matter. Bit i of a mask is leaf i.
 *
 *     skip = the largest set S of parents whose table only gained rows such that each member can be reached, child to parent, from a leaf
 *            outside S. A term whose mask touches S adds up to nothing: mask & skip, one test a mask.
 *
 * Without the reachability two new rows that refer to each other would both be skipped, and their pair lost. Counts are arithmetic: a join of
 * 64 leaves has 2^64 - 1 masks. Cost: O(leaves * edges) a step. */
#include "plan.h"

/* The leaves that can be reached from `from`, itself among them. */
static uint64_t reach_from(uint64_t from, const ivm__edge *edges, uint32_t edges_count)
{
    uint64_t reached = from;
    for (bool grew = true; grew;) {
        grew = false;
        for (uint32_t e = 0; e < edges_count; e++) {
            uint64_t parent = 1ull << edges[e].parent;
            if (!edges[e].unused && (reached >> edges[e].child & 1) && !(reached & parent)) {
                reached |= parent;
                grew = true;
            }
        }
    }
    return reached;
}

static uint64_t leaves_all(uint32_t leaves_count)
{
    return leaves_count == 64 ? UINT64_MAX : (1ull << leaves_count) - 1;
}

/* Among leaves that none outside reaches: the lowest of a source component, which is a cycle that nothing else of them leads into. */
static uint32_t cycle_entry(uint64_t rest, const ivm__edge *edges, uint32_t edges_count)
{
    for (uint64_t left = rest; left; left &= left - 1) {
        uint32_t leaf = (uint32_t)__builtin_ctzll(left);
        uint64_t reached = reach_from(1ull << leaf, edges, edges_count);
        bool is_source = true;
        for (uint64_t others = rest & ~reached; others && is_source; others &= others - 1) {
            uint64_t other = others & -others;
            is_source = !(reach_from(other, edges, edges_count) >> leaf & 1);
        }
        if (is_source) {
            return leaf;
        }
    }
    assert(!"a finite graph has a source component");
    return (uint32_t)__builtin_ctzll(rest);
}

uint64_t ivm__skip_mask(uint32_t leaves_count, const ivm__edge *edges, uint32_t edges_count, uint64_t insert_only)
{
    assert(leaves_count >= 1 && leaves_count <= IVM_JOIN_LEAVES_MAX);
    uint64_t all = leaves_all(leaves_count), parents = 0;
    for (uint32_t e = 0; e < edges_count; e++) {
        assert(edges[e].child != edges[e].parent);
        parents |= (uint64_t)!edges[e].unused << edges[e].parent;
    }
    uint64_t kept = all & ~(insert_only & parents);
    for (;;) {
        uint64_t rest = all & ~reach_from(kept, edges, edges_count);
        if (!rest) {
            return all & ~kept;
        }
        kept |= 1ull << cycle_entry(rest, edges, edges_count);
    }
}

uint64_t ivm__skip_entries(uint64_t skip, const ivm__edge *edges, uint32_t edges_count, uint64_t insert_only)
{
    uint64_t parents = 0;
    for (uint32_t e = 0; e < edges_count; e++) {
        parents |= (uint64_t)!edges[e].unused_told << edges[e].parent;
    }
    return insert_only & parents & ~skip;
}

/* 2^bits, modulo 2^64. */
static uint64_t power_of_two(uint32_t bits)
{
    return bits == 64 ? 0 : 1ull << bits;
}

ivm__mask_counts ivm__mask_count(uint32_t leaves_count, uint64_t skip, uint64_t empty)
{
    assert(leaves_count >= 1 && leaves_count <= IVM_JOIN_LEAVES_MAX);
    uint64_t all = leaves_all(leaves_count);
    assert((skip & ~all) == 0 && skip != all);
    uint32_t kept = (uint32_t)__builtin_popcountll(all & ~skip);
    uint32_t run = (uint32_t)__builtin_popcountll(all & ~skip & ~empty);
    ivm__mask_counts counts = {
        .all = all,
        .pruned = power_of_two(leaves_count) - power_of_two(kept),
        .empty = power_of_two(kept) - power_of_two(run),
        .run = power_of_two(run) - 1,
    };
    assert(counts.pruned + counts.empty + counts.run == counts.all);
    return counts;
}
