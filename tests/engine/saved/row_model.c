/* Random rows: cells at the ends of each type among them, texts that begin alike, and few enough of them that rows are often equal in part. */
#include "row_model.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "random.h"
#include "wide.h"

uint64_t row_model_random(row_model *with)
{
    return random_next(&with->state);
}

void row_model_open(row_model *with, uint64_t seed, const ivm_type *types, uint32_t columns_count)
{
    *with = (row_model){ .state = seed * 0x9e3779b97f4a7c15ull | 1, .columns_count = columns_count, .domain = 40, .nulls_per_cent = 10 };
    cr_assert_leq(columns_count, ROW_MODEL_COLUMNS_MAX);
    memcpy(with->types, types, columns_count * sizeof *types);
    test_allocator_init(&with->allocator);
    ivm_allocator functions = test_allocator_functions(&with->allocator);
    ivm__memory_init(&with->memory, &functions);
    ivm__texts_init(&with->texts, &with->memory, seed);
    ivm__arena_init(&with->arena, &with->memory);
}

void row_model_close(row_model *with)
{
    ivm__arena_deinit(&with->arena);
    ivm__texts_deinit(&with->texts);
    free(with->rows);
    cr_assert(test_allocator_is_clean(&with->allocator));
}

/* Some are empty, some begin with all of another, and some with the same 20 bytes. */
static ivm__wide text_cell(row_model *with, uint64_t number)
{
    static const char *const beginnings[] = { "", "a", "the same twenty byte", "\377\377\377\377\377\377\377\377", "\377" };
    char bytes[64];
    const ivm__text *text = NULL;
    int size = snprintf(bytes, sizeof bytes, "%s%llo", beginnings[number % 5], (unsigned long long)(number / 5));
    size -= number % 7 == 0;
    for (int i = 0; number % 3 == 0 && i < size; i++) {
        bytes[i] = bytes[i] == '0' ? 0 : bytes[i];
    }
    cr_assert_eq(ivm__texts_intern(&with->texts, bytes, (size_t)size, &text), IVM_OK);
    return (ivm__wide)(uintptr_t)text;
}

static uint64_t float_word(uint64_t mixed, uint64_t number)
{
    static const double some[] = { 0, NAN, INFINITY, -INFINITY, DBL_MAX, -DBL_MAX, 5e-324, -5e-324, 1, -1 };
    return number < sizeof some / sizeof *some ? ivm__float_word(some[number]) : ivm__float_word(ivm__word_float(mixed));
}

static ivm__wide decimal_cell(ivm_type type, uint64_t mixed, uint64_t number)
{
    ivm__wide bound = ivm__power_of_ten(IVM_TYPE_PRECISION(type));
    ivm__wide cell = (ivm__wide)mixed << (number % 3 ? 0 : 60) | mixed;
    cell = number == 0 ? bound - 1 : number == 1 ? 1 - bound : cell % bound;
    return number % 2 ? -cell : cell;
}

static ivm__wide row_model_cell(row_model *with, ivm_type type)
{
    uint64_t number = row_model_random(with) % with->domain, mixed = (number + 1) * 0x9e3779b97f4a7c15ull;
    switch (IVM_TYPE_KIND(type)) {
    case IVM_BOOL:
        return number % 2;
    case IVM_STRING:
        return text_cell(with, number);
    case IVM_FLOAT64:
        return float_word(mixed, number);
    case IVM_DECIMAL_KIND:
        return decimal_cell(type, mixed, number);
    case IVM_DATE:
        return (uint64_t)(int64_t)(number == 0 ? INT32_MIN : number == 1 ? INT32_MAX : (int32_t)mixed);
    default:
        return number == 0 ? (uint64_t)INT64_MIN : number == 1 ? INT64_MAX : number % 2 ? mixed : number;
    }
}

static int64_t random_weight(row_model *with, ivm__weights_kind weights)
{
    uint64_t kind = row_model_random(with) % 40;
    int64_t weight = kind == 0 ? (int64_t)1 << 40 : kind == 1 ? INT32_MAX : kind < 20 ? 1 + (int64_t)(row_model_random(with) % 5) : 1;
    bool below = weights == IVM__WEIGHTS_NOT_0 && row_model_random(with) % 2;
    return weights == IVM__WEIGHTS_ONE ? 1 : below ? -weight : weight;
}

