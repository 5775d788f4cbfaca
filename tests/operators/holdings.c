/* See holdings.h. */
#include "holdings.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "hand.h"
#include "wide.h"

#define HOLDINGS_MAX 16u

/* ---- Saving --------------------------------------------------------------------------------------------------------------------------- */

static void append(holdings *it, const void *bytes, size_t size)
{
    if (size == 0) {
        return;
    }
    if (it->size + size > it->capacity) {
        it->capacity = 2 * it->capacity + size + 64;
        it->bytes = realloc(it->bytes, it->capacity);
        cr_assert_not_null(it->bytes);
    }
    memcpy(it->bytes + it->size, bytes, size);
    it->size += size;
}

typedef struct test_sink {
    ivm__sink sink;
    holdings *to;
} test_sink;

static ivm_status sink_write(ivm__sink *self, const void *bytes, size_t size)
{
    cr_assert_gt(size, 0u);
    append(((test_sink *)self)->to, bytes, size);
    return IVM_OK;
}

typedef struct test_saver {
    ivm__saver saver;
    test_sink sink;
} test_saver;

static const ivm__store *sorted_store;
static uint32_t sorted_columns;

static int rows_compare(const void *left, const void *right)
{
    const ivm__layout *layout = sorted_store->layout;
    const uint8_t *a = ivm__store_row(sorted_store, *(const ivm__row_id *)left),
                  *b = ivm__store_row(sorted_store, *(const ivm__row_id *)right);
    for (uint32_t c = 0; c < sorted_columns; c++) {
        bool a_null = ivm__row_is_null(layout, a, c), b_null = ivm__row_is_null(layout, b, c), wide = ivm__type_is_wide(layout->types[c]);
        int order = a_null - b_null;
        if (!a_null && !b_null) {
            order = wide ? ivm__cell_compare(layout->types[c], ivm__row_wide(layout, a, c), ivm__row_wide(layout, b, c))
                         : ivm__cell_compare(layout->types[c], ivm__row_word(layout, a, c), ivm__row_word(layout, b, c));
        }
        if (order) {
            return order;
        }
    }
    return 0;
}

/* Ids of the present rows in order. The caller frees. */
static ivm__row_id *rows_sorted(const ivm__store *store, uint32_t columns_count, uint32_t *count)
{
    ivm__row_id *rows = malloc((store->rows_live + 1) * sizeof *rows);
    ivm__weight *weights = malloc((store->rows_live + 1) * sizeof *weights);
    uint32_t next = 0;
    cr_assert(rows && weights);
    *count = ivm__store_scan(store, IVM__READ_CUR, &next, (uint32_t)store->rows_live + 1, rows, weights);
    cr_assert_eq(*count, store->rows_live);
    sorted_store = store;
    sorted_columns = columns_count;
    qsort(rows, *count, sizeof *rows, rows_compare);
    for (uint32_t i = 1; i < *count; i++) {
        cr_assert_lt(rows_compare(&rows[i - 1], &rows[i]), 0, "rows that are equal");
    }
    free(weights);
    return rows;
}

static void cell_save(holdings *it, const ivm__store *store, ivm__row_id row, uint32_t column)
{
    const ivm__layout *layout = store->layout;
    const uint8_t *at = ivm__store_row(store, row);
    uint8_t null = ivm__row_is_null(layout, at, column);
    ivm_type type = layout->types[column];
    append(it, &null, 1);
    if (!null && IVM_TYPE_KIND(type) == IVM_STRING) {
        const ivm__text *text = (const ivm__text *)(uintptr_t)ivm__row_word(layout, at, column);
        append(it, &text->size, sizeof text->size);
        append(it, text->bytes, text->size);
    } else if (!null) {
        append(it, at + layout->offsets[column], ivm__type_words(type) * sizeof(uint64_t));
    }
}

