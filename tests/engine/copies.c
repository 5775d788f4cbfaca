/* Views by hand, without a plan. */
#include "copies.h"

#include "index.h"
#include "weights.h"

typedef struct copies {
    ivm__operator head;
    ivm_engine *engine;
    ivm__source sources[COPIES_SOURCES_MAX];
    uint32_t sources_count;
    uint32_t *columns; /* of the sources as they are compiled for */
    uint32_t columns_count;
    ivm__layout *layout;
    ivm__zset rows;
    ivm__zset held[COPIES_SOURCES_MAX]; /* what each source is taken to hold */
    bool fails;
    copies_seen seen;
} copies;

static const ivm__operator_class copies_class;

static void wrong(copies *it, const char *what)
{
    it->seen.wrong = it->seen.wrong ? it->seen.wrong : what;
}

/* ---- Sources as they are read -------------------------------------------------------------------------------------------------------- */

static ivm_status add_store(copies *it, ivm__zset *to, const ivm__store *store, ivm__source source, ivm__reading reading, int sign)
{
    ivm__arena *scratch = &it->engine->scratch;
    for (uint32_t next = 0;;) {
        ivm__arena_mark mark = ivm__arena_here(scratch);
        ivm__chunk *chunk;
        IVM_TRY(ivm__store_chunk(store, scratch, reading, &next, &chunk));
        if (!chunk) {
            return IVM_OK;
        }
        bool own = !ivm__source_is(source);
        chunk = own ? chunk : ivm__source_chunk(source, scratch, chunk);
        if (!chunk) {
            return IVM_OUT_OF_MEMORY;
        }
        IVM_TRY(ivm__zset_add(to, scratch, chunk, own ? NULL : it->columns, sign));
        ivm__arena_back(scratch, mark);
    }
}

/* The same rows through an index over the first column, made while the source may be laid over. */
static ivm_status add_probed(copies *it, ivm__zset *to, ivm__source source, ivm__reading reading)
{
    ivm__store *store = ivm__source_store(source);
    uint32_t column = ivm__source_column(source, it->columns[0]), next = 0;
    ivm__index *index;
    IVM_TRY(ivm__store_index(store, &column, 1, false, &index));
    if (ivm__index_validate(index)) {
        wrong(it, ivm__index_validate(index));
    }
    for (uint32_t end = store->rows_end; next < end; next++) {
        const uint8_t *at = ivm__store_row(store, next);
        if (ivm__row_header_of(at) == 0) {
            continue;
        }
        uint64_t words[2] = { ivm__row_word(store->layout, at, column), ivm__row_is_null(store->layout, at, column) };
        uint64_t hash = ivm__hash_words(words, index->words_count, store->seed);
        bool met = false;
        uint32_t walk = 0;
        for (ivm__row_id row; (row = ivm__index_find(index, words, hash, &walk)) != IVM__ROW_NONE;) {
            met |= row == next;
        }
        if (!met) {
            wrong(it, "a row that its index does not find");
        }
    }
    return add_store(it, to, store, source, reading, 1);
}

static bool is_nothing(const ivm__store *store)
{
    ivm__row_id row;
    ivm__weight weight;
    uint32_t next = 0;
    return ivm__store_scan(store, IVM__READ_CUR, &next, 1, &row, &weight) == 0;
}

/* Compares a source with what it is taken to hold. */
static ivm_status compare(copies *it, uint32_t nth, ivm__reading reading, const char *what)
{
    ivm__zset sum;
    IVM_TRY(ivm__zset_init(&sum, &it->engine->memory, &it->engine->texts, it->engine->seed, it->layout));
    ivm_status status = add_probed(it, &sum, it->sources[nth], reading);
    if (status == IVM_OK) {
        status = add_store(it, &sum, &it->held[nth].store, (ivm__source){ 0 }, reading, -1);
    }
    if (status == IVM_OK && !is_nothing(&sum.store)) {
        wrong(it, what);
    }
    ivm__zset_deinit(&sum);
    return status;
}

