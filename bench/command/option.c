/* Reading the command line against a list of options; see option.h. */
#include "option.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int usage_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("ivm: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return EXIT_USAGE;
}

static const option_definition *find(const option_definition *options, const char *text, size_t size)
{
    for (const option_definition *o = options; o->name; o++) {
        if (strlen(o->name) == size && memcmp(o->name, text, size) == 0) {
            return o;
        }
    }
    return NULL;
}

static int word_set(const option_definition *option, const char *value)
{
    for (int i = 0; option->words[i]; i++) {
        if (strcmp(option->words[i], value) == 0) {
            *(int *)option->target = i;
            return EXIT_HOLDS;
        }
    }
    fprintf(stderr, "ivm: %s is one of", option->name);
    for (int i = 0; option->words[i]; i++) {
        fprintf(stderr, "%s%s", i ? ", " : " ", option->words[i]);
    }
    fprintf(stderr, ", not %s\n", value);
    return EXIT_USAGE;
}

static int number_set(const option_definition *option, const char *value)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (errno || *end || end == value || *value == '-' || number == 0 || number > UINT32_MAX) {
        return usage_error("%s wants a number from 1 to %u, not %s", option->name, UINT32_MAX, value);
    }
    *(uint64_t *)option->target = number;
    return EXIT_HOLDS;
}

static int value_set(const option_definition *option, const char *value)
{
    if (option->kind == OPTION_WORD) {
        return word_set(option, value);
    }
    if (option->kind == OPTION_NUMBER) {
        return number_set(option, value);
    }
    *(const char **)option->target = value;
    return EXIT_HOLDS;
}

/* Takes the option at argv[*at] and moves *at to the last argument it used. */
static int option_take(const option_definition *options, int argc, char **argv, int *at)
{
    const char *text = argv[*at], *equals = strchr(text, '=');
    size_t size = equals ? (size_t)(equals - text) : strlen(text);
    const option_definition *option = find(options, text, size);
    if (!option) {
        return usage_error("unknown option %.*s; --help lists what there is", (int)size, text);
    }
    if (option->kind == OPTION_FLAG) {
        if (equals) {
            return usage_error("%s takes no value", option->name);
        }
        *(bool *)option->target = true;
        return EXIT_HOLDS;
    }
    if (equals) {
        return value_set(option, equals + 1);
    }
    if (*at + 1 == argc) {
        return usage_error("%s wants a value", option->name);
    }
    return value_set(option, argv[++*at]);
}

bool options_read(const option_definition *options, const char *help, int argc, char **argv, operand_list *operands, int *exit_code)
{
    size_t count = 0;
    bool only_operands = false;
    *exit_code = EXIT_HOLDS;
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        if (only_operands || text[0] != '-' || text[1] == 0 || text[1] == ':') { /* "-" and "-:TABLE" are inputs */
            argv[1 + count++] = argv[i];
        } else if (strcmp(text, "--") == 0) {
            only_operands = true;
        } else if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) {
            fputs(help, stdout);
            return false;
        } else if ((*exit_code = option_take(options, argc, argv, &i)) != EXIT_HOLDS) {
            return false;
        }
    }
    operands->texts = argv + 1;
    operands->count = count;
    return true;
}
