/* Scenario files: JSON Lines read whole, so that a file with a mistake in it changes nothing. Cost: one parse a line; a line with a
 * number beyond int64 or double is parsed a second time with such numbers wrapped. */
#include "option.h"
#include "replay.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t string_length(const char *text, const char *end)
{
    const char *at = text + 1;
    while (at < end && *at != '"') {
        at += *at == '\\' ? 2 : 1;
    }
    return at < end ? (size_t)(at - text) + 1 : (size_t)(end - text);
}

static size_t number_length(const char *text, const char *end)
{
    const char *at = text;
    while (at < end && (isdigit((unsigned char)*at) || memchr("+-.eE", *at, 5))) {
        at++;
    }
    return (size_t)(at - text);
}

static bool number_big(const char *text, size_t size)
{
    char copy[64];
    if (size >= sizeof copy) {
        return true;
    }
    memcpy(copy, text, size);
    copy[size] = 0;
    errno = 0;
    if (strpbrk(copy, ".eE")) {
        return isinf(strtod(copy, NULL));
    }
    strtoll(copy, NULL, 10);
    return errno == ERANGE;
}

/* The line with each number that fits no C type, and `exact` each with a point or an exponent, wrapped as an object. NULL where there is none. The caller
 * frees it. */
static char *big_numbers_wrap(const char *line, size_t size, bool exact, size_t *wrapped_size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, wrapped_size);
    const char *end = line + size;
    bool any = false;
    for (const char *at = line; out && at < end;) {
        bool number = isdigit((unsigned char)*at) || *at == '-';
        size_t length = *at == '"' ? string_length(at, end) : number ? number_length(at, end) : 1;
        bool fraction = number && exact && (memchr(at, '.', length) || memchr(at, 'e', length) || memchr(at, 'E', length));
        if (fraction || (number && number_big(at, length))) {
            fprintf(out, "{\"" BIG_NUMBER "\":\"%.*s\"}", (int)length, at);
            any = true;
        } else {
            fwrite(at, 1, length, out);
        }
        at += length;
    }
    if (out) {
        fclose(out);
    }
    if (!any) {
        free(text);
        text = NULL;
    }
    return text;
}

json_t *json_line_parse(const char *line, size_t size, bool exact, json_error_t *error)
{
    json_t *json = json_loadb(line, size, JSON_ALLOW_NUL, error);
    if (json ? !exact : json_error_code(error) != json_error_numeric_overflow) {
        return json;
    }
    size_t wrapped_size = 0;
    char *wrapped = big_numbers_wrap(line, size, exact, &wrapped_size);
    if (wrapped) {
        json_decref(json);
        json = json_loadb(wrapped, wrapped_size, JSON_ALLOW_NUL, error);
    }
    free(wrapped);
    return json;
}

static bool blank(const char *line, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (!isspace((unsigned char)line[i])) {
            return false;
        }
    }
    return true;
}

static bool line_add(scenario_file *file, const char *text, size_t size, size_t number)
{
    json_error_t error;
    json_t *json = json_line_parse(text, size, false, &error);
    if (!json) {
        usage_error("%s:%zu: not JSON: %s", file->path, number, error.text);
        return false;
    }
    if (!json_is_object(json)) {
        usage_error("%s:%zu: a command is a JSON object", file->path, number);
        json_decref(json);
        return false;
    }
    file->lines = memory_room(file->lines, file->lines_count, &file->lines_capacity, sizeof *file->lines);
    file->lines[file->lines_count++] = (scenario_line){ json, number };
    return true;
}

static bool lines_read(scenario_file *file, FILE *in)
{
    char *text = NULL;
    size_t capacity = 0, number = 0;
    ssize_t size;
    bool ok = true;
    errno = 0;
    while (ok && (size = getline(&text, &capacity, in)) >= 0) {
        number++;
        if (!blank(text, (size_t)size)) {
            ok = line_add(file, text, (size_t)size, number);
        }
    }
    if (ok && ferror(in)) {
        usage_error("%s:%zu: cannot read on: %s", file->path, number + 1, strerror(errno));
        ok = false;
    }
    free(text);
    return ok;
}

bool scenario_file_take(FILE *in, const char *path, scenario_file *file)
{
    *file = (scenario_file){ .path = path };
    bool ok = lines_read(file, in);
    if (!ok) {
        scenario_file_free(file);
    }
    return ok;
}

bool scenario_file_read(const char *path, scenario_file *file)
{
    bool standard = strcmp(path, "-") == 0;
    *file = (scenario_file){ .path = path };
    FILE *in = standard ? stdin : fopen(path, "r");
    if (!in) {
        usage_error("%s: cannot read: %s", path, strerror(errno));
        return false;
    }
    bool ok = scenario_file_take(in, path, file);
    if (!standard) {
        fclose(in);
    }
    return ok;
}

void scenario_file_free(scenario_file *file)
{
    for (size_t i = 0; i < file->lines_count; i++) {
        json_decref(file->lines[i].json);
    }
    free(file->lines);
    *file = (scenario_file){ 0 };
}
