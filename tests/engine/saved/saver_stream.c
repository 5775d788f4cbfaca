/* Tests of engine/saved/saver_stream.c, loader.c and row_stream.c: programs of operators that hold rows, rows with payloads, and bytes are saved, loaded
 * into others and saved again as the same bytes; what changes in between is not in the stream; every failure leaves nothing behind. */
#include "saver_stream.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "allocator.h"
#include "loader.h"
#include "random.h"
#include "tape.h"

static const ivm_type types[] = { IVM_INT64, IVM_STRING, IVM_FLOAT64 };
#define COLUMNS 3u
#define VIEWS 2u

/* ---- An operator that holds one of each kind ------------------------------------------------------------------------------------------- */

typedef struct holder {
    ivm__operator head;
    ivm__zset plain, counted;
    uint64_t *numbers; /* of the counted rows, by id */
    uint32_t numbers_capacity;
    uint64_t total; /* bytes */
    bool settled;
} holder;

static ivm_status number_save(const void *context, const ivm__store *store, ivm__row_id row, ivm__sink *sink)
{
    const holder *self = context;
    cr_assert_eq(store, &self->counted.store);
    return ivm__put_u64(sink, self->numbers[row]);
}

static ivm_status holder_save(const ivm__operator *self, ivm__saver *saver)
{
    const holder *it = (const holder *)self;
    ivm__sink *sink;
    IVM_TRY(saver->rows(saver, &it->plain.store, 2, NULL, NULL));
    IVM_TRY(saver->bytes(saver, &sink));
    IVM_TRY(ivm__put_u64(sink, it->total));
    IVM_TRY(saver->rows(saver, &it->counted.store, COLUMNS, number_save, it));
    IVM_TRY(saver->rows(saver, &it->counted.store, COLUMNS, NULL, NULL));
    return saver->bytes(saver, &sink);
}

static ivm_status numbers_room(holder *it)
{
    return ivm__grow(it->plain.store.memory, (void **)&it->numbers, &it->numbers_capacity, it->counted.store.rows_end + 1ull,
                     sizeof *it->numbers);
}

static ivm_status counted_load(holder *it, ivm__step *step, const ivm__chunk *chunk, ivm__feed *from)
{
    ivm__row_id first = it->counted.store.rows_end;
    if (ivm__zset_add(&it->counted, step->scratch, chunk, NULL, 1) != IVM_OK || numbers_room(it) != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    cr_assert_eq(it->counted.store.rows_end, first + chunk->rows_count);
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        IVM_TRY(ivm__get_u64(from, &it->numbers[first + i]));
        if (it->numbers[first + i] >> 48) {
            return ivm__fail(from->error, IVM_CORRUPT, "a number that cannot be");
        }
    }
    ivm__store_commit(&it->counted.store);
    return IVM_OK;
}

/* Only two columns of the plain rows were saved: a third is made up. */
static ivm_status plain_load(holder *it, ivm__step *step, const ivm__chunk *chunk)
{
    cr_assert_eq(chunk->columns_count, 2);
    ivm__chunk *whole = ivm__chunk_make(step->scratch, types, COLUMNS);
    if (!whole || !ivm__vector_make(step->scratch, &whole->columns[2], IVM_FLOAT64, chunk->rows_count, false)) {
        return ivm__fail_memory(step->error);
    }
    memset(whole->columns[2].cells, 0, chunk->rows_count * sizeof(uint64_t));
    whole->rows_count = chunk->rows_count;
    whole->weights = chunk->weights;
    memcpy(whole->columns, chunk->columns, 2 * sizeof *chunk->columns);
    if (ivm__zset_add(&it->plain, step->scratch, whole, NULL, 1) != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    ivm__store_commit(&it->plain.store);
    return IVM_OK;
}

static ivm_status holder_load(ivm__operator *self, ivm__step *step, uint32_t number, const ivm__chunk *chunk, ivm__feed *from)
{
    holder *it = (holder *)self;
    cr_assert_eq(!chunk, number == 1 || number == 4);
    switch (number) {
    case 0:
        return plain_load(it, step, chunk);
    case 1:
        return ivm__get_u64(from, &it->total);
    case 2:
        return counted_load(it, step, chunk, from);
    default:
        return IVM_OK;
    }
}

static ivm_status holder_settle(ivm__operator *self, ivm__step *step)
{
    (void)step;
    ((holder *)self)->settled = true;
    return IVM_OK;
}

static ivm_status holder_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    (void)self, (void)step, (void)port, (void)chunk;
    return IVM_OK;
}