/* ---- A step ---------------------------------------------------------------------------------------------------------------------------- */

static ivm_status take_delta(copies *it, ivm__step *step, uint32_t nth)
{
    uint64_t rows = 0, negative = 0;
    for (ivm__delta_walk walk = { 0 };;) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm__chunk *chunk;
        IVM_TRY(ivm__source_delta_next(step, it->sources[nth], &walk, &chunk));
        if (!chunk) {
            break;
        }
        rows += chunk->rows_count;
        for (uint32_t i = 0; i < chunk->rows_count; i++) {
            negative += ivm__chunk_weight(chunk, i) < 0;
            if (ivm__chunk_weight(chunk, i) == 0) {
                wrong(it, "a delta's row of weight 0");
            }
        }
        IVM_TRY(ivm__zset_add(&it->held[nth], step->scratch, chunk, it->columns, 1));
        IVM_TRY(ivm__zset_add(&it->rows, step->scratch, chunk, it->columns, 1));
        ivm__arena_back(step->scratch, mark);
    }
    ivm_shape shape = rows == 0 ? IVM_UNCHANGED : negative ? IVM_MIXED : IVM_INSERT_ONLY;
    it->seen.delta_rows[nth] = rows;
    it->seen.shape[nth] = ivm__source_delta_shape(step, it->sources[nth]);
    if (rows != ivm__source_delta_rows(step, it->sources[nth]) || (!step->initial && shape != it->seen.shape[nth])) {
        wrong(it, "a delta's count or shape");
    }
    return IVM_OK;
}

static ivm_status run(copies *it, ivm__step *step)
{
    for (uint32_t i = 0; i < it->sources_count; i++) {
        if (!step->initial) {
            IVM_TRY(compare(it, i, IVM__READ_OLD, "a source as it was"));
        }
        IVM_TRY(take_delta(it, step, i));
        IVM_TRY(compare(it, i, IVM__READ_CUR, "a source as it is"));
    }
    return IVM_OK;
}

