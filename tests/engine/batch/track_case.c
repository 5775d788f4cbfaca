/* Tables with foreign keys, and what their rows come to. */
#include "track_case.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "onlooker.h"
#include "random.h"
#include "track.h"
#include "track_inside.h"

uint64_t track_random(track_case *it, uint64_t below)
{
    return random_next(&it->random) % below;
}

/* ---- Keys -------------------------------------------------------------------------------------------------------------------------------- */

static int64_t *weight_of(track_keys *keys, const char *key)
{
    for (uint32_t i = 0; i < keys->count; i++) {
        if (strcmp(keys->key[i], key) == 0) {
            return &keys->weight[i];
        }
    }
    cr_assert_lt(keys->count, TRACK_KEYS_MAX);
    snprintf(keys->key[keys->count], TRACK_KEY_SIZE, "%s", key);
    keys->weight[keys->count] = 0;
    return &keys->weight[keys->count++];
}

static bool covers(const track_keys *a, const track_keys *b)
{
    bool all = true;
    for (uint32_t i = 0; i < a->count; i++) {
        int64_t other = 0;
        for (uint32_t j = 0; j < b->count; j++) {
            other = strcmp(a->key[i], b->key[j]) == 0 ? b->weight[j] : other;
        }
        all &= a->weight[i] == other;
    }
    return all;
}

bool track_keys_equal(const track_keys *a, const track_keys *b)
{
    return covers(a, b) && covers(b, a);
}

static void key_append(char *key, const char *cell)
{
    size_t used = strlen(key);
    snprintf(key + used, TRACK_KEY_SIZE - used, "%s%s", used > 1 ? "," : "", cell);
}

/* False: the key has a null. */
static bool row_key(const ivm__store *store, ivm__row_id row, const uint32_t *columns, uint32_t count, char key[TRACK_KEY_SIZE])
{
    const ivm__layout *layout = store->layout;
    const uint8_t *at = ivm__store_row(store, row);
    strcpy(key, "(");
    for (uint32_t c = 0; c < count; c++) {
        char cell[24];
        if (ivm__row_is_null(layout, at, columns[c])) {
            return false;
        }
        uint64_t word = ivm__row_word(layout, at, columns[c]);
        if (layout->types[columns[c]] == IVM_STRING) {
            snprintf(cell, sizeof cell, "%s", ((const ivm__text *)(uintptr_t)word)->bytes);
        } else {
            snprintf(cell, sizeof cell, "%lld", (long long)word);
        }
        key_append(key, cell);
    }
    return true;
}

/* How often rows hold each key. */
static void rows_count(const ivm_table *table, const uint32_t *columns, uint32_t count, ivm__reading reading, ivm__row_id end,
                       track_keys *keys)
{
    const ivm__store *store = &table->store;
    keys->count = 0;
    for (ivm__row_id row = 0; row < store->rows_end && row < end; row++) {
        char key[TRACK_KEY_SIZE];
        ivm__weight weight = ivm__store_weight(store, row, reading);
        if (weight != 0 && row_key(store, row, columns, count, key)) {
            int64_t *sum = weight_of(keys, key), more = table->allow_negative ? 1 : (int64_t)weight;
            *sum = more > 0 && *sum > INT64_MAX - more ? INT64_MAX : *sum + more; /* no fact counts further */
        }
    }
}

static void children_count(const ivm_fact *fact, ivm__reading reading, ivm__row_id end, track_keys *keys)
{
    uint32_t columns[4];
    ivm__fact_child_columns(fact, columns);
    rows_count(fact->child, columns, fact->columns_count, reading, end, keys);
}

void track_model(const ivm_fact *fact, ivm__reading reading, track_keys *waiting)
{
    track_keys parents;
    children_count(fact, reading, IVM__ROW_NONE, waiting);
    rows_count(fact->parent, fact->parent->key, fact->columns_count, reading, IVM__ROW_NONE, &parents);
    for (uint32_t i = 0; i < waiting->count; i++) {
        waiting->weight[i] = *weight_of(&parents, waiting->key[i]) != 0 ? 0 : waiting->weight[i];
    }
}

static void zset_count(const ivm__zset *zset, ivm__reading reading, track_keys *keys)
{
    static const uint32_t columns[] = { 0, 1, 2, 3 };
    const ivm__store *store = &zset->store;
    keys->count = 0;
    for (ivm__row_id row = 0; zset->whole && row < store->rows_end; row++) {
        char key[TRACK_KEY_SIZE];
        ivm__weight weight = ivm__store_weight(store, row, reading);
        if (weight != 0) {
            cr_assert(row_key(store, row, columns, store->layout->columns_count, key));
            *weight_of(keys, key) += (int64_t)weight;
        }
    }
}

