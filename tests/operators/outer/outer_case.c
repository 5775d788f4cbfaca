/* See outer_case.h. */
#include "outer_case.h"

#include <criterion/criterion.h>

#include "join_case.h"
#include "outer_state.h"

const ivm_type outer_types[OUTER_COLUMNS] = { IVM_INT64, IVM_INT64, IVM_STRING, IVM_DECIMAL(20, 0) };

void outer_draw(outer_case *join, uint64_t *random)
{
    *join = (outer_case){ .kind = IVM_LEFT_JOIN + hand_below(random, 5), .condition = hand_below(random, 3) == 0 };
    for (uint32_t keys = hand_below(random, 8) ? 1 + hand_below(random, 2) : hand_below(random, 4); keys > 0; keys--) {
        uint32_t left = hand_below(random, OUTER_COLUMNS), right = hand_below(random, OUTER_COLUMNS);
        while (outer_types[left] != outer_types[right]) {
            right = hand_below(random, OUTER_COLUMNS);
        }
        join->left_keys[join->keys_count] = left;
        join->right_keys[join->keys_count++] = right;
    }
    join->negative[0] = hand_below(random, 3) == 0;
    join->negative[1] = hand_below(random, 3) == 0;
}

static ivm__expression *condition_make(hand *it)
{
    ivm__expression *left = case_call(it, IVM__MULTIPLY, IVM_INT64, case_column(it, 0, IVM_INT64), case_int64(it, 1ll << 61));
    ivm__expression *right =
        case_call(it, IVM__MULTIPLY, IVM_INT64, case_column(it, OUTER_COLUMNS + 1, IVM_INT64), case_int64(it, 1ll << 61));
    return case_call(it, IVM__LESS_EQUAL, IVM_BOOL, left, right);
}

void outer_open(outer_case *join, const ivm_allocator *allocator)
{
    hand *it = &join->it;
    hand_open(it, allocator);
    ivm__memory *memory = &it->engine->memory;
    for (uint32_t side = 0; side < 2; side++) {
        join->feeds[side] = feed_add(it, outer_types, OUTER_COLUMNS);
        join->rows[side] = (hand_bag){ .columns_count = OUTER_COLUMNS };
    }
    ivm__outer_spec spec = {
        .kind = join->kind,
        .left_types = outer_types,
        .right_types = outer_types,
        .left_count = OUTER_COLUMNS,
        .right_count = OUTER_COLUMNS,
        .left_keys = join->left_keys,
        .right_keys = join->right_keys,
        .keys_count = join->keys_count,
        .condition = join->condition ? condition_make(it) : NULL,
    };
    cr_assert_eq(ivm__outer_create(memory, &it->engine->texts, it->engine->seed, &spec, &join->join), IVM_OK);
    hand_add(it, join->join, &join->feeds[0]->head, IVM__OUTER_LEFT);
    feed_wire(join->feeds[1], join->join, IVM__OUTER_RIGHT);
    uint32_t count = join->join->columns_count;
    cr_assert_eq(ivm__materialize_create(memory, &it->engine->texts, it->engine->seed, join->join->types, count, &join->root), IVM_OK);
    hand_add(it, join->root, join->join, 0);
}

void outer_close(outer_case *join)
{
    hand_bag_free(&join->rows[0]);
    hand_bag_free(&join->rows[1]);
    hand_close(&join->it);
}

void outer_send(outer_case *join, uint32_t side, hand_row row, __int128 weight)
{
    row.weight = weight;
    hand_bag_add(&join->feeds[side]->rows, &row);
}

ivm_status outer_step(outer_case *join, bool initial, bool keep)
{
    ivm_status status = initial ? hand_fill(&join->it, keep) : feed_step(&join->it, keep);
    for (uint32_t side = 0; side < 2; side++) {
        const hand_bag *sent = &join->feeds[side]->rows;
        for (size_t i = 0; status == IVM_OK && keep && i < sent->count; i++) {
            hand_bag_add(&join->rows[side], &sent->rows[i]);
        }
        hand_bag_settle(&join->rows[side]);
        feed_clear(join->feeds[side]);
    }
    return status;
}

/* ---- The oracle ---------------------------------------------------------------------------------------------------------------------- */

static bool is_out_of_range(const hand_row *row, uint32_t column)
{
    return !row->nulls[column] && row->cells[column] >= 4;
}

/* *failing is set where the condition is out of range. */
static bool matches(const outer_case *join, const hand_row *left, const hand_row *right, bool *failing)
{
    for (uint32_t k = 0; k < join->keys_count; k++) {
        uint32_t a = join->left_keys[k], b = join->right_keys[k];
        if (left->nulls[a] || right->nulls[b] || left->cells[a] != right->cells[b]) {
            return false;
        }
    }
    if (!join->condition) {
        return true;
    }
    if (is_out_of_range(left, 0) || is_out_of_range(right, 1)) {
        *failing = true;
        return false;
    }
    return !left->nulls[0] && !right->nulls[1] && left->cells[0] <= right->cells[1];
}

