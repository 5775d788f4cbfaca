/* Clock, medians and figures; see measure.h. */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Read by jemalloc when the process starts: pages that were freed stay mapped, so that runs after the first measure no page faults. */
extern const char *malloc_conf;
__attribute__((visibility("default"))) const char *malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1,lg_extent_max_active_fit:63";

uint64_t clock_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
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

void figure_print(const figure *f)
{
    printf("{\"bench\": \"%s\", \"metric\": \"%s\", \"value\": %.6g", f->bench, f->metric, f->value);
    if (f->parameter) {
        printf(", \"%s\": %llu", f->parameter, (unsigned long long)f->parameter_value);
    }
    puts("}");
    fflush(stdout);
}
