/* Which operators hold something between steps; materialize, signs and weigh saved and loaded. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>

#include "reload.h"

/* ---- Who holds something ---------------------------------------------------------------------------------------------------------------- */

/* Every class of operators/. One that holds something between steps, or may, is saved. */
static const struct {
    const char *name;
    bool held;
} classes[] = {
    { "aggregate", true },                     /* groups and their states */
    { "filter", false },     { "join", true }, /* own rows of leaves over other than scans */
    { "judge", false },                        /* lives for one step, in a program of its own */
    { "materialize", true }, { "outer join", true }, { "project", false },   { "scan", false }, { "set", true },
    { "signs", true },       { "top_k", true },      { "union_all", false }, { "weigh", true },
};
#define CLASSES (sizeof classes / sizeof *classes)

/* The names of classes that a file defines are marked as seen; held where the class is said to save. */
static void file_read(const char *text, bool *seen)
{
    for (const char *at = text; (at = strstr(at, "ivm__operator_class ")); at++) {
        const char *end = strstr(at, "};"), *name = strstr(at, ".name = \"");
        if (at[strcspn(at, "=;")] != '=' || !end || !name || name > end) {
            continue; /* a declaration */
        }
        name += strlen(".name = \"");
        size_t size = strcspn(name, "\""), which = 0;
        const char *save = strstr(name, ".save = ");
        while (which < CLASSES && (strlen(classes[which].name) != size || memcmp(classes[which].name, name, size))) {
            which++;
        }
        cr_assert_lt(which, CLASSES, "class %.*s is not in the list", (int)size, name);
        cr_assert_eq(save && save < end, classes[which].held, "class %s", classes[which].name);
        cr_assert_not(seen[which]);
        seen[which] = true;
    }
}

/* All sources of a folder and of those in it. */
static void folder_read(const char *folder, bool *seen)
{
    DIR *directory = opendir(folder);
    cr_assert_not_null(directory, "%s", folder);
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[512];
        static char text[1 << 20];
        const char *dot = strrchr(entry->d_name, '.');
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (!dot && entry->d_type == DT_DIR) {
            folder_read(path, seen);
        } else if (dot && strcmp(dot, ".c") == 0) {
            FILE *file = fopen(path, "r");
            cr_assert_not_null(file);
            text[fread(text, 1, sizeof text - 1, file)] = 0;
            fclose(file);
            file_read(text, seen);
        }
    }
    closedir(directory);
}

Test(operators_save, every_class_says_whether_it_holds_something)
{
    bool seen[CLASSES] = { false };
    folder_read(IVM_TEST_OPERATORS, seen);
    for (size_t i = 0; i < CLASSES; i++) {
        cr_assert(seen[i], "class %s is not there", classes[i].name);
    }
}

/* ---- Materialize and signs --------------------------------------------------------------------------------------------------------------- */

#define COLUMNS 7u

static const ivm_type types[COLUMNS] = { IVM_INT64, IVM_STRING, IVM_DECIMAL(20, 0), IVM_FLOAT64, IVM_BOOL, IVM_DATE, IVM_TIMESTAMP };

typedef struct kept_case {
    hand it;
    feed *from;
    ivm__operator *root;
    hand_bag rows;
} kept_case;

static void kept_open(void *at, uint64_t seed, const ivm_allocator *allocator)
{
    static const ivm__signs_ports ports = { 0, UINT32_MAX, UINT32_MAX };
    kept_case *it = at;
    ivm__operator *signs;
    hand_open(&it->it, allocator);
    ivm__memory *memory = &it->it.engine->memory;
    ivm__texts *texts = &it->it.engine->texts;
    it->rows.columns_count = COLUMNS;
    it->from = feed_add(&it->it, types, COLUMNS);
    cr_assert_eq(ivm__signs_create(memory, texts, seed, types, COLUMNS, ports, &signs), IVM_OK);
    hand_add(&it->it, signs, &it->from->head, 0);
    cr_assert_eq(ivm__materialize_create(memory, texts, seed, types, COLUMNS, &it->root), IVM_OK);
    hand_add(&it->it, it->root, signs, 0);
}

