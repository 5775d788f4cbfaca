/* Memory that a large step or many rows once took comes back when few are left: slots of indexes and texts, covers, pages, digits of exact sums. Where
 * the smaller arrays find no memory the large ones stay, and all is as sound. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "exact_sum.h"
#include "index_case.h"

/* ---- Indexes --------------------------------------------------------------------------------------------------------------------------------------- */

#define MANY 40000u

static void delete_all(ivm__row_id first, ivm__row_id end)
{
    for (ivm__row_id row = first; row < end; row++) {
        cr_assert_eq(ivm__store_touch(&store, row), IVM_OK);
        ivm__store_weight_set(&store, row, 0);
    }
}

/* Keys come, most of them go, and some come again; `fails`: no call for memory goes through when the step ends. */
static void index_shrinks(bool unique, bool fails)
{
    ivm__index *index = words_index(unique);
    for (uint64_t i = 0; i < MANY; i++) {
        word_row(unique ? i * 7919 : i * 7919 / 2, 1);
    }
    ivm__store_commit(&store);
    uint64_t large = index->slots_capacity, bytes = ivm__index_bytes(index);
    delete_all(100, MANY);
    if (fails) {
        test_allocator_arm(&counted, 1);
    }
    ivm__store_commit(&store);
    cr_assert_eq(test_allocator_disarm(&counted), fails);
    index_check(index);
    if (fails) {
        cr_assert_eq(index->slots_capacity, large, "they stay");
        word_row(MANY * 7919, 1); /* the next step that ends gives them back */
        ivm__store_commit(&store);
    }
    cr_assert_leq(index->slots_capacity, large / 16);
    cr_assert_lt(ivm__index_bytes(index), bytes);
    index_check(index);
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t word = unique ? i * 7919 : i * 7919 / 2;
        cr_assert_eq(rows_of(index, word), i < 100 ? 1u : 0u, "%lu", (unsigned long)i);
    }
    for (uint64_t i = 200; i < 20000; i++) {
        word_row(unique ? i * 7919 : i * 7919 / 2, 1);
        if (i % 1000 == 0) {
            ivm__store_commit(&store);
            index_check(index);
        }
    }
    ivm__store_undo(&store);
    index_check(index);
    end();
}

Test(engine_shrink, slots_of_an_index)
{
    for (int fails = 0; fails < 2; fails++) {
        index_shrinks(true, fails);
        index_shrinks(false, fails);
    }
}

/* Narrow slots hold only ids that are small enough: what is left has large ones. */
Test(engine_shrink, slots_that_can_be_narrow_no_more)
{
    ivm__index *index = words_index(true);
    for (uint64_t i = 0; i < MANY; i++) {
        word_row(i, 1);
    }
    ivm__store_commit(&store);
    cr_assert_not_null(index->narrow);
    delete_all(0, MANY - 1000);
    ivm__store_commit(&store);
    index_check(index);
    cr_assert_not_null(index->slots);
    for (uint64_t i = MANY - 1000; i < MANY; i++) {
        cr_assert_eq(rows_of(index, i), 1u);
    }
    end();
}

/* A step that asks for much room and needs little keeps it, and so does one like it: nothing is moved back and forth. */
Test(engine_shrink, steps_that_ask_for_as_much_keep_it)
{
    ivm__index *index = words_index(true);
    for (uint64_t step = 0; step < 20; step++) {
        cr_assert_eq(ivm__store_reserve(&store, MANY), IVM_OK);
        word_row(step, 1);
        const void *slots = index->slots, *narrow = index->narrow;
        uint32_t pages = store.pages_count;
        ivm__store_commit(&store);
        cr_assert(index->slots == slots && index->narrow == narrow && store.pages_count == pages);
        cr_assert_geq(index->slots_capacity, MANY);
    }
    word_row(100, 1);
    ivm__store_commit(&store);
    cr_assert(index->slots_capacity <= 1024 && store.pages_count <= 16);
    index_check(index);
    end();
}