void track_keys_add(track_keys *keys, ivm_snapshot *snapshot)
{
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            char key[TRACK_KEY_SIZE] = "(";
            for (size_t c = 0; c < rows.columns_count; c++) {
                char cell[24];
                ivm_value value = ivm_rows_value(&rows, ivm_snapshot_column_type(snapshot, c), i, c);
                ivm_value_format(&value, cell, sizeof cell);
                key_append(key, cell);
            }
            *weight_of(keys, key) += rows.weights[i];
        }
    }
    cr_assert_eq(ivm_snapshot_status(snapshot), IVM_OK);
    ivm_snapshot_close(snapshot);
}

/* ---- Inside a step ------------------------------------------------------------------------------------------------------------------------- */

static void wrong(track_case *it, const char *what)
{
    it->wrong = it->wrong ? it->wrong : what;
}

/* A row of the parent's: whether a child holds its key on, by the rows. False where it is neither fresh nor gone. */
static bool row_held(const ivm_fact *fact, ivm__row_id row, ivm__fate fate)
{
    track_keys children;
    char key[TRACK_KEY_SIZE];
    if (fate != IVM__FRESH && fate != IVM__GONE) {
        return false;
    }
    cr_assert(row_key(&fact->parent->store, row, fact->parent->key, fact->columns_count, key));
    children_count(fact, fate == IVM__FRESH ? IVM__READ_OLD : IVM__READ_CUR, IVM__ROW_NONE, &children);
    return *weight_of(&children, key) != 0;
}

static bool mark_check(track_case *it, const ivm_fact *fact, ivm__row_id row, ivm__fate fate, bool marked)
{
    bool held = row_held(fact, row, fate);
    if (held != marked) {
        wrong(it, fate == IVM__FRESH ? "a fresh row's mark" : fate == IVM__GONE ? "a gone row's mark" : "a mark of neither");
    }
    *(fate == IVM__FRESH  ? (held ? &it->held_fresh : &it->free_fresh)
      : fate == IVM__GONE ? (held ? &it->held_gone : &it->free_gone)
                          : &it->neither) += 1;
    return held && fate == IVM__FRESH;
}

static ivm_status held_check(track_case *it, ivm__step *step, ivm_fact *fact)
{
    const ivm__split *split;
    ivm__held held, again;
    bool awaited, waited = false;
    IVM_TRY(ivm__track_awaited(step, fact, &awaited));
    IVM_TRY(ivm__split_of(step, fact->parent, &split));
    IVM_TRY(ivm__track_held(step, fact, split, &held));
    IVM_TRY(ivm__track_held(step, fact, split, &again));
    if (held.touched != again.touched || held.appended != again.appended || !held.touched != !held.appended) {
        wrong(it, "asked again it says otherwise");
    }
    for (uint32_t i = 0; i < ivm__split_touched(split); i++) {
        bool marked = held.touched && held.touched[i];
        waited |= mark_check(it, fact, split->table->store.touched[i].row, (ivm__fate)split->touched[i], marked);
    }
    for (uint32_t i = 0; i < ivm__split_appended(split); i++) {
        bool marked = held.appended && held.appended[i];
        waited |= mark_check(it, fact, split->table->store.step_end + i, (ivm__fate)split->appended[i], marked);
    }
    it->awaited += awaited;
    if (waited != awaited) {
        wrong(it, "whether a parent is awaited");
    }
    return IVM_OK;
}

static void waiting_check(track_case *it, const ivm_fact *fact)
{
    for (ivm__reading reading = IVM__READ_OLD; reading <= IVM__READ_CUR; reading++) {
        track_keys model, counted;
        track_model(fact, reading, &model);
        zset_count(&fact->track->waiting, reading, &counted);
        if (!track_keys_equal(&model, &counted)) {
            wrong(it, reading == IVM__READ_OLD ? "who waited before" : "who waits");
        }
    }
}

static ivm_status look(void *context, ivm__step *step)
{
    track_case *it = context;
    for (uint32_t i = 0; i < it->facts_count; i++) {
        if (!it->facts[i]) {
            continue;
        }
        if (!step->refreshing) {
            waiting_check(it, it->facts[i]);
        }
        IVM_TRY(held_check(it, step, it->facts[i]));
    }
    return it->fails ? ivm__fail(step->error, IVM_OVERFLOW, "told to fail") : IVM_OK;
}

void track_views(track_case *it)
{
    it->now = onlooker_make(it->engine, "now", IVM_IMMEDIATE, it->tables, TRACK_TABLES, look, it);
    it->late = onlooker_make(it->engine, "late", IVM_DEFERRED, it->tables, TRACK_TABLES, look, it);
}

/* ---- Between steps ------------------------------------------------------------------------------------------------------------------------- */

