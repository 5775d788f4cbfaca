/* tests engine/arrow/arrow_batch.c: that arrays and streams are released once, whatever comes of them; streams that fail; memory that runs out. */
#include <criterion/criterion.h>
#include <errno.h>

#include "arrow_case.h"
#include "batch.h"

static arrow_host to;
static arrow_case made;
static arrow_feed feed;
static char text[ARROW_TEXT_SIZE];

/* ---- Who releases ------------------------------------------------------------------------------------------------------------------------ */

Test(engine_arrow_taken, taken_whatever_the_outcome)
{
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    arrow_case_good(&made);
    cr_assert_eq(ivm_batch_arrow(NULL, to.table, IVM_INSERT, &made.array, &made.schema, NULL), IVM_INVALID_ARGUMENT);
    cr_assert_eq(made.released, 1);
    cr_assert_eq(ivm_batch_arrow(to.batch, to.table, IVM_INSERT, &made.array, &made.schema, NULL), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(to.batch->mistake.message, "table t: the array was released");
    arrow_case_good(&made);
    cr_assert_eq(ivm_batch_arrow(to.batch, to.table, IVM_INSERT, &made.array, &made.schema, NULL), IVM_INVALID_ARGUMENT,
                 "the batch is mistaken");
    cr_assert_eq(made.released, 1);
    ivm_batch_free(to.batch);
    arrow_host_batch(&to);
    cr_assert_eq(ivm_batch_arrow(to.batch, to.table, IVM_INSERT, NULL, &made.schema, NULL), IVM_INVALID_ARGUMENT);
    ivm_batch_free(to.batch);
    arrow_host_batch(&to);
    arrow_case_good(&made);
    cr_assert_eq(ivm_batch_arrow(to.batch, NULL, IVM_INSERT, &made.array, &made.schema, NULL), IVM_INVALID_ARGUMENT);
    cr_assert_eq(made.released, 1);
    ivm_batch_free(to.batch);
    arrow_host_batch(&to);
    arrow_case_good(&made); /* an engine closed before its batch is freed */
    cr_assert_eq(ivm_batch_arrow(to.batch, to.table, IVM_INSERT, &made.array, &made.schema, NULL), IVM_OK);
    cr_assert_eq(ivm_engine_close(to.engine, NULL), IVM_OK);
    cr_assert_eq(made.released, 0);
    ivm_batch_free(to.batch);
    cr_assert_eq(made.released, 1);
    cr_assert(test_allocator_is_clean(&to.counted));
}

static void (*release_before)(struct ArrowArray *array);
static ivm_status status_inside;

static void release_asking(struct ArrowArray *array)
{
    size_t size;
    status_inside = ivm_engine_position(to.engine, NULL, 0, &size, NULL);
    release_before(array);
}

/* Whoever releases an array of his may call the engine. */
Test(engine_arrow_taken, released_outside_any_lock)
{
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    arrow_case_good(&made);
    release_before = made.array.release;
    made.array.release = release_asking;
    status_inside = IVM_IN_USE;
    cr_assert_eq(ivm_batch_arrow(to.batch, to.table, IVM_INSERT, &made.array, &made.schema, NULL), IVM_OK);
    cr_assert_eq(ivm_push_batch(to.engine, to.batch, NULL, &to.error), IVM_OK, "%s", to.error.message);
    cr_assert_eq(made.released, 1);
    cr_assert_eq(status_inside, IVM_OK);
    arrow_host_batch(&to);
    arrow_host_close(&to);
}

/* ---- Streams ----------------------------------------------------------------------------------------------------------------------------- */

static void stream_refused(ivm_status status, const char *message, int arrays_given)
{
    cr_assert_eq(ivm_batch_arrow_stream(to.batch, to.table, IVM_INSERT, &feed.stream, NULL), status);
    cr_assert_null(feed.stream.release);
    cr_assert_eq(feed.released, 1);
    cr_assert_eq(feed.schemas_released, !feed.schema_fails);
    cr_assert_eq(ivm_push_batch(to.engine, to.batch, NULL, &to.error), status);
    cr_assert_str_eq(to.error.message, message);
    cr_assert_eq(feed.given, arrays_given);
    for (int i = 0; i < feed.count; i++) {
        cr_assert_eq(feed.cases[i].released, 1);
    }
    cr_assert_eq(to.table->store.rows_live, 0);
    arrow_host_batch(&to);
}

static void bad(arrow_case *it)
{
    arrow_case_good(it);
    it->arrays[ARROW_FIELD_I].n_buffers = 1;
}

Test(engine_arrow_taken, streams)
{
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    arrow_feed_init(&feed, arrow_case_good, 3);
    cr_assert_eq(ivm_batch_arrow_stream(to.batch, to.table, IVM_INSERT, &feed.stream, NULL), IVM_OK, "%s", to.batch->mistake.message);
    cr_assert_eq(feed.released + feed.schemas_released, 2, "before the call returns");
    cr_assert_eq(feed.cases[0].released + feed.cases[1].released + feed.cases[2].released, 0);
    cr_assert_eq(ivm_push_batch(to.engine, to.batch, NULL, &to.error), IVM_OK, "%s", to.error.message);
    cr_assert_eq(feed.cases[0].released + feed.cases[1].released + feed.cases[2].released, 3);
    arrow_table_text(to.table, text);
    cr_assert_str_eq(text, "(1,\"a\",0.5)*3(2,\"bb\",-2.0)*3(3,\"\",null)*3");
    arrow_host_batch(&to);
    arrow_host_close(&to);
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    arrow_feed_init(&feed, arrow_case_good, 0);
    arrow_case_good(&feed.cases[0]); /* for its schema */
    cr_assert_eq(ivm_batch_arrow_stream(to.batch, to.table, IVM_INSERT, &feed.stream, NULL), IVM_OK, "no array at all");
    arrow_case_free(&feed.cases[0]);
    arrow_host_close(&to);
}

Test(engine_arrow_taken, streams_that_fail)
{
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    arrow_feed_init(&feed, arrow_case_good, 3);
    feed.fail_at = 3;
    feed.code = EIO;
    stream_refused(IVM_IO, "table t: the stream's get_next failed with 5: the wire was cut", 2);
    arrow_feed_init(&feed, arrow_case_good, 2);
    feed.fail_at = 3; /* in place of its end */
    feed.code = ENOMEM;
    feed.silent = true;
    stream_refused(IVM_OUT_OF_MEMORY, "table t: the stream's get_next failed with 12: no reason given", 2);
    arrow_feed_init(&feed, arrow_case_good, 2);
    feed.schema_fails = true;
    feed.code = EINVAL;
    feed.stream.get_last_error = NULL;
    stream_refused(IVM_IO, "table t: the stream's get_schema failed with 22: no reason given", 0);
    arrow_feed_init(&feed, bad, 3);
    stream_refused(IVM_INVALID_ARGUMENT, "table t, column i: an array of 1 buffers, where its format has 2", 1);
    arrow_feed_init(&feed, arrow_case_good, 2);
    feed.cases[0].schema.format = "i";
    stream_refused(IVM_INVALID_ARGUMENT, "table t: rows are a struct (format \"+s\"), not \"i\"", 0);
    arrow_feed_init(&feed, arrow_case_good, 1);
    cr_assert_eq(ivm_batch_arrow_stream(NULL, to.table, IVM_INSERT, &feed.stream, NULL), IVM_INVALID_ARGUMENT);
    cr_assert_eq(feed.released, 1);
    cr_assert_eq(ivm_batch_arrow_stream(to.batch, to.table, IVM_INSERT, &feed.stream, NULL), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(to.batch->mistake.message, "table t: the stream was released");
    arrow_host_close(&to);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------------------------ */

/* Two arrays with everything that is converted in them. */
static void costly(arrow_case *it)
{
    arrow_case_init(it, 3);
    arrow_case_values(it, "i", "c", (int8_t[]){ 1, 2, 3 }, 3);
    arrow_case_values(it, "n", "n", "", 0)->n_buffers = 0;
    struct ArrowArray *s = arrow_case_field(it, "s", "c");
    arrow_case_buffer(it, s, &(uint8_t){ 5 }, 1);
    arrow_case_buffer(it, s, (int8_t[]){ 0, 9, 1 }, 3);
    struct ArrowArray *dictionary = arrow_case_dictionary(it, "U", 2);
    arrow_case_buffer(it, dictionary, NULL, 0);
    arrow_case_buffer(it, dictionary, (int64_t[]){ 0, 1, 3 }, 24);
    arrow_case_buffer(it, dictionary, "abb", 3);
    arrow_case_values(it, "w", "s", (int16_t[]){ 1, 2, 3 }, 6);
}

Test(engine_arrow_taken, memory_that_runs_out)
{
    const ivm_arrow_options options = { .weight = "w" };
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        arrow_feed_init(&feed, costly, 2);
        test_allocator_arm(&to.counted, n);
        ivm_status status = ivm_batch_arrow_stream(to.batch, to.table, IVM_WEIGHTED, &feed.stream, &options);
        cr_assert_eq(feed.released + feed.schemas_released, 2);
        ivm_status pushed = ivm_push_batch(to.engine, to.batch, NULL, NULL);
        done = !test_allocator_disarm(&to.counted);
        cr_assert_eq(feed.cases[0].released + feed.cases[1].released, 2);
        cr_assert_eq(pushed, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert(status == IVM_OK || !done);
        cr_assert_eq(to.table->store.rows_live, done ? 6 : 0);
        arrow_host_batch(&to);
        cr_assert_lt(n, 500);
    }
    arrow_table_text(to.table, text);
    cr_assert_str_eq(text, "(1,\"a\",null)*2(2,null,null)*4(3,\"bb\",null)*6");
    arrow_case_init(&made, 0);
    arrow_case_field(&made, "a", "l");
    done = false;
    for (uint64_t n = 1; !done; n++) {
        ivm_table *other;
        test_allocator_arm(&to.counted, n);
        ivm_status status = ivm_table_create_arrow(to.engine, "other", &made.schema, NULL, NULL, &other, NULL);
        done = !test_allocator_disarm(&to.counted);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
    }
    arrow_case_free(&made);
    arrow_host_close(&to);
}
