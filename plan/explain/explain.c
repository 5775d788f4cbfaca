/* Explain: what was decided for a view's joins in the last push, or would be from stated shapes and facts without data. The planner's own
 * decision is told, made by the same code; nothing is worked out a second time. */
#include "explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Writing ------------------------------------------------------------------------------------------------------------------------ */

static bool writer_room(ivm__writer *writer, size_t more)
{
    if (writer->failed || more >= SIZE_MAX / 4) {
        writer->failed = true;
        return false;
    }
    if (writer->size + more + 1 > writer->capacity) {
        size_t capacity = (writer->size + more + 1) * 2;
        char *grown = realloc(writer->text, capacity);
        if (!grown) {
            writer->failed = true;
            return false;
        }
        writer->text = grown;
        writer->capacity = capacity;
    }
    return true;
}

void ivm__write(ivm__writer *writer, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (size >= 0 && writer_room(writer, (size_t)size)) {
        vsnprintf(writer->text + writer->size, (size_t)size + 1, format, again);
        writer->size += (size_t)size;
    }
    va_end(again);
}

void ivm__write_quoted(ivm__writer *writer, const char *text, size_t size)
{
    ivm__write(writer, "\"");
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            ivm__write(writer, "\\%c", c);
        } else if (c < 0x20) {
            ivm__write(writer, "\\u%04x", c);
        } else {
            ivm__write(writer, "%c", c);
        }
    }
    ivm__write(writer, "\"");
}

void ivm__write_mask(ivm__writer *writer, uint64_t mask, uint32_t leaves_count)
{
    for (uint32_t i = leaves_count; i-- > 0;) {
        ivm__write(writer, "%c", (int)('0' + (mask >> i & 1)));
    }
}

/* ---- What the forms share -------------------------------------------------------------------------------------------------------------- */

/* What a derived leaf is called. */
static const char *operator_name(const ivm__node *node)
{
    static const char *const joins[] = { "join", "left join", "right join", "full join", "semi join", "anti join" };
    static const char *const sets[] = {
        "distinct", "union_all", "union", "except_all", "except", "intersect_all", "intersect"
    }; /* in the order of ivm__set_kind */
    switch (node->op) {
    case IVM__PLAN_JOIN:
    case IVM__PLAN_OUTER:
        return joins[node->kind];
    case IVM__PLAN_SET:
        return sets[node->set];
    case IVM__PLAN_AGGREGATE:
        return "aggregate";
    case IVM__PLAN_TOP_K:
        return "top_k";
    default:
        return "project";
    }
}

void ivm__leaf_name(const ivm__graph *graph, uint32_t leaf, const char **name, size_t *size)
{
    const ivm__node *node = graph->leaves[leaf].node;
    while (node->op == IVM__PLAN_FILTER || node->hidden) {
        node = node->inputs[0];
    }
    if (node->op == IVM__PLAN_SCAN) {
        *name = node->columns[0].name;
        *size = (size_t)(strrchr(*name, '.') - *name);
    } else {
        *name = operator_name(node);
        *size = strlen(*name);
    }
}

const char *ivm__leaf_shape(const ivm__told_join *join, uint32_t leaf)
{
    if ((join->decision.empty >> leaf & 1) && !join->decision.leaves[leaf].set_aside) {
        return "unchanged";
    }
    return join->decision.leaves[leaf].table_insert_only ? "insert_only" : "mixed";
}

const char *ivm__join_column_name(const ivm__graph *graph, uint32_t column)
{
    uint32_t leaf = 0;
    while (column >= graph->leaves[leaf].columns_first + graph->leaves[leaf].columns_count) {
        leaf++;
    }
    return graph->leaves[leaf].node->columns[column - graph->leaves[leaf].columns_first].name;
}

const char *ivm__mask_state(const ivm__told_join *join, uint64_t mask, const char *left)
{
    if (mask & join->decision.skip) {
        return "pruned";
    }
    return !join->decision.options.run_empty && (mask & join->decision.empty) ? "empty" : left;
}

const char *ivm__pruning_word(ivm_fk_pruning pruning)
{
    static const char *const words[] = { "row", "batch", "off" };
    return words[pruning];
}

uint32_t ivm__masks_run(const ivm__told_join *join, uint64_t masks[IVM__EXPLAIN_MASKS_MAX])
{
    uint32_t leaves_count = join->graph->leaves_count, count = 0;
    uint64_t all = leaves_count == 64 ? UINT64_MAX : (1ull << leaves_count) - 1;
    uint64_t run = all & ~join->decision.skip & ~(join->decision.options.run_empty ? 0 : join->decision.empty);
    for (uint64_t mask = -run & run; mask && count < IVM__EXPLAIN_MASKS_MAX; mask = (mask - run) & run) {
        masks[count++] = mask;
    }
    return count;
}