static ivm_fact_state state_of(ivm_fact *fact)
{
    ivm_fact_state state = { .version = IVM_FACT_STATE_VERSION };
    cr_assert_eq(ivm_fact_status(fact, &state, NULL), IVM_OK);
    cr_assert_eq(state.trust, fact->trust);
    return state;
}

uint64_t track_orphans(ivm_fact *fact)
{
    return state_of(fact).orphans;
}

uint64_t track_orphans_keys(ivm_fact *fact)
{
    return state_of(fact).orphans_keys;
}

static const char *fact_check(ivm_fact *fact)
{
    const ivm__track *track = fact->track;
    track_keys model, told = { .count = 0 }, held;
    ivm_snapshot *snapshot = NULL;
    uint64_t rows = 0, keys = 0;
    track_model(fact, IVM__READ_CUR, &model);
    cr_assert_eq(ivm_read_orphans(fact, &snapshot, NULL), IVM_OK);
    track_keys_add(&told, snapshot);
    for (uint32_t i = 0; i < model.count; i++) {
        rows += (uint64_t)model.weight[i];
        keys += model.weight[i] != 0;
    }
    if (!track_keys_equal(&model, &told)) {
        return "the orphans that are read";
    }
    if (track_orphans(fact) != rows || track_orphans_keys(fact) != keys) {
        return "the count of orphans";
    }
    children_count(fact, IVM__READ_CUR, track->held_end, &model);
    zset_count(&track->held, IVM__READ_CUR, &held);
    if (track->held.whole && !track_keys_equal(&model, &held)) {
        return "who holds keys";
    }
    bool rests = track->waiting.store.touched_count == 0 && track->held.store.touched_count == 0 && !track->asked && !fact->telling;
    bool ended = track->held_end <= fact->child->store.rows_end && track->held_end == track->held_end_before;
    return !rests || !ended || (track->held_end > 0 && !track->held.whole) ? "a fact in a step" : NULL;
}

const char *track_check(track_case *it)
{
    const char *what = it->wrong;
    for (uint32_t i = 0; i < it->facts_count && !what; i++) {
        what = it->facts[i] ? fact_check(it->facts[i]) : NULL;
    }
    for (uint32_t t = 0; t < TRACK_TABLES && !what; t++) {
        const ivm__store *store = &it->tables[t]->store;
        what = store->laid || store->touched_count || store->rows_end != store->step_end ? "a table in a step" : NULL;
    }
    return what;
}

/* ---- Batches ------------------------------------------------------------------------------------------------------------------------------- */

static ivm_value few(track_case *it, uint64_t most, bool nullable)
{
    return nullable && track_random(it, 6) == 0 ? ivm_null() : ivm_int64((int64_t)track_random(it, most));
}

static ivm_value text(track_case *it, bool nullable)
{
    static const char *const texts[] = { "a", "bb", "ccc" };
    return nullable && track_random(it, 6) == 0 ? ivm_null() : ivm_string(texts[track_random(it, 3)]);
}

/* A row that goes is one that the batch brings first, so that there is one. */
static void keyed_change(track_case *it, ivm_batch *batch, uint32_t table)
{
    ivm_table *of = it->tables[table];
    ivm_value id = few(it, table == TRACK_CHILD ? 30 : 8, false), k = few(it, 4, false), s = text(it, false);
    bool gone = track_random(it, 3) == 0;
    if (table == TRACK_PARENT) {
        ivm_batch_upsert(batch, of, k, id, s);
        (void)(gone && ivm_batch_delete_key(batch, of, s, k));
        return;
    }
    if (table == TRACK_CHILD) {
        ivm_batch_upsert(batch, of, id, few(it, 4, true), text(it, true));
    } else {
        ivm_batch_upsert(batch, of, id, few(it, table == TRACK_TREE ? 8 : 2, true));
    }
    (void)(gone && ivm_batch_delete_key(batch, of, id));
}

static ivm_value cell_of(const ivm__store *store, ivm__row_id row, uint32_t column)
{
    const uint8_t *at = ivm__store_row(store, row);
    uint64_t word = ivm__row_word(store->layout, at, column);
    if (ivm__row_is_null(store->layout, at, column)) {
        return ivm_null();
    }
    return store->layout->types[column] == IVM_STRING ? ivm_string(((const ivm__text *)(uintptr_t)word)->bytes) : ivm_int64((int64_t)word);
}

/* One of a bag's rows that are there; false where the one that was looked at is not. */
static bool row_there(track_case *it, const ivm_table *table, ivm_value *row)
{
    const ivm__store *store = &table->store;
    ivm__row_id id = store->rows_end ? (ivm__row_id)track_random(it, store->rows_end) : 0;
    if (store->rows_end == 0 || ivm__store_weight(store, id, IVM__READ_CUR) == 0) {
        return false;
    }
    for (uint32_t c = 0; c < table->columns_count; c++) {
        row[c] = cell_of(store, id, c);
    }
    return true;
}

