/* Exact float sums, of values or of their squares: a fixed-point accumulator over the exponent range, held only as far as the values seen
 * need. After any insertions and deletions its value is the correctly rounded sum of what is there now. NaN and infinities are counted, so
 * that they can leave again.
 * Cost: a few additions a value; size: 16 bytes and 8 a 32-bit digit between the smallest and greatest exponent seen. */
#ifndef IVM__EXACT_SUM_H
#define IVM__EXACT_SUM_H

#include "stream.h"
#include "wide.h"

typedef struct ivm__exact_sum ivm__exact_sum;

/* *sum NULL stands for an empty one and is made at need. Fails for memory alone, then nothing has changed. */
ivm_status ivm__exact_sum_add(ivm__memory *memory, ivm__exact_sum **sum, double value, ivm__weight weight) IVM_MUST_CHECK;
/* The same with the value's square, exact too: *squares then is a sum of squares alone. NaN and infinities are passed over. */
ivm_status ivm__exact_sum_add_square(ivm__memory *memory, ivm__exact_sum **squares, double value, ivm__weight weight) IVM_MUST_CHECK;
double ivm__exact_sum_value(const ivm__exact_sum *sum);
/* The sum divided by count (> 0), rounded once. */
double ivm__exact_sum_average(const ivm__exact_sum *sum, ivm__weight count);
/* The finite part of a sum, or of a sum of squares; its exponent is a multiple of 64. */
void ivm__exact_sum_number(const ivm__exact_sum *sum, bool squares, ivm__big *number);
/* Whether NaN or an infinity decides the sum, by their net numbers. */
bool ivm__exact_sum_special(const ivm__exact_sum *sum, double *value);
/* Bytes an image takes; saving one; going back to one, which cannot fail: *sum must be the sum it was saved from, grown or not. An
 * image of NULL has size 0: then the sum is freed and NULL again. */
size_t ivm__exact_sum_image_size(const ivm__exact_sum *sum);
void ivm__exact_sum_save(const ivm__exact_sum *sum, void *image);
void ivm__exact_sum_restore(ivm__memory *memory, ivm__exact_sum **sum, const void *image, size_t image_size);
void ivm__exact_sum_free(ivm__memory *memory, ivm__exact_sum *sum);
/* Gives most of a sum's digits back where what it is now needs few of them; where memory is wanting it stays as it is. What images were saved of it
 * before can not be gone back to. Cost: of more than a few digits, a pass over them. */
void ivm__exact_sum_trim(ivm__memory *memory, ivm__exact_sum **sum);

/* The sum as a number, the same bytes however it came to be: flags u8 (1: below 0, 2: special), lowest digit u16, digits u16, the digits as u32 with
 * no 0 at either end; where special, the net numbers of NaN, infinity and -infinity. NULL: 0. */
ivm_status ivm__exact_sum_write(const ivm__exact_sum *sum, ivm__sink *sink) IVM_MUST_CHECK;
/* *sum is made; NULL for one of nothing. Corrupt where no sum of values, or none of squares, is written so: the second have twice the range. */
ivm_status ivm__exact_sum_read(ivm__memory *memory, ivm__exact_sum **sum, ivm__feed *feed) IVM_MUST_CHECK;
ivm_status ivm__exact_sum_read_squares(ivm__memory *memory, ivm__exact_sum **squares, ivm__feed *feed) IVM_MUST_CHECK;

#endif
