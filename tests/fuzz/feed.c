/* See feed.h. */
#include "feed.h"

#include "catalog.h"
#include "fuzz.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#define ROWS_COME 3
#define ROWS_GO 2

/* ---- Memory ------------------------------------------------------------------------------------------------------------------------ */

static _Atomic size_t held;
static unsigned engines_open;

static bool fits(size_t size)
{
    if (atomic_fetch_add(&held, size) + size <= FEED_BYTES_MAX) {
        return true;
    }
    atomic_fetch_sub(&held, size);
    return false;
}

static void *allocate(void *context, size_t size)
{
    (void)context;
    void *made = fits(size) ? malloc(size) : NULL;
    NEED(size > 0);
    return made;
}

static void release(void *context, void *memory, size_t size)
{
    (void)context;
    free(memory);
    atomic_fetch_sub(&held, size);
}

static void *resize(void *context, void *memory, size_t size_old, size_t size_new)
{
    (void)context;
    NEED(size_new > 0);
    if (size_new > size_old && !fits(size_new - size_old)) {
        return NULL;
    }
    void *moved = realloc(memory, size_new);
    if (size_new < size_old) {
        atomic_fetch_sub(&held, size_old - size_new);
    }
    return moved;
}

ivm_engine *feed_open(uint64_t hash_seed)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    ivm_engine *engine;
    options.allocator = (ivm_allocator){ allocate, resize, release, NULL };
    options.hash_seed = hash_seed;
    NEED(ivm_engine_open(&options, &engine, NULL) == IVM_OK);
    engines_open++;
    return engine;
}

void feed_close(ivm_engine *engine)
{
    NEED(ivm_engine_close(engine, NULL) == IVM_OK);
    NEED(--engines_open || atomic_load(&held) == 0);
}

/* ---- Rows -------------------------------------------------------------------------------------------------------------------------- */

static uint64_t draw(uint64_t *random, uint64_t below)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (*random >> 33) % below;
}

static ivm_value value_draw(ivm_type type, bool nullable, uint64_t *random)
{
    static const char *const texts[] = { "", "a", "b", "a text that is longer than a word", "\xc3\xa9", "\xff\xfe" };
    static const double numbers[] = { 0, -0.0, 0.1, 1e300, -1e300, 5e-324, 1, -1 };
    int64_t small = (int64_t)draw(random, 5);
    if (nullable && draw(random, 6) == 0) {
        return ivm_null();
    }
    bool extreme = draw(random, 12) == 0;
    switch (IVM_TYPE_KIND(type)) {
    case IVM_BOOL:
        return ivm_bool(small % 2);
    case IVM_INT64:
        return ivm_int64(!extreme ? small : small % 2 ? INT64_MAX : INT64_MIN);
    case IVM_FLOAT64:
        return ivm_float64(!extreme ? numbers[draw(random, 8)] : small % 2 ? (double)NAN : -(double)INFINITY);
    case IVM_STRING:
        return ivm_string(texts[draw(random, 6)]);
    case IVM_DATE:
        return ivm_date((int32_t)small * 400 - 800);
    case IVM_TIMESTAMP:
        return ivm_timestamp(small * 86400000000 - 1);
    default:
        return ivm_decimal(type, (ivm_int128){ (uint64_t)small, 0 });
    }
}

/* Of rows that are not kept some go that may never have come: what views hold then is undefined, that they stand is not. */
static void rows_come(ivm_batch *batch, ivm_table *table, uint64_t *random)
{
    ivm_value row[IVM_TABLE_COLUMNS_MAX];
    bool keyed = table->key_count > 0 && !table->append_only, goes = table->transient && draw(random, 4) == 0;
    for (int i = 0; i < ROWS_COME; i++) {
        for (uint32_t c = 0; c < table->columns_count; c++) {
            row[c] = value_draw(table->columns[c].type, table->columns[c].nullable, random);
        }
        (void)ivm_batch_row(batch, table, keyed ? IVM_UPSERT : goes ? IVM_DELETE : IVM_INSERT, 1, row, table->columns_count);
    }
}

