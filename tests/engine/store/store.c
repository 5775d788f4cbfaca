/* tests engine/store/store.c, store_step.c, store_scan.c, heavy.c */
#include "heavy.h"
#include "store_model.h"

static void run(uint64_t seed, uint32_t steps, uint32_t operations)
{
    model *self = model_begin(seed);
    if (seed % 3) {
        cr_assert_eq(model_index_make(self, 0), IVM_OK);
    }
    if (seed % 5 == 0) {
        cr_assert_eq(model_index_make(self, 4), IVM_OK);
    }
    for (uint32_t step = 0; step < steps; step++) {
        model_step_begin(self);
        cr_assert_eq(model_step(self, (uint32_t)model_random(self, operations)), IVM_OK);
        model_check(self);
        if (model_random(self, 3) == 0) {
            model_undo(self);
        } else {
            model_commit(self);
        }
        model_check(self);
    }
    model_end(self);
}

Test(engine_store, random_steps_equal_a_model, .fini = model_seed_tell)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        run(seed, 25, 12);
    }
}

Test(engine_store, random_large_steps_equal_a_model, .fini = model_seed_tell)
{
    for (uint64_t seed = 101; seed <= 106; seed++) {
        run(seed, 5, 300);
    }
}

/* ---- One thing at a time ---------------------------------------------------------------------------------------------------------- */

/* Rows of one content come, each of weight 1, and are committed. */
static void rows_commit(model *self, uint32_t count)
{
    model_step_begin(self);
    cr_assert_eq(ivm__store_reserve(&self->store, count), IVM_OK);
    for (uint32_t i = 0; i < count; i++) {
        ivm__row_id row = ivm__store_put(&self->store, 1);
        self->rows[row] = (model_row){ .stands = true, .a = i % 7, .key = row, .text = (int)(i % MODEL_TEXTS), .after = 1 };
        self->rows_end += row == self->rows_end;
        model_body_write(self, row);
        ivm__store_link(&self->store, row);
    }
    model_commit(self);
}

static void weight_commit(model *self, ivm__row_id row, ivm__weight weight)
{
    cr_assert_eq(ivm__store_weight_add(&self->store, row, weight), IVM_OK);
    self->rows[row].after += weight;
    model_commit(self);
}

Test(engine_store, undo_restores_weights)
{
    model *self = model_begin(1);
    rows_commit(self, 3);
    weight_commit(self, 1, INT64_MAX - 1);
    cr_assert_eq(ivm__store_weight_add(&self->store, 0, -1), IVM_OK);
    cr_assert_eq(ivm__store_weight_add(&self->store, 1, INT64_MIN), IVM_OK);
    cr_assert(ivm__store_weight(&self->store, 0, IVM__READ_CUR) == 0 && ivm__store_weight(&self->store, 0, IVM__READ_OLD) == 1);
    cr_assert(ivm__store_weight(&self->store, 1, IVM__READ_CUR) == -1 && ivm__store_weight(&self->store, 1, IVM__READ_OLD) == INT64_MAX);
    cr_assert_eq(self->store.rows_live, 2);
    ivm__store_undo(&self->store);
    cr_assert_eq(self->store.rows_live, 3);
    model_check(self);
    model_end(self);
}

Test(engine_store, ids_and_texts_are_given_back_one_commit_later)
{
    model *self = model_begin(1);
    rows_commit(self, 2);
    weight_commit(self, 0, -1);
    cr_assert_eq(self->store.free_count, 0);
    cr_assert_eq(self->text[0]->references, 1);
    model_commit(self);
    cr_assert_eq(self->store.free_count, 1);
    cr_assert_eq(self->text[0]->references, 0);
    rows_commit(self, 1);
    cr_assert_eq(self->store.rows_end, 2);
    cr_assert_eq(self->store.free_count, 0);
    model_check(self);
    model_end(self);
}

