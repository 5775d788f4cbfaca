/* Restores in several streams: see checkpoint.h.
 *
 *     open -> streams, in any order: rows into stores beside the tables', groups into programs beside the views' -> finish: partition_fill.c
 *
 * Sections come in the order in which partition.c writes them. A catalog that was made from the shared stream is taken out of the engine again after each
 * call, so that nobody sees it before the end. */
#include "partition_restore.h"

#include "catalog_view.h"
#include "load_partition.h"
#include "saver_stream.h"
#include "section.h"

/* One stream on its way in. */
typedef struct reading {
    ivm_restoring *restore;
    ivm_engine *engine;
    ivm_error *error;
    ivm__step step;
    ivm__block_reader reader;
} reading;

/* ---- The catalog, in the engine for a call ------------------------------------------------------------------------------------------------ */

static void catalog_exchange(ivm_restoring *it)
{
    ivm_engine *engine = it->engine;
    ivm_table *tables = engine->tables;
    ivm_fact *facts = engine->facts;
    ivm_view *views = engine->views;
    ivm__name_slots names = engine->names;
    engine->tables = it->tables;
    engine->facts = it->facts;
    engine->views = it->views;
    engine->names = it->names;
    engine->ordinals = (ivm__ordinals){ 0 };
    it->tables = tables;
    it->facts = facts;
    it->views = views;
    it->names = names;
}

static ivm_status enter(ivm_restoring *it, ivm_error *error)
{
    IVM_TRY(ivm__engine_enter_restoring(it->engine, error));
    if (it->declared) {
        catalog_exchange(it);
    }
    return IVM_OK;
}

static void leave(ivm_restoring *it)
{
    if (it->declared) {
        catalog_exchange(it);
    }
    ivm__engine_settle(it->engine);
    ivm__engine_leave(it->engine);
}

/* Gives up all that is not in place, and the engine free; the lock is held. */
static void restore_end(ivm_restoring *it, bool done)
{
    ivm_engine *engine = it->engine;
    uint32_t nth = 0;
    for (const ivm_table *table = engine->tables; it->none && table; table = table->next) {
        ivm__store_deinit(&it->none[nth++].store);
    }
    if (it->begun) {
        ivm__beside_end(&it->beside);
    }
    if (it->declared && !done) {
        ivm__catalog_clear(engine);
    }
    ivm__arena_deinit(&it->arena);
    engine->restoring = false;
    ivm__release(&engine->memory, it, sizeof *it);
    ivm__engine_settle(engine);
    ivm__engine_leave(engine);
}

/* ---- Beside -------------------------------------------------------------------------------------------------------------------------------- */

static ivm_status stores_make(reading *it)
{
    ivm_restoring *restore = it->restore;
    uint32_t nth = 0;
    for (const ivm_table *table = it->engine->tables; table; table = table->next, nth++) {
        if (table->partitioned || table->transient) {
            IVM_TRY(ivm__table_parts_begin(table, &it->step, &restore->beside.tables[nth]));
        }
        if (table->transient) {
            IVM_TRY(ivm__table_parts_begin(table, &it->step, &restore->none[nth]));
        }
    }
    return IVM_OK;
}

static ivm_status arrays_make(ivm_restoring *it)
{
    size_t tables = 0;
    for (const ivm_table *table = it->engine->tables; table; table = table->next) {
        tables++;
    }
    it->came = ivm__arena_allocate(&it->arena, tables + 1);
    it->none = ivm__arena_allocate(&it->arena, (tables + 1) * sizeof *it->none);
    if (!it->came || !it->none) {
        it->none = NULL;
        return IVM_OUT_OF_MEMORY;
    }
    memset(it->came, false, tables + 1);
    memset(it->none, 0, tables * sizeof *it->none);
    return IVM_OK;
}

static ivm_status fingerprint_take(reading *it)
{
    ivm__code code = { .memory = &it->engine->memory };
    ivm__catalog_code(&code, it->engine);
    ivm_status status = code.failed ? ivm__fail_memory(it->error) : IVM_OK;
    if (status == IVM_OK) {
        it->restore->fingerprint = ivm__catalog_fingerprint(code.bytes, code.size);
    }
    ivm__code_deinit(&code);
    return status;
}

/* The catalog is in the engine. */
static ivm_status begin(reading *it)
{
    ivm_restoring *restore = it->restore;
    if (restore->begun) {
        return IVM_OK;
    }
    IVM_TRY(fingerprint_take(it));
    IVM_TRY(ivm__frontiers_find(it->engine, &restore->arena, &restore->frontiers, it->error));
    restore->begun = true;
    IVM_TRY(ivm__beside_make(&restore->beside, it->engine, &restore->arena, it->error));
    bool made = arrays_make(restore) == IVM_OK && stores_make(it) == IVM_OK;
    return made ? IVM_OK : ivm__fail_memory(it->error);
}