static void kept_close(void *at)
{
    hand_bag_free(&((kept_case *)at)->rows);
    hand_close(&((kept_case *)at)->it);
}

static hand *kept_hand(void *at)
{
    return &((kept_case *)at)->it;
}

static void kept_draw(void *at, uint64_t *random)
{
    static const int64_t weights[] = { 1, 1, 1, -1, 2, INT64_MAX, INT64_MIN };
    kept_case *it = at;
    it->from->chunk_rows = 1 + hand_below(random, 6);
    for (size_t i = 0; i < it->rows.count; i++) {
        if (hand_below(random, 3) == 0) {
            hand_row row = it->rows.rows[i];
            row.weight = -row.weight;
            hand_bag_add(&it->from->rows, &row);
        }
    }
    for (uint32_t n = hand_below(random, 7); n > 0; n--) {
        hand_row row = { .weight = weights[hand_below(random, sizeof weights / sizeof *weights)] };
        for (uint32_t c = 0; c < COLUMNS; c++) {
            row.nulls[c] = hand_below(random, 5) == 0;
            row.cells[c] = row.nulls[c] ? 0 : hand_below(random, 2);
        }
        hand_bag_add(&it->from->rows, &row);
    }
}

static ivm_status kept_step(void *at, bool initial, bool keep)
{
    kept_case *it = at;
    ivm_status status = initial ? hand_fill(&it->it, keep) : feed_step(&it->it, keep);
    for (size_t n = 0; status == IVM_OK && keep && n < it->from->rows.count; n++) {
        hand_bag_add(&it->rows, &it->from->rows.rows[n]);
    }
    hand_bag_settle(&it->rows);
    feed_clear(it->from);
    return status;
}

static bool kept_holds(void *at)
{
    kept_case *it = at;
    hand_bag got = { 0 };
    hand_store_rows(ivm__materialize_result(it->root), &got);
    bool equal = hand_bag_equal(&got, &it->rows);
    hand_bag_free(&got);
    return equal;
}

static hand_bag *kept_rows(void *at, uint32_t input)
{
    (void)input;
    return &((kept_case *)at)->rows;
}

static const ivm__store *kept_result(void *at)
{
    return ivm__materialize_result(((kept_case *)at)->root);
}

static const reload kept = {
    sizeof(kept_case), kept_open, kept_close, kept_hand, kept_draw, kept_step, kept_holds, kept_rows, kept_result
};

Test(operators_save, kept_rows_saved_and_loaded_go_on)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        reload_go_on(&kept, seed);
    }
}

Test(operators_save, spoilt_rows_break_nothing)
{
    uint32_t loaded = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        loaded += reload_spoilt(&kept, seed, 50);
    }
    cr_assert_gt(loaded, 100);
}

Test(operators_save, running_out_of_memory_in_loading_rows_leaves_nothing)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        reload_out_of_memory(&kept, seed);
    }
}

/* ---- Weigh -------------------------------------------------------------------------------------------------------------------------------- */

static uint32_t asked;

static ivm_status judge(void *context, ivm__step *step)
{
    (void)context;
    (void)step;
    asked++;
    return IVM_OK;
}

static void weigh_open(hand *it, bool negative)
{
    ivm__operator *made;
    hand_open(it, NULL);
    cr_assert_eq(ivm__weigh_create(&it->engine->memory, types, 1, negative, (ivm__weigher){ judge, NULL }, &made), IVM_OK);
    hand_add(it, made, NULL, 0);
}

