/* Whether an engine that has run for long holds what one holds that was just made: some 200 to 2000 live rows in tables of every kind under views of every
 * operator, changed at random for millions of changes, strings never the same, floats of all exponents, snapshots held over random spans. Then its
 * checkpoint is restored into a fresh engine, both take the same small pushes, and must come to the same checkpoint and to the same bytes held, within a
 * tenth. A plain program, for any sanitizer:
 *
 *     test_soak [--changes N] [--seed S] [--threads N] [--burst ROWS] [--each]
 *
 * --burst: now and then so many rows come in one batch and go in the next. --each: a line for every tenth of the way. */
#include "figure.h"
#include "ivm/ivm.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_LEAST 200u
#define ROWS_MOST 2000u
#define ROOM 4096u /* live rows of one table, at most */
#define DIMENSIONS 64u
#define BATCH_MOST 20u
#define SPAN_MOST 2000u /* pushes that a snapshot is held */
#define SNAPSHOTS 8u
#define LAST_PUSHES 100
#define SLACK 10 /* percent */

#define NEED(condition, text)                                                                                                              \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, text);                                                      \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

/* ---- What there is ------------------------------------------------------------------------------------------------------------------- */

enum { DIM, LOG, FACT, BAG, NEG, SEEN, TABLES };

static const ivm_column_definition wide_columns[] = { { "id", IVM_INT64, true },   { "d", IVM_INT64 },  { "n", IVM_INT64 },
                                                      { "x", IVM_FLOAT64 },        { "s", IVM_STRING }, { "day", IVM_DATE },
                                                      { "m", IVM_DECIMAL(18, 4) }, { "b", IVM_BOOL },   { "at", IVM_TIMESTAMP } };
#define COLUMNS_MOST 9

static const struct soak_table {
    const char *name;
    ivm_table_options options;
} tables[TABLES] = {
    [DIM] = { "dim", { .columns = wide_columns, .columns_count = 6, .key = "id" } },
    [LOG] = { "log", { .columns = wide_columns, .columns_count = 5, .key = "id", .append_only = true } },
    [FACT] = { "fact", { .columns = wide_columns, .columns_count = 9, .key = "id" } },
    [BAG] = { "bag", { .columns = wide_columns, .columns_count = 5 } },
    [NEG] = { "neg", { .columns = wide_columns, .columns_count = 5, .allow_negative = true } },
    [SEEN] = { "seen", { .columns = wide_columns, .columns_count = 5, .transient = true } },
};

#define SCAN(table) "{'op': 'scan', 'table': '" table "'}"
#define STRINGS(table) "{'op': 'project', 'input': " SCAN(table) ", 'columns': ['s']}"
#define JOIN(op, left, right)                                                                                                              \
    "{'op': 'join', 'kind': '" op "', 'inputs': [" SCAN(left) ", " SCAN(right) "], 'on': [['" left ".d', '" right ".id']]}"
#define JOINED(op, left, right)                                                                                                            \
    "{'op': 'project', 'input': " JOIN(op, left, right) ", 'columns': ['" left ".id', '" left ".x', {'as': 'name', 'expr': '" right ".s'}" \
                                                        "]}"
#define SET(op) "{'op': '" op "', 'inputs': [" STRINGS("bag") ", " STRINGS("neg") ", " STRINGS("fact") "]}"
#define AGGREGATE(input, group, list) "{'op': 'aggregate', 'input': " input ", 'group_by': ['" group "'], 'aggregates': [" list "]}"
#define OF(function, argument) "{'as': '" function "_" argument "', 'fn': '" function "', 'arg': '" argument "'}"
#define ALL                                                                                                                                \
    "{'as': 'rows', 'fn': 'count'}, " OF("count", "n") ", " OF("sum", "n") ", " OF("sum", "x") ", " OF("avg", "x") ", " OF(                \
        "min", "s") ", " OF("max", "x")
#define MORE                                                                                                                               \
    "{'as': 'rows', 'fn': 'count'}, " OF("sum", "m") ", " OF("count_distinct", "s") ", " OF("sum_distinct", "n") ", " OF(                  \
        "var_pop", "x") ", " OF("var_samp", "n") ", " OF("stddev_pop", "n") ", " OF("stddev_samp",                                         \
                                                                                    "x") ", " OF("bool_and", "b") ", " OF("bool_or", "b")

