/* See aggregate_case.h. */
#include "aggregate_case.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "aggregate_model.h"
#include "join_case.h"

static const char *const texts[AGG_TEXTS_COUNT] = { "", "a", "ab", "b", "zzz", "\xc3\xa9" }; /* in their order */

/* ---- Arrays --------------------------------------------------------------------------------------------------------------------------- */

void agg_rows_add(agg_rows *rows, const agg_row *row)
{
    if (rows->count == rows->capacity) {
        rows->capacity = rows->capacity ? rows->capacity * 2 : 16;
        rows->row = realloc(rows->row, rows->capacity * sizeof *rows->row);
        cr_assert_not_null(rows->row);
    }
    rows->row[rows->count++] = *row;
}

void agg_rows_free(agg_rows *rows)
{
    free(rows->row);
    *rows = (agg_rows){ 0 };
}

agg_output *agg_outputs_next(agg_outputs *outputs)
{
    if (outputs->count == outputs->capacity) {
        outputs->capacity = outputs->capacity ? outputs->capacity * 2 : 16;
        outputs->row = realloc(outputs->row, outputs->capacity * sizeof *outputs->row);
        cr_assert_not_null(outputs->row);
    }
    memset(&outputs->row[outputs->count], 0, sizeof *outputs->row);
    return &outputs->row[outputs->count++];
}

void agg_outputs_free(agg_outputs *outputs)
{
    free(outputs->row);
    *outputs = (agg_outputs){ 0 };
}

/* ---- The operator ------------------------------------------------------------------------------------------------------------------------ */

/* 0: of an untyped null's own type. */
static ivm_type result_type(const agg_function *of)
{
    switch (of->function) {
    case IVM__COUNT:
    case IVM__COUNT_DISTINCT:
        return IVM_INT64;
    case IVM__BOOL_AND:
    case IVM__BOOL_OR:
        return IVM_BOOL;
    case IVM__SUM:
    case IVM__SUM_DISTINCT:
        return of->column == AGG_M ? IVM_DECIMAL(38, 2) : of->column == AGG_UNTYPED_NULL ? 0 : agg_types[of->column];
    case IVM__MIN:
    case IVM__MAX:
        return of->column == AGG_UNTYPED_NULL ? 0 : agg_types[of->column];
    default:
        return IVM_FLOAT64;
    }
}

static ivm_status sink_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk);
static const ivm__operator_class sink_class = { .name = "sink", .consume = sink_consume };

static void open_with(agg_case *it, uint32_t groups_count, bool having, bool negative)
{
    ivm__aggregate_spec specs[AGG_FUNCTIONS];
    ivm__expression *groups[2] = { NULL, NULL };
    memset(it, 0, sizeof *it);
    it->groups_count = groups_count;
    it->having = having;
    it->negative = negative;
    test_allocator_init(&it->allocator);
    ivm_allocator allocator = test_allocator_functions(&it->allocator);
    hand_open(&it->it, &allocator);
    for (uint32_t i = 0; i < AGG_FUNCTIONS; i++) {
        const agg_function *of = &agg_functions[i];
        bool null = of->column == AGG_UNTYPED_NULL;
        specs[i] = (ivm__aggregate_spec){ .function = of->function, .type = result_type(of), .name = "a" };
        if (null) {
            specs[i].argument = ivm__expression_literal(&it->it.engine->memory, &it->it.engine->texts, 0, true, 0);
        } else if (of->column != AGG_NO_ARGUMENT) {
            specs[i].argument = case_column(&it->it, of->column, agg_types[of->column]);
        }
        if (of->where) {
            specs[i].where = case_call(&it->it, IVM__GREATER, IVM_BOOL, case_column(&it->it, AGG_V, IVM_INT64), case_int64(&it->it, 0));
        }
    }
    for (uint32_t i = 0; i < groups_count; i++) {
        groups[i] = case_column(&it->it, i, agg_types[i]);
    }
    ivm__expression *many = NULL;
    if (having) {
        many = case_call(&it->it, IVM__GREATER, IVM_BOOL, case_column(&it->it, groups_count, IVM_INT64), case_int64(&it->it, 1));
    }
    ivm_status status = ivm__aggregate_create(&it->it.engine->memory, &it->it.engine->texts, 42, groups, groups_count, specs, AGG_FUNCTIONS,
                                              many, &it->operator);
    cr_assert_eq(status, IVM_OK);
    if (negative) {
        cr_assert_eq(ivm__aggregate_negative(it->operator), IVM_OK);
    }
    it->operator->view = "v";
    it->sink = (ivm__operator){ .class = &sink_class, .view = (const char *)it };
    it->operator->next = & it->sink;
}