static void rows_go(ivm_batch *batch, ivm_table *table, ivm_snapshot *snapshot)
{
    ivm_value row[IVM_TABLE_COLUMNS_MAX];
    ivm_rows rows;
    for (bool first = true; ivm_snapshot_next(snapshot, &rows); first = false) {
        for (size_t i = 0; first && i < rows.rows_count && i < ROWS_GO; i++) {
            for (uint32_t c = 0; c < table->columns_count; c++) {
                row[c] = ivm_rows_value(&rows, table->columns[c].type, i, c);
            }
            (void)ivm_batch_row(batch, table, IVM_DELETE, 1, row, table->columns_count);
        }
    }
}

static void table_push(ivm_table *table, uint64_t *random)
{
    ivm_batch *batch;
    ivm_snapshot *snapshot = NULL;
    if (ivm_batch_create(table->engine, &batch, NULL) != IVM_OK) {
        return;
    }
    if (!table->append_only && !table->transient && draw(random, 3) && ivm_read_table(table, &snapshot, NULL) == IVM_OK) {
        rows_go(batch, table, snapshot);
    }
    ivm_snapshot_close(snapshot);
    rows_come(batch, table, random);
    (void)ivm_batch_position(batch, random, sizeof *random);
    ivm_error error = IVM_ERROR_INIT;
    ivm_status status = ivm_push_batch(table->engine, batch, NULL, &error);
    NEED(status == IVM_OK || error.message[0]);
}

void feed_push(ivm_engine *engine, uint64_t seed)
{
    uint64_t random = seed;
    for (ivm_table *table = engine->tables; table; table = table->next) {
        table_push(table, &random);
    }
}

/* ---- Looking ----------------------------------------------------------------------------------------------------------------------- */

static void snapshot_read(ivm_snapshot *snapshot)
{
    char text[IVM_VALUE_TEXT_SIZE];
    size_t columns_count = ivm_snapshot_columns_count(snapshot);
    ivm_value key = { 0 };
    ivm_rows rows;
    while (ivm_snapshot_next(snapshot, &rows)) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            for (size_t c = columns_count; c-- > 0;) {
                key = ivm_rows_value(&rows, ivm_snapshot_column_type(snapshot, c), i, c);
                (void)ivm_value_format(&key, text, sizeof text);
            }
        }
        if (rows.rows_count) {
            ignore(ivm_snapshot_find(snapshot, &key, 1, &rows, NULL));
            break;
        }
    }
    ivm_snapshot_close(snapshot);
}

static void view_look(ivm_view *view)
{
    ivm_snapshot *snapshot;
    ignore(ivm_refresh_view(view, NULL, NULL));
    if (ivm_read_view(view, &snapshot, NULL) == IVM_OK) {
        snapshot_read(snapshot);
    }
    if (ivm_read_changes(view, &snapshot, NULL) == IVM_OK) {
        snapshot_read(snapshot);
    }
    if (ivm_audit_view(view, &snapshot, NULL) == IVM_OK) {
        snapshot_read(snapshot);
    }
    for (int format = IVM_EXPLAIN_TEXT; format <= IVM_EXPLAIN_DOT; format++) {
        char *text = NULL;
        if (ivm_explain(view, NULL, (ivm_explain_format)format, &text, NULL) == IVM_OK) {
            NEED(strlen(text) > 0);
        }
        ivm_text_free(text);
    }
}

void feed_look(ivm_engine *engine)
{
    for (ivm_view *view = engine->views; view; view = view->next) {
        view_look(view);
    }
    for (ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        ivm_fact_state state = { .version = IVM_FACT_STATE_VERSION };
        ivm_snapshot *snapshot;
        NEED(ivm_fact_status(fact, &state, NULL) == IVM_OK);
        if (ivm_read_orphans(fact, &snapshot, NULL) == IVM_OK) {
            snapshot_read(snapshot);
        }
    }
}
