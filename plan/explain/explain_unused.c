/* Explain's facts that prune nothing: for each declared or stated foreign key and each two leaves that read its tables, why it was not used from the one
 * to the other. The reason is the planner's own: what of the fact's columns the join graph does not equate (facts.c), what the step judged (the edge's
 * unused_told), that it had no edge of it, that a cycle keeps the parent outside the skip mask. A fact that the join equates is not told again of the other leaves
 * of its two tables. Cost, when asked: leaves squared a fact, and where a leaf is no scan of a table the engine's views. */
#include "explain.h"

/* ---- What a leaf reads ------------------------------------------------------------------------------------------------------------------- */

/* Marks the views that read the table, by themselves or through others: those that a view reads were made before it. */
static void views_mark(const ivm_table *table)
{
    for (ivm_view *view = table->engine->views; view; view = view->next) {
        view->marked = false;
        for (uint32_t i = 0; i < view->tables_count; i++) {
            view->marked |= view->tables[i] == table;
        }
        for (uint32_t i = 0; i < view->views_count; i++) {
            view->marked |= view->views[i]->marked;
        }
    }
}

static bool node_reads(const ivm__node *node, const ivm_table *table)
{
    bool reads = node->table == table || (node->view && node->view->marked);
    for (uint32_t i = 0; i < node->inputs_count && !reads; i++) {
        reads = node_reads(node->inputs[i], table);
    }
    return reads;
}

/* The leaves that read the table, whatever they make of its rows. */
static uint64_t leaves_read(const ivm__graph *graph, const ivm_table *table)
{
    uint64_t read = 0, derived = 0;
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        read |= (uint64_t)(graph->leaves[i].table == table) << i;
        derived |= (uint64_t)!graph->leaves[i].table << i;
    }
    if (derived) {
        views_mark(table);
    }
    for (; derived; derived &= derived - 1) {
        uint32_t leaf = (uint32_t)__builtin_ctzll(derived);
        read |= (uint64_t)node_reads(graph->leaves[leaf].node, table) << leaf;
    }
    return read;
}

/* ---- Why ----------------------------------------------------------------------------------------------------------------------------------- */

static const ivm__edge *find_edge(const ivm__edges *edges, const ivm_fact *fact, uint32_t child, uint32_t parent)
{
    for (uint32_t e = 0; e < edges->count; e++) {
        const ivm__edge *edge = &edges->edge[e];
        if (edge->fact == fact && edge->fact_id == fact->id && edge->child == child && edge->parent == parent) {
            return edge;
        }
    }
    return NULL;
}

/* Of a fact that leads from the one leaf to the other. */
static ivm__unused_why why_not_used(const ivm__told_join *join, const ivm_fact *fact, uint32_t child, uint32_t parent)
{
    if (!join->made) {
        return IVM__UNUSED_BEFORE;
    }
    if (join->decision.options.fk_pruning == IVM_FK_PRUNING_OFF) {
        return IVM__UNUSED_OFF;
    }
    const ivm__edge *edge = find_edge(join->edges, fact, child, parent);
    if (!edge) {
        return IVM__UNUSED_LATER;
    }
    if (edge->unused_told) {
        return edge->unused_told == IVM__FACT_WITHIN ? IVM__UNUSED_WITHIN : IVM__UNUSED_AWAITED;
    }
    return join->entries >> parent & 1 ? IVM__UNUSED_CYCLE : IVM__UNUSED_NOT;
}

static ivm__unused_why why(const ivm__told_join *join, const ivm__unused_walk *walk, const ivm_fact *fact, uint32_t child, uint32_t parent,
                           uint32_t *column)
{
    switch (ivm__fact_miss(join->graph, fact, child, parent, column)) {
    case IVM__FACT_ELSEWHERE:
        return child != parent && (walk->read_child >> child & walk->read_parent >> parent & 1) ? IVM__UNUSED_DERIVED : IVM__UNUSED_NOT;
    case IVM__FACT_CONCEALED:
        return IVM__UNUSED_CONCEALED;
    case IVM__FACT_APART:
        return IVM__UNUSED_APART;
    default:
        return why_not_used(join, fact, child, parent);
    }
}

/* ---- One by one ------------------------------------------------------------------------------------------------------------------------------ */