/* ---- Pages ------------------------------------------------------------------------------------------------------------------------------------------ */

Test(engine_shrink, pages_of_a_step_that_was_undone)
{
    for (int fails = 0; fails < 2; fails++) {
        ivm__index *index = words_index(true);
        word_row(1, 1);
        ivm__store_commit(&store);
        uint64_t bytes = memory.bytes_held;
        for (uint64_t i = 2; i < MANY; i++) {
            word_row(i, 1);
        }
        ivm__store_undo(&store);
        cr_assert_gt(memory.bytes_held, bytes + MANY * 16);
        word_row(2, 1);
        test_allocator_arm(&counted, fails ? 1 : 0);
        ivm__store_commit(&store);
        (void)test_allocator_disarm(&counted);
        cr_assert_leq(memory.bytes_held, bytes + 65536, "%lu bytes more", (unsigned long)(memory.bytes_held - bytes));
        cr_assert(rows_of(index, 1) == 1 && rows_of(index, 2) == 1 && rows_of(index, 3) == 0);
        for (uint64_t i = 3; i < 1000; i++) {
            word_row(i, 1);
        }
        ivm__store_commit(&store);
        index_check(index);
        end();
    }
}

/* ---- Texts ------------------------------------------------------------------------------------------------------------------------------------------- */

static void texts_come(ivm__texts *texts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char bytes[32];
        const ivm__text *text;
        snprintf(bytes, sizeof bytes, "text %u", i);
        cr_assert_eq(ivm__texts_intern(texts, bytes, strlen(bytes), &text), IVM_OK);
        if (i < 50 && texts->epoch == 0) {
            ivm__texts_acquire(texts, text);
        }
    }
}

static void texts_settle(ivm__texts *texts)
{
    ivm__texts_sweep(texts, texts->epoch + 1);
    texts->epoch++;
}

Test(engine_shrink, slots_of_texts)
{
    test_allocator_init(&counted);
    ivm_allocator functions = test_allocator_functions(&counted);
    ivm__memory_init(&memory, &functions);
    ivm__texts texts;
    ivm__texts_init(&texts, &memory, 5);
    texts_come(&texts, MANY);
    texts_settle(&texts);
    cr_assert_eq(texts.count, 50u);
    cr_assert_geq(texts.capacity, MANY, "the step that ends had as many");
    test_allocator_arm(&counted, 1);
    texts_settle(&texts);
    cr_assert(test_allocator_disarm(&counted));
    cr_assert_geq(texts.capacity, MANY, "they stay");
    texts_settle(&texts);
    cr_assert_leq(texts.capacity, 1024u);
    cr_assert_leq(memory.bytes_held, 32768u);
    uint64_t calls = counted.calls, count = texts.count;
    texts_come(&texts, 50);
    cr_assert(texts.count == count && counted.calls == calls, "those that are held are found");
    texts_come(&texts, 5000);
    texts_settle(&texts);
    cr_assert_eq(texts.count, 50u);
    ivm__texts_deinit(&texts);
    cr_assert(test_allocator_is_clean(&counted));
}

/* ---- Exact sums --------------------------------------------------------------------------------------------------------------------------------------- */

static double value_of(uint64_t *state, uint32_t spread)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ldexp((double)(int64_t)(*state >> 11) - 4503599627370496.0, (int)(*state >> 40) % (int)spread - (int)spread / 2);
}

