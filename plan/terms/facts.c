/* Facts over leaves: which leaf of a join refers to which. A fact leads from leaf C to leaf P if each repeats rows of its table, filtered and
 * projected or not, no cast or computation touches the fact's columns, and the join equates every one of them in its pair, directly or
 * through other equalities of the same type. One column of two is not enough. Tables are compared by identity, so that a table dropped and
 * made again inherits nothing, and every alias is a leaf of its own; a leaf does not refer to itself. Cost: pairs of leaves of the two tables; cached until facts change. */
#include "plan.h"

/* A column of the leaf that holds this column of its table and is equal to the join column `to` (of class `class`); UINT32_MAX: none. */
static uint32_t leaf_column_in_class(const ivm__graph *graph, const ivm__graph_leaf *leaf, uint32_t table_column, uint32_t class)
{
    for (uint32_t i = 0; i < leaf->columns_count; i++) {
        uint32_t at = leaf->columns_first + i;
        if (ivm__leaf_origin(leaf, i) == table_column && graph->class_of[at] == class) {
            return at;
        }
    }
    return UINT32_MAX;
}

/* The join columns through which one pair of the fact's columns is equated. */
static bool pair_equated(const ivm__graph *graph, const ivm__graph_leaf *child, const ivm__graph_leaf *parent, uint32_t child_column,
                         uint32_t parent_column, ivm__equality *pair)
{
    for (uint32_t i = 0; i < child->columns_count; i++) {
        if (ivm__leaf_origin(child, i) != child_column) {
            continue;
        }
        uint32_t at = child->columns_first + i;
        uint32_t other = leaf_column_in_class(graph, parent, parent_column, graph->class_of[at]);
        if (other != UINT32_MAX) {
            *pair = (ivm__equality){ at, other };
            return true;
        }
    }
    return false;
}

static ivm_status edge_add(ivm__edges *edges, const ivm__graph *graph, ivm_fact *fact, uint32_t child, uint32_t parent)
{
    assert(child < graph->leaves_count && parent < graph->leaves_count);
    IVM_TRY(ivm__grow(graph->memory, (void **)&edges->edge, &edges->capacity, (uint64_t)edges->count + 1, sizeof *edges->edge));
    IVM_TRY(ivm__grow(graph->memory, (void **)&edges->pairs, &edges->pairs_capacity, (uint64_t)edges->pairs_count + fact->columns_count,
                      sizeof *edges->pairs));
    for (uint32_t i = 0; i < fact->columns_count; i++) {
        if (!pair_equated(graph, &graph->leaves[child], &graph->leaves[parent], fact->child_columns[i], fact->parent_columns[i],
                          &edges->pairs[edges->pairs_count + i])) {
            return IVM_OK;
        }
    }
    edges->edge[edges->count++] = (ivm__edge){
        .child = child,
        .parent = parent,
        .pairs_first = edges->pairs_count,
        .pairs_count = fact->columns_count,
        .fact = fact,
        .fact_id = fact->id,
        .trust = fact->trust,
        .within = fact->child == fact->parent,
    };
    edges->pairs_count += fact->columns_count;
    return IVM_OK;
}

ivm_status ivm__edges_add(ivm__edges *edges, const ivm__graph *graph, ivm_fact *fact)
{
    for (uint32_t child = 0; child < graph->leaves_count; child++) {
        for (uint32_t parent = 0; parent < graph->leaves_count; parent++) {
            if (child != parent && graph->leaves[child].table == fact->child && graph->leaves[parent].table == fact->parent) {
                IVM_TRY(edge_add(edges, graph, fact, child, parent));
            }
        }
    }
    return IVM_OK;
}

static bool is_first_of_table(const ivm__graph *graph, uint32_t leaf)
{
    bool first = graph->leaves[leaf].table != NULL;
    for (uint32_t i = 0; first && i < leaf; i++) {
        first = graph->leaves[i].table != graph->leaves[leaf].table;
    }
    return first;
}

void ivm__graph_facts_begin(const ivm__graph *graph, ivm__graph_facts *facts)
{
    facts->count = 0;
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        if (is_first_of_table(graph, i) && graph->leaves[i].table->facts) {
            facts->next[facts->count++] = graph->leaves[i].table->facts;
        }
    }
}

ivm_fact *ivm__graph_facts_next(ivm__graph_facts *facts)
{
    uint32_t oldest = UINT32_MAX;
    for (uint32_t i = 0; i < facts->count; i++) {
        if (facts->next[i] && (oldest == UINT32_MAX || facts->next[i]->id < facts->next[oldest]->id)) {
            oldest = i;
        }
    }
    if (oldest == UINT32_MAX) {
        return NULL;
    }
    ivm_fact *fact = facts->next[oldest];
    facts->next[oldest] = fact->next_of_child;
    return fact;
}

static bool holds_column(const ivm__graph_leaf *leaf, uint32_t table_column)
{
    for (uint32_t i = 0; i < leaf->columns_count; i++) {
        if (ivm__leaf_origin(leaf, i) == table_column) {
            return true;
        }
    }
    return false;
}

bool ivm__fact_leads(const ivm__graph *graph, const ivm_fact *fact, uint32_t child, uint32_t parent)
{
    uint32_t column;
    return ivm__fact_miss(graph, fact, child, parent, &column) == IVM__FACT_USED;
}

ivm__fact_use ivm__fact_miss(const ivm__graph *graph, const ivm_fact *fact, uint32_t child, uint32_t parent, uint32_t *column)
{
    const ivm__graph_leaf *from = &graph->leaves[child], *to = &graph->leaves[parent];
    ivm__equality pair;
    if (child == parent || from->table != fact->child || to->table != fact->parent) {
        return IVM__FACT_ELSEWHERE;
    }
    for (uint32_t i = 0; i < fact->columns_count; i++) {
        if (!pair_equated(graph, from, to, fact->child_columns[i], fact->parent_columns[i], &pair)) {
            *column = i;
            bool concealed = !holds_column(from, fact->child_columns[i]) || !holds_column(to, fact->parent_columns[i]);
            return concealed ? IVM__FACT_CONCEALED : IVM__FACT_APART;
        }
    }
    return IVM__FACT_USED;
}

void ivm__edges_free(ivm__edges *edges, ivm__memory *memory)
{
    ivm__release(memory, edges->edge, edges->capacity * sizeof *edges->edge);
    ivm__release(memory, edges->pairs, edges->pairs_capacity * sizeof *edges->pairs);
    *edges = (ivm__edges){ 0 };
}
