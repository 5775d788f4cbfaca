/* Figures drawn with gnuplot. */
#ifndef IVM_BENCH_PLOT_H
#define IVM_BENCH_PLOT_H

#include "measure.h"

/* Whether gnuplot is there and the directory too (it is made); else false after one line on standard error. */
bool plot_possible(const char *directory);

/* Writes the figures kept so far to DIRECTORY/NAME.jsonl, reads that file and draws, as SVG files beside it, for each measurement and unit
 * one of the figures that have a parameter over that parameter, and one with a bar for each of the others. False after one line on standard error. */
bool plot_write(const char *directory, const char *name, clock_kind clock);

#endif
