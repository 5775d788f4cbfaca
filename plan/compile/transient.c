/* Views of tables whose rows are not kept: which can be, and how their joins reach every other leaf.
 *
 *     a scan, a filter, a project, an aggregate, a set operation, top_k        what they keep of the rows they keep themselves
 *     an inner join       of one leaf that repeats such a table's rows, if facts lead from it, leaf to leaf, to all others and these are
 *                         append_only tables: then no row that has found its parents is ever asked for again
 *     anything else       unsupported
 *
 * A leaf that reads such a table with no aggregate between counts as its own. What facts there are is judged when the view is made; those
 * that lead the way are pinned while it lives. Cost: pairs of leaves times facts, once a view. */
#include "transient.h"
#include "check.h"

/* A table whose rows are not kept and come up to this node; NULL: none. */
static const ivm_table *lost_table(const ivm__node *node)
{
    if (node->op == IVM__PLAN_SCAN) {
        return node->table && node->table->transient ? node->table : NULL;
    }
    const ivm_table *lost = NULL;
    for (uint32_t i = 0; node->op != IVM__PLAN_AGGREGATE && !lost && i < node->inputs_count; i++) {
        lost = lost_table(node->inputs[i]);
    }
    return lost;
}

static ivm_status refuse(const ivm_view *view, const ivm_table *table, const char *why, const char *other, ivm_error *error)
{
    return ivm__fail(error, IVM_UNSUPPORTED, "view %s: table %s does not keep its rows, and %s%s", view->name, table->name, why, other);
}

/* ---- The way through a join ------------------------------------------------------------------------------------------------------------ */

#define UNREACHED (UINT32_MAX - 1)

static ivm_status hop_add(ivm__hops *hops, ivm__memory *memory, ivm_fact *fact, uint32_t from, uint32_t *hop)
{
    for (uint32_t h = 0; h < hops->count; h++) {
        if (hops->hop[h].fact == fact && hops->hop[h].from == from) {
            *hop = h; /* another leaf of the same parent row */
            return IVM_OK;
        }
    }
    IVM_TRY(ivm__grow(memory, (void **)&hops->hop, &hops->capacity, (uint64_t)hops->count + 1, sizeof *hops->hop));
    *hop = hops->count++;
    hops->hop[*hop] = (ivm__hop){ .fact = fact, .from = from };
    return IVM_OK;
}

/* `saved` NULL: any fact may be used. */
static bool may_use(const ivm__hop_facts *saved, const ivm_fact *fact)
{
    bool may = !saved;
    for (uint32_t i = 0; saved && i < saved->count; i++) {
        may |= saved->facts[i] == fact;
    }
    return may;
}

/* Goes from the child leaf along facts, until no further leaf is reached: hop_of[leaf] is its hop, or UNREACHED. With no more facts than those it took
 * once it takes the same ones. */
static ivm_status leaves_reach(const ivm__graph *graph, const ivm__hop_facts *saved, uint32_t child, ivm__hops *hops, uint32_t *hop_of)
{
    uint32_t reached[IVM_JOIN_LEAVES_MAX], reached_count = 0, leaves_count = graph->leaves_count;
    assert(child < leaves_count && leaves_count <= IVM_JOIN_LEAVES_MAX);
    for (uint32_t i = 0; i < leaves_count; i++) {
        hop_of[i] = UNREACHED;
    }
    hop_of[child] = IVM__HOP_ROW;
    reached[reached_count++] = child;
    for (uint32_t next = 0; next < reached_count; next++) {
        uint32_t from = hop_of[reached[next]];
        assert(from != UNREACHED);
        const ivm_table *table = graph->leaves[reached[next]].table;
        for (ivm_fact *fact = table ? table->facts : NULL; fact; fact = fact->next_of_child) {
            for (uint32_t i = 0; may_use(saved, fact) && i < leaves_count; i++) {
                if (hop_of[i] == UNREACHED && ivm__fact_leads(graph, fact, reached[next], i)) {
                    IVM_TRY(hop_add(hops, graph->memory, fact, from, &hop_of[i]));
                    reached[reached_count++] = i;
                }
            }
        }
    }
    return IVM_OK;
}

