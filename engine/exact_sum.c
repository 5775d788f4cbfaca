/* Exact float sums, the state of sum and avg over float64.
 *
 *     finite part = sum of digit[i] * 2^(32 * (low + i) - 1088)
 *
 * A digit is an int64, so that a value is added to three of them without carrying; only after thousands of additions are the carries
 * moved up. The window of digits grows both ways, to what the values need. 2^-1088 is the first power below all doubles that makes every
 * second digit start a 64-bit limb of the whole. Cost: three additions a value of weight 1 or -1, else four for each non-zero 32 bits of
 * the weight; reading: the digits, and for an average one division. */
#include "exact_sum.h"

#include <math.h>

#include "wide.h"

typedef unsigned __int128 magnitude;

#define WEIGHT_MAX ((ivm__weight)(~(magnitude)0 >> 1))

enum {
    UNIT_EXPONENT = -1088,
    SHIFT_OF_SUBNORMAL = 14, /* 2^-1074 above the unit */
    DIGITS_MAX = 80,         /* 2^1024 is digit 66; then 128 bits of weight, 64 of the number of rows, and one for the carry */
    DIGIT_PAIRS_MAX = DIGITS_MAX / 2 + 2,
    PENDING_MAX = 4096, /* each adds less than 2^32 to a digit */
};
static_assert(DIGIT_PAIRS_MAX <= IVM__QUOTIENT_LIMBS_MAX, "an average's numerator fits a quotient");

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

/* mantissa (53 bits) times any weight, from digit `first` on. */
static ivm_status product_add(ivm__memory *memory, ivm__exact_sum **sum, magnitude mantissa, uint32_t first, ivm__weight weight)
{
    int64_t sign = weight < 0 ? -1 : 0;
    magnitude size = weight < 0 ? -(magnitude)weight : (magnitude)weight;
    uint32_t parts = size >> 96 ? 4 : size >> 64 ? 3 : size >> 32 ? 2 : 1;
    const ivm__exact_sum *self = *sum;
    if (!self || self->low > first || self->low + self->count < first + parts + 3) {
        IVM_TRY(window_grow(memory, sum, first, first + parts + 2));
    }
    if ((*sum)->pending + parts > PENDING_MAX) {
        IVM_TRY(carries_move(memory, sum));
    }
    int64_t *digits = (*sum)->digits + (first - (*sum)->low);
    for (uint32_t i = 0; i < parts; i++) {
        magnitude product = mantissa * (uint32_t)(size >> 32 * i);
        digits_add(digits + i, product, sign);
        digits[i + 3] += ((int64_t)(product >> 96) ^ sign) - sign;
    }
    (*sum)->pending += parts;
    return IVM_OK;
}

ivm_status ivm__exact_sum_add(ivm__memory *memory, ivm__exact_sum **sum, double value, ivm__weight weight)
{
    assert(weight >= -WEIGHT_MAX);
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    uint32_t field = word >> 52 & 0x7ff;
    uint64_t mantissa = word & 0xfffffffffffffull;
    if (weight == 0 || !(mantissa | field)) {
        return IVM_OK;
    }
    if (ivm__unlikely(field == 0x7ff)) {
        return special_add(memory, sum, value, weight);
    }
    mantissa |= (uint64_t)(field != 0) << 52;
    uint32_t shift = SHIFT_OF_SUBNORMAL + field - (field != 0), first = shift / 32;
    magnitude placed = (magnitude)mantissa << shift % 32;
    ivm__exact_sum *self = *sum;
    if (ivm__likely(self && self->low <= first && first + 3 <= (uint32_t)self->low + self->count && self->pending < PENDING_MAX &&
                    (weight == 1 || weight == -1))) {
        digits_add(self->digits + (first - self->low), placed, (weight < 0) ^ (word >> 63) ? -1 : 0);
        self->pending++;
        return IVM_OK;
    }
    return product_add(memory, sum, placed, first, word >> 63 ? -weight : weight);
}

/* NaN or an infinity where values that are no numbers decide the sum, by their net numbers. */
static bool specials_decide(const ivm__exact_sum *sum, double *value)
{
    const specials *net = sum ? sum->specials : NULL;
    if (!net || !(net->nans || net->plus || net->minus)) {
        return false;
    }
    bool up = net->plus > 0 || net->minus < 0, down = net->plus < 0 || net->minus > 0;
    *value = net->nans || (up && down) ? (double)NAN : up ? INFINITY : -INFINITY;
    return true;
}

/* The carries wait, but not for so long that a digit could overflow. */
static inline bool digit_is_sound(int64_t digit)
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
    if (specials_decide(sum, &special)) {
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

double ivm__exact_sum_average(const ivm__exact_sum *sum, ivm__weight count)
{
    assert(count > 0);
    double special;
    if (specials_decide(sum, &special)) {
        return special;
    }
    uint32_t digits[DIGITS_MAX + 2];
    bool negative = false;
    uint32_t digits_count = sum ? digits_settle(sum, digits, &negative) : 0;
    if (!digits_count) {
        return 0;
    }
    /* Whole limbs that both numerator and denominator would end in are left out. */
    enum { UNIT_LIMBS = -UNIT_EXPONENT / 64 };
    uint32_t common = sum->low / 2u < UNIT_LIMBS ? sum->low / 2u : UNIT_LIMBS;
    uint64_t numerator[DIGIT_PAIRS_MAX] = { 0 }, denominator[UNIT_LIMBS + 2] = { 0 };
    for (uint32_t i = 0; i < digits_count; i++) {
        uint32_t at = sum->low + i - 2 * common;
        numerator[at / 2] |= (uint64_t)digits[i] << 32 * (at % 2);
    }
    denominator[UNIT_LIMBS - common] = (uint64_t)count;
    denominator[UNIT_LIMBS - common + 1] = (uint64_t)(count >> 64);
    return ivm__quotient_round(negative, numerator, DIGIT_PAIRS_MAX, denominator, UNIT_LIMBS - common + 2);
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
