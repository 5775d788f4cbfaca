/* Checkpoints by partition: the shared stream, then one for each partition of a range.
 *
 *     shared       POSITION, CATALOG, STATE, ROWS of each table without a partition, END
 *     partition    POSITION, STATE, KEPT of each frontier (partition_views.h), ROWS of each table with one, END
 *
 * STATE says of each transient table whether it has changed; its ROWS are those that wait. Rows of all partitions lie together: each table's are put in order once, by partition
 * first, and the streams take them from there side by side. Tables are held by snapshots, so that pushes go on; where there are frontiers, whose states
 * no snapshot holds, the lock is kept until all is written. Cost: sorting all rows of partitioned tables, whatever the range. */
#include "catalog_view.h"
#include "checkpoint.h"
#include "compress.h"
#include "partition_views.h"
#include "save_table.h"
#include "saver_stream.h"
#include "section.h"
#include "snapshot.h"
#include "transient.h"

/* Rows that belong to partitions, in the order of these. */
typedef struct parted {
    ivm__section section;
    ivm_snapshot *snapshot; /* NULL: they are a frontier's, under the lock */
    ivm__row_pages rows;
    ivm__row_shape shape;
    ivm__row_payload payload;
    uint32_t partition; /* the column */
    uint32_t *columns;  /* partition first, then the shape's order */
    ivm__row_order order;
    ivm__row_chunk next; /* of the order, of which `at` are taken */
    uint32_t at;
} parted;

typedef struct checkpoint {
    ivm_engine *engine;
    ivm_partition_range range;
    ivm_write_partition write;
    void *context;
    uint32_t stream; /* the partition that is being written */
    ivm_error *error;
    bool compressed;
    size_t sort_bytes;
    ivm__cancel cancel;
    ivm__arena arena;
    ivm__code catalog, state;
    uint8_t position[IVM_POSITION_SIZE_MAX];
    uint32_t position_size;
    ivm__frontiers frontiers;
    ivm__block_writer writer;
    ivm__row_saver shared;
    parted **parts; /* frontiers', then tables' */
    uint32_t parts_count;
} checkpoint;

/* The writer has said what it failed with. */
static ivm_status told(const checkpoint *it, ivm_status status)
{
    return it->writer.status == IVM_OK ? ivm__rows_save_tell(it->error, status) : status;
}

/* ---- Rows of partitions ---------------------------------------------------------------------------------------------------------------- */

static ivm_status columns_make(checkpoint *it, parted *part)
{
    uint32_t count = ivm__row_shape_order_count(&part->shape);
    part->columns = ivm__arena_allocate(&it->arena, (count + 1) * sizeof *part->columns);
    if (!part->columns) {
        return IVM_OUT_OF_MEMORY;
    }
    part->columns[0] = part->partition;
    for (uint32_t c = 0; c < count; c++) {
        part->columns[c + 1] = ivm__row_shape_order(&part->shape, c);
    }
    part->shape.order = part->columns + 1; /* the table's own may change once the lock is given up */
    part->shape.order_count = count;
    return IVM_OK;
}

static ivm_status part_add(checkpoint *it, parted **added)
{
    parted *part = ivm__arena_allocate(&it->arena, sizeof *part);
    if (!part) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(part, 0, sizeof *part);
    it->parts[it->parts_count++] = *added = part;
    return IVM_OK;
}

static ivm_status table_hold(checkpoint *it, ivm__step *step, const ivm_table *table, parted *part)
{
    ivm__zset waiting;
    if (!table->transient) {
        return ivm__snapshot_of(it->engine, &table->store, &part->snapshot);
    }
    IVM_TRY(ivm__transient_waiting(step, table, &waiting)); /* a copy: the store may be cleared while pushes go on */
    ivm_status status = ivm__snapshot_of(it->engine, &waiting.store, &part->snapshot);
    ivm__zset_deinit(&waiting);
    return status;
}

static ivm_status table_part(checkpoint *it, ivm__step *step, const ivm_table *table, uint32_t ordinal)
{
    parted *part;
    IVM_TRY(part_add(it, &part));
    part->section = (ivm__section){ IVM__SECTION_ROWS, ordinal, 0 };
    part->shape = ivm__table_shape(table);
    part->partition = table->partition;
    IVM_TRY(table_hold(it, step, table, part));
    part->rows = ivm__snapshot_row_pages(part->snapshot);
    part->shape.types = part->rows.layout->types; /* which the snapshot keeps */
    part->shape.nullable = part->rows.layout->nullable;
    return columns_make(it, part);
}

static ivm_status frontier_part(checkpoint *it, const ivm__frontier *frontier)
{
    parted *part;
    ivm__frontier_holding held = ivm__frontier_holds(ivm__frontier_operator(frontier, &frontier->view->program));
    IVM_TRY(part_add(it, &part));
    part->section = ivm__holding_section(frontier->view_ordinal, frontier->place, 0);
    part->rows = ivm__store_row_pages(held.store);
    part->shape = ivm__holding_shape(held.store->layout, held.columns_count);
    part->payload = (ivm__row_payload){ held.save, held.context, held.store };
    part->partition = frontier->column;
    return columns_make(it, part);
}

