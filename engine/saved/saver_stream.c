/* Saving programs: each operator names its holdings, each holding is a section. */
#include "saver_stream.h"

#include "snapshot.h"

/* Rows without payload, whose writing waits. */
typedef struct ivm__held_section {
    ivm__section section;
    ivm_snapshot *snapshot;
    uint32_t columns_count;
} ivm__held_section;

/* Who writes has said what failed; the rest is said here. */
static ivm_status saver_status(const ivm__stream_saver *saver, ivm_status status)
{
    return status == IVM_OK || saver->writer->status != IVM_OK ? status : ivm__rows_save_tell(saver->writer->error, status);
}

static ivm__section section_next(ivm__stream_saver *saver)
{
    return ivm__holding_section(saver->view, saver->place, saver->holding++);
}

/* The holding of bytes that may be under way ends. */
static ivm_status bytes_end(ivm__stream_saver *saver)
{
    bool open = saver->open;
    saver->open = false;
    return open ? ivm__block_writer_end(saver->writer) : IVM_OK;
}

static ivm_status rows_write(ivm__stream_saver *saver, ivm__section section, const ivm__row_pages *rows, uint32_t columns_count,
                             ivm__row_payload payload)
{
    ivm__row_shape shape = ivm__holding_shape(rows->layout, columns_count);
    IVM_TRY(ivm__block_writer_begin(saver->writer, section));
    IVM_TRY(ivm__rows_save(&saver->writer->sink, &saver->arena, rows, &shape, saver->sort_bytes, payload));
    return ivm__block_writer_end(saver->writer);
}

static ivm_status rows_hold(ivm__stream_saver *saver, ivm__section section, const ivm__store *store, uint32_t columns_count)
{
    IVM_TRY(ivm__grow(&saver->engine->memory, (void **)&saver->held, &saver->held_capacity, saver->held_count + 1ull, sizeof *saver->held));
    ivm__held_section held = { section, NULL, columns_count };
    IVM_TRY(ivm__snapshot_of(saver->engine, store, &held.snapshot));
    saver->held[saver->held_count++] = held;
    return IVM_OK;
}

static ivm_status saver_rows(ivm__saver *self, const ivm__store *store, uint32_t columns_count, ivm__row_save *save, const void *context)
{
    ivm__stream_saver *saver = (ivm__stream_saver *)self;
    IVM_TRY(bytes_end(saver));
    ivm__section section = section_next(saver);
    if (!save) {
        return rows_hold(saver, section, store, columns_count);
    }
    ivm__row_pages rows = ivm__store_row_pages(store);
    return rows_write(saver, section, &rows, columns_count, (ivm__row_payload){ save, context, store });
}

static ivm_status saver_bytes(ivm__saver *self, ivm__sink **sink)
{
    ivm__stream_saver *saver = (ivm__stream_saver *)self;
    IVM_TRY(bytes_end(saver));
    IVM_TRY(ivm__block_writer_begin(saver->writer, section_next(saver)));
    saver->open = true;
    *sink = &saver->writer->sink;
    return IVM_OK;
}

void ivm__stream_saver_init(ivm__stream_saver *saver, ivm_engine *engine, ivm__block_writer *writer, size_t sort_bytes)
{
    *saver = (ivm__stream_saver){ .saver = { saver_rows, saver_bytes }, .engine = engine, .writer = writer, .sort_bytes = sort_bytes };
    ivm__arena_init(&saver->arena, &engine->memory);
}

ivm_status ivm__stream_saver_program(ivm__stream_saver *saver, uint32_t view, const ivm__program *program)
{
    saver->view = view;
    for (saver->place = 0; saver->place < program->operators_count; saver->place++) {
        const ivm__operator *one = program->operators[saver->place];
        saver->holding = 0;
        ivm_status status = one->class->save ? one->class->save(one, &saver->saver) : IVM_OK;
        if (status == IVM_OK) {
            status = bytes_end(saver);
        }
        IVM_TRY(saver_status(saver, status));
    }
    return IVM_OK;
}

ivm_status ivm__stream_saver_held(ivm__stream_saver *saver)
{
    while (saver->held_written < saver->held_count) {
        ivm__held_section *held = &saver->held[saver->held_written];
        ivm__row_pages rows = ivm__snapshot_row_pages(held->snapshot);
        ivm_status status = rows_write(saver, held->section, &rows, held->columns_count, (ivm__row_payload){ NULL, NULL, NULL });
        ivm_snapshot_close(held->snapshot);
        saver->held_written++;
        IVM_TRY(saver_status(saver, status));
    }
    return IVM_OK;
}

void ivm__stream_saver_deinit(ivm__stream_saver *saver)
{
    for (uint32_t i = saver->held_written; i < saver->held_count; i++) {
        ivm_snapshot_close(saver->held[i].snapshot);
    }
    ivm__release(&saver->engine->memory, saver->held, saver->held_capacity * sizeof *saver->held);
    ivm__arena_deinit(&saver->arena);
    *saver = (ivm__stream_saver){ 0 };
}