static ivm_status copies_finish(ivm__operator *self, ivm__step *step)
{
    copies *it = (copies *)self;
    it->seen.runs++;
    it->seen.refreshing = step->refreshing;
    it->seen.since = step->since;
    ivm_status status = run(it, step);
    if (status != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    if (!ivm__touched_weights_fit(&it->rows.store)) {
        return ivm__fail(step->error, IVM_OVERFLOW, "copies: a weight");
    }
    return it->fails ? ivm__fail(step->error, IVM_OVERFLOW, "copies: told to fail") : IVM_OK;
}

static void copies_commit(ivm__operator *self)
{
    copies *it = (copies *)self;
    it->seen.commits++;
    ivm__store_commit(&it->rows.store);
    for (uint32_t i = 0; i < it->sources_count; i++) {
        ivm__store_commit(&it->held[i].store);
    }
}

static void copies_undo(ivm__operator *self)
{
    copies *it = (copies *)self;
    it->seen.undos++;
    ivm__store_undo(&it->rows.store);
    for (uint32_t i = 0; i < it->sources_count; i++) {
        ivm__store_undo(&it->held[i].store);
    }
}

static void copies_free(ivm__operator *self, ivm__memory *memory)
{
    copies *it = (copies *)self;
    ivm__zset_deinit(&it->rows);
    for (uint32_t i = 0; i < COPIES_SOURCES_MAX; i++) {
        ivm__zset_deinit(&it->held[i]);
    }
    ivm__layout_release(it->layout);
    ivm__release(memory, it->columns, it->columns_count * sizeof *it->columns);
    ivm__release(memory, it, sizeof *it);
}

static const ivm__operator_class copies_class = {
    .name = "copies", .finish = copies_finish, .commit = copies_commit, .undo = copies_undo, .free = copies_free
};

/* ---- Making ---------------------------------------------------------------------------------------------------------------------------- */

static copies *of(const ivm_view *view)
{
    assert(view->program.operators_count == 1 && view->program.operators[0]->class == &copies_class);
    return (copies *)view->program.operators[0];
}

static ivm_status zsets_make(copies *it, const ivm_type *types)
{
    ivm_engine *engine = it->engine;
    IVM_TRY(ivm__layout_create(&engine->memory, types, NULL, it->columns_count, true, &it->layout));
    IVM_TRY(ivm__zset_init(&it->rows, &engine->memory, &engine->texts, engine->seed, it->layout));
    for (uint32_t i = 0; i < it->sources_count; i++) {
        IVM_TRY(ivm__zset_init(&it->held[i], &engine->memory, &engine->texts, engine->seed, it->layout));
    }
    return IVM_OK;
}

static ivm_status program_make(ivm_view *view, const ivm__source *sources, uint32_t sources_count, const uint32_t *columns)
{
    ivm__memory *memory = &view->engine->memory;
    copies *it = ivm__allocate_zeroed(memory, sizeof *it);
    if (!it) {
        return IVM_OUT_OF_MEMORY;
    }
    it->head = (ivm__operator){ .class = &copies_class, .columns_count = view->columns_count, .types = view->types };
    it->engine = view->engine;
    it->sources_count = sources_count;
    it->columns_count = view->columns_count;
    for (uint32_t i = 0; i < sources_count; i++) {
        it->sources[i] = sources[i];
        it->sources[i].heading = sources[i].table ? sources[i].table->heading : NULL;
    }
    IVM_TRY(ivm__program_add(&view->program, &it->head));
    it->columns = ivm__allocate(memory, it->columns_count * sizeof *it->columns);
    if (!it->columns) {
        return IVM_OUT_OF_MEMORY;
    }
    memcpy(it->columns, columns, it->columns_count * sizeof *columns);
    view->program.result = &it->rows.store;
    return zsets_make(it, view->types);
}

static ivm_status describe(ivm_view *view, const ivm__source *sources, uint32_t sources_count, const uint32_t *columns)
{
    ivm__memory *memory = &view->engine->memory;
    const ivm_type *types = sources[0].table ? sources[0].table->types : sources[0].view->types;
    for (uint32_t i = 0; i < sources_count; i++) {
        view->tables_count += sources[i].table != NULL;
    }
    view->views_count = sources_count - view->tables_count;
    view->types = ivm__allocate(memory, view->columns_count * sizeof *view->types);
    view->tables = ivm__allocate(memory, view->tables_count * sizeof(ivm_table *));
    view->views = ivm__allocate(memory, view->views_count * sizeof(ivm_view *));
    view->used = ivm__allocate_zeroed(memory, view->tables_count * sizeof *view->used);
    if (!view->types || !view->tables || !view->views || !view->used) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t c = 0; c < view->columns_count; c++) {
        view->types[c] = types[columns[c]];
    }
    for (uint32_t i = 0; i < sources_count; i++) {
        if (sources[i].view) {
            view->views[i - view->tables_count] = sources[i].view;
            continue;
        }
        ivm__used *used = &view->used[i];
        view->tables[i] = sources[i].table;
        used->columns = ivm__allocate_zeroed(memory, sources[i].table->columns_count * sizeof(bool));
        if (!used->columns) {
            return IVM_OUT_OF_MEMORY;
        }
        used->columns_count = used->columns_capacity = sources[i].table->columns_count;
        for (uint32_t c = 0; c < view->columns_count; c++) {
            used->columns[columns[c]] = true;
        }
    }
    return IVM_OK;
}

static ivm_status fill(ivm_view *view)
{
    ivm_stats stats = { 0 };
    ivm__step step;
    ivm__step_init(&step, view->engine, &stats, NULL);
    step.initial = true;
    ivm_status status = ivm__program_run(&view->program, &step);
    if (status != IVM_OK) {
        ivm__program_undo(&view->program);
        return status;
    }
    ivm__program_commit(&view->program);
    ivm__store_commit(view->program.result);
    view->clock = view->engine->pushes;
    return IVM_OK;
}

