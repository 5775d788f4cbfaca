/* Recovery: the checkpoint is restored, then each record is played through the calls that made it.
 *
 *     PUSH     the tables' net rows as weighted parts of a batch, pushed
 *     others   decoded, and declared, dropped, changed or refreshed
 *
 * So every check that was made then is made again: what does not go through now was not written by an engine in this state, and the directory is
 * corrupt; but for what depends on the engine's options or on memory. Cost: what the changes cost then, but for keys, upserts and what the batches
 * had cancelled. */
#include "catalog_view.h"
#include "chunk_arrays.h"
#include "durable_inside.h"
#include "row_code.h"
#include "save_table.h"

typedef struct replay {
    ivm_engine *engine;
    ivm__feed *feed; /* the record's payload */
    ivm__arena arena;
    ivm_error *error;
} replay;

static ivm_status broken(const replay *it, const char *what)
{
    return ivm__fail(it->error, IVM_CORRUPT, "%s", what);
}

/* ---- Pushes ------------------------------------------------------------------------------------------------------------------------- */

/* Fewer rows at once where strings are longer than one array may be. */
static ivm_status rows_add(replay *it, ivm_batch *batch, ivm_table *table, const ivm__chunk *chunk, uint32_t first, uint32_t count)
{
    ivm_rows rows;
    ivm_status status = ivm__chunk_arrays(&it->arena, chunk, first, count, &rows);
    if (status == IVM_OVERFLOW && count > 1) {
        IVM_TRY(rows_add(it, batch, table, chunk, first, count / 2));
        return rows_add(it, batch, table, chunk, first + count / 2, count - count / 2);
    }
    if (status != IVM_OK) {
        return ivm__fail_memory(it->error);
    }
    (void)ivm_batch_columns(batch, table, IVM_WEIGHTED, &rows); /* the batch remembers */
    return IVM_OK;
}

static ivm_status chunks_add(replay *it, ivm_batch *batch, ivm_table *table, ivm__row_reader *reader)
{
    for (;;) {
        ivm__chunk *chunk;
        IVM_TRY(ivm__row_reader_next(reader, &it->arena, &chunk));
        if (!chunk) {
            return IVM_OK;
        }
        IVM_TRY(rows_add(it, batch, table, chunk, 0, chunk->rows_count));
    }
}

static ivm_status table_add(replay *it, ivm_batch *batch, ivm_table *table)
{
    ivm__row_reader reader;
    ivm__row_shape shape = ivm__table_shape(table);
    shape.loose = true;
    shape.weights = IVM__WEIGHTS_NOT_0;
    ivm_status status = ivm__row_reader_init(&reader, &it->engine->memory, &it->engine->texts, &shape, it->feed);
    if (status == IVM_OK) {
        status = chunks_add(it, batch, table, &reader);
    }
    ivm__row_reader_deinit(&reader);
    return status;
}

static ivm_status position_read(replay *it, ivm_batch *batch)
{
    uint8_t positioned, position[IVM_POSITION_SIZE_MAX];
    uint16_t size;
    IVM_TRY(ivm__get_u8(it->feed, &positioned));
    if (positioned > 1) {
        return broken(it, "a push whose position is none");
    }
    if (positioned) {
        IVM_TRY(ivm__get_u16(it->feed, &size));
        if (size > sizeof position) {
            return broken(it, "a position that is too long");
        }
        IVM_TRY(ivm__get(it->feed, position, size));
        (void)ivm_batch_position(batch, position, size);
    }
    return IVM_OK;
}

static ivm_status batch_fill(replay *it, ivm_batch *batch)
{
    IVM_TRY(position_read(it, batch));
    for (;;) {
        uint32_t ordinal;
        IVM_TRY(ivm__get_u32(it->feed, &ordinal));
        if (ordinal == UINT32_MAX) {
            return IVM_OK;
        }
        ivm_table *table = ivm__table_at(it->engine, ordinal);
        if (!table) {
            return broken(it, "a push to a table that there is not");
        }
        IVM_TRY(table_add(it, batch, table));
    }
}

