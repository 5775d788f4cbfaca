/* Restoring: an engine made from what ivm_checkpoint() wrote, all of it or nothing.
 *
 *     head, POSITION, CATALOG read whole -> the engine has this catalog, or has none and declares it
 *     every view's program compiled anew, and all other sections loaded, beside -> END is right -> settled -> exchanged for what is there -> judged
 *     as a whole -> what was there is freed; or exchanged back
 *
 * Whatever fails frees what was made, the catalog too where it was declared. Sections come in the order in which checkpoint.c writes
 * them. */
#include "ivm/checkpoint.h"
#include "loader.h"
#include "restore_swap.h"
#include "section.h"

typedef struct restoring {
    ivm_engine *engine;
    ivm_error *error;
    ivm__step step;
    ivm__block_reader reader;
    ivm__beside beside;
    ivm__program_loader *loaders; /* by view */
    uint32_t views_count;
    bool declared; /* the catalog was made for it */
} restoring;

/* ---- Sections of bytes -------------------------------------------------------------------------------------------------------------- */

static ivm_status state_read(restoring *it)
{
    ivm__bytes bytes;
    ivm_status status = ivm__section_read(&it->reader, IVM__SECTION_STATE, UINT32_MAX, &bytes);
    if (status == IVM_OK) {
        ivm__decode decode = { .at = bytes.at, .left = bytes.size };
        status = ivm__state_decode(&decode, it->engine, &it->engine->arena, &it->beside.state, it->error);
        status = ivm__block_reader_place(&it->reader, status);
    }
    ivm__bytes_deinit(&bytes);
    return status;
}

/* ---- Sections of rows --------------------------------------------------------------------------------------------------------------- */

static ivm_status tracks_read(restoring *it)
{
    uint32_t nth = 0;
    for (const ivm_fact *fact = it->engine->facts; fact; fact = fact->next, nth++) {
        if (fact->track) {
            IVM_TRY(ivm__block_reader_begin(&it->reader, (ivm__section){ IVM__SECTION_TRACK, nth, 0 }));
            IVM_TRY(ivm__section_end(&it->reader, ivm__track_load(fact, &it->step, &it->reader.feed, &it->beside.tracks[nth])));
        }
    }
    return IVM_OK;
}

/* How the rows of a source will be laid out. */
static ivm__layout *source_layout(const restoring *it, ivm__source source)
{
    return source.table ? source.table->store.layout : it->beside.views[ivm__view_ordinal(source.view)].program.result->layout;
}

static ivm_status pending_read(restoring *it)
{
    uint32_t nth = 0;
    for (const ivm_view *view = it->engine->views; view; view = view->next, nth++) {
        for (uint32_t i = 0; i < ivm__pendings_count(view); i++) {
            ivm__pending *made = &it->beside.views[nth].pending[i];
            ivm__layout *like = source_layout(it, view->pending[i].source);
            IVM_TRY(ivm__block_reader_begin(&it->reader, (ivm__section){ IVM__SECTION_PENDING, nth, i }));
            IVM_TRY(ivm__section_end(&it->reader, ivm__pending_load(like, &it->step, &it->reader.feed, made)));
        }
    }
    return IVM_OK;
}

/* Whether anything that is pending of a table stands apart from it. */
static bool late_any(const restoring *it)
{
    uint32_t nth = 0;
    bool any = false;
    for (const ivm_view *view = it->engine->views; view && !any; view = view->next, nth++) {
        for (uint32_t i = 0; i < ivm__pendings_count(view); i++) {
            any |= it->beside.views[nth].pending[i].source.table && it->beside.views[nth].pending[i].apart;
        }
    }
    return any;
}

/* What is pending of the table; there is room for each view's. Returns how many. */
static uint32_t late_list(const restoring *it, const ivm_table *table, ivm__pending **late)
{
    uint32_t nth = 0, count = 0;
    for (const ivm_view *view = it->engine->views; view; view = view->next, nth++) {
        for (uint32_t i = 0; i < ivm__pendings_count(view); i++) {
            ivm__pending *pending = &it->beside.views[nth].pending[i];
            if (pending->source.table == table && pending->apart) {
                late[count++] = pending;
            }
        }
    }
    return count;
}

static ivm_status tables_read(restoring *it)
{
    uint32_t nth = 0;
    ivm__pending **late = ivm__arena_allocate(&it->engine->arena, (it->views_count + 1) * sizeof(ivm__pending *));
    if (!late) {
        return ivm__fail_memory(it->error);
    }
    bool any = late_any(it);
    for (const ivm_table *table = it->engine->tables; table; table = table->next, nth++) {
        uint32_t count = any ? late_list(it, table, late) : 0;
        IVM_TRY(ivm__block_reader_begin(&it->reader, (ivm__section){ IVM__SECTION_ROWS, nth, 0 }));
        IVM_TRY(ivm__section_end(&it->reader, ivm__table_load(table, &it->step, &it->reader.feed, late, count, &it->beside.tables[nth])));
    }
    return IVM_OK;
}

/* ---- What views keep ---------------------------------------------------------------------------------------------------------------- */

static ivm_status loaders_make(restoring *it)
{
    uint32_t count = 0;
    for (const ivm_view *view = it->engine->views; view; view = view->next) {
        count++;
    }
    it->loaders = ivm__arena_allocate(&it->engine->arena, (count + 1) * sizeof *it->loaders);
    if (!it->loaders) {
        return ivm__fail_memory(it->error);
    }
    for (uint32_t i = 0; i < count; i++) {
        it->views_count = i + 1;
        if (ivm__program_loader_init(&it->loaders[i], &it->engine->memory, &it->beside.views[i].program) != IVM_OK) {
            return ivm__fail_memory(it->error);
        }
    }
    return IVM_OK;
}

