/* Exact float sums, the state of sum, avg and the variances over float64.
 *
 *     finite part = sum of digit[i] * 2^(32 * (low + i) - 1088)        of squares: - 2176
 *
 * A digit is an int64, so that a value is added to three of them without carrying; only after thousands of additions are the carries
 * moved up. The window of digits grows both ways, to what the values need. 2^-1088 is the first power below all doubles that makes every
 * second digit start a 64-bit limb of the whole; squares have twice the range and twice the digits. Cost: three additions a value of weight
 * 1 or -1, six a square, else four or eight for each non-zero 32 bits of the weight; reading: the digits, and for an average one division. */
#include "exact_sum.h"

#include <math.h>

#include "bytes.h"

typedef unsigned __int128 magnitude;

#define WEIGHT_MAX ((ivm__weight)(~(magnitude)0 >> 1))
#define MANTISSA 0xfffffffffffffull

enum {
    UNIT_EXPONENT = -1088,
    SHIFT_OF_SUBNORMAL = 14, /* 2^-1074 above the unit */
    DIGITS_MAX = 144,        /* 2^2048 is digit 132; then 128 bits of weight, 64 of the number of rows, and some for the carry */
    PENDING_MAX = 4096,      /* each adds less than 2^32 to a digit */
    KEPT_DIGITS_MAX = 8,     /* that a sum may have without need */
    /* Of a number read: what 2^64 rows of any int64 weight come to is less, and what is added to it afterwards stays within the digits, and
     * products of it within IVM__BIG_LIMBS_MAX. */
    READ_DIGITS_MAX = 72,
    READ_DIGITS_OF_SQUARES_MAX = 138,
    FLAG_NEGATIVE = 1,
    FLAG_SPECIAL = 2,
};
static_assert(DIGITS_MAX / 2 + 2 <= IVM__BIG_LIMBS_MAX, "a sum is a big number");

typedef struct specials {
    ivm__weight nans, plus, minus; /* net numbers of NaN, infinity, -infinity */
} specials;

struct ivm__exact_sum {
    uint16_t low, count;
    uint32_t pending; /* additions to any one digit since the carries were moved, at most PENDING_MAX */
    specials *specials;
    int64_t digits[];
};
static_assert(sizeof(ivm__exact_sum) == 16, "16 bytes and 8 a digit");

static size_t size_of(uint32_t count)
{
    return sizeof(ivm__exact_sum) + count * sizeof(int64_t);
}

/* A value or a square in digits: part[0] + part[1] * 2^64, of at most 96 bits each, from digit `first` on. */
typedef struct placed {
    magnitude part[2];
    uint32_t parts; /* that are given */
    uint32_t first;
} placed;

/* Makes the window cover digits first..last of the whole, at once one that covers what it has. */
static ivm_status window_grow(ivm__memory *memory, ivm__exact_sum **sum, uint32_t first, uint32_t last)
{
    ivm__exact_sum *old = *sum;
    if (old && old->count) {
        first = old->low < first ? old->low : first;
        last = old->low + old->count - 1u > last ? old->low + old->count - 1u : last;
    }
    uint32_t count = last + 1 - first;
    assert(first <= last && last < DIGITS_MAX);
    ivm__exact_sum *grown = ivm__allocate_zeroed(memory, size_of(count));
    if (!grown) {
        return IVM_OUT_OF_MEMORY;
    }
    grown->low = (uint16_t)first;
    grown->count = (uint16_t)count;
    if (old) {
        grown->pending = old->pending;
        grown->specials = old->specials;
        memcpy(grown->digits + (old->count ? old->low - first : 0), old->digits, old->count * sizeof(int64_t));
        ivm__release(memory, old, size_of(old->count));
    }
    *sum = grown;
    return IVM_OK;
}

/* Moves the carries up, which changes no value. The top digit keeps its own; when it holds more than its 32 bits the window gets
 * another. */
static ivm_status carries_move(ivm__memory *memory, ivm__exact_sum **sum)
{
    ivm__exact_sum *self = *sum;
    uint32_t top = self->count - 1u;
    for (uint32_t i = 0; i < top; i++) {
        self->digits[i + 1] += self->digits[i] >> 32;
        self->digits[i] = (uint32_t)self->digits[i];
    }
    if (self->digits[top] != (int32_t)self->digits[top]) {
        IVM_TRY(window_grow(memory, sum, self->low, self->low + self->count));
        self = *sum;
        self->digits[top + 1] = self->digits[top] >> 32;
        self->digits[top] = (uint32_t)self->digits[top];
    }
    self->pending = 0;
    return IVM_OK;
}

