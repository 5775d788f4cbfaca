/* `ivm bench`: bench.c finds the measurement that is asked for and takes the options that all have, all.c runs every one and judges the bars. */
#ifndef IVM_BENCH_BENCH_H
#define IVM_BENCH_BENCH_H

/* Runs a measurement by name with arguments of its own; -1 where there is none of this name. */
int bench_run(const char *name, int argc, char **argv);

#endif