static void holder_free(ivm__operator *self, ivm__memory *memory)
{
    holder *it = (holder *)self;
    ivm__zset_deinit(&it->plain);
    ivm__zset_deinit(&it->counted);
    ivm__release(memory, it->numbers, it->numbers_capacity * sizeof *it->numbers);
    ivm__release(memory, it, sizeof *it);
}

static void nothing_free(ivm__operator *self, ivm__memory *memory)
{
    ivm__release(memory, self, sizeof *self);
}

static const ivm__operator_class holders = {
    .name = "holder", .consume = holder_consume, .free = holder_free, .save = holder_save, .load = holder_load, .settle = holder_settle
};
static const ivm__operator_class nothings = { .name = "nothing", .consume = holder_consume, .free = nothing_free };

/* ---- Programs of an engine ---------------------------------------------------------------------------------------------------------------- */

typedef struct world {
    test_allocator allocator;
    ivm_engine *engine;
    ivm__program programs[VIEWS];
    ivm_error error;
    uint64_t state;
} world;

static void operator_add(world *in, uint32_t view, const ivm__operator_class *class)
{
    ivm__memory *memory = &in->engine->memory;
    ivm__layout *layout;
    ivm__operator *made = ivm__allocate_zeroed(memory, class == &holders ? sizeof(holder) : sizeof *made);
    cr_assert_not_null(made);
    made->class = class;
    if (class == &holders) {
        holder *it = (holder *)made;
        cr_assert_eq(ivm__layout_create(memory, types, NULL, COLUMNS, false, &layout), IVM_OK);
        cr_assert_eq(ivm__zset_init(&it->plain, memory, &in->engine->texts, in->engine->seed, layout), IVM_OK);
        cr_assert_eq(ivm__zset_init(&it->counted, memory, &in->engine->texts, in->engine->seed, layout), IVM_OK);
        ivm__layout_release(layout);
    }
    cr_assert_eq(ivm__program_add(&in->programs[view], made), IVM_OK);
}

static void world_open(world *in, uint64_t seed)
{
    *in = (world){ .state = seed * 0x9e3779b97f4a7c15ull | 1 };
    test_allocator_init(&in->allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&in->allocator);
    options.hash_seed = seed;
    cr_assert_eq(ivm_engine_open(&options, &in->engine, &in->error), IVM_OK);
    for (uint32_t view = 0; view < VIEWS; view++) {
        in->programs[view].memory = &in->engine->memory;
        operator_add(in, view, &nothings);
        operator_add(in, view, &holders);
        operator_add(in, view, &holders);
    }
}

static void world_close(world *in)
{
    for (uint32_t view = 0; view < VIEWS; view++) {
        ivm__program_deinit(&in->programs[view]);
    }
    cr_assert_eq(ivm_engine_close(in->engine, &in->error), IVM_OK);
    cr_assert(test_allocator_is_clean(&in->allocator));
}

static holder *holder_at(const world *in, uint32_t view, uint32_t place)
{
    return (holder *)in->programs[view].operators[place];
}

