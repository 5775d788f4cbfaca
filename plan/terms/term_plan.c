/* Term plans: a join's planner, as its operator calls it in a step.
 *
 *     prune    the edges of the facts in force; what they set aside          begin    the decision of the step's shape (decided.c)
 *     next     its terms, one by one                                         commit   it is what explain tells of
 *
 * Nothing is planned twice: edges are found anew where a fact was declared or removed, pruned leaves where others have rows to set aside, terms where
 * the delta has a shape that none of the last few had. */
#include "plan.h"
#include "track.h"

/* The edges of facts declared by the state the step starts from. */
static ivm_status refresh_edges(ivm__term_plan *plan, uint64_t since)
{
    if (plan->facts_version == plan->engine->facts_version && since >= plan->facts_since) {
        return IVM_OK;
    }
    uint64_t newest = 0;
    plan->facts_version = UINT64_MAX;
    plan->edges_now = 1 - plan->edges_last; /* explain still tells of those that the last step used */
    ivm__edges *edges = &plan->edges[plan->edges_now];
    edges->count = edges->pairs_count = 0;
    plan->rounds.known = false;
    ivm__decided_clear(plan->decided);
    ivm__graph_facts facts;
    ivm__graph_facts_begin(plan->graph, &facts);
    for (ivm_fact *fact; (fact = ivm__graph_facts_next(&facts));) {
        newest = fact->since > newest ? fact->since : newest;
        if (fact->since <= since) {
            IVM_TRY(ivm__edges_add(edges, plan->graph, fact));
        }
    }
    plan->facts_version = newest <= since ? plan->engine->facts_version : UINT64_MAX;
    plan->facts_since = newest;
    return IVM_OK;
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Whether the fact may be used by the batch rule in this step: not by a table's reference to itself, nor while a parent comes that a child waits for. */
static ivm_status edge_judge(ivm__step *step, ivm__edge *edge)
{
    bool awaited = false;
    edge->unused = edge->within ? IVM__FACT_WITHIN : IVM__FACT_USED;
    if (edge->unused || edge->fact->trust != IVM_TRACKED) {
        return IVM_OK;
    }
    IVM_TRY(ivm__track_awaited(step, edge->fact, &awaited));
    edge->unused = awaited ? IVM__FACT_AWAITED : IVM__FACT_USED;
    return IVM_OK;
}

static ivm_status term_plan_prune(void *state, ivm__step *step, ivm__leaf_prune *leaves, uint32_t leaves_count)
{
    ivm__term_plan *plan = state;
    assert(leaves_count == plan->graph->leaves_count);
    ivm_fk_pruning pruning = ivm__term_options(plan->graph, &step->planner).fk_pruning;
    ivm_status status = refresh_edges(plan, step->since);
    ivm__edges *edges = &plan->edges[plan->edges_now];
    for (uint32_t e = 0; status == IVM_OK && e < edges->count; e++) {
        edges->edge[e].unused = IVM__FACT_USED;
        if (pruning == IVM_FK_PRUNING_BATCH) {
            status = edge_judge(step, &edges->edge[e]);
        }
    }
    for (uint32_t i = 0; i < leaves_count; i++) {
        leaves[i].narrow = pruning == IVM_FK_PRUNING_ROW;
    }
    if (status == IVM_OK && pruning == IVM_FK_PRUNING_ROW) {
        status = ivm__prune_rows(step, plan->graph, edges, &plan->rounds, leaves);
    }
    return ivm__step_status(step, status);
}

static ivm_status term_plan_begin(void *state, ivm__step *step, const ivm__leaf_delta *leaves, uint32_t leaves_count)
{
    ivm__term_plan *plan = state;
    assert(leaves_count == plan->graph->leaves_count);
    uint64_t empty = 0;
    for (uint32_t i = 0; i < leaves_count; i++) {
        empty |= (uint64_t)(leaves[i].rows_count == 0) << i;
    }
    const ivm__edges *edges = &plan->edges[plan->edges_now];
    if (step->initial) {
        ivm__term_decide(plan->graph, &step->planner, edges, leaves, empty, true, plan->now);
    } else {
        ivm__decided_take(plan->decided, plan->graph, &step->planner, edges, leaves, empty, plan->now);
    }
    plan->term_next = 0;
    const ivm__decision *now = plan->now;
    if (!now->telescoping && now->counts.run > IVM_MASKS_RUN_MAX) {
        return ivm__fail(step->error, IVM_UNSUPPORTED,
                         "a join of %u leaves would run %llu masks (%u at most); join_rule telescoping or auto runs fewer", leaves_count,
                         (unsigned long long)now->counts.run, IVM_MASKS_RUN_MAX);
    }
    if (!step->initial) {
        step->stats->terms_pruned = add_saturating(step->stats->terms_pruned, now->counts.pruned);
        step->stats->terms_empty = add_saturating(step->stats->terms_empty, now->counts.empty);
    }
    return IVM_OK;
}

static bool term_plan_next(void *state, ivm__term *term)
{
    ivm__term_plan *plan = state;
    return ivm__decision_term(plan->now, plan->graph->leaves_count, &plan->term_next, term);
}

/* A step that begins judges the edges anew, and may be undone. */
static void keep_unused(ivm__edges *edges)
{
    for (uint32_t e = 0; e < edges->count; e++) {
        edges->edge[e].unused_told = edges->edge[e].unused;
    }
}

static void term_plan_commit(void *state, uint64_t rows_probed, uint64_t rows_matched)
{
    ivm__term_plan *plan = state;
    if (plan->now->made && !plan->now->initial) {
        ivm__decision *before = plan->last;
        plan->last = plan->now;
        plan->now = before;
        plan->last->rows_probed = rows_probed;
        plan->last->rows_matched = rows_matched;
        plan->edges_last = plan->edges_now;
        keep_unused(&plan->edges[plan->edges_last]);
    }
    plan->now->made = false;
}

static void term_plan_undo(void *state)
{
    ((ivm__term_plan *)state)->now->made = false;
}

static void term_plan_free(void *state, ivm__memory *memory)
{
    ivm__term_plan *plan = state;
    ivm__edges_free(&plan->edges[0], memory);
    ivm__edges_free(&plan->edges[1], memory);
    ivm__decided_free(plan->decided, memory);
    ivm__release(memory, plan, sizeof *plan);
}

ivm_status ivm__term_plan_create(ivm_engine *engine, ivm__graph *graph, ivm__term_plan **plan)
{
    ivm__term_plan *made = ivm__allocate_zeroed(graph->memory, sizeof *made);
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm_status status = ivm__decided_create(graph->memory, graph->leaves_count, &made->decided);
    if (status != IVM_OK) {
        ivm__release(graph->memory, made, sizeof *made);
        return status;
    }
    made->now = &made->decisions[0];
    made->last = &made->decisions[1];
    made->engine = engine;
    made->graph = graph;
    made->facts_version = UINT64_MAX;
    *plan = made;
    return IVM_OK;
}

ivm__join_planner ivm__term_planner(ivm__term_plan *plan)
{
    return (ivm__join_planner){
        .state = plan,
        .prune = term_plan_prune,
        .begin = term_plan_begin,
        .next = term_plan_next,
        .commit = term_plan_commit,
        .undo = term_plan_undo,
        .free = term_plan_free,
    };
}
