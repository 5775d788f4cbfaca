/* The same program, for C++. */
#include "total.c"
