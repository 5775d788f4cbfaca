/* Views: made from a plan in one step that fills them, or not at all.
 *
 *     plan -> checked tree -> program -> a step whose delta is all that the tables hold -> published
 *
 * Until the last line of ivm__view_declare() nothing outside the new view has changed but for indexes that came, so that a failure frees both. Cost: the plan computed
 * once over its tables' rows. */
#include "catalog_view.h"
#include "check.h"
#include "journal.h"
#include "pending.h"
#include "plan_code.h"
#include "publish.h"
#include "transient.h"

#include <stdlib.h>

/* ---- What the view says of itself ---------------------------------------------------------------------------------------------------- */

static ivm_status check_names(ivm_engine *engine, const ivm__node *root, ivm_error *error)
{
    ivm__check check = { .engine = engine, .memory = &engine->memory, .error = error };
    size_t size = root->columns_count * sizeof(ivm__named_column);
    ivm__named_column *bare = ivm__allocate(&engine->memory, size);
    if (!bare) {
        return ivm__fail_memory(error);
    }
    for (uint32_t i = 0; i < root->columns_count; i++) {
        bare[i] = (ivm__named_column){ (char *)ivm__name_bare(root->columns[i].name), root->columns[i].type };
    }
    ivm_status status = ivm__check_twins(&check, bare, root->columns_count, " in the view, without their aliases: a project names them");
    ivm__release(&engine->memory, bare, size);
    return status;
}

static ivm_status name_columns(ivm_view *view, const ivm__node *root)
{
    ivm__memory *memory = &view->engine->memory;
    view->columns = ivm__allocate_zeroed(memory, root->columns_count * sizeof *view->columns);
    view->types = ivm__allocate_zeroed(memory, root->columns_count * sizeof *view->types);
    view->columns_count = root->columns_count; /* said first, so that freeing gives the right sizes */
    if (!view->columns || !view->types) {
        return IVM_OUT_OF_MEMORY;
    }
    view->key_count = root->op == IVM__PLAN_AGGREGATE ? root->groups_count : root->columns_count;
    for (uint32_t i = 0; i < root->columns_count; i++) {
        const char *name = ivm__name_bare(root->columns[i].name);
        view->columns[i] = (ivm__column){ ivm__text_copy(memory, name, strlen(name)), root->columns[i].type, true };
        view->types[i] = root->columns[i].type;
        if (!view->columns[i].name) {
            return IVM_OUT_OF_MEMORY;
        }
    }
    return IVM_OK;
}

static ivm_status keep_plan(ivm_view *view, const ivm_plan *plan)
{
    ivm__code code = { .memory = &view->engine->memory };
    ivm__plan_code(&code, plan);
    view->plan = ivm__code_take(&code, &view->plan_size);
    ivm__code_deinit(&code);
    return view->plan ? IVM_OK : IVM_OUT_OF_MEMORY;
}

static uint32_t scans_count(const ivm__node *node)
{
    uint32_t count = node->op == IVM__PLAN_SCAN;
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        count += scans_count(node->inputs[i]);
    }
    return count;
}

static ivm__source *scans_list(const ivm__node *node, ivm__source *next)
{
    if (node->op == IVM__PLAN_SCAN) {
        *next++ = (ivm__source){ .table = node->table, .view = node->view };
    }
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        next = scans_list(node->inputs[i], next);
    }
    return next;
}

static uint64_t source_id(const ivm__source *source)
{
    return source->table ? source->table->id : source->view->id;
}

static int source_compare(const void *a, const void *b)
{
    uint64_t left = source_id(a), right = source_id(b);
    return (left > right) - (left < right);
}

