/* See feed.h. */
#include "feed.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static ivm_status cell_write(ivm__step *step, ivm__vector *vector, uint32_t at, int64_t cell)
{
    uint64_t *words = vector->cells;
    if (ivm__type_is_wide(vector->type)) {
        ((ivm__wide *)vector->cells)[at] = cell;
    } else if (vector->type == IVM_STRING) {
        char bytes[24];
        const ivm__text *text;
        int size = snprintf(bytes, sizeof bytes, "%lld", (long long)cell);
        IVM_TRY(ivm__texts_intern(step->texts, bytes, (size_t)size, &text));
        words[at] = (uint64_t)(uintptr_t)text;
    } else {
        words[at] = vector->type == IVM_FLOAT64 ? ivm__float_word((double)cell) : (uint64_t)cell;
    }
    return IVM_OK;
}

static ivm_status column_write(const feed *from, ivm__step *step, ivm__vector *vector, uint32_t column, size_t first, uint32_t count)
{
    if (!ivm__vector_make(step->scratch, vector, from->types[column], count, true)) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(vector->cells, 0, count * ivm__type_words(vector->type) * sizeof(uint64_t));
    for (uint32_t i = 0; i < count; i++) {
        const hand_row *row = &from->rows.rows[first + i];
        vector->nulls[i] = row->nulls[column];
        if (!row->nulls[column]) {
            IVM_TRY(cell_write(step, vector, i, row->cells[column]));
        }
    }
    return IVM_OK;
}

static ivm_status part_send(feed *from, ivm__step *step, size_t first, uint32_t count)
{
    ivm__chunk *chunk = ivm__chunk_make(step->scratch, from->types, from->head.columns_count);
    ivm__weight *weights = ivm__arena_allocate(step->scratch, count * sizeof *weights);
    if (!chunk || !weights) {
        return IVM_OUT_OF_MEMORY;
    }
    chunk->rows_count = count;
    chunk->weights = weights;
    for (uint32_t i = 0; i < count; i++) {
        weights[i] = from->rows.rows[first + i].weight;
    }
    for (uint32_t c = 0; c < from->head.columns_count; c++) {
        if (!from->left_out[c]) {
            IVM_TRY(column_write(from, step, &chunk->columns[c], c, first, count));
        }
    }
    return ivm__emit(&from->head, step, chunk);
}

static ivm_status feed_finish(ivm__operator *self, ivm__step *step)
{
    feed *from = (feed *)self;
    for (size_t first = 0; first < from->rows.count; first += from->chunk_rows) {
        size_t left = from->rows.count - first;
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm_status status = part_send(from, step, first, left < from->chunk_rows ? (uint32_t)left : from->chunk_rows);
        ivm__arena_back(step->scratch, mark);
        if (status != IVM_OK) {
            return status;
        }
    }
    return IVM_OK;
}

static void feed_free(ivm__operator *self, ivm__memory *memory)
{
    (void)memory;
    hand_bag_free(&((feed *)self)->rows);
    free(self);
}

static const ivm__operator_class feed_class = { .name = "feed", .finish = feed_finish, .free = feed_free };

feed *feed_add(hand *it, const ivm_type *types, uint32_t columns_count)
{
    feed *from = calloc(1, sizeof *from);
    cr_assert_not_null(from);
    memcpy(from->types, types, columns_count * sizeof *types);
    from->head = (ivm__operator){ .class = &feed_class, .columns_count = columns_count, .types = from->types };
    from->rows.columns_count = columns_count;
    from->chunk_rows = IVM__CHUNK_ROWS;
    hand_add(it, &from->head, NULL, 0);
    return from;
}

void feed_wire(feed *from, ivm__operator *reader, uint32_t port)
{
    from->head.next = reader;
    from->head.next_port = port;
}

void feed_clear(feed *from)
{
    from->rows.count = 0;
}

ivm_status feed_step(hand *it, bool keep)
{
    ivm_batch *batch;
    ivm_status status = ivm_batch_create(it->engine, &batch, &it->error);
    if (status == IVM_OK) {
        status = hand_step(it, batch, keep);
        ivm_batch_free(batch);
    }
    return status;
}