static const struct soak_view {
    const char *name, *plan;
    ivm_refresh refresh;
} views[] = {
    { "filtered", "{'op': 'filter', 'input': " SCAN("fact") ", 'where': ['and', ['>', 'n', 0], 'b']}" },
    { "texts", "{'op': 'project', 'input': " SCAN("fact") ", 'columns': ['id', {'as': 'c', 'expr': ['concat', 's', ['lower', 's']]}]}" },
    { "joined", JOINED("inner", "fact", "dim") },
    { "chained", "{'op': 'project', 'input': {'op': 'join', 'inputs': [" SCAN("fact") ", " SCAN("dim") ", " SCAN(
                     "log") "],"
                            " 'on': [['fact.d', 'dim.id'], ['dim.d', 'log.id']]}, 'columns': ['fact.id', 'dim.x', 'log.s']}" },
    { "left", JOINED("left", "bag", "dim") },
    { "full", JOINED("full", "fact", "dim") },
    { "semi", JOIN("semi", "neg", "dim") },
    { "anti", JOIN("anti", "fact", "dim") },
    { "groups", AGGREGATE(SCAN("fact"), "d", ALL) },
    { "more", AGGREGATE(SCAN("fact"), "d", MORE) },
    { "by_name", AGGREGATE(JOIN("inner", "fact", "dim"), "dim.s", "{'as': 'rows', 'fn': 'count'}, " OF("sum", "fact.x")) },
    { "signed", AGGREGATE(SCAN("neg"), "d", ALL) },
    { "passed", AGGREGATE(JOIN("inner", "seen", "log"), "log.d", "{'as': 'rows', 'fn': 'count'}, " OF("sum", "seen.n")) },
    { "distinct", "{'op': 'distinct', 'input': " STRINGS("bag") "}" },
    { "union_all", SET("union_all") },
    { "union", SET("union") },
    { "except", SET("except") },
    { "except_all", SET("except_all") },
    { "intersect", SET("intersect") },
    { "intersect_all", SET("intersect_all") },
    { "top", "{'op': 'top_k', 'input': " SCAN(
                 "fact") ", 'partition_by': ['d'], 'order_by': [{'expr': 'x', 'desc': true}], 'limit': 3, 'offset': 1}" },
    { "over", AGGREGATE(SCAN("groups"), "rows", "{'as': 'c', 'fn': 'count'}, " OF("max", "max_x")) },
    { "late", AGGREGATE(JOIN("inner", "bag", "dim"), "dim.d", "{'as': 'rows', 'fn': 'count'}, " OF("sum", "bag.n")), IVM_DEFERRED },
};
#define VIEWS (sizeof views / sizeof *views)

typedef struct world {
    ivm_engine *engine;
    ivm_table *tables[TABLES];
} world;

static ivm_error error = IVM_ERROR_INIT;

static void view_make(ivm_engine *engine, const struct soak_view *as)
{
    char text[2048];
    ivm_plan *plan;
    ivm_view *view;
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = as->refresh };
    size_t size = strlen(as->plan);
    NEED(size < sizeof text, as->name);
    for (size_t i = 0; i < size; i++) {
        text[i] = as->plan[i] == '\'' ? '"' : as->plan[i];
    }
    NEED(ivm_plan_from_json(text, size, &plan, &error) == IVM_OK, error.message);
    NEED(ivm_view_create(engine, as->name, plan, &options, &view, &error) == IVM_OK, error.message);
}

static void engine_open(world *it, uint32_t threads)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.threads = threads;
    NEED(ivm_engine_open(&options, &it->engine, &error) == IVM_OK, error.message);
}

static void declare(world *it)
{
    for (int i = 0; i < TABLES; i++) {
        ivm_table **table = &it->tables[i];
        NEED(ivm_table_create(it->engine, tables[i].name, &tables[i].options, table, &error) == IVM_OK, error.message);
    }
    const struct {
        int child, parent;
        ivm_trust trust;
    } facts[] = { { FACT, DIM, IVM_TRACKED }, { SEEN, LOG, IVM_TRACKED } };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        ivm_status status =
            ivm_foreign_key_declare(it->tables[facts[i].child], "d", it->tables[facts[i].parent], "id", facts[i].trust, NULL, &error);
        NEED(status == IVM_OK, error.message);
    }
    for (size_t i = 0; i < VIEWS; i++) {
        view_make(it->engine, &views[i]);
    }
}

/* ---- Rows: each is drawn from one number, so that to remember the number is to remember the row ----------------------------------------- */

static uint64_t mix(uint64_t word)
{
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ word >> 27) * 0x94d049bb133111ebull;
    return word ^ word >> 31;
}

static uint64_t draw(uint64_t *random, uint64_t below)
{
    *random += 0x9e3779b97f4a7c15ull;
    return mix(*random) % below;
}

