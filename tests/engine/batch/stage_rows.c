/* tests engine/batch/stage_rows.c */
#include "staging.h"

#include <criterion/criterion.h>
#include <math.h>

#define ROWS 200u

static ivm_engine *engine;
static ivm_table *table;
static ivm_error error;
static ivm_stats stats;
static ivm__step step;
static ivm__part part;
static ivm_column_data columns[4];

/* One column, or two of the same type. */
static void begin(ivm_type type, bool not_null, uint32_t columns_count)
{
    static const char *const names[] = { "a", "b" };
    ivm_column_definition definitions[2];
    for (uint32_t c = 0; c < columns_count; c++) {
        definitions[c] = (ivm_column_definition){ names[c], type, not_null };
    }
    ivm_table_options options = { .columns = definitions, .columns_count = columns_count };
    cr_assert_eq(ivm_engine_open(NULL, &engine, NULL), IVM_OK);
    cr_assert_eq(ivm_table_create(engine, "t", &options, &table, NULL), IVM_OK);
    ivm__step_init(&step, engine, &stats, &error);
    memset(columns, 0, sizeof columns);
    part = (ivm__part){ .table = table, .change = IVM_INSERT, .columns_count = columns_count, .columns = columns, .rows_count = ROWS };
}

static void end(void)
{
    ivm__engine_settle(engine);
    cr_assert_eq(ivm_engine_close(engine, NULL), IVM_OK);
}

static ivm__chunk *read_rows(uint64_t first, uint32_t count)
{
    ivm__chunk *chunk = NULL;
    ivm_status status = ivm__stage_chunk(&step, step.arena, &part, first, count, &chunk);
    cr_assert_eq(status, IVM_OK, "%s", error.message);
    cr_assert_eq(chunk->rows_count, count);
    return chunk;
}

static void refused(uint64_t first, uint32_t count, ivm_status status, const char *message)
{
    ivm__chunk *chunk;
    cr_assert_eq(ivm__stage_chunk(&step, step.arena, &part, first, count, &chunk), status);
    cr_assert_str_eq(error.message, message);
}

/* ---- In place -------------------------------------------------------------------------------------------------------------------- */

Test(engine_stage_rows, aligned_integers_are_read_in_place)
{
    begin(IVM_TIMESTAMP, false, 1);
    static int64_t cells[ROWS + 4];
    for (uint32_t i = 0; i < ROWS + 4; i++) {
        cells[i] = (int64_t)i * 1000 - 7;
    }
    uint8_t validity[ROWS / 8 + 2];
    memset(validity, 0xff, sizeof validity);
    columns[0] = (ivm_column_data){ .values = cells, .offset = 3 };
    cr_assert_eq(read_rows(10, 100)->columns[0].cells, &cells[13]);
    columns[0].validity = validity; /* no nulls there */
    cr_assert_eq(read_rows(10, 100)->columns[0].cells, &cells[13]);
    cr_assert_null(read_rows(10, 100)->columns[0].nulls);
    validity[113 >> 3] &= (uint8_t) ~(1u << (113 & 7));
    cr_assert_eq(read_rows(10, 100)->columns[0].cells, &cells[13], "the null lies past the block");
    ivm__chunk *chunk = read_rows(10, 101);
    cr_assert_neq(chunk->columns[0].cells, &cells[13]);
    cr_assert(ivm__is_null(&chunk->columns[0], 100) && ivm__word(&chunk->columns[0], 100) == 0);
    cr_assert(!ivm__is_null(&chunk->columns[0], 99) && (int64_t)ivm__word(&chunk->columns[0], 99) == cells[112]);
    end();
}

Test(engine_stage_rows, unaligned_integers_are_copied)
{
    begin(IVM_INT64, true, 1);
    static uint8_t bytes[(ROWS + 2) * 8];
    for (uint32_t shift = 1; shift < 8; shift++) {
        for (uint32_t i = 0; i < ROWS; i++) {
            int64_t value = (int64_t)i << 33;
            memcpy(bytes + shift + (i + 1) * 8, &value, 8);
        }
        columns[0] = (ivm_column_data){ .values = bytes + shift, .offset = 1 };
        ivm__chunk *chunk = read_rows(0, ROWS);
        cr_assert_eq((uintptr_t)chunk->columns[0].cells % 8, 0);
        for (uint32_t i = 0; i < ROWS; i++) {
            cr_assert_eq(ivm__word(&chunk->columns[0], i), (uint64_t)i << 33);
        }
    }
    end();
}