static ivm_status parts_make(checkpoint *it, ivm__step *step)
{
    uint32_t tables = 0, nth = 0;
    for (const ivm_table *table = it->engine->tables; table; table = table->next) {
        tables++;
    }
    it->parts = ivm__arena_allocate(&it->arena, (tables + it->frontiers.count) * sizeof(parted *));
    if (!it->parts) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < it->frontiers.count; i++) {
        IVM_TRY(frontier_part(it, &it->frontiers.list[i]));
    }
    for (const ivm_table *table = it->engine->tables; table; table = table->next, nth++) {
        if (table->partitioned) {
            IVM_TRY(table_part(it, step, table, nth));
        }
    }
    return IVM_OK;
}

static ivm_status parts_sort(checkpoint *it)
{
    for (uint32_t i = 0; i < it->parts_count; i++) {
        parted *part = it->parts[i];
        IVM_TRY(ivm__row_order_init(&part->order, &it->engine->memory, &part->rows, part->columns, part->shape.order_count + 1,
                                    it->sort_bytes / it->parts_count));
        part->order.sorter.cancel = &it->cancel;
    }
    return IVM_OK;
}

/* The partition of the next row, in *partition; past the last: IVM_PARTITIONS_MAX. */
static ivm_status part_look(parted *part, uint32_t *partition)
{
    int64_t number;
    *partition = IVM_PARTITIONS_MAX;
    if (part->at == part->next.count) {
        part->at = 0;
        IVM_TRY(ivm__row_order_next(&part->order, IVM__CHUNK_ROWS, part->next.ids, part->next.weights, &part->next.count));
    }
    if (part->next.count) {
        const uint8_t *at = ivm__row_pages_at(&part->rows, part->next.ids[part->at]);
        memcpy(&number, at + part->rows.layout->offsets[part->partition], sizeof number);
        assert(number >= 0 && number < IVM_PARTITIONS_MAX);
        *partition = (uint32_t)number;
    }
    return IVM_OK;
}

/* As many rows of a partition as a chunk has room for; those of lesser ones are passed over. */
static ivm_status part_take(parted *part, uint32_t partition, ivm__row_chunk *taken)
{
    taken->count = 0;
    while (taken->count < IVM__CHUNK_ROWS) {
        uint32_t next;
        IVM_TRY(part_look(part, &next));
        if (next > partition) {
            break;
        }
        taken->ids[taken->count] = part->next.ids[part->at];
        taken->weights[taken->count] = part->next.weights[part->at++];
        taken->count += next == partition;
    }
    return IVM_OK;
}

static ivm_status part_write(checkpoint *it, parted *part)
{
    ivm__row_chunk taken;
    IVM_TRY(ivm__block_writer_begin(&it->writer, part->section));
    do {
        IVM_TRY(part_take(part, it->stream, &taken));
        if (taken.count) {
            IVM_TRY(ivm__rows_save_chunk(&it->writer.sink, &it->arena, &part->rows, &part->shape, &taken, &part->payload));
        }
    } while (taken.count == IVM__CHUNK_ROWS);
    IVM_TRY(ivm__rows_write_end(&it->writer.sink));
    return ivm__block_writer_end(&it->writer);
}

/* ---- Streams --------------------------------------------------------------------------------------------------------------------------- */

static ivm_status stream_write(void *context, const void *bytes, size_t size)
{
    const checkpoint *it = context;
    return it->write(it->context, it->stream, bytes, size);
}

static ivm_status stream_begin(checkpoint *it, uint32_t stream)
{
    bool shared = stream == IVM_PARTITION_SHARED;
    ivm__head head = { .form = shared ? IVM__FORM_SHARED : IVM__FORM_PARTITION,
                       .partition = shared ? 0 : stream,
                       .fingerprint = ivm__catalog_fingerprint(it->catalog.bytes, it->catalog.size),
                       .compressed = it->compressed };
    it->stream = stream;
    ivm__block_writer_deinit(&it->writer);
    IVM_TRY(ivm__block_writer_init(&it->writer, &it->engine->memory, &head, stream_write, it, it->error));
    it->writer.sink.cancel = &it->cancel;
    return ivm__section_position_write(&it->writer, it->position, it->position_size);
}

static ivm_status shared_write(checkpoint *it)
{
    IVM_TRY(stream_begin(it, IVM_PARTITION_SHARED));
    IVM_TRY(ivm__section_write(&it->writer, IVM__SECTION_CATALOG, &it->catalog));
    IVM_TRY(ivm__section_write(&it->writer, IVM__SECTION_STATE, &it->state));
    IVM_TRY(ivm__row_saver_write(&it->shared));
    return ivm__block_writer_finish(&it->writer);
}

