/* Signs: rows as they came, what is present of them and their support, each to its port, under random weights. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "feed.h"

static const ivm_type types[] = { IVM_INT64, IVM_STRING };

/* A reader with three ports that keeps all it was ever sent and took part in a kept step. */
typedef struct reader {
    ivm__operator head;
    hand_bag now[3], kept[3];
    uint32_t chunks[3];
} reader;

static ivm_status reader_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    reader *to = (reader *)self;
    (void)step;
    cr_assert_lt(port, 3);
    to->chunks[port]++;
    hand_chunk_rows(chunk, &to->now[port]);
    return IVM_OK;
}

static void reader_commit(ivm__operator *self)
{
    reader *to = (reader *)self;
    for (uint32_t port = 0; port < 3; port++) {
        for (size_t i = 0; i < to->now[port].count; i++) {
            hand_bag_add(&to->kept[port], &to->now[port].rows[i]);
        }
        to->now[port].count = 0;
        to->kept[port].columns_count = 2;
        hand_bag_settle(&to->kept[port]);
    }
}

static void reader_undo(ivm__operator *self)
{
    for (uint32_t port = 0; port < 3; port++) {
        ((reader *)self)->now[port].count = 0;
    }
}

static void reader_free(ivm__operator *self, ivm__memory *memory)
{
    (void)memory;
    for (uint32_t port = 0; port < 3; port++) {
        hand_bag_free(&((reader *)self)->now[port]);
        hand_bag_free(&((reader *)self)->kept[port]);
    }
    free(self);
}

static const ivm__operator_class reader_class = {
    .name = "reader", .consume = reader_consume, .commit = reader_commit, .undo = reader_undo, .free = reader_free
};

typedef struct chain {
    hand it;
    feed *from;
    ivm__operator *signs;
    reader *to;
    hand_bag rows;
} chain;

static void chain_open(chain *at, const ivm_allocator *allocator, ivm__signs_ports ports)
{
    *at = (chain){ .rows.columns_count = 2 };
    hand_open(&at->it, allocator);
    at->from = feed_add(&at->it, types, 2);
    cr_assert_eq(ivm__signs_create(&at->it.engine->memory, &at->it.engine->texts, 7, types, 2, ports, &at->signs), IVM_OK);
    hand_add(&at->it, at->signs, &at->from->head, 0);
    at->to = calloc(1, sizeof *at->to);
    at->to->head.class = &reader_class;
    hand_add(&at->it, &at->to->head, at->signs, 0);
}

static void chain_close(chain *at)
{
    hand_bag_free(&at->rows);
    hand_close(&at->it);
}

/* Sends what the feed holds; `rows` follows what was kept. */
static ivm_status chain_step(chain *at, bool keep)
{
    ivm_status status = feed_step(&at->it, keep);
    for (size_t i = 0; status == IVM_OK && keep && i < at->from->rows.count; i++) {
        hand_bag_add(&at->rows, &at->from->rows.rows[i]);
    }
    hand_bag_settle(&at->rows);
    return status;
}

static bool holds(chain *at)
{
    bool equal = true;
    for (uint32_t port = 0; port < 3; port++) {
        hand_bag want = { .columns_count = 2 };
        for (size_t i = 0; i < at->rows.count; i++) {
            hand_row row = at->rows.rows[i];
            row.weight = port == 0 ? row.weight : port == 1 ? (row.weight > 0 ? row.weight : 0) : row.weight != 0;
            hand_bag_add(&want, &row);
        }
        equal &= hand_bag_equal(&at->to->kept[port], &want);
        hand_bag_free(&want);
    }
    return equal;
}

static void add_row(chain *at, hand_row row, __int128 weight)
{
    row.weight = weight;
    hand_bag_add(&at->from->rows, &row);
}

Test(operators_signs, each_port_gets_what_it_is_for)
{
    uint64_t random = 5;
    for (uint32_t seed = 0; seed < 40; seed++) {
        chain at;
        chain_open(&at, NULL, (ivm__signs_ports){ 0, 1, 2 });
        for (uint32_t n = 0; n < 40; n++) {
            feed_clear(at.from);
            at.from->chunk_rows = 1 + hand_below(&random, 6);
            for (uint32_t rows = hand_below(&random, 12); rows > 0; rows--) {
                add_row(&at, HAND_ROW(hand_below(&random, 3), hand_below(&random, 3) ? hand_below(&random, 3) : HAND_NULL),
                        (int)hand_below(&random, 5) - 2);
            }
            cr_assert_eq(chain_step(&at, hand_below(&random, 4) != 0), IVM_OK);
            cr_assert(holds(&at), "seed %u, step %u", seed, n);
        }
        chain_close(&at);
    }
}