/* Those that are read, each once, in the order of their making. */
static ivm_status list_sources(ivm_view *view, const ivm__node *root)
{
    ivm_engine *engine = view->engine;
    uint32_t scans = scans_count(root), count = 0, tables_count = 0;
    ivm__source *sources = ivm__arena_allocate(&engine->arena, scans * sizeof *sources);
    if (!sources) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm__source *end = scans_list(root, sources);
    assert(scans > 0 && end == sources + scans);
    (void)end;
    qsort(sources, scans, sizeof *sources, source_compare);
    for (uint32_t i = 0; i < scans; i++) {
        if (count == 0 || source_id(&sources[count - 1]) != source_id(&sources[i])) {
            tables_count += sources[i].table != NULL;
            sources[count++] = sources[i];
        }
    }
    view->tables = ivm__allocate(&engine->memory, tables_count * sizeof(ivm_table *));
    view->views = ivm__allocate(&engine->memory, (count - tables_count) * sizeof(ivm_view *));
    if (!view->tables || !view->views) {
        ivm__release(&engine->memory, view->tables, tables_count * sizeof(ivm_table *));
        ivm__release(&engine->memory, view->views, (count - tables_count) * sizeof(ivm_view *));
        view->tables = NULL;
        view->views = NULL;
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (sources[i].table) {
            view->tables[view->tables_count++] = sources[i].table;
        } else {
            view->views[view->views_count++] = sources[i].view;
        }
    }
    return IVM_OK;
}

/* What all scans of a table together read of it. */
static void mark_used(const ivm__node *node, const ivm_table *table, bool *used)
{
    for (uint32_t i = 0; node->table == table && i < node->columns_count; i++) {
        if (node->needed[i]) {
            used[node->heading->columns[i]] = true;
        }
    }
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        mark_used(node->inputs[i], table, used);
    }
}

static ivm_status list_used(ivm_view *view, const ivm__node *root)
{
    ivm__memory *memory = &view->engine->memory;
    view->used = ivm__allocate_zeroed(memory, view->tables_count * sizeof *view->used);
    if (!view->used) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < view->tables_count; i++) {
        ivm__used *used = &view->used[i];
        uint32_t count = view->tables[i]->columns_count;
        used->columns = ivm__allocate_zeroed(memory, count * sizeof *used->columns);
        if (!used->columns) {
            return IVM_OUT_OF_MEMORY;
        }
        used->columns_count = used->columns_capacity = count;
        mark_used(root, view->tables[i], used->columns);
    }
    return IVM_OK;
}

/* ---- Making ---------------------------------------------------------------------------------------------------------------------- */

/* A view without anything; takes the tree, whatever the outcome. */
static ivm_status view_start(ivm_engine *engine, const char *name, ivm__node *root, ivm_view **started)
{
    ivm__memory *memory = &engine->memory;
    ivm_view *view = ivm__allocate_zeroed(memory, sizeof *view);
    ivm__planned *planned = ivm__allocate_zeroed(memory, sizeof *planned);
    char *copy = ivm__text_copy(memory, name, strlen(name));
    if (!view || !planned || !copy) {
        ivm__node_free(root, engine);
        ivm__release(memory, view, sizeof *view);
        ivm__release(memory, planned, sizeof *planned);
        ivm__release(memory, copy, strlen(name) + 1);
        return IVM_OUT_OF_MEMORY;
    }
    planned->node = root;
    planned->engine = engine;
    view->engine = engine;
    view->name = copy;
    view->planned = planned;
    view->planned_free = ivm__planned_free;
    view->program.memory = memory;
    *started = view;
    return IVM_OK;
}

ivm_status ivm__view_fill(ivm_view *view, ivm_error *error)
{
    ivm_stats stats = { 0 }; /* a view's making is no push */
    ivm__step step;
    ivm__step_init(&step, view->engine, &stats, error);
    step.initial = true;
    ivm_status status = ivm__program_run(&view->program, &step);
    if (status != IVM_OK) {
        ivm__program_undo(&view->program);
        return status;
    }
    ivm__program_commit(&view->program);
    ivm__store_commit(view->program.result); /* an empty step, so that the last push has changed nothing */
    return IVM_OK;
}

