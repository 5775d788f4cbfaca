/* tests engine/index/index_fill.c, and making and clearing an index */
#include "index_case.h"

/* An index made over rows that stand equals one that grew with them, in the middle of a step too. */
Test(engine_index_fill, filled_late_equals_kept, .fini = model_seed_tell)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        model *self = model_begin(seed);
        self->keys_count = 3000;
        bool unique = seed % 2;
        if (unique) {
            cr_assert_eq(model_index_make(self, 0), IVM_OK);
        }
        for (uint32_t step = 0; step < 4; step++) {
            model_step_begin(self);
            cr_assert_eq(model_rows_come(self, 150), IVM_OK);
            cr_assert_eq(model_rows_change(self, 100), IVM_OK);
            cr_assert_eq(model_weights_narrow(self), IVM_OK);
            if (step < 3) {
                model_commit(self);
            }
        }
        for (uint32_t i = 0; i < MODEL_INDEXES; i++) {
            if (!model_index[i].unique || unique) {
                cr_assert_eq(model_index_make(self, i), IVM_OK);
            }
        }
        model_check(self);
        if (seed % 3) {
            model_undo(self);
        } else {
            model_commit(self);
        }
        model_check(self);
        model_end(self);
    }
}

Test(engine_index_fill, made_between_reserve_and_rows_has_room)
{
    static const ivm_type types[] = { IVM_INT64 };
    begin(types, NULL, 1);
    cr_assert_eq(ivm__store_reserve(&store, 1000), IVM_OK);
    uint32_t column = 0;
    ivm__index *index, *again;
    cr_assert_eq(ivm__store_index(&store, &column, 1, false, &index), IVM_OK);
    cr_assert_eq(ivm__store_index(&store, &column, 1, false, &again), IVM_OK);
    cr_assert_eq(index, again);
    cr_assert_eq(ivm__store_index_find(&store, &column, 1), index);
    column = 1;
    cr_assert_null(ivm__store_index_find(&store, &column, 1));
    uint64_t calls = counted.calls;
    for (uint64_t i = 0; i < 1000; i++) {
        ivm__row_id row = ivm__store_append(&store, 1);
        memset(ivm__store_row(&store, row) + IVM__ROW_HEADER, 0, layout->body_bytes);
        memcpy(ivm__store_row(&store, row) + layout->offsets[0], &i, sizeof i);
        ivm__store_link(&store, row);
    }
    cr_assert_eq(counted.calls, calls);
    index_check(index);
    end();
}

Test(engine_index_fill, nth_allocation_failing_makes_no_index)
{
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        static const ivm_type types[] = { IVM_INT64, IVM_INT64 };
        begin(types, NULL, 2);
        cr_assert_eq(ivm__store_reserve(&store, 500), IVM_OK);
        for (uint64_t i = 0; i < 500; i++) {
            ivm__row_id row = ivm__store_append(&store, 1);
            memset(ivm__store_row(&store, row) + IVM__ROW_HEADER, 0, layout->body_bytes);
            memcpy(ivm__store_row(&store, row) + layout->offsets[n % 2], &i, sizeof i);
        }
        int64_t bytes = counted.bytes;
        uint32_t columns[] = { 1, 0 };
        ivm__index *index;
        test_allocator_arm(&counted, n);
        ivm_status status = ivm__store_index(&store, columns, 2, n % 2, &index);
        failed = test_allocator_disarm(&counted);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
        if (failed) {
            cr_assert_null(store.indexes);
            cr_assert_eq(counted.bytes, bytes);
        } else {
            cr_assert_eq(counted.bytes - bytes, (int64_t)ivm__index_bytes(index));
            index_check(index);
        }
        end();
    }
}

Test(engine_index_fill, clearing_a_large_index_gives_its_slots_back)
{
    ivm__index *index = words_index(true);
    for (uint32_t round = 0; round < 3; round++) {
        uint64_t rows = round == 1 ? 20 : 20000;
        for (uint64_t i = 0; i < rows; i++) {
            word_row(i, 1);
        }
        index_check(index);
        uint64_t capacity = index->slots_capacity;
        ivm__store_clear(&store);
        cr_assert_eq(index->slots_capacity, round == 1 ? 0 : capacity);
        index_check(index);
        cr_assert_eq(rows_of(index, 5), 0);
    }
    end();
}
