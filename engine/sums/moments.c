/* Moments: adding products of any width, and variances as quotients of big integers.
 *
 *     n * squares - sum^2  over  n * (n or n - 1) * 100^scale,   rounded once by quotient.c
 *
 * Widths: a decimal has 127 bits, a row's weight 63, and 2^64 rows are more than there ever are: 254 bits of sum and 380 of squares. Cost:
 * an addition past 128 bits takes two products of 256 bits; a variance is schoolbook products of the limbs that are not 0. */
#include "moments.h"

typedef unsigned __int128 magnitude;

enum { SUM_LIMBS = 4, SQUARES_LIMBS = 6 };
static_assert(sizeof(ivm__moments) == sizeof(ivm__weight) + (SUM_LIMBS + SQUARES_LIMBS) * sizeof(uint64_t), "parts of two limbs");

/* ---- Limbs: unsigned numbers, low limb first ----------------------------------------------------------------------------------------------- */

static uint32_t limbs_trim(const uint64_t *limbs, uint32_t count)
{
    while (count && !limbs[count - 1]) {
        count--;
    }
    return count;
}

/* out[0..out_count) = a * b modulo 2^(64 * out_count). */
static void limbs_multiply(const uint64_t *a, uint32_t a_count, const uint64_t *b, uint32_t b_count, uint64_t *out, uint32_t out_count)
{
    memset(out, 0, out_count * sizeof *out);
    for (uint32_t i = 0; i < a_count && i < out_count; i++) {
        uint64_t carry = 0;
        uint32_t end = b_count < out_count - i ? b_count : out_count - i;
        for (uint32_t j = 0; j < end; j++) {
            magnitude product = (magnitude)a[i] * b[j] + out[i + j] + carry;
            out[i + j] = (uint64_t)product;
            carry = (uint64_t)(product >> 64);
        }
        if (i + end < out_count) {
            out[i + end] = carry;
        }
    }
}

/* to[0..count) += or -= from; the carry out of it is dropped. */
static void limbs_add(uint64_t *to, const uint64_t *from, uint32_t count, bool subtract)
{
    uint64_t carry = subtract;
    for (uint32_t i = 0; i < count; i++) {
        magnitude sum = (magnitude)to[i] + (subtract ? ~from[i] : from[i]) + carry;
        to[i] = (uint64_t)sum;
        carry = (uint64_t)(sum >> 64);
    }
}

/* A number in two's complement becomes its magnitude; whether it was below 0. */
static bool limbs_magnitude(uint64_t *limbs, uint32_t count)
{
    bool negative = limbs[count - 1] >> 63;
    for (uint32_t i = 0, add = 1; negative && i < count; i++) {
        limbs[i] = ~limbs[i] + add;
        add = add && !limbs[i];
    }
    return negative;
}

/* ---- Adding ----------------------------------------------------------------------------------------------------------------------------------- */

void ivm__moments_add_wide(ivm__moments *moments, ivm__wide value, ivm__weight weight)
{
    uint64_t sum[SUM_LIMBS], squares[SQUARES_LIMBS], product[SQUARES_LIMBS];
    memcpy(sum, moments->sum, sizeof sum);
    memcpy(squares, moments->squares, sizeof squares);
    ivm__int256 scaled = ivm__int256_multiply(value, weight), square = ivm__int256_multiply(value, value);
    magnitude size = weight < 0 ? -(magnitude)weight : (magnitude)weight;
    const uint64_t factor[2] = { (uint64_t)size, (uint64_t)(size >> 64) };
    limbs_add(sum, scaled.limb, SUM_LIMBS, false);
    limbs_multiply(square.limb, 4, factor, 2, product, SQUARES_LIMBS);
    limbs_add(squares, product, SQUARES_LIMBS, weight < 0);
    memcpy(moments->sum, sum, sizeof sum);
    memcpy(moments->squares, squares, sizeof squares);
}

/* ---- Reading ---------------------------------------------------------------------------------------------------------------------------------- */

static void number_read(const magnitude *parts, uint32_t limbs, ivm__big *number)
{
    memcpy(number->limb, parts, limbs * sizeof *number->limb);
    number->negative = limbs_magnitude(number->limb, limbs);
    number->exponent = 0;
    number->count = limbs_trim(number->limb, limbs);
}

