/* Restoring: an engine made from what ivm_checkpoint() wrote, all of it or nothing.
 *
 *     head, POSITION, CATALOG read whole -> the engine has this catalog, or has none and declares it
 *     every view's program compiled anew, and all other sections loaded, beside -> END is right -> settled -> exchanged for what is there -> judged
 *     as a whole -> what was there is freed; or exchanged back
 *
 * Whatever fails frees what was made, the catalog too where it was declared. Sections come in the order in which checkpoint.c writes
 * them. */
#include "catalog_view.h"
#include "ivm/checkpoint.h"
#include "loader.h"
#include "restore_swap.h"
#include "save_table.h"

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

/* The section's bytes, behind their size. Deinit them, whatever the outcome. */
static ivm_status bytes_read(ivm__block_reader *reader, ivm__section_kind kind, uint32_t size_max, ivm__bytes *bytes)
{
    uint32_t size = 0;
    *bytes = (ivm__bytes){ .memory = reader->memory };
    IVM_TRY(ivm__block_reader_begin(reader, (ivm__section){ kind, 0, 0 }));
    IVM_TRY(ivm__get_u32(&reader->feed, &size));
    if (size > size_max) {
        ivm_status status = ivm__fail(reader->feed.error, IVM_CORRUPT, "%u bytes where at most %u may be", size, size_max);
        return ivm__block_reader_place(reader, status);
    }
    IVM_TRY(ivm__bytes_read(bytes, &reader->feed, size));
    return ivm__block_reader_end(reader);
}

static ivm_status position_read(ivm__block_reader *reader, uint8_t position[IVM_POSITION_SIZE_MAX], size_t *size)
{
    ivm__bytes bytes;
    ivm_status status = bytes_read(reader, IVM__SECTION_POSITION, IVM_POSITION_SIZE_MAX, &bytes);
    if (status == IVM_OK && bytes.size) {
        memcpy(position, bytes.at, bytes.size);
    }
    *size = bytes.size;
    ivm__bytes_deinit(&bytes);
    return status;
}

/* A catalog declared from the stream is compared as well: what follows is of this one. */
static ivm_status catalog_take(restoring *it, const ivm__bytes *bytes)
{
    ivm_engine *engine = it->engine;
    if (ivm__catalog_fingerprint(bytes->at, bytes->size) != it->reader.head.fingerprint) {
        return ivm__fail(it->error, IVM_CORRUPT, "the catalog is not the one that the head tells of");
    }
    if (engine->tables || engine->views) {
        return ivm__catalog_compare(engine, bytes->at, bytes->size, it->error);
    }
    IVM_TRY(ivm__catalog_decode(engine, bytes->at, bytes->size, it->error));
    it->declared = true;
    return IVM_OK;
}

static ivm_status catalog_read(restoring *it)
{
    ivm__bytes bytes;
    ivm_status status = bytes_read(&it->reader, IVM__SECTION_CATALOG, UINT32_MAX, &bytes);
    if (status == IVM_OK) {
        status = ivm__block_reader_place(&it->reader, catalog_take(it, &bytes));
    }
    ivm__bytes_deinit(&bytes);
    return status;
}

static ivm_status state_read(restoring *it)
{
    ivm__bytes bytes;
    ivm_status status = bytes_read(&it->reader, IVM__SECTION_STATE, UINT32_MAX, &bytes);
    if (status == IVM_OK) {
        ivm__decode decode = { .at = bytes.at, .left = bytes.size };
        status = ivm__state_decode(&decode, it->engine, &it->engine->arena, &it->beside.state, it->error);
        status = ivm__block_reader_place(&it->reader, status);
    }
    ivm__bytes_deinit(&bytes);
    return status;
}

/* ---- Sections of rows --------------------------------------------------------------------------------------------------------------- */

/* What the engine's own code fails with for lack of memory is told here. */
static ivm_status section_end(restoring *it, ivm_status status)
{
    if (status == IVM_OUT_OF_MEMORY) {
        return ivm__fail_memory(it->error);
    }
    IVM_TRY(ivm__block_reader_place(&it->reader, status));
    return ivm__block_reader_end(&it->reader);
}

