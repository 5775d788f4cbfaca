/* `ivm bench dump`: writes the batches of one workload into a folder (star_stream.h has the format), from the seeded rows of star_data.h. */
#include "command.h"
#include "measure.h"
#include "option.h"
#include "star_stream.h"

#include <string.h>

static const char help[] = "usage: ivm bench dump WORKLOAD DIRECTORY [OPTIONS]\n"
                           "\n"
                           "Writes a workload's batches into an existing folder: star.txt says what star.bin holds.\n"
                           "\n"
                           "  insert      fact rows come in batches; one row a batch makes one-row pushes\n"
                           "  mixed       each batch: 1 % new dimension rows, the rest fact rows, of which 90 % come, some to the new\n"
                           "              dimension rows, and 10 % go\n"
                           "  dimension   one dimension row a push gets another attribute; dimensions of 1,000 rows\n"
                           "\n"
                           "  --star N    4 (the default) or 4l: dimensions of 1,000,000, 100,000, 10,000 and 1,000 rows\n"
                           "  --base N    fact rows that are there before, pushed 100,000 at a time (default 100000)\n"
                           "  --batch N   rows a batch (default 1000)\n"
                           "  --pushes N  batches that are timed (default 1000)\n"
                           "  --warm N    batches before them that are not (default 4)\n";

#define BASE_BATCH 100000
#define UPDATED_DIMENSION_ROWS 1000
#define SPREAD_PRIME 2654435761u /* rows are picked in this step: far apart, none twice */

enum { WORKLOAD_INSERT, WORKLOAD_MIXED, WORKLOAD_DIMENSION, WORKLOADS };
static const char *const workload_words[WORKLOADS + 1] = { "insert", "mixed", "dimension", NULL };

typedef struct star_dump {
    int workload, star;
    uint64_t base, batch, pushes, warm;
    uint64_t affected; /* fact rows under the dimension rows that timed pushes update */
    star_data data;
    FILE *text, *cells;
} star_dump;

/* ---- Parts --------------------------------------------------------------------------------------------------------------------- */

static void part_text(star_dump *dump, uint32_t table, char sign, size_t rows)
{
    if (table == dump->data.shape.dimensions) {
        fprintf(dump->text, " f %c %zu", sign, rows);
    } else {
        fprintf(dump->text, " d%u %c %zu", table, sign, rows);
    }
}

static void dimension_rows_write(star_dump *dump, uint32_t d, size_t first, size_t count)
{
    part_text(dump, d, '+', count);
    fwrite(dump->data.keys[d] + first, sizeof(int64_t), count, dump->cells);
    fwrite(dump->data.attributes[d] + first, sizeof(int64_t), count, dump->cells);
}

static void dimension_row_write(star_dump *dump, uint32_t d, size_t row, char sign)
{
    part_text(dump, d, sign, 1);
    fwrite(dump->data.keys[d] + row, sizeof(int64_t), 1, dump->cells);
    fwrite(dump->data.attributes[d] + row, sizeof(int64_t), 1, dump->cells);
}

static void fact_rows_write(star_dump *dump, size_t first, size_t count)
{
    part_text(dump, dump->data.shape.dimensions, '+', count);
    for (uint32_t c = 0; c <= dump->data.shape.dimensions; c++) {
        fwrite(dump->data.fact_columns[c] + first, sizeof(int64_t), count, dump->cells);
    }
}

/* Rows that were there before: the ones of numbers [first, first + count) in an order that jumps about. */
static void going_rows_write(star_dump *dump, size_t first, size_t count)
{
    part_text(dump, dump->data.shape.dimensions, '-', count);
    for (uint32_t c = 0; c <= dump->data.shape.dimensions; c++) {
        for (size_t i = first; i < first + count; i++) {
            fwrite(dump->data.fact_columns[c] + (uint64_t)i * SPREAD_PRIME % dump->base, sizeof(int64_t), 1, dump->cells);
        }
    }
}

/* ---- Pushes -------------------------------------------------------------------------------------------------------------------- */

static uint32_t first_rows(const star_dump *dump, uint32_t d)
{
    return dump->workload == WORKLOAD_MIXED ? dump->data.shape.rows_first : star_dimension_rows(&dump->data.shape, d);
}

static void load_write(star_dump *dump)
{
    fputs("push load", dump->text);
    for (uint32_t d = 0; d < dump->data.shape.dimensions; d++) {
        dimension_rows_write(dump, d, 0, first_rows(dump, d));
    }
    fputc('\n', dump->text);
    for (size_t at = 0; at < dump->base; at += BASE_BATCH) {
        fputs("push load", dump->text);
        fact_rows_write(dump, at, dump->base - at < BASE_BATCH ? dump->base - at : BASE_BATCH);
        fputc('\n', dump->text);
    }
}

static void mixed_write(star_dump *dump, size_t push)
{
    const star_shape *shape = &dump->data.shape;
    size_t going = (dump->batch - shape->rows_step * shape->dimensions) - shape->fact_rows_step;
    for (uint32_t d = 0; d < shape->dimensions; d++) {
        dimension_rows_write(dump, d, shape->rows_first + push * shape->rows_step, shape->rows_step);
    }
    going_rows_write(dump, push * going, going);
    fact_rows_write(dump, dump->base + push * shape->fact_rows_step, shape->fact_rows_step);
}

