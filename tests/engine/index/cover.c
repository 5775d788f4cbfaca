/* tests engine/index/cover.c */
#include "cover_case.h"

Test(engine_cover, follows_its_index_through_steps_and_undone_ones)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        world *it = begin(seed);
        it->values = seed > 6 ? FEW : MANY;
        if (seed % 2) {
            fill(it, 0, 5000);
            commit(it);
        }
        covers_make(it);
        check(it);
        for (uint32_t n = 0; n < 60; n++) {
            step(it, (uint32_t)draw(it, n % 10 ? 50 : 3000));
            if (draw(it, 3)) {
                commit(it);
            } else {
                undo(it);
            }
            check(it);
        }
        end(it);
    }
}

/* From nothing to all keys: new rows can be found before the step ends. */
Test(engine_cover, grows_and_empties)
{
    world *it = begin(11);
    covers_make(it);
    check(it);
    for (uint32_t i = 0; i < KEYS; i += 50) {
        fill(it, i, i + 50);
        check(it);
        commit(it);
    }
    uint64_t bytes = ivm__cover_bytes(it->covers[0]);
    cr_assert_geq(bytes, 2 * KEYS * sizeof(ivm__cover_slot));
    const ivm__cover *larger = it->covers[0]->larger; /* half more than those in use */
    uint64_t beside = larger ? sizeof *larger + larger->capacity * sizeof(ivm__cover_slot) : 0;
    cr_assert_leq(bytes - beside, 3 * KEYS * sizeof(ivm__cover_slot) + 1024);
    cr_assert_leq(2 * beside, 3 * (bytes - beside) + 1024);
    for (uint32_t i = 0; i < KEYS; i++) {
        key_delete(it, i);
        if (i % 500 == 499) {
            commit(it);
            check(it);
        }
    }
    cr_assert_eq(it->covers[0]->used, 0);
    end(it);
}

/* Small ones of many sizes, so that pairs often lie past the end of the slots and removals move them back over it. */
Test(engine_cover, small_ones_lose_their_rows_in_any_order)
{
    for (uint32_t size = 2; size <= 32; size++) {
        world *it = begin(100 + size);
        for (uint32_t round = 0; round < 5; round++) {
            cr_assert_eq(ivm__store_reserve(&it->store, size), IVM_OK);
            for (uint32_t n = 0; n < size; n++) {
                uint32_t i = (uint32_t)draw(it, KEYS);
                if (it->a[i] == ABSENT) {
                    key_insert(it, i, false);
                }
            }
            commit(it);
            covers_make(it);
            for (uint32_t first = (uint32_t)draw(it, KEYS), n = 0; n < KEYS; n++) {
                uint32_t i = (first + n * 7) % KEYS;
                if (it->a[i] != ABSENT) {
                    key_delete(it, i);
                    commit(it);
                    check(it);
                }
            }
        }
        end(it);
    }
}

Test(engine_cover, made_in_a_step)
{
    for (int undone = 0; undone < 2; undone++) {
        world *it = begin(21);
        fill(it, 0, 3000);
        commit(it);
        fill(it, 3000, 5000);
        covers_make(it);
        check(it);
        if (undone) {
            undo(it);
        } else {
            commit(it);
        }
        check(it);
        end(it);
    }
}

/* Room that was made before the cover counts for it too. */
Test(engine_cover, made_between_reserving_and_linking)
{
    world *it = begin(22);
    cr_assert_eq(ivm__store_reserve(&it->store, KEYS), IVM_OK);
    covers_make(it);
    for (uint32_t i = 0; i < KEYS; i++) {
        key_insert(it, i, true);
    }
    check(it);
    commit(it);
    check(it);
    end(it);
}

Test(engine_cover, cleared_with_its_store)
{
    world *it = begin(31);
    covers_make(it);
    for (int round = 0; round < 3; round++) {
        fill(it, 0, round == 1 ? KEYS : 100);
        commit(it);
        check(it);
        ivm__store_clear(&it->store);
        memset(it->a, 0xff, sizeof it->a);
        remember(it);
        check(it);
    }
    end(it);
}

Test(engine_cover, one_a_column)
{
    world *it = begin(41);
    covers_make(it);
    for (uint32_t c = 0; c < COVERS; c++) {
        ivm__cover *again;
        cr_assert_eq(ivm__index_cover(it->index, 1 + c, &again), IVM_OK);
        cr_assert_eq(again, it->covers[c]);
    }
    cr_assert_neq(it->covers[0], it->covers[1]);
    end(it);
}

/* Making covers and growing them: where a call fails, what was there answers as before. */
Test(engine_cover, out_of_memory_at_every_call)
{
    world *it = begin(51);
    fill(it, 0, 4096);
    commit(it);
    for (uint32_t c = 0; c < COVERS; c++) {
        bool failed = true;
        for (uint64_t n = 1; failed; n++) {
            test_allocator_arm(&it->counted, n);
            ivm_status status = ivm__index_cover(it->index, 1 + c, &it->covers[c]);
            failed = test_allocator_disarm(&it->counted);
            cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
        }
    }
    check(it);
    uint64_t failures = 0;
    for (bool failed = true; failed; failures += failed) {
        test_allocator_arm(&it->counted, failures + 1);
        ivm_status status = ivm__store_update_reserve(&it->store, 30000);
        failed = test_allocator_disarm(&it->counted);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
        check(it);
        if (failed) {
            undo(it);
        }
    }
    cr_assert_geq(failures, COVERS + 2);
    step(it, 1000);
    commit(it);
    check(it);
    end(it);
}