static ivm_status rows_save(ivm__saver *self, const ivm__store *store, uint32_t columns_count, ivm__row_save *save, const void *context)
{
    test_saver *saver = (test_saver *)self;
    holdings *it = saver->sink.to;
    uint32_t count, most = it->chunk_rows ? it->chunk_rows : IVM__CHUNK_ROWS;
    uint16_t end = 0;
    cr_assert(store->touched_count == 0 && columns_count <= store->layout->columns_count);
    ivm__row_id *rows = rows_sorted(store, columns_count, &count);
    append(it, "R", 1);
    for (uint32_t first = 0; first < count; first += most) {
        uint16_t chunk = (uint16_t)(count - first < most ? count - first : most);
        append(it, &chunk, sizeof chunk);
        for (uint32_t i = first; i < first + chunk; i++) {
            int64_t weight = (int64_t)ivm__store_weight(store, rows[i], IVM__READ_CUR);
            append(it, &weight, sizeof weight);
            for (uint32_t c = 0; c < columns_count; c++) {
                cell_save(it, store, rows[i], c);
            }
        }
        for (uint32_t i = first; save && i < first + chunk; i++) {
            cr_assert_eq(save(context, store, rows[i], &saver->sink.sink), IVM_OK);
        }
    }
    append(it, &end, sizeof end);
    free(rows);
    return IVM_OK;
}

static ivm_status bytes_save(ivm__saver *self, ivm__sink **sink)
{
    test_saver *saver = (test_saver *)self;
    append(saver->sink.to, "B", 1);
    *sink = &saver->sink.sink;
    return IVM_OK;
}

void holdings_save(holdings *it, const ivm__operator *operator)
{
    test_saver saver = { { rows_save, bytes_save }, { { sink_write }, it } };
    if (operator->class->save) {
        cr_assert_eq(operator->class->save(operator, & saver.saver), IVM_OK);
    }
}

void holdings_save_program(holdings *it, const ivm__program *program)
{
    for (uint32_t i = 0; i < program->operators_count; i++) {
        holdings_save(it, program->operators[i]);
    }
}

/* ---- Loading -------------------------------------------------------------------------------------------------------------------------- */

/* What the operator names. */
typedef struct shape {
    ivm__saver saver;
    struct {
        const ivm__store *store; /* NULL: bytes */
        uint32_t columns_count;
    } holding[HOLDINGS_MAX];
    uint32_t count;
} shape;

static ivm_status rows_name(ivm__saver *self, const ivm__store *store, uint32_t columns_count, ivm__row_save *save, const void *context)
{
    shape *it = (shape *)self;
    (void)save;
    (void)context;
    cr_assert_lt(it->count, HOLDINGS_MAX);
    it->holding[it->count].store = store;
    it->holding[it->count++].columns_count = columns_count;
    return IVM_OK;
}

static ivm_status ignore(ivm__sink *self, const void *bytes, size_t size)
{
    (void)self;
    (void)bytes;
    (void)size;
    return IVM_OK;
}

static ivm_status bytes_name(ivm__saver *self, ivm__sink **sink)
{
    static ivm__sink ignoring = { ignore };
    cr_assert_lt(((shape *)self)->count, HOLDINGS_MAX);
    ((shape *)self)->holding[((shape *)self)->count++].store = NULL;
    *sink = &ignoring;
    return IVM_OK;
}

/* Makes the cell one of its type, as a loader would have found it. */
static ivm_status cell_settle(ivm_type type, uint64_t *words)
{
    ivm__wide wide;
    switch (IVM_TYPE_KIND(type)) {
    case IVM_BOOL:
        words[0] &= 1;
        return IVM_OK;
    case IVM_DATE:
        words[0] = (uint64_t)(int64_t)(int32_t)words[0];
        return IVM_OK;
    case IVM_FLOAT64:
        words[0] = ivm__float_word(ivm__word_float(words[0]));
        return IVM_OK;
    case IVM_DECIMAL_KIND:
        memcpy(&wide, words, sizeof wide);
        return ivm__decimal_fits(wide, IVM_TYPE_PRECISION(type)) ? IVM_OK : IVM_CORRUPT;
    default:
        return IVM_OK;
    }
}