/* Any bits are a float64; NaN and infinities are too, now and then. */
static ivm_value float_draw(uint64_t *random)
{
    uint64_t bits = draw(random, UINT64_MAX);
    double number;
    if ((bits >> 52 & 0x7ff) == 0x7ff && draw(random, 8)) {
        bits ^= (uint64_t)1 << 62;
    }
    memcpy(&number, &bits, sizeof number);
    return ivm_float64(number);
}

/* Half of them short and often the same, others never seen before. `text` must live until the value is copied. */
static ivm_value string_draw(uint64_t *random, char text[256])
{
    uint64_t size = draw(random, 16) ? draw(random, 40) : draw(random, 256);
    if (draw(random, 2)) {
        size = draw(random, 2);
    }
    for (uint64_t i = 0; i < size; i++) {
        text[i] = (char)('a' + draw(random, 26));
    }
    return ivm_string_sized(text, size);
}

static void row_draw(int64_t id, uint64_t number, ivm_value row[COLUMNS_MOST], char text[256])
{
    row[0] = ivm_int64(id);
    row[1] = draw(&number, 16) ? ivm_int64((int64_t)draw(&number, DIMENSIONS)) : ivm_null();
    row[2] = draw(&number, 8) ? ivm_int64((int64_t)draw(&number, 2000) - 1000) : ivm_null();
    row[3] = draw(&number, 16) ? float_draw(&number) : ivm_null();
    row[4] = string_draw(&number, text);
    row[5] = ivm_date((int32_t)draw(&number, 40000));
    row[6] = ivm_decimal(IVM_DECIMAL(18, 4), (ivm_int128){ draw(&number, 1000000000), 0 });
    row[7] = ivm_bool(draw(&number, 2));
    row[8] = ivm_timestamp((int64_t)draw(&number, 1000000000000000));
}

/* ---- Changes --------------------------------------------------------------------------------------------------------------------------- */

typedef struct live {
    int64_t id;
    uint64_t number;
    int64_t weight;
} live;

static struct {
    world worlds[2]; /* the one that runs; at the end the fresh one too */
    uint32_t worlds_count;
    ivm_batch *batches[2];
    live rows[TABLES][ROOM]; /* a dimension stands at its id, weight 0: it is not there */
    uint32_t counts[TABLES];
    uint32_t wanted; /* live rows of all tables, drawn anew now and then */
    int64_t ids;
    uint64_t random, changes, pushes;
} it;

static void put(int table, ivm_change change, int64_t weight, const live *row)
{
    char text[256];
    ivm_value values[COLUMNS_MOST];
    row_draw(row->id, row->number, values, text);
    for (uint32_t i = 0; i < it.worlds_count; i++) {
        size_t count = change == IVM_DELETE_KEY ? 1 : tables[table].options.columns_count;
        ivm_status status = ivm_batch_row(it.batches[i], it.worlds[i].tables[table], change, weight, values, count);
        NEED(status == IVM_OK, tables[table].name);
    }
    it.changes++;
}

static void dimension_change(void)
{
    live *row = &it.rows[DIM][draw(&it.random, DIMENSIONS)];
    if (row->weight && draw(&it.random, 4) == 0) {
        put(DIM, IVM_DELETE_KEY, 1, row);
        row->weight = 0;
        it.counts[DIM]--;
        return;
    }
    it.counts[DIM] += row->weight == 0;
    *row = (live){ row - it.rows[DIM], draw(&it.random, UINT64_MAX), 1 };
    put(DIM, IVM_UPSERT, 1, row);
}

static void row_change(int table)
{
    uint32_t live_count = it.counts[DIM] + it.counts[FACT] + it.counts[BAG] + it.counts[NEG];
    bool comes = draw(&it.random, 100) < (live_count < it.wanted ? 60 : 40);
    if (it.counts[table] == 0 || (comes && it.counts[table] < ROOM)) {
        live *row = &it.rows[table][it.counts[table]++];
        *row = (live){ it.ids++, draw(&it.random, UINT64_MAX), table == NEG && draw(&it.random, 3) == 0 ? -1 : 1 };
        put(table, IVM_WEIGHTED, row->weight, row);
        return;
    }
    live *row = &it.rows[table][draw(&it.random, it.counts[table])];
    if (table == FACT && draw(&it.random, 3) == 0) {
        row->number = draw(&it.random, UINT64_MAX);
        put(table, IVM_UPSERT, 1, row);
        return;
    }
    put(table, IVM_WEIGHTED, -row->weight, row);
    *row = it.rows[table][--it.counts[table]];
}