Test(engine_store, reused_row_was_nothing_before)
{
    model *self = model_begin(1);
    rows_commit(self, 1);
    weight_commit(self, 0, -1);
    model_commit(self);
    cr_assert_eq(ivm__store_reserve(&self->store, 1), IVM_OK);
    ivm__row_id row = ivm__store_insert(&self->store, 5);
    cr_assert_eq(row, 0);
    self->rows[0] = (model_row){ .stands = true, .text = -1, .after = 5 };
    model_body_write(self, row);
    ivm__store_link(&self->store, row);
    cr_assert(ivm__store_weight(&self->store, 0, IVM__READ_OLD) == 0 && ivm__store_weight(&self->store, 0, IVM__READ_CUR) == 5);
    model_check(self);
    ivm__store_undo(&self->store);
    self->rows[0].stands = false;
    cr_assert_eq(self->store.free_count, 1);
    model_check(self);
    model_end(self);
}

Test(engine_store, undo_gives_ids_back_in_their_order)
{
    model *self = model_begin(1);
    rows_commit(self, 50);
    for (ivm__row_id row = 0; row < 50; row++) {
        cr_assert_eq(ivm__store_weight_add(&self->store, row * 7 % 50, -1), IVM_OK);
        self->rows[row * 7 % 50].after = 0;
    }
    model_commit(self);
    model_commit(self);
    ivm__row_id before[50];
    for (uint32_t i = 0; i < 50; i++) {
        before[i] = *(const ivm__row_id *)ivm__items_at(&self->store.free, i);
    }
    model_step_begin(self);
    cr_assert_eq(model_rows_come(self, 20), IVM_OK);
    model_undo(self);
    cr_assert_eq(self->store.free_count, 50);
    for (uint32_t i = 0; i < 50; i++) {
        cr_assert_eq(*(const ivm__row_id *)ivm__items_at(&self->store.free, i), before[i]);
    }
    model_end(self);
}

/* Many at once are sorted, few are put in their places; some go, some change, some stay. */
Test(engine_store, heavy_weights_stay_in_order)
{
    model *self = model_begin(1);
    rows_commit(self, 300);
    static const struct {
        uint32_t step, rows;
        int64_t weight;
    } rounds[] = { { 7, 200, 5000000000 }, { 11, 10, -7000000000 }, { 13, 120, INT32_MIN },
                   { 3, 150, 1 },          { 17, 300, INT64_MAX },  { 1, 300, 0 } };
    for (uint32_t r = 0; r < sizeof rounds / sizeof rounds[0]; r++) {
        for (uint32_t i = 0; i < rounds[r].rows; i++) {
            ivm__row_id row = (ivm__row_id)(299 - i * rounds[r].step % 300);
            if (self->rows[row].stands) {
                cr_assert_eq(model_weight_set(self, row, rounds[r].weight), IVM_OK);
            }
        }
        model_check(self);
        model_commit(self);
        for (uint32_t i = 1; i < self->store.heavy_count; i++) {
            cr_assert(self->store.heavies->list[i - 1].row < self->store.heavies->list[i].row);
        }
        model_check(self);
    }
    cr_assert_eq(self->store.heavy_count, 0);
    model_end(self);
}

Test(engine_store, rows_that_come_and_go_take_no_more_room)
{
    model *self = model_begin(1);
    for (uint32_t step = 0; step < 200; step++) {
        model_step_begin(self);
        for (ivm__row_id row = 0; row < self->rows_end; row++) {
            if (self->rows[row].stands) {
                cr_assert_eq(ivm__store_weight_add(&self->store, row, -1), IVM_OK);
                self->rows[row].after = 0;
            }
        }
        model_commit(self);
        rows_commit(self, 20);
    }
    cr_assert(self->store.rows_end <= 60, "%u", self->store.rows_end);
    model_end(self);
}