/* ---- Decisions ------------------------------------------------------------------------------------------------------------------------- */

/* What is stated, looked up; and what it means for each of the engine's views, in their order. */
typedef struct stated_facts {
    ivm_fact **facts;
    size_t count;
    ivm_fact **declared; /* the engine's, borrowed */
    size_t declared_count;
    ivm_shape *views;
    size_t views_count;
} stated_facts;

static void free_stated(ivm_engine *engine, stated_facts *stated, size_t capacity)
{
    for (size_t i = 0; i < stated->count; i++) {
        ivm__fact_free(stated->facts[i]);
    }
    ivm__release(&engine->memory, stated->facts, capacity * sizeof(ivm_fact *));
    ivm__release(&engine->memory, stated->declared, stated->declared_count * sizeof(ivm_fact *));
    ivm__release(&engine->memory, stated->views, stated->views_count * sizeof *stated->views);
}

static ivm_status make_stated(ivm_engine *engine, const ivm_explain_options *options, stated_facts *stated, ivm_error *error)
{
    stated->facts = ivm__allocate(&engine->memory, options->facts_count * sizeof(ivm_fact *));
    if (!stated->facts) {
        return ivm__fail_memory(error);
    }
    for (; stated->count < options->facts_count; stated->count++) {
        const ivm_stated_fact *fact = &options->facts[stated->count];
        if (!fact->child || !fact->parent) {
            return ivm__fail(error, IVM_INVALID_ARGUMENT, "a stated foreign key needs two tables");
        }
        if (fact->trust > IVM_TRACKED) {
            return ivm__fail(error, IVM_INVALID_ARGUMENT, "%d is no trust", (int)fact->trust);
        }
        ivm_table *child = ivm__table_named(engine, fact->child, strlen(fact->child));
        ivm_table *parent = ivm__table_named(engine, fact->parent, strlen(fact->parent));
        if (!child || !parent) {
            return ivm__fail(error, IVM_UNKNOWN_TABLE, "there is no table %s", child ? fact->parent : fact->child);
        }
        IVM_TRY(ivm__fact_make(child, fact->columns, parent, fact->parent_columns, &stated->facts[stated->count], error));
        stated->facts[stated->count]->trust = fact->trust;
    }
    return IVM_OK;
}

static ivm_status find_declared(ivm_engine *engine, stated_facts *stated, ivm_error *error)
{
    for (const ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        stated->declared_count++;
    }
    stated->declared = ivm__allocate(&engine->memory, stated->declared_count * sizeof(ivm_fact *));
    if (!stated->declared) {
        return ivm__fail_memory(error);
    }
    size_t count = 0;
    for (ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        stated->declared[count++] = fact;
    }
    return IVM_OK;
}

static ivm_status check_shapes(const ivm_engine *engine, const ivm_explain_options *options, ivm_error *error)
{
    for (size_t i = 0; i < options->shapes_count; i++) {
        const ivm_stated_shape *shape = &options->shapes[i];
        if (!shape->table || !ivm__table_named(engine, shape->table, strlen(shape->table))) {
            return ivm__fail(error, IVM_UNKNOWN_TABLE, "there is no table %s", shape->table ? shape->table : "without a name");
        }
        if (shape->shape > IVM_MIXED) {
            return ivm__fail(error, IVM_INVALID_ARGUMENT, "table %s: %d is no shape of a delta", shape->table, (int)shape->shape);
        }
    }
    return IVM_OK;
}

static ivm_shape table_shape(const ivm_table *table, const ivm_explain_options *options)
{
    ivm_shape shape = IVM_MIXED;
    for (size_t i = 0; i < options->shapes_count; i++) {
        if (strcmp(options->shapes[i].table, table->name) == 0) {
            shape = options->shapes[i].shape;
        }
    }
    return shape;
}

static ivm_shape view_shape(const ivm_view *view, const stated_facts *stated)
{
    size_t at = 0;
    for (const ivm_view *other = view->engine->views; other != view; other = other->next) {
        at++;
    }
    return stated->views[at];
}

/* A view may change in any way where something that it scans changes. Views stand behind those that they scan. */
static ivm_status shape_views(ivm_engine *engine, const ivm_explain_options *options, stated_facts *stated, ivm_error *error)
{
    for (const ivm_view *view = engine->views; view; view = view->next) {
        stated->views_count++;
    }
    stated->views = ivm__allocate_zeroed(&engine->memory, stated->views_count * sizeof *stated->views);
    if (!stated->views) {
        return ivm__fail_memory(error);
    }
    size_t at = 0;
    for (const ivm_view *view = engine->views; view; view = view->next, at++) {
        for (uint32_t i = 0; i < view->tables_count; i++) {
            stated->views[at] = table_shape(view->tables[i], options) != IVM_UNCHANGED ? IVM_MIXED : stated->views[at];
        }
        for (uint32_t i = 0; i < view->views_count; i++) {
            stated->views[at] = view_shape(view->views[i], stated) != IVM_UNCHANGED ? IVM_MIXED : stated->views[at];
        }
    }
    return IVM_OK;
}