void agg_open(agg_case *it, uint32_t groups_count, bool having)
{
    open_with(it, groups_count, having, false);
}

void agg_open_negative(agg_case *it, uint32_t groups_count, bool having)
{
    open_with(it, groups_count, having, true);
}

void agg_close(agg_case *it)
{
    it->operator->class->free(it->operator, & it->it.engine->memory);
    hand_close(&it->it);
    agg_rows_free(&it->live);
    agg_outputs_free(&it->emitted);
    cr_assert(test_allocator_is_clean(&it->allocator), "%ld blocks left", (long)it->allocator.blocks);
}

static uint32_t text_number(const ivm__text *text)
{
    for (uint32_t i = 0; i < AGG_TEXTS_COUNT; i++) {
        if (strlen(texts[i]) == text->size && memcmp(texts[i], text->bytes, text->size) == 0) {
            return i;
        }
    }
    cr_assert_fail("a text that was never given");
    return 0;
}

static void chunk_outputs(const ivm__chunk *chunk, agg_outputs *outputs)
{
    outputs->columns_count = chunk->columns_count;
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        agg_output *output = agg_outputs_next(outputs);
        output->weight = (int64_t)ivm__chunk_weight(chunk, i);
        for (uint32_t c = 0; c < chunk->columns_count; c++) {
            const ivm__vector *vector = &chunk->columns[c];
            output->nulls[c] = ivm__is_null(vector, i);
            if (output->nulls[c]) {
                continue;
            }
            output->cells[c] = ivm__type_is_wide(vector->type)        ? ivm__wide_cell(vector, i)
                               : vector->type == (ivm_type)IVM_STRING ? text_number(ivm__text_cell(vector, i))
                                                                      : (ivm__wide)(int64_t)ivm__word(vector, i);
        }
    }
}

static ivm_status sink_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    agg_case *it = (agg_case *)(uintptr_t)self->view;
    (void)step;
    (void)port;
    it->emitted_chunks++;
    chunk_outputs(chunk, &it->emitted);
    return IVM_OK;
}

/* ---- Steps ---------------------------------------------------------------------------------------------------------------------------------- */

agg_row agg_draw(uint64_t *random)
{
    static const double doubles[] = { 0.1, 0.2, -0.3, 1e300, -1e300, 1e-300, 0x1p-1074, 0, 3, NAN, INFINITY, -INFINITY };
    agg_row row = { .weight = 1 + hand_below(random, 3) };
    for (uint32_t c = 0; c < AGG_COLUMNS; c++) {
        row.nulls[c] = hand_below(random, 5) == 0;
    }
    row.cells[AGG_G] = (ivm__wide)hand_below(random, 3) - 1;
    row.cells[AGG_H] = hand_below(random, 3);
    row.cells[AGG_V] = (ivm__wide)hand_below(random, 9) - 4;
    row.cells[AGG_D] = (ivm__wide)ivm__float_word(doubles[hand_below(random, hand_below(random, 4) ? 9 : 12)]);
    row.cells[AGG_M] = ((ivm__wide)hand_below(random, 2001) - 1000) * (hand_below(random, 4) ? 1 : 999999999);
    row.cells[AGG_S] = hand_below(random, AGG_TEXTS_COUNT);
    row.cells[AGG_B] = hand_below(random, 2);
    row.cells[AGG_T] = (ivm__wide)hand_below(random, 400) - 200;
    for (uint32_t c = 0; c < AGG_COLUMNS; c++) {
        row.cells[c] = row.nulls[c] ? 0 : row.cells[c];
    }
    return row;
}