static ivm_status push_play(replay *it)
{
    ivm_batch *batch;
    IVM_TRY(ivm_batch_create(it->engine, &batch, it->error));
    ivm_status status = batch_fill(it, batch);
    if (status != IVM_OK) {
        ivm_batch_free(batch);
        return status;
    }
    return ivm_push_batch(it->engine, batch, NULL, it->error);
}

/* ---- The catalog -------------------------------------------------------------------------------------------------------------------- */

/* Makes a table, a fact or a view of just what the record says. */
static ivm_status declare(replay *it, ivm__record kind, ivm__decode *decode)
{
    IVM_TRY(ivm__engine_enter(it->engine, it->error));
    ivm_status status = kind == IVM__RECORD_TABLE  ? ivm__table_decode(decode, it->engine, it->error)
                        : kind == IVM__RECORD_FACT ? ivm__fact_decode(decode, it->engine, it->error)
                                                   : ivm__view_decode(decode, it->engine, it->error);
    ivm__engine_settle(it->engine);
    ivm__engine_leave(it->engine);
    return status;
}

static ivm_status column_change(const replay *it, ivm__record kind, ivm_table *table, ivm__decode *decode)
{
    const char *name = ivm__decode_text(decode);
    const char *renamed = kind == IVM__RECORD_COLUMN_RENAME ? ivm__decode_text(decode) : NULL;
    ivm_type type = kind == IVM__RECORD_COLUMN_ADD ? ivm__decode_type(decode) : 0;
    if (decode->failed) {
        return broken(it, "a column that cannot be");
    }
    switch (kind) {
    case IVM__RECORD_COLUMN_RENAME:
        return ivm_table_column_rename(table, name, renamed, it->error);
    case IVM__RECORD_COLUMN_ADD:
        return ivm_table_column_add(table, &(ivm_column_definition){ name, type, false }, it->error);
    default:
        assert(kind == IVM__RECORD_COLUMN_DROP);
        return ivm_table_column_drop(table, name, it->error);
    }
}

static ivm_status table_change(const replay *it, ivm__record kind, ivm__decode *decode)
{
    ivm_table *table = ivm__table_at(it->engine, (uint32_t)ivm__decode_number(decode, 4));
    if (decode->failed || !table) {
        return broken(it, "a table that there is not");
    }
    return kind == IVM__RECORD_TABLE_DROP ? ivm_table_drop(table, it->error) : column_change(it, kind, table, decode);
}

static ivm_status view_change(const replay *it, ivm__record kind, ivm__decode *decode)
{
    ivm_view *view = ivm__view_at(it->engine, (uint32_t)ivm__decode_number(decode, 4));
    if (decode->failed || !view) {
        return broken(it, "a view that there is not");
    }
    return kind == IVM__RECORD_VIEW_DROP ? ivm_view_drop(view, it->error) : ivm_refresh_view(view, NULL, it->error);
}

static ivm_status fact_remove(const replay *it, ivm__decode *decode)
{
    ivm_fact *fact = ivm__fact_at(it->engine, (uint32_t)ivm__decode_number(decode, 4));
    if (decode->failed || !fact) {
        return broken(it, "a foreign key that there is not");
    }
    return ivm_foreign_key_remove(fact, it->error);
}

static ivm_status change_play(replay *it, ivm__record kind, ivm__decode *decode)
{
    switch (kind) {
    case IVM__RECORD_TABLE:
    case IVM__RECORD_FACT:
    case IVM__RECORD_VIEW:
        return declare(it, kind, decode);
    case IVM__RECORD_TABLE_DROP:
    case IVM__RECORD_COLUMN_RENAME:
    case IVM__RECORD_COLUMN_ADD:
    case IVM__RECORD_COLUMN_DROP:
        return table_change(it, kind, decode);
    case IVM__RECORD_VIEW_DROP:
    case IVM__RECORD_REFRESH:
        return view_change(it, kind, decode);
    case IVM__RECORD_FACT_REMOVE:
        return fact_remove(it, decode);
    default:
        return ivm__fail(it->error, IVM_UNSUPPORTED, "kind %u: a later version's", (unsigned)kind);
    }
}