Test(engine_stage_rows, floats_are_read_in_place_unless_two_forms_are_one_value)
{
    begin(IVM_FLOAT64, false, 1);
    static double cells[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        cells[i] = i * 0.5 - 3;
    }
    cells[0] = -INFINITY;
    columns[0].values = cells;
    cr_assert_eq(read_rows(0, ROWS)->columns[0].cells, cells);
    cells[5] = -0.0;
    ivm__chunk *chunk = read_rows(0, ROWS);
    cr_assert_eq(ivm__word(&chunk->columns[0], 5), 0);
    cr_assert_eq(ivm__word(&chunk->columns[0], 0), ivm__float_word(-INFINITY));
    cr_assert(signbit(cells[5]), "the caller's array is as it was");
    cr_assert_eq(read_rows(6, 10)->columns[0].cells, &cells[6]);
    uint64_t odd_nan = 0xfff0000000000001ull;
    memcpy(&cells[7], &odd_nan, sizeof odd_nan);
    cr_assert_eq(ivm__word(&read_rows(6, 10)->columns[0], 1), ivm__float_word(NAN));
    end();
}

Test(engine_stage_rows, decimals_are_read_in_place_and_checked)
{
    begin(IVM_DECIMAL(5, 2), false, 1);
    static _Alignas(16) ivm__wide cells[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        cells[i] = i % 2 ? 99999 : -99999;
    }
    columns[0].values = cells;
    cr_assert_eq(read_rows(0, ROWS)->columns[0].cells, cells);
    static _Alignas(16) uint8_t bytes[ROWS * 16 + 8];
    memcpy(bytes + 8, cells, sizeof cells);
    columns[0].values = bytes + 8;
    ivm__chunk *chunk = read_rows(1, ROWS - 1);
    cr_assert(ivm__wide_cell(&chunk->columns[0], 0) == 99999 && ivm__wide_cell(&chunk->columns[0], 1) == -99999);
    cr_assert_eq((uintptr_t)chunk->columns[0].cells % 16, 0);
    columns[0].values = cells;
    cells[1] = 1;
    cells[70] = -100000;
    refused(0, ROWS - 1, IVM_TYPE_MISMATCH, "table t, row 70, column a: -1000.00 is no decimal(5,2)");
    uint8_t validity[ROWS / 8 + 1];
    memset(validity, 0xff, sizeof validity);
    validity[70 >> 3] &= (uint8_t) ~(1u << (70 & 7));
    columns[0].validity = validity;
    chunk = read_rows(0, ROWS - 1);
    cr_assert(ivm__is_null(&chunk->columns[0], 70) && ivm__wide_cell(&chunk->columns[0], 70) == 0, "what lies at a null is nothing");
    end();
}

/* ---- Widened --------------------------------------------------------------------------------------------------------------------- */

Test(engine_stage_rows, bits_begin_anywhere)
{
    begin(IVM_BOOL, false, 1);
    static uint8_t bits[ROWS / 8 + 4], validity[ROWS / 8 + 4];
    uint64_t state = 88172645463325252ull;
    for (uint32_t i = 0; i < sizeof bits; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        bits[i] = (uint8_t)state;
        validity[i] = i < 12 ? 0xff : (uint8_t)(state >> 8);
    }
    columns[0] = (ivm_column_data){ .values = bits, .validity = validity };
    for (uint32_t offset = 0; offset < 20; offset++) {
        columns[0].offset = offset;
        for (uint32_t count = 1; count < 90; count += 1 + count / 20) {
            ivm__chunk *chunk = read_rows(3, count);
            bool any_null = false;
            for (uint32_t i = 0; i < count; i++) {
                size_t at = offset + 3 + i;
                bool null = !(validity[at / 8] >> at % 8 & 1), bit = bits[at / 8] >> at % 8 & 1;
                any_null |= null;
                cr_assert_eq(ivm__is_null(&chunk->columns[0], i), null, "offset %u, row %u of %u", offset, i, count);
                cr_assert_eq(ivm__word(&chunk->columns[0], i), !null && bit);
            }
            cr_assert_eq(chunk->columns[0].nulls != NULL, any_null);
        }
        ivm__arena_reset(step.arena);
    }
    end();
}

Test(engine_stage_rows, dates_keep_their_sign)
{
    begin(IVM_DATE, false, 1);
    static int32_t days[ROWS + 1];
    for (uint32_t i = 0; i <= ROWS; i++) {
        days[i] = (int32_t)i - 100;
    }
    columns[0] = (ivm_column_data){ .values = (uint8_t *)days + 4, .offset = 0 };
    ivm__chunk *chunk = read_rows(0, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        cr_assert_eq((int64_t)ivm__word(&chunk->columns[0], i), (int64_t)i - 99);
    }
    end();
}

