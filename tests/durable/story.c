/* See story.h. */
#include "story.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Numbers that look drawn ---------------------------------------------------------------------------------------------------------- */

typedef struct draw {
    uint64_t state;
} draw;

static uint64_t draw_below(draw *it, uint64_t limit)
{
    it->state += 0x9E3779B97F4A7C15ull;
    uint64_t z = it->state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return (z ^ z >> 31) % limit;
}

static ivm_value or_null(draw *it, ivm_value value)
{
    return draw_below(it, 9) == 0 ? ivm_null() : value;
}

/* ---- Tables, facts, views ------------------------------------------------------------------------------------------------------------- */

static ivm_table *table_named(ivm_engine *engine, const char *name)
{
    ivm_table *table = NULL;
    return ivm_table_find(engine, name, &table, NULL) == IVM_OK ? table : NULL;
}

static ivm_view *view_named(ivm_engine *engine, const char *name)
{
    ivm_view *view = NULL;
    return ivm_view_find(engine, name, &view, NULL) == IVM_OK ? view : NULL;
}

static ivm_status table_make(ivm_engine *engine, const char *name, ivm_error *error)
{
    ivm_table *table;
    ivm_column_definition d[] = { { "id", IVM_INT64, true }, { "name", IVM_STRING, false } };
    ivm_column_definition f[] = { { "id", IVM_INT64, true },   { "d", IVM_INT64, false },          { "n", IVM_INT64, false },
                                  { "x", IVM_FLOAT64, false }, { "m", IVM_DECIMAL(10, 2), false }, { "b", IVM_BOOL, false },
                                  { "day", IVM_DATE, false },  { "at", IVM_TIMESTAMP, false },     { "s", IVM_STRING, false } };
    ivm_column_definition two[] = { { "d", IVM_INT64, false }, { "n", IVM_INT64, false } };
    ivm_table_options of_d = { .columns = d, .columns_count = 2, .key = "id", .append_only = true };
    ivm_table_options of_f = { .columns = f, .columns_count = 9, .key = "id" };
    ivm_table_options of_two = { .columns = two, .columns_count = 2 };
    of_two.allow_negative = strcmp(name, "signed") == 0;
    of_two.transient = strcmp(name, "seen") == 0;
    return ivm_table_create(engine, name, *name == 'd' ? &of_d : *name == 'f' ? &of_f : &of_two, &table, error);
}

static ivm_status fact_make(ivm_engine *engine, const char *child, ivm_trust trust, ivm_error *error)
{
    return ivm_foreign_key_declare(table_named(engine, child), "d", table_named(engine, "d"), "id", trust, NULL, error);
}

static ivm_plan *join_of(const char *child)
{
    char on[64];
    snprintf(on, sizeof on, "%s.d = d.id", child);
    return ivm_plan_join(ivm_plan_scan_name(child, NULL), ivm_plan_scan_name("d", NULL), on);
}

static ivm_plan *totals(ivm_plan *input, const char *group, const char *argument)
{
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(input, group), "c");
    plan = ivm_plan_add(plan, "s", "sum", ivm_column(argument));
    plan = ivm_plan_add(plan, "least", "min", ivm_column(argument));
    return ivm_plan_add(plan, "each", "count_distinct", ivm_column(argument));
}

static ivm_plan *plan_of(const char *name)
{
    if (strcmp(name, "joined") == 0) {
        return ivm_plan_project(join_of("f"), "f.id, f.s, d.name");
    }
    if (strcmp(name, "totals") == 0) {
        return totals(join_of("f"), "d.name", "f.n");
    }
    if (strcmp(name, "floats") == 0) {
        ivm_plan *plan = ivm_plan_add(ivm_plan_aggregate(ivm_plan_scan_name("f", NULL), "f.b"), "x", "sum", ivm_column("f.x"));
        return ivm_plan_add(plan, "m", "sum", ivm_column("f.m"));
    }
    if (strcmp(name, "left") == 0) {
        return ivm_plan_project(
            ivm_plan_join_kind(IVM_LEFT_JOIN, ivm_plan_scan_name("bag", NULL), ivm_plan_scan_name("d", NULL), "bag.d = d.id"),
            "bag.n, d.name");
    }
    if (strcmp(name, "waiting") == 0) {
        return totals(join_of("seen"), "d.name", "seen.n");
    }
    if (strcmp(name, "late") == 0) {
        return totals(join_of("signed"), "d.name", "signed.n");
    }
    if (strcmp(name, "over") == 0) {
        return ivm_plan_project(ivm_plan_scan_name("totals", NULL), "name, c");
    }
    return ivm_plan_distinct(ivm_plan_project(ivm_plan_scan_name("bag", NULL), "d"));
}