static ivm_status special_add(ivm__memory *memory, ivm__exact_sum **sum, double value, ivm__weight weight)
{
    specials *made = NULL;
    if (!*sum || !(*sum)->specials) {
        made = ivm__allocate_zeroed(memory, sizeof *made);
        if (!made) {
            return IVM_OUT_OF_MEMORY;
        }
    }
    if (!*sum) {
        *sum = ivm__allocate_zeroed(memory, size_of(0));
        if (!*sum) {
            ivm__release(memory, made, sizeof *made);
            return IVM_OUT_OF_MEMORY;
        }
    }
    if (made) {
        (*sum)->specials = made;
    }
    specials *net = (*sum)->specials;
    ivm__weight *of = value != value ? &net->nans : value > 0 ? &net->plus : &net->minus;
    *of = (ivm__weight)((magnitude)*of + (magnitude)weight); /* in flight it may wrap, and comes back */
    return IVM_OK;
}

/* digits[0..3) += or -= product; sign is 0 or -1. */
static inline void digits_add(int64_t *digits, magnitude product, int64_t sign)
{
    digits[0] += ((int64_t)(uint32_t)product ^ sign) - sign;
    digits[1] += ((int64_t)(uint32_t)(product >> 32) ^ sign) - sign;
    digits[2] += ((int64_t)(uint32_t)(product >> 64) ^ sign) - sign;
}

/* A value times any weight. */
static ivm_status product_add(ivm__memory *memory, ivm__exact_sum **sum, const placed *value, ivm__weight weight)
{
    int64_t sign = weight < 0 ? -1 : 0;
    magnitude size = weight < 0 ? -(magnitude)weight : (magnitude)weight;
    uint32_t factors = size >> 96 ? 4 : size >> 64 ? 3 : size >> 32 ? 2 : 1, first = value->first;
    uint32_t last = first + factors + 2 * value->parts, additions = factors * value->parts;
    const ivm__exact_sum *self = *sum;
    if (!self || self->low > first || self->low + self->count <= last) {
        IVM_TRY(window_grow(memory, sum, first, last));
    }
    if ((*sum)->pending + additions > PENDING_MAX) {
        IVM_TRY(carries_move(memory, sum));
    }
    int64_t *digits = (*sum)->digits + (first - (*sum)->low);
    for (uint32_t i = 0; i < additions; i++) {
        uint32_t factor = i % factors, part = i / factors;
        magnitude product = value->part[part] * (uint32_t)(size >> 32 * factor);
        digits_add(digits + factor + 2 * part, product, sign);
        digits[factor + 2 * part + 3] += ((int64_t)(product >> 96) ^ sign) - sign;
    }
    (*sum)->pending += additions;
    return IVM_OK;
}

/* Whether a value in one part or two can be added as it is: its weight is 1 or -1, its digits are there, and no carry is due. */
static inline bool window_covers(const ivm__exact_sum *self, uint32_t first, uint32_t parts, ivm__weight weight)
{
    return ivm__likely(self && self->low <= first && first + 1 + 2 * parts <= (uint32_t)self->low + self->count &&
                       self->pending + parts <= PENDING_MAX && (weight == 1 || weight == -1));
}

ivm_status ivm__exact_sum_add(ivm__memory *memory, ivm__exact_sum **sum, double value, ivm__weight weight)
{
    assert(weight >= -WEIGHT_MAX);
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    uint32_t field = word >> 52 & 0x7ff;
    uint64_t mantissa = word & MANTISSA;
    if (weight == 0 || !(mantissa | field)) {
        return IVM_OK;
    }
    if (ivm__unlikely(field == 0x7ff)) {
        return special_add(memory, sum, value, weight);
    }
    mantissa |= (uint64_t)(field != 0) << 52;
    uint32_t shift = SHIFT_OF_SUBNORMAL + field - (field != 0), first = shift / 32;
    magnitude at_digit = (magnitude)mantissa << shift % 32;
    ivm__exact_sum *self = *sum;
    if (window_covers(self, first, 1, weight)) {
        digits_add(self->digits + (first - self->low), at_digit, (weight < 0) ^ (word >> 63) ? -1 : 0);
        self->pending++;
        return IVM_OK;
    }
    return product_add(memory, sum, &(placed){ { at_digit }, 1, first }, word >> 63 ? -weight : weight);
}

