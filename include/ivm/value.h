/* Types, single values and column arrays: how data enters and leaves the engine. */
#ifndef IVM_VALUE_H
#define IVM_VALUE_H

#include "ivm/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A column's type in one integer: the kind in the lowest byte, for decimals the precision in the next and the scale in the third. */
typedef uint32_t ivm_type;
enum {
    IVM_BOOL = 1,        /* true or false */
    IVM_INT64 = 2,       /* what leaves its range is an overflow, never wrapped */
    IVM_FLOAT64 = 3,     /* NaN equals NaN and sorts above every number; -0.0 is stored as 0.0 */
    IVM_STRING = 4,      /* any bytes, compared as such; meant as UTF-8 (below) */
    IVM_DATE = 5,        /* days since 1970-01-01 */
    IVM_TIMESTAMP = 6,   /* microseconds since 1970-01-01 00:00, UTC */
    IVM_DECIMAL_KIND = 7 /* with precision and scale: IVM_DECIMAL() */
};
/* Nothing checks that strings are UTF-8, and nothing needs it: length() counts the bytes that begin a character, lower() and upper() change a to z
 * alone, all else takes them as bytes. Names must be UTF-8. */

/* A decimal's type, and what a type says: its kind, and a decimal's precision (1 to 38 digits) and scale (0 to the precision). */
#define IVM_DECIMAL_PRECISION_MAX 38
#define IVM_DECIMAL(precision, scale) ((ivm_type)(IVM_DECIMAL_KIND | (uint32_t)(precision) << 8 | (uint32_t)(scale) << 16))
#define IVM_TYPE_KIND(type) ((type)&0xffu)
#define IVM_TYPE_PRECISION(type) ((type) >> 8 & 0xffu)
#define IVM_TYPE_SCALE(type) ((type) >> 16 & 0xffu)

/* A decimal's unscaled value in two's complement: value * 10^scale, the scale being the column's. */
typedef struct ivm_int128 {
    uint64_t low; /* the lower 64 bits */
    int64_t high; /* the upper ones, with the sign */
} ivm_int128;

/* One value. `type` is 0 for an untyped null. A string's bytes are borrowed: whoever takes the value copies them at once. */
typedef struct ivm_value {
    ivm_type type;
    bool is_null; /* then `as` means nothing */
    union {
        bool boolean;
        int64_t int64;
        double float64;
        int32_t date;
        int64_t timestamp;
        ivm_int128 decimal;
        struct {
            const char *bytes;
            size_t size;
        } string;
    } as; /* the member that is called as the type; a decimal without its scale, which is the type's */
} ivm_value;

/* A value of a type; ivm_null() of any. What is borrowed stays the caller's. */
IVM_API ivm_value ivm_null(void);
IVM_API ivm_value ivm_bool(bool value);
IVM_API ivm_value ivm_int64(int64_t value);
IVM_API ivm_value ivm_float64(double value);
IVM_API ivm_value ivm_string(const char *text);                     /* up to its null byte; NULL: a null */
IVM_API ivm_value ivm_string_sized(const char *bytes, size_t size); /* NULL: a null, with size 0 the empty string */
IVM_API ivm_value ivm_date(int32_t days);
IVM_API ivm_value ivm_timestamp(int64_t microseconds);
IVM_API ivm_value ivm_decimal(ivm_type type, ivm_int128 unscaled);

/* Reads a type: "bool", "int64", "float64", "string", "date", "timestamp", "decimal(p,s)". Case and space around do not matter.
 * invalid_argument for anything else. */
IVM_API ivm_status ivm_type_parse(const char *text, ivm_type *type, ivm_error *error) IVM_MUST_CHECK;

/* Longest text ivm_type_format writes, null byte included. */
#define IVM_TYPE_TEXT_SIZE 24
/* Writes a type as ivm_type_parse() reads it; `text` is never NULL. */
IVM_API void ivm_type_format(ivm_type type, char text[IVM_TYPE_TEXT_SIZE]);

/* Reads a value of `type` from text: 12, -1.5e3, NaN, Infinity, true, 2026-11-29, 2026-11-29T20:01:27.000001Z, 12.50. Of a timestamp the time,
 * the seconds, their decimals and the zone may be missing; T may be a space, and Z or nothing is UTC, +hh:mm or -hh:mm ahead of it or behind:
 * "2026-11-29 20:01+01:00". Years are 0001 to 9999. A string value borrows the text. type_mismatch where the text is no such value or does not
 * fit: neither a decimal nor a timestamp's microseconds are ever rounded. */
IVM_API ivm_status ivm_value_parse(ivm_type type, const char *text, size_t size, ivm_value *value, ivm_error *error) IVM_MUST_CHECK;

/* Longest text of a value that is no string, null byte included. */
#define IVM_VALUE_TEXT_SIZE 48
/* Writes the value as ivm_value_parse reads it (a null as "null", a float64 so that it reads back the same), at most size - 1 bytes and
 * a null byte; returns the length the whole text has, as snprintf does. `value` is never NULL, `text` only where size is 0. */
IVM_API size_t ivm_value_format(const ivm_value *value, char *text, size_t size);

/* A column as arrays, laid out as Arrow does:
 *   int64, timestamp  int64_t[]            float64  double[]       date     int32_t[]
 *   decimal           16 bytes a value, little endian, two's complement
 *   bool              one bit a value, lowest bit first
 *   string            `offsets` has rows + 1 entries into `values`, the bytes
 * `validity`: one bit a row, lowest first, 1 = a value; NULL = no nulls. `offset` is added to every row's position in validity, values
 * and offsets. Buffers need no alignment when they enter; those that leave the engine are aligned to 8 bytes. */
typedef struct ivm_column_data {
    const void *values;
    const uint8_t *validity;
    const int32_t *offsets;
    size_t offset;
} ivm_column_data;

/* Rows as columns: `rows_count` in each of `columns_count`. `weights` NULL: every row once. As an output it is valid until the next call on what gave
 * it. */
typedef struct ivm_rows {
    size_t rows_count;
    size_t columns_count;
    const ivm_column_data *columns;
    const int64_t *weights;
} ivm_rows;

/* One cell of such rows; a string borrows the arrays. `type` is the column's. An untyped null where there is no such row or column. */
IVM_API ivm_value ivm_rows_value(const ivm_rows *rows, ivm_type type, size_t row, size_t column);

#ifdef __cplusplus
}
#endif
#endif