static void view_publish(ivm_view *view)
{
    view->id = ++view->engine->ids;
    for (uint32_t i = 0; i < view->tables_count; i++) {
        view->tables[i]->readers_count++;
    }
    for (uint32_t i = 0; i < view->views_count; i++) {
        view->views[i]->readers_count++;
        view->views[i]->program.result->overwrites = false;
    }
    view->program.result->overwrites = true;
    ivm__hops_publish(view);
    ivm__view_enlist(view);
    ivm__state_new(view->engine, view->published);
}

static ivm_status view_complete(ivm_view *view, ivm__index_marks *marks, ivm_error *error)
{
    ivm__node *root = view->planned->node;
    if (name_columns(view, root) != IVM_OK || list_sources(view, root) != IVM_OK || list_used(view, root) != IVM_OK ||
        ivm__indexes_mark_read(view, marks) != IVM_OK || (view->refresh == IVM_DEFERRED && ivm__pendings_make(view) != IVM_OK)) {
        return ivm__fail_memory(error);
    }
    IVM_TRY(ivm__compile(view->engine, view->name, view->planned, &view->program, error));
    view->clock = view->engine->pushes;
    return ivm__view_fill(view, error);
}

static ivm_status tell_made(const ivm_view *view, ivm_error *error)
{
    ivm__code code = { .memory = &view->engine->memory };
    if (!view->engine->journal) {
        return IVM_OK;
    }
    ivm__view_code(&code, view);
    return ivm__journal_code(view->engine, IVM__RECORD_VIEW, &code, error);
}

/* The last steps of making it; the names are judged behind an overflow of the plan. */
static ivm_status view_finish(ivm_view *view, ivm_indexes indexes, const ivm__view_saved *saved, ivm__index_marks *marks, ivm_error *error)
{
    IVM_TRY(view_complete(view, marks, error));
    IVM_TRY(check_names(view->engine, view->planned->node, error));
    IVM_TRY(ivm__transient_check(view, saved, error));
    IVM_TRY(indexes == IVM_INDEXES_EAGER ? ivm__view_prepare(view, error) : IVM_OK);
    ivm__cancel cancel = ivm__engine_cancel_of(view->engine);
    IVM_TRY(ivm__cancel_poll(&cancel, error)); /* the last point of return */
    return tell_made(view, error);
}

ivm_status ivm__view_declare(ivm_engine *engine, const char *name, const ivm_plan *plan, const ivm_view_options *options,
                             const ivm__view_saved *saved, ivm_view **view, ivm_error *error)
{
    ivm__node *root = NULL;
    ivm_view *made = NULL;
    ivm__index_marks marks = { 0 };
    IVM_TRY(ivm__name_check(engine, name, error));
    IVM_TRY(ivm__name_slots_reserve(engine) == IVM_OK ? IVM_OK : ivm__fail_memory(error));
    IVM_TRY(saved ? ivm__plan_check_saved(engine, plan, saved, &root, error) : ivm__plan_check(engine, plan, &root, error));
    if (view_start(engine, name, root, &made) != IVM_OK) {
        return ivm__fail_memory(error);
    }
    if (keep_plan(made, plan) != IVM_OK || ivm__state_make(engine, made, NULL) != IVM_OK) {
        ivm__view_free(made);
        return ivm__fail_memory(error);
    }
    if (options) {
        made->refresh = options->refresh;
        made->changed = options->changed;
        made->changed_context = options->changed_context;
    }
    ivm_status status = view_finish(made, options ? options->indexes : IVM_INDEXES_LAZY, saved, &marks, error);
    if (status != IVM_OK) {
        ivm__view_free(made);
        ivm__indexes_back(&marks);
        return status;
    }
    view_publish(made);
    *view = made;
    return IVM_OK;
}

static ivm_status builder_cause(ivm_error *error)
{
    ivm_error cause = IVM_ERROR_INIT;
    ivm__builder_cause_take(&cause);
    if (cause.status == IVM_OK) {
        return ivm__fail(error, IVM_INVALID_PLAN, "a plan is wanted");
    }
    if (error) {
        *error = cause;
    }
    return cause.status;
}

