/* See hand.h. */
#include "hand.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Bags -------------------------------------------------------------------------------------------------------------------------- */

void hand_bag_add(hand_bag *bag, const hand_row *row)
{
    if (bag->count == bag->capacity) {
        bag->capacity = bag->capacity ? bag->capacity * 2 : 16;
        bag->rows = realloc(bag->rows, bag->capacity * sizeof *bag->rows);
        cr_assert_not_null(bag->rows);
    }
    bag->rows[bag->count++] = *row;
}

static int row_compare(const void *left, const void *right)
{
    const hand_row *a = left, *b = right;
    for (uint32_t c = 0; c < HAND_COLUMNS_MAX; c++) {
        int64_t x = a->nulls[c] ? 0 : a->cells[c], y = b->nulls[c] ? 0 : b->cells[c];
        int order = a->nulls[c] != b->nulls[c] ? a->nulls[c] - b->nulls[c] : (x > y) - (x < y);
        if (order) {
            return order;
        }
    }
    return 0;
}

void hand_bag_settle(hand_bag *bag)
{
    if (bag->count == 0) {
        return;
    }
    qsort(bag->rows, bag->count, sizeof *bag->rows, row_compare);
    size_t kept = 0;
    for (size_t i = 0; i < bag->count; i++) {
        if (kept > 0 && row_compare(&bag->rows[kept - 1], &bag->rows[i]) == 0) {
            bag->rows[kept - 1].weight += bag->rows[i].weight;
        } else {
            kept -= kept > 0 && bag->rows[kept - 1].weight == 0;
            bag->rows[kept++] = bag->rows[i];
        }
    }
    bag->count = kept - (bag->rows[kept - 1].weight == 0);
}

void hand_bag_copy(hand_bag *to, const hand_bag *from)
{
    *to = (hand_bag){ .columns_count = from->columns_count };
    for (size_t i = 0; i < from->count; i++) {
        hand_bag_add(to, &from->rows[i]);
    }
}

void hand_bag_free(hand_bag *bag)
{
    free(bag->rows);
    *bag = (hand_bag){ 0 };
}

static void row_print(const char *what, const hand_bag *bag, size_t at)
{
    fprintf(stderr, "  %s:", what);
    if (at >= bag->count) {
        fprintf(stderr, " nothing\n");
        return;
    }
    const hand_row *row = &bag->rows[at];
    for (uint32_t c = 0; c < bag->columns_count; c++) {
        row->nulls[c] ? fprintf(stderr, " null") : fprintf(stderr, " %lld", (long long)row->cells[c]);
    }
    fprintf(stderr, " weight %lld\n", (long long)row->weight);
}

bool hand_bag_equal(hand_bag *got, hand_bag *want)
{
    hand_bag_settle(got);
    hand_bag_settle(want);
    for (size_t i = 0; i < got->count || i < want->count; i++) {
        if (i >= got->count || i >= want->count || row_compare(&got->rows[i], &want->rows[i]) ||
            got->rows[i].weight != want->rows[i].weight) {
            fprintf(stderr, "%zu rows, %zu wanted; row %zu differs\n", got->count, want->count, i);
            row_print("got", got, i);
            row_print("want", want, i);
            return false;
        }
    }
    return true;
}

hand_row hand_cells(const int64_t *cells, uint32_t count)
{
    hand_row row = { .weight = 1 };
    for (uint32_t c = 0; c < count; c++) {
        row.nulls[c] = cells[c] == HAND_NULL;
        row.cells[c] = row.nulls[c] ? 0 : cells[c];
    }
    return row;
}

/* ---- Reading ------------------------------------------------------------------------------------------------------------------------- */

static int64_t cell_number(const ivm__vector *vector, uint32_t row)
{
    switch (IVM_TYPE_KIND(vector->type)) {
    case IVM_DECIMAL_KIND:
        return (int64_t)ivm__wide_cell(vector, row);
    case IVM_STRING:
        return strtoll(ivm__text_cell(vector, row)->bytes, NULL, 10);
    case IVM_FLOAT64:
        return (int64_t)ivm__word_float(ivm__word(vector, row));
    default:
        return (int64_t)ivm__word(vector, row);
    }
}

