/* The catalog's views as bytes and back, and what is made of the whole: the fingerprint, and what differs. See catalog_view.h. */
#include "catalog_view.h"

#include "hash.h"
#include "plan_code.h"
#include "transient.h"

/* ---- Writing ---------------------------------------------------------------------------------------------------------------------- */

static uint32_t scans_count(const ivm__node *node)
{
    uint32_t count = node->op == IVM__PLAN_SCAN && node->table;
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        count += scans_count(node->inputs[i]);
    }
    return count;
}

static void scans_code(ivm__code *code, const ivm__node *node)
{
    if (node->op == IVM__PLAN_SCAN && node->table) {
        ivm__code_number(code, node->columns_count, 4);
        for (uint32_t c = 0; c < node->columns_count; c++) {
            ivm__code_text(code, node->columns[c].name);
            ivm__code_number(code, node->columns[c].type, 4);
            ivm__code_number(code, node->heading->columns[c], 4);
        }
    }
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        scans_code(code, node->inputs[i]);
    }
}

/* The list has the latest first. */
static void hops_code(ivm__code *code, const ivm__hops *hops)
{
    if (!hops) {
        return;
    }
    hops_code(code, hops->next);
    ivm__code_number(code, hops->count, 4);
    for (uint32_t h = 0; h < hops->count; h++) {
        ivm__code_number(code, ivm__fact_ordinal(hops->hop[h].fact), 4);
    }
}

void ivm__view_code(ivm__code *code, const ivm_view *view)
{
    ivm__code_text(code, view->name);
    ivm__code_number(code, view->refresh, 1);
    ivm__code_bytes(code, view->plan, view->plan_size);
    ivm__code_number(code, scans_count(view->planned->node), 4);
    scans_code(code, view->planned->node);
    ivm__code_number(code, ivm__hops_count(view), 4);
    hops_code(code, view->hops);
}

void ivm__catalog_code(ivm__code *code, const ivm_engine *engine)
{
    uint32_t count = 0;
    ivm__tables_code(code, engine);
    ivm__facts_code(code, engine);
    for (const ivm_view *view = engine->views; view; view = view->next) {
        count++;
    }
    ivm__code_number(code, count, 4);
    for (const ivm_view *view = engine->views; view; view = view->next) {
        ivm__view_code(code, view);
    }
}

/* ---- Reading: arrays lie in the arena, texts in the bytes ----------------------------------------------------------------------------- */

static ivm_status heading_read(ivm__decode *decode, ivm__arena *arena, ivm__scan_heading *heading)
{
    uint32_t count = heading->columns_count = ivm__decode_count(decode, 13), room = count ? count : 1;
    heading->names = ivm__arena_allocate(arena, room * sizeof *heading->names);
    heading->types = ivm__arena_allocate(arena, room * sizeof *heading->types);
    heading->columns = ivm__arena_allocate(arena, room * sizeof *heading->columns);
    if (!heading->names || !heading->types || !heading->columns) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t c = 0; c < count && !decode->failed; c++) {
        heading->names[c] = ivm__decode_text(decode);
        heading->types[c] = ivm__decode_type(decode);
        heading->columns[c] = (uint32_t)ivm__decode_number(decode, 4);
    }
    return decode->failed ? IVM_CORRUPT : IVM_OK;
}

static ivm_status headings_read(ivm__decode *decode, ivm__arena *arena, ivm__view_saved *saved)
{
    uint32_t count = saved->headings_count = ivm__decode_count(decode, 17);
    saved->headings = ivm__arena_allocate(arena, (count ? count : 1) * sizeof *saved->headings);
    if (!saved->headings) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        IVM_TRY(heading_read(decode, arena, &saved->headings[i]));
    }
    return decode->failed ? IVM_CORRUPT : IVM_OK;
}

static ivm_status hop_facts_read(ivm__decode *decode, ivm_engine *engine, ivm__arena *arena, ivm__hop_facts *hop)
{
    uint32_t count = hop->count = ivm__decode_count(decode, 4);
    hop->facts = ivm__arena_allocate(arena, (count ? count : 1) * sizeof(ivm_fact *));
    if (!hop->facts) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        hop->facts[i] = ivm__fact_at(engine, (uint32_t)ivm__decode_number(decode, 4));
        if (!hop->facts[i]) {
            return IVM_CORRUPT;
        }
    }
    return decode->failed ? IVM_CORRUPT : IVM_OK;
}

static ivm_status hops_read(ivm__decode *decode, ivm_engine *engine, ivm__arena *arena, ivm__view_saved *saved)
{
    uint32_t count = saved->hops_count = ivm__decode_count(decode, 4);
    saved->hops = ivm__arena_allocate(arena, (count ? count : 1) * sizeof *saved->hops);
    if (!saved->hops) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        IVM_TRY(hop_facts_read(decode, engine, arena, &saved->hops[i]));
    }
    return decode->failed ? IVM_CORRUPT : IVM_OK;
}

static ivm_status view_read(ivm__decode *decode, ivm_engine *engine, ivm_error *cause)
{
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION };
    ivm__view_saved saved;
    ivm_plan *plan = NULL;
    ivm_view *view;
    size_t size;
    const char *name = ivm__decode_text(decode);
    options.refresh = (ivm_refresh)ivm__decode_below(decode, 1, IVM_DEFERRED + 1);
    const uint8_t *bytes = ivm__decode_bytes(decode, &size);
    IVM_TRY(decode->failed ? IVM_CORRUPT : headings_read(decode, &engine->arena, &saved));
    IVM_TRY(hops_read(decode, engine, &engine->arena, &saved));
    IVM_TRY(ivm__plan_decode(bytes, size, &plan, cause));
    ivm_status status = ivm__view_declare(engine, name, plan, &options, &saved, &view, cause);
    ivm_plan_free(plan);
    return status;
}

