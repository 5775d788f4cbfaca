/* tests engine/base/text.c */
#include "text.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "allocator.h"

static test_allocator counted;
static ivm__memory memory;
static ivm__texts texts;

static void begin(void)
{
    test_allocator_init(&counted);
    ivm_allocator functions = test_allocator_functions(&counted);
    ivm__memory_init(&memory, &functions);
    ivm__texts_init(&texts, &memory, 42);
}

static void end(void)
{
    ivm__texts_deinit(&texts);
    cr_assert(test_allocator_is_clean(&counted));
}

static const ivm__text *intern(const char *bytes)
{
    const ivm__text *text;
    cr_assert_eq(ivm__texts_intern(&texts, bytes, strlen(bytes), &text), IVM_OK);
    return text;
}

static const ivm__text *number(uint32_t i)
{
    char bytes[32];
    snprintf(bytes, sizeof bytes, "text %u", i);
    return intern(bytes);
}

static void next_epoch(uint64_t oldest)
{
    ivm__texts_sweep(&texts, oldest);
    texts.epoch++;
}

Test(engine_text, equal_bytes_are_one_text, .init = begin, .fini = end)
{
    const ivm__text *a = intern("abc"), *empty = intern("");
    cr_assert_eq(intern("abc"), a);
    cr_assert_neq(intern("abd"), a);
    cr_assert_eq(intern(""), empty);
    const ivm__text *null_inside, *longer;
    cr_assert_eq(ivm__texts_intern(&texts, "a\0b", 3, &null_inside), IVM_OK);
    cr_assert_eq(ivm__texts_intern(&texts, "a\0c", 3, &longer), IVM_OK);
    cr_assert(null_inside != longer && null_inside->size == 3);
    cr_assert_str_eq(a->bytes, "abc");
    cr_assert_eq(texts.count, 5);
    cr_assert_eq(ivm__texts_intern(&texts, NULL, 0, &longer), IVM_OK);
    cr_assert_eq(longer, empty);
    cr_assert_eq(ivm__texts_intern(&texts, "", (size_t)IVM_STRING_SIZE_MAX + 1, &longer), IVM_OVERFLOW);
}

