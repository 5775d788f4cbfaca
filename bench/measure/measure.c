/* Clock, medians and figures; see measure.h. */
#include "measure.h"

#include "arena.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Read by jemalloc when the process starts: pages that were freed stay mapped, so that runs after the first measure no page faults. */
extern const char *malloc_conf;
__attribute__((visibility("default"))) const char *malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1,lg_extent_max_active_fit:63";

/* ---- Time ------------------------------------------------------------------------------------------------------------------------ */

static clockid_t clock_used = CLOCK_MONOTONIC;

void clock_select(clock_kind kind)
{
    clock_used = kind == CLOCK_CPU ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
}

uint64_t clock_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(clock_used, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int value_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, value_order);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

spread spread_of(double *values, size_t count)
{
    double middle = median(values, count);
    return (spread){ middle, values[0], values[count - 1] };
}

/* ---- Figures --------------------------------------------------------------------------------------------------------------------- */

static struct {
    figure *figures;
    size_t count, capacity;
    piece_arena texts;
    bool lines;
} kept;

static void figure_write(FILE *file, const figure *f)
{
    fprintf(file, "{\"bench\": \"%s\", \"metric\": \"%s\", \"value\": %.6g", f->bench, f->metric, f->value);
    if (f->parameter) {
        fprintf(file, ", \"%s\": %llu", f->parameter, (unsigned long long)f->parameter_value);
    }
    if (f->variant) {
        fprintf(file, ", \"variant\": \"%s\"", f->variant);
    }
    if (f->runs) {
        fprintf(file, ", \"low\": %.6g, \"high\": %.6g, \"runs\": %llu", f->low, f->high, (unsigned long long)f->runs);
    }
    if (f->rows && !(f->parameter && strcmp(f->parameter, "rows") == 0)) {
        fprintf(file, ", \"rows\": %llu", (unsigned long long)f->rows);
    }
    fputs("}\n", file);
}

void figure_print(const figure *f)
{
    figure_write(stdout, f);
    fflush(stdout);
}

void figures_json(bool lines)
{
    kept.lines = lines;
}

static const char *text_keep(const char *text)
{
    return text ? arena_text(&kept.texts, text, strlen(text)) : NULL;
}

void figure_add(const figure *f)
{
    kept.figures = memory_room(kept.figures, kept.count, &kept.capacity, sizeof *kept.figures);
    figure *mine = &kept.figures[kept.count++];
    *mine = *f;
    mine->bench = text_keep(f->bench);
    mine->metric = text_keep(f->metric);
    mine->parameter = text_keep(f->parameter);
    mine->variant = text_keep(f->variant);
    if (kept.lines) {
        figure_print(f);
    }
}

size_t figures_count(void)
{
    return kept.count;
}

void figures_write(FILE *file, size_t first)
{
    for (size_t i = first; i < kept.count; i++) {
        figure_write(file, &kept.figures[i]);
    }
}

static bool text_equal(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

const figure *figures_find(const char *bench, const char *metric, const char *variant)
{
    for (size_t i = kept.count; i-- > 0;) {
        const figure *f = &kept.figures[i];
        if (text_equal(f->bench, bench) && text_equal(f->metric, metric) && (!variant || text_equal(f->variant, variant))) {
            return f;
        }
    }
    return NULL;
}
