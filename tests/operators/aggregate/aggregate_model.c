/* The model of aggregates: every value computed anew from the rows that are there. */
#include "aggregate_model.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "moments.h"

const ivm_type agg_types[AGG_COLUMNS] = {
    IVM_INT64, IVM_STRING, IVM_INT64, IVM_FLOAT64, IVM_DECIMAL(12, 2), IVM_STRING, IVM_BOOL, IVM_DATE
};

const agg_function agg_functions[AGG_FUNCTIONS] = {
    { IVM__COUNT, AGG_NO_ARGUMENT, false },
    { IVM__COUNT, AGG_V, false },
    { IVM__SUM, AGG_V, false },
    { IVM__AVG, AGG_V, false },
    { IVM__MIN, AGG_V, false },
    { IVM__MAX, AGG_V, false },
    { IVM__SUM, AGG_D, false },
    { IVM__AVG, AGG_D, false },
    { IVM__MIN, AGG_D, false },
    { IVM__MAX, AGG_D, false },
    { IVM__SUM, AGG_M, false },
    { IVM__AVG, AGG_M, false },
    { IVM__MIN, AGG_M, false },
    { IVM__MAX, AGG_M, false },
    { IVM__MIN, AGG_S, false },
    { IVM__MAX, AGG_S, false },
    { IVM__MIN, AGG_B, false },
    { IVM__MAX, AGG_B, false },
    { IVM__MIN, AGG_T, false },
    { IVM__MAX, AGG_T, false },
    { IVM__COUNT, AGG_NO_ARGUMENT, true },
    { IVM__SUM, AGG_M, true },
    { IVM__MAX, AGG_S, true },
    { IVM__SUM, AGG_UNTYPED_NULL, false },
    { IVM__COUNT, AGG_UNTYPED_NULL, false },
    { IVM__MAX, AGG_UNTYPED_NULL, false },
    { IVM__COUNT_DISTINCT, AGG_V, false },
    { IVM__COUNT_DISTINCT, AGG_D, false },
    { IVM__COUNT_DISTINCT, AGG_M, false },
    { IVM__COUNT_DISTINCT, AGG_S, true },
    { IVM__COUNT_DISTINCT, AGG_UNTYPED_NULL, false },
    { IVM__SUM_DISTINCT, AGG_V, false },
    { IVM__SUM_DISTINCT, AGG_D, false },
    { IVM__SUM_DISTINCT, AGG_M, false },
    { IVM__SUM_DISTINCT, AGG_V, true },
    { IVM__SUM_DISTINCT, AGG_UNTYPED_NULL, false },
    { IVM__BOOL_AND, AGG_B, false },
    { IVM__BOOL_OR, AGG_B, false },
    { IVM__BOOL_AND, AGG_B, true },
    { IVM__BOOL_OR, AGG_UNTYPED_NULL, false },
    { IVM__VAR_POP, AGG_V, false },
    { IVM__VAR_SAMP, AGG_V, false },
    { IVM__STDDEV_POP, AGG_V, false },
    { IVM__STDDEV_SAMP, AGG_V, false },
    { IVM__VAR_POP, AGG_D, false },
    { IVM__VAR_SAMP, AGG_D, false },
    { IVM__STDDEV_POP, AGG_D, false },
    { IVM__STDDEV_SAMP, AGG_D, true },
    { IVM__VAR_POP, AGG_M, false },
    { IVM__VAR_SAMP, AGG_M, false },
    { IVM__STDDEV_POP, AGG_M, false },
    { IVM__STDDEV_SAMP, AGG_M, false },
    { IVM__VAR_POP, AGG_UNTYPED_NULL, false },
    { IVM__SUM, AGG_D, true },
};

/* The rows of a group that a function takes, and what they come to. */
typedef struct reckoning {
    __int128 count, sum, squares;
    uint64_t rows; /* of any weight */
    ivm__wide least, greatest;
    bool all, any;
    ivm__exact_sum *floats, *square_floats;
    const agg_row **distinct; /* a row of each value */
    size_t distinct_count;
} reckoning;

static bool is_present_only(ivm__aggregate_function function)
{
    return function >= IVM__MIN && function <= IVM__BOOL_OR;
}

/* Whether the function has met the row's value before; else it now has. */
static bool is_again(const agg_function *of, const agg_row *row, reckoning *of_group)
{
    for (size_t i = 0; i < of_group->distinct_count; i++) {
        if (of_group->distinct[i]->cells[of->column] == row->cells[of->column]) {
            return true;
        }
    }
    of_group->distinct[of_group->distinct_count++] = row;
    return false;
}

static void reckon_floats(const agg_case *it, double value, ivm__weight weight, reckoning *of_group)
{
    ivm__memory *memory = &it->it.engine->memory;
    cr_assert_eq(ivm__exact_sum_add(memory, &of_group->floats, value, weight), IVM_OK);
    cr_assert_eq(ivm__exact_sum_add_square(memory, &of_group->square_floats, value, weight), IVM_OK);
}