Test(engine_text, order_is_by_bytes, .init = begin, .fini = end)
{
    static const char *const ascending[] = { "", "A", "Z", "a", "aa", "ab", "b", "\xc3\xa4" };
    for (size_t i = 0; i < 8; i++) {
        for (size_t j = 0; j < 8; j++) {
            int order = ivm__text_compare(intern(ascending[i]), intern(ascending[j]));
            cr_assert_eq((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
}

Test(engine_text, unheld_lives_until_its_step_ends, .init = begin, .fini = end)
{
    texts.epoch = 5;
    const ivm__text *held = intern("held");
    intern("unheld");
    ivm__texts_acquire(&texts, held);
    ivm__texts_sweep(&texts, 5);
    cr_assert_eq(texts.count, 2, "epoch 5 is not before 5");
    next_epoch(6);
    cr_assert_eq(texts.count, 1);
    cr_assert_eq(intern("held"), held);
    ivm__texts_release(&texts, held);
    next_epoch(7);
    cr_assert_eq(texts.count, 0);
}

Test(engine_text, snapshot_keeps_what_was_let_go_after_it, .init = begin, .fini = end)
{
    texts.epoch = 1;
    const ivm__text *a = intern("a"), *b = intern("b");
    ivm__texts_acquire(&texts, a);
    ivm__texts_acquire(&texts, b);
    next_epoch(2);
    ivm__texts_release(&texts, a); /* in epoch 2 */
    next_epoch(2);                 /* a snapshot of epoch 2 is open */
    cr_assert_eq(intern("a"), a);
    ivm__texts_acquire(&texts, a); /* held again, let go again in epoch 3 */
    ivm__texts_release(&texts, a);
    next_epoch(3); /* now the oldest is of epoch 3: the first listing is past, the second is not */
    cr_assert_eq(texts.count, 2);
    cr_assert_eq(intern("a"), a);
    next_epoch(5);
    cr_assert_eq(texts.count, 1, "b is held still");
    ivm__texts_release(&texts, b);
    next_epoch(6);
    cr_assert_eq(texts.count, 0);
}

Test(engine_text, one_that_comes_and_goes_does_not_keep_others, .init = begin, .fini = end)
{
    const ivm__text *restless = intern("restless");
    for (uint32_t i = 1; i < 100; i++) {
        texts.epoch = i;
        ivm__texts_acquire(&texts, restless);
        ivm__texts_release(&texts, restless);
        number(i);
        ivm__texts_sweep(&texts, i > 3 ? i - 3 : 0); /* snapshots overlap: never is none open */
        cr_assert_leq(texts.count, 6, "epoch %u", i);
        cr_assert_eq(intern("restless"), restless);
    }
}

/* The set against a plain model: references of up to 300 texts, some swept each epoch. */
static void random_run(uint32_t seed)
{
    uint32_t references[300] = { 0 };
    uint64_t last_seen[300] = { 0 };
    const ivm__text *known[300] = { NULL };
    texts.epoch = 1;
    for (uint32_t i = 0; i < 20000; i++) {
        seed = seed * 1664525 + 1013904223;
        uint32_t t = (seed >> 10) % 300;
        if (references[t] && seed >> 30 >= 2) {
            ivm__texts_release(&texts, known[t]);
            last_seen[t] = --references[t] ? last_seen[t] : texts.epoch;
        } else {
            const ivm__text *text = number(t);
            if (references[t] || last_seen[t] == texts.epoch) {
                cr_assert_eq(text, known[t]);
            }
            known[t] = text;
            last_seen[t] = texts.epoch;
            if (seed >> 30 == 1) {
                ivm__texts_acquire(&texts, text);
                references[t]++;
            }
        }
        if (i % 100 == 99) {
            next_epoch(texts.epoch + 1);
            uint32_t held = 0;
            for (uint32_t j = 0; j < 300; j++) {
                held += references[j] > 0;
            }
            cr_assert_eq(texts.count, held);
        }
    }
    for (uint32_t t = 0; t < 300; t++) {
        for (; references[t]; references[t]--) {
            ivm__texts_release(&texts, known[t]);
        }
    }
    next_epoch(texts.epoch + 1);
    cr_assert_eq(texts.count, 0);
}

Test(engine_text, random_references, .init = begin, .fini = end)
{
    for (uint32_t seed = 1; seed <= 20; seed++) {
        fprintf(stderr, "seed %u\n", seed);
        random_run(seed);
        texts.epoch = 0;
    }
}

Test(engine_text, failed_allocation_changes_nothing, .init = begin, .fini = end)
{
    for (uint32_t i = 0; i < 500; i++) {
        bool done = false;
        for (uint64_t n = 1; !done; n++) {
            char bytes[32];
            const ivm__text *text = NULL;
            snprintf(bytes, sizeof bytes, "text %u", i);
            test_allocator_arm(&counted, n);
            ivm_status status = ivm__texts_intern(&texts, bytes, strlen(bytes), &text);
            done = !test_allocator_disarm(&counted);
            cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
            cr_assert_eq(texts.count, i + done);
        }
    }
    for (uint32_t i = 0; i < 500; i++) {
        number(i);
    }
    cr_assert_eq(texts.count, 500);
}

/* ---- Growth a piece at a time ------------------------------------------------------------------------------------------------------ */

static void check(void)
{
    const char *wrong = ivm__texts_validate(&texts);
    cr_assert_null(wrong, "%s", wrong);
}

static const ivm__text *intern_number(uint32_t number)
{
    char bytes[16];
    snprintf(bytes, sizeof bytes, "%u", number);
    return intern(bytes);
}

/* Texts come and go at random, one by one, until there are many: all are found, and no other, while larger slots are filled and between. Memory that
 * runs out leaves all as it was. */
Test(engine_text, come_and_go_while_slots_grow, .init = begin, .fini = end)
{
    enum { TEXTS = 3000 };
    static const ivm__text *held[TEXTS];
    uint32_t count = 0, beside = 0, gone = 0, failures = 0, drawn = 1;
    for (uint32_t round = 0; count < TEXTS / 2; round++) {
        drawn = drawn * 1664525u + 1013904223u;
        uint32_t number = (drawn >> 8) % TEXTS;
        if (held[number] && drawn >> 30 == 0) {
            ivm__texts_release(&texts, held[number]);
            held[number] = NULL;
            count--;
            gone += texts.larger != NULL;
        } else if (!held[number]) {
            char bytes[16];
            int size = snprintf(bytes, sizeof bytes, "%u", number);
            test_allocator_arm(&counted, 1 + round % 2);
            ivm_status status = ivm__texts_intern(&texts, bytes, (size_t)size, &held[number]);
            if (test_allocator_disarm(&counted)) {
                cr_assert_eq(status, IVM_OUT_OF_MEMORY);
                failures++;
                check();
                held[number] = intern_number(number);
            }
            ivm__texts_acquire(&texts, held[number]);
            count++;
        }
        ivm__texts_sweep(&texts, ++texts.epoch);
        beside += texts.larger != NULL;
        cr_assert_eq(texts.count, count);
        if (round % 8 == 0) {
            check();
        }
    }
    for (uint32_t number = 0; number < TEXTS; number++) {
        cr_assert(!held[number] || intern_number(number) == held[number]);
    }
    cr_assert(beside > 20 && gone > 5 && failures > 20, "%u %u %u", beside, gone, failures);
}

/* No new text moves more than some slots: told by how many of the larger ones are in use before and after. */
Test(engine_text, slots_grow_a_piece_at_a_time, .init = begin, .fini = end)
{
    uint64_t before = 0, most = 0, beside = 0;
    for (uint32_t i = 0; i < 40000; i++) {
        (void)intern_number(i);
        uint64_t done = texts.larger ? texts.growth.done : 0;
        most = done > before && done - before > most ? done - before : most;
        before = done;
        beside += texts.larger != NULL;
    }
    check();
    cr_assert(beside > 1000 && most > 0 && most < 500, "%llu %llu", (unsigned long long)beside, (unsigned long long)most);
}

/* Given back in the middle of growing, nothing is left. */
Test(engine_text, slots_freed_while_they_grow, .init = begin, .fini = end)
{
    for (uint32_t i = 0; i < 5000 || !texts.larger; i++) {
        (void)intern_number(i);
    }
    check();
    ivm__texts_sweep(&texts, texts.epoch + 1); /* all go, so that slots are given back once the next step finds them empty */
    check();
    ivm__texts_sweep(&texts, ++texts.epoch);
    cr_assert(texts.count == 0 && !texts.larger && texts.capacity <= 1024, "%u", texts.capacity);
}