bool outer_fails(const outer_case *join)
{
    hand_bag after[2];
    bool failing = false;
    for (uint32_t side = 0; side < 2; side++) {
        hand_bag_copy(&after[side], &join->rows[side]);
        for (size_t i = 0; i < join->feeds[side]->rows.count; i++) {
            hand_bag_add(&after[side], &join->feeds[side]->rows.rows[i]);
        }
        hand_bag_settle(&after[side]);
    }
    for (size_t l = 0; l < after[0].count; l++) {
        for (size_t r = 0; r < after[1].count; r++) {
            matches(join, &after[0].rows[l], &after[1].rows[r], &failing);
        }
    }
    hand_bag_free(&after[0]);
    hand_bag_free(&after[1]);
    return failing;
}

/* The row of the join of these two; NULL: nulls. */
static hand_row joined(const hand_row *left, const hand_row *right, __int128 weight)
{
    hand_row row = { .weight = weight };
    for (uint32_t c = 0; c < OUTER_COLUMNS; c++) {
        row.cells[c] = left ? left->cells[c] : 0;
        row.nulls[c] = left ? left->nulls[c] : true;
        row.cells[OUTER_COLUMNS + c] = right ? right->cells[c] : 0;
        row.nulls[OUTER_COLUMNS + c] = right ? right->nulls[c] : true;
    }
    return row;
}

/* How many present partners the row has on the other side. */
static uint32_t partners(const outer_case *join, uint32_t side, const hand_row *row)
{
    const hand_bag *others = &join->rows[1 - side];
    uint32_t count = 0;
    bool failing = false;
    for (size_t i = 0; i < others->count; i++) {
        const hand_row *other = &others->rows[i];
        count += other->weight > 0 && matches(join, side ? other : row, side ? row : other, &failing);
    }
    return count;
}

static void want_joined(const outer_case *join, hand_bag *want)
{
    bool failing = false;
    for (size_t l = 0; l < join->rows[0].count; l++) {
        for (size_t r = 0; r < join->rows[1].count; r++) {
            const hand_row *left = &join->rows[0].rows[l], *right = &join->rows[1].rows[r];
            hand_row row = joined(left, right, left->weight * right->weight);
            if (matches(join, left, right, &failing)) {
                hand_bag_add(want, &row);
            }
        }
    }
}

static void want_alone(const outer_case *join, uint32_t side, hand_bag *want)
{
    for (size_t i = 0; i < join->rows[side].count; i++) {
        const hand_row *row = &join->rows[side].rows[i];
        bool paired = partners(join, side, row) > 0, joins = join->kind != IVM_SEMI_JOIN && join->kind != IVM_ANTI_JOIN;
        if (row->weight <= 0 || paired != (join->kind == IVM_SEMI_JOIN)) {
            continue;
        }
        hand_row alone = joins ? joined(side ? NULL : row, side ? row : NULL, row->weight) : *row;
        hand_bag_add(want, &alone);
    }
}

bool outer_holds(outer_case *join)
{
    hand_bag got = { 0 }, want = { .columns_count = join->root->columns_count };
    if (join->kind != IVM_SEMI_JOIN && join->kind != IVM_ANTI_JOIN) {
        want_joined(join, &want);
    }
    if (join->kind != IVM_RIGHT_JOIN) {
        want_alone(join, 0, &want);
    }
    if (join->kind == IVM_RIGHT_JOIN || join->kind == IVM_FULL_JOIN) {
        want_alone(join, 1, &want);
    }
    hand_store_rows(ivm__materialize_result(join->root), &got);
    bool equal = hand_bag_equal(&got, &want);
    hand_bag_free(&got);
    hand_bag_free(&want);
    return equal;
}

/* ---- State ---------------------------------------------------------------------------------------------------------------------------- */

static bool counts_hold(const outer_case *join, uint32_t at, const ivm__outer_side *side)
{
    ivm__row_id ids[IVM__CHUNK_ROWS];
    ivm__weight weights[IVM__CHUNK_ROWS];
    hand_bag rows = { 0 };
    uint32_t next = 0, stands = 0;
    hand_store_rows(&side->rows.store, &rows); /* in the order of a scan */
    uint64_t sum = 0, all = 0;
    bool hold = true;
    for (uint32_t count; (count = ivm__store_scan(&side->rows.store, IVM__READ_CUR, &next, IVM__CHUNK_ROWS, ids, weights)) > 0;) {
        for (uint32_t i = 0; side->preserved && i < count; i++) {
            uint32_t counted = side->partners[ids[i]].count;
            hold &= counted == partners(join, at, &rows.rows[stands++]);
            sum += counted;
        }
    }
    for (uint32_t row = 0; row < side->partners_known; row++) {
        all += side->partners[row].count; /* rows that are not there have none */
        hold &= side->partners[row].touch == 0;
    }
    hand_bag_free(&rows);
    return hold && sum == all && side->touched_count == 0;
}

const char *outer_validate(outer_case *join)
{
    const ivm__outer *made = (const ivm__outer *)join->join;
    const ivm__outer_side *sides[] = { &made->left, &made->right };
    for (uint32_t at = 0; at < 2; at++) {
        for (const ivm__index *index = sides[at]->rows.store.indexes; index; index = index->next_of_store) {
            const char *wrong = ivm__index_validate(index);
            if (wrong) {
                return wrong;
            }
        }
        if (!counts_hold(join, at, sides[at])) {
            return at ? "counts of the right side" : "counts of the left side";
        }
    }
    return NULL;
}