void hand_chunk_rows(const ivm__chunk *chunk, hand_bag *bag)
{
    cr_assert(chunk->rows_count > 0 && chunk->rows_count <= IVM__CHUNK_ROWS);
    cr_assert_leq(chunk->columns_count, HAND_COLUMNS_MAX);
    bag->columns_count = chunk->columns_count;
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        hand_row row = { .weight = ivm__chunk_weight(chunk, i) };
        for (uint32_t c = 0; c < chunk->columns_count; c++) {
            const ivm__vector *vector = &chunk->columns[c];
            row.nulls[c] = vector->cells && ivm__is_null(vector, i);
            row.cells[c] = vector->cells && !row.nulls[c] ? cell_number(vector, i) : 0;
        }
        hand_bag_add(bag, &row);
    }
}

void hand_store_rows(const ivm__store *store, hand_bag *bag)
{
    ivm__memory memory;
    ivm__memory_init(&memory, NULL);
    ivm__arena arena;
    ivm__arena_init(&arena, &memory);
    for (uint32_t next = 0;;) {
        ivm__chunk *chunk;
        cr_assert_eq(ivm__store_chunk(store, &arena, IVM__READ_CUR, &next, &chunk), IVM_OK);
        if (!chunk) {
            break;
        }
        hand_chunk_rows(chunk, bag);
        ivm__arena_reset(&arena);
    }
    bag->columns_count = store->layout->columns_count;
    ivm__arena_deinit(&arena);
}

/* ---- Engines and tables ---------------------------------------------------------------------------------------------------------------- */

void hand_open(hand *it, const ivm_allocator *allocator)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    if (allocator) {
        options.allocator = *allocator;
    }
    options.hash_seed = 42;
    memset(it, 0, sizeof *it);
    cr_assert_eq(ivm_engine_open(&options, &it->engine, &it->error), IVM_OK, "%s", it->error.message);
    it->program.memory = &it->engine->memory;
}

void hand_close(hand *it)
{
    ivm__program_deinit(&it->program);
    cr_assert_eq(ivm_engine_close(it->engine, &it->error), IVM_OK, "%s", it->error.message);
}

ivm_table *hand_table(hand *it, const char *name, const ivm_type *types, const char *nullable, const char *key)
{
    static const char *const names[] = { "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7" };
    ivm_column_definition columns[8];
    size_t count = strlen(nullable);
    for (size_t c = 0; c < count; c++) {
        columns[c] = (ivm_column_definition){ names[c], types[c], nullable[c] != '?' };
    }
    ivm_table_options options = { .columns = columns, .columns_count = count, .key = key };
    ivm_table *table;
    cr_assert_eq(ivm_table_create(it->engine, name, &options, &table, &it->error), IVM_OK, "%s", it->error.message);
    return table;
}

ivm_batch *hand_batch(hand *it)
{
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(it->engine, &batch, &it->error), IVM_OK, "%s", it->error.message);
    return batch;
}

static ivm_value cell_value(ivm_type type, int64_t cell, char *text)
{
    switch (IVM_TYPE_KIND(type)) {
    case IVM_BOOL:
        return ivm_bool(cell & 1);
    case IVM_FLOAT64:
        return ivm_float64((double)cell);
    case IVM_STRING:
        snprintf(text, 24, "%lld", (long long)cell);
        return ivm_string(text);
    case IVM_DATE:
        return ivm_date((int32_t)cell);
    case IVM_TIMESTAMP:
        return ivm_timestamp(cell);
    case IVM_DECIMAL_KIND:
        return ivm_decimal(type, (ivm_int128){ (uint64_t)cell, cell < 0 ? -1 : 0 });
    default:
        return ivm_int64(cell);
    }
}

void hand_change(ivm_batch *batch, ivm_table *table, hand_row row, int64_t weight)
{
    ivm_value values[HAND_COLUMNS_MAX];
    char texts[HAND_COLUMNS_MAX][24];
    for (uint32_t c = 0; c < table->columns_count; c++) {
        values[c] = row.nulls[c] ? ivm_null() : cell_value(table->types[c], row.cells[c], texts[c]);
    }
    cr_assert_eq(ivm_batch_row(batch, table, IVM_WEIGHTED, weight, values, table->columns_count), IVM_OK);
}

/* ---- Steps ------------------------------------------------------------------------------------------------------------------------------- */

void hand_add(hand *it, ivm__operator *operator, ivm__operator * below, uint32_t port)
{
    operator->view = "v";
    if (below) {
        below->next = operator;
        below->next_port = port;
    }
    cr_assert_eq(ivm__program_add(&it->program, operator), IVM_OK);
}