Test(engine_stage_rows, strings_are_interned)
{
    begin(IVM_STRING, false, 1);
    int32_t offsets[] = { 2, 4, 6, 8, 8, 11 };
    uint8_t validity = 0x1f & ~4; /* the third is null */
    columns[0] = (ivm_column_data){ .values = "..abab!!cd\n", .offsets = offsets, .validity = &validity };
    part.rows_count = 5;
    ivm__chunk *chunk = read_rows(0, 5);
    const ivm__vector *texts = &chunk->columns[0];
    cr_assert_str_eq(ivm__text_cell(texts, 0)->bytes, "ab");
    cr_assert_eq(ivm__text_cell(texts, 0), ivm__text_cell(texts, 1));
    cr_assert(ivm__is_null(texts, 2) && ivm__word(texts, 2) == 0);
    cr_assert_eq(ivm__text_cell(texts, 3)->size, 0);
    cr_assert_str_eq(ivm__text_cell(texts, 4)->bytes, "cd\n");
    int32_t empty[] = { 0, 0, 0 };
    columns[0] = (ivm_column_data){ .offsets = empty };
    cr_assert_eq(ivm__text_cell(&read_rows(0, 2)->columns[0], 1), ivm__text_cell(texts, 3), "no bytes are needed for none");
    end();
}

Test(engine_stage_rows, wrong_offsets_are_refused)
{
    begin(IVM_STRING, false, 1);
    int32_t offsets[] = { 0, 2, 1, 4 };
    columns[0] = (ivm_column_data){ .values = "abcd", .offsets = offsets };
    part.rows_count = 3;
    refused(0, 3, IVM_INVALID_ARGUMENT, "table t, row 1, column a: its offsets are wrong");
    cr_assert_str_eq(ivm__text_cell(&read_rows(2, 1)->columns[0], 0)->bytes, "bcd");
    offsets[0] = -1;
    refused(0, 1, IVM_INVALID_ARGUMENT, "table t, row 0, column a: its offsets are wrong");
    offsets[0] = 0;
    columns[0].values = NULL;
    refused(0, 1, IVM_INVALID_ARGUMENT, "table t, row 0, column a: its offsets are wrong");
    end();
}

/* ---- Mistakes -------------------------------------------------------------------------------------------------------------------- */

Test(engine_stage_rows, the_first_row_s_mistake_is_told)
{
    begin(IVM_DECIMAL(3, 1), true, 2);
    static ivm__wide a[ROWS], b[ROWS];
    static uint8_t a_valid[ROWS / 8 + 1], b_valid[ROWS / 8 + 1];
    memset(a_valid, 0xff, sizeof a_valid);
    memset(b_valid, 0xff, sizeof b_valid);
    columns[0] = (ivm_column_data){ .values = a, .validity = a_valid };
    columns[1] = (ivm_column_data){ .values = b, .validity = b_valid };
    cr_assert_not_null(read_rows(0, ROWS));
    a_valid[9] &= 0xfe; /* row 72 */
    refused(60, 100, IVM_NULL_VIOLATION, "table t, row 72, column a: null where none may be");
    b[72] = 1000;
    refused(60, 100, IVM_TYPE_MISMATCH, "table t, row 72, column b: 100.0 is no decimal(3,1)");
    b_valid[8] &= 0x7f; /* row 71 */
    refused(60, 100, IVM_NULL_VIOLATION, "table t, row 71, column b: null where none may be");
    a[70] = -1000;
    refused(60, 100, IVM_TYPE_MISMATCH, "table t, row 70, column a: -100.0 is no decimal(3,1)");
    end();
}

/* ---- Weights --------------------------------------------------------------------------------------------------------------------- */

Test(engine_stage_rows, weights_of_one_are_none)
{
    begin(IVM_INT64, false, 1);
    static int64_t cells[ROWS], weights[ROWS];
    columns[0].values = cells;
    part.change = IVM_WEIGHTED;
    part.weights = weights;
    for (uint32_t i = 0; i < ROWS; i++) {
        weights[i] = i < 100 ? 1 : i - 150;
    }
    cr_assert_null(read_rows(0, 100)->weights);
    ivm__chunk *chunk = read_rows(90, 100);
    for (uint32_t i = 0; i < 100; i++) {
        cr_assert_eq(ivm__chunk_weight(chunk, i), weights[90 + i]);
    }
    end();
}
