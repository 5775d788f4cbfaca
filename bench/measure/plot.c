/* Drawing figures; see plot.h. A figure's unit is the end of its metric's name: _ns, _us, _bytes; any other is a ratio or a count. Figures with
 * equal measurement, unit and parameter share a drawing, and those with equal metric and variant in it a line. Some drawings show chosen lines alone, by
 * words; all others every line there is, by metric and variant. */
#include "plot.h"

#include "arena.h"
#include "conditions.h"
#include "option.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TICKS_MAX 12

typedef struct point {
    char drawing[160]; /* "star-batch-ns" */
    char line[160];    /* "engine_ns star4 uniform" */
    const char *words; /* what a chosen line is called; else NULL */
    const char *unit, *parameter;
    double x, value, low, high;
} point;

typedef struct point_list {
    point *points;
    size_t count, capacity;
    json_t *lines; /* array that the points' texts borrow */
} point_list;

/* What a drawing is headed, and its axis; its chosen lines come after it, each by its words. */
typedef struct wording {
    const char *drawing, *line, *words, *axis;
} wording;

static const wording wordings[] = {
    { "star-batch-ns", NULL, "Time for each fact row, by the size of the batch (log scales, lower is faster)", "fact rows in a batch" },
    { "star-batch-ns", "engine_ns star4 uniform sweep", "STAR4: ivm" },
    { "star-batch-ns", "floor_ns star4 uniform sweep", "STAR4: the floor, a loop by hand" },
    { "star-batch-ns", "engine_ns star4l uniform sweep", "STAR4L: ivm" },
    { "star-batch-ns", "floor_ns star4l uniform sweep", "STAR4L: the floor" },
    { "prune-dimensions-ns", NULL, "Time for each fact row, while every dimension gains rows (log scales, lower is faster)", "dimensions" },
    { "prune-dimensions-ns", "pruned_ns", "pruned by row" },
    { "prune-dimensions-ns", "telescoping_ns", "telescoping form, not pruned" },
    { "prune-dimensions-ns", "unpruned_ns", "Moebius form, not pruned" },
    { "scale-facts-ns", NULL, "Time of one changed row, by fact rows that are there (log scales, lower is faster)", "fact rows" },
    { "scale-facts-ns", "fact_insert_ns", "a fact row comes" },
    { "scale-facts-ns", "fact_delete_ns", "a fact row goes" },
    { "scale-facts-ns", "dimension_update_ns", "a dimension row changes" },
};

/* The words for a line of a drawing, for the drawing itself where `line` is NULL; NULL: there are none. */
static const wording *wording_find(const char *drawing, const char *line)
{
    for (size_t i = 0; i < sizeof wordings / sizeof *wordings; i++) {
        const wording *w = &wordings[i];
        if (strcmp(w->drawing, drawing) == 0 && (line && w->line ? strcmp(w->line, line) == 0 : line == w->line)) {
            return w;
        }
    }
    return NULL;
}

bool plot_possible(const char *directory)
{
    if (!*directory || strchr(directory, '\'')) {
        usage_error("--plot wants a directory, without a quote in its name");
        return false;
    }
    if (system("gnuplot --version >/dev/null 2>&1") != 0) {
        usage_error("--plot needs gnuplot, which is not there");
        return false;
    }
    if (mkdir(directory, 0777) != 0 && errno != EEXIST) {
        usage_error("%s: cannot be made: %s", directory, strerror(errno));
        return false;
    }
    return true;
}

/* ---- Reading the lines --------------------------------------------------------------------------------------------------------- */

static const char *unit_of(const char *metric)
{
    const char *end = strrchr(metric, '_');
    return end && (strcmp(end, "_ns") == 0 || strcmp(end, "_us") == 0 || strcmp(end, "_bytes") == 0) ? end + 1 : "value";
}

/* The member that is none of those every figure may have. "rows" beside another is a mere size, alone it is the parameter. */
static const char *parameter_of(json_t *line)
{
    static const char *const others[] = { "bench", "metric", "value", "variant", "low", "high", "runs", "rows" };
    const char *key, *parameter = json_object_get(line, "rows") && !json_object_get(line, "runs") ? "rows" : NULL;
    json_t *value;
    json_object_foreach(line, key, value)
    {
        bool other = !json_is_integer(value);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            other |= strcmp(key, others[i]) == 0;
        }
        parameter = other ? parameter : key;
    }
    return parameter;
}

