/* Runs a fuzz target without libFuzzer, with any compiler: every file of the directories given, then `--mutations` inputs made from them.
 *
 *     fuzz_NAME [--seed S] [--mutations N] [--size-max BYTES] [--tell] DIRECTORY|FILE...
 *
 * Mutation i is drawn from seed S + i alone, so that --seed S+i --mutations 1 makes it again. Standard error is silenced meanwhile (targets read what is wrong on
 * purpose) but for --tell; which input was under way when a check failed is told on standard output. The last line is "N executions". */
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#pragma weak LLVMFuzzerCustomMutator

typedef struct input {
    char *name;
    uint8_t *bytes;
    size_t size;
} input;

static struct {
    input *inputs;
    size_t count, capacity;
    size_t size_max;
    uint64_t executions;
    uint64_t random;
    const char *under_way; /* a file's name; NULL: the mutation of seed `seed` */
    unsigned long long seed;
    int told; /* standard error as it was */
} it = { .size_max = 16384 };

/* ---- Telling ----------------------------------------------------------------------------------------------------------------------- */

static void failed(int signal_number)
{
    char text[512];
    int size = it.under_way ? snprintf(text, sizeof text, "failed (signal %d) with %s\n", signal_number, it.under_way)
                            : snprintf(text, sizeof text, "failed (signal %d) with --seed %llu --mutations 1\n", signal_number, it.seed);
    size = size < (int)sizeof text ? size : (int)sizeof text - 1;
    ssize_t written = write(STDOUT_FILENO, text, (size_t)size);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
    _exit(written > 0 ? 1 : 2);
}

static void usage(const char *what)
{
    fprintf(stderr, "usage: fuzz_NAME [--seed S] [--mutations N] [--size-max BYTES] [--tell] DIRECTORY|FILE...\n%s\n", what);
    exit(2);
}

/* ---- Inputs ------------------------------------------------------------------------------------------------------------------------ */

static void file_add(const char *name)
{
    FILE *file = fopen(name, "rb");
    struct stat about;
    if (!file || fstat(fileno(file), &about) != 0) {
        usage(name);
    }
    size_t size = (size_t)about.st_size;
    uint8_t *bytes = malloc(size + 1);
    NEED(bytes && fread(bytes, 1, size, file) == size);
    fclose(file);
    if (it.count == it.capacity) {
        it.capacity = it.capacity ? 2 * it.capacity : 64;
        it.inputs = realloc(it.inputs, it.capacity * sizeof *it.inputs);
        NEED(it.inputs);
    }
    it.inputs[it.count++] = (input){ strdup(name), bytes, size };
}