static ivm_status text_load(ivm__step *step, ivm__memory_feed *from, uint64_t *word)
{
    uint32_t size;
    const ivm__text *text;
    IVM_TRY(ivm__get_u32(&from->feed, &size));
    if (size > (size_t)(from->end - from->at)) {
        return IVM_CORRUPT;
    }
    IVM_TRY(ivm__texts_intern(step->texts, (const char *)from->at, size, &text));
    from->at += size;
    *word = (uint64_t)(uintptr_t)text;
    return IVM_OK;
}

static ivm_status cell_load(ivm__step *step, ivm__memory_feed *from, ivm__vector *vector, uint32_t row)
{
    size_t size = ivm__type_words(vector->type) * sizeof(uint64_t);
    uint64_t words[2] = { 0, 0 };
    IVM_TRY(ivm__get_u8(&from->feed, &vector->nulls[row]));
    vector->nulls[row] &= 1;
    if (!vector->nulls[row] && IVM_TYPE_KIND(vector->type) == IVM_STRING) {
        IVM_TRY(text_load(step, from, words));
    } else if (!vector->nulls[row]) {
        IVM_TRY(ivm__get(&from->feed, words, size));
        IVM_TRY(cell_settle(vector->type, words));
    }
    memcpy((uint8_t *)vector->cells + row * size, words, size);
    return IVM_OK;
}

