/* The target: see operations.h. */
#include "operations.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPERATIONS_MAX 60u
#define TABLES_MAX 5u
#define VIEWS_MAX 7u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- Telling ----------------------------------------------------------------------------------------------------------------------- */

bool operations_trace;

void operations_say(const char *format, ...)
{
    va_list arguments;
    if (operations_trace) {
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
    }
}

_Noreturn void operations_wrong(operations *it, const char *format, ...)
{
    va_list arguments;
    for (size_t i = 0; i < it->expected.tables_count && operations_trace; i++) {
        operations_relation_print(it->expected.tables[i].name, &it->expected.tables[i].rows, stderr);
    }
    for (size_t i = 0; i < it->expected.views_count && operations_trace; i++) {
        operations_relation_print(it->expected.views[i].name, &it->expected.views[i].rows, stderr);
    }
    va_start(arguments, format);
    fprintf(stderr, "operations: at byte %zu of %zu: ", it->at, it->size);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

/* ---- Drawing ----------------------------------------------------------------------------------------------------------------------- */

unsigned operations_byte(operations *it)
{
    return it->at < it->size ? it->data[it->at++] : 0;
}

unsigned operations_pick(operations *it, unsigned count)
{
    return count > 1 ? operations_byte(it) % count : 0;
}

bool operations_once_in(operations *it, unsigned count)
{
    return operations_byte(it) % count == count - 1;
}

ivm_type operations_type(operations *it)
{
    static const ivm_type types[] = { IVM_INT64, IVM_STRING,    IVM_INT64,  IVM_FLOAT64, IVM_DECIMAL(9, 2),  IVM_DECIMAL(6, 3), IVM_BOOL,
                                      IVM_DATE,  IVM_TIMESTAMP, IVM_STRING, IVM_FLOAT64, IVM_DECIMAL(20, 0), IVM_INT64 };
    return types[operations_pick(it, sizeof types / sizeof *types)];
}

static ivm_value text_draw(operations *it)
{
    static const char *const texts[] = { "",         "a", "b", "ab", "B", "Aa", "\xc3\xa9", "a longer text than others", "zebra \xce\xa9",
                                         "\xff\xfe", "a" };
    return ivm_string(texts[operations_pick(it, sizeof texts / sizeof *texts)]);
}

static ivm_value float_draw(operations *it)
{
    static const double floats[] = { 0, 1,    -1,  0.5,  2.25, -3.75, 100, 0.125,    1024.5,   -0.0,
                                     3, 7.25, 1e6, -2.5, 1.5,  4,     NAN, INFINITY, -INFINITY };
    return ivm_float64(floats[operations_pick(it, sizeof floats / sizeof *floats)]);
}

static ivm_value int_draw(operations *it)
{
    static const int64_t great[] = { INT64_MAX, INT64_MIN, INT64_MAX - 1, 1000000007, -1, 4611686018427387904 };
    unsigned byte = operations_byte(it);
    return ivm_int64(byte > 250 ? great[operations_pick(it, 6)] : byte > 230 ? -(int64_t)(byte % 5) : byte % 7);
}

ivm_value operations_value(operations *it, ivm_type type, bool nullable)
{
    ivm_value value;
    if (operations_once_in(it, nullable ? 8 : 120)) {
        return ivm_null();
    }
    switch (IVM_TYPE_KIND(type)) {
    case IVM_BOOL:
        return ivm_bool(operations_pick(it, 2));
    case IVM_INT64:
        return int_draw(it);
    case IVM_FLOAT64:
        return float_draw(it);
    case IVM_STRING:
        return text_draw(it);
    case IVM_DATE:
        return ivm_date((int32_t)operations_pick(it, 5) * 100 - 7);
    case IVM_TIMESTAMP:
        return ivm_timestamp((int64_t)operations_pick(it, 5) * 1000001 - 3);
    default:
        if (naive_number(type, (naive_int)operations_pick(it, 9) * 25 - 50, &value) != IVM_OK) {
            return ivm_null();
        }
        return value;
    }
}

/* ---- Operations -------------------------------------------------------------------------------------------------------------------- */

void operations_engine_open(operations *it, ivm_engine **engine)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    unsigned byte = operations_byte(it);
    options.allocator = test_allocator_functions(&it->allocator);
    options.hash_seed = 1 + byte;
    options.threads = byte >= 0xf8 ? 2 : 1;
    options.planner.fk_pruning = (ivm_fk_pruning)(byte % 4 > 2 ? 0 : 2 - byte % 4);
    options.planner.join_rule = (ivm_join_rule)((byte / 4 + 1) % 3);
    options.planner.run_empty = byte / 12 % 4 == 0;
    if (ivm_engine_open(&options, engine, &it->error) != IVM_OK) {
        operations_wrong(it, "an engine does not open: %s", it->error.message);
    }
    operations_count(options.threads > 1 ? "engine of two threads" : "engine of one thread");
}

