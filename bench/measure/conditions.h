/* What a run's figures depend on besides the code measured: version and commit, compiler and kind of build, allocator, clock, processors. */
#ifndef IVM_BENCH_CONDITIONS_H
#define IVM_BENCH_CONDITIONS_H

#include "measure.h"

/* One line at the end of a run's: as text, or as a figure named "conditions" (value 1) with further members. */
void conditions_print(FILE *file, const char *bench, bool json, clock_kind clock);

#endif
