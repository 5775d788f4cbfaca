/* The half of stage_model.h that drives an engine: values, batches of owned rows and of borrowed arrays, and a view made by hand. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "batch.h"
#include "source.h"
#include "stage_model.h"

static const char *const strings[] = { "", "b", "a string of more than a few bytes, so that it lies by itself" };

/* ---- Values ---------------------------------------------------------------------------------------------------------------------- */

static __int128 decimal_of(int cell)
{
    return cell ? -(((__int128)1 << 100) + 7) : 1234;
}

/* Equal values in more than one form: both zeros, more than one NaN. */
static double float_of(int cell, uint64_t variant)
{
    uint64_t word = cell ? (variant & 1 ? 0x7ff8000000000000ull : 0xfff8000000001234ull) : (variant & 1 ? 0 : 0x8000000000000000ull);
    double value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static ivm_value value_of(ivm_type type, int cell, uint64_t variant)
{
    if (cell < 0) {
        return ivm_null();
    }
    switch (IVM_TYPE_KIND(type)) {
    case IVM_STRING:
        return ivm_string(strings[cell]);
    case IVM_FLOAT64:
        return ivm_float64(float_of(cell, variant));
    case IVM_DATE:
        return ivm_date(cell ? -1 : 20000);
    case IVM_BOOL:
        return ivm_bool(cell);
    case IVM_TIMESTAMP:
        return ivm_timestamp(cell ? INT64_MIN : 1);
    case IVM_DECIMAL_KIND: {
        __int128 value = decimal_of(cell);
        return ivm_decimal(type, (ivm_int128){ (uint64_t)value, (int64_t)(value >> 64) });
    }
    default:
        return ivm_int64(5 * (2 - cell)); /* one is 0, as a null's cell is */
    }
}

/* The number of a value read back; -2: it is none that was written. */
static int cell_of(ivm_type type, const ivm_value *value)
{
    if (value->is_null) {
        return -1;
    }
    for (int cell = 0; cell < 4; cell++) {
        if (IVM_TYPE_KIND(type) == IVM_STRING) {
            if (cell < 3 && value->as.string.size == strlen(strings[cell]) &&
                memcmp(value->as.string.bytes, strings[cell], value->as.string.size) == 0) {
                return cell;
            }
            continue;
        }
        ivm_value other = value_of(type, cell, 1); /* the form that is stored */
        bool equal;
        switch (IVM_TYPE_KIND(type)) {
        case IVM_DECIMAL_KIND:
            equal = memcmp(&other.as.decimal, &value->as.decimal, sizeof other.as.decimal) == 0;
            break;
        case IVM_DATE:
            equal = other.as.date == value->as.date;
            break;
        case IVM_BOOL:
            equal = other.as.boolean == value->as.boolean;
            break;
        default:
            equal = other.as.int64 == value->as.int64; /* 8 bytes, of floats too */
            break;
        }
        if (equal) {
            return cell;
        }
    }
    return -2;
}

/* ---- Borrowed arrays ------------------------------------------------------------------------------------------------------------- */

typedef struct arrays {
    ivm_column_data columns[MODEL_COLUMNS];
    int64_t *weights;
    void *blocks[MODEL_COLUMNS * 3 + 1];
    uint32_t blocks_count;
} arrays;

/* Bytes at an address that need not be aligned, filled with what nobody may read as a value. */
static uint8_t *odd_bytes(arrays *held, size_t size, uint64_t *state)
{
    uint8_t *block = malloc(size + 64);
    cr_assert_not_null(block);
    memset(block, 0xa5, size + 64);
    held->blocks[held->blocks_count++] = block;
    return block + (random_next(state) % 2 ? random_next(state) % 33 : 0);
}

static void bit_set(uint8_t *bits, size_t at, bool value)
{
    bits[at >> 3] = (uint8_t)((bits[at >> 3] & ~(1u << (at & 7))) | (unsigned)value << (at & 7));
}

static size_t value_bytes(ivm_type type)
{
    switch (IVM_TYPE_KIND(type)) {
    case IVM_DECIMAL_KIND:
        return 16;
    case IVM_DATE:
        return 4;
    default:
        return 8;
    }
}

static void value_write(uint8_t *values, ivm_type type, size_t at, const ivm_value *value)
{
    if (value->is_null) {
        return; /* what lies there counts for nothing */
    }
    if (IVM_TYPE_KIND(type) == IVM_BOOL) {
        bit_set(values, at, value->as.boolean);
    } else {
        memcpy(values + at * value_bytes(type), &value->as, value_bytes(type));
    }
}

static void strings_write(arrays *held, ivm_column_data *column, const model_part *part, uint32_t c, uint64_t *state)
{
    size_t offset = column->offset, used = 3; /* the first string need not begin the bytes */
    uint8_t *offsets = odd_bytes(held, (offset + part->rows_count + 1) * 4, state);
    uint8_t *bytes = odd_bytes(held, 3 + part->rows_count * 64, state);
    int32_t start = (int32_t)used;
    memcpy(offsets + offset * 4, &start, 4);
    for (uint32_t i = 0; i < part->rows_count; i++) {
        int cell = part->rows[i].cell[c];
        const char *text = cell < 0 ? "of a null" : strings[cell];
        memcpy(bytes + used, text, strlen(text));
        used += strlen(text);
        int32_t end = (int32_t)used;
        memcpy(offsets + (offset + i + 1) * 4, &end, 4);
    }
    column->values = bytes;
    column->offsets = (const int32_t *)(const void *)offsets;
}

static void column_write(arrays *held, ivm_column_data *column, const model_part *part, ivm_type type, uint32_t c, uint64_t *state)
{
    bool nulls = random_next(state) % 4 == 0;
    for (uint32_t i = 0; i < part->rows_count; i++) {
        nulls |= part->rows[i].cell[c] < 0;
    }
    column->offset = random_next(state) % 2 ? random_next(state) % 13 : 0;
    size_t rows = column->offset + part->rows_count;
    uint8_t *validity = nulls ? odd_bytes(held, rows / 8 + 1, state) : NULL;
    for (uint32_t i = 0; nulls && i < part->rows_count; i++) {
        bit_set(validity, column->offset + i, part->rows[i].cell[c] >= 0);
    }
    column->validity = validity;
    if (IVM_TYPE_KIND(type) == IVM_STRING) {
        strings_write(held, column, part, c, state);
        return;
    }
    uint8_t *values = odd_bytes(held, rows * value_bytes(type) + 1, state);
    for (uint32_t i = 0; i < part->rows_count; i++) {
        ivm_value value = value_of(type, part->rows[i].cell[c], random_next(state));
        value_write(values, type, column->offset + i, &value);
    }
    column->values = values;
}

static void part_arrays(const model_table *table, const model_part *part, arrays *held, uint64_t *state)
{
    uint32_t count = part->change == IVM_DELETE_KEY ? table->key_count : MODEL_COLUMNS;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t c = part->change == IVM_DELETE_KEY ? table->key_columns[i] : i;
        column_write(held, &held->columns[i], part, table->types[c], c, state);
    }
    held->weights = (int64_t *)(void *)odd_bytes(held, part->rows_count * 8, state);
    for (uint32_t i = 0; i < part->rows_count; i++) {
        memcpy((uint8_t *)held->weights + i * 8, &part->rows[i].weight, 8);
    }
}

