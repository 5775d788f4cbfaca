/* Values of the oracle: order, numbers of 128 bits, quotients rounded once. */
#include "naive.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* ---- Numbers ----------------------------------------------------------------------------------------------------------------------- */

bool naive_multiply(naive_int a, naive_int b, naive_int *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

bool naive_add(naive_int a, naive_int b, naive_int *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

naive_int naive_power(int exponent)
{
    naive_int power = 1;
    assert(exponent >= 0 && exponent <= 38);
    for (; exponent; exponent--) {
        power *= 10;
    }
    return power;
}

naive_int naive_integer(const ivm_value *value)
{
    if (IVM_TYPE_KIND(value->type) == IVM_DECIMAL_KIND) {
        return (naive_int)((unsigned __int128)(uint64_t)value->as.decimal.high << 64 | value->as.decimal.low);
    }
    assert(IVM_TYPE_KIND(value->type) == IVM_INT64);
    return value->as.int64;
}

int naive_scale(ivm_type type)
{
    return IVM_TYPE_KIND(type) == IVM_DECIMAL_KIND ? (int)IVM_TYPE_SCALE(type) : 0;
}

static naive_int magnitude(naive_int integer)
{
    return integer < 0 ? -integer : integer;
}

ivm_status naive_number(ivm_type type, naive_int integer, ivm_value *value)
{
    if (IVM_TYPE_KIND(type) == IVM_INT64) {
        if (integer > INT64_MAX || integer < INT64_MIN) {
            return IVM_OVERFLOW;
        }
        *value = ivm_int64((int64_t)integer);
        return IVM_OK;
    }
    assert(IVM_TYPE_KIND(type) == IVM_DECIMAL_KIND);
    if (magnitude(integer) >= naive_power((int)IVM_TYPE_PRECISION(type))) {
        return IVM_OVERFLOW;
    }
    unsigned __int128 bits = (unsigned __int128)integer;
    *value = ivm_decimal(type, (ivm_int128){ (uint64_t)bits, (int64_t)(uint64_t)(bits >> 64) });
    return IVM_OK;
}

ivm_value naive_float(double value)
{
    return ivm_float64(value == 0 ? 0.0 : value);
}

/* Long division, bit by bit: 64 bits of the quotient from its highest on and whether anything is left, rounded to 53 bits, ties to even. */
double naive_quotient(naive_int numerator, naive_int denominator)
{
    unsigned __int128 n = (unsigned __int128)magnitude(numerator), d = (unsigned __int128)denominator, rest = 0;
    assert(denominator > 0 && d < (unsigned __int128)1 << 126);
    uint64_t digits = 0;
    int exponent = 0;
    if (!n) {
        return 0;
    }
    for (int bit = 127; bit >= 0 || !(digits >> 63); bit--) {
        rest = rest << 1 | (bit >= 0 ? n >> bit & 1 : 0);
        bool one = rest >= d;
        rest -= one ? d : 0;
        if (digits >> 63) { /* an integer part of more than 64 bits: what falls off is kept as "something is left" */
            exponent++;
            digits |= one;
            continue;
        }
        digits = digits << 1 | one;
        exponent -= bit < 0;
    }
    uint64_t kept = digits >> 11, tail = digits & 0x7ff;
    bool left = rest != 0;
    if (tail > 0x400 || (tail == 0x400 && (left || kept & 1))) {
        kept++;
    }
    double quotient = ldexp((double)kept, exponent + 11);
    return numerator < 0 ? -quotient : quotient;
}

double naive_double(const ivm_value *value)
{
    if (IVM_TYPE_KIND(value->type) == IVM_FLOAT64) {
        return value->as.float64;
    }
    int scale = naive_scale(value->type);
    return scale > 37 ? (double)((long double)naive_integer(value) / 1e38L) : naive_quotient(naive_integer(value), naive_power(scale));
}

ivm_status naive_column_value(ivm_type type, const ivm_value *value, ivm_value *out)
{
    *out = *value;
    if (value->is_null) {
        *out = ivm_null();
        return IVM_OK;
    }
    if (value->type == IVM_INT64 && type == IVM_FLOAT64) {
        double number = (double)value->as.int64;
        *out = naive_float(number);
        return number < 0x1p63 && (int64_t)number == value->as.int64 ? IVM_OK : IVM_TYPE_MISMATCH;
    }
    if (value->type == IVM_INT64 && IVM_TYPE_KIND(type) == IVM_DECIMAL_KIND) {
        naive_int integer;
        bool fits = naive_multiply(value->as.int64, naive_power(naive_scale(type)), &integer) && naive_number(type, integer, out) == IVM_OK;
        return fits ? IVM_OK : IVM_TYPE_MISMATCH;
    }
    if (value->type == IVM_FLOAT64 && type == IVM_FLOAT64) {
        *out = naive_float(value->as.float64);
    }
    return value->type == type ? IVM_OK : IVM_TYPE_MISMATCH;
}

/* ---- Order ------------------------------------------------------------------------------------------------------------------------- */

static int floats_compare(double a, double b)
{
    return isnan(a) || isnan(b) ? !!isnan(a) - !!isnan(b) : ORDER(a, b);
}

static int strings_compare(const ivm_value *a, const ivm_value *b)
{
    size_t a_size = a->as.string.size, b_size = b->as.string.size, size = a_size < b_size ? a_size : b_size;
    int order = size ? memcmp(a->as.string.bytes, b->as.string.bytes, size) : 0;
    return order ? order : ORDER(a_size, b_size);
}

int naive_compare(const ivm_value *a, const ivm_value *b)
{
    if (a->is_null || b->is_null) {
        return a->is_null - b->is_null;
    }
    assert(IVM_TYPE_KIND(a->type) == IVM_TYPE_KIND(b->type));
    switch (IVM_TYPE_KIND(a->type)) {
    case IVM_BOOL:
        return a->as.boolean - b->as.boolean;
    case IVM_FLOAT64:
        return floats_compare(a->as.float64, b->as.float64);
    case IVM_STRING:
        return strings_compare(a, b);
    case IVM_DATE:
        return ORDER(a->as.date, b->as.date);
    case IVM_TIMESTAMP:
        return ORDER(a->as.timestamp, b->as.timestamp);
    default:
        return ORDER(naive_integer(a), naive_integer(b));
    }
}