static void readers_count(const ivm_view *view, int by)
{
    for (uint32_t i = 0; i < view->tables_count; i++) {
        view->tables[i]->readers_count += (uint32_t)by;
    }
    for (uint32_t i = 0; i < view->views_count; i++) {
        view->views[i]->readers_count += (uint32_t)by;
    }
}

ivm_status copies_create(ivm_engine *engine, const char *name, ivm_refresh refresh, const ivm__source *sources, uint32_t sources_count,
                         const uint32_t *columns, uint32_t columns_count, ivm_view **made)
{
    ivm_view *view = ivm__allocate_zeroed(&engine->memory, sizeof *view);
    if (!view) {
        return IVM_OUT_OF_MEMORY;
    }
    view->engine = engine;
    view->refresh = refresh;
    view->columns_count = view->key_count = columns_count;
    view->program.memory = &engine->memory;
    view->name = ivm__text_copy(&engine->memory, name, strlen(name));
    ivm_status status = view->name ? describe(view, sources, sources_count, columns) : IVM_OUT_OF_MEMORY;
    if (status == IVM_OK) {
        status = program_make(view, sources, sources_count, columns);
    }
    if (status == IVM_OK && refresh == IVM_DEFERRED) {
        status = ivm__pendings_make(view);
    }
    if (status == IVM_OK) {
        status = fill(view);
    }
    ivm__engine_settle(engine);
    if (status != IVM_OK) {
        ivm__view_free(view);
        return status;
    }
    view->id = ++engine->ids;
    readers_count(view, 1);
    ivm__view_enlist(view);
    *made = view;
    return IVM_OK;
}

void copies_drop(ivm_view *view)
{
    assert(view->readers_count == 0);
    ivm__view_delist(view);
    readers_count(view, -1);
    ivm__view_free(view);
}

/* ---- Looking --------------------------------------------------------------------------------------------------------------------------- */

void copies_fail(ivm_view *view, bool fails)
{
    of(view)->fails = fails;
}

copies_seen *copies_of(const ivm_view *view)
{
    return &of(view)->seen;
}

bool copies_is_current(ivm_view *view)
{
    copies *it = of(view);
    ivm__zset sum;
    bool current = ivm__zset_init(&sum, &it->engine->memory, &it->engine->texts, it->engine->seed, it->layout) == IVM_OK;
    for (uint32_t i = 0; current && i < it->sources_count; i++) {
        current = add_store(it, &sum, ivm__source_store(it->sources[i]), it->sources[i], IVM__READ_CUR, 1) == IVM_OK;
    }
    current = current && add_store(it, &sum, &it->rows.store, (ivm__source){ 0 }, IVM__READ_CUR, -1) == IVM_OK && is_nothing(&sum.store);
    ivm__zset_deinit(&sum);
    return current;
}

static const char *store_at_rest(const ivm__store *store)
{
    if (store->laid || store->touched_count || store->rows_end != store->step_end) {
        return "a store in a step";
    }
    for (const ivm__index *index = store->indexes; index; index = index->next_of_store) {
        const char *what = index->store == store ? ivm__index_validate(index) : "an index of another store";
        if (what) {
            return what;
        }
    }
    return NULL;
}

const char *copies_at_rest(const ivm_engine *engine)
{
    const char *what = NULL;
    for (const ivm_table *table = engine->tables; table && !what; table = table->next) {
        what = store_at_rest(&table->store);
    }
    for (const ivm_view *view = engine->views; view && !what; view = view->next) {
        what = view->ran || view->telling ? "a view in a step" : store_at_rest(view->program.result);
        for (uint32_t i = 0; i < ivm__pendings_count(view) && !what; i++) {
            const ivm__pending *pending = &view->pending[i];
            what = pending->collecting ? "a pending delta in a step" : pending->apart ? store_at_rest(&pending->rows.store) : NULL;
        }
    }
    return what;
}