/* ---- Batches --------------------------------------------------------------------------------------------------------------------- */

static void rows_add(model *it, ivm_batch *made, const model_part *part, uint64_t *state)
{
    const model_table *table = &it->tables[part->table];
    uint32_t count = part->change == IVM_DELETE_KEY ? table->key_count : MODEL_COLUMNS;
    for (uint32_t r = 0; r < part->rows_count; r++) {
        ivm_value values[MODEL_COLUMNS];
        for (uint32_t i = 0; i < count; i++) {
            uint32_t c = part->change == IVM_DELETE_KEY ? table->key_columns[i] : i;
            values[i] = value_of(table->types[c], part->rows[r].cell[c], random_next(state));
        }
        (void)ivm_batch_row(made, it->handles[part->table], part->change, part->rows[r].weight, values, count);
    }
}

/* Owned rows of one kind are also added in turns with another part's, as a user would who goes through pairs. */
static ivm_status batch_fill(model *it, const model_batch *batch, ivm_batch *made, arrays *held, uint64_t state)
{
    for (uint32_t p = 0; p < batch->parts_count; p++) {
        const model_part *part = &batch->parts[p];
        if (!part->borrowed) {
            rows_add(it, made, part, &state);
        } else if (part->rows_count) {
            const model_table *table = &it->tables[part->table];
            part_arrays(table, part, &held[p], &state);
            ivm_rows rows = { part->rows_count, part->change == IVM_DELETE_KEY ? table->key_count : MODEL_COLUMNS, held[p].columns,
                              held[p].weights };
            (void)ivm_batch_columns(made, it->handles[part->table], part->change, &rows);
        }
    }
    return made->mistake.status;
}

