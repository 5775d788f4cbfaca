/* Decisions kept by delta shape, so that a step like one of the last few decides nothing (plan.h).
 *
 *     shape      the options; of each leaf: whether it only gained rows, is set aside, and the magnitudes of its delta and of its rows; of each edge:
 *                whether the step may use it
 *     decision   all that follows from a shape; what a step has of its own, the leaves as explain tells of them, is added each time
 *
 * Which terms are exact follows from what the shape holds in full; magnitudes choose only the form, the order and the drivers among exact ones.
 * Cost: some 16 bytes a leaf for each shape that is kept. */
#include "plan.h"

typedef struct shape {
    ivm_planner_options options;
    uint64_t insert_only, set_aside, empty, unused;
} shape;

typedef struct kept {
    uint64_t used; /* the turn of its last use; 0: never */
    shape shape;
    char decision[offsetof(ivm__decision, cost)];
} kept;

/* The arrays have a part of leaves_count, of magnitudes two, for each that is kept, and magnitudes one more for the step under way. */
struct ivm__decided {
    uint32_t leaves_count;
    uint64_t turn, made;
    kept kept[IVM__DECIDED_MAX];
    double *costs;
    uint32_t *orders;
    uint8_t *magnitudes;
};

#define PARTS (IVM__DECIDED_MAX + 1)

ivm_status ivm__decided_create(ivm__memory *memory, uint32_t leaves_count, ivm__decided **decided)
{
    ivm__decided *made = ivm__allocate_zeroed(memory, sizeof *made);
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    made->leaves_count = leaves_count;
    made->costs = ivm__allocate(memory, (size_t)leaves_count * IVM__DECIDED_MAX * sizeof *made->costs);
    made->orders = ivm__allocate(memory, (size_t)leaves_count * IVM__DECIDED_MAX * sizeof *made->orders);
    made->magnitudes = ivm__allocate(memory, (size_t)leaves_count * 2 * PARTS);
    if (!made->costs || !made->orders || !made->magnitudes) {
        ivm__decided_free(made, memory);
        return IVM_OUT_OF_MEMORY;
    }
    *decided = made;
    return IVM_OK;
}

void ivm__decided_free(ivm__decided *decided, ivm__memory *memory)
{
    if (decided) {
        ivm__release(memory, decided->costs, (size_t)decided->leaves_count * IVM__DECIDED_MAX * sizeof *decided->costs);
        ivm__release(memory, decided->orders, (size_t)decided->leaves_count * IVM__DECIDED_MAX * sizeof *decided->orders);
        ivm__release(memory, decided->magnitudes, (size_t)decided->leaves_count * 2 * PARTS);
        ivm__release(memory, decided, sizeof *decided);
    }
}

void ivm__decided_clear(ivm__decided *decided)
{
    for (uint32_t i = 0; i < IVM__DECIDED_MAX; i++) {
        decided->kept[i].used = 0;
    }
}

uint64_t ivm__decided_made(const ivm__decided *decided)
{
    return decided->made;
}

/* ---- Shapes -------------------------------------------------------------------------------------------------------------------------- */

/* The number of binary digits. */
static uint8_t magnitude(uint64_t rows)
{
    return rows ? (uint8_t)(64 - __builtin_clzll(rows)) : 0;
}

static shape shape_of(const ivm__graph *graph, const ivm_planner_options *options, const ivm__edges *edges, const ivm__leaf_delta *leaves,
                      uint64_t empty, uint8_t *magnitudes)
{
    shape made = { .options = *options, .empty = empty };
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        made.insert_only |= (uint64_t)leaves[i].table_insert_only << i;
        made.set_aside |= (uint64_t)leaves[i].set_aside << i;
        magnitudes[2 * i] = magnitude(leaves[i].rows_count);
        magnitudes[2 * i + 1] = magnitude(ivm__leaf_rows(graph, leaves, i));
    }
    for (uint32_t e = 0; e < edges->count; e++) {
        made.unused |= (uint64_t)(edges->edge[e].unused != IVM__FACT_USED) << (e & 63);
    }
    return made;
}

static bool shapes_equal(const shape *a, const shape *b)
{
    return a->insert_only == b->insert_only && a->set_aside == b->set_aside && a->empty == b->empty && a->unused == b->unused &&
           a->options.fk_pruning == b->options.fk_pruning && a->options.join_rule == b->options.join_rule &&
           a->options.run_empty == b->options.run_empty;
}

/* ---- Taking ---------------------------------------------------------------------------------------------------------------------------- */

static uint8_t *magnitudes_of(const ivm__decided *decided, uint32_t part)
{
    return decided->magnitudes + (size_t)part * 2 * decided->leaves_count;
}

/* The kept decision of this shape and the last part's magnitudes; else the one that makes room for it, unused. */
static uint32_t find(const ivm__decided *decided, const shape *wanted)
{
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < IVM__DECIDED_MAX; i++) {
        const kept *at = &decided->kept[i];
        if (at->used && shapes_equal(&at->shape, wanted) &&
            memcmp(magnitudes_of(decided, i), magnitudes_of(decided, IVM__DECIDED_MAX), (size_t)decided->leaves_count * 2) == 0) {
            return i;
        }
        oldest = at->used < decided->kept[oldest].used ? i : oldest;
    }
    return oldest | IVM__DECIDED_MAX;
}

static void keep(ivm__decided *decided, uint32_t part, const shape *of, const ivm__decision *decision)
{
    uint32_t leaves_count = decided->leaves_count;
    kept *to = &decided->kept[part];
    to->shape = *of;
    memcpy(to->decision, decision, sizeof to->decision);
    memcpy(decided->costs + (size_t)part * leaves_count, decision->cost, leaves_count * sizeof *decision->cost);
    memcpy(decided->orders + (size_t)part * leaves_count, decision->order, leaves_count * sizeof *decision->order);
    memcpy(magnitudes_of(decided, part), magnitudes_of(decided, IVM__DECIDED_MAX), (size_t)leaves_count * 2);
}

static void give(const ivm__decided *decided, uint32_t part, const ivm__leaf_delta *leaves, ivm__decision *decision)
{
    uint32_t leaves_count = decided->leaves_count;
    memcpy(decision, decided->kept[part].decision, sizeof decided->kept[part].decision);
    memcpy(decision->cost, decided->costs + (size_t)part * leaves_count, leaves_count * sizeof *decision->cost);
    memcpy(decision->order, decided->orders + (size_t)part * leaves_count, leaves_count * sizeof *decision->order);
    memcpy(decision->leaves, leaves, leaves_count * sizeof *leaves);
}

void ivm__decided_take(ivm__decided *decided, const ivm__graph *graph, const ivm_planner_options *options, const ivm__edges *edges,
                       const ivm__leaf_delta *leaves, uint64_t empty, ivm__decision *decision)
{
    assert(graph->leaves_count == decided->leaves_count);
    if (edges->count > 64) { /* more than a shape tells apart */
        decided->made++;
        ivm__term_decide(graph, options, edges, leaves, empty, false, decision);
        return;
    }
    shape wanted = shape_of(graph, options, edges, leaves, empty, magnitudes_of(decided, IVM__DECIDED_MAX));
    uint32_t part = find(decided, &wanted);
    if (part < IVM__DECIDED_MAX) {
        give(decided, part, leaves, decision);
    } else {
        part -= IVM__DECIDED_MAX;
        ivm__term_decide(graph, options, edges, leaves, empty, false, decision);
        keep(decided, part, &wanted, decision);
        decided->made++;
    }
    decided->kept[part].used = ++decided->turn;
}