static double number_of(json_t *line, const char *key, double otherwise)
{
    json_t *value = json_object_get(line, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static void point_add(point_list *list, json_t *line)
{
    const char *bench = json_string_value(json_object_get(line, "bench")), *metric = json_string_value(json_object_get(line, "metric"));
    const char *variant = json_string_value(json_object_get(line, "variant"));
    if (!bench || !metric || strcmp(metric, "conditions") == 0 || json_object_get(line, "bar")) {
        return;
    }
    list->points = memory_room(list->points, list->count, &list->capacity, sizeof *list->points);
    point *p = &list->points[list->count++];
    *p = (point){ .unit = unit_of(metric), .parameter = parameter_of(line), .value = number_of(line, "value", 0) };
    p->x = p->parameter ? number_of(line, p->parameter, 0) : 0;
    snprintf(p->drawing, sizeof p->drawing, "%s-%s%s%s", bench, p->parameter ? p->parameter : "", p->parameter ? "-" : "", p->unit);
    /* Percentiles stand at one in how many is above them, so that the tail is as wide as the rest. */
    if (p->parameter && strcmp(p->parameter, "per_mille") == 0 && p->x < 1000) {
        p->x = 1000 / (1000 - p->x);
        p->parameter = "one push in so many is above";
    }
    p->low = number_of(line, "low", p->value);
    p->high = number_of(line, "high", p->value);
    snprintf(p->line, sizeof p->line, "%s%s%s", metric, variant ? " " : "", variant ? variant : "");
    const wording *chosen = wording_find(p->drawing, p->line);
    p->words = chosen ? chosen->words : NULL;
}

/* Leaves out what stands beside the chosen lines of a drawing. */
static void points_choose(point_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        bool chosen = list->points[i].words != NULL, others = false;
        for (size_t j = 0; j < list->count && !chosen; j++) {
            others |= list->points[j].words && strcmp(list->points[j].drawing, list->points[i].drawing) == 0;
        }
        list->points[kept] = list->points[i];
        kept += chosen || !others;
    }
    list->count = kept;
}

static bool lines_read(point_list *list, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "r");
    list->lines = json_array();
    if (!file || !list->lines) {
        usage_error("%s: cannot be read", path);
        return false;
    }
    while (getline(&text, &size, file) > 0) {
        json_t *line = json_loads(text, 0, NULL);
        if (line && json_array_append_new(list->lines, line) == 0) {
            point_add(list, line);
        }
    }
    free(text);
    fclose(file);
    points_choose(list);
    return true;
}

/* ---- Drawing ------------------------------------------------------------------------------------------------------------------- */

/* The first point of this drawing before `end` that is in line with p. */
static bool line_begun(const point_list *list, size_t end, const point *p)
{
    for (size_t i = 0; i < end; i++) {
        if (strcmp(list->points[i].drawing, p->drawing) == 0 && (!p->parameter || strcmp(list->points[i].line, p->line) == 0)) {
            return true;
        }
    }
    return false;
}

/* Whether the points of a drawing stand at two places at least; those of one place are drawn as bars. */
static bool drawing_wide(const point_list *list, const point *of)
{
    bool wide = false;
    for (size_t i = 0; i < list->count; i++) {
        wide |= strcmp(list->points[i].drawing, of->drawing) == 0 && list->points[i].x != of->x;
    }
    return of->parameter && wide;
}

/* Whether the largest value of a drawing is a hundred times the smallest, so that bars need a logarithmic axis. */
static bool drawing_far(const point_list *list, const point *of)
{
    double low = of->value, high = of->value;
    for (size_t i = 0; i < list->count; i++) {
        const point *p = &list->points[i];
        if (strcmp(p->drawing, of->drawing) == 0 && p->value > 0) {
            low = p->value < low || low <= 0 ? p->value : low;
            high = p->value > high ? p->value : high;
        }
    }
    return high > 100 * low;
}

static void drawing_begin(FILE *gnuplot, const char *directory, const point *p)
{
    const wording *head = wording_find(p->drawing, NULL);
    fprintf(gnuplot, "reset\nset terminal svg size 1000,600 background 'white' noenhanced\nset output '%s/%s.svg'\nset title '%s'\n",
            directory, p->drawing, head ? head->words : p->drawing);
    fprintf(gnuplot, "set ylabel '%s'\nset xlabel '%s'\nset format y '%%.9g'\nset grid\n",
            strcmp(p->unit, "ns") == 0 ? "nanoseconds" : p->unit,
            head           ? head->axis
            : p->parameter ? p->parameter
                           : "");
}

/* A tick where points are, if these are few. */
static void ticks_draw(FILE *gnuplot, const point_list *list, const point *of)
{
    double places[TICKS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const point *p = &list->points[i];
        bool known = strcmp(p->drawing, of->drawing) != 0;
        for (size_t t = 0; t < count; t++) {
            known |= places[t] == p->x;
        }
        if (!known && count == TICKS_MAX) {
            return;
        }
        if (!known) {
            places[count++] = p->x;
        }
    }
    for (size_t t = 0; t < count; t++) {
        fprintf(gnuplot, "%s '%.9g' %.9g", t ? "," : "set xtics (", places[t], places[t]);
    }
    fputs(count ? ")\n" : "", gnuplot);
}