static void arrays_free(arrays *held)
{
    for (uint32_t p = 0; p < MODEL_PARTS_MAX; p++) {
        for (uint32_t i = 0; i < held[p].blocks_count; i++) {
            free(held[p].blocks[i]);
        }
    }
}

ivm_status model_push(model *it, const model_batch *batch, uint64_t state, ivm_stats *stats, ivm_error *error)
{
    arrays held[MODEL_PARTS_MAX] = { 0 };
    ivm_batch *made;
    ivm_status status = ivm_batch_create(it->engine, &made, error);
    if (status == IVM_OK) {
        ivm_status filled = batch_fill(it, batch, made, held, state);
        status = ivm_push_batch(it->engine, made, stats, error);
        cr_assert(filled == IVM_OK || filled == status, "the remembered mistake is what the push fails with");
    }
    arrays_free(held);
    return status;
}

ivm_status model_shape(model *it, const model_batch *batch, uint32_t table, uint64_t state, ivm_shape *shape)
{
    arrays held[MODEL_PARTS_MAX] = { 0 };
    ivm_batch *made;
    ivm_status status = ivm_batch_create(it->engine, &made, NULL);
    cr_assert_eq(status, IVM_OK);
    (void)batch_fill(it, batch, made, held, state);
    status = ivm_batch_shape(made, it->handles[table], shape, NULL);
    ivm_batch_free(made);
    arrays_free(held);
    return status;
}

/* ---- A view made by hand --------------------------------------------------------------------------------------------------------- */

typedef struct model_probe {
    ivm__operator head;
    ivm_view view;
    ivm__operator *operators[1];
    ivm__zset rows; /* a result that stays empty */
    model *model;
    bool fails;
    uint32_t commits, undos;
    __int128 deltas[MODEL_TABLES][MODEL_ROWS];
    const char *wrong;
} model_probe;

static uint32_t chunk_row_number(const ivm__chunk *chunk, const model_table *table, uint32_t row)
{
    uint32_t number = 0;
    static const uint32_t radix[] = { 5, 4, 3 };
    for (uint32_t c = 0; c < MODEL_COLUMNS; c++) {
        int cell = -1;
        while (!ivm__is_null(&chunk->columns[c], row)) { /* once */
            ivm_value value = { .type = table->types[c] };
            if (IVM_TYPE_KIND(value.type) == IVM_STRING) {
                value = ivm_string_sized(ivm__text_cell(&chunk->columns[c], row)->bytes, ivm__text_cell(&chunk->columns[c], row)->size);
            } else if (ivm__type_is_wide(value.type)) {
                ivm__wide wide = ivm__wide_cell(&chunk->columns[c], row);
                memcpy(&value.as.decimal, &wide, sizeof wide);
            } else {
                value.as.int64 = (int64_t)ivm__word(&chunk->columns[c], row);
            }
            cell = cell_of(value.type, &value);
            break;
        }
        cr_assert_geq(cell, -1);
        number = number * radix[c] + (uint32_t)(cell + 1);
    }
    return number;
}

static bool nulls_are_zero(const ivm__chunk *chunk, uint32_t row)
{
    for (uint32_t c = 0; c < MODEL_COLUMNS; c++) {
        const ivm__vector *vector = &chunk->columns[c];
        if (ivm__is_null(vector, row) &&
            (ivm__type_is_wide(vector->type) ? ivm__wide_cell(vector, row) != 0 : ivm__word(vector, row) != 0)) {
            return false;
        }
    }
    return true;
}

