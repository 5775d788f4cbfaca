/* tests engine/text.c */
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
