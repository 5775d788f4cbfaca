/* Beside and in place: see restore_swap.h. Tables, facts and views stay the same structs, so that handles, callbacks, batches, and all that points to
 * them from within, stay good; what they hold is exchanged. */
#include "restore_swap.h"

#include "load_check.h"

/* ---- Beside --------------------------------------------------------------------------------------------------------------------------- */

static ivm_status arrays_make(ivm__beside *it)
{
    ivm__arena *arena = it->arena;
    size_t tables = 0, facts = 0, views = 0;
    for (const ivm_table *table = it->engine->tables; table; table = table->next) {
        tables++;
    }
    for (const ivm_fact *fact = it->engine->facts; fact; fact = fact->next) {
        facts++;
    }
    for (const ivm_view *view = it->engine->views; view; view = view->next) {
        views++;
    }
    ivm__table_rows *rows = ivm__arena_allocate(arena, (tables + 1) * sizeof *rows);
    struct ivm__track **tracks = ivm__arena_allocate(arena, (facts + 1) * sizeof(struct ivm__track *));
    ivm__view_beside *beside = ivm__arena_allocate(arena, (views + 1) * sizeof *beside);
    if (!rows || !tracks || !beside) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(rows, 0, tables * sizeof *rows);
    memset(tracks, 0, facts * sizeof(struct ivm__track *));
    memset(beside, 0, views * sizeof *beside);
    it->tables = rows;
    it->tracks = tracks;
    it->views = beside;
    return IVM_OK;
}

static ivm_status view_make(ivm__view_beside *it, const ivm_view *view, ivm_error *error)
{
    ivm_engine *engine = view->engine;
    it->program.memory = &engine->memory;
    it->planned = ivm__allocate_zeroed(&engine->memory, sizeof *it->planned);
    if (!it->planned || (view->pending && ivm__pendings_beside(view, &it->pending) != IVM_OK)) {
        return ivm__fail_memory(error);
    }
    it->planned->node = view->planned->node;
    it->planned->engine = engine;
    IVM_TRY(ivm__compile(engine, view->name, it->planned, &it->program, error));
    it->program.result->overwrites = view->readers_count == 0;
    return IVM_OK;
}

ivm_status ivm__beside_make(ivm__beside *it, ivm_engine *engine, ivm__arena *arena, ivm_error *error)
{
    uint32_t nth = 0;
    *it = (ivm__beside){ .engine = engine, .arena = arena };
    if (arrays_make(it) != IVM_OK) {
        return ivm__fail_memory(error);
    }
    for (const ivm_view *view = engine->views; view; view = view->next) {
        IVM_TRY(view_make(&it->views[nth++], view, error));
    }
    return IVM_OK;
}

static void view_end(ivm__view_beside *it, const ivm_view *view)
{
    ivm__memory *memory = &view->engine->memory;
    ivm__pendings_discard(view, it->pending);
    if (it->program.memory) {
        ivm__program_deinit(&it->program);
    }
    if (it->planned) {
        ivm__planned_deinit(it->planned, memory);
        ivm__release(memory, it->planned, sizeof *it->planned);
    }
}

void ivm__beside_end(ivm__beside *it)
{
    uint32_t nth = 0;
    for (const ivm_view *view = it->engine->views; it->views && view; view = view->next) {
        view_end(&it->views[nth++], view);
    }
    nth = 0;
    for (const ivm_fact *fact = it->engine->facts; it->views && fact; fact = fact->next) {
        ivm__track_discard(it->engine, it->tracks[nth++]);
    }
    nth = 0;
    for (const ivm_table *table = it->engine->tables; it->views && table; table = table->next) {
        ivm__store_deinit(&it->tables[nth++].store);
    }
    *it = (ivm__beside){ .engine = it->engine };
}

/* ---- In place ------------------------------------------------------------------------------------------------------------------------- */

/* What the view was is then beside. */
static void view_exchange(ivm__view_beside *it, ivm_view *view)
{
    ivm__view_beside was = { view->planned, view->program, view->pending };
    assert(!view->ran && !view->telling && view->planned->node == it->planned->node);
    view->planned = it->planned;
    view->program = it->program;
    view->pending = it->pending;
    *it = was;
}

void ivm__beside_exchange(ivm__beside *it)
{
    ivm_engine *engine = it->engine;
    uint32_t nth = 0;
    for (ivm_table *table = engine->tables; table; table = table->next) {
        ivm__table_exchange(table, &it->tables[nth++]);
    }
    nth = 0;
    for (ivm_view *view = engine->views; view; view = view->next) {
        view_exchange(&it->views[nth++], view);
    }
    for (ivm_view *view = engine->views; view; view = view->next) {
        ivm__pendings_place(view);
    }
    nth = 0;
    for (ivm_fact *fact = engine->facts; fact; fact = fact->next, nth++) {
        struct ivm__track *was = fact->track;
        fact->track = it->tracks[nth];
        it->tracks[nth] = was;
    }
}

ivm_status ivm__beside_check(const ivm__beside *it, ivm__step *step)
{
    uint32_t nth = 0;
    for (ivm_fact *fact = it->engine->facts; fact; fact = fact->next) {
        IVM_TRY(ivm__fact_check_loaded(step, fact));
    }
    for (const ivm_table *table = it->engine->tables; table; table = table->next, nth++) {
        if (table->transient) {
            IVM_TRY(ivm__table_check_loaded(step, table, it->state.came[nth]));
        }
    }
    nth = 0;
    for (const ivm_view *view = it->engine->views; view; view = view->next) {
        IVM_TRY(ivm__view_check_loaded(step, view, nth++));
    }
    return IVM_OK;
}

void ivm__beside_publish(const ivm__beside *it)
{
    ivm_engine *engine = it->engine;
    ivm__state_apply(engine, &it->state);
    memcpy(engine->position, it->position, sizeof engine->position);
    engine->position_size = it->position_size;
}