void agg_shuffle(agg_rows *rows, uint64_t *random)
{
    for (size_t i = rows->count; i > 1; i--) {
        size_t j = hand_below(random, (uint32_t)i);
        agg_row kept = rows->row[i - 1];
        rows->row[i - 1] = rows->row[j];
        rows->row[j] = kept;
    }
}

void agg_changes(const agg_case *it, uint32_t count, bool noise, agg_rows *changes, uint64_t *random)
{
    *changes = (agg_rows){ 0 };
    for (uint32_t i = 0; i < count; i++) {
        agg_row row = agg_draw(random);
        if (hand_below(random, 2) && i < it->live.count) { /* each live row at most once */
            row = it->live.row[i];
            row.weight = -(hand_below(random, 3) ? row.weight : 1);
        } else if (it->negative && hand_below(random, 2)) {
            row.weight = -row.weight;
        }
        agg_rows_add(changes, &row);
        if (noise && hand_below(random, 3) == 0) {
            row = agg_draw(random);
            row.weight *= hand_below(random, 2) ? 1 : (ivm__weight)1 << 100;
            agg_rows_add(changes, &row);
            row.weight = -row.weight;
            agg_rows_add(changes, &row);
        }
    }
    agg_shuffle(changes, random);
}

static bool same_row(const agg_row *a, const agg_row *b)
{
    return memcmp(a->cells, b->cells, sizeof a->cells) == 0 && memcmp(a->nulls, b->nulls, sizeof a->nulls) == 0;
}

static void rows_change(agg_rows *live, const agg_row *change)
{
    for (size_t i = 0; i < live->count; i++) {
        if (same_row(&live->row[i], change)) {
            live->row[i].weight += change->weight;
            return;
        }
    }
    agg_rows_add(live, change);
}

/* Takes out what weighs nothing. */
static void rows_sweep(agg_rows *live, bool negative)
{
    size_t kept = 0;
    for (size_t i = 0; i < live->count; i++) {
        cr_assert(live->row[i].weight >= 0 || negative);
        live->row[kept] = live->row[i];
        kept += live->row[i].weight != 0;
    }
    live->count = kept;
}

/* Texts have no reference until a row in state holds one: they are made in the step. */
static ivm_status fill_column(agg_case *it, ivm__step *step, const agg_row *rows, ivm__chunk *chunk, uint32_t column)
{
    ivm__vector *vector = &chunk->columns[column];
    if (!ivm__vector_make(step->scratch, vector, agg_types[column], chunk->rows_count, true)) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        uint64_t word = (uint64_t)rows[i].cells[column];
        vector->nulls[i] = rows[i].nulls[column];
        if (agg_types[column] == IVM_STRING && !rows[i].nulls[column]) {
            const ivm__text *text;
            IVM_TRY(ivm__texts_intern(&it->it.engine->texts, texts[word], strlen(texts[word]), &text));
            word = (uint64_t)(uintptr_t)text;
        }
        if (ivm__type_is_wide(agg_types[column])) {
            ((ivm__wide *)vector->cells)[i] = rows[i].cells[column];
        } else {
            ((uint64_t *)vector->cells)[i] = word;
        }
    }
    return IVM_OK;
}