/* Room for a million rows, of which few came or were touched, is not kept; room that a step did use is. */
Test(engine_store, room_that_was_not_used_is_given_back)
{
    model *self = model_begin(1);
    for (uint32_t round = 0; round < 2; round++) {
        cr_assert_eq(ivm__store_reserve(&self->store, 1000000), IVM_OK);
        cr_assert_eq(model_rows_come(self, 10), IVM_OK);
        cr_assert(self->store.touched_capacity >= 1000000);
        if (round) {
            cr_assert_eq(model_weights_narrow(self), IVM_OK);
            model_commit(self);
        } else {
            model_undo(self);
        }
        cr_assert(self->store.touched_capacity <= 1024 && self->store.last_capacity <= 1024);
        cr_assert(self->store.heavy_capacity <= 1024 && self->store.free_capacity <= 1024);
    }
    rows_commit(self, 3000);
    for (uint32_t i = 0; i < self->rows_end; i++) {
        cr_assert_eq(self->rows[i].stands ? ivm__store_touch(&self->store, i) : IVM_OK, IVM_OK);
    }
    model_commit(self);
    cr_assert(self->store.last_capacity >= 3000 && self->store.free_capacity >= 3000);
    model_check(self);
    model_end(self);
}

Test(engine_store, clear_keeps_nothing_but_memory)
{
    model *self = model_begin(1);
    for (uint32_t i = 0; i < MODEL_INDEXES; i++) {
        cr_assert_eq(model_index_make(self, i), IVM_OK);
    }
    for (uint32_t round = 0; round < 20; round++) {
        model_step_begin(self);
        cr_assert_eq(model_step(self, round == 3 ? 120 : 10), IVM_OK);
        if (round % 2) {
            model_commit(self);
            cr_assert_eq(model_step(self, 5), IVM_OK);
        }
        int64_t bytes = self->counted.bytes;
        ivm__store_clear(&self->store);
        cr_assert(self->counted.bytes <= bytes);
        cr_assert(self->store.weight_max == 0);
        memset(self->rows, 0, MODEL_ROWS * sizeof *self->rows);
        memset(self->gone, 0, sizeof self->gone);
        self->rows_end = self->last_count = 0;
        model_check(self);
    }
    model_end(self);
}

Test(engine_store, too_many_rows_are_refused)
{
    model *self = model_begin(1);
    rows_commit(self, 1);
    cr_assert_eq(ivm__store_reserve(&self->store, IVM_TABLE_ROWS_MAX), IVM_OUT_OF_MEMORY);
    cr_assert_eq(ivm__store_reserve(&self->store, UINT64_MAX), IVM_OUT_OF_MEMORY);
    model_check(self);
    model_end(self);
}

Test(engine_store, put_chunk_keeps_equal_rows_apart)
{
    model *self = model_begin(1);
    cr_assert_eq(model_index_make(self, 1), IVM_OK);
    ivm__chunk *chunk = ivm__chunk_make(&self->arena, model_types, COLUMNS);
    chunk->rows_count = 700;
    chunk->weights = ivm__arena_allocate(&self->arena, 700 * sizeof *chunk->weights);
    for (uint32_t c = 0; c < COLUMNS; c++) {
        cr_assert(ivm__vector_make(&self->arena, &chunk->columns[c], model_types[c], 700, model_nullable[c]));
    }
    for (uint32_t i = 0; i < 700; i++) {
        model_row row = { .stands = true, .a = i % 3, .b = 4, .text = (int)(i % 4), .wide = 5, .key = 6 };
        row.after = chunk->weights[i] = i % 100 == 7 ? 5000000000 : 2;
        ((uint64_t *)chunk->columns[COLUMN_A].cells)[i] = row.a;
        ((uint64_t *)chunk->columns[COLUMN_B].cells)[i] = row.b;
        ((uint64_t *)chunk->columns[COLUMN_TEXT].cells)[i] = (uint64_t)(uintptr_t)self->text[row.text];
        ((ivm__wide *)chunk->columns[COLUMN_WIDE].cells)[i] = row.wide;
        ((uint64_t *)chunk->columns[COLUMN_KEY].cells)[i] = row.key;
        self->rows[i] = row;
    }
    self->rows_end = 700;
    cr_assert_eq(ivm__store_put_chunk(&self->store, chunk, NULL), IVM_OK);
    model_check(self);
    model_commit(self);
    model_check(self);
    model_end(self);
}

