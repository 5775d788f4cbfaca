/* UTF-8, character by character. */
#include "utf8.h"

#include <stdint.h>
#include <string.h>

/* What the second byte of a character may be after this lead: the others are 0x80 to 0xbf. */
static bool second_fits(uint8_t lead, uint8_t second)
{
    uint8_t least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80, most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    return second >= least && second <= most;
}

size_t ivm__utf8_character(const char *at, size_t left)
{
    uint8_t lead = left ? (uint8_t)at[0] : 0xff;
    size_t size = lead < 0x80                    ? 1
                  : lead >= 0xc2 && lead <= 0xdf ? 2
                  : lead >= 0xe0 && lead <= 0xef ? 3
                  : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                 : 0;
    if (size > left || (size > 1 && !second_fits(lead, (uint8_t)at[1]))) {
        return 0;
    }
    for (size_t i = 2; i < size; i++) {
        if (((uint8_t)at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return size;
}

bool ivm__utf8_is(const char *text)
{
    size_t left = strlen(text), size = 1;
    while (left && (size = ivm__utf8_character(text, left)) > 0) {
        text += size;
        left -= size;
    }
    return left == 0;
}