static ivm_status partition_write(checkpoint *it, uint32_t partition)
{
    IVM_TRY(stream_begin(it, partition));
    IVM_TRY(ivm__section_write(&it->writer, IVM__SECTION_STATE, &it->state));
    for (uint32_t i = 0; i < it->parts_count; i++) {
        IVM_TRY(told(it, part_write(it, it->parts[i])));
    }
    return ivm__block_writer_finish(&it->writer);
}

static ivm_status streams_write(checkpoint *it)
{
    if (it->range.shared) {
        IVM_TRY(shared_write(it));
    }
    if (it->range.first == it->range.end) {
        return IVM_OK;
    }
    IVM_TRY(told(it, parts_sort(it)));
    for (uint32_t partition = it->range.first; partition < it->range.end; partition++) {
        IVM_TRY(partition_write(it, partition));
    }
    return IVM_OK;
}

/* ---- The call -------------------------------------------------------------------------------------------------------------------------- */

static ivm_status shared_hold(checkpoint *it, ivm__step *step)
{
    for (ivm_table *table = it->engine->tables; table; table = table->next) {
        if (!table->partitioned && !table->transient) {
            IVM_TRY(ivm__row_saver_table(&it->shared, step, table));
        }
    }
    return IVM_OK;
}

/* Under the lock: all that must be of one moment. */
static ivm_status hold(checkpoint *it)
{
    const ivm_engine *engine = it->engine;
    ivm_stats ignored = { 0 };
    ivm__step step;
    ivm__step_init(&step, it->engine, &ignored, it->error);
    IVM_TRY(ivm__frontiers_find(it->engine, &it->arena, &it->frontiers, it->error));
    ivm__catalog_code(&it->catalog, engine);
    for (const ivm_table *table = engine->tables; table; table = table->next) {
        if (table->transient) {
            ivm__code_number(&it->state, table->came, 1);
        }
    }
    memcpy(it->position, engine->position, sizeof it->position);
    it->position_size = engine->position_size;
    if (it->catalog.failed || it->state.failed) {
        return ivm__fail_memory(it->error);
    }
    if (it->range.shared) {
        IVM_TRY(shared_hold(it, &step));
    }
    return it->range.first < it->range.end ? told(it, parts_make(it, &step)) : IVM_OK;
}

static void checkpoint_end(checkpoint *it)
{
    for (uint32_t i = 0; i < it->parts_count; i++) {
        ivm__row_order_deinit(&it->parts[i]->order);
        ivm_snapshot_close(it->parts[i]->snapshot);
    }
    ivm__row_saver_deinit(&it->shared);
    ivm__block_writer_deinit(&it->writer);
    ivm__code_deinit(&it->catalog);
    ivm__code_deinit(&it->state);
    ivm__arena_deinit(&it->arena);
}

/* And ends it, whatever the outcome. */
static ivm_status write_all(checkpoint *it)
{
    ivm__outside call;
    ivm_status status = ivm__engine_enter(it->engine, it->error);
    if (status != IVM_OK) {
        checkpoint_end(it);
        return status;
    }
    it->cancel = ivm__engine_cancel_of(it->engine);
    status = hold(it);
    bool keeps = it->frontiers.count > 0;
    if (status == IVM_OK && keeps) {
        status = streams_write(it);
    }
    ivm__engine_settle(it->engine);
    ivm__outside_begin(it->engine, &call);
    ivm__engine_leave(it->engine);
    if (status == IVM_OK && !keeps) {
        status = streams_write(it);
    }
    checkpoint_end(it);
    ivm__outside_end(it->engine, &call);
    return status;
}

static bool range_is(const ivm_partition_range *range)
{
    return range->first <= range->end && range->end <= IVM_PARTITIONS_MAX;
}

ivm_status ivm_checkpoint_partitions(ivm_engine *engine, ivm_partition_range range, ivm_write_partition write, void *context,
                                     const ivm_checkpoint_options *options, ivm_error *error)
{
    static const ivm_checkpoint_options defaults = { .version = IVM_CHECKPOINT_OPTIONS_VERSION };
    options = options ? options : &defaults;
    IVM_TRY(ivm__checkpoint_options_check("ivm_checkpoint_partitions", engine, write != NULL, options, error));
    if (!range_is(&range)) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_checkpoint_partitions: partitions %u up to %u: there are %u", range.first,
                         range.end, IVM_PARTITIONS_MAX);
    }
    checkpoint it = { .engine = engine,
                      .range = range,
                      .write = write,
                      .context = context,
                      .error = error,
                      .compressed = options->compression == IVM_COMPRESSION_ZSTD ||
                                    (options->compression == IVM_COMPRESSION_AUTO && ivm__compress_is_there()),
                      .sort_bytes = options->sort_bytes ? options->sort_bytes : IVM__SORT_BYTES_DEFAULT,
                      .catalog.memory = &engine->memory,
                      .state.memory = &engine->memory,
                      .writer.error = error };
    ivm__arena_init(&it.arena, &engine->memory);
    ivm__row_saver_init(&it.shared, engine, &it.writer, it.sort_bytes);
    return write_all(&it);
}
