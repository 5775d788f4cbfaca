/* Preparing: the indexes that a view's inner joins may read, built outside any push.
 *
 *     drivers = all leaves but the append_only ones that foreign keys declared now take out of every step
 *
 * A leaf that never drives a term sends no probe, so that the indexes of its order alone are never read: of a star whose dimensions only grow the
 * fact table is not indexed. Of a deferred view rows are loaded as they were at its last refresh. Cost: a pass over the rows for each index
 * that is not there yet. */
#include "pending.h"
#include "plan.h"

/* ---- Which leaves drive --------------------------------------------------------------------------------------------------------------- */

/* An edge that steps may use, and one that every step from this state on does. */
static bool edge_counts(const ivm__edge *edge, const ivm_planner_options *options)
{
    return !edge->within || options->fk_pruning == IVM_FK_PRUNING_ROW;
}
static bool edge_lasts(const ivm__edge *edge, const ivm_planner_options *options, uint64_t since)
{
    return edge_counts(edge, options) && edge->fact->trust != IVM_TRACKED && edge->fact->since <= since;
}

typedef struct lasting {
    uint64_t roots;   /* no edge leads there: outside every skip mask */
    uint64_t loose;   /* an edge leads there that some step may not use */
    uint64_t near;    /* a lasting edge leads there from a root */
    uint64_t reached; /* from roots along lasting edges */
} lasting;

static lasting find_lasting(const ivm__edges *edges, uint64_t all, const ivm_planner_options *options, uint64_t since)
{
    lasting it = { .roots = all };
    for (uint32_t e = 0; e < edges->count; e++) {
        uint64_t parent = 1ull << edges->edge[e].parent;
        it.roots &= edge_counts(&edges->edge[e], options) ? ~parent : all;
        it.loose |= edge_lasts(&edges->edge[e], options, since) ? 0 : parent;
    }
    it.reached = it.roots;
    for (uint64_t before = 0; before != it.reached;) {
        before = it.reached;
        for (uint32_t e = 0; e < edges->count; e++) {
            const ivm__edge *edge = &edges->edge[e];
            uint64_t parent = edge_lasts(edge, options, since) ? 1ull << edge->parent : 0;
            it.near |= it.roots >> edge->child & 1 ? parent : 0;
            it.reached |= it.reached >> edge->child & 1 ? parent : 0;
        }
    }
    return it;
}

/* A leaf that lasting facts reach from a root is in the skip mask of every step in which its table only gains rows, whatever else changes; one that is
 * reached through a cycle alone may be the one that stays outside. By row all of its rows are set aside if the fact that reaches it is a
 * lasting one: that of a root, or any where all are. */
uint64_t ivm__drivers(const ivm__graph *graph, const ivm_planner_options *options, const ivm__edges *edges, uint64_t since)
{
    assert(graph->leaves_count >= 1 && graph->leaves_count <= IVM_JOIN_LEAVES_MAX);
    uint64_t all = UINT64_MAX >> (64 - graph->leaves_count), grows = 0;
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        grows |= (uint64_t)(graph->leaves[i].table && graph->leaves[i].table->append_only) << i;
    }
    ivm_planner_options used = ivm__term_options(graph, options);
    if (used.fk_pruning == IVM_FK_PRUNING_OFF) {
        return all;
    }
    lasting it = find_lasting(edges, all, &used, since);
    return all & ~(grows & ~it.roots & it.reached & (it.near | ~it.loose));
}

ivm_status ivm__view_drivers(const ivm_view *view, const ivm__graph *graph, uint64_t *drivers)
{
    ivm__edges edges = { 0 };
    ivm_status status = IVM_OK;
    ivm__graph_facts facts;
    ivm__graph_facts_begin(graph, &facts);
    for (ivm_fact *fact; status == IVM_OK && (fact = ivm__graph_facts_next(&facts));) {
        status = ivm__edges_add(&edges, graph, fact);
    }
    if (status == IVM_OK) {
        uint64_t since = view->refresh == IVM_DEFERRED ? view->clock : view->engine->pushes;
        *drivers = ivm__drivers(graph, &view->engine->planner, &edges, since);
    }
    ivm__edges_free(&edges, graph->memory);
    return status;
}

/* ---- Preparing ------------------------------------------------------------------------------------------------------------------------ */

static ivm_status prepare_joins(const ivm_view *view, ivm__step *step)
{
    const ivm__planned *planned = view->planned;
    for (uint32_t i = 0; i < planned->joins_count; i++) {
        uint64_t drivers;
        if (ivm__view_drivers(view, planned->graphs[i], &drivers) != IVM_OK) {
            return ivm__fail_memory(step->error);
        }
        IVM_TRY(ivm__step_poll(step));
        IVM_TRY(ivm__join_prepare(planned->joins[i], step, drivers));
    }
    return IVM_OK;
}

ivm_status ivm__view_prepare(ivm_view *view, ivm_error *error)
{
    ivm_stats ignored = { 0 };
    ivm__step step;
    ivm__step_init(&step, view->engine, &ignored, error);
    ivm_status status = ivm__pendings_lay(view, &step);
    if (status == IVM_OK) {
        status = prepare_joins(view, &step);
    }
    ivm__pendings_lift(view);
    return status;
}

ivm_status ivm_view_prepare(ivm_view *view, ivm_error *error)
{
    if (!view) {
        return ivm__fail_null(error, "ivm_view_prepare", "view");
    }
    ivm_engine *engine = view->engine;
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm_status status = ivm__view_prepare(view, error);
    ivm__engine_settle(engine);
    ivm__engine_leave(engine);
    return status;
}

/* ---- Marks -------------------------------------------------------------------------------------------------------------------------------- */

struct ivm__index_mark {
    ivm__store *store;
    ivm__index *newest;
};

static ivm_status marks_make(ivm_engine *engine, uint32_t count, ivm__index_marks *marks)
{
    assert(marks->count == 0);
    marks->mark = ivm__arena_allocate(&engine->arena, count * sizeof *marks->mark);
    return marks->mark ? IVM_OK : IVM_OUT_OF_MEMORY;
}

static void mark_add(ivm__index_marks *marks, ivm__store *store)
{
    marks->mark[marks->count++] = (struct ivm__index_mark){ store, store->indexes };
}

ivm_status ivm__indexes_mark(ivm_engine *engine, ivm__index_marks *marks)
{
    uint32_t count = 0;
    for (const ivm_table *table = engine->tables; table; table = table->next) {
        count++;
    }
    for (const ivm_view *view = engine->views; view; view = view->next) {
        count++;
    }
    IVM_TRY(marks_make(engine, count, marks));
    for (ivm_table *table = engine->tables; table; table = table->next) {
        mark_add(marks, &table->store);
    }
    for (const ivm_view *view = engine->views; view; view = view->next) {
        mark_add(marks, view->program.result);
    }
    return IVM_OK;
}

ivm_status ivm__indexes_mark_read(ivm_view *view, ivm__index_marks *marks)
{
    IVM_TRY(marks_make(view->engine, view->tables_count + view->views_count, marks));
    for (uint32_t i = 0; i < view->tables_count; i++) {
        mark_add(marks, &view->tables[i]->store);
    }
    for (uint32_t i = 0; i < view->views_count; i++) {
        mark_add(marks, view->views[i]->program.result);
    }
    return IVM_OK;
}

void ivm__indexes_back(const ivm__index_marks *marks)
{
    for (uint32_t i = 0; i < marks->count; i++) {
        ivm__store_indexes_drop_since(marks->mark[i].store, marks->mark[i].newest);
    }
}