void row_model_fill(row_model *with, uint32_t rows_count, ivm__weights_kind weights)
{
    with->rows = realloc(with->rows, (with->rows_count + rows_count + 1) * sizeof *with->rows);
    if (!with->rows) {
        abort();
    }
    for (uint32_t i = 0; i < rows_count; i++) {
        row_model_row *row = &with->rows[with->rows_count++];
        memset(row, 0, sizeof *row);
        row->weight = random_weight(with, weights);
        for (uint32_t c = 0; c < with->columns_count; c++) {
            row->nulls[c] = row_model_random(with) % 100 < with->nulls_per_cent;
            row->cells[c] = row->nulls[c] ? 0 : row_model_cell(with, with->types[c]);
        }
    }
}

int row_model_compare(const row_model *with, const row_model_row *a, const row_model_row *b, const uint32_t *order, uint32_t order_count)
{
    for (uint32_t i = 0; i < (order ? order_count : with->columns_count); i++) {
        uint32_t c = order ? order[i] : i;
        int side = a->nulls[c] - b->nulls[c];
        side = side || a->nulls[c] ? side : ivm__cell_compare(with->types[c], a->cells[c], b->cells[c]);
        if (side) {
            return side;
        }
    }
    return 0;
}

static const row_model *sorting;
static const uint32_t *sorting_order;
static uint32_t sorting_order_count;

static int compare(const void *a, const void *b)
{
    return row_model_compare(sorting, a, b, sorting_order, sorting_order_count);
}

void row_model_sort(row_model *with, const uint32_t *order, uint32_t order_count)
{
    sorting = with;
    sorting_order = order;
    sorting_order_count = order_count;
    qsort(with->rows, with->rows_count, sizeof *with->rows, compare);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < with->rows_count; i++) {
        if (kept && compare(&with->rows[kept - 1], &with->rows[i]) == 0) {
            with->rows[kept - 1].weight += with->rows[i].weight;
            continue;
        }
        kept -= kept && !with->rows[kept - 1].weight;
        with->rows[kept++] = with->rows[i];
    }
    with->rows_count = kept - (kept && !with->rows[kept - 1].weight);
}

ivm__chunk *row_model_chunk(row_model *with, uint32_t first, uint32_t count)
{
    ivm__chunk *chunk = ivm__chunk_make(&with->arena, with->types, with->columns_count);
    cr_assert(chunk && first + count <= with->rows_count);
    chunk->rows_count = count;
    chunk->weights = ivm__arena_allocate(&with->arena, count * sizeof *chunk->weights);
    cr_assert(chunk->weights);
    for (uint32_t c = 0; c < with->columns_count; c++) {
        cr_assert(ivm__vector_make(&with->arena, &chunk->columns[c], with->types[c], count, with->nulls_per_cent));
    }
    for (uint32_t i = 0; i < count; i++) {
        const row_model_row *row = &with->rows[first + i];
        chunk->weights[i] = row->weight;
        for (uint32_t c = 0; c < with->columns_count; c++) {
            ivm__vector *to = &chunk->columns[c];
            size_t size = ivm__type_words(to->type) * sizeof(uint64_t);
            memcpy((uint8_t *)to->cells + i * size, &row->cells[c], size);
            if (to->nulls) {
                to->nulls[i] = row->nulls[c];
            }
        }
    }
    return chunk;
}

bool row_model_chunk_is(const row_model *with, const ivm__chunk *chunk, uint32_t first)
{
    bool equal = first + chunk->rows_count <= with->rows_count && chunk->columns_count == with->columns_count;
    for (uint32_t i = 0; equal && i < chunk->rows_count; i++) {
        const row_model_row *row = &with->rows[first + i];
        equal = ivm__chunk_weight(chunk, i) == row->weight;
        for (uint32_t c = 0; c < with->columns_count; c++) {
            const ivm__vector *in = &chunk->columns[c];
            ivm__wide cell = ivm__type_is_wide(in->type) ? ivm__wide_cell(in, i) : (ivm__wide)ivm__word(in, i);
            equal &= ivm__is_null(in, i) == row->nulls[c] && cell == row->cells[c];
        }
    }
    return equal;
}