void ivm__moments_read_whole(const ivm__moments *moments, uint32_t scale, ivm__moments_read *read)
{
    number_read(moments->sum, SUM_LIMBS, &read->sum);
    number_read(moments->squares, SQUARES_LIMBS, &read->squares);
    read->count = moments->count;
    read->scale = scale;
}

void ivm__moments_read_floats(const ivm__exact_sum *sum, const ivm__exact_sum *squares, ivm__weight count, ivm__moments_read *read)
{
    ivm__exact_sum_number(sum, false, &read->sum);
    ivm__exact_sum_number(squares, true, &read->squares);
    read->count = count;
    read->scale = 0;
}

/* Limbs of a number above 2^exponent, which is not above its own. */
static uint32_t limbs_above(const ivm__big *number, int32_t exponent)
{
    int32_t bits = number->count ? number->exponent - exponent : 0;
    assert(bits >= 0 && bits % 64 == 0);
    return number->count + (uint32_t)bits / 64;
}

static void number_lay(const ivm__big *number, int32_t exponent, uint64_t *limbs, uint32_t room)
{
    uint32_t skipped = limbs_above(number, exponent) - number->count;
    memset(limbs, 0, room * sizeof *limbs);
    memcpy(limbs + skipped, number->limb, number->count * sizeof *limbs);
}

/* to = a * b */
static void number_multiply(const ivm__big *a, const ivm__big *b, ivm__big *to)
{
    uint32_t count = a->count + b->count;
    assert(count <= IVM__BIG_LIMBS_MAX);
    to->negative = a->negative != b->negative;
    to->exponent = a->exponent + b->exponent;
    limbs_multiply(a->limb, a->count, b->limb, b->count, to->limb, count);
    to->count = limbs_trim(to->limb, count);
}

static void number_of(ivm__wide value, ivm__big *number)
{
    assert(value >= 0);
    number->negative = false;
    number->exponent = 0;
    number->limb[0] = (uint64_t)value;
    number->limb[1] = (uint64_t)(value >> 64);
    number->count = limbs_trim(number->limb, 2);
}

/* to = n * squares - sum^2 */
static void numerator_compute(const ivm__moments_read *read, ivm__big *to)
{
    ivm__big count, scaled, square;
    number_of(read->count, &count);
    number_multiply(&count, &read->squares, &scaled);
    number_multiply(&read->sum, &read->sum, &square);
    bool scaled_least = !square.count || (scaled.count && scaled.exponent < square.exponent);
    int32_t exponent = scaled_least ? scaled.exponent : square.exponent;
    uint32_t above = limbs_above(&scaled, exponent), square_above = limbs_above(&square, exponent);
    uint32_t room = (above > square_above ? above : square_above) + 1; /* for a carry, or the sign */
    assert(room <= IVM__BIG_LIMBS_MAX);
    uint64_t subtrahend[IVM__BIG_LIMBS_MAX];
    number_lay(&scaled, exponent, to->limb, room);
    number_lay(&square, exponent, subtrahend, room);
    limbs_add(to->limb, subtrahend, room, !scaled.negative); /* below 0 it is -(n * |squares| + sum^2) */
    to->negative = scaled.negative || limbs_magnitude(to->limb, room);
    to->exponent = exponent;
    to->count = limbs_trim(to->limb, room);
}

double ivm__moments_variance(const ivm__moments_read *read, bool sample, bool *below)
{
    assert(read->count > sample);
    ivm__big numerator, ten, count, divisor, by_count, by_both, denominator;
    number_of(ivm__power_of_ten(read->scale), &ten);
    number_of(read->count, &count);
    number_of(read->count - sample, &divisor);
    numerator_compute(read, &numerator);
    number_multiply(&count, &divisor, &by_count);
    number_multiply(&by_count, &ten, &by_both);
    number_multiply(&by_both, &ten, &denominator);
    *below = numerator.negative;
    return ivm__quotient_double(
        &(ivm__quotient){ numerator.negative, numerator.exponent, numerator.limb, denominator.limb, numerator.count, denominator.count });
}