ivm_status ivm__view_decode(ivm__decode *decode, ivm_engine *engine, ivm_error *error)
{
    ivm_error cause = IVM_ERROR_INIT;
    ivm_status status = view_read(decode, engine, &cause);
    if (status == IVM_OK) {
        return IVM_OK;
    }
    cause.status = cause.status == IVM_OK && status == IVM_OUT_OF_MEMORY ? status : cause.status;
    return ivm__catalog_fail(&cause, "view", error);
}

static ivm_status views_decode(ivm__decode *decode, ivm_engine *engine, ivm_error *error)
{
    ivm_error cause = IVM_ERROR_INIT;
    uint32_t count = ivm__decode_count(decode, 18);
    for (uint32_t i = 0; i < count; i++) {
        IVM_TRY(ivm__view_decode(decode, engine, error));
    }
    return decode->failed ? ivm__catalog_fail(&cause, "view", error) : IVM_OK;
}

/* What was declared would be written as just these bytes. */
static ivm_status check_same(const ivm_engine *engine, const uint8_t *bytes, size_t size, ivm_error *error)
{
    ivm__code code = { .memory = (ivm__memory *)&engine->memory };
    ivm__catalog_code(&code, engine);
    bool failed = code.failed, same = !failed && code.size == size && memcmp(code.bytes, bytes, size) == 0;
    ivm__code_deinit(&code);
    return failed ? ivm__fail_memory(error) : same ? IVM_OK : ivm__fail(error, IVM_CORRUPT, "a catalog that no engine would write");
}

static ivm_status catalog_decode(ivm_engine *engine, const uint8_t *bytes, size_t size, ivm_error *error)
{
    ivm__decode decode = { .at = bytes, .left = size };
    IVM_TRY(ivm__tables_decode(&decode, engine, error));
    IVM_TRY(ivm__facts_decode(&decode, engine, error));
    IVM_TRY(views_decode(&decode, engine, error));
    return check_same(engine, bytes, size, error);
}

ivm_status ivm__catalog_decode(ivm_engine *engine, const uint8_t *bytes, size_t size, ivm_error *error)
{
    assert(!engine->tables && !engine->views);
    ivm_status status = catalog_decode(engine, bytes, size, error);
    if (status != IVM_OK) {
        ivm__catalog_clear(engine);
    }
    return status;
}

/* ---- Comparing ---------------------------------------------------------------------------------------------------------------------- */

/* The engine's things one by one beside those read. */
typedef struct comparison {
    ivm__code own; /* one thing */
    ivm__decode read;
    uint32_t left; /* of this kind, among those read */
    ivm_error *error;
} comparison;

static void kind_begin(comparison *it)
{
    it->left = (uint32_t)ivm__decode_number(&it->read, 4);
}

/* The thing in `own` is the next one read; else it is named. */
static ivm_status thing_compare(comparison *it, const char *what, const char *name)
{
    if (it->own.failed) {
        return ivm__fail_memory(it->error);
    }
    const uint8_t *read = it->left ? ivm__decode_raw(&it->read, it->own.size) : NULL;
    bool same = read && memcmp(read, it->own.bytes, it->own.size) == 0;
    it->own.size = 0;
    it->left--;
    return same ? IVM_OK
                : ivm__fail(it->error, IVM_INVALID_ARGUMENT, "the checkpoint is of another catalog: %s %s differs, or is not in it", what,
                            name);
}

static ivm_status kind_end(const comparison *it, const char *what)
{
    return it->left == 0
               ? IVM_OK
               : ivm__fail(it->error, IVM_INVALID_ARGUMENT, "the checkpoint is of another catalog: it has %u more %s", it->left, what);
}

static ivm_status tables_compare(comparison *it, const ivm_engine *engine)
{
    kind_begin(it);
    for (const ivm_table *table = engine->tables; table; table = table->next) {
        ivm__table_code(&it->own, table);
        IVM_TRY(thing_compare(it, "table", table->name));
    }
    return kind_end(it, "tables");
}

static ivm_status facts_compare(comparison *it, const ivm_engine *engine)
{
    kind_begin(it);
    for (const ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        ivm__fact_code(&it->own, fact);
        IVM_TRY(thing_compare(it, "the foreign key of", fact->child->name));
    }
    return kind_end(it, "foreign keys");
}

static ivm_status views_compare(comparison *it, const ivm_engine *engine)
{
    kind_begin(it);
    for (const ivm_view *view = engine->views; view; view = view->next) {
        ivm__view_code(&it->own, view);
        IVM_TRY(thing_compare(it, "view", view->name));
    }
    return kind_end(it, "views");
}

ivm_status ivm__catalog_compare(ivm_engine *engine, const uint8_t *bytes, size_t size, ivm_error *error)
{
    comparison it = { .own = { .memory = &engine->memory }, .read = { .at = bytes, .left = size }, .error = error };
    ivm_status status = tables_compare(&it, engine);
    if (status == IVM_OK) {
        status = facts_compare(&it, engine);
    }
    if (status == IVM_OK) {
        status = views_compare(&it, engine);
    }
    ivm__code_deinit(&it.own);
    if (status == IVM_OK && it.read.left) {
        return ivm__fail(error, IVM_CORRUPT, "the catalog has more bytes than it says");
    }
    return status;
}

uint64_t ivm__catalog_fingerprint(const uint8_t *bytes, size_t size)
{
    return ivm__hash_bytes(bytes, size, 0);
}
