/* Texts of numbers, dates and timestamps. Nothing here depends on the process's locale. A reader takes the whole text or none of it; a writer
 * ends with a null byte and returns the length. */
#ifndef IVM__VALUE_TEXT_H
#define IVM__VALUE_TEXT_H

#include "chunk.h"

/* The parts of "-12.50e3": the digits with at most one point among them, and the exponent (held within +-10^15). */
typedef struct ivm__numeral {
    bool negative;
    const char *digits;
    size_t size;     /* of digits and point */
    size_t fraction; /* digits behind the point */
    int64_t exponent;
} ivm__numeral;
/* False where the text is no number in decimal digits. */
bool ivm__numeral_read(const char *text, size_t size, ivm__numeral *numeral);

/* The nearest double; NaN, Infinity and -Infinity by name; false past the range. -0 is read as 0. */
bool ivm__float_read(const char *text, size_t size, double *value);
/* The shortest text that reads back the same. */
size_t ivm__float_write(double value, char text[IVM_VALUE_TEXT_SIZE]);

/* 2026-11-29, years 0001 to 9999 of the Gregorian calendar, also for times before it was in use. */
bool ivm__date_read(const char *text, size_t size, int32_t *days);
/* A year that ivm__date_read would not take is written with its sign. */
size_t ivm__date_write(int32_t days, char text[IVM_VALUE_TEXT_SIZE]);
/* A date alone, or with T (or a space), 20:01, 20:01:27 or 20:01:27.000001, then Z, +01:00 or nothing (UTC). */
bool ivm__timestamp_read(const char *text, size_t size, int64_t *microseconds);
size_t ivm__timestamp_write(int64_t microseconds, char text[IVM_VALUE_TEXT_SIZE]);

#endif