static ivm_status options_check(const ivm_view_options *options, ivm_error *error)
{
    if (!options) {
        return IVM_OK;
    }
    if (options->version > IVM_VIEW_OPTIONS_VERSION) {
        return ivm__fail_version(error, "ivm_view_create", "options", options->version, IVM_VIEW_OPTIONS_VERSION);
    }
    if ((unsigned)options->refresh > IVM_DEFERRED || (unsigned)options->indexes > IVM_INDEXES_EAGER) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "view options: refresh %d, indexes %d", (int)options->refresh, (int)options->indexes);
    }
    return IVM_OK;
}

ivm_status ivm_view_create(ivm_engine *engine, const char *name, ivm_plan *plan, const ivm_view_options *options, ivm_view **view,
                           ivm_error *error)
{
    if (!plan) {
        return builder_cause(error);
    }
    ivm__builder_cause_take(NULL); /* of a plan that was given up: not this one's */
    ivm_status status = !engine ? ivm__fail_null(error, "ivm_view_create", "engine")
                        : !view ? ivm__fail_null(error, "ivm_view_create", "view")
                                : options_check(options, error);
    status = status == IVM_OK ? ivm__engine_enter(engine, error) : status;
    if (status == IVM_OK) {
        status = ivm__view_declare(engine, name, plan, options, NULL, view, error);
        ivm__engine_settle(engine);
        ivm__engine_leave(engine);
    }
    ivm_plan_free(plan);
    return status;
}

ivm_status ivm_view_watch(ivm_view *view, ivm_view_changed changed, void *context, ivm_error *error)
{
    if (!view) {
        return ivm__fail_null(error, "ivm_view_watch", "view");
    }
    IVM_TRY(ivm__engine_enter(view->engine, error));
    view->changed = changed;
    view->changed_context = context;
    ivm__engine_leave(view->engine);
    return IVM_OK;
}

/* ---- Dropping, and what can be asked --------------------------------------------------------------------------------------------------- */

static const char *reader_of(const ivm_view *view)
{
    for (const ivm_view *other = view->engine->views; other; other = other->next) {
        for (uint32_t i = 0; i < other->views_count; i++) {
            if (other->views[i] == view) {
                return other->name;
            }
        }
    }
    return "?";
}

ivm_status ivm_view_drop(ivm_view *view, ivm_error *error)
{
    if (!view) {
        return ivm__fail_null(error, "ivm_view_drop", "view");
    }
    ivm_engine *engine = view->engine;
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm_status status = view->readers_count ? ivm__fail(error, IVM_IN_USE, "view %s is read by view %s", view->name, reader_of(view))
                                            : ivm__journal_view_drop(view, error);
    if (status != IVM_OK) {
        ivm__engine_leave(engine);
        return status;
    }
    ivm__view_delist(view);
    ivm__hops_retire(view);
    for (uint32_t i = 0; i < view->tables_count; i++) {
        assert(view->tables[i]->readers_count > 0);
        ivm_table *table = view->tables[i];
        if (--table->readers_count == 0) {
            ivm__store_indexes_drop(&table->store, table->key_index, table->whole);
        }
    }
    for (uint32_t i = 0; i < view->views_count; i++) {
        assert(view->views[i]->readers_count > 0);
        view->views[i]->program.result->overwrites = --view->views[i]->readers_count == 0;
    }
    ivm__view_free(view);
    ivm__engine_settle(engine);
    ivm__engine_leave(engine);
    return IVM_OK;
}

const char *ivm_view_name(const ivm_view *view)
{
    return view ? view->name : NULL;
}

size_t ivm_view_columns_count(const ivm_view *view)
{
    return view ? view->columns_count : 0;
}

const char *ivm_view_column_name(const ivm_view *view, size_t column)
{
    return view && column < view->columns_count ? view->columns[column].name : NULL;
}

ivm_type ivm_view_column_type(const ivm_view *view, size_t column)
{
    return view && column < view->columns_count ? view->columns[column].type : 0;
}