/* ---- Sections ------------------------------------------------------------------------------------------------------------------------------ */

static ivm_status came_take(const reading *it, const ivm__bytes *bytes)
{
    ivm__decode decode = { .at = bytes->at, .left = bytes->size };
    uint32_t nth = 0;
    for (const ivm_table *table = it->engine->tables; table; table = table->next, nth++) {
        it->restore->came[nth] |= table->transient && ivm__decode_below(&decode, 1, 2);
    }
    return decode.failed || decode.left ? ivm__fail(it->error, IVM_CORRUPT, "a state that cannot be") : IVM_OK;
}

static ivm_status came_read(reading *it)
{
    ivm__bytes bytes;
    ivm_status status = ivm__section_read(&it->reader, IVM__SECTION_STATE, UINT32_MAX, &bytes);
    if (status == IVM_OK) {
        status = ivm__block_reader_place(&it->reader, came_take(it, &bytes));
    }
    ivm__bytes_deinit(&bytes);
    return status;
}

/* ---- Groups and rows of a view, into its program -------------------------------------------------------------------------------------------- */

typedef struct intake {
    reading *it;
    const ivm__frontier *frontier;
    ivm__operator *to;
} intake;

static ivm_status frontier_take(void *context, const ivm__chunk *chunk, ivm__feed *from)
{
    const intake *in = context;
    const uint64_t *cells = chunk->columns[in->frontier->column].cells;
    const uint8_t *nulls = chunk->columns[in->frontier->column].nulls;
    uint32_t partition = in->it->reader.head.partition;
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        if ((nulls && nulls[i]) || cells[i] != partition) {
            return ivm__fail(from->error, IVM_CORRUPT, "view %s: a row of another partition in the stream of partition %u",
                             in->frontier->view->name, partition);
        }
    }
    return in->to->class->load(in->to, &in->it->step, 0, chunk, from);
}

static ivm_status frontier_read(reading *it, const ivm__frontier *frontier)
{
    const ivm__program *program = &it->restore->beside.views[frontier->view_ordinal].program;
    intake in = { it, frontier, ivm__frontier_operator(frontier, program) };
    ivm__frontier_holding held = ivm__frontier_holds(in.to);
    ivm__row_shape shape = ivm__holding_shape(held.store->layout, held.columns_count);
    IVM_TRY(ivm__block_reader_begin(&it->reader, ivm__holding_section(frontier->view_ordinal, frontier->place, 0)));
    return ivm__section_end(&it->reader, ivm__rows_load(&it->reader.feed, it->step.scratch, it->step.texts, &shape, frontier_take, &in));
}

/* ---- Streams ---------------------------------------------------------------------------------------------------------------------------------- */

static ivm_status shared_read(reading *it, const uint8_t *position, size_t position_size)
{
    ivm_restoring *restore = it->restore;
    uint32_t nth = 0;
    if (restore->shared) {
        return ivm__fail(it->error, IVM_ALREADY_EXISTS, "the shared stream was read before");
    }
    IVM_TRY(ivm__section_catalog_read(&it->reader, it->engine, &restore->declared));
    IVM_TRY(begin(it));
    IVM_TRY(came_read(it));
    for (const ivm_table *table = it->engine->tables; table; table = table->next, nth++) {
        if (!table->partitioned && !table->transient) {
            IVM_TRY(ivm__block_reader_begin(&it->reader, (ivm__section){ IVM__SECTION_ROWS, nth, 0 }));
            IVM_TRY(
                ivm__section_end(&it->reader, ivm__table_load(table, &it->step, &it->reader.feed, NULL, 0, &restore->beside.tables[nth])));
        }
    }
    IVM_TRY(ivm__block_reader_finish(&it->reader));
    memcpy(restore->beside.position, position, position_size);
    restore->beside.position_size = (uint32_t)position_size;
    restore->shared = true;
    return IVM_OK;
}

static ivm_status partition_check(reading *it)
{
    const ivm_restoring *restore = it->restore;
    const ivm__head *head = &it->reader.head;
    if (head->partition >= IVM_PARTITIONS_MAX) {
        return ivm__fail(it->error, IVM_CORRUPT, "partition %u: there are %u", head->partition, IVM_PARTITIONS_MAX);
    }
    if (!it->engine->tables && !it->engine->views) {
        return ivm__fail(it->error, IVM_INVALID_ARGUMENT, "partition %u: the engine has no catalog yet: the shared stream comes first",
                         head->partition);
    }
    IVM_TRY(begin(it));
    if (head->fingerprint != restore->fingerprint) {
        return ivm__fail(it->error, IVM_INVALID_ARGUMENT, "partition %u is of another catalog: fingerprint %016llx, not %016llx",
                         head->partition, (unsigned long long)head->fingerprint, (unsigned long long)restore->fingerprint);
    }
    if (restore->read[head->partition / 8] >> head->partition % 8 & 1) {
        return ivm__fail(it->error, IVM_ALREADY_EXISTS, "partition %u was read before", head->partition);
    }
    return IVM_OK;
}

