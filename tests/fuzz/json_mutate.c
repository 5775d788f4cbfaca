/* Changes JSON as JSON: one line of the input (a plan is a single one) is parsed, one of its values is replaced by another one of the lines, by a number
 * or word that is seldom right, taken out, or doubled, and the line is written again. Now and then, and where there is no JSON, bytes are changed. */
#include "fuzz.h"

#include <jansson.h>
#include <string.h>

#define VALUES_MOST 2048u

static uint64_t state;

static size_t draw(size_t below)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t drawn = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
    return (size_t)((drawn ^ drawn >> 29) % below);
}

/* A value and what it stands in: an object by its key, or a list. */
typedef struct place {
    json_t *parent, *value;
    const char *key;
    size_t at;
} place;

typedef struct places {
    place all[VALUES_MOST];
    size_t count;
} places;

static void place_add(places *found, json_t *parent, const char *key, size_t at, json_t *value);

static void places_find(places *found, json_t *in)
{
    const char *key;
    json_t *value;
    size_t at;
    json_object_foreach(in, key, value)
    {
        place_add(found, in, key, 0, value);
    }
    json_array_foreach(in, at, value)
    {
        place_add(found, in, NULL, at, value);
    }
}

static void place_add(places *found, json_t *parent, const char *key, size_t at, json_t *value)
{
    if (found->count < VALUES_MOST) {
        found->all[found->count++] = (place){ parent, value, key, at };
        places_find(found, value);
    }
}

static json_t *odd_value(void)
{
    static const char *const words[] = { "",
                                         "id",
                                         "a",
                                         "t.id",
                                         "sum",
                                         "count",
                                         "NaN",
                                         "-Infinity",
                                         "9223372036854775808",
                                         "int64",
                                         "string",
                                         "float64",
                                         "decimal(38,38)",
                                         "bool",
                                         "not null",
                                         "tracked",
                                         "deferred",
                                         "99999-01-01",
                                         "avg",
                                         "min",
                                         "count_distinct",
                                         "left",
                                         "full",
                                         "anti",
                                         "except_all" };
    static const json_int_t numbers[] = { 0, 1, -1, 2, 63, 64, 65, INT64_MAX, INT64_MIN, 1000000 };
    switch (draw(6)) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(draw(2));
    case 2:
        return json_real(draw(2) ? 1e308 : -0.5);
    case 3:
        return draw(2) ? json_array() : json_object();
    case 4:
        return json_integer(numbers[draw(sizeof numbers / sizeof *numbers)]);
    default:
        return json_string(words[draw(sizeof words / sizeof *words)]);
    }
}

static void place_set(const place *at, json_t *value)
{
    if (at->key) {
        json_object_set_new(at->parent, at->key, value);
    } else {
        json_array_set_new(at->parent, at->at, value);
    }
}

static void place_change(const place *at, const place *other)
{
    switch (draw(5)) {
    case 0:
        if (at->key) {
            json_object_del(at->parent, at->key);
        } else {
            json_array_remove(at->parent, at->at);
        }
        return;
    case 1:
        if (!at->key) {
            json_array_insert_new(at->parent, draw(json_array_size(at->parent) + 1), json_deep_copy(other->value));
            return;
        }
        place_set(at, odd_value());
        return;
    case 2:
        place_set(at, odd_value());
        return;
    default:
        place_set(at, json_deep_copy(other->value));
        return;
    }
}

/* The line as text anew, for free(); NULL: it is no JSON. */
static char *line_change(const uint8_t *line, size_t size, const uint8_t *donor, size_t donor_size)
{
    static places found, given;
    json_t *json = json_loadb((const char *)line, size, JSON_ALLOW_NUL, NULL),
           *from = json_loadb((const char *)donor, donor_size, JSON_ALLOW_NUL, NULL);
    char *text = NULL;
    found.count = given.count = 0;
    places_find(&found, json);
    places_find(&given, from ? from : json);
    if (found.count && given.count) {
        place_change(&found.all[draw(found.count)], &given.all[draw(given.count)]);
        text = json_dumps(json, 0);
    }
    json_decref(json);
    json_decref(from);
    return text;
}

/* A line drawn from the input, without its end. */
static size_t line_draw(const uint8_t *data, size_t size, size_t *line_size)
{
    size_t start = draw(size), end;
    while (start > 0 && data[start - 1] != '\n') {
        start--;
    }
    for (end = start; end < size && data[end] != '\n';) {
        end++;
    }
    *line_size = end - start;
    return start;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
    size_t line_size = 0, donor_size = 0, start = 0, donor = 0;
    char *text = NULL;
    state = seed;
    if (size && draw(8)) {
        start = line_draw(data, size, &line_size);
        donor = line_draw(data, size, &donor_size);
        text = line_change(data + start, line_size, data + donor, donor_size);
    }
    size_t made = text ? strlen(text) : 0;
    if (!text || made > size_max - (size - line_size)) {
        free(text);
        return LLVMFuzzerMutate(data, size, size_max);
    }
    memmove(data + start + made, data + start + line_size, size - start - line_size);
    memcpy(data + start, text, made);
    free(text);
    return size - line_size + made;
}