static ivm_status tracks_read(restoring *it)
{
    uint32_t nth = 0;
    for (const ivm_fact *fact = it->engine->facts; fact; fact = fact->next, nth++) {
        if (fact->track) {
            IVM_TRY(ivm__block_reader_begin(&it->reader, (ivm__section){ IVM__SECTION_TRACK, nth, 0 }));
            IVM_TRY(section_end(it, ivm__track_load(fact, &it->step, &it->reader.feed, &it->beside.tracks[nth])));
        }
    }
    return IVM_OK;
}

/* How the rows of a source will be laid out. */
static ivm__layout *source_layout(const restoring *it, ivm__source source)
{
    uint32_t nth = 0;
    if (source.table) {
        return source.table->store.layout;
    }
    for (const ivm_view *view = it->engine->views; view != source.view; view = view->next) {
        nth++;
    }
    return it->beside.views[nth].program.result->layout;
}

static ivm_status pending_read(restoring *it)
{
    uint32_t nth = 0;
    for (const ivm_view *view = it->engine->views; view; view = view->next, nth++) {
        for (uint32_t i = 0; i < ivm__pendings_count(view); i++) {
            ivm__pending *made = &it->beside.views[nth].pending[i];
            ivm__layout *like = source_layout(it, view->pending[i].source);
            IVM_TRY(ivm__block_reader_begin(&it->reader, (ivm__section){ IVM__SECTION_PENDING, nth, i }));
            IVM_TRY(section_end(it, ivm__pending_load(like, &it->step, &it->reader.feed, made)));
        }
    }
    return IVM_OK;
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
    for (const ivm_table *table = it->engine->tables; table; table = table->next, nth++) {
        uint32_t count = late_list(it, table, late);
        IVM_TRY(ivm__block_reader_begin(&it->reader, (ivm__section){ IVM__SECTION_ROWS, nth, 0 }));
        IVM_TRY(section_end(it, ivm__table_load(table, &it->step, &it->reader.feed, late, count, &it->beside.tables[nth])));
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
        IVM_TRY(status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(it->error) : status);
    }
    return IVM_OK;
}

static ivm_status settle(restoring *it)
{
    for (uint32_t i = 0; i < it->views_count; i++) {
        ivm_status status = ivm__program_settle(&it->beside.views[i].program, &it->step, i);
        IVM_TRY(status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(it->error) : status);
    }
    return IVM_OK;
}

/* ---- The call -------------------------------------------------------------------------------------------------------------------------- */

static ivm_status whole_read(restoring *it)
{
    size_t size;
    uint8_t position[IVM_POSITION_SIZE_MAX] = { 0 };
    if (it->reader.head.form != IVM__FORM_WHOLE) {
        return ivm__fail(it->error, IVM_UNSUPPORTED, "a checkpoint of partitions: this version restores whole ones alone");
    }
    IVM_TRY(position_read(&it->reader, position, &size));
    IVM_TRY(catalog_read(it));
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
    if (status == IVM_OK) {
        status = whole_read(&it);
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
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_restore: engine and a function that reads are wanted");
    }
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm_status status = restore(engine, read, context, error);
    ivm__engine_settle(engine);
    ivm__engine_leave(engine);
    return status;
}

ivm_status ivm_checkpoint_inspect(ivm_read read, void *context, ivm_checkpoint_info *info, ivm_error *error)
{
    if (!read || !info || info->version > IVM_CHECKPOINT_INFO_VERSION) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_checkpoint_inspect: a function that reads and info of version %u are wanted",
                         IVM_CHECKPOINT_INFO_VERSION);
    }
    ivm__memory memory;
    ivm__block_reader reader;
    ivm_checkpoint_info found = { .version = info->version, .format = IVM__STREAM_FORMAT };
    ivm__memory_init(&memory, &(ivm_allocator){ 0 });
    ivm_status status = ivm__block_reader_init(&reader, &memory, read, context, error);
    if (status == IVM_OK) {
        status = position_read(&reader, found.position, &found.position_size);
    }
    if (status == IVM_OK) {
        found.compressed = reader.head.compressed;
        found.fingerprint = reader.head.fingerprint;
        *info = found;
    }
    ivm__block_reader_deinit(&reader);
    return status;
}