/* Sums a table's delta up and checks what its reader may count on. */
static const char *delta_look(model_probe *probe, ivm__step *step, uint32_t t)
{
    ivm__source table = { .table = probe->model->handles[t] };
    ivm__delta_walk walk = { 0 };
    uint64_t rows = 0;
    bool mixed = ivm__source_delta_shape(step, table) == IVM_MIXED, negative = false;
    for (;;) {
        ivm__chunk *chunk;
        cr_assert_eq(ivm__source_delta_next(step, table, &walk, &chunk), IVM_OK);
        if (!chunk) {
            break;
        }
        if (chunk->rows_count == 0 || chunk->rows_count > IVM__CHUNK_ROWS || chunk->columns_count != MODEL_COLUMNS) {
            return "a chunk of the wrong size";
        }
        bool all_one = true;
        for (uint32_t i = 0; i < chunk->rows_count; i++) {
            ivm__weight weight = ivm__chunk_weight(chunk, i);
            uint32_t number = chunk_row_number(chunk, &probe->model->tables[t], i);
            if (weight == 0 || !nulls_are_zero(chunk, i) || (mixed && probe->deltas[t][number] != 0)) {
                return "a row of weight 0, a null's cell that is not zero, or a row twice in a mixed delta";
            }
            all_one &= weight == 1;
            negative |= weight < 0;
            probe->deltas[t][number] += weight;
        }
        if (all_one && chunk->weights) {
            return "weights where all are 1";
        }
        rows += chunk->rows_count;
    }
    ivm_shape shape = rows == 0 ? IVM_UNCHANGED : negative ? IVM_MIXED : IVM_INSERT_ONLY;
    return shape != ivm__source_delta_shape(step, table) || rows != ivm__source_delta_rows(step, table) ? "a shape or count of rows" : NULL;
}

static ivm_status probe_finish(ivm__operator *self, ivm__step *step)
{
    model_probe *probe = (model_probe *)self;
    memset(probe->deltas, 0, sizeof probe->deltas);
    probe->wrong = NULL;
    for (uint32_t t = 0; t < MODEL_TABLES && !probe->wrong; t++) {
        probe->wrong = delta_look(probe, step, t);
    }
    return probe->fails ? ivm__fail(step->error, IVM_OVERFLOW, "view by hand: told to") : IVM_OK;
}

static void probe_commit(ivm__operator *self)
{
    ((model_probe *)self)->commits++;
}

static void probe_undo(ivm__operator *self)
{
    ((model_probe *)self)->undos++;
}

static const ivm__operator_class probe_class = { .name = "probe", .finish = probe_finish, .commit = probe_commit, .undo = probe_undo };

const char *model_deltas_differ(const model *it)
{
    if (it->probe->wrong) {
        return it->probe->wrong;
    }
    return memcmp(it->deltas, it->probe->deltas, sizeof it->deltas) ? "net rows" : NULL;
}

void model_view_fails(model *it, bool fails)
{
    it->probe->fails = fails;
}

uint32_t model_view_commits(const model *it)
{
    return it->probe->commits;
}

uint32_t model_view_undos(const model *it)
{
    return it->probe->undos;
}

/* ---- Engines --------------------------------------------------------------------------------------------------------------------- */

static const model_table tables[MODEL_TABLES] = {
    { .name = "bag", .types = { IVM_INT64, IVM_STRING, IVM_DECIMAL(38, 2) } },
    { .name = "by_k", .key = "k", .key_count = 1, .types = { IVM_INT64, IVM_STRING, IVM_FLOAT64 }, .not_null = { true } },
    { .name = "by_s_k",
      .key = "s, k",
      .key_columns = { 1, 0 },
      .key_count = 2,
      .types = { IVM_INT64, IVM_STRING, IVM_DATE },
      .not_null = { true, true } },
    { .name = "log", .types = { IVM_INT64, IVM_STRING, IVM_BOOL }, .append_only = true, .not_null = { false, true } },
    { .name = "keyed_log",
      .key = "n,k",
      .key_columns = { 2, 0 },
      .key_count = 2,
      .types = { IVM_INT64, IVM_STRING, IVM_DECIMAL(38, 2) },
      .append_only = true,
      .not_null = { true, false, true } },
    { .name = "plain", .types = { IVM_INT64, IVM_STRING, IVM_TIMESTAMP }, .not_null = { true, true, true } },
    { .name = "signed", .types = { IVM_INT64, IVM_STRING, IVM_DECIMAL(38, 2) }, .not_null = { true }, .allow_negative = true },
};

