/* Float64 texts: read correctly rounded, written as short as reads back the same. The C library converts, but never sees or gives a decimal
 * point, whose form is the locale's: numbers reach it as "digits e exponent", and of what it prints the digits alone are taken.
 * Cost: one strtod to read; one to three prints and reads to write. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "value_text.h"

#define DIGITS_MAX 800 /* more than any double's exact form or midpoint needs: further digits count as a trace behind them */
#define EXPONENT_MAX 1000000000000000
#define PRECISION_SURE 15 /* digits that any normal double has room for */
#define PRECISION_FULL 17 /* digits that tell any two doubles apart */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The exponent behind the digits, from `text` on; false where there is none. */
static bool exponent_read(const char *text, const char *end, int64_t *exponent)
{
    bool negative = text < end && *text == '-';
    text += text < end && (*text == '-' || *text == '+');
    if (text == end) {
        return false;
    }
    int64_t value = 0;
    for (; text < end; text++) {
        if (!is_digit(*text)) {
            return false;
        }
        value = value * 10 + (*text - '0');
        value = value > EXPONENT_MAX ? EXPONENT_MAX : value;
    }
    *exponent = negative ? -value : value;
    return true;
}

bool ivm__numeral_read(const char *text, size_t size, ivm__numeral *numeral)
{
    const char *end = text + size, *at = text;
    *numeral = (ivm__numeral){ .negative = size && *at == '-' };
    at += size && (*at == '-' || *at == '+');
    numeral->digits = at;
    const char *point = NULL;
    while (at < end && (is_digit(*at) || (*at == '.' && !point))) {
        point = *at == '.' ? at : point;
        at++;
    }
    numeral->size = (size_t)(at - numeral->digits);
    numeral->fraction = point ? (size_t)(at - point) - 1 : 0;
    if (numeral->size == (point ? 1u : 0u)) {
        return false;
    }
    if (at == end) {
        return true;
    }
    return (*at == 'e' || *at == 'E') && exponent_read(at + 1, end, &numeral->exponent);
}

/* The significant digits, at most DIGITS_MAX and one for what follows; *exponent is that of the last one. */
static size_t digits_pack(const ivm__numeral *numeral, char *digits, int64_t *exponent)
{
    size_t count = 0;
    bool trace = false;
    *exponent = numeral->exponent - (int64_t)numeral->fraction;
    for (size_t i = 0; i < numeral->size; i++) {
        char c = numeral->digits[i];
        if (c == '.' || (count == 0 && c == '0')) {
            continue;
        }
        if (count < DIGITS_MAX) {
            digits[count++] = c;
        } else {
            trace |= c != '0';
            ++*exponent;
        }
    }
    if (trace) {
        digits[count++] = '1';
        --*exponent;
    }
    return count;
}

static bool name_is(const char *text, size_t size, const char *name)
{
    return size == strlen(name) && memcmp(text, name, size) == 0;
}

bool ivm__float_read(const char *text, size_t size, double *value)
{
    if (name_is(text, size, "NaN")) {
        *value = NAN;
        return true;
    }
    bool minus = size && *text == '-';
    if (name_is(text + minus, size - minus, "Infinity")) {
        *value = minus ? -INFINITY : INFINITY;
        return true;
    }
    ivm__numeral numeral;
    char plain[DIGITS_MAX + 32];
    int64_t exponent;
    if (!ivm__numeral_read(text, size, &numeral)) {
        return false;
    }
    size_t count = digits_pack(&numeral, plain, &exponent);
    if (count == 0) {
        *value = 0;
        return true;
    }
    snprintf(plain + count, sizeof plain - count, "e%lld", (long long)exponent);
    double magnitude = strtod(plain, NULL);
    if (isinf(magnitude)) {
        return false;
    }
    *value = numeral.negative && magnitude != 0 ? -magnitude : magnitude;
    return true;
}

/* ---- Writing --------------------------------------------------------------------------------------------------------------------- */

/* digits[0].digits[1..] * 10^exponent */
typedef struct scientific {
    char digits[PRECISION_FULL + 1];
    int count;
    int exponent;
} scientific;

static void scientific_print(double magnitude, int count, scientific *out)
{
    char printed[64];
    snprintf(printed, sizeof printed, "%.*e", count - 1, magnitude);
    const char *at = printed;
    out->count = 0;
    for (; *at != 'e'; at++) {
        if (is_digit(*at)) {
            out->digits[out->count++] = *at;
        }
    }
    assert(out->count == count);
    out->exponent = atoi(at + 1);
}

static bool scientific_reads_as(const scientific *number, double magnitude)
{
    char plain[PRECISION_FULL + 16];
    memcpy(plain, number->digits, (size_t)number->count);
    snprintf(plain + number->count, sizeof plain - (size_t)number->count, "e%d", number->exponent - (number->count - 1));
    return strtod(plain, NULL) == magnitude;
}

/* The next number of as many digits. */
static void scientific_increment(scientific *number)
{
    int at = number->count - 1;
    while (at >= 0 && number->digits[at] == '9') {
        number->digits[at--] = '0';
    }
    if (at >= 0) {
        number->digits[at]++;
    } else {
        number->digits[0] = '1';
        number->exponent++;
    }
}

/* The fewest digits that read back as the magnitude. Below a power of two doubles lie twice as dense as above: there the nearest number
 * of some digits may read as another double while the next one up reads right. */
static void shortest_find(double magnitude, scientific *out)
{
    int count = magnitude < 0x1p-1022 ? 1 : PRECISION_SURE;
    for (; count < PRECISION_FULL; count++) {
        scientific_print(magnitude, count, out);
        if (scientific_reads_as(out, magnitude)) {
            break;
        }
        scientific_increment(out);
        if (scientific_reads_as(out, magnitude)) {
            break;
        }
    }
    if (count == PRECISION_FULL) {
        scientific_print(magnitude, count, out);
    }
    while (out->count > 1 && out->digits[out->count - 1] == '0') {
        out->count--;
    }
}

/* Moves `count` digits to text; behind the last one zeros stand. */
static char *digits_put(char *text, const scientific *number, int from, int count)
{
    for (int i = from; i < from + count; i++) {
        *text++ = i >= 0 && i < number->count ? number->digits[i] : '0';
    }
    return text;
}

static char *plain_put(char *text, const scientific *number)
{
    int whole = number->exponent + 1;
    text = whole > 0 ? digits_put(text, number, 0, whole) : digits_put(text, number, number->count, 1);
    if (number->count > whole) {
        *text++ = '.';
        text = digits_put(text, number, whole, number->count - whole);
    }
    return text;
}

static char *scientific_put(char *text, const scientific *number)
{
    text = digits_put(text, number, 0, 1);
    if (number->count > 1) {
        *text++ = '.';
        text = digits_put(text, number, 1, number->count - 1);
    }
    return text + snprintf(text, 8, "e%d", number->exponent);
}

size_t ivm__float_write(double value, char text[IVM_VALUE_TEXT_SIZE])
{
    if (isnan(value) || isinf(value)) {
        return (size_t)snprintf(text, IVM_VALUE_TEXT_SIZE, "%s", isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
    }
    if (value == 0) {
        return (size_t)snprintf(text, IVM_VALUE_TEXT_SIZE, "0");
    }
    scientific number;
    shortest_find(fabs(value), &number);
    char *end = text;
    if (value < 0) {
        *end++ = '-';
    }
    end = number.exponent >= -5 && number.exponent < PRECISION_FULL ? plain_put(end, &number) : scientific_put(end, &number);
    *end = 0;
    assert(end < text + IVM_VALUE_TEXT_SIZE);
    return (size_t)(end - text);
}
