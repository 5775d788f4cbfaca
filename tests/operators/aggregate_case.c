/* See aggregate_case.h. */
#include "aggregate_case.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "join_case.h"

enum { G, H, V, D, M, S, B, T };

static const ivm_type types[AGG_COLUMNS] = { IVM_INT64,          IVM_STRING, IVM_INT64, IVM_FLOAT64,
                                             IVM_DECIMAL(12, 2), IVM_STRING, IVM_BOOL,  IVM_DATE };
static const char *const texts[AGG_TEXTS_COUNT] = { "", "a", "ab", "b", "zzz", "\xc3\xa9" }; /* in their order */

#define NO_ARGUMENT UINT32_MAX
#define UNTYPED_NULL (UINT32_MAX - 1)

typedef struct function_of {
    ivm__aggregate_function function;
    uint32_t column;
    bool where; /* v > 0 */
} function_of;

static const function_of functions[AGG_FUNCTIONS] = {
    { IVM__COUNT, NO_ARGUMENT, false },
    { IVM__COUNT, V, false },
    { IVM__SUM, V, false },
    { IVM__AVG, V, false },
    { IVM__MIN, V, false },
    { IVM__MAX, V, false },
    { IVM__SUM, D, false },
    { IVM__AVG, D, false },
    { IVM__MIN, D, false },
    { IVM__MAX, D, false },
    { IVM__SUM, M, false },
    { IVM__AVG, M, false },
    { IVM__MIN, M, false },
    { IVM__MAX, M, false },
    { IVM__MIN, S, false },
    { IVM__MAX, S, false },
    { IVM__MIN, B, false },
    { IVM__MAX, B, false },
    { IVM__MIN, T, false },
    { IVM__MAX, T, false },
    { IVM__COUNT, NO_ARGUMENT, true },
    { IVM__SUM, M, true },
    { IVM__MAX, S, true },
    { IVM__SUM, UNTYPED_NULL, false },
    { IVM__COUNT, UNTYPED_NULL, false },
    { IVM__MAX, UNTYPED_NULL, false },
};

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

static agg_output *outputs_next(agg_outputs *outputs)
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

static ivm_type result_type(const function_of *of)
{
    if (of->column == NO_ARGUMENT || of->column == UNTYPED_NULL || of->function == IVM__COUNT) {
        return of->function == IVM__AVG ? IVM_FLOAT64 : IVM_INT64;
    }
    if (of->function == IVM__AVG) {
        return IVM_FLOAT64;
    }
    return of->function == IVM__SUM && of->column == M ? IVM_DECIMAL(38, 2) : types[of->column];
}

static ivm_status sink_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk);
static const ivm__operator_class sink_class = { .name = "sink", .consume = sink_consume };