ivm_status ivm__exact_sum_add_square(ivm__memory *memory, ivm__exact_sum **squares, double value, ivm__weight weight)
{
    assert(weight >= -WEIGHT_MAX);
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    uint32_t field = word >> 52 & 0x7ff;
    uint64_t mantissa = word & MANTISSA;
    if (weight == 0 || !(mantissa | field) || field == 0x7ff) {
        return IVM_OK;
    }
    mantissa |= (uint64_t)(field != 0) << 52;
    uint32_t shift = 2 * (SHIFT_OF_SUBNORMAL + field - (field != 0)), first = shift / 32;
    magnitude square = (magnitude)mantissa * mantissa;
    magnitude low = (magnitude)(uint64_t)square << shift % 32, high = (square >> 64) << shift % 32;
    ivm__exact_sum *self = *squares;
    if (window_covers(self, first, 2, weight)) {
        int64_t *digits = self->digits + (first - self->low), sign = weight < 0 ? -1 : 0;
        digits_add(digits, low, sign);
        digits_add(digits + 2, high, sign);
        self->pending += 2;
        return IVM_OK;
    }
    return product_add(memory, squares, &(placed){ { low, high }, 2, first }, weight);
}

bool ivm__exact_sum_special(const ivm__exact_sum *sum, double *value)
{
    const specials *net = sum ? sum->specials : NULL;
    if (!net || !(net->nans || net->plus || net->minus)) {
        return false;
    }
    bool up = net->plus > 0 || net->minus < 0, down = net->plus < 0 || net->minus > 0;
    *value = net->nans || (up && down) ? (double)NAN : up ? INFINITY : -INFINITY;
    return true;
}

/* The carries wait, but not for so long that a digit could overflow. For assertions alone. */
__attribute__((unused)) static bool digit_is_sound(int64_t digit)
{
    int64_t bound = (PENDING_MAX + 1ll) << 32;
    return digit <= bound && digit >= -bound;
}

/* |finite part| as 32-bit digits, digits[0] being digit `low` of the window; how many there are, 0 for a sum of 0. */
static uint32_t digits_settle(const ivm__exact_sum *sum, uint32_t digits[DIGITS_MAX + 2], bool *negative)
{
    int64_t carry = 0;
    for (uint32_t i = 0; i < sum->count; i++) {
        assert(digit_is_sound(sum->digits[i]));
        carry += sum->digits[i];
        digits[i] = (uint32_t)carry;
        carry >>= 32;
    }
    uint32_t count = sum->count;
    digits[count++] = (uint32_t)carry;
    *negative = carry < 0;
    for (uint32_t i = 0, add = 1; *negative && i < count; i++) {
        digits[i] = ~digits[i] + add;
        add = add && !digits[i];
    }
    while (count && !digits[count - 1]) {
        count--;
    }
    return count;
}

double ivm__exact_sum_value(const ivm__exact_sum *sum)
{
    double special;
    if (ivm__exact_sum_special(sum, &special)) {
        return special;
    }
    uint32_t digits[DIGITS_MAX + 2];
    bool negative = false;
    uint32_t count = sum ? digits_settle(sum, digits, &negative) : 0;
    if (!count) {
        return 0;
    }
    /* The three leading digits hold 65 to 96 bits from the first that is 1: keep 64 and whether any below is 1. */
    magnitude top = (magnitude)digits[count - 1] << 64;
    top |= count > 1 ? (magnitude)digits[count - 2] << 32 : 0;
    top |= count > 2 ? digits[count - 3] : 0;
    uint32_t dropped = 32 - (uint32_t)__builtin_clz(digits[count - 1]);
    bool rest = (top & (((magnitude)1 << dropped) - 1)) != 0;
    for (uint32_t i = 3; !rest && i < count; i++) {
        rest = digits[count - 1 - i] != 0;
    }
    int32_t exponent = 32 * ((int32_t)(sum->low + count) - 3) + UNIT_EXPONENT + (int32_t)dropped;
    return ivm__double_round(negative, (uint64_t)(top >> dropped), rest, exponent);
}

