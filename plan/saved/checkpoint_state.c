/* The state of an engine in normal form: see checkpoint_state.h. Cost: facts times deferred views. */
#include "checkpoint_state.h"

static uint32_t facts_count(const ivm_engine *engine)
{
    uint32_t count = 0;
    for (const ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        count++;
    }
    return count;
}

/* ---- Writing ---------------------------------------------------------------------------------------------------------------------- */

static uint32_t clock_of(const ivm_view *view)
{
    uint32_t count = 0;
    if (view->clock == view->engine->pushes) {
        return facts_count(view->engine) + 1;
    }
    for (const ivm_fact *fact = view->engine->facts; fact; fact = fact->next) {
        count += fact->since <= view->clock;
    }
    return count;
}

/* The first deferred view; NULL: there is none. */
static const ivm_view *deferred_first(const ivm_engine *engine)
{
    const ivm_view *view = engine->views;
    while (view && view->refresh != IVM_DEFERRED) {
        view = view->next;
    }
    return view;
}

/* `none`: what it is where no deferred view is older. */
static uint32_t since_of(const ivm_fact *fact, uint32_t none, const ivm_view *deferred)
{
    uint32_t since = none;
    for (const ivm_view *view = deferred; view; view = view->next) {
        if (view->refresh == IVM_DEFERRED && fact->since <= view->clock) {
            uint32_t clock = clock_of(view);
            since = clock < since ? clock : since;
        }
    }
    return since;
}

void ivm__state_code(ivm__code *code, const ivm_engine *engine)
{
    uint32_t none = facts_count(engine) + 1;
    const ivm_view *deferred = deferred_first(engine);
    ivm__code_number(code, none, 4);
    for (const ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        ivm__code_number(code, since_of(fact, none, deferred), 4);
    }
    for (const ivm_view *view = engine->views; view; view = view->next) {
        if (view->refresh == IVM_DEFERRED) {
            ivm__code_number(code, clock_of(view), 4);
        }
    }
    for (const ivm_table *table = engine->tables; table; table = table->next) {
        if (table->transient) {
            ivm__code_number(code, table->came, 1);
        }
    }
}

/* ---- Reading ---------------------------------------------------------------------------------------------------------------------- */

static ivm_status arrays_make(const ivm_engine *engine, ivm__arena *arena, ivm__state *state)
{
    uint32_t views = 0, tables = 0;
    for (const ivm_view *view = engine->views; view; view = view->next) {
        views++;
    }
    for (const ivm_table *table = engine->tables; table; table = table->next) {
        tables++;
    }
    state->since = ivm__arena_allocate(arena, (facts_count(engine) + 1) * sizeof *state->since);
    state->clock = ivm__arena_allocate(arena, (views + 1) * sizeof *state->clock);
    state->came = ivm__arena_allocate(arena, tables + 1);
    return state->since && state->clock && state->came ? IVM_OK : IVM_OUT_OF_MEMORY;
}

/* Whether it is what would be written of it. */
static bool is_normal(const ivm__state *state, const ivm_engine *engine)
{
    uint32_t facts = facts_count(engine), nth = 0;
    bool normal = true;
    for (const ivm_view *view = engine->views; view; view = view->next, nth++) {
        uint32_t count = 0;
        for (uint32_t f = 0; view->refresh == IVM_DEFERRED && f < facts; f++) {
            count += state->since[f] <= state->clock[nth];
        }
        normal &= view->refresh != IVM_DEFERRED || state->clock[nth] == facts + 1 || state->clock[nth] == count;
    }
    const ivm_view *views = deferred_first(engine) ? engine->views : NULL;
    for (uint32_t f = 0; f < facts; f++) {
        uint32_t least = facts + 1;
        nth = 0;
        for (const ivm_view *view = views; view; view = view->next, nth++) {
            bool uses = view->refresh == IVM_DEFERRED && state->since[f] <= state->clock[nth];
            least = uses && state->clock[nth] < least ? state->clock[nth] : least;
        }
        normal &= state->since[f] == least;
    }
    return normal;
}

ivm_status ivm__state_decode(ivm__decode *decode, const ivm_engine *engine, ivm__arena *arena, ivm__state *state, ivm_error *error)
{
    uint32_t limit = facts_count(engine) + 2, at = 0;
    if (arrays_make(engine, arena, state) != IVM_OK) {
        return ivm__fail_memory(error);
    }
    state->pushes = (uint32_t)ivm__decode_number(decode, 4);
    for (const ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        state->since[at++] = (uint32_t)ivm__decode_below(decode, 4, limit);
    }
    at = 0;
    for (const ivm_view *view = engine->views; view; view = view->next) {
        state->clock[at++] = view->refresh == IVM_DEFERRED ? (uint32_t)ivm__decode_below(decode, 4, limit) : 0;
    }
    at = 0;
    for (const ivm_table *table = engine->tables; table; table = table->next) {
        state->came[at++] = table->transient && ivm__decode_below(decode, 1, 2);
    }
    if (decode->failed || decode->left || state->pushes != limit - 1 || !is_normal(state, engine)) {
        return ivm__fail(error, IVM_CORRUPT, "a state that cannot be");
    }
    return IVM_OK;
}

void ivm__state_apply(ivm_engine *engine, const ivm__state *state)
{
    uint32_t at = 0;
    for (ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        fact->since = state->since[at++];
    }
    at = 0;
    for (ivm_view *view = engine->views; view; view = view->next, at++) {
        view->clock = view->refresh == IVM_DEFERRED ? state->clock[at] : view->clock;
    }
    at = 0;
    for (ivm_table *table = engine->tables; table; table = table->next) {
        table->came = state->came[at++];
    }
    engine->pushes = state->pushes;
    engine->facts_version++;
}