static int no_dots(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void path_add(const char *path)
{
    struct stat about;
    struct dirent **entries;
    if (stat(path, &about) != 0) {
        usage(path);
    }
    if (!S_ISDIR(about.st_mode)) {
        file_add(path);
        return;
    }
    int count = scandir(path, &entries, no_dots, alphasort);
    for (int i = 0; i < count; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        path_add(name);
        free(entries[i]);
    }
    if (count >= 0) {
        free(entries);
    }
}

/* ---- Mutations --------------------------------------------------------------------------------------------------------------------- */

static uint64_t draw(uint64_t below)
{
    it.random += 0x9e3779b97f4a7c15u;
    uint64_t drawn = it.random;
    drawn = (drawn ^ drawn >> 30) * 0xbf58476d1ce4e5b9u;
    drawn = (drawn ^ drawn >> 27) * 0x94d049bb133111ebu;
    return (drawn ^ drawn >> 31) % below;
}

static size_t put(uint8_t *data, size_t size, size_t size_max, size_t at, const uint8_t *from, size_t count)
{
    count = count < size_max - size ? count : size_max - size;
    memmove(data + at + count, data + at, size - at);
    memcpy(data + at, from, count);
    return size + count;
}

static size_t words_put(uint8_t *data, size_t size, size_t size_max, size_t at)
{
    static const char *const words[] = { "0",
                                         "-1",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "1e308",
                                         "1e400",
                                         "\"",
                                         "[",
                                         "{",
                                         "]",
                                         "}",
                                         "null",
                                         "\\u0000",
                                         "\xff",
                                         ",",
                                         ":",
                                         "\\",
                                         "true",
                                         "[[[[[[[[[[[[[[[[",
                                         "18446744073709551616" };
    const char *word = words[draw(sizeof words / sizeof *words)];
    return put(data, size, size_max, at, (const uint8_t *)word, strlen(word));
}

/* One change: of a bit, a byte, or a number of 4 bytes; bytes taken out, put in, doubled, or taken from another input. */
static size_t change(uint8_t *data, size_t size, size_t size_max)
{
    size_t at = (size_t)draw(size + 1), left = size - at;
    const input *other = &it.inputs[draw(it.count)];
    uint8_t copy[64];
    switch (left ? draw(8) : 6 + draw(2)) {
    case 0:
        data[at] ^= (uint8_t)(1u << draw(8));
        return size;
    case 1:
        data[at] = (uint8_t)draw(256);
        return size;
    case 2: {
        uint32_t number = draw(2) ? (uint32_t)draw(4) - 2 : 1u << draw(32);
        memcpy(data + at, &number, left < sizeof number ? left : sizeof number);
        return size;
    }
    case 3:
    case 4: {
        size_t count = 1 + (size_t)draw(left < 32 ? left : 32);
        memmove(data + at, data + at + count, left - count);
        return size - count;
    }
    case 5: {
        size_t count = left < sizeof copy ? left : sizeof copy;
        memcpy(copy, data + at, count);
        return put(data, size, size_max, (size_t)draw(size + 1), copy, count);
    }
    case 6:
        return words_put(data, size, size_max, at);
    default: {
        size_t from = (size_t)draw(other->size + 1), count = other->size - from;
        return put(data, size, size_max, at, other->bytes + from, (size_t)draw(count + 1));
    }
    }
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max)
{
    for (uint64_t changes = 1 + draw(4); changes; changes--) {
        size = change(data, size, size_max);
    }
    return size;
}

/* The target gets a block of its own, as long as the input: a sanitizer sees what is read past it. */
static void run(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    NEED(copy);
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    it.executions++;
}

static void mutation_run(uint64_t seed)
{
    it.random = it.seed = seed;
    const input *from = &it.inputs[draw(it.count)];
    size_t size_max = from->size > it.size_max ? from->size : it.size_max, size = from->size;
    uint8_t *data = malloc(size_max + 1);
    NEED(data);
    memcpy(data, from->bytes, size);
    bool custom = LLVMFuzzerCustomMutator != NULL;
    size = custom ? LLVMFuzzerCustomMutator(data, size, size_max, (unsigned)draw(UINT32_MAX)) : LLVMFuzzerMutate(data, size, size_max);
    run(data, size);
    free(data);
}

/* ---- The program ------------------------------------------------------------------------------------------------------------------- */

static void silence(void)
{
    fflush(stderr);
    it.told = dup(STDERR_FILENO);
    int nowhere = open("/dev/null", O_WRONLY);
    NEED(it.told >= 0 && nowhere >= 0 && dup2(nowhere, STDERR_FILENO) >= 0);
    close(nowhere);
}

static uint64_t number(const char *text)
{
    char *end;
    uint64_t value = text ? strtoull(text, &end, 10) : 0;
    if (!text || *end || end == text) {
        usage("a number is wanted");
    }
    return value;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, mutations = 0;
    bool tells = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seed") == 0) {
            seed = number(argv[++i]);
        } else if (strcmp(argv[i], "--tell") == 0) {
            tells = true;
        } else if (strcmp(argv[i], "--mutations") == 0) {
            mutations = number(argv[++i]);
        } else if (strcmp(argv[i], "--size-max") == 0) {
            it.size_max = (size_t)number(argv[++i]);
        } else {
            path_add(argv[i]);
        }
    }
    if (it.count == 0) {
        usage("there is no input");
    }
    if (!tells) {
        silence();
    }
    signal(SIGABRT, failed);
    signal(SIGSEGV, failed);
    for (size_t i = 0; i < it.count; i++) {
        it.under_way = it.inputs[i].name;
        run(it.inputs[i].bytes, it.inputs[i].size);
    }
    it.under_way = NULL;
    for (uint64_t i = 0; i < mutations; i++) {
        mutation_run(seed + i);
    }
    for (size_t i = 0; i < it.count; i++) {
        free(it.inputs[i].name);
        free(it.inputs[i].bytes);
    }
    free(it.inputs);
    printf("%llu executions\n", (unsigned long long)it.executions);
    return 0;
}