void agg_open(agg_case *it, uint32_t groups_count, bool having)
{
    ivm__aggregate_spec specs[AGG_FUNCTIONS];
    ivm__expression *groups[2] = { NULL, NULL };
    memset(it, 0, sizeof *it);
    it->groups_count = groups_count;
    it->having = having;
    test_allocator_init(&it->allocator);
    ivm_allocator allocator = test_allocator_functions(&it->allocator);
    hand_open(&it->it, &allocator);
    for (uint32_t i = 0; i < AGG_FUNCTIONS; i++) {
        const function_of *of = &functions[i];
        bool null = of->column == UNTYPED_NULL;
        specs[i] = (ivm__aggregate_spec){ .function = of->function, .type = null && of->function != IVM__COUNT ? 0 : result_type(of) };
        if (null) {
            specs[i].argument = ivm__expression_literal(&it->it.engine->memory, &it->it.engine->texts, 0, true, 0);
        } else if (of->column != NO_ARGUMENT) {
            specs[i].argument = case_column(&it->it, of->column, types[of->column]);
        }
        if (of->where) {
            specs[i].where = case_call(&it->it, IVM__GREATER, IVM_BOOL, case_column(&it->it, V, IVM_INT64), case_int64(&it->it, 0));
        }
    }
    for (uint32_t i = 0; i < groups_count; i++) {
        groups[i] = case_column(&it->it, i, types[i]);
    }
    ivm__expression *many = NULL;
    if (having) {
        many = case_call(&it->it, IVM__GREATER, IVM_BOOL, case_column(&it->it, groups_count, IVM_INT64), case_int64(&it->it, 1));
    }
    ivm_status status = ivm__aggregate_create(&it->it.engine->memory, &it->it.engine->texts, 42, groups, groups_count, specs, AGG_FUNCTIONS,
                                              many, &it->operator);
    cr_assert_eq(status, IVM_OK);
    it->operator->view = "v";
    it->sink = (ivm__operator){ .class = &sink_class, .view = (const char *)it };
    it->operator->next = & it->sink;
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
        agg_output *output = outputs_next(outputs);
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
    row.cells[G] = (ivm__wide)hand_below(random, 3) - 1;
    row.cells[H] = hand_below(random, 3);
    row.cells[V] = (ivm__wide)hand_below(random, 9) - 4;
    row.cells[D] = (ivm__wide)ivm__float_word(doubles[hand_below(random, hand_below(random, 4) ? 9 : 12)]);
    row.cells[M] = ((ivm__wide)hand_below(random, 2001) - 1000) * (hand_below(random, 4) ? 1 : 999999999);
    row.cells[S] = hand_below(random, AGG_TEXTS_COUNT);
    row.cells[B] = hand_below(random, 2);
    row.cells[T] = (ivm__wide)hand_below(random, 400) - 200;
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

static void live_change(agg_rows *live, const agg_row *change)
{
    for (size_t i = 0; i < live->count; i++) {
        if (same_row(&live->row[i], change)) {
            live->row[i].weight += change->weight;
            return;
        }
    }
    agg_rows_add(live, change);
}

static void live_sweep(agg_rows *live)
{
    size_t kept = 0;
    for (size_t i = 0; i < live->count; i++) {
        cr_assert(live->row[i].weight >= 0);
        live->row[kept] = live->row[i];
        kept += live->row[i].weight != 0;
    }
    live->count = kept;
}

/* Texts have no reference until a row in state holds one: they are made in the step. */
static ivm_status fill_column(agg_case *it, ivm__step *step, const agg_row *rows, ivm__chunk *chunk, uint32_t column)
{
    ivm__vector *vector = &chunk->columns[column];
    if (!ivm__vector_make(step->scratch, vector, types[column], chunk->rows_count, true)) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        uint64_t word = (uint64_t)rows[i].cells[column];
        vector->nulls[i] = rows[i].nulls[column];
        if (types[column] == IVM_STRING && !rows[i].nulls[column]) {
            const ivm__text *text;
            IVM_TRY(ivm__texts_intern(&it->it.engine->texts, texts[word], strlen(texts[word]), &text));
            word = (uint64_t)(uintptr_t)text;
        }
        if (ivm__type_is_wide(types[column])) {
            ((ivm__wide *)vector->cells)[i] = rows[i].cells[column];
        } else {
            ((uint64_t *)vector->cells)[i] = word;
        }
    }
    return IVM_OK;
}

static ivm_status give_chunk(agg_case *it, ivm__step *step, const agg_row *rows, uint32_t count)
{
    bool plain = true;
    ivm__chunk *chunk = ivm__chunk_make(step->scratch, types, AGG_COLUMNS);
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
    return it->operator->class->consume(it->operator, step, 0, chunk);
}

static ivm_status give(agg_case *it, ivm__step *step, const agg_rows *changes, uint64_t *random)
{
    for (size_t at = 0; at < changes->count;) {
        uint32_t count = 1 + hand_below(random, hand_below(random, 2) ? 3 : IVM__CHUNK_ROWS);
        count = count < changes->count - at ? count : (uint32_t)(changes->count - at);
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        IVM_TRY(give_chunk(it, step, changes->row + at, count));
        ivm__arena_back(step->scratch, mark);
        at += count;
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
            live_change(&it->live, &changes->row[i]);
        }
        live_sweep(&it->live);
    } else {
        it->operator->class->undo(it->operator);
    }
    ivm__engine_settle(it->it.engine);
    return status;
}

/* ---- The model ------------------------------------------------------------------------------------------------------------------------------- */

/* The rows of a group that a function takes, and what they come to. */
typedef struct reckoning {
    __int128 count, sum;
    ivm__wide least, greatest;
    ivm__exact_sum *floats;
} reckoning;