/* ---- Running out of memory -------------------------------------------------------------------------------------------------------- */

/* Every operation of a step, over rows of before, with a snapshot open. */
static bool step_survives(uint64_t seed, uint64_t n, bool with_indexes)
{
    model *self = model_begin(seed);
    for (uint32_t i = 0; with_indexes && i < MODEL_INDEXES; i++) {
        cr_assert_eq(model_index_make(self, i), IVM_OK);
    }
    for (uint32_t step = 0; step < 3; step++) {
        model_step_begin(self);
        cr_assert_eq(model_step(self, 12), IVM_OK);
        model_commit(self);
    }
    ivm__pages *held = ivm__pages_acquire(&self->store);
    ivm__heavies *heavies = ivm__heavies_acquire(&self->store);
    model_step_begin(self);
    model_seed = seed * 1000 + n;
    test_allocator_arm(&self->counted, n);
    ivm_status status = model_step(self, 60);
    for (uint32_t i = 1; status == IVM_OK && i < 4; i++) {
        status = model_index_make(self, i);
    }
    bool failed = test_allocator_disarm(&self->counted);
    cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
    if (failed) {
        model_undo(self);
    } else {
        model_commit(self);
    }
    model_check(self);
    ivm__pages_release(held, &self->memory);
    ivm__heavies_release(heavies, &self->memory);
    model_step_begin(self);
    cr_assert_eq(model_step(self, 3), IVM_OK);
    model_commit(self);
    model_check(self);
    model_end(self);
    return failed;
}

Test(engine_store, indexes_made_since_a_mark_are_freed)
{
    model *self = model_begin(3);
    rows_commit(self, 20);
    int64_t blocks = self->counted.blocks;
    ivm__index *index;
    uint32_t first[] = { 0 }, second[] = { 1 }, both[] = { 1, 0 };
    cr_assert_eq(ivm__store_index(&self->store, first, 1, false, &index), IVM_OK);
    ivm__index *newest = self->store.indexes;
    cr_assert_eq(ivm__store_index(&self->store, second, 1, false, &index), IVM_OK);
    cr_assert_eq(ivm__store_index(&self->store, both, 2, false, &index), IVM_OK);
    ivm__store_indexes_drop_since(&self->store, newest);
    cr_assert(self->store.indexes == newest && !newest->next_of_store);
    cr_assert_null(ivm__index_validate(newest));
    ivm__store_indexes_drop_since(&self->store, newest);
    cr_assert_eq(self->store.indexes, newest);
    ivm__store_indexes_drop_since(&self->store, NULL);
    cr_assert_null(self->store.indexes);
    cr_assert_eq(self->counted.blocks, blocks);
    rows_commit(self, 5);
    model_check(self);
    model_end(self);
}

Test(engine_store, nth_allocation_failing_changes_nothing, .fini = model_seed_tell)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        uint64_t n = 1;
        while (step_survives(seed, n, seed % 2)) {
            n++;
        }
        cr_assert(n > 8, "%d", (int)n);
    }
}

Test(engine_store, nth_allocation_failing_leaves_no_store)
{
    model *self = model_begin(1);
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        ivm__store store;
        int64_t blocks = self->counted.blocks;
        test_allocator_arm(&self->counted, n);
        ivm_status status = ivm__store_init(&store, &self->memory, &self->texts, 1, self->layout);
        failed = test_allocator_disarm(&self->counted);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
        ivm__store_deinit(&store);
        cr_assert_eq(self->counted.blocks, blocks);
    }
    model_end(self);
}