static ivm_status leaves_check(const ivm_view *view, const ivm__graph *graph, const ivm_table *lost, const uint32_t *hop_of,
                               ivm_error *error)
{
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        const ivm_table *table = graph->leaves[i].table;
        if (hop_of[i] == IVM__HOP_ROW) {
            continue;
        }
        if (!table) {
            return refuse(view, lost, "an inner join reads it beside a leaf that is no table", "", error);
        }
        if (hop_of[i] == UNREACHED) {
            return refuse(view, lost, "no foreign key that the join equates leads from it to ", table->name, error);
        }
        if (!table->append_only) {
            return refuse(view, lost, "joined to it is a table that is not append_only: ", table->name, error);
        }
    }
    return IVM_OK;
}

/* The leaf that reads rows that are not kept; UINT32_MAX: none. There may be one alone, which repeats its table's rows. */
static ivm_status lost_leaf(const ivm_view *view, const ivm__graph *graph, uint32_t *leaf, ivm_error *error)
{
    const ivm_table *lost = NULL;
    *leaf = UINT32_MAX;
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        const ivm_table *table = lost_table(graph->leaves[i].node);
        if (table && lost) {
            return refuse(view, lost, "an inner join reads beside it the rows of ", table->name, error);
        }
        if (table) {
            lost = table;
            *leaf = i;
        }
    }
    if (lost && !graph->leaves[*leaf].table) {
        return refuse(view, lost, "a leaf of an inner join does more to them than filter and project", "", error);
    }
    return IVM_OK;
}

static ivm_status check_join(ivm_view *view, const ivm__graph *graph, const ivm__view_saved *saved, ivm_error *error)
{
    ivm__memory *memory = &view->engine->memory;
    uint32_t leaf, hop_of[IVM_JOIN_LEAVES_MAX], before = ivm__hops_count(view);
    IVM_TRY(lost_leaf(view, graph, &leaf, error));
    if (leaf == UINT32_MAX) {
        return IVM_OK;
    }
    if (saved && before == saved->hops_count) {
        return ivm__fail(error, IVM_CORRUPT, "view %s: a join reads rows that are not kept, and no facts are told for it", view->name);
    }
    ivm__hops *hops = ivm__allocate_zeroed(memory, sizeof *hops);
    if (!hops) {
        return ivm__fail_memory(error);
    }
    hops->table = graph->leaves[leaf].table;
    hops->next = view->hops;
    view->hops = hops;
    if (leaves_reach(graph, saved ? &saved->hops[before] : NULL, leaf, hops, hop_of) != IVM_OK) {
        return ivm__fail_memory(error);
    }
    for (uint32_t h = 0; h < hops->count; h++) {
        hops->waits |= hops->hop[h].fact->trust == IVM_TRACKED;
    }
    return leaves_check(view, graph, hops->table, hop_of, error);
}

/* ---- The plan -------------------------------------------------------------------------------------------------------------------------- */

/* Joins are counted in the order in which they were compiled. */
static ivm_status check_node(ivm_view *view, const ivm__node *node, const ivm__view_saved *saved, uint32_t *joins, ivm_error *error)
{
    if (node->op == IVM__PLAN_JOIN) {
        IVM_TRY(check_join(view, view->planned->graphs[(*joins)++], saved, error));
    }
    if (node->op == IVM__PLAN_OUTER && lost_table(node)) {
        return refuse(view, lost_table(node), "an outer, semi or anti join reads them", "", error);
    }
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        IVM_TRY(check_node(view, node->inputs[i], saved, joins, error));
    }
    return IVM_OK;
}

ivm_status ivm__transient_check(ivm_view *view, const ivm__view_saved *saved, ivm_error *error)
{
    uint32_t joins = 0;
    bool lost = false;
    assert(view->planned->graphs && !view->hops);
    for (uint32_t i = 0; i < view->tables_count; i++) {
        const ivm_table *table = view->tables[i];
        if (table->transient && view->refresh == IVM_DEFERRED) {
            return refuse(view, table, "a deferred view would need them later", "", error);
        }
        if (table->transient && table->came) {
            return refuse(view, table, "some have come and gone before the view", "", error);
        }
        lost |= table->transient;
    }
    return lost ? check_node(view, view->planned->node, saved, &joins, error) : IVM_OK;
}
