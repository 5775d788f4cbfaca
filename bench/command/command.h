/* The commands of `ivm`. Each gets the arguments from its own name on and gives the process's exit code: 0 what was checked holds,
 * 1 it does not, 2 the command line or a file could not be used. */
#ifndef IVM_BENCH_COMMAND_H
#define IVM_BENCH_COMMAND_H

int replay_command(int argc, char **argv);
int explain_command(int argc, char **argv);
int feed_command(int argc, char **argv);
int bench_command(int argc, char **argv);
int flights_command(int argc, char **argv);

/* Behind `ivm bench`. */
int star_command(int argc, char **argv);
int snowflake_command(int argc, char **argv);
int hotkey_command(int argc, char **argv);
int latency_command(int argc, char **argv);
int scale_command(int argc, char **argv);
int tpch_command(int argc, char **argv);
int all_command(int argc, char **argv);
int prune_command(int argc, char **argv);
int memory_command(int argc, char **argv);
int operators_command(int argc, char **argv);
int durable_command(int argc, char **argv);
int checkpoint_command(int argc, char **argv);
int arrow_command(int argc, char **argv);
int cancel_command(int argc, char **argv);
int dump_command(int argc, char **argv);
int stream_command(int argc, char **argv);

#endif