static void planner_set(operations *it)
{
    unsigned byte = operations_byte(it);
    ivm_planner_options planner = { (ivm_fk_pruning)(2 - byte % 3), (ivm_join_rule)((byte / 3 + 1) % 3), byte / 9 % 2 == 0 };
    operations_say("planner %d %d %d\n", planner.fk_pruning, planner.join_rule, planner.run_empty);
    if (ivm_engine_planner_set(it->engine, &planner, &it->error) != IVM_OK) {
        operations_wrong(it, "planner: %s", it->error.message);
    }
    operations_count("planner set");
}

static void catalog_change(operations *it)
{
    switch (operations_pick(it, 7)) {
    case 0:
        if (it->expected.tables_count < TABLES_MAX) {
            operations_table_create(it);
        }
        break;
    case 1:
        operations_fact_declare(it);
        break;
    case 2:
        operations_fact_remove(it);
        break;
    case 3:
        operations_view_drop(it);
        break;
    case 4:
        operations_table_drop(it);
        break;
    default:
        operations_column_change(it);
    }
}

/* One operation; whether what the last step changed is still to be read. */
static bool operate(operations *it)
{
    unsigned kind = operations_pick(it, 40);
    if (kind < 20) {
        operations_push(it);
    } else if (kind < 23) {
        operations_refresh(it);
    } else if (kind < 27) {
        catalog_change(it);
    } else if (kind < 30) {
        if (it->expected.views_count < VIEWS_MAX) {
            operations_view_create(it);
        } else {
            operations_view_drop(it);
        }
    } else if (kind == 30) {
        operations_hold(it);
    } else if (kind == 31) {
        operations_find(it);
    } else if (kind == 32) {
        planner_set(it);
    } else if (kind == 33) {
        operations_audit(it);
    } else if (kind < 36) {
        operations_checkpoint(it);
    } else if (kind < 39) {
        operations_restore(it);
    } else {
        operations_corrupt(it);
    }
    return true;
}

static void begin(operations *it)
{
    unsigned byte = operations_byte(it);
    it->expected.pool = &it->pool;
    test_allocator_init(&it->allocator);
    operations_engine_open(it, &it->engine);
    for (unsigned i = 0; i < 2 + byte % 3; i++) {
        operations_table_create(it);
    }
    for (unsigned i = 0; i < byte / 4 % 4; i++) {
        operations_fact_declare(it);
    }
    if (byte & 16) {
        operations_push(it);
    }
    for (unsigned i = 0; i < 1 + byte / 32 % 4; i++) {
        operations_view_create(it);
    }
    operations_check(it, true);
}

static void end(operations *it)
{
    operations_let_go(it);
    operations_saved_free(it);
    operations_told_forget(it);
    if (ivm_engine_close(it->engine, &it->error) != IVM_OK) {
        operations_wrong(it, "the engine does not close: %s", it->error.message);
    }
    if (!test_allocator_is_clean(&it->allocator)) {
        operations_wrong(it, "%lld blocks of memory are left", (long long)it->allocator.blocks);
    }
    naive_database_free(&it->expected);
    naive_pool_free(&it->pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    operations it = { .data = data, .size = size };
    begin(&it);
    for (unsigned i = 0; i < OPERATIONS_MAX && it.at < size; i++) {
        bool changes = operate(&it);
        operations_check(&it, changes);
    }
    end(&it);
    return 0;
}