static void dimension_write(star_dump *dump, size_t push, random_state *random)
{
    const star_shape *shape = &dump->data.shape;
    uint32_t d = (uint32_t)(push % shape->dimensions), limit = shape->attributes[d];
    size_t row = (uint64_t)(push / shape->dimensions) * SPREAD_PRIME % shape->dimension_rows;
    int64_t *attribute = &dump->data.attributes[d][row];
    dimension_row_write(dump, d, row, '-');
    *attribute = (*attribute + 1 + random_below(random, limit - 1)) % limit;
    dimension_row_write(dump, d, row, '+');
    for (size_t i = 0; push >= dump->warm && i < dump->base; i++) {
        dump->affected += dump->data.fact_columns[d][i] == dump->data.keys[d][row];
    }
}

static void pushes_write(star_dump *dump)
{
    random_state random = { 0x452821E638D01377ull };
    for (size_t push = 0; push < dump->warm + dump->pushes; push++) {
        fputs(push < dump->warm ? "push warm" : "push timed", dump->text);
        if (dump->workload == WORKLOAD_MIXED) {
            mixed_write(dump, push);
        } else if (dump->workload == WORKLOAD_DIMENSION) {
            dimension_write(dump, push, &random);
        } else {
            fact_rows_write(dump, dump->base + push * dump->batch, dump->batch);
        }
        fputc('\n', dump->text);
    }
}

/* ---- The command --------------------------------------------------------------------------------------------------------------- */

static star_shape shape_of(const star_dump *dump)
{
    uint64_t pushes = dump->warm + dump->pushes;
    star_shape shape = star_shape_named(dump->star ? STAR4L : STAR4, (uint32_t)(dump->base + pushes * dump->batch));
    if (dump->workload == WORKLOAD_MIXED) {
        uint32_t fresh = (uint32_t)(dump->batch / 100 / shape.dimensions), fact_rows = (uint32_t)dump->batch - fresh * shape.dimensions;
        shape.rows_first = shape.dimension_rows;
        shape.rows_step = fresh;
        shape.dimension_rows += (uint32_t)pushes * fresh;
        shape.fact_rows_first = (uint32_t)dump->base;
        shape.fact_rows_step = fact_rows - fact_rows / 10;
        shape.fact_rows = (uint32_t)dump->base + (uint32_t)pushes * shape.fact_rows_step;
    } else if (dump->workload == WORKLOAD_DIMENSION) {
        shape.dimension_rows = UPDATED_DIMENSION_ROWS;
        shape.fact_rows = (uint32_t)dump->base;
    }
    return shape;
}

static FILE *file_create(const char *directory, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return stream_view_open(path);
}

static void dump_write(star_dump *dump, const char *directory)
{
    star_shape shape = shape_of(dump);
    star_data_make(&dump->data, &shape);
    dump->text = file_create(directory, "star.txt");
    dump->cells = file_create(directory, "star.bin");
    fputs("ivm star 1\nattributes", dump->text);
    for (uint32_t d = 0; d < shape.dimensions; d++) {
        fprintf(dump->text, " %u", shape.attributes[d]);
    }
    fputc('\n', dump->text);
    load_write(dump);
    pushes_write(dump);
    if (dump->workload == WORKLOAD_DIMENSION) {
        fprintf(dump->text, "unit affected_fact_row %llu\n", (unsigned long long)dump->affected);
    } else {
        fprintf(dump->text, "unit changed_row %llu\n", (unsigned long long)(dump->pushes * dump->batch));
    }
    stream_view_close(dump->text);
    stream_view_close(dump->cells);
    star_data_free(&dump->data);
}

int dump_command(int argc, char **argv)
{
    star_dump dump = { .base = 100000, .batch = 1000, .pushes = 1000, .warm = 4 };
    static const char *const stars[] = { "4", "4l", NULL };
    int code;
    operand_list operands;
    const option_definition options[] = { { "--star", OPTION_WORD, &dump.star, stars }, { "--base", OPTION_NUMBER, &dump.base },
                                          { "--batch", OPTION_NUMBER, &dump.batch },    { "--pushes", OPTION_NUMBER, &dump.pushes },
                                          { "--warm", OPTION_NUMBER, &dump.warm },      { NULL } };
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        return code;
    }
    while (operands.count == 2 && dump.workload < WORKLOADS && strcmp(workload_words[dump.workload], operands.texts[0]) != 0) {
        dump.workload++;
    }
    if (operands.count != 2 || dump.workload == WORKLOADS) {
        return usage_error("bench dump takes a workload (insert, mixed, dimension) and a directory; --help says more");
    }
    if (dump.star && dump.workload != WORKLOAD_INSERT) {
        return usage_error("--star 4l goes with insert alone");
    }
    if (dump.workload == WORKLOAD_MIXED && (dump.batch < 400 || (dump.warm + dump.pushes) * (dump.batch / 10) > dump.base)) {
        return usage_error("mixed wants batches of at least 400 rows and a base that outlasts the rows that go");
    }
    if (dump.base + (dump.warm + dump.pushes) * dump.batch > UINT32_MAX) {
        return usage_error("that is more than %u rows", UINT32_MAX);
    }
    dump_write(&dump, operands.texts[1]);
    return EXIT_HOLDS;
}