static ivm_status give_chunk(agg_case *it, ivm__step *step, uint32_t port, const agg_row *rows, uint32_t count)
{
    bool plain = true;
    ivm__chunk *chunk = ivm__chunk_make(step->scratch, agg_types, AGG_COLUMNS);
    ivm__weight *weights = ivm__arena_allocate(step->scratch, count * sizeof *weights);
    if (!chunk || !weights) {
        return IVM_OUT_OF_MEMORY;
    }
    chunk->rows_count = count;
    for (uint32_t i = 0; i < count; i++) {
        weights[i] = rows[i].weight;
        plain &= weights[i] == 1;
    }
    chunk->weights = plain ? NULL : weights;
    for (uint32_t c = 0; c < AGG_COLUMNS; c++) {
        IVM_TRY(fill_column(it, step, rows, chunk, c));
    }
    return it->operator->class->consume(it->operator, step, port, chunk);
}

static ivm_status give_rows(agg_case *it, ivm__step *step, uint32_t port, const agg_rows *rows, uint64_t *random)
{
    for (size_t at = 0; at < rows->count;) {
        uint32_t count = 1 + hand_below(random, hand_below(random, 2) ? 3 : IVM__CHUNK_ROWS);
        count = count < rows->count - at ? count : (uint32_t)(rows->count - at);
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        IVM_TRY(give_chunk(it, step, port, rows->row + at, count));
        ivm__arena_back(step->scratch, mark);
        at += count;
    }
    return IVM_OK;
}

/* What a port is told of a row that weighs this. */
static ivm__weight weight_told(uint32_t port, ivm__weight weight)
{
    return port == IVM__AGGREGATE_ROWS ? weight : port == IVM__AGGREGATE_PRESENT ? (weight > 0 ? weight : 0) : weight != 0;
}

/* What a port is told of the changes. Rows as they come are as noisy as the changes. */
static void rows_told(const agg_case *it, uint32_t port, const agg_rows *changes, agg_rows *told)
{
    agg_rows after = { 0 };
    *told = (agg_rows){ 0 };
    for (size_t i = 0; i < it->live.count; i++) {
        agg_rows_add(&after, &it->live.row[i]);
    }
    for (size_t i = 0; i < changes->count; i++) {
        if (port == IVM__AGGREGATE_ROWS) {
            agg_rows_add(told, &changes->row[i]);
        }
        rows_change(&after, &changes->row[i]);
    }
    for (size_t i = 0; i < after.count && port != IVM__AGGREGATE_ROWS; i++) {
        agg_row row = after.row[i];
        ivm__weight before = i < it->live.count ? it->live.row[i].weight : 0;
        row.weight = weight_told(port, row.weight) - weight_told(port, before);
        if (row.weight) {
            agg_rows_add(told, &row);
        }
    }
    agg_rows_free(&after);
}

static ivm_status give(agg_case *it, ivm__step *step, const agg_rows *changes, uint64_t *random)
{
    uint32_t first = it->negative ? hand_below(random, 3) : 0;
    for (uint32_t i = 0; i < (it->negative ? 3 : 1); i++) {
        agg_rows told;
        uint32_t port = (first + i) % 3;
        rows_told(it, port, changes, &told);
        ivm_status status = give_rows(it, step, port, &told, random);
        agg_rows_free(&told);
        IVM_TRY(status);
    }
    return it->operator->class->finish(it->operator, step);
}

ivm_status agg_step(agg_case *it, const agg_rows *changes, bool initial, bool keep, uint64_t *random)
{
    ivm__step step;
    it->emitted.count = it->emitted_chunks = 0;
    ivm__step_init(&step, it->it.engine, &it->it.stats, &it->it.error);
    step.initial = initial;
    ivm_status status = give(it, &step, changes, random);
    if (status == IVM_OK && keep) {
        it->operator->class->commit(it->operator);
        for (size_t i = 0; i < changes->count; i++) {
            rows_change(&it->live, &changes->row[i]);
        }
        rows_sweep(&it->live, it->negative);
    } else {
        it->operator->class->undo(it->operator);
    }
    ivm__engine_settle(it->it.engine);
    return status;
}

