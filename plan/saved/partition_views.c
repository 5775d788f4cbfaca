/* Frontiers: see partition_views.h. A walk up each view's tree carries, of every node that rows not kept come up to, which of its columns are the
 * partition of the row that they came from. Cost: the plans' columns once a call. */
#include "partition_views.h"

#include "transient.h"

typedef struct finder {
    ivm_view *view;
    uint32_t ordinal;
    ivm__arena *arena;
    const ivm_table *table; /* the last that was met whose rows are not kept */
    ivm__frontiers *found;
    uint32_t capacity;
    ivm_error *error;
} finder;

static ivm_status refuse(const finder *it, const char *why)
{
    return ivm__fail(it->error, IVM_UNSUPPORTED, "by partition: view %s: table %s does not keep its rows, and %s", it->view->name,
                     it->table->name, why);
}

static ivm_status frontier_add(finder *it, uint32_t place, uint32_t column)
{
    ivm__frontiers *found = it->found;
    if (found->count == it->capacity) {
        uint32_t capacity = it->capacity ? 2 * it->capacity : 8;
        ivm__frontier *list = ivm__arena_allocate(it->arena, capacity * sizeof *list);
        if (!list) {
            return ivm__fail_memory(it->error);
        }
        if (found->count) {
            memcpy(list, found->list, found->count * sizeof *list);
        }
        found->list = list;
        it->capacity = capacity;
    }
    found->list[found->count++] = (ivm__frontier){ it->view, it->ordinal, place, column };
    return IVM_OK;
}

/* ---- Marks: true for columns that are the partition; NULL: no rows that are not kept come up here ---------------------------------------- */

static ivm_status marks_make(const finder *it, const ivm__node *node, bool **marks)
{
    *marks = ivm__arena_allocate(it->arena, node->columns_count * sizeof **marks);
    if (!*marks) {
        return ivm__fail_memory(it->error);
    }
    memset(*marks, false, node->columns_count * sizeof **marks);
    return IVM_OK;
}

static ivm_status mark_node(finder *it, const ivm__node *node, bool **marks);

static ivm_status mark_scan(finder *it, const ivm__node *node, bool **marks)
{
    if (!node->table || !node->table->transient) {
        return IVM_OK;
    }
    it->table = node->table;
    if (!node->table->partitioned) {
        return refuse(it, "has no partition column");
    }
    if (node->table->allow_negative) {
        return refuse(it, "their weights may be below zero");
    }
    IVM_TRY(marks_make(it, node, marks));
    for (uint32_t c = 0; c < node->columns_count; c++) {
        (*marks)[c] = node->heading->columns[c] == node->table->partition;
    }
    return IVM_OK;
}

static ivm_status mark_project(finder *it, const ivm__node *node, bool **marks)
{
    bool *input = NULL;
    IVM_TRY(mark_node(it, node->inputs[0], &input));
    if (!input) {
        return IVM_OK;
    }
    IVM_TRY(marks_make(it, node, marks));
    for (uint32_t c = 0; c < node->columns_count; c++) {
        const ivm__expression *expression = node->expressions[c];
        (*marks)[c] = expression->function == IVM__COLUMN && input[expression->column];
    }
    return IVM_OK;
}

/* What is equal to the partition is the partition. */
static void marks_close(const ivm__node *join, bool *marks)
{
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < join->equalities_count; i++) {
            bool *a = &marks[join->equalities[i].a], *b = &marks[join->equalities[i].b];
            more |= *a != *b;
            *a = *b = *a || *b;
        }
    }
}

static ivm_status mark_join(finder *it, const ivm__node *node, bool **marks)
{
    uint32_t first = 0;
    bool *input, *made = NULL;
    for (uint32_t i = 0; i < node->inputs_count; first += node->inputs[i++]->columns_count) {
        input = NULL;
        IVM_TRY(mark_node(it, node->inputs[i], &input));
        if (input && !made) {
            IVM_TRY(marks_make(it, node, &made));
        }
        if (input) {
            memcpy(made + first, input, node->inputs[i]->columns_count * sizeof *made);
        }
    }
    if (made) {
        marks_close(node, made);
    }
    *marks = made;
    return IVM_OK;
}

/* Of all inputs none has such rows, or each. */
static ivm_status mark_union_all(finder *it, const ivm__node *node, bool **marks)
{
    uint32_t lost = 0;
    bool *made = NULL;
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        bool *input = NULL;
        IVM_TRY(mark_node(it, node->inputs[i], &input));
        lost += input != NULL;
        for (uint32_t c = 0; input && made && c < node->columns_count; c++) {
            made[c] &= input[c];
        }
        made = made ? made : input;
    }
    if (lost && lost < node->inputs_count) {
        return refuse(it, "a union_all takes them together with rows that are kept");
    }
    *marks = made;
    return IVM_OK;
}

static ivm_status mark_aggregate(finder *it, const ivm__node *node)
{
    bool *input = NULL;
    IVM_TRY(mark_node(it, node->inputs[0], &input));
    if (!input) {
        return IVM_OK;
    }
    for (uint32_t g = 0; g < node->groups_count; g++) {
        if (node->groups[g]->function == IVM__COLUMN && input[node->groups[g]->column]) {
            return frontier_add(it, node->place, g);
        }
    }
    return refuse(it, "an aggregate over them does not have their partition among its groups");
}

