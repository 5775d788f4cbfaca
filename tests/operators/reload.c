/* See reload.h. */
#include "reload.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* The n-th feed of a program; NULL: there are fewer. */
static feed *feed_of(const hand *it, uint32_t input)
{
    for (uint32_t i = 0; i < it->program.operators_count; i++) {
        ivm__operator *operator= it->program.operators[i];
        if (strcmp(operator->class->name, "feed") == 0 && input-- == 0) {
            return (feed *)operator;
        }
    }
    return NULL;
}

static void *case_make(const reload *of, uint64_t seed, const ivm_allocator *allocator)
{
    void *at = calloc(1, of->size);
    cr_assert_not_null(at);
    of->open(at, seed, allocator);
    return at;
}

static void case_free(const reload *of, void *at)
{
    of->close(at);
    free(at);
}

static ivm_status load(const reload *of, void *to, const holdings *held)
{
    hand *it = of->hand_of(to);
    return holdings_load_program(held, it->engine, &it->program, &it->error);
}

static void save(const reload *of, void *from, holdings *held)
{
    holdings_save_program(held, &of->hand_of(from)->program);
}

/* The model of one becomes the other's. */
static void adopt(const reload *of, void *from, void *to)
{
    for (uint32_t i = 0; feed_of(of->hand_of(to), i); i++) {
        hand_bag_free(of->rows(to, i));
        hand_bag_copy(of->rows(to, i), of->rows(from, i));
    }
}

static void *case_reload(const reload *of, void *from, uint64_t seed, uint64_t *random)
{
    holdings held = { .chunk_rows = hand_below(random, 2) ? 1 + hand_below(random, 7) : 0 };
    void *to = case_make(of, seed, NULL);
    save(of, from, &held);
    cr_assert_eq(load(of, to, &held), IVM_OK, "seed %llu: %s", (unsigned long long)seed, of->hand_of(to)->error.message);
    adopt(of, from, to);
    cr_assert(of->holds(to), "loaded, seed %llu", (unsigned long long)seed);
    cr_assert(holdings_is_still(of->result(to)));
    holdings_assert_program(&held, &of->hand_of(to)->program, "loaded", seed);
    return to;
}

/* What is sent next to one, to the other. */
static void follow(const reload *of, void *from, void *to)
{
    feed *sent;
    for (uint32_t i = 0; (sent = feed_of(of->hand_of(from), i)); i++) {
        feed *other = feed_of(of->hand_of(to), i);
        feed_clear(other);
        other->chunk_rows = sent->chunk_rows;
        for (size_t n = 0; n < sent->rows.count; n++) {
            hand_bag_add(&other->rows, &sent->rows.rows[n]);
        }
    }
}

static void assert_equal(const reload *of, void *one, void *other, const char *what, uint64_t seed)
{
    holdings held = { 0 };
    save(of, one, &held);
    holdings_assert_program(&held, &of->hand_of(other)->program, what, seed);
}

/* A third of what each input holds, in another order and in other parts. */
static void send_part(const reload *of, void *from, void *to, uint32_t part, uint64_t *random)
{
    feed *sends;
    for (uint32_t i = 0; (sends = feed_of(of->hand_of(to), i)); i++) {
        const hand_bag *rows = of->rows(from, i);
        sends->chunk_rows = 1 + hand_below(random, 9);
        for (size_t n = rows->count; n-- > 0;) {
            hand_row row = rows->rows[n];
            int one = row.weight > 0 ? 1 : -1;
            row.weight -= one;
            if (n % 3 == part) {
                hand_bag_add(&sends->rows, &row);
            }
            row.weight = one;
            if ((n + 1) % 3 == part) {
                hand_bag_add(&sends->rows, &row);
            }
        }
    }
}