/* Whether a step of one row of this weight asks for a closer look. */
static bool weigh_takes(hand *it, ivm__weight weight)
{
    ivm_stats stats = { 0 };
    ivm__step step;
    uint64_t cell = 0;
    uint32_t before = asked;
    ivm__vector column = { .type = IVM_INT64, .cells = &cell };
    ivm__chunk chunk = { .rows_count = 1, .columns_count = 1, .columns = &column, .weights = &weight };
    ivm__operator *weigh = it->program.operators[0];
    ivm__step_init(&step, it->engine, &stats, NULL);
    cr_assert_eq(weigh->class->consume(weigh, &step, 0, &chunk), IVM_OK);
    cr_assert_eq(ivm__program_run(&it->program, &step), IVM_OK);
    ivm__program_commit(&it->program);
    ivm__engine_settle(it->engine);
    return asked > before;
}

static void weigh_reload(hand *from, hand *to, bool negative)
{
    holdings held = { 0 };
    holdings_save_program(&held, &from->program);
    cr_assert_eq(held.size, 17u);
    weigh_open(to, negative);
    cr_assert_eq(holdings_load_program(&held, to->engine, &to->program, &to->error), IVM_OK);
    holdings_assert_program(&held, &to->program, "a sum of weights", 0);
}

Test(operators_save, a_sum_of_weights_is_exact)
{
    hand one, other;
    weigh_open(&one, false);
    cr_assert(weigh_takes(&one, (ivm__weight)1 << 70));
    cr_assert(weigh_takes(&one, -17));
    weigh_reload(&one, &other, false);
    cr_assert_not(weigh_takes(&other, (ivm__weight)INT64_MAX + 17 - ((ivm__weight)1 << 70)));
    cr_assert(weigh_takes(&other, 1));
    hand_close(&one);
    hand_close(&other);
}

/* In steps of 2^48: how a join is computed is not seen in the bytes, nor a round of saving and loading in what comes after. */
Test(operators_save, a_bound_of_weights_is_rounded)
{
    hand hands[5];
    holdings held = { 0 };
    weigh_open(&hands[0], true);
    for (uint32_t i = 1; i < 5; i++) {
        cr_assert_not(weigh_takes(&hands[i - 1], i % 2 ? -1000 : 1000));
        weigh_reload(&hands[i - 1], &hands[i], true);
    }
    holdings_save_program(&held, &hands[4].program);
    for (size_t i = 1; i < held.size; i++) {
        cr_assert_eq(held.bytes[i], 0);
    }
    cr_assert_not(weigh_takes(&hands[4], (ivm__weight)1 << 61), "half the range is ahead");
    cr_assert(weigh_takes(&hands[4], (ivm__weight)1 << 61));
    cr_assert(weigh_takes(&hands[4], -1), "a bound never falls");
    for (uint32_t i = 0; i < 5; i++) {
        hand_close(&hands[i]);
    }
    holdings_free(&held);
}

Test(operators_save, bounds_of_weights_that_cannot_be_are_corrupt)
{
    static const struct {
        ivm__weight total;
        bool negative;
        ivm_status status;
    } cases[] = {
        { -1, true, IVM_CORRUPT },
        { 1, true, IVM_CORRUPT },
        { (ivm__weight)1 << 48, true, IVM_OK },
        { (ivm__weight)1 << 94, true, IVM_OK },
        { (ivm__weight)1 << 95, true, IVM_CORRUPT },
        { -1, false, IVM_OK },
        { (ivm__weight)1 << 126, false, IVM_OK },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[17] = { 'B' };
        holdings held = { .bytes = bytes, .size = sizeof bytes };
        hand it;
        memcpy(bytes + 1, &cases[i].total, sizeof cases[i].total);
        weigh_open(&it, cases[i].negative);
        cr_assert_eq(holdings_load_program(&held, it.engine, &it.program, &it.error), cases[i].status, "case %zu", i);
        if (cases[i].status != IVM_OK) {
            cr_assert_str_eq(it.error.message, "view v: state of weigh: no sum of weights");
        }
        hand_close(&it);
    }
}