static ivm_status view_make(ivm_engine *engine, const char *name, ivm_error *error)
{
    ivm_view *view;
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = strcmp(name, "late") == 0 ? IVM_DEFERRED : IVM_IMMEDIATE };
    return ivm_view_create(engine, name, plan_of(name), &options, &view, error);
}

static ivm_status declare(ivm_engine *engine, uint64_t step, ivm_error *error)
{
    static const char *const tables[] = { "d", "f", "bag", "signed", "seen" };
    static const char *const views[] = { "joined", "totals", "floats", "left", "waiting", "late", "over", "distinct" };
    if (step < 5) {
        return table_make(engine, tables[step], error);
    }
    if (step < 9) {
        return fact_make(engine, tables[step - 4], step == 5 || step == 8 ? IVM_TRACKED : IVM_RELY, error);
    }
    return view_make(engine, views[step - 9], error);
}

void story_declare(ivm_engine *engine)
{
    static_assert(STORY_DECLARES == 5 + 4 + 8, "tables, facts, views");
    for (uint64_t step = 0; step < STORY_DECLARES; step++) {
        OK(declare(engine, step, error));
    }
}

/* ---- Pushes --------------------------------------------------------------------------------------------------------------------------- */

static void f_row(draw *it, ivm_batch *batch, ivm_table *table, const char *text)
{
    int64_t n = (int64_t)draw_below(it, 1000) - 500;
    ivm_value values[] = { ivm_int64((int64_t)draw_below(it, 60)),
                           or_null(it, ivm_int64((int64_t)draw_below(it, 30))),
                           or_null(it, ivm_int64(n)),
                           or_null(it, ivm_float64((double)n / 7)),
                           or_null(it, ivm_decimal(IVM_DECIMAL(10, 2), (ivm_int128){ (uint64_t)n, n < 0 ? -1 : 0 })),
                           or_null(it, ivm_bool(n > 0)),
                           or_null(it, ivm_date((int32_t)n)),
                           or_null(it, ivm_timestamp(n * 1000003)),
                           or_null(it, ivm_string(text)) };
    ivm_batch_row(batch, table, IVM_UPSERT, 1, values, ivm_table_columns_count(table));
}

/* `n` has come to `n`, or been renamed; a table may have a column more. */
static void two_row(draw *it, ivm_batch *batch, ivm_table *table, ivm_change change)
{
    ivm_value values[] = { or_null(it, ivm_int64((int64_t)draw_below(it, 30))), ivm_int64((int64_t)draw_below(it, 3)), ivm_null() };
    ivm_batch_row(batch, table, change, change == IVM_WEIGHTED ? (int64_t)draw_below(it, 5) - 2 : 1, values,
                  ivm_table_columns_count(table));
}

/* Rows in chunks, fragments and files. */
static void many_rows(draw *it, ivm_batch *batch, ivm_table *table)
{
    for (uint32_t i = 0; i < 2500; i++) {
        two_row(it, batch, table, IVM_INSERT);
    }
}

static void batch_fill(ivm_engine *engine, uint64_t step, ivm_batch *batch)
{
    draw it = { step * 0xD1B54A32D192ED03ull };
    char text[32], *most = NULL;
    snprintf(text, sizeof text, "row of %llu", (unsigned long long)step);
    if (step % 3 == 0) {
        ivm_value d[] = { ivm_int64((int64_t)step % 40), or_null(&it, ivm_string(text)) }; /* the second time a duplicate: refused */
        ivm_batch_row(batch, table_named(engine, "d"), IVM_INSERT, 1, d, 2);
    }
    for (uint64_t rows = draw_below(&it, 6); rows > 0; rows--) {
        f_row(&it, batch, table_named(engine, "f"), text);
    }
    for (uint64_t rows = draw_below(&it, 6); rows > 0; rows--) {
        two_row(&it, batch, table_named(engine, "bag"), step % 7 == 0 ? IVM_DELETE : IVM_INSERT); /* may not be there: refused */
        two_row(&it, batch, table_named(engine, "signed"), IVM_WEIGHTED);
        two_row(&it, batch, table_named(engine, "seen"), IVM_INSERT);
    }
    if (step % 31 == 0) {
        many_rows(&it, batch, table_named(engine, "bag"));
        size_t size = 1200000;
        most = malloc(size + 1);
        memset(most, 'a' + (int)(step % 26), size);
        most[size] = 0;
        f_row(&it, batch, table_named(engine, "f"), most);
    }
    free(most);
}

ivm_status story_push(ivm_engine *engine, uint64_t step, ivm_error *error)
{
    uint64_t position = step + 1;
    ivm_batch *batch = NULL;
    ivm_status status = ivm_batch_create(engine, &batch, error);
    if (status != IVM_OK) {
        return status;
    }
    batch_fill(engine, step, batch);
    ivm_batch_position(batch, &position, sizeof position);
    return ivm_push_batch(engine, batch, NULL, error);
}

