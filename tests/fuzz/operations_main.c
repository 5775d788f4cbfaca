/* fuzz_operations [--seed S] [--inputs N] [--seconds T] [--size BYTES] [--write FILE] [--trace] [--counts] [FILE|DIRECTORY ...]: runs the target without libFuzzer:
 * every file given, then N inputs of random bytes, or as many as T seconds allow. Input i is drawn from seed S + i alone, so that --seed S+i --inputs 1
 * makes it again (--write keeps its bytes, --trace tells each operation). --counts prints how often each kind of operation, operator, table, fact and
 * status was met; one of `wanted` that was never met is a failure where 2000 inputs or more were run. The last line is "N executions". */
#include "operations.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    const char *file; /* under way; NULL: the input of `seed` */
    uint64_t seed, executions;
} under_way;

static void failed(int number)
{
    char text[512];
    int size = under_way.file ? snprintf(text, sizeof text, "failed (signal %d) with %s\n", number, under_way.file)
                              : snprintf(text, sizeof text, "failed (signal %d) with --seed %llu --inputs 1\n", number,
                                         (unsigned long long)under_way.seed);
    ssize_t written = write(STDERR_FILENO, text, size < (int)sizeof text ? (size_t)size : sizeof text - 1);
    signal(number, SIG_DFL);
    raise(number);
    _exit(written > 0 ? 1 : 2);
}

static _Noreturn void usage(const char *what)
{
    fprintf(stderr, "fuzz_operations: %s\n", what);
    exit(2);
}

static uint64_t draw(uint64_t *random)
{
    uint64_t drawn = *random += 0x9e3779b97f4a7c15u;
    drawn = (drawn ^ drawn >> 30) * 0xbf58476d1ce4e5b9u;
    drawn = (drawn ^ drawn >> 27) * 0x94d049bb133111ebu;
    return drawn ^ drawn >> 31;
}

static void run(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1); /* as long as the input: a sanitizer sees what is read past it */
    if (!copy) {
        usage("out of memory");
    }
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    under_way.executions++;
}

static void drawn_run(uint64_t seed, size_t size_max, const char *write_to)
{
    uint64_t random = seed * 0x2545f4914f6cdd1du;
    size_t size = 64 + (size_t)(draw(&random) % size_max);
    uint8_t *bytes = malloc(size);
    if (!bytes) {
        usage("out of memory");
    }
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(draw(&random) >> 24);
    }
    FILE *out = write_to ? fopen(write_to, "wb") : NULL;
    if (out) {
        fwrite(bytes, 1, size, out);
        fclose(out);
    }
    under_way.seed = seed;
    run(bytes, size);
    free(bytes);
}

static void path_run(const char *path)
{
    static uint8_t bytes[1 << 20];
    struct stat about;
    if (stat(path, &about) != 0) {
        usage(path);
    }
    if (S_ISDIR(about.st_mode)) {
        struct dirent **entries;
        int count = scandir(path, &entries, NULL, alphasort);
        for (int i = 0; i < count; i++) {
            char name[4096];
            snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
            if (entries[i]->d_name[0] != '.') {
                path_run(name);
            }
            free(entries[i]);
        }
        free(count < 0 ? NULL : entries);
        return;
    }
    FILE *file = fopen(path, "rb");
    if (!file) {
        usage(path);
    }
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    under_way.file = path;
    run(bytes, size);
    under_way.file = NULL;
}

typedef struct asked {
    uint64_t seed, inputs, seconds;
    size_t size_max;
    const char *write_to;
    bool counts;
} asked;

/* The options; what is left of argv is paths. */
static int options_read(int argc, char **argv, asked *out)
{
    int paths = 0;
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : "";
        bool takes = true;
        if (strcmp(argv[i], "--seed") == 0) {
            out->seed = strtoull(next, NULL, 10);
        } else if (strcmp(argv[i], "--inputs") == 0) {
            out->inputs = strtoull(next, NULL, 10);
        } else if (strcmp(argv[i], "--seconds") == 0) {
            out->seconds = strtoull(next, NULL, 10);
        } else if (strcmp(argv[i], "--size") == 0) {
            out->size_max = (size_t)strtoull(next, NULL, 10);
        } else if (strcmp(argv[i], "--write") == 0) {
            out->write_to = next;
        } else {
            takes = false;
            operations_trace |= strcmp(argv[i], "--trace") == 0;
            out->counts |= strcmp(argv[i], "--counts") == 0;
            argv[paths] = argv[i];
            paths += strncmp(argv[i], "--", 2) != 0;
        }
        i += takes;
    }
    return paths;
}

int main(int argc, char **argv)
{
    asked it = { .seed = 1, .size_max = 1500 };
    int paths = options_read(argc, argv, &it);
    time_t begun = time(NULL);
    signal(SIGABRT, failed);
    signal(SIGSEGV, failed);
    for (int i = 0; i < paths; i++) {
        path_run(argv[i]);
    }
    for (uint64_t i = 0; it.seconds ? (uint64_t)(time(NULL) - begun) < it.seconds : i < it.inputs; i++) {
        drawn_run(it.seed + i, it.size_max, it.write_to);
    }
    if (it.counts) {
        operations_counts_print();
    }
    bool all = under_way.executions < 2000 || operations_counts_complete();
    printf("%llu executions\n", (unsigned long long)under_way.executions);
    return all ? 0 : 1;
}