static void change(void)
{
    static const int often[] = { FACT, FACT, BAG, NEG };
    uint64_t drawn = draw(&it.random, 16);
    if (drawn < 2) {
        dimension_change();
    } else if (drawn == 2) {
        put(SEEN, IVM_INSERT, 1, &(live){ it.ids++, draw(&it.random, UINT64_MAX), 1 });
    } else {
        row_change(often[draw(&it.random, 4)]);
    }
}

static void push(void)
{
    for (uint32_t i = 0; i < it.worlds_count; i++) {
        NEED(ivm_batch_create(it.worlds[i].engine, &it.batches[i], &error) == IVM_OK, error.message);
    }
    for (uint64_t left = 1 + draw(&it.random, BATCH_MOST); left; left--) {
        change();
    }
    bool refreshes = draw(&it.random, 50) == 0;
    for (uint32_t i = 0; i < it.worlds_count; i++) {
        ivm_view *late;
        NEED(ivm_push_batch(it.worlds[i].engine, it.batches[i], NULL, &error) == IVM_OK, error.message);
        NEED(ivm_view_find(it.worlds[i].engine, "late", &late, &error) == IVM_OK, error.message);
        NEED(!refreshes || ivm_refresh_view(late, NULL, &error) == IVM_OK, error.message);
    }
    it.pushes++;
}

/* Many rows of every table for one push: marks that memory rose to. */
static void burst(uint64_t rows)
{
    const world *to = &it.worlds[0];
    uint64_t random = it.random, changes = it.changes;
    for (int pass = 0; pass < 2; pass++) {
        it.random = random;
        NEED(ivm_batch_create(to->engine, &it.batches[0], &error) == IVM_OK, error.message);
        for (uint64_t i = 0; i < rows; i++) {
            live row = { -1 - (int64_t)i, draw(&it.random, UINT64_MAX), 1 };
            put(i % 3 == 0 ? FACT : i % 3 == 1 ? BAG : NEG, IVM_WEIGHTED, pass ? -1 : 1, &row);
        }
        NEED(ivm_push_batch(to->engine, it.batches[0], NULL, &error) == IVM_OK, error.message);
        it.pushes++;
    }
    it.changes = changes;
}

/* ---- Snapshots ------------------------------------------------------------------------------------------------------------------------- */

static struct held {
    ivm_snapshot *snapshot;
    uint64_t until;
} held[SNAPSHOTS];

static void let_go(struct held *of)
{
    uint64_t seen = 0, count = ivm_snapshot_rows_count(of->snapshot);
    for (ivm_rows rows; ivm_snapshot_next(of->snapshot, &rows);) {
        seen += rows.rows_count;
    }
    NEED(seen == count && ivm_snapshot_status(of->snapshot) == IVM_OK, "a snapshot of other rows than it had");
    ivm_snapshot_close(of->snapshot);
    *of = (struct held){ NULL, 0 };
}

static void snapshots_turn(const world *of)
{
    struct held *at = &held[it.pushes % SNAPSHOTS];
    if (at->snapshot && at->until <= it.pushes) {
        let_go(at);
    } else if (!at->snapshot && draw(&it.random, 8) == 0) {
        ivm_view *view;
        at->until = it.pushes + draw(&it.random, draw(&it.random, 8) ? SPAN_MOST / 20 : SPAN_MOST);
        NEED(ivm_view_find(of->engine, views[draw(&it.random, VIEWS)].name, &view, &error) == IVM_OK, error.message);
        NEED(ivm_read_view(view, &at->snapshot, &error) == IVM_OK, error.message);
    }
}

/* ---- Checkpoints ------------------------------------------------------------------------------------------------------------------------ */

typedef struct stream {
    uint8_t *bytes;
    size_t size, at, capacity;
} stream;

static ivm_status stream_write(void *context, const void *bytes, size_t size)
{
    stream *to = context;
    if (to->capacity - to->size < size) {
        to->capacity = 2 * (to->size + size);
        to->bytes = realloc(to->bytes, to->capacity);
        NEED(to->bytes, "out of memory");
    }
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
    return IVM_OK;
}

static ivm_status stream_read(void *context, void *bytes, size_t size, size_t *got)
{
    stream *from = context;
    size_t left = from->size - from->at;
    *got = size < left ? size : left;
    memcpy(bytes, from->bytes + from->at, *got);
    from->at += *got;
    return IVM_OK;
}

static void save(const world *of, stream *to)
{
    ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION, .compression = IVM_COMPRESSION_NONE };
    NEED(ivm_checkpoint(of->engine, stream_write, to, &options, &error) == IVM_OK, error.message);
}

