/* UTF-8: what names and messages must be, and strings need not (ivm/value.h). */
#ifndef IVM__UTF8_H
#define IVM__UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character that begins here, of at most `left`: 1 to 4; 0 where there is none (a cut or overlong one, a surrogate, past U+10FFFF). */
size_t ivm__utf8_character(const char *at, size_t left);
bool ivm__utf8_is(const char *text); /* ended by a null byte */

#endif