void ivm__exact_sum_number(const ivm__exact_sum *sum, bool squares, ivm__big *number)
{
    uint32_t digits[DIGITS_MAX + 2];
    number->negative = false;
    number->count = 0;
    number->exponent = 0;
    uint32_t count = sum ? digits_settle(sum, digits, &number->negative) : 0;
    if (!count) {
        return;
    }
    uint32_t odd = sum->low % 2; /* then the first limb begins with a digit of 0 */
    number->count = (odd + count + 1) / 2;
    number->exponent = 32 * (int32_t)(sum->low - odd) + (squares ? 2 * UNIT_EXPONENT : UNIT_EXPONENT);
    memset(number->limb, 0, number->count * sizeof *number->limb);
    for (uint32_t i = 0; i < count; i++) {
        number->limb[(odd + i) / 2] |= (uint64_t)digits[i] << 32 * ((odd + i) % 2);
    }
}

double ivm__exact_sum_average(const ivm__exact_sum *sum, ivm__weight count)
{
    assert(count > 0);
    double special;
    if (ivm__exact_sum_special(sum, &special)) {
        return special;
    }
    ivm__big number;
    ivm__exact_sum_number(sum, false, &number);
    const uint64_t denominator[2] = { (uint64_t)count, (uint64_t)(count >> 64) };
    return ivm__quotient_double(&(ivm__quotient){ number.negative, number.exponent, number.limb, denominator, number.count, 2 });
}

size_t ivm__exact_sum_image_size(const ivm__exact_sum *sum)
{
    return sum ? size_of(sum->count) + (sum->specials ? sizeof(specials) : 0) : 0;
}

void ivm__exact_sum_save(const ivm__exact_sum *sum, void *image)
{
    if (!sum) {
        return;
    }
    memcpy(image, sum, size_of(sum->count));
    if (sum->specials) {
        memcpy((uint8_t *)image + size_of(sum->count), sum->specials, sizeof(specials));
    }
}

void ivm__exact_sum_restore(ivm__memory *memory, ivm__exact_sum **sum, const void *image, size_t image_size)
{
    if (!image_size) {
        ivm__exact_sum_free(memory, *sum);
        *sum = NULL;
        return;
    }
    ivm__exact_sum saved, *self = *sum;
    memcpy(&saved, image, sizeof saved);
    assert(image_size == size_of(saved.count) + (saved.specials ? sizeof(specials) : 0));
    assert(!saved.count || (self->low <= saved.low && self->low + self->count >= saved.low + saved.count));
    memset(self->digits, 0, self->count * sizeof(int64_t));
    memcpy(self->digits + (saved.count ? saved.low - self->low : 0), (const uint8_t *)image + sizeof saved, saved.count * sizeof(int64_t));
    self->pending = saved.pending;
    if (saved.specials) {
        memcpy(self->specials, (const uint8_t *)image + size_of(saved.count), sizeof(specials));
    } else {
        ivm__release(memory, self->specials, sizeof(specials));
        self->specials = NULL;
    }
}

void ivm__exact_sum_free(ivm__memory *memory, ivm__exact_sum *sum)
{
    if (sum) {
        ivm__release(memory, sum->specials, sizeof(specials));
        ivm__release(memory, sum, size_of(sum->count));
    }
}

/* Digits first..end - 1 of what digits_settle() gave, in a sum of their own. NULL: out of memory. */
static ivm__exact_sum *digits_take(ivm__memory *memory, uint32_t low, const uint32_t *digits, uint32_t count, bool negative)
{
    ivm__exact_sum *made = ivm__allocate_zeroed(memory, size_of(count));
    if (made) {
        made->low = (uint16_t)low;
        made->count = (uint16_t)count;
        for (uint32_t i = 0; i < count; i++) {
            made->digits[i] = negative ? -(int64_t)digits[i] : (int64_t)digits[i];
        }
    }
    return made;
}

static void specials_trim(ivm__memory *memory, ivm__exact_sum *sum)
{
    const specials *net = sum->specials;
    if (net && !net->nans && !net->plus && !net->minus) {
        ivm__release(memory, sum->specials, sizeof(specials));
        sum->specials = NULL;
    }
}