static void fresh_make(uint32_t threads)
{
    stream saved = { 0 };
    save(&it.worlds[0], &saved);
    engine_open(&it.worlds[1], threads);
    NEED(ivm_restore(it.worlds[1].engine, stream_read, &saved, &error) == IVM_OK, error.message);
    for (int i = 0; i < TABLES; i++) {
        NEED(ivm_table_find(it.worlds[1].engine, tables[i].name, &it.worlds[1].tables[i], &error) == IVM_OK, error.message);
    }
    free(saved.bytes);
    it.worlds_count = 2;
}

static void same_check(void)
{
    stream saved[2] = { { 0 }, { 0 } };
    for (int i = 0; i < 2; i++) {
        save(&it.worlds[i], &saved[i]);
    }
    NEED(saved[0].size == saved[1].size && memcmp(saved[0].bytes, saved[1].bytes, saved[0].size) == 0, "the two engines hold other things");
    free(saved[0].bytes);
    free(saved[1].bytes);
}

/* ---- The program ------------------------------------------------------------------------------------------------------------------------ */

static uint64_t bytes_held(const world *of)
{
    ivm_stats stats;
    ivm_engine_stats(of->engine, &stats);
    return stats.bytes_held;
}

static void begin(uint64_t seed, uint32_t threads)
{
    it.random = seed;
    it.worlds_count = 1;
    engine_open(&it.worlds[0], threads);
    declare(&it.worlds[0]);
    NEED(ivm_batch_create(it.worlds[0].engine, &it.batches[0], &error) == IVM_OK, error.message);
    for (int64_t id = 0; id < DIMENSIONS; id++) {
        put(LOG, IVM_INSERT, 1, &(live){ id, draw(&it.random, UINT64_MAX), 1 });
    }
    NEED(ivm_push_batch(it.worlds[0].engine, it.batches[0], NULL, &error) == IVM_OK, error.message);
}

static void run(uint64_t changes, uint64_t burst_rows, bool tells)
{
    uint64_t next = changes / 10, drawn = 0;
    while (it.changes < changes) {
        if (it.changes >= drawn) {
            it.wanted = ROWS_LEAST + (uint32_t)draw(&it.random, ROWS_MOST - ROWS_LEAST);
            drawn += 20000;
            burst(burst_rows);
        }
        push();
        snapshots_turn(&it.worlds[0]);
        if (tells && it.changes >= next) {
            printf("%" PRIu64 " changes: %" PRIu64 " bytes held\n", it.changes, bytes_held(&it.worlds[0]));
            fflush(stdout);
            next += changes / 10;
        }
    }
    for (int i = 0; i < (int)SNAPSHOTS; i++) {
        if (held[i].snapshot) {
            let_go(&held[i]);
        }
    }
}

static uint64_t number(const char *text)
{
    char *end;
    uint64_t value = text ? strtoull(text, &end, 10) : 0;
    NEED(text && *text && !*end, "a number is wanted");
    return value;
}

int main(int argc, char **argv)
{
    uint64_t changes = 100000, seed = 1, threads = 1, burst_rows = 0;
    bool tells = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--each") == 0) {
            tells = true;
        } else if (strcmp(argv[i], "--changes") == 0) {
            changes = number(argv[++i]);
        } else if (strcmp(argv[i], "--burst") == 0) {
            burst_rows = number(argv[++i]);
        } else if (strcmp(argv[i], "--seed") == 0) {
            seed = number(argv[++i]);
        } else {
            NEED(strcmp(argv[i], "--threads") == 0, "--changes N, --seed S, --threads N, --burst ROWS or --each");
            threads = number(argv[++i]);
        }
    }
    begin(seed, (uint32_t)threads);
    run(changes, burst_rows, tells);
    fresh_make((uint32_t)threads);
    for (int i = 0; i < LAST_PUSHES; i++) {
        push();
    }
    same_check();
    uint64_t ran = bytes_held(&it.worlds[0]), fresh = bytes_held(&it.worlds[1]);
    printf("%" PRIu64 " changes, %" PRIu64 " pushes: %" PRIu64 " bytes held, %" PRIu64 " by a fresh engine (%+.1f %%)\n", it.changes,
           it.pushes, ran, fresh, 100.0 * ((double)ran / (double)fresh - 1));
    figure_add("changes soaked", it.changes);
    NEED(ivm_engine_close(it.worlds[0].engine, &error) == IVM_OK, error.message);
    NEED(ivm_engine_close(it.worlds[1].engine, &error) == IVM_OK, error.message);
    return ran * 100 <= fresh * (100 + SLACK) ? 0 : 1;
}
