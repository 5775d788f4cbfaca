/* Checkpoints: an engine written as a framed stream.
 *
 *     under the lock     POSITION, CATALOG, STATE, TRACK a fact, KEPT a view (what has payloads); the rest is held by snapshots
 *     without it         PENDING a source of a deferred view, ROWS a table, KEPT a view (rows alone), END
 *
 * The order follows from the catalog alone. Nothing of the engine is changed. Cost: see the parts; the snapshots are free. */
#include "checkpoint.h"
#include "catalog_view.h"
#include "checkpoint_state.h"
#include "compress.h"
#include "save_table.h"
#include "saver_stream.h"
#include "section.h"

typedef struct checkpoint {
    ivm_engine *engine;
    ivm_write write;
    void *context;
    ivm_error *error;
    bool compressed;
    size_t sort_bytes;
    ivm__cancel cancel;
    ivm__block_writer writer;
    ivm__row_saver rows;
    ivm__stream_saver kept;
} checkpoint;

/* ---- Under the lock ------------------------------------------------------------------------------------------------------------------- */

static ivm_status state_write(checkpoint *it)
{
    ivm__code code = { .memory = &it->engine->memory };
    ivm__state_code(&code, it->engine);
    ivm_status status = ivm__section_write(&it->writer, IVM__SECTION_STATE, &code);
    ivm__code_deinit(&code);
    return status;
}

static ivm_status head_write(checkpoint *it, const ivm__code *catalog)
{
    ivm__head head = { .form = IVM__FORM_WHOLE,
                       .fingerprint = ivm__catalog_fingerprint(catalog->bytes, catalog->size),
                       .compressed = it->compressed };
    IVM_TRY(ivm__block_writer_init(&it->writer, &it->engine->memory, &head, it->write, it->context, it->error));
    it->writer.sink.cancel = &it->cancel;
    ivm__row_saver_init(&it->rows, it->engine, &it->writer, it->sort_bytes);
    ivm__stream_saver_init(&it->kept, it->engine, &it->writer, it->sort_bytes);
    return ivm__section_position_write(&it->writer, it->engine->position, it->engine->position_size);
}

static ivm_status catalog_write(checkpoint *it)
{
    ivm__code catalog = { .memory = &it->engine->memory };
    ivm__catalog_code(&catalog, it->engine);
    ivm_status status = catalog.failed ? ivm__fail_memory(it->error) : head_write(it, &catalog);
    if (status == IVM_OK) {
        status = ivm__section_write(&it->writer, IVM__SECTION_CATALOG, &catalog);
    }
    ivm__code_deinit(&catalog);
    return status;
}

static ivm_status tracks_write(checkpoint *it)
{
    for (const ivm_fact *fact = it->engine->facts; fact; fact = fact->next) {
        if (fact->track) {
            IVM_TRY(ivm__row_saver_track(&it->rows, fact));
        }
    }
    return IVM_OK;
}

static ivm_status views_hold(checkpoint *it)
{
    uint32_t nth = 0;
    for (const ivm_view *view = it->engine->views; view; view = view->next) {
        IVM_TRY(ivm__stream_saver_program(&it->kept, nth++, &view->program));
    }
    nth = 0;
    for (const ivm_view *view = it->engine->views; view; view = view->next, nth++) {
        for (uint32_t i = 0; i < ivm__pendings_count(view); i++) {
            IVM_TRY(ivm__row_saver_pending(&it->rows, nth, i, &view->pending[i]));
        }
    }
    return IVM_OK;
}

static ivm_status locked(checkpoint *it)
{
    ivm_stats ignored = { 0 };
    ivm__step step;
    ivm__step_init(&step, it->engine, &ignored, it->error);
    IVM_TRY(catalog_write(it));
    IVM_TRY(state_write(it));
    IVM_TRY(tracks_write(it));
    IVM_TRY(views_hold(it));
    for (ivm_table *table = it->engine->tables; table; table = table->next) {
        IVM_TRY(ivm__row_saver_table(&it->rows, &step, table));
    }
    return IVM_OK;
}