static void assert_other_way(const reload *of, void *from, uint64_t seed, uint64_t *random)
{
    void *other = case_make(of, seed, NULL);
    cr_assert_eq(of->step(other, true, true), IVM_OK);
    for (uint32_t part = 0; part < 3; part++) {
        send_part(of, from, other, part, random);
        cr_assert_eq(of->step(other, false, true), IVM_OK, "seed %llu: %s", (unsigned long long)seed, of->hand_of(other)->error.message);
    }
    assert_equal(of, from, other, "the same rows by other steps", seed);
    case_free(of, other);
}

static void steps_take(const reload *of, void *at, uint32_t count, bool first, uint64_t *random)
{
    for (uint32_t n = 0; n < count; n++) {
        of->draw(at, random);
        (void)of->step(at, first && n == 0, hand_below(random, 5) != 0);
    }
}

void reload_go_on(const reload *of, uint64_t seed)
{
    uint64_t random = seed * 0x9E3779B97F4A7C15ull | 1;
    void *one = case_make(of, seed, NULL);
    steps_take(of, one, hand_below(&random, 12), true, &random);
    void *other = case_reload(of, one, seed, &random);
    for (uint32_t n = 0; n < 8; n++) {
        bool keep = hand_below(&random, 4) != 0;
        of->draw(one, &random);
        follow(of, one, other);
        ivm_status status = of->step(one, false, keep);
        cr_assert_eq(of->step(other, false, keep), status);
        cr_assert(of->holds(other), "taken on, seed %llu, step %u", (unsigned long long)seed, n);
        assert_equal(of, one, other, "taken on", seed);
    }
    assert_other_way(of, one, seed, &random);
    case_free(of, one);
    case_free(of, other);
}

uint32_t reload_spoilt(const reload *of, uint64_t seed, uint32_t rounds)
{
    uint64_t random = seed * 0x9E3779B97F4A7C15ull | 1;
    uint32_t loaded = 0;
    holdings held = { .chunk_rows = 1 + hand_below(&random, 40) };
    void *one = case_make(of, seed, NULL);
    steps_take(of, one, 6, true, &random);
    save(of, one, &held);
    for (uint32_t n = 0; n < rounds; n++) {
        holdings spoilt, again = { 0 };
        void *at = case_make(of, seed, NULL), *twin = case_make(of, seed, NULL);
        holdings_copy(&spoilt, &held);
        holdings_spoil(&spoilt, &random);
        ivm_status status = load(of, at, &spoilt);
        cr_assert(status == IVM_OK || status == IVM_CORRUPT, "seed %llu, round %u: %d", (unsigned long long)seed, n, status);
        if (status == IVM_OK) {
            loaded++;
            save(of, at, &again);
            cr_assert_eq(load(of, twin, &again), IVM_OK, "what was loaded cannot be saved: seed %llu, round %u", (unsigned long long)seed,
                         n);
            assert_equal(of, at, twin, "spoilt", seed);
            adopt(of, one, at);
            steps_take(of, at, 3, false, &random);
        }
        holdings_free(&spoilt);
        holdings_free(&again);
        case_free(of, at);
        case_free(of, twin);
    }
    case_free(of, one);
    holdings_free(&held);
    return loaded;
}

void reload_out_of_memory(const reload *of, uint64_t seed)
{
    uint64_t random = seed * 0x9E3779B97F4A7C15ull | 1;
    hand_trial trial = { 0 };
    holdings held = { 0 };
    void *one = case_make(of, seed, NULL);
    steps_take(of, one, 12, true, &random);
    save(of, one, &held);
    case_free(of, one);
    while (hand_trial_next(&trial)) {
        void *at = case_make(of, seed, &trial.functions);
        hand_trial_arm(&trial);
        ivm_status status = load(of, at, &held);
        bool done = hand_trial_disarm(&trial);
        /* a block that could not be made smaller is no failure */
        cr_assert(status == IVM_OK || (!done && status == IVM_OUT_OF_MEMORY), "allocation %llu", (unsigned long long)trial.n);
        case_free(of, at);
    }
    cr_assert_gt(trial.failures, 5);
    holdings_free(&held);
}