/* A logarithmic axis with some room beside the first point and the last. */
static void range_draw(FILE *gnuplot, const point_list *list, const point *of)
{
    double low = of->x, high = of->x;
    for (size_t i = 0; i < list->count; i++) {
        const point *p = &list->points[i];
        if (strcmp(p->drawing, of->drawing) == 0) {
            low = p->x < low ? p->x : low;
            high = p->x > high ? p->x : high;
        }
    }
    fprintf(gnuplot, "set xrange [%.9g:%.9g]\n", low * 0.8, high * 1.25);
}

static void lines_draw(FILE *gnuplot, const point_list *list, const point *of)
{
    size_t lines = 0;
    bool zero = false;
    for (size_t i = 0; i < list->count; i++) {
        zero |= strcmp(list->points[i].drawing, of->drawing) == 0 && list->points[i].x <= 0;
    }
    fprintf(gnuplot, "set logscale %s\nset key outside below\n", zero ? "y" : "xy");
    ticks_draw(gnuplot, list, of);
    if (!zero) {
        range_draw(gnuplot, list, of);
    }
    for (size_t i = 0; i < list->count; i++) {
        const point *first = &list->points[i];
        if (strcmp(first->drawing, of->drawing) != 0 || line_begun(list, i, first)) {
            continue;
        }
        fprintf(gnuplot, "$line%zu << E\n", lines++);
        for (size_t j = i; j < list->count; j++) {
            const point *p = &list->points[j];
            if (strcmp(p->drawing, of->drawing) == 0 && strcmp(p->line, first->line) == 0 && p->value > 0) {
                fprintf(gnuplot, "%.9g %.9g %.9g %.9g\n", p->x, p->value, p->low, p->high);
            }
        }
        fputs("E\n", gnuplot);
    }
    size_t line = 0;
    for (size_t i = 0; i < list->count; i++) {
        const point *first = &list->points[i];
        if (strcmp(first->drawing, of->drawing) == 0 && !line_begun(list, i, first)) {
            fprintf(gnuplot, "%s $line%zu using 1:2:3:4 with yerrorlines title '%s'", line ? "," : "plot", line,
                    first->words ? first->words : first->line);
            line++;
        }
    }
    fputs("\n", gnuplot);
}

static void bars_draw(FILE *gnuplot, const point_list *list, const point *of)
{
    fputs("set style fill solid 0.6\nset boxwidth 0.7\nset xtics rotate by -40\nset bmargin 12\n$bars << E\n", gnuplot);
    size_t place = 0;
    for (size_t i = 0; i < list->count; i++) {
        const point *p = &list->points[i];
        if (strcmp(p->drawing, of->drawing) == 0 && p->value > 0) {
            fprintf(gnuplot, "%zu \"%s\" %.9g %.9g %.9g\n", place++, p->words ? p->words : p->line, p->value, p->low, p->high);
        }
    }
    fprintf(gnuplot, "E\n%s\nset xrange [-1:%zu]\n", drawing_far(list, of) ? "set logscale y" : "set yrange [0:*]", place);
    fputs("plot $bars using 1:3:xtic(2) with boxes notitle, $bars using 1:3:4:5 with yerrorbars notitle\n", gnuplot);
}

/* Whether there is anything above 0 to draw: the axis is logarithmic. */
static bool drawing_filled(const point_list *list, const point *of)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->points[i].drawing, of->drawing) == 0 && list->points[i].value > 0) {
            return true;
        }
    }
    return false;
}

static bool drawings_make(const point_list *list, const char *directory)
{
    FILE *gnuplot = popen("gnuplot", "w");
    if (!gnuplot) {
        return false;
    }
    for (size_t i = 0; i < list->count; i++) {
        const point *p = &list->points[i];
        bool begun = false;
        for (size_t j = 0; j < i && !begun; j++) {
            begun = strcmp(list->points[j].drawing, p->drawing) == 0;
        }
        if (begun || !drawing_filled(list, p)) {
            continue;
        }
        drawing_begin(gnuplot, directory, p);
        if (drawing_wide(list, p)) {
            lines_draw(gnuplot, list, p);
        } else {
            bars_draw(gnuplot, list, p);
        }
    }
    return pclose(gnuplot) == 0;
}

bool plot_write(const char *directory, const char *name, clock_kind clock)
{
    char path[4096];
    point_list list = { 0 };
    snprintf(path, sizeof path, "%s/%s.jsonl", directory, name);
    FILE *file = fopen(path, "w");
    if (!file) {
        usage_error("%s: cannot be written: %s", path, strerror(errno));
        return false;
    }
    figures_write(file, 0);
    conditions_print(file, name, true, clock);
    bool drawn = fclose(file) == 0 && lines_read(&list, path) && drawings_make(&list, directory);
    if (!drawn) {
        usage_error("%s: could not be drawn", directory);
    }
    json_decref(list.lines);
    free(list.points);
    return drawn;
}
