/* For programs that are plain ones, so that they can fork, be killed and run under the thread sanitizer. */
#ifndef TEST_NEED_H
#define TEST_NEED_H

#include <stdio.h>
#include <stdlib.h>

/* Ends the program where the condition is not met, and says which. */
#define NEED(condition)                                                                                                                    \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                                \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

#endif