/* So many rows more, or, `sign` -1, the same from this state gone again. */
static void rows_add(world *in, ivm__zset *to, uint32_t rows_count, int sign)
{
    ivm__arena *arena = &in->engine->scratch;
    for (uint32_t done = 0, count; done < rows_count; done += count) {
        count = rows_count - done < IVM__CHUNK_ROWS ? rows_count - done : IVM__CHUNK_ROWS;
        ivm__chunk *chunk = ivm__chunk_make(arena, types, COLUMNS);
        chunk->rows_count = count;
        for (uint32_t c = 0; c < COLUMNS; c++) {
            cr_assert(ivm__vector_make(arena, &chunk->columns[c], types[c], count, true));
        }
        for (uint32_t i = 0; i < count; i++) {
            char bytes[32];
            const ivm__text *text = NULL;
            uint64_t drawn = random_next(&in->state);
            int size = snprintf(bytes, sizeof bytes, "text %llu", (unsigned long long)(drawn % 5000));
            cr_assert_eq(ivm__texts_intern(&in->engine->texts, bytes, (size_t)size, &text), IVM_OK);
            ((uint64_t *)chunk->columns[0].cells)[i] = drawn >> 20 & 0xfff;
            ((uint64_t *)chunk->columns[1].cells)[i] = (uintptr_t)text;
            ((uint64_t *)chunk->columns[2].cells)[i] = ivm__float_word((double)(drawn >> 40 & 3));
        }
        cr_assert_eq(ivm__zset_add(to, arena, chunk, NULL, sign), IVM_OK);
        ivm__arena_reset(arena);
    }
    ivm__store_commit(&to->store);
}

static void holder_fill(world *in, holder *it, uint32_t rows_count)
{
    rows_add(in, &it->plain, rows_count, 1);
    rows_add(in, &it->counted, rows_count / 2, 1);
    it->total = random_next(&in->state);
    cr_assert_eq(numbers_room(it), IVM_OK);
    for (ivm__row_id row = 0; row < it->counted.store.rows_end; row++) { /* by what the row is, so that order does not matter */
        it->numbers[row] = ivm__row_word(it->counted.store.layout, ivm__store_row(&it->counted.store, row), 0) * 77;
    }
}

static void world_fill(world *in, uint32_t rows_count)
{
    for (uint32_t view = 0; view < VIEWS; view++) {
        holder_fill(in, holder_at(in, view, 1), rows_count);
        holder_fill(in, holder_at(in, view, 2), rows_count / 7);
    }
    ivm__engine_settle(in->engine);
}

/* ---- Saving and loading ------------------------------------------------------------------------------------------------------------------- */

/* `between`: what is done after the programs were walked, before what is held is written. */
static ivm_status world_save(world *in, tape *to, size_t sort_bytes, void (*between)(world *in))
{
    static const ivm__head head = { IVM__FORM_WHOLE, 0, 1, false };
    ivm__block_writer writer;
    ivm__stream_saver saver;
    to->size = 0;
    in->error = (ivm_error)IVM_ERROR_INIT;
    ivm_status status = ivm__block_writer_init(&writer, &in->engine->memory, &head, tape_write, to, &in->error);
    ivm__stream_saver_init(&saver, in->engine, &writer, sort_bytes);
    for (uint32_t view = 0; status == IVM_OK && view < VIEWS; view++) {
        status = ivm__stream_saver_program(&saver, view, &in->programs[view]);
    }
    if (status == IVM_OK && between) {
        between(in);
    }
    status = status == IVM_OK ? ivm__stream_saver_held(&saver) : status;
    status = status == IVM_OK ? ivm__block_writer_finish(&writer) : status;
    ivm__stream_saver_deinit(&saver);
    ivm__block_writer_deinit(&writer);
    cr_assert_eq(status, in->error.status);
    cr_assert_null(in->engine->snapshots_oldest);
    return status;
}

static ivm_status programs_load(world *in, ivm__block_reader *reader, ivm__program_loader loaders[VIEWS])
{
    ivm__step step;
    ivm_stats stats = { 0 };
    ivm__step_init(&step, in->engine, &stats, &in->error);
    for (uint32_t kind = 0; kind < 2; kind++) {
        for (uint32_t view = 0; view < VIEWS; view++) {
            IVM_TRY(ivm__program_loader_load(&loaders[view], &step, reader, view, (ivm__holding_kind)kind));
        }
    }
    IVM_TRY(ivm__block_reader_finish(reader));
    for (uint32_t view = 0; view < VIEWS; view++) {
        IVM_TRY(ivm__program_settle(&in->programs[view], &step, view));
    }
    return IVM_OK;
}