/* ---- Without it ---------------------------------------------------------------------------------------------------------------------- */

static ivm_status unlocked(checkpoint *it)
{
    IVM_TRY(ivm__row_saver_write(&it->rows));
    IVM_TRY(ivm__stream_saver_held(&it->kept));
    return ivm__block_writer_finish(&it->writer);
}

/* Those that were never begun are zeroed. */
static void checkpoint_end(checkpoint *it)
{
    if (it->rows.engine) {
        ivm__row_saver_deinit(&it->rows);
        ivm__stream_saver_deinit(&it->kept);
    }
    ivm__block_writer_deinit(&it->writer);
}

ivm_status ivm__checkpoint_write(ivm_engine *engine, const ivm__checkpoint_target *to, const ivm_checkpoint_options *options,
                                 ivm_error *error)
{
    checkpoint it = { .engine = engine,
                      .write = to->write,
                      .context = to->context,
                      .error = error,
                      .compressed = options->compression == IVM_COMPRESSION_ZSTD ||
                                    (options->compression == IVM_COMPRESSION_AUTO && ivm__compress_is_there()),
                      .sort_bytes = options->sort_bytes ? options->sort_bytes : IVM__SORT_BYTES_DEFAULT };
    ivm__outside call;
    IVM_TRY(ivm__engine_enter(engine, error));
    it.cancel = ivm__engine_cancel_of(engine);
    ivm_status status = to->begin ? to->begin(to->context) : IVM_OK;
    if (status == IVM_OK) {
        status = locked(&it);
    }
    ivm__engine_settle(engine);
    ivm__outside_begin(engine, &call);
    ivm__engine_leave(engine);
    if (status == IVM_OK) {
        status = unlocked(&it);
    }
    checkpoint_end(&it);
    status = to->end ? to->end(to->context, status) : status;
    ivm__outside_end(engine, &call);
    return status;
}

ivm_status ivm__checkpoint_options_check(const char *function, const ivm_engine *engine, bool writes, const ivm_checkpoint_options *options,
                                         ivm_error *error)
{
    if (!engine || !writes) {
        return ivm__fail_null(error, function, engine ? "write" : "engine");
    }
    if (options->version > IVM_CHECKPOINT_OPTIONS_VERSION) {
        return ivm__fail_version(error, function, "options", options->version, IVM_CHECKPOINT_OPTIONS_VERSION);
    }
    if ((unsigned)options->compression > IVM_COMPRESSION_ZSTD) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "%s: %d is no compression", function, (int)options->compression);
    }
    return IVM_OK;
}

ivm_status ivm_checkpoint(ivm_engine *engine, ivm_write write, void *context, const ivm_checkpoint_options *options, ivm_error *error)
{
    static const ivm_checkpoint_options defaults = { .version = IVM_CHECKPOINT_OPTIONS_VERSION };
    options = options ? options : &defaults;
    IVM_TRY(ivm__checkpoint_options_check("ivm_checkpoint", engine, write != NULL, options, error));
    return ivm__checkpoint_write(engine, &(ivm__checkpoint_target){ .write = write, .context = context }, options, error);
}

ivm_status ivm_engine_fingerprint(ivm_engine *engine, uint64_t *fingerprint, ivm_error *error)
{
    if (!engine || !fingerprint) {
        return ivm__fail_null(error, "ivm_engine_fingerprint", engine ? "fingerprint" : "engine");
    }
    IVM_TRY(ivm__engine_enter_reading(engine, error));
    ivm__code code = { .memory = &engine->memory };
    ivm__catalog_code(&code, engine);
    ivm_status status = code.failed ? ivm__fail_memory(error) : IVM_OK;
    if (status == IVM_OK) {
        *fingerprint = ivm__catalog_fingerprint(code.bytes, code.size);
    }
    ivm__code_deinit(&code);
    ivm__engine_leave_reading(engine);
    return status;
}