/* ---- Results --------------------------------------------------------------------------------------------------------------------------------- */

void agg_result(agg_case *it, agg_outputs *outputs)
{
    const ivm__store *store = ivm__aggregate_result(it->operator);
    *outputs = (agg_outputs){ .columns_count = it->groups_count + AGG_FUNCTIONS };
    for (uint32_t next = 0;;) {
        ivm__chunk *chunk;
        cr_assert_eq(ivm__store_chunk(store, &it->it.engine->scratch, IVM__READ_CUR, &next, &chunk), IVM_OK);
        if (!chunk) {
            break;
        }
        chunk_outputs(chunk, outputs);
        ivm__arena_reset(&it->it.engine->scratch);
    }
    cr_assert_eq(outputs->count, store->rows_live);
}

/* ---- Comparing --------------------------------------------------------------------------------------------------------------------------------- */

static int compare_outputs(const void *left, const void *right)
{
    const agg_output *a = left, *b = right;
    for (uint32_t c = 0; c < AGG_OUTPUTS_MAX; c++) {
        int order = a->nulls[c] != b->nulls[c]   ? a->nulls[c] - b->nulls[c]
                    : a->cells[c] != b->cells[c] ? (a->cells[c] > b->cells[c]) - (a->cells[c] < b->cells[c])
                                                 : 0;
        if (order) {
            return order;
        }
    }
    return (a->weight > b->weight) - (a->weight < b->weight);
}

void agg_difference(const agg_outputs *before, const agg_outputs *after, agg_outputs *changes)
{
    *changes = (agg_outputs){ .columns_count = after->columns_count };
    for (int side = 0; side < 2; side++) {
        const agg_outputs *of = side ? after : before, *other = side ? before : after;
        for (size_t i = 0; i < of->count; i++) {
            bool stays = false;
            for (size_t j = 0; j < other->count && !stays; j++) {
                stays = compare_outputs(&of->row[i], &other->row[j]) == 0;
            }
            if (!stays) {
                agg_output *change = agg_outputs_next(changes);
                *change = of->row[i];
                change->weight = side ? 1 : -1;
            }
        }
    }
}

static void print_output(const char *what, const agg_outputs *outputs, size_t at)
{
    fprintf(stderr, "  %s:", what);
    for (uint32_t c = 0; at < outputs->count && c < outputs->columns_count; c++) {
        const agg_output *row = &outputs->row[at];
        row->nulls[c] ? fprintf(stderr, " null") : fprintf(stderr, " %lld", (long long)row->cells[c]);
    }
    fprintf(stderr, at < outputs->count ? " weight %lld\n" : " nothing\n", at < outputs->count ? (long long)outputs->row[at].weight : 0);
}

bool agg_equal(agg_outputs *got, agg_outputs *want)
{
    if (got->count) {
        qsort(got->row, got->count, sizeof *got->row, compare_outputs);
    }
    if (want->count) {
        qsort(want->row, want->count, sizeof *want->row, compare_outputs);
    }
    for (size_t i = 0; i < got->count || i < want->count; i++) {
        if (i >= got->count || i >= want->count || compare_outputs(&got->row[i], &want->row[i]) != 0) {
            print_output("got ", got, i);
            print_output("want", want, i);
            return false;
        }
    }
    return true;
}

void agg_assert_step(agg_case *it, agg_outputs *before, const char *when, uint64_t seed)
{
    agg_outputs want, got, changes;
    agg_model(it, &want);
    agg_result(it, &got);
    agg_difference(before, &want, &changes);
    cr_assert(agg_equal(&got, &want), "result %s, seed %lu", when, (unsigned long)seed);
    cr_assert(agg_equal(&it->emitted, &changes), "changes %s, seed %lu", when, (unsigned long)seed);
    agg_outputs_free(before);
    agg_outputs_free(&got);
    agg_outputs_free(&changes);
    *before = want;
}