static void reckon(const agg_case *it, const agg_function *of, const agg_row *row, reckoning *of_group)
{
    bool counts_rows = of->column == AGG_NO_ARGUMENT, distinct = of->function == IVM__COUNT_DISTINCT || of->function == IVM__SUM_DISTINCT;
    if ((of->where && (row->nulls[AGG_V] || row->cells[AGG_V] <= 0)) || of->column == AGG_UNTYPED_NULL ||
        (!counts_rows && row->nulls[of->column])) {
        return;
    }
    if ((is_present_only(of->function) && row->weight <= 0) || (distinct && is_again(of, row, of_group))) {
        return;
    }
    ivm__wide cell = counts_rows ? 0 : row->cells[of->column];
    ivm__weight weight = distinct ? 1 : row->weight;
    ivm_type type = counts_rows ? IVM_INT64 : agg_types[of->column];
    if (type == IVM_FLOAT64) {
        reckon_floats(it, ivm__word_float((uint64_t)cell), weight, of_group);
    } else {
        of_group->sum += cell * weight;
        of_group->squares += cell * cell * weight;
    }
    ivm_type order = type == IVM_STRING ? IVM_INT64 : type; /* texts are numbered in their order */
    if (of_group->rows == 0 || ivm__cell_compare(order, cell, of_group->least) < 0) {
        of_group->least = cell;
    }
    if (of_group->rows == 0 || ivm__cell_compare(order, cell, of_group->greatest) > 0) {
        of_group->greatest = cell;
    }
    of_group->all = (of_group->rows == 0 || of_group->all) && cell;
    of_group->any |= cell != 0;
    of_group->count += weight;
    of_group->rows++;
}

static ivm__wide word_of(double value)
{
    return (ivm__wide)(int64_t)ivm__float_word(value);
}

/* A quotient of 113 bits, rounded again: right but for one in 2^60. */
static double average_of(const agg_function *of, const reckoning *group)
{
    if (agg_types[of->column] == IVM_FLOAT64) {
        return ivm__exact_sum_average(group->floats, group->count);
    }
    return (double)((__float128)group->sum / ((__float128)group->count * (of->column == AGG_M ? 100 : 1)));
}

static void write_variance(const agg_function *of, const reckoning *group, ivm__wide *cell, bool *is_null)
{
    bool sample = of->function == IVM__VAR_SAMP || of->function == IVM__STDDEV_SAMP, below = false;
    double special, variance = NAN;
    *is_null = group->count < (sample ? 2 : 1);
    if (*is_null) {
        return;
    }
    if (agg_types[of->column] != IVM_FLOAT64) {
        __int128 numerator = group->count * group->squares - group->sum * group->sum;
        variance =
            (double)((__float128)numerator / ((__float128)group->count * (group->count - sample) * (of->column == AGG_M ? 10000 : 1)));
        below = numerator < 0;
    } else if (!ivm__exact_sum_special(group->floats, &special)) { /* moments themselves are tested against exact fractions */
        ivm__moments_read read;
        ivm__moments_read_floats(group->floats, group->square_floats, group->count, &read);
        variance = ivm__moments_variance(&read, sample, &below);
    }
    bool deviation = of->function == IVM__STDDEV_POP || of->function == IVM__STDDEV_SAMP;
    *is_null = deviation && below;
    *cell = *is_null ? 0 : word_of(deviation ? sqrt(variance) : variance);
}

static void write_value(const agg_function *of, const reckoning *group, ivm__wide *cell, bool *is_null)
{
    bool is_float = of->column < AGG_COLUMNS && agg_types[of->column] == IVM_FLOAT64;
    if (of->function == IVM__COUNT || of->function == IVM__COUNT_DISTINCT) {
        *cell = group->count;
        return;
    }
    *is_null = group->rows == 0 || (of->function == IVM__AVG && group->count <= 0);
    if (*is_null) {
        return;
    }
    switch (of->function) {
    case IVM__SUM:
    case IVM__SUM_DISTINCT:
        *cell = is_float ? word_of(ivm__exact_sum_value(group->floats)) : group->sum;
        break;
    case IVM__AVG:
        *cell = word_of(average_of(of, group));
        break;
    case IVM__MIN:
    case IVM__MAX:
        *cell = of->function == IVM__MIN ? group->least : group->greatest;
        if (of->column == AGG_D) {
            *cell = (ivm__wide)(int64_t)(uint64_t)*cell;
        }
        break;
    case IVM__BOOL_AND:
    case IVM__BOOL_OR:
        *cell = of->function == IVM__BOOL_AND ? group->all : group->any;
        break;
    default:
        write_variance(of, group, cell, is_null);
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
    const agg_row **rows = malloc((it->live.count + 1) * sizeof *rows), **distinct = malloc((it->live.count + 1) * sizeof *distinct);
    size_t count = 0;
    for (size_t i = 0; first && i < it->live.count; i++) {
        rows[count] = &it->live.row[i];
        count += in_group(it, first, &it->live.row[i]);
    }
    for (uint32_t f = 0; f < AGG_FUNCTIONS; f++) {
        reckoning group = { .distinct = distinct };
        for (size_t i = 0; i < count; i++) {
            reckon(it, &agg_functions[f], rows[i], &group);
        }
        write_value(&agg_functions[f], &group, &output.cells[it->groups_count + f], &output.nulls[it->groups_count + f]);
        ivm__exact_sum_free(&it->it.engine->memory, group.floats);
        ivm__exact_sum_free(&it->it.engine->memory, group.square_floats);
    }
    free(rows);
    free(distinct);
    if (!it->having || output.cells[it->groups_count] > 1) {
        *agg_outputs_next(outputs) = output;
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