static ivm_status partition_read(reading *it)
{
    ivm_restoring *restore = it->restore;
    uint32_t partition = it->reader.head.partition, nth = 0;
    IVM_TRY(partition_check(it));
    IVM_TRY(came_read(it));
    for (uint32_t i = 0; i < restore->frontiers.count; i++) {
        IVM_TRY(frontier_read(it, &restore->frontiers.list[i]));
    }
    for (const ivm_table *table = it->engine->tables; table; table = table->next, nth++) {
        if (table->partitioned) {
            ivm__table_rows *rows = &restore->beside.tables[nth];
            IVM_TRY(ivm__block_reader_begin(&it->reader, (ivm__section){ IVM__SECTION_ROWS, nth, 0 }));
            IVM_TRY(ivm__section_end(&it->reader, ivm__table_part_load(table, &it->step, &it->reader.feed, partition, rows)));
        }
    }
    IVM_TRY(ivm__block_reader_finish(&it->reader));
    restore->read[partition / 8] |= (uint8_t)(1 << partition % 8);
    return IVM_OK;
}

static ivm_status stream_read(reading *it, ivm_read read, void *context)
{
    size_t size = 0;
    uint8_t position[IVM_POSITION_SIZE_MAX] = { 0 };
    IVM_TRY(ivm__block_reader_init(&it->reader, &it->engine->memory, read, context, it->error));
    it->reader.cancel = it->step.cancel;
    if (it->reader.head.form == IVM__FORM_WHOLE) {
        return ivm__fail(it->error, IVM_INVALID_ARGUMENT, "a checkpoint of a whole engine: ivm_restore() takes it");
    }
    IVM_TRY(ivm__section_position_read(&it->reader, position, &size));
    return it->reader.head.form == IVM__FORM_SHARED ? shared_read(it, position, size) : partition_read(it);
}

/* ---- The calls -------------------------------------------------------------------------------------------------------------------------------- */

static ivm_status restore_make(ivm_engine *engine, ivm_restoring **restore, ivm_error *error)
{
    if (engine->journal) {
        return ivm__fail(error, IVM_UNSUPPORTED, "ivm_restore_open: the engine is durable, and is what its directory says");
    }
    ivm_restoring *made = ivm__allocate_zeroed(&engine->memory, sizeof *made);
    if (!made) {
        return ivm__fail_memory(error);
    }
    made->engine = engine;
    ivm__arena_init(&made->arena, &engine->memory);
    engine->restoring = true;
    *restore = made;
    return IVM_OK;
}

ivm_status ivm_restore_open(ivm_engine *engine, ivm_restoring **restore, ivm_error *error)
{
    if (!engine || !restore) {
        return ivm__fail_null(error, "ivm_restore_open", engine ? "restore" : "engine");
    }
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm_status status = restore_make(engine, restore, error);
    ivm__engine_leave(engine);
    return status;
}

ivm_status ivm_restore_read(ivm_restoring *restore, ivm_read read, void *context, ivm_error *error)
{
    if (!restore || !read) {
        return ivm__fail_null(error, "ivm_restore_read", restore ? "read" : "restore");
    }
    IVM_TRY(enter(restore, error));
    ivm_stats ignored = { 0 };
    ivm_status status;
    reading it = { .restore = restore, .engine = restore->engine, .error = error };
    ivm__step_init(&it.step, restore->engine, &ignored, error);
    if (restore->failed) {
        status = ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_restore_read: a stream before this one failed, and with it the restore");
    } else {
        status = stream_read(&it, read, context);
        restore->failed = status != IVM_OK;
    }
    ivm__block_reader_deinit(&it.reader);
    leave(restore);
    return status;
}

ivm_status ivm_restore_finish(ivm_restoring *restore, ivm_error *error)
{
    if (!restore) {
        return ivm__fail_null(error, "ivm_restore_finish", "restore");
    }
    IVM_TRY(enter(restore, error));
    ivm_stats ignored = { 0 };
    ivm__step step;
    ivm_status status;
    ivm__step_init(&step, restore->engine, &ignored, error);
    if (restore->failed) {
        status = ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_restore_finish: a stream failed, and with it the restore");
    } else if (!restore->shared) {
        status = ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_restore_finish: the shared stream was not read");
    } else {
        status = ivm__partitions_fill(restore, &step);
    }
    restore_end(restore, status == IVM_OK);
    return status;
}

ivm_status ivm_restore_close(ivm_restoring *restore, ivm_error *error)
{
    if (!restore) {
        return IVM_OK;
    }
    IVM_TRY(enter(restore, error));
    restore_end(restore, false);
    return IVM_OK;
}