/* The stated shape that says most: of all that the node reads, the least calm one. */
static ivm_shape sources_shape(const ivm__node *node, const ivm_explain_options *options, const stated_facts *stated)
{
    ivm_shape shape = node->table ? table_shape(node->table, options) : node->view ? view_shape(node->view, stated) : IVM_UNCHANGED;
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        ivm_shape below = sources_shape(node->inputs[i], options, stated);
        shape = below > shape ? below : shape;
    }
    return shape;
}

/* A leaf that does not repeat a table's rows may change in any way where one of its sources changes. */
static ivm_shape leaf_shape(const ivm__graph_leaf *leaf, const ivm_explain_options *options, const stated_facts *stated)
{
    ivm_shape shape = sources_shape(leaf->node, options, stated);
    return leaf->table || shape == IVM_UNCHANGED ? shape : IVM_MIXED;
}

/* By row a parent that only gains rows loses all of them to its facts; of one that changes in any way nothing is known. By batch a table's reference to
 * itself is not used. */
static void set_aside_stated(const ivm__graph *graph, ivm__edges *edges, const ivm_planner_options *options, ivm__leaf_delta *leaves)
{
    uint64_t growing = 0;
    for (uint32_t e = 0; e < edges->count; e++) {
        bool within = edges->edge[e].within && options->fk_pruning == IVM_FK_PRUNING_BATCH;
        edges->edge[e].unused = within ? IVM__FACT_WITHIN : IVM__FACT_USED;
        edges->edge[e].unused_told = edges->edge[e].unused;
    }
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        growing |= (uint64_t)(graph->leaves[i].table && leaves[i].table_insert_only && leaves[i].rows_count) << i;
    }
    uint64_t skip = ivm__skip_mask(graph->leaves_count, edges->edge, edges->count, growing);
    uint64_t entries = ivm__skip_entries(skip, edges->edge, edges->count, growing);
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        leaves[i].set_aside = skip >> i & 1;
        leaves[i].entry = entries >> i & 1;
    }
}

static ivm_status decide_stated(ivm_view *view, const ivm_explain_options *options, const stated_facts *stated, ivm__edges *edges,
                                ivm__told_join *join)
{
    const ivm__graph *graph = join->graph;
    ivm__leaf_delta leaves[IVM_JOIN_LEAVES_MAX] = { { 0 } };
    uint64_t empty = 0;
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        ivm_shape shape = leaf_shape(&graph->leaves[i], options, stated);
        empty |= (uint64_t)(shape == IVM_UNCHANGED) << i;
        leaves[i] = (ivm__leaf_delta){ .rows_count = shape != IVM_UNCHANGED, .table_insert_only = shape != IVM_MIXED };
    }
    for (size_t i = 0; i < join->facts_count; i++) {
        IVM_TRY(ivm__edges_add(edges, graph, join->facts[i]));
    }
    ivm_planner_options used = ivm__term_options(graph, &view->engine->planner);
    set_aside_stated(graph, edges, &used, leaves);
    ivm__term_decide(graph, &used, edges, leaves, empty, false, &join->decision);
    join->made = true;
    join->entries = ivm__decision_entries(graph, edges, &join->decision);
    return IVM_OK;
}

static const ivm__edges no_edges = { 0 };

/* The last step's decision; before the first, nothing has changed and no fact is used. */
static void decide_last(ivm_view *view, const ivm__term_plan *plan, const ivm__graph *graph, ivm__told_join *join)
{
    join->made = plan->last->made;
    if (join->made) {
        join->decision = *plan->last;
        join->edges = &plan->edges[plan->edges_last];
        join->entries = ivm__decision_entries(graph, join->edges, &join->decision);
        return;
    }
    ivm__leaf_delta leaves[IVM_JOIN_LEAVES_MAX] = { { 0 } };
    assert(graph->leaves_count >= 1 && graph->leaves_count <= IVM_JOIN_LEAVES_MAX);
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        leaves[i].table_insert_only = true;
    }
    join->edges = &no_edges;
    ivm__term_decide(graph, &view->engine->planner, &no_edges, leaves, UINT64_MAX >> (64 - graph->leaves_count), false, &join->decision);
}

/* By the facts that the join is told of. */
static ivm_status find_drivers(const ivm_view *view, const ivm_explain_options *options, ivm__told_join *join)
{
    if (options && options->facts_stated) {
        join->drivers = ivm__drivers(join->graph, &view->engine->planner, join->edges, 0);
        return IVM_OK;
    }
    return ivm__view_drivers(view, join->graph, &join->drivers);
}