static void table_make(model *it, uint32_t t)
{
    static const char *const names[] = { "k", "s", "n" };
    const model_table *table = &it->tables[t];
    ivm_column_definition columns[MODEL_COLUMNS];
    for (uint32_t c = 0; c < MODEL_COLUMNS; c++) {
        columns[c] = (ivm_column_definition){ names[c], table->types[c], table->not_null[c] };
    }
    ivm_table_options options = { .columns = columns,
                                  .columns_count = MODEL_COLUMNS,
                                  .key = table->key,
                                  .append_only = table->append_only,
                                  .allow_negative = table->allow_negative };
    cr_assert_eq(ivm_table_create(it->engine, table->name, &options, &it->handles[t], NULL), IVM_OK);
}

void model_open(model *it)
{
    static char by_hand[] = "by hand";
    memset(it, 0, sizeof *it);
    memcpy(it->tables, tables, sizeof tables);
    test_allocator_init(&it->allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&it->allocator);
    options.hash_seed = 42;
    cr_assert_eq(ivm_engine_open(&options, &it->engine, NULL), IVM_OK);
    for (uint32_t t = 0; t < MODEL_TABLES; t++) {
        table_make(it, t);
    }
    model_probe *probe = calloc(1, sizeof *probe);
    cr_assert_not_null(probe);
    ivm_engine *engine = it->engine;
    cr_assert_eq(ivm__zset_init(&probe->rows, &engine->memory, &engine->texts, 1, it->handles[0]->store.layout), IVM_OK);
    probe->head.class = &probe_class;
    probe->operators[0] = &probe->head;
    probe->model = it;
    probe->view = (ivm_view){ .engine = engine,
                              .name = by_hand,
                              .program = { .operators = probe->operators, .operators_count = 1, .result = &probe->rows.store } };
    it->probe = probe;
    engine->views = &probe->view;
}

void model_close(model *it)
{
    it->engine->views = NULL;
    ivm__zset_deinit(&it->probe->rows);
    free(it->probe);
    cr_assert_eq(ivm_engine_close(it->engine, NULL), IVM_OK);
    cr_assert(test_allocator_is_clean(&it->allocator));
}

/* ---- Contents -------------------------------------------------------------------------------------------------------------------- */

static bool table_read(model *it, uint32_t t, __int128 *weights)
{
    static const uint32_t radix[] = { 5, 4, 3 };
    ivm_snapshot *snapshot;
    cr_assert_eq(ivm_read_table(it->handles[t], &snapshot, NULL), IVM_OK);
    bool known = true;
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t r = 0; r < rows.rows_count; r++) {
            uint32_t number = 0;
            for (uint32_t c = 0; c < MODEL_COLUMNS; c++) {
                ivm_value value = ivm_rows_value(&rows, it->tables[t].types[c], r, c);
                int cell = cell_of(value.type, &value);
                known &= cell >= -1;
                number = number * radix[c] + (uint32_t)(cell + 1);
            }
            weights[known ? number : 0] += rows.weights ? rows.weights[r] : 1;
        }
    }
    cr_assert_eq(ivm_snapshot_status(snapshot), IVM_OK);
    ivm_snapshot_close(snapshot);
    return known;
}

const char *model_differs(model *it)
{
    for (uint32_t t = 0; t < MODEL_TABLES; t++) {
        __int128 weights[MODEL_ROWS] = { 0 };
        if (!table_read(it, t, weights)) {
            return "a value that nobody wrote";
        }
        if (memcmp(weights, it->tables[t].weights, sizeof weights)) {
            return it->tables[t].name;
        }
        const ivm_table *table = it->handles[t];
        uint64_t present = 0;
        for (uint32_t r = 0; r < MODEL_ROWS; r++) {
            present += weights[r] != 0;
        }
        if (table->allow_negative && table->store.rows_live != present) {
            return "equal rows that stand apart";
        }
        for (const ivm__index *index = table->store.indexes; index; index = index->next_of_store) {
            const char *wrong = ivm__index_validate(index);
            if (wrong) {
                return wrong;
            }
        }
        if (table->delta.chunks_count || table->delta.rows_count || table->delta.shape) {
            return "a delta after its step";
        }
    }
    return NULL;
}
