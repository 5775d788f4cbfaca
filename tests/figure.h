/* Figures of a run: how often something was tried that the tests prove. A test adds to a figure by its words; where IVM_FIGURES names a file, each addition is a line
 * of it, "N words", which tests/reliability adds up. Written at once, so that what a test did counts even where its process ends at the next line. */
#ifndef TEST_FIGURE_H
#define TEST_FIGURE_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void figure_add(const char *words, uint64_t n)
{
    const char *name = getenv("IVM_FIGURES");
    int file = name ? open(name, O_WRONLY | O_APPEND | O_CREAT, 0644) : -1;
    if (file >= 0) {
        dprintf(file, "%llu %s\n", (unsigned long long)n, words);
        close(file);
    }
}

#endif