static ivm_status kept_read(restoring *it, ivm__holding_kind kind)
{
    for (uint32_t i = 0; i < it->views_count; i++) {
        ivm_status status = ivm__program_loader_load(&it->loaders[i], &it->step, &it->reader, i, kind);
        IVM_TRY(ivm__step_status(&it->step, status));
    }
    return IVM_OK;
}

static ivm_status settle(restoring *it)
{
    for (uint32_t i = 0; i < it->views_count; i++) {
        ivm_status status = ivm__program_settle(&it->beside.views[i].program, &it->step, i);
        IVM_TRY(ivm__step_status(&it->step, status));
    }
    return IVM_OK;
}

/* ---- The call -------------------------------------------------------------------------------------------------------------------------- */

static ivm_status whole_read(restoring *it)
{
    size_t size;
    uint8_t position[IVM_POSITION_SIZE_MAX] = { 0 };
    if (it->reader.head.form != IVM__FORM_WHOLE) {
        return ivm__fail(it->error, IVM_INVALID_ARGUMENT, "a checkpoint by partitions: ivm_restore_open() and ivm_restore_read() take it");
    }
    IVM_TRY(ivm__section_position_read(&it->reader, position, &size));
    IVM_TRY(ivm__section_catalog_read(&it->reader, it->engine, &it->declared));
    IVM_TRY(ivm__beside_make(&it->beside, it->engine, &it->engine->arena, it->error));
    memcpy(it->beside.position, position, sizeof position);
    it->beside.position_size = (uint32_t)size;
    IVM_TRY(loaders_make(it));
    IVM_TRY(state_read(it));
    IVM_TRY(tracks_read(it));
    IVM_TRY(kept_read(it, IVM__HOLDING_AT_ONCE));
    IVM_TRY(pending_read(it));
    IVM_TRY(tables_read(it));
    IVM_TRY(kept_read(it, IVM__HOLDING_LATER));
    IVM_TRY(ivm__block_reader_finish(&it->reader));
    return settle(it);
}

static ivm_status put_in_place(restoring *it)
{
    ivm__beside_exchange(&it->beside);
    ivm_status status = ivm__beside_check(&it->beside, &it->step);
    if (status == IVM_OK) {
        ivm__beside_publish(&it->beside);
    } else {
        ivm__beside_exchange(&it->beside);
    }
    return status;
}

static ivm_status restore(ivm_engine *engine, ivm_read read, void *context, ivm_error *error)
{
    ivm_stats ignored = { 0 };
    restoring it = { .engine = engine, .error = error, .beside = { .engine = engine } };
    ivm__step_init(&it.step, engine, &ignored, error);
    ivm_status status = ivm__block_reader_init(&it.reader, &engine->memory, read, context, error);
    it.reader.cancel = it.step.cancel;
    if (status == IVM_OK) {
        status = whole_read(&it);
    }
    if (status == IVM_OK) {
        status = ivm__step_poll(&it.step); /* the last point of return */
    }
    if (status == IVM_OK) {
        status = put_in_place(&it);
    }
    for (uint32_t i = 0; i < it.views_count; i++) {
        ivm__program_loader_deinit(&it.loaders[i]);
    }
    ivm__beside_end(&it.beside);
    ivm__block_reader_deinit(&it.reader);
    if (status != IVM_OK && it.declared) {
        ivm__catalog_clear(engine);
    }
    return status;
}

ivm_status ivm_restore(ivm_engine *engine, ivm_read read, void *context, ivm_error *error)
{
    if (!engine || !read) {
        return ivm__fail_null(error, "ivm_restore", engine ? "read" : "engine");
    }
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm_status status = engine->journal
                            ? ivm__fail(error, IVM_UNSUPPORTED, "ivm_restore: the engine is durable, and is what its directory says")
                            : restore(engine, read, context, error);
    ivm__engine_settle(engine);
    ivm__engine_leave(engine);
    return status;
}

ivm_status ivm_checkpoint_inspect(ivm_read read, void *context, ivm_checkpoint_info *info, ivm_error *error)
{
    if (!read || !info) {
        return ivm__fail_null(error, "ivm_checkpoint_inspect", read ? "info" : "read");
    }
    if (info->version > IVM_CHECKPOINT_INFO_VERSION) {
        return ivm__fail_version(error, "ivm_checkpoint_inspect", "info", info->version, IVM_CHECKPOINT_INFO_VERSION);
    }
    ivm__memory memory;
    ivm__block_reader reader;
    ivm_checkpoint_info found = { .version = info->version, .format = IVM__STREAM_FORMAT };
    ivm__memory_init(&memory, &(ivm_allocator){ 0 });
    ivm_status status = ivm__block_reader_init(&reader, &memory, read, context, error);
    if (status == IVM_OK) {
        status = ivm__section_position_read(&reader, found.position, &found.position_size);
    }
    if (status == IVM_OK) {
        static const ivm_checkpoint_form forms[] = { [IVM__FORM_WHOLE] = IVM_CHECKPOINT_WHOLE,
                                                     [IVM__FORM_SHARED] = IVM_CHECKPOINT_SHARED,
                                                     [IVM__FORM_PARTITION] = IVM_CHECKPOINT_PARTITION };
        found.form = forms[reader.head.form];
        found.partition = reader.head.partition;
        found.compressed = reader.head.compressed;
        found.fingerprint = reader.head.fingerprint;
        *info = found;
    }
    ivm__block_reader_deinit(&reader);
    return status;
}