static ivm_status mark_others(finder *it, const ivm__node *node)
{
    bool *input = NULL;
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        IVM_TRY(mark_node(it, node->inputs[i], &input));
        if (input) {
            return refuse(it, node->op == IVM__PLAN_TOP_K ? "top_k keeps them" : "a set operation keeps them");
        }
    }
    return IVM_OK;
}

static ivm_status mark_node(finder *it, const ivm__node *node, bool **marks)
{
    *marks = NULL;
    switch (node->op) {
    case IVM__PLAN_SCAN:
        return mark_scan(it, node, marks);
    case IVM__PLAN_FILTER:
        return mark_node(it, node->inputs[0], marks);
    case IVM__PLAN_PROJECT:
        return mark_project(it, node, marks);
    case IVM__PLAN_JOIN:
        return mark_join(it, node, marks);
    case IVM__PLAN_AGGREGATE:
        return mark_aggregate(it, node);
    case IVM__PLAN_SET:
        return node->set == IVM__SET_UNION_ALL ? mark_union_all(it, node, marks) : mark_others(it, node);
    case IVM__PLAN_OUTER:
    case IVM__PLAN_TOP_K:
        break;
    }
    return mark_others(it, node);
}

/* ---- The catalog ------------------------------------------------------------------------------------------------------------------------- */

static ivm_status find_in_view(finder *it)
{
    bool *marks = NULL;
    const ivm__node *root = it->view->planned->node;
    IVM_TRY(mark_node(it, root, &marks));
    for (uint32_t c = 0; marks && c < root->columns_count; c++) {
        if (marks[c]) {
            return frontier_add(it, it->view->program.operators_count - 1, c);
        }
    }
    return marks ? refuse(it, "the view does not show their partition") : IVM_OK;
}

/* Who waits is told by the rows that do, where all of those are kept; of rows that are gone nobody can say which keys they hold. */
static ivm_status check_facts(const ivm_engine *engine, ivm_error *error)
{
    for (const ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        if (fact->track && fact->child->transient && !ivm__fact_keeps_waiting(fact)) {
            return ivm__fail(error, IVM_UNSUPPORTED,
                             "by partition: the foreign key of %s to %s is %s, and table %s does not keep the rows that it counts",
                             fact->child->name, fact->parent->name, fact->trust == IVM_TRACKED ? "tracked" : "enforced", fact->child->name);
        }
    }
    return IVM_OK;
}

static ivm_status check_tables(const ivm_engine *engine, ivm_error *error)
{
    bool partitioned = false;
    for (const ivm_table *table = engine->tables; table; table = table->next) {
        partitioned |= table->partitioned;
    }
    return partitioned ? IVM_OK : ivm__fail(error, IVM_UNSUPPORTED, "by partition: no table has a partition column");
}

ivm_status ivm__frontiers_find(ivm_engine *engine, ivm__arena *arena, ivm__frontiers *found, ivm_error *error)
{
    finder it = { .arena = arena, .found = found, .error = error };
    *found = (ivm__frontiers){ 0 };
    IVM_TRY(check_tables(engine, error));
    IVM_TRY(check_facts(engine, error));
    for (it.view = engine->views; it.view; it.view = it.view->next, it.ordinal++) {
        IVM_TRY(find_in_view(&it));
    }
    return IVM_OK;
}

/* ---- What one holds ---------------------------------------------------------------------------------------------------------------------- */

typedef struct listener {
    ivm__saver saver;
    ivm__frontier_holding heard;
} listener;

static ivm_status hear_rows(ivm__saver *self, const ivm__store *store, uint32_t columns_count, ivm__row_save *save, const void *context)
{
    ((listener *)self)->heard = (ivm__frontier_holding){ store, columns_count, save, context };
    return IVM_OK;
}

ivm__frontier_holding ivm__frontier_holds(const ivm__operator *operator)
{
    listener to = { .saver = { .rows = hear_rows } };
    ivm_status status = operator->class->save(operator, & to.saver);
    assert(status == IVM_OK && to.heard.store);
    (void)status;
    return to.heard;
}

/* ---- Below one --------------------------------------------------------------------------------------------------------------------------- */

static bool is_below(const ivm__operator *operator, const ivm__operator * frontier)
{
    const ivm__operator *above = operator->next;
    while (above && above != frontier) {
        above = above->next;
    }
    return above != NULL;
}

void ivm__frontier_stand(const ivm__frontier *frontier, const ivm__program *program)
{
    ivm__operator *at = ivm__frontier_operator(frontier, program);
    bool is_root = frontier->place == program->operators_count - 1 && frontier->view->planned->node->op != IVM__PLAN_AGGREGATE;
    ivm__weight standing = is_root ? ivm__store_weights_sum(ivm__materialize_result(at)) : ivm__aggregate_rows(at);
    for (uint32_t i = 0; i < program->operators_count; i++) {
        if (ivm__operator_weighs(program->operators[i]) && is_below(program->operators[i], at)) {
            ivm__weigh_begin(program->operators[i], standing);
        }
    }
}