Test(operators_signs, more_rows_than_a_chunk_and_ports_that_are_not_wanted)
{
    chain at;
    chain_open(&at, NULL, (ivm__signs_ports){ UINT32_MAX, 1, UINT32_MAX });
    for (int64_t n = 0; n < 3000; n++) {
        add_row(&at, HAND_ROW(n, n % 7), n % 3 - 1);
    }
    cr_assert_eq(chain_step(&at, true), IVM_OK);
    cr_assert(at.to->chunks[0] == 0 && at.to->chunks[2] == 0);
    cr_assert_eq(at.to->kept[1].count, 1000);
    feed_clear(at.from);
    for (int64_t n = 0; n < 3000; n++) {
        add_row(&at, HAND_ROW(n, n % 7), -(n % 3 - 1));
    }
    cr_assert_eq(chain_step(&at, true), IVM_OK);
    cr_assert(at.to->kept[1].count == 0 && at.rows.count == 0);
    chain_close(&at);
}

Test(operators_signs, a_row_that_changes_within_its_sign_says_nothing_of_presence)
{
    chain at;
    chain_open(&at, NULL, (ivm__signs_ports){ 0, 1, 2 });
    add_row(&at, HAND_ROW(1, 1), -2);
    cr_assert_eq(chain_step(&at, true), IVM_OK);
    cr_assert(at.to->chunks[0] == 1 && at.to->chunks[1] == 0 && at.to->chunks[2] == 1);
    feed_clear(at.from);
    add_row(&at, HAND_ROW(1, 1), 1);
    cr_assert_eq(chain_step(&at, true), IVM_OK);
    cr_assert(at.to->chunks[0] == 2 && at.to->chunks[1] == 0 && at.to->chunks[2] == 1);
    cr_assert(holds(&at));
    chain_close(&at);
}

Test(operators_signs, a_net_weight_past_int64_is_an_overflow)
{
    chain at;
    chain_open(&at, NULL, (ivm__signs_ports){ 0, 1, 2 });
    add_row(&at, HAND_ROW(1, 1), INT64_MIN);
    cr_assert_eq(chain_step(&at, true), IVM_OK);
    feed_clear(at.from);
    add_row(&at, HAND_ROW(1, 1), -1);
    cr_assert_eq(chain_step(&at, true), IVM_OVERFLOW);
    cr_assert_str_eq(at.it.error.message, "view v: the weight of a row is out of range");
    add_row(&at, HAND_ROW(1, 1), 1);
    cr_assert_eq(chain_step(&at, true), IVM_OK, "only what it comes to counts");
    cr_assert(holds(&at));
    chain_close(&at);
}

Test(operators_signs, running_out_of_memory_changes_nothing)
{
    hand_trial trial = { 0 };
    while (hand_trial_next(&trial)) {
        chain at;
        chain_open(&at, &trial.functions, (ivm__signs_ports){ 0, 1, 2 });
        add_row(&at, HAND_ROW(1, 1), -2);
        add_row(&at, HAND_ROW(1, 2), 3);
        cr_assert_eq(chain_step(&at, true), IVM_OK);
        for (int64_t i = 0; i < 1500; i++) {
            add_row(&at, HAND_ROW(i, i % 3), i % 4 - 2);
        }
        hand_trial_arm(&trial);
        ivm_status status = chain_step(&at, true);
        hand_trial_judge(&trial, status, IVM_OK);
        cr_assert(holds(&at), "allocation %llu", (unsigned long long)trial.n);
        cr_assert_eq(chain_step(&at, true), IVM_OK);
        cr_assert(holds(&at), "allocation %llu: the step after", (unsigned long long)trial.n);
        chain_close(&at);
    }
    cr_assert_gt(trial.failures, 5);
}

Test(operators_signs, running_out_of_memory_in_making_it_leaves_nothing)
{
    hand_trial trial = { 0 };
    while (hand_trial_next(&trial)) {
        hand it;
        hand_open(&it, &trial.functions);
        ivm__operator *made;
        hand_trial_arm(&trial);
        ivm_status status = ivm__signs_create(&it.engine->memory, &it.engine->texts, 7, types, 2, (ivm__signs_ports){ 0, 1, 2 }, &made);
        hand_trial_judge_made(&trial, &it, status, made);
    }
    cr_assert_gt(trial.failures, 2);
}
