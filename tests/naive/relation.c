/* Relations of the oracle: rows in arrays, put in order to be added up. */
#include "naive.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void naive_relation_init(naive_relation *relation, size_t width)
{
    *relation = (naive_relation){ .width = width };
}

void naive_relation_free(naive_relation *relation)
{
    free(relation->cells);
    free(relation->weights);
    *relation = (naive_relation){ .width = relation->width };
}

const ivm_value *naive_row(const naive_relation *relation, size_t row)
{
    return relation->cells + row * relation->width;
}

ivm_status naive_row_add(naive_relation *relation, const ivm_value *cells, naive_int weight)
{
    if (relation->count == NAIVE_ROWS_MAX) {
        return NAIVE_UNJUDGED;
    }
    if (relation->count == relation->capacity) {
        relation->capacity = relation->capacity ? 2 * relation->capacity : 16;
        relation->cells = naive_grow(relation->cells, relation->capacity * relation->width, sizeof *relation->cells);
        relation->weights = naive_grow(relation->weights, relation->capacity, sizeof *relation->weights);
    }
    if (relation->width) {
        memcpy(relation->cells + relation->count * relation->width, cells, relation->width * sizeof *cells);
    }
    relation->weights[relation->count++] = weight;
    return IVM_OK;
}

ivm_status naive_rows_add(naive_relation *relation, const naive_relation *rows, naive_int times)
{
    assert(relation->width == rows->width);
    for (size_t r = 0; r < rows->count; r++) {
        naive_int weight;
        if (!naive_multiply(rows->weights[r], times, &weight)) {
            return IVM_OVERFLOW;
        }
        NAIVE_TRY(naive_row_add(relation, naive_row(rows, r), weight));
    }
    return IVM_OK;
}

int naive_rows_compare(const ivm_value *a, const ivm_value *b, size_t width)
{
    for (size_t c = 0; c < width; c++) {
        int order = naive_compare(&a[c], &b[c]);
        if (order) {
            return order;
        }
    }
    return 0;
}

/* Merges the sorted halves [first, middle) and [middle, end) of an order of rows. */
static void merge(const naive_relation *relation, size_t *order, size_t *room, size_t first, size_t middle, size_t end)
{
    size_t a = first, b = middle;
    for (size_t at = first; at < end; at++) {
        bool left = b == end ||
                    (a < middle && naive_rows_compare(naive_row(relation, order[a]), naive_row(relation, order[b]), relation->width) <= 0);
        room[at] = order[left ? a++ : b++];
    }
    memcpy(order + first, room + first, (end - first) * sizeof *order);
}

static void sort(const naive_relation *relation, size_t *order, size_t *room, size_t first, size_t end)
{
    if (end - first > 1) {
        size_t middle = first + (end - first) / 2;
        sort(relation, order, room, first, middle);
        sort(relation, order, room, middle, end);
        merge(relation, order, room, first, middle, end);
    }
}

void naive_consolidate(naive_relation *relation)
{
    size_t *order = naive_grow(NULL, 2 * relation->count, sizeof *order);
    for (size_t r = 0; r < relation->count; r++) {
        order[r] = r;
    }
    sort(relation, order, order + relation->count, 0, relation->count);
    naive_relation out;
    naive_relation_init(&out, relation->width);
    for (size_t at = 0; at < relation->count;) {
        const ivm_value *row = naive_row(relation, order[at]);
        naive_int weight = 0;
        for (; at < relation->count && naive_rows_compare(row, naive_row(relation, order[at]), relation->width) == 0; at++) {
            weight += relation->weights[order[at]];
        }
        if (weight) {
            (void)naive_row_add(&out, row, weight); /* there is room for all that there were */
        }
    }
    free(order);
    naive_relation_free(relation);
    *relation = out;
}

ivm_status naive_weights_check(const naive_relation *relation)
{
    for (size_t r = 0; r < relation->count; r++) {
        if (relation->weights[r] > INT64_MAX || relation->weights[r] < INT64_MIN) {
            return IVM_OVERFLOW;
        }
    }
    return IVM_OK;
}

naive_int naive_weight(const naive_relation *relation, const ivm_value *cells)
{
    naive_int weight = 0;
    for (size_t r = 0; r < relation->count; r++) {
        if (naive_rows_compare(naive_row(relation, r), cells, relation->width) == 0) {
            weight += relation->weights[r];
        }
    }
    return weight;
}

bool naive_relations_equal(const naive_relation *a, const naive_relation *b)
{
    bool equal = a->width == b->width && a->count == b->count;
    for (size_t r = 0; equal && r < a->count; r++) {
        equal = a->weights[r] == b->weights[r] && naive_rows_compare(naive_row(a, r), naive_row(b, r), a->width) == 0;
    }
    return equal;
}