static ivm_status chunk_load(ivm__operator *operator, ivm__step * step, uint32_t holding, const shape *of, ivm__memory_feed *from,
                             uint16_t count)
{
    uint32_t columns_count = of->holding[holding].columns_count;
    const ivm_type *types = of->holding[holding].store->layout->types;
    ivm__chunk *chunk = ivm__chunk_make(step->scratch, types, columns_count);
    if (!chunk) {
        return IVM_OUT_OF_MEMORY;
    }
    chunk->rows_count = count;
    chunk->weights = ivm__arena_allocate(step->scratch, count * sizeof *chunk->weights);
    for (uint32_t c = 0; c < columns_count; c++) {
        if (!chunk->weights || !ivm__vector_make(step->scratch, &chunk->columns[c], types[c], count, true)) {
            return IVM_OUT_OF_MEMORY;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        int64_t weight;
        IVM_TRY(ivm__get_u64(&from->feed, (uint64_t *)&weight));
        chunk->weights[i] = weight;
        for (uint32_t c = 0; c < columns_count; c++) {
            IVM_TRY(cell_load(step, from, &chunk->columns[c], i));
        }
    }
    return operator->class->load(operator, step, holding, chunk, &from->feed);
}

static ivm_status rows_load(ivm__operator *operator, ivm__step * step, uint32_t holding, const shape *of, ivm__memory_feed *from)
{
    for (;;) {
        uint16_t count;
        IVM_TRY(ivm__get_u16(&from->feed, &count));
        if (count == 0 || count > IVM__CHUNK_ROWS) {
            return count ? IVM_CORRUPT : IVM_OK;
        }
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm_status status = chunk_load(operator, step, holding, of, from, count);
        ivm__arena_back(step->scratch, mark);
        IVM_TRY(status);
    }
}

static ivm_status operator_load(ivm__operator *operator, ivm__step * step, ivm__memory_feed *from)
{
    shape of = { .saver = { rows_name, bytes_name } };
    if (!operator->class->save) {
        return IVM_OK;
    }
    cr_assert_eq(operator->class->save(operator, & of.saver), IVM_OK);
    for (uint32_t i = 0; i < of.count; i++) {
        uint8_t tag;
        IVM_TRY(ivm__get_u8(&from->feed, &tag));
        if (tag != (of.holding[i].store ? 'R' : 'B')) {
            return IVM_CORRUPT;
        }
        IVM_TRY(
            of.holding[i].store ? rows_load(operator, step, i, &of, from) : operator->class->load(operator, step, i, NULL, &from->feed));
    }
    return operator->class->settle ? operator->class->settle(operator, step) : IVM_OK;
}

static ivm_status operators_load(const holdings *it, ivm_engine *engine, ivm__operator **operators, uint32_t count, ivm_error *error)
{
    ivm_stats stats = { 0 };
    ivm__step step;
    ivm__memory_feed from;
    ivm_status status = IVM_OK;
    ivm__step_init(&step, engine, &stats, error);
    ivm__memory_feed_init(&from, it->bytes, it->size, error);
    for (uint32_t i = 0; status == IVM_OK && i < count; i++) {
        status = operator_load(operators[i], &step, &from);
    }
    if (status == IVM_OK && from.at != from.end) {
        status = IVM_CORRUPT;
    }
    ivm__engine_settle(engine);
    return status;
}

ivm_status holdings_load(const holdings *it, ivm_engine *engine, ivm__operator *operator, ivm_error * error)
{
    return operators_load(it, engine, &operator, 1, error);
}

ivm_status holdings_load_program(const holdings *it, ivm_engine *engine, const ivm__program *program, ivm_error *error)
{
    return operators_load(it, engine, program->operators, program->operators_count, error);
}

/* ---- Bytes ---------------------------------------------------------------------------------------------------------------------------- */

bool holdings_equal(const holdings *a, const holdings *b)
{
    size_t at = 0;
    while (at < a->size && at < b->size && a->bytes[at] == b->bytes[at]) {
        at++;
    }
    if (at == a->size && at == b->size) {
        return true;
    }
    fprintf(stderr, "%zu and %zu bytes, byte %zu differs\n", a->size, b->size, at);
    return false;
}

void holdings_copy(holdings *to, const holdings *from)
{
    *to = (holdings){ 0 };
    append(to, from->bytes, from->size);
}

void holdings_free(holdings *it)
{
    free(it->bytes);
    *it = (holdings){ .chunk_rows = it->chunk_rows };
}

static void spoil_once(holdings *it, uint64_t *random)
{
    static const uint8_t ends[] = { 0, 1, 2, 0x7f, 0x80, 0xff };
    size_t at = hand_random(random) % it->size, run = 1 + hand_below(random, 16);
    run = run < it->size - at ? run : it->size - at;
    switch (hand_below(random, 6)) {
    case 0:
    case 1:
        it->bytes[at] ^= (uint8_t)(1u << hand_below(random, 8));
        break;
    case 2:
        memset(it->bytes + at, ends[hand_below(random, sizeof ends)], run);
        break;
    case 3:
        for (size_t i = at; i < at + run; i++) {
            it->bytes[i] = (uint8_t)hand_random(random);
        }
        break;
    case 4:
        memmove(it->bytes + at, it->bytes + hand_random(random) % (it->size - run + 1), run);
        break;
    default:
        it->size = hand_below(random, 4) ? it->size : at;
    }
}

void holdings_spoil(holdings *it, uint64_t *random)
{
    for (uint32_t n = 1 + hand_below(random, 3); it->size && n > 0; n--) {
        spoil_once(it, random);
    }
}

/* ---- Judging -------------------------------------------------------------------------------------------------------------------------- */

bool holdings_is_still(const ivm__store *store)
{
    ivm__row_id row;
    ivm__weight weight;
    uint32_t next = 0;
    return ivm__store_changes_last(store, &next, 1, &row, &weight) == 0 && store->last_changes == 0 && store->touched_count == 0;
}

void holdings_assert_program(holdings *it, const ivm__program *program, const char *what, uint64_t seed)
{
    holdings now = { .chunk_rows = it->chunk_rows };
    holdings_save_program(&now, program);
    cr_assert(holdings_equal(&now, it), "%s, seed %llu", what, (unsigned long long)seed);
    holdings_free(&now);
    holdings_free(it);
}