/* ---- Changes of the catalog ------------------------------------------------------------------------------------------------------------- */

static ivm_fact *fact_from(ivm_engine *engine, const char *child)
{
    ivm_fact *fact = NULL;
    while ((fact = ivm_fact_next(engine, fact)) && ivm_fact_child(fact) != table_named(engine, child)) {
    }
    return fact;
}

/* By turns, so that a later one finds what it wants. */
static ivm_status change(ivm_engine *engine, uint64_t nth, ivm_error *error)
{
    ivm_table *bag = table_named(engine, "bag");
    switch (nth % 12) {
    case 0:
        return ivm_table_column_add(bag, &(ivm_column_definition){ "more", IVM_STRING, false }, error);
    case 1:
        return ivm_refresh_view(view_named(engine, "late"), NULL, error);
    case 2:
        return ivm_table_column_rename(bag, "more", "less", error);
    case 3:
        return ivm_view_drop(view_named(engine, "over"), error);
    case 4:
        return ivm_foreign_key_remove(fact_from(engine, "f"), error);
    case 5:
        return ivm_table_column_drop(bag, "less", error);
    case 6:
        return view_make(engine, "over", error);
    case 7:
        return fact_make(engine, "f", IVM_TRACKED, error);
    case 8:
        return table_make(engine, "passing", error);
    case 9: {
        ivm_snapshot *rows = NULL;
        ivm_status status = ivm_read_view_refreshed(view_named(engine, "late"), &rows, error);
        ivm_snapshot_close(rows);
        return status;
    }
    case 10:
        return ivm_table_drop(table_named(engine, "passing"), error);
    default:
        return engine->journal ? ivm_durable_checkpoint(engine, error) : IVM_OK;
    }
}

ivm_status story_step(ivm_engine *engine, uint64_t step, ivm_error *error)
{
    if (step < STORY_DECLARES) {
        return declare(engine, step, error);
    }
    if (step % 5 == 3 || step % 47 == 46) {
        return change(engine, step / 5 - (STORY_DECLARES + 1) / 5, error);
    }
    return story_push(engine, step, error);
}

/* ---- What an engine holds ------------------------------------------------------------------------------------------------------------- */

uint64_t story_position(ivm_engine *engine)
{
    uint64_t position = 0;
    size_t size;
    OK(ivm_engine_position(engine, &position, sizeof position, &size, error));
    NEED(size == 0 || size == sizeof position);
    return size ? position : 0;
}

static ivm_status digest_write(void *context, const void *bytes, size_t size)
{
    uint64_t *sum = context;
    for (size_t i = 0; i < size; i++) {
        *sum = (*sum ^ ((const uint8_t *)bytes)[i]) * 0x100000001B3ull;
    }
    return IVM_OK;
}

uint64_t story_digest(ivm_engine *engine)
{
    uint64_t sum = 0xCBF29CE484222325ull;
    ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION, .compression = IVM_COMPRESSION_NONE };
    OK(ivm_checkpoint(engine, digest_write, &sum, &options, error));
    return sum;
}

uint64_t *story_digests(uint64_t steps)
{
    uint64_t *digests = malloc((steps + 1) * sizeof *digests);
    ivm_engine *engine;
    OK(ivm_engine_open(NULL, &engine, error));
    digests[0] = story_digest(engine);
    for (uint64_t step = 0; step < steps; step++) {
        ivm_error ignored;
        (void)!story_step(engine, step, &ignored);
        digests[step + 1] = story_digest(engine);
    }
    OK(ivm_engine_close(engine, error));
    return digests;
}

ivm_status story_open(const char *directory, const ivm__files *files, ivm_engine **engine, ivm_recovery *recovery, ivm_error *error)
{
    ivm_durable_options options = { .version = IVM_DURABLE_OPTIONS_VERSION, .segment_bytes = 2000 };
    return ivm__durable_open(directory, &options, files, engine, recovery, error);
}

/* ---- Places --------------------------------------------------------------------------------------------------------------------------- */

void story_place_make(story_place *place)
{
    const char *parent = getenv("TMPDIR");
    snprintf(place->root, sizeof place->root, "%s/ivm-durable-XXXXXX", parent ? parent : "/tmp");
    NEED(mkdtemp(place->root));
    snprintf(place->directory, sizeof place->directory, "%s/engine", place->root);
}

void story_place_clear(const story_place *place)
{
    DIR *files = opendir(place->directory);
    for (const struct dirent *entry; files && (entry = readdir(files));) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", place->directory, entry->d_name);
        unlink(path); /* but for . and .. */
    }
    if (files) {
        closedir(files);
        NEED(rmdir(place->directory) == 0);
    }
}

void story_place_remove(const story_place *place)
{
    story_place_clear(place);
    NEED(rmdir(place->root) == 0);
}