static ivm_status world_load(world *in, tape *from)
{
    ivm__block_reader reader;
    ivm__program_loader loaders[VIEWS] = { 0 };
    from->at = 0;
    in->error = (ivm_error)IVM_ERROR_INIT;
    ivm_status status = ivm__block_reader_init(&reader, &in->engine->memory, tape_read, from, &in->error);
    for (uint32_t view = 0; status == IVM_OK && view < VIEWS; view++) {
        status = ivm__program_loader_init(&loaders[view], &in->engine->memory, &in->programs[view]);
        if (status != IVM_OK) {
            status = ivm__fail_memory(&in->error);
        }
    }
    if (status == IVM_OK) {
        status = programs_load(in, &reader, loaders);
    }
    for (uint32_t view = 0; view < VIEWS; view++) {
        ivm__program_loader_deinit(&loaders[view]);
    }
    ivm__block_reader_deinit(&reader);
    cr_assert_eq(status, in->error.status);
    ivm__engine_settle(in->engine);
    return status;
}

static bool tapes_are_equal(const tape *a, const tape *b)
{
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

/* ---- Tests -------------------------------------------------------------------------------------------------------------------------------- */

Test(engine_saver_stream, what_is_loaded_is_saved_as_the_same_bytes)
{
    static const uint32_t counts[] = { 0, 1, 300, 5000 };
    for (uint32_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        world in, loaded;
        tape first = { 0 }, again = { 0 };
        world_open(&in, 7 + i);
        world_open(&loaded, 100 + i);
        world_fill(&in, counts[i]);
        cr_assert_eq(world_save(&in, &first, IVM__SORT_BYTES_DEFAULT, NULL), IVM_OK);
        cr_assert_eq(world_load(&loaded, &first), IVM_OK, "%s", loaded.error.message);
        cr_assert_eq(world_save(&loaded, &again, 100 * 32, NULL), IVM_OK);
        cr_assert(tapes_are_equal(&first, &again), "%u rows", counts[i]);
        for (uint32_t view = 0; view < VIEWS; view++) {
            for (uint32_t place = 1; place < 3; place++) {
                const holder *it = holder_at(&loaded, view, place), *was = holder_at(&in, view, place);
                cr_assert(it->settled && it->total == was->total);
                cr_assert_eq(it->counted.store.rows_live, was->counted.store.rows_live);
            }
        }
        world_close(&in);
        world_close(&loaded);
        free(first.bytes);
        free(again.bytes);
    }
}

/* All rows go, others come, texts are swept: in the stream is what was when the programs were walked. */
static void world_change(world *in)
{
    for (uint32_t view = 0; view < VIEWS; view++) {
        holder *it = holder_at(in, view, 1);
        for (uint32_t round = 0; round < 3; round++) {
            in->state = 0x9e3779b97f4a7c15ull + view;
            rows_add(in, &it->plain, 2000, -1);
            ivm__engine_settle(in->engine);
            rows_add(in, &it->plain, 500, 1);
            ivm__engine_settle(in->engine);
        }
    }
}

Test(engine_saver_stream, changes_while_held_rows_are_written_are_not_in_the_stream)
{
    world in;
    tape before = { 0 }, between = { 0 }, after = { 0 };
    world_open(&in, 9);
    world_fill(&in, 3000);
    cr_assert_eq(world_save(&in, &before, IVM__SORT_BYTES_DEFAULT, NULL), IVM_OK);
    cr_assert_eq(world_save(&in, &between, 1000 * 32, world_change), IVM_OK);
    cr_assert_eq(world_save(&in, &after, IVM__SORT_BYTES_DEFAULT, NULL), IVM_OK);
    cr_assert(tapes_are_equal(&before, &between));
    cr_assert_not(tapes_are_equal(&before, &after));
    world_close(&in);
    free(before.bytes);
    free(between.bytes);
    free(after.bytes);
}

/* The sections of a whole stream, hashed anew: what stands in them is another matter. */
Test(engine_saver_stream, payloads_that_cannot_be_say_where)
{
    world in, loaded;
    tape stream = { 0 };
    world_open(&in, 9);
    world_open(&loaded, 10);
    world_fill(&in, 300);
    holder_at(&in, 1, 2)->numbers[3] = 1ull << 50;
    cr_assert_eq(world_save(&in, &stream, IVM__SORT_BYTES_DEFAULT, NULL), IVM_OK);
    cr_assert_eq(world_load(&loaded, &stream), IVM_CORRUPT);
    cr_assert_not_null(strstr(loaded.error.message, "a number that cannot be, in block 10 (kept 1.514), from byte "), "%s",
                       loaded.error.message);
    world_close(&in);
    world_close(&loaded);
    free(stream.bytes);
}

/* Two rows that differ in the column that is not saved. */
Test(engine_saver_stream, equal_rows_past_int64_overflow)
{
    world in;
    tape stream = { 0 };
    world_open(&in, 9);
    ivm__arena *arena = &in.engine->scratch;
    const ivm__text *text = NULL;
    ivm__weight weights[2] = { INT64_MAX, INT64_MAX };
    cr_assert_eq(ivm__texts_intern(&in.engine->texts, "one", 3, &text), IVM_OK);
    uint64_t cells[COLUMNS][2] = { { 5, 5 }, { (uintptr_t)text, (uintptr_t)text }, { 0, ivm__float_word(1) } };
    ivm__chunk *chunk = ivm__chunk_make(arena, types, COLUMNS);
    chunk->rows_count = 2;
    chunk->weights = weights;
    for (uint32_t c = 0; c < COLUMNS; c++) {
        chunk->columns[c].cells = cells[c];
    }
    ivm__zset *plain = &holder_at(&in, 0, 1)->plain;
    cr_assert_eq(ivm__zset_add(plain, arena, chunk, NULL, 1), IVM_OK);
    ivm__store_commit(&plain->store);
    ivm__engine_settle(in.engine);
    cr_assert_eq(world_save(&in, &stream, IVM__SORT_BYTES_DEFAULT, NULL), IVM_OVERFLOW);
    cr_assert_str_eq(in.error.message, "equal rows weigh more than an int64 together");
    world_close(&in);
    free(stream.bytes);
}

Test(engine_saver_stream, every_write_failing_leaves_nothing)
{
    world in;
    tape stream = { 0 };
    world_open(&in, 9);
    world_fill(&in, 2000);
    for (uint32_t n = 1, done = 0; !done; n++) {
        int64_t bytes = in.allocator.bytes;
        stream.writes = n;
        ivm_status status = world_save(&in, &stream, IVM__SORT_BYTES_DEFAULT, NULL);
        done = status == IVM_OK;
        cr_assert(done ? n > 10 : status == IVM_IO);
        cr_assert_eq(in.allocator.bytes, bytes);
    }
    world_close(&in);
    free(stream.bytes);
}

Test(engine_saver_stream, every_allocation_of_saving_failing_leaves_nothing)
{
    world in;
    tape stream = { 0 };
    world_open(&in, 9);
    world_fill(&in, 1200);
    for (uint64_t n = 1, done = 0; !done; n++) {
        int64_t bytes = in.allocator.bytes;
        test_allocator_arm(&in.allocator, n);
        ivm_status status = world_save(&in, &stream, IVM__SORT_BYTES_DEFAULT, NULL);
        done = !test_allocator_disarm(&in.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(in.allocator.bytes, bytes);
    }
    world_close(&in);
    free(stream.bytes);
}

Test(engine_saver_stream, every_allocation_and_cut_of_loading_failing_leaves_nothing)
{
    world in;
    tape stream = { 0 };
    world_open(&in, 9);
    world_fill(&in, 1200);
    cr_assert_eq(world_save(&in, &stream, IVM__SORT_BYTES_DEFAULT, NULL), IVM_OK);
    for (uint64_t n = 1, done = 0; !done; n = n < 40 ? n + 1 : n * 9 / 8) {
        world loaded;
        world_open(&loaded, n);
        test_allocator_arm(&loaded.allocator, n);
        ivm_status status = world_load(&loaded, &stream);
        done = !test_allocator_disarm(&loaded.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        world_close(&loaded);
    }
    tape cut = stream;
    for (cut.size = 0; cut.size < stream.size; cut.size += 977) {
        world loaded;
        world_open(&loaded, cut.size + 1);
        cr_assert_eq(world_load(&loaded, &cut), IVM_CORRUPT);
        world_close(&loaded);
    }
    world_close(&in);
    free(stream.bytes);
}