static ivm_status change_read(replay *it, ivm__record kind)
{
    uint32_t size;
    ivm__bytes bytes = { .memory = &it->engine->memory };
    IVM_TRY(ivm__get_u32(it->feed, &size));
    ivm_status status = ivm__bytes_read(&bytes, it->feed, size);
    if (status == IVM_OK) {
        ivm__decode decode = { .at = bytes.at, .left = bytes.size };
        status = change_play(it, kind, &decode);
        if (status == IVM_OK && decode.left) {
            status = broken(it, "more bytes than it says");
        }
    } else if (status == IVM_OUT_OF_MEMORY) {
        status = ivm__fail_memory(it->error);
    }
    ivm__bytes_deinit(&bytes);
    return status;
}

/* ---- Records ------------------------------------------------------------------------------------------------------------------------ */

/* What a record failed with; `cause` says why. */
static ivm_status record_fail(uint64_t number, uint8_t kind, const ivm_error *cause, ivm_status status, ivm_error *error)
{
    static const char *const names[] = {
        "?",      "a push",        "a refresh",           "a table",  "a table's drop", "a foreign key", "a foreign key's removal",
        "a view", "a view's drop", "a column's renaming", "a column", "a column's drop"
    };
    static_assert(sizeof names / sizeof *names == IVM__RECORD_END, "a name each");
    if (status == IVM_OUT_OF_MEMORY) {
        return ivm__fail_memory(error);
    }
    return ivm__fail(error, status < IVM_OVERFLOW ? IVM_CORRUPT : status, "the log's record %llu (%s): %s", (unsigned long long)number,
                     kind < IVM__RECORD_END ? names[kind] : names[0], cause->message);
}

static ivm_status record_play(replay *it, uint8_t kind, uint64_t number, ivm_error *error)
{
    ivm_error cause = IVM_ERROR_INIT;
    it->error = it->feed->error = &cause;
    ivm_status status = kind == IVM__RECORD_PUSH ? push_play(it) : change_read(it, (ivm__record)kind);
    ivm__arena_reset(&it->arena);
    return status == IVM_OK ? IVM_OK : record_fail(number, kind, &cause, status, error);
}

static ivm_status records_play(replay *it, ivm__log *log, ivm_recovery *recovery, ivm_error *error)
{
    for (;;) {
        uint8_t kind;
        IVM_TRY(ivm__log_record_read(log, &kind, &it->feed, error));
        if (!it->feed) {
            return IVM_OK;
        }
        uint64_t number = recovery->checkpoint + recovery->batches + recovery->changes;
        IVM_TRY(record_play(it, kind, number, error));
        *(kind == IVM__RECORD_PUSH ? &recovery->batches : &recovery->changes) += 1;
    }
}

/* ---- The checkpoint ------------------------------------------------------------------------------------------------------------------- */

static ivm_status stream_read(void *context, void *bytes, size_t size, size_t *got)
{
    ivm__feed *feed = context;
    *got = size;
    return feed->read(feed, bytes, size);
}

static ivm_status checkpoint_play(ivm_engine *engine, ivm__log *log, ivm_error *error)
{
    ivm__feed *feed;
    ivm_error cause = IVM_ERROR_INIT, restored = IVM_ERROR_INIT;
    ivm_status status = ivm__log_checkpoint_read(log, &feed, &cause);
    if (status == IVM_OK && feed) {
        status = ivm_restore(engine, stream_read, feed, &restored);
    }
    if (status == IVM_OK) {
        return IVM_OK;
    }
    if (cause.status != IVM_OK) { /* reading it, which names the file */
        return ivm__fail(error, status, "%s", cause.message);
    }
    return ivm__log_checkpoint_fail(log, status, restored.message, error);
}

ivm_status ivm__durable_replay(ivm_engine *engine, ivm__log *log, ivm_recovery *recovery, ivm_error *error)
{
    replay it = { .engine = engine };
    assert(!engine->journal);
    IVM_TRY(checkpoint_play(engine, log, error));
    recovery->checkpoint = ivm__log_recovery_of(log)->checkpoint;
    ivm__arena_init(&it.arena, &engine->memory);
    ivm_status status = records_play(&it, log, recovery, error);
    ivm__arena_deinit(&it.arena);
    return status;
}