void ivm__exact_sum_trim(ivm__memory *memory, ivm__exact_sum **sum)
{
    uint32_t digits[DIGITS_MAX + 2], first = 0;
    bool negative;
    ivm__exact_sum *self = *sum;
    if (!self) {
        return;
    }
    specials_trim(memory, self);
    if (self->count <= KEPT_DIGITS_MAX) {
        return;
    }
    uint32_t end = digits_settle(self, digits, &negative);
    while (first < end && !digits[first]) {
        first++;
    }
    if (2 * (end - first) >= self->count) {
        return;
    }
    ivm__exact_sum *made = NULL;
    if (end || self->specials) {
        made = digits_take(memory, end ? self->low + first : 0, digits + first, end - first, negative);
        if (!made) {
            return;
        }
        made->specials = self->specials;
    }
    ivm__release(memory, self, size_of(self->count));
    *sum = made;
}

/* ---- As bytes ----------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__exact_sum_write(const ivm__exact_sum *sum, ivm__sink *sink)
{
    uint32_t digits[DIGITS_MAX + 2];
    bool negative = false;
    double special;
    uint32_t end = sum ? digits_settle(sum, digits, &negative) : 0, first = 0;
    while (first < end && !digits[first]) {
        first++;
    }
    bool has_special = ivm__exact_sum_special(sum, &special);
    IVM_TRY(ivm__put_u8(sink, (uint8_t)((negative ? FLAG_NEGATIVE : 0) | (has_special ? FLAG_SPECIAL : 0))));
    IVM_TRY(ivm__put_u16(sink, (uint16_t)(end ? sum->low + first : 0)));
    IVM_TRY(ivm__put_u16(sink, (uint16_t)(end - first)));
    IVM_TRY(ivm__put(sink, digits + first, (end - first) * sizeof *digits));
    return has_special ? ivm__put(sink, sum->specials, sizeof *sum->specials) : IVM_OK;
}

static ivm_status number_fail(ivm__feed *feed)
{
    return ivm__fail(feed->error, IVM_CORRUPT, "a sum of floats that cannot be");
}

static ivm_status digits_read(ivm__memory *memory, ivm__exact_sum **sum, ivm__feed *feed, uint32_t end_max, uint8_t flags)
{
    uint16_t low, count;
    uint32_t digits[DIGITS_MAX] = { 0 };
    IVM_TRY(ivm__get_u16(feed, &low));
    IVM_TRY(ivm__get_u16(feed, &count));
    if ((uint32_t)low + count > end_max || (!count && (low || (flags & FLAG_NEGATIVE)))) {
        return number_fail(feed);
    }
    IVM_TRY(ivm__get(feed, digits, count * sizeof *digits));
    if (count && (!digits[0] || !digits[count - 1])) {
        return number_fail(feed);
    }
    if (!count && !(flags & FLAG_SPECIAL)) {
        return IVM_OK;
    }
    *sum = digits_take(memory, low, digits, count, flags & FLAG_NEGATIVE);
    return *sum ? IVM_OK : ivm__fail_memory(feed->error);
}

static ivm_status specials_read(ivm__memory *memory, ivm__exact_sum *sum, ivm__feed *feed)
{
    specials net;
    IVM_TRY(ivm__get(feed, &net, sizeof net));
    if (!net.nans && !net.plus && !net.minus) {
        return number_fail(feed);
    }
    sum->specials = ivm__allocate(memory, sizeof net);
    if (!sum->specials) {
        return ivm__fail_memory(feed->error);
    }
    *sum->specials = net;
    return IVM_OK;
}

static ivm_status sum_read(ivm__memory *memory, ivm__exact_sum **sum, ivm__feed *feed, uint32_t end_max, uint8_t flags_max)
{
    uint8_t flags;
    *sum = NULL;
    IVM_TRY(ivm__get_u8(feed, &flags));
    if (flags > flags_max) {
        return number_fail(feed);
    }
    IVM_TRY(digits_read(memory, sum, feed, end_max, flags));
    ivm_status status = flags & FLAG_SPECIAL ? specials_read(memory, *sum, feed) : IVM_OK;
    if (status != IVM_OK) {
        ivm__exact_sum_free(memory, *sum);
        *sum = NULL;
    }
    return status;
}

ivm_status ivm__exact_sum_read(ivm__memory *memory, ivm__exact_sum **sum, ivm__feed *feed)
{
    return sum_read(memory, sum, feed, READ_DIGITS_MAX, FLAG_NEGATIVE | FLAG_SPECIAL);
}

ivm_status ivm__exact_sum_read_squares(ivm__memory *memory, ivm__exact_sum **squares, ivm__feed *feed)
{
    return sum_read(memory, squares, feed, READ_DIGITS_OF_SQUARES_MAX, FLAG_NEGATIVE);
}
