/* Arrow arrays made by hand. Every buffer is a block of its own of just its size, so that the address sanitizer sees who reads past it or after its release; releases
 * are counted; one of a child, which is the base's alone to make, fails the test. */
#ifndef TEST_ARROW_CASE_H
#define TEST_ARROW_CASE_H

#include "allocator.h"
#include "ivm/arrow.h"
#include "ivm/batch.h"

#define ARROW_CASE_FIELDS 12
#define ARROW_CASE_BUFFERS 6
#define ARROW_CASE_NODES (2 * ARROW_CASE_FIELDS)

typedef struct arrow_case {
    struct ArrowSchema schema, schemas[ARROW_CASE_NODES], *schema_children[ARROW_CASE_FIELDS];
    struct ArrowArray array, arrays[ARROW_CASE_NODES], *children[ARROW_CASE_FIELDS];
    const void *base_buffers[1], *buffers[ARROW_CASE_NODES][ARROW_CASE_BUFFERS];
    size_t shift; /* fields' buffers begin so many bytes behind an aligned place; set before any is added */
    int nodes;    /* fields and dictionaries */
    int released; /* the array */
} arrow_case;

/* A record batch of so many rows, without fields. */
void arrow_case_init(arrow_case *it, int64_t length);
/* Adds a field without buffers, of the length of the base. The array is in it->children[]. */
struct ArrowArray *arrow_case_field(arrow_case *it, const char *name, const char *format);
/* Gives the last field a dictionary. */
struct ArrowArray *arrow_case_dictionary(arrow_case *it, const char *format, int64_t length);
/* Adds a buffer, copied; NULL: there is none. */
void arrow_case_buffer(arrow_case *it, struct ArrowArray *array, const void *bytes, size_t size);
/* A field with values and nothing else, and one of strings. */
struct ArrowArray *arrow_case_values(arrow_case *it, const char *name, const char *format, const void *values, size_t size);
struct ArrowArray *arrow_case_strings(arrow_case *it, const char *name, const int32_t *offsets, size_t offsets_size, const char *bytes);
/* Three rows for a table of these columns: i int64, s string and n decimal(4,1). */
enum { ARROW_FIELD_I, ARROW_FIELD_S, ARROW_FIELD_N, ARROW_FIELDS_GOOD };
extern const ivm_column_definition arrow_columns_good[ARROW_FIELDS_GOOD];
void arrow_case_good(arrow_case *it);
/* What was not released: for tests that never hand it over. */
void arrow_case_free(arrow_case *it);

/* A stream of the same record batch, `count` times over; `fail_at`: the call of get_next that fails (0: none), with `code`. */
typedef struct arrow_feed {
    struct ArrowArrayStream stream;
    void (*make)(arrow_case *it); /* fills in one */
    arrow_case cases[4];
    int given, count, fail_at, code;
    bool schema_fails, silent; /* silent: it says nothing of why */
    int released, schemas_released;
} arrow_feed;
void arrow_feed_init(arrow_feed *it, void (*make)(arrow_case *it), int count);

/* An engine on the counting allocator, a table "t" in it without a key, and an empty batch. */
typedef struct arrow_host {
    test_allocator counted;
    ivm_engine *engine;
    ivm_table *table;
    ivm_batch *batch;
    ivm_error error;
} arrow_host;
void arrow_host_open(arrow_host *it, const ivm_column_definition *columns, uint32_t columns_count);
void arrow_host_batch(arrow_host *it); /* another empty one, once that before is pushed or freed */
/* Frees the batch, and asserts that nothing is left. */
void arrow_host_close(arrow_host *it);

/* A table's, or a snapshot's, rows in order, each as "(1,\"a\")*2 "; the snapshot stays open. */
#define ARROW_TEXT_SIZE 8192
void arrow_rows_text(ivm_snapshot *snapshot, char text[ARROW_TEXT_SIZE]);
void arrow_table_text(ivm_table *table, char text[ARROW_TEXT_SIZE]);

#endif