static ivm_status step_end(hand *it, ivm_status status, bool keep)
{
    if (status == IVM_OK && keep) {
        ivm__program_commit(&it->program);
        ivm__stage_commit(it->engine);
    } else {
        ivm__program_undo(&it->program);
        ivm__stage_undo(it->engine);
    }
    ivm__engine_settle(it->engine);
    return status;
}

ivm_status hand_step(hand *it, const ivm_batch *batch, bool keep)
{
    ivm__step step;
    it->stats = (ivm_stats){ 0 };
    ivm__step_init(&step, it->engine, &it->stats, &it->error);
    ivm_status status = ivm__stage_apply(&step, batch);
    if (status == IVM_OK) {
        status = ivm__program_run(&it->program, &step);
    }
    return step_end(it, status, keep);
}

ivm_status hand_push(hand *it, ivm_batch *batch)
{
    ivm_status status = hand_step(it, batch, true);
    ivm_batch_free(batch);
    return status;
}

ivm_status hand_push_row(hand *it, ivm_table *table, hand_row row, int64_t weight)
{
    ivm_batch *batch = hand_batch(it);
    hand_change(batch, table, row, weight);
    return hand_push(it, batch);
}

ivm_status hand_fill(hand *it, bool keep)
{
    ivm__step step;
    it->stats = (ivm_stats){ 0 };
    ivm__step_init(&step, it->engine, &it->stats, &it->error);
    step.initial = true;
    return step_end(it, ivm__program_run(&it->program, &step), keep);
}

ivm_status hand_stage(hand *it, const ivm_batch *batch)
{
    ivm__step step;
    ivm__step_init(&step, it->engine, &it->stats, &it->error);
    ivm_status status = ivm__stage_apply(&step, batch);
    status == IVM_OK ? ivm__stage_commit(it->engine) : ivm__stage_undo(it->engine);
    ivm__engine_settle(it->engine);
    return status;
}

/* ---- Sinks ------------------------------------------------------------------------------------------------------------------------------- */

static ivm_status sink_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    hand_sink *sink = (hand_sink *)self;
    (void)port;
    sink->chunks_count++;
    sink->rows_count += chunk->rows_count;
    sink->first_cells = chunk->columns[0].cells;
    sink->weights = chunk->weights;
    sink->loading = step->loading;
    for (uint32_t c = 0; c < chunk->columns_count; c++) {
        sink->carried[c] = chunk->columns[c].cells != NULL;
    }
    hand_chunk_rows(chunk, &sink->rows);
    return IVM_OK;
}

static void sink_free(ivm__operator *self, ivm__memory *memory)
{
    (void)memory;
    hand_bag_free(&((hand_sink *)self)->rows);
    free(self);
}

static const ivm__operator_class sink_class = { .name = "sink", .consume = sink_consume, .free = sink_free };

hand_sink *hand_sink_add(hand *it, ivm__operator *below)
{
    hand_sink *sink = calloc(1, sizeof *sink);
    cr_assert_not_null(sink);
    sink->head.class = &sink_class;
    hand_add(it, &sink->head, below, 0);
    return sink;
}

/* xorshift* */
uint64_t hand_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545F4914F6CDD1Dull >> 16;
}

/* ---- Memory running out -------------------------------------------------------------------------------------------------------------- */

bool hand_trial_next(hand_trial *trial)
{
    cr_assert(trial->n == 0 || test_allocator_is_clean(&trial->allocator), "allocation %llu", (unsigned long long)trial->n);
    if (trial->done) {
        return false;
    }
    trial->n++;
    test_allocator_init(&trial->allocator);
    trial->functions = test_allocator_functions(&trial->allocator);
    return true;
}

void hand_trial_arm(hand_trial *trial)
{
    test_allocator_arm(&trial->allocator, trial->n);
}

bool hand_trial_disarm(hand_trial *trial)
{
    trial->done = !test_allocator_disarm(&trial->allocator);
    trial->failures += !trial->done;
    return trial->done;
}

void hand_trial_judge(hand_trial *trial, ivm_status status, ivm_status wanted)
{
    bool done = hand_trial_disarm(trial);
    cr_assert_eq(status, done ? wanted : IVM_OUT_OF_MEMORY, "allocation %llu", (unsigned long long)trial->n);
}

void hand_trial_judge_made(hand_trial *trial, hand *it, ivm_status status, ivm__operator *made)
{
    hand_trial_judge(trial, status, IVM_OK);
    if (status == IVM_OK) {
        made->class->free(made, &it->engine->memory);
    }
    hand_close(it);
}
