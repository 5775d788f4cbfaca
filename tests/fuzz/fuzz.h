/* What a fuzz target gives: LLVMFuzzerTestOneInput(), called with each input, and where random changes of its bytes lead nowhere
 * LLVMFuzzerCustomMutator(), which changes an input as its format wants. Both are run by libFuzzer (preset fuzz: clang) and by fuzz_corpus.c (any
 * other build), which gives LLVMFuzzerMutate() as libFuzzer does. A target ends the process where something is wrong: an assertion, a sanitizer,
 * NEED(). It keeps nothing from one input to the next. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Gives 0; -1: the input is none that is worth keeping. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Changes data[0 .. size) in place and gives its size then, at most size_max. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);

/* Always checked, whatever the build. */
#define NEED(condition)                                                                                                                    \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                                \
            abort();                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

/* For calls that may well fail. */
static inline void ignore(int status)
{
    (void)status;
}

#endif