static void bag_change(track_case *it, ivm_batch *batch, uint32_t table)
{
    ivm_value row[3] = { few(it, 4, true), text(it, true), few(it, 8, true) };
    int64_t weight = table == TRACK_SIGNED ? (int64_t)track_random(it, 5) - 2 : 1 + (int64_t)track_random(it, 2);
    if (track_random(it, 2) && row_there(it, it->tables[table], row)) {
        weight = -1;
    }
    (void)ivm_batch_row(batch, it->tables[table], IVM_WEIGHTED, weight, row, it->tables[table]->columns_count);
}

static void change_add(track_case *it, ivm_batch *batch, uint32_t table)
{
    if (table == TRACK_BAG || table == TRACK_SIGNED) {
        bag_change(it, batch, table);
    } else {
        keyed_change(it, batch, table);
    }
}

ivm_batch *track_batch(track_case *it, uint32_t rows, uint32_t tables)
{
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(it->engine, &batch, &it->error), IVM_OK);
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t table = (uint32_t)track_random(it, TRACK_TABLES);
        if (tables & (1u << table)) {
            change_add(it, batch, table);
        }
    }
    return batch;
}

ivm_status track_push(track_case *it, ivm_batch *batch)
{
    return ivm_push_batch(it->engine, batch, NULL, &it->error);
}

/* ---- Opened and closed --------------------------------------------------------------------------------------------------------------------- */

static void table_make(track_case *it, uint32_t table, const char *name, const ivm_column_definition *columns, const char *key)
{
    ivm_table_options options = { .columns = columns, .key = key, .allow_negative = table == TRACK_SIGNED };
    while (options.columns_count < 3 && columns[options.columns_count].name) {
        options.columns_count++;
    }
    cr_assert_eq(ivm_table_create(it->engine, name, &options, &it->tables[table], &it->error), IVM_OK, "%s", it->error.message);
}

void track_open(track_case *it, uint64_t seed)
{
    static const ivm_column_definition parent[] = { { "k", IVM_INT64, false }, { "v", IVM_INT64, false }, { "s", IVM_STRING, false } };
    static const ivm_column_definition wide[] = { { "w", IVM_INT64, false }, { "v", IVM_INT64, false }, { 0 } };
    static const ivm_column_definition child[] = { { "id", IVM_INT64, false }, { "a", IVM_INT64, false }, { "b", IVM_STRING, false } };
    static const ivm_column_definition bag[] = { { "a", IVM_INT64, false }, { "b", IVM_STRING, false }, { "x", IVM_INT64, false } };
    static const ivm_column_definition tree[] = { { "id", IVM_INT64, false }, { "up", IVM_INT64, false }, { 0 } };
    *it = (track_case){ .random = seed * 0x9E3779B97F4A7C15ull | 1, .error = IVM_ERROR_INIT };
    test_allocator_init(&it->allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&it->allocator);
    options.hash_seed = seed;
    cr_assert_eq(ivm_engine_open(&options, &it->engine, &it->error), IVM_OK);
    table_make(it, TRACK_PARENT, "parent", parent, "s, k");
    table_make(it, TRACK_WIDE, "wide", wide, "w");
    table_make(it, TRACK_CHILD, "child", child, "id");
    table_make(it, TRACK_BAG, "bag", bag, NULL);
    table_make(it, TRACK_SIGNED, "signed", bag, NULL);
    table_make(it, TRACK_TREE, "tree", tree, "id");
}

static void fact_declare(track_case *it, uint32_t child, const char *columns, uint32_t parent, const char *parent_columns)
{
    cr_assert_eq(ivm_foreign_key_declare(it->tables[child], columns, it->tables[parent], parent_columns, IVM_TRACKED,
                                         &it->facts[it->facts_count++], &it->error),
                 IVM_OK, "%s", it->error.message);
}

void track_declare(track_case *it)
{
    fact_declare(it, TRACK_CHILD, "a, b", TRACK_PARENT, "k, s");
    fact_declare(it, TRACK_BAG, "a, b", TRACK_PARENT, "k, s");
    fact_declare(it, TRACK_BAG, "x", TRACK_WIDE, "w");
    fact_declare(it, TRACK_SIGNED, "b, a", TRACK_PARENT, "s, k");
    fact_declare(it, TRACK_SIGNED, "x", TRACK_WIDE, "w");
    fact_declare(it, TRACK_TREE, "up", TRACK_TREE, "id");
}

void track_close(track_case *it)
{
    cr_assert_eq(ivm_engine_close(it->engine, &it->error), IVM_OK, "%s", it->error.message);
    cr_assert(test_allocator_is_clean(&it->allocator));
}