/* The same values into a sum that is trimmed now and then and into one that is not. */
static void sums_equal(uint64_t seed, ivm_status (*add)(ivm__memory *, ivm__exact_sum **, double, ivm__weight))
{
    ivm__exact_sum *trimmed = NULL, *plain = NULL;
    double values[200];
    uint64_t state = seed;
    for (uint32_t i = 0; i < 400; i++) {
        double value = i < 200 ? value_of(&state, seed % 3 ? 900 : 60) : values[i - 200];
        value = seed % 7 == 0 && i % 200 == 50 ? INFINITY : value;
        values[i % 200] = value;
        ivm__weight weight = i < 200 ? 1 + (ivm__weight)(seed % 5 == 0 ? i : 0) : -1 - (ivm__weight)(seed % 5 == 0 ? i - 200 : 0);
        weight = seed % 2 ? weight : -weight;
        cr_assert_eq(add(&memory, &trimmed, value, weight), IVM_OK);
        cr_assert_eq(add(&memory, &plain, value, weight), IVM_OK);
        if (i % 3 == 0) {
            ivm__exact_sum_trim(&memory, &trimmed);
        }
        double a = ivm__exact_sum_value(trimmed), b = ivm__exact_sum_value(plain);
        cr_assert(a == b || (isnan(a) && isnan(b)), "seed %lu, value %u", (unsigned long)seed, i);
    }
    ivm__exact_sum_trim(&memory, &trimmed);
    cr_assert_leq(ivm__exact_sum_image_size(trimmed), 16u + 8 * 8, "nothing is left of it");
    ivm__exact_sum_free(&memory, trimmed);
    ivm__exact_sum_free(&memory, plain);
    cr_assert(test_allocator_is_clean(&counted));
}

static void memory_open(void)
{
    test_allocator_init(&counted);
    ivm_allocator functions = test_allocator_functions(&counted);
    ivm__memory_init(&memory, &functions);
}

Test(engine_shrink, sums_that_are_trimmed_are_what_they_were)
{
    memory_open();
    for (uint64_t seed = 1; seed <= 200; seed++) {
        sums_equal(seed, ivm__exact_sum_add);
    }
}

Test(engine_shrink, digits_of_a_sum)
{
    ivm__exact_sum *sum = NULL;
    memory_open();
    cr_assert_eq(ivm__exact_sum_add(&memory, &sum, -1.5, 1), IVM_OK);
    size_t small = ivm__exact_sum_image_size(sum);
    cr_assert_eq(ivm__exact_sum_add(&memory, &sum, 1e300, 3), IVM_OK);
    cr_assert_eq(ivm__exact_sum_add(&memory, &sum, 1e-300, 1), IVM_OK);
    ivm__exact_sum_trim(&memory, &sum);
    cr_assert_gt(ivm__exact_sum_image_size(sum), 10 * small, "all of them are in use");
    cr_assert_eq(ivm__exact_sum_add(&memory, &sum, 1e300, -3), IVM_OK);
    cr_assert_eq(ivm__exact_sum_add(&memory, &sum, 1e-300, -1), IVM_OK);
    cr_assert_eq(ivm__exact_sum_add(&memory, &sum, NAN, 1), IVM_OK);
    cr_assert_eq(ivm__exact_sum_add(&memory, &sum, NAN, -1), IVM_OK);
    test_allocator_arm(&counted, 1);
    ivm__exact_sum_trim(&memory, &sum);
    cr_assert(test_allocator_disarm(&counted));
    cr_assert_eq(ivm__exact_sum_value(sum), -1.5, "it stays");
    ivm__exact_sum_trim(&memory, &sum);
    cr_assert_leq(ivm__exact_sum_image_size(sum), small);
    cr_assert_eq(ivm__exact_sum_value(sum), -1.5);
    uint8_t image[256];
    size_t size = ivm__exact_sum_image_size(sum);
    ivm__exact_sum_save(sum, image);
    cr_assert_eq(ivm__exact_sum_add(&memory, &sum, 1e300, 3), IVM_OK);
    ivm__exact_sum_restore(&memory, &sum, image, size);
    cr_assert_eq(ivm__exact_sum_value(sum), -1.5, "an image saved after it was trimmed");
    cr_assert_eq(ivm__exact_sum_add(&memory, &sum, 1.5, 1), IVM_OK);
    ivm__exact_sum_trim(&memory, &sum);
    cr_assert_null(sum, "a sum of nothing");
    ivm__exact_sum_trim(&memory, &sum);
    cr_assert(test_allocator_is_clean(&counted));
}