/* What the walk knows of the leaves by a fact. */
static void find_led(const ivm__told_join *join, const ivm_fact *fact, ivm__unused_walk *walk)
{
    walk->read_child = leaves_read(join->graph, fact->child);
    walk->read_parent = leaves_read(join->graph, fact->parent);
    walk->children = walk->parents = 0;
    for (uint32_t child = 0; child < join->graph->leaves_count; child++) {
        for (uint32_t parent = 0; parent < join->graph->leaves_count; parent++) {
            uint64_t leads = ivm__fact_leads(join->graph, fact, child, parent);
            walk->children |= leads << child;
            walk->parents |= leads << parent;
        }
    }
    if (fact->child == fact->parent) {
        walk->children = walk->parents = walk->children | walk->parents;
    }
}

static bool find_next(const ivm__told_join *join, ivm__unused_walk *walk, ivm__told_unused *told)
{
    uint32_t leaves_count = join->graph->leaves_count;
    assert(leaves_count > 0);
    told->fact = join->facts[walk->fact];
    while (walk->pair < leaves_count * leaves_count) {
        told->child = walk->pair / leaves_count;
        told->parent = walk->pair % leaves_count;
        walk->pair++;
        bool leads = ivm__fact_leads(join->graph, told->fact, told->child, told->parent);
        bool told_of = (walk->children >> told->child | walk->parents >> told->parent) & 1;
        told->why = leads || !told_of ? why(join, walk, told->fact, told->child, told->parent, &told->column) : IVM__UNUSED_NOT;
        if (told->why != IVM__UNUSED_NOT) {
            return true;
        }
    }
    return false;
}

bool ivm__told_unused_next(const ivm__told_join *join, ivm__unused_walk *walk, ivm__told_unused *told)
{
    for (; walk->fact < join->facts_count; walk->fact++, walk->pair = 0) {
        if (walk->pair == 0) {
            find_led(join, join->facts[walk->fact], walk);
        }
        if (find_next(join, walk, told)) {
            return true;
        }
    }
    return false;
}

/* ---- In words -------------------------------------------------------------------------------------------------------------------------------- */

const char *ivm__unused_word(ivm__unused_why why)
{
    static const char *const words[] = {
        "",      "before_first_push", "pruning_off",          "not_in_force", "own_table_by_batch", "awaited",
        "cycle", "derived_leaf",      "column_not_passed_on", "not_equated"
    };
    assert(why < sizeof words / sizeof *words);
    return words[why];
}

void ivm__write_unused_why(ivm__writer *writer, const ivm__told_join *join, const ivm__told_unused *told)
{
    static const char *const reasons[] = {
        [IVM__UNUSED_BEFORE] = "no push has come since the view was made",
        [IVM__UNUSED_OFF] = "fk_pruning is off",
        [IVM__UNUSED_LATER] = "declared after the state that the last push started from",
        [IVM__UNUSED_WITHIN] = "a table's reference to itself is used by row alone, and pruning is by batch",
        [IVM__UNUSED_AWAITED] = "a child waited for a parent that came, and pruning is by batch",
    };
    const ivm_fact *fact = told->fact;
    const ivm__graph_leaf *leaves = join->graph->leaves;
    uint32_t leaf = leaves[told->child].table == fact->child ? told->parent : told->child;
    const char *name;
    size_t size;
    switch (told->why) {
    case IVM__UNUSED_CYCLE:
        ivm__write(writer, "leaf %u is referred to only by leaves that rest on it themselves (a cycle)", told->parent);
        break;
    case IVM__UNUSED_DERIVED:
        ivm__leaf_name(join->graph, leaf, &name, &size);
        ivm__write(writer, "leaf %u (%.*s) is no plain scan, filter or projection of %s", leaf, (int)size, name,
                   leaf == told->child ? fact->child->name : fact->parent->name);
        break;
    case IVM__UNUSED_CONCEALED:
    case IVM__UNUSED_APART:
        ivm__write(writer, "the join does not equate %s.%s with %s.%s%s", fact->child->name,
                   fact->child->columns[fact->child_columns[told->column]].name, fact->parent->name,
                   fact->parent->columns[fact->parent_columns[told->column]].name,
                   told->why == IVM__UNUSED_APART ? "" : " as they are: a leaf casts, computes or leaves out one of them");
        break;
    default:
        ivm__write(writer, "%s", reasons[told->why]);
    }
}