/* ---- The call ---------------------------------------------------------------------------------------------------------------------------- */

/* What the options state, and the facts declared. */
static ivm_status find_stated(ivm_engine *engine, const ivm_explain_options *options, stated_facts *stated, ivm_error *error)
{
    IVM_TRY(find_declared(engine, stated, error));
    if (!options) {
        return IVM_OK;
    }
    IVM_TRY(check_shapes(engine, options, error));
    IVM_TRY(make_stated(engine, options, stated, error));
    return shape_views(engine, options, stated, error);
}

static ivm_status tell_join(ivm_view *view, const ivm_explain_options *options, const stated_facts *stated, ivm__edges *edges,
                            const ivm__term_plan *plan, ivm__told_join *join)
{
    bool from_stated = options && options->facts_stated;
    join->facts = from_stated ? stated->facts : stated->declared;
    join->facts_count = from_stated ? stated->count : stated->declared_count;
    join->edges = edges;
    if (options) {
        IVM_TRY(decide_stated(view, options, stated, edges, join));
    } else {
        decide_last(view, plan, join->graph, join);
    }
    IVM_TRY(find_drivers(view, options, join));
    if (join->decision.options.fk_pruning == IVM_FK_PRUNING_OFF) {
        join->edges = &no_edges;
    }
    return IVM_OK;
}

static ivm_status tell(ivm_view *view, const ivm_explain_options *options, ivm_explain_format format, ivm__told_join *joins,
                       ivm__edges *edges, ivm__writer *writer, ivm_error *error)
{
    const ivm__planned *planned = view->planned;
    stated_facts stated = { 0 };
    ivm_status status = find_stated(view->engine, options, &stated, error);
    bool pushed = !options;
    for (uint32_t i = 0; i < planned->joins_count && status == IVM_OK; i++) {
        joins[i] = (ivm__told_join){ .graph = planned->graphs[i], .operator= planned->joins[i] };
        if (tell_join(view, options, &stated, &edges[i], planned->plans[i], &joins[i]) != IVM_OK) {
            status = ivm__fail_memory(error);
        }
        pushed &= joins[i].made;
    }
    if (status == IVM_OK) {
        ivm__told told = { view->name, options != NULL, pushed, joins, planned->joins_count };
        (format == IVM_EXPLAIN_JSON ? ivm__explain_json : format == IVM_EXPLAIN_DOT ? ivm__explain_dot : ivm__explain_text)(writer, &told);
    }
    free_stated(view->engine, &stated, options ? options->facts_count : 0);
    return status;
}

static ivm_status check_arguments(const ivm_view *view, const ivm_explain_options *stated, ivm_explain_format format, char **text,
                                  ivm_error *error)
{
    if (!view || !text) {
        return ivm__fail_null(error, "ivm_explain", view ? "text" : "view");
    }
    if ((unsigned)format > IVM_EXPLAIN_DOT) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_explain: %d is no format", (int)format);
    }
    if (stated && stated->version > IVM_EXPLAIN_OPTIONS_VERSION) {
        return ivm__fail_version(error, "ivm_explain", "options", stated->version, IVM_EXPLAIN_OPTIONS_VERSION);
    }
    if (stated && ((stated->shapes_count && !stated->shapes) || (stated->facts_count && !stated->facts))) {
        return ivm__fail_null(error, "ivm_explain", stated->shapes_count && !stated->shapes ? "shapes" : "facts");
    }
    return IVM_OK;
}

ivm_status ivm_explain(ivm_view *view, const ivm_explain_options *stated, ivm_explain_format format, char **text, ivm_error *error)
{
    IVM_TRY(check_arguments(view, stated, format, text, error));
    ivm_engine *engine = view->engine;
    IVM_TRY(ivm__engine_enter(engine, error));
    uint32_t count = view->planned->joins_count;
    ivm__told_join *joins = ivm__allocate_zeroed(&engine->memory, count * sizeof *joins);
    ivm__edges *edges = ivm__allocate_zeroed(&engine->memory, count * sizeof *edges);
    ivm__writer writer = { 0 };
    ivm_status status = joins && edges ? tell(view, stated, format, joins, edges, &writer, error) : ivm__fail_memory(error);
    for (uint32_t i = 0; edges && i < count; i++) {
        ivm__edges_free(&edges[i], &engine->memory);
    }
    ivm__release(&engine->memory, joins, count * sizeof *joins);
    ivm__release(&engine->memory, edges, count * sizeof *edges);
    ivm__engine_leave(engine);
    if (status == IVM_OK && (writer.failed || !writer.text)) {
        status = ivm__fail_memory(error);
    }
    if (status != IVM_OK) {
        free(writer.text);
        return status;
    }
    *text = writer.text;
    return IVM_OK;
}

void ivm_text_free(char *text)
{
    free(text);
}