static void reckon(const agg_case *it, const function_of *of, const agg_row *row, reckoning *of_group)
{
    bool counts_rows = of->column == NO_ARGUMENT;
    if ((of->where && (row->nulls[V] || row->cells[V] <= 0)) || of->column == UNTYPED_NULL || (!counts_rows && row->nulls[of->column])) {
        return;
    }
    ivm__wide cell = counts_rows ? 0 : row->cells[of->column];
    ivm_type type = counts_rows ? IVM_INT64 : types[of->column];
    if (type == IVM_FLOAT64 && (of->function == IVM__SUM || of->function == IVM__AVG)) {
        ivm_status status = ivm__exact_sum_add(&it->it.engine->memory, &of_group->floats, ivm__word_float((uint64_t)cell), row->weight);
        cr_assert_eq(status, IVM_OK);
    }
    ivm_type order = type == IVM_STRING ? IVM_INT64 : type; /* texts are numbered in their order */
    if (of_group->count == 0 || ivm__cell_compare(order, cell, of_group->least) < 0) {
        of_group->least = cell;
    }
    if (of_group->count == 0 || ivm__cell_compare(order, cell, of_group->greatest) > 0) {
        of_group->greatest = cell;
    }
    of_group->count += row->weight;
    of_group->sum += cell * row->weight;
}

static ivm__wide word_of(double value)
{
    return (ivm__wide)(int64_t)ivm__float_word(value);
}

static void write_value(const function_of *of, const reckoning *group, ivm__wide *cell, bool *is_null)
{
    bool is_float = of->column < AGG_COLUMNS && types[of->column] == IVM_FLOAT64;
    *is_null = of->function != IVM__COUNT && group->count == 0;
    if (*is_null) {
        return;
    }
    switch (of->function) {
    case IVM__COUNT:
        *cell = group->count;
        break;
    case IVM__SUM:
        *cell = is_float ? word_of(ivm__exact_sum_value(group->floats)) : group->sum;
        break;
    case IVM__AVG:
        /* A quotient of 113 bits, rounded again: right but for one in 2^60. */
        *cell = word_of(is_float ? ivm__exact_sum_average(group->floats, group->count)
                                 : (double)((__float128)group->sum / ((__float128)group->count * (of->column == M ? 100 : 1))));
        break;
    default:
        *cell = of->function == IVM__MIN ? group->least : group->greatest;
        if (of->column == D) {
            *cell = (ivm__wide)(int64_t)(uint64_t)*cell;
        }
    }
}

static bool in_group(const agg_case *it, const agg_row *a, const agg_row *b)
{
    for (uint32_t c = 0; c < it->groups_count; c++) {
        if (a->nulls[c] != b->nulls[c] || a->cells[c] != b->cells[c]) {
            return false;
        }
    }
    return true;
}

/* The row of the group that `first` is in; NULL: of no rows. */
static void model_group(const agg_case *it, const agg_row *first, agg_outputs *outputs)
{
    agg_output output = { .weight = 1 };
    for (uint32_t c = 0; c < it->groups_count; c++) {
        output.cells[c] = first->cells[c];
        output.nulls[c] = first->nulls[c];
    }
    for (uint32_t f = 0; f < AGG_FUNCTIONS; f++) {
        reckoning group = { 0 };
        for (size_t i = 0; first && i < it->live.count; i++) {
            if (in_group(it, first, &it->live.row[i])) {
                reckon(it, &functions[f], &it->live.row[i], &group);
            }
        }
        write_value(&functions[f], &group, &output.cells[it->groups_count + f], &output.nulls[it->groups_count + f]);
        ivm__exact_sum_free(&it->it.engine->memory, group.floats);
    }
    if (!it->having || output.cells[it->groups_count] > 1) {
        *outputs_next(outputs) = output;
    }
}

void agg_model(const agg_case *it, agg_outputs *outputs)
{
    *outputs = (agg_outputs){ .columns_count = it->groups_count + AGG_FUNCTIONS };
    for (size_t i = 0; i < it->live.count; i++) {
        bool is_first = true;
        for (size_t j = 0; j < i && is_first; j++) {
            is_first = !in_group(it, &it->live.row[j], &it->live.row[i]);
        }
        if (is_first) {
            model_group(it, &it->live.row[i], outputs);
        }
    }
    if (it->live.count == 0 && it->groups_count == 0) {
        model_group(it, NULL, outputs);
    }
}

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
                agg_output *change = outputs_next(changes);
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
