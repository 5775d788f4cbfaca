/* Dates and timestamps as text, in the Gregorian calendar carried back before its use. Years are counted from March, so that the leap
 * day is a year's last, and in eras of 400 years, all of 146,097 days. Cost: a few divisions. */
#include <stdio.h>

#include "value_text.h"

#define ERA_DAYS 146097
#define EPOCH_DAYS 719468 /* from 0000-03-01 to 1970-01-01 */
#define DAY_MICROSECONDS 86400000000

typedef struct civil {
    int64_t year;
    int month, day; /* from 1 */
} civil;

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t days_of(civil date)
{
    int64_t year = date.month > 2 ? date.year : date.year - 1;
    int64_t era = floor_divide(year, 400), year_of_era = year - era * 400;
    int64_t month = (date.month + 9) % 12; /* March is 0 */
    int64_t day_of_year = (153 * month + 2) / 5 + date.day - 1;
    return era * ERA_DAYS + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - EPOCH_DAYS;
}

static civil civil_of(int64_t days)
{
    days += EPOCH_DAYS;
    int64_t era = floor_divide(days, ERA_DAYS), day_of_era = days - era * ERA_DAYS;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int month = (int)((5 * day_of_year + 2) / 153);
    return (civil){ .year = era * 400 + year_of_era + (month >= 10),
                    .month = month < 10 ? month + 3 : month - 9,
                    .day = (int)(day_of_year - (153 * month + 2) / 5) + 1 };
}

static int days_in_month(int64_t year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

/* ---- Reading --------------------------------------------------------------------------------------------------------------------- */

/* What is still to be read. */
typedef struct cursor {
    const char *at, *end;
} cursor;

static bool character_take(cursor *text, char c)
{
    bool there = text->at < text->end && *text->at == c;
    text->at += there;
    return there;
}

/* A number of exactly `digits` digits within bounds. */
static bool number_take(cursor *text, int digits, int lowest, int highest, int *value)
{
    if (text->end - text->at < digits) {
        return false;
    }
    *value = 0;
    for (int i = 0; i < digits; i++, text->at++) {
        if (*text->at < '0' || *text->at > '9') {
            return false;
        }
        *value = *value * 10 + (*text->at - '0');
    }
    return *value >= lowest && *value <= highest;
}

static bool date_take(cursor *text, int64_t *days)
{
    int year, month, day;
    if (!number_take(text, 4, 1, 9999, &year) || !character_take(text, '-') || !number_take(text, 2, 1, 12, &month) ||
        !character_take(text, '-') || !number_take(text, 2, 1, days_in_month(year, month), &day)) {
        return false;
    }
    *days = days_of((civil){ year, month, day });
    return true;
}

/* Decimals of a second; what is past a microsecond must be nothing. */
static bool fraction_take(cursor *text, int64_t *microseconds)
{
    int64_t unit = 1000000;
    const char *start = text->at;
    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
        unit /= 10;
        if (unit == 0 && *text->at != '0') {
            return false;
        }
        *microseconds += unit * (*text->at - '0');
    }
    return text->at > start;
}

static bool clock_take(cursor *text, int64_t *microseconds)
{
    int hour, minute, second = 0;
    if (!number_take(text, 2, 0, 23, &hour) || !character_take(text, ':') || !number_take(text, 2, 0, 59, &minute)) {
        return false;
    }
    *microseconds = 0;
    if (character_take(text, ':')) {
        if (!number_take(text, 2, 0, 59, &second) || (character_take(text, '.') && !fraction_take(text, microseconds))) {
            return false;
        }
    }
    *microseconds += ((int64_t)hour * 3600 + minute * 60 + second) * 1000000;
    return true;
}

/* How far the clock is ahead of UTC. */
static bool zone_take(cursor *text, int64_t *microseconds)
{
    *microseconds = 0;
    if (text->at == text->end || character_take(text, 'Z')) {
        return true;
    }
    bool behind = *text->at == '-';
    int hour, minute;
    if ((!character_take(text, '+') && !character_take(text, '-')) || !number_take(text, 2, 0, 23, &hour) || !character_take(text, ':') ||
        !number_take(text, 2, 0, 59, &minute)) {
        return false;
    }
    *microseconds = ((int64_t)hour * 3600 + minute * 60) * (behind ? -1000000 : 1000000);
    return true;
}

bool ivm__date_read(const char *text, size_t size, int32_t *days)
{
    cursor rest = { text, text + size };
    int64_t read;
    if (!date_take(&rest, &read) || rest.at != rest.end) {
        return false;
    }
    *days = (int32_t)read;
    return true;
}

bool ivm__timestamp_read(const char *text, size_t size, int64_t *microseconds)
{
    cursor rest = { text, text + size };
    int64_t days, clock = 0, zone = 0;
    if (!date_take(&rest, &days)) {
        return false;
    }
    if (rest.at != rest.end) {
        if (!character_take(&rest, 'T') && !character_take(&rest, ' ')) {
            return false;
        }
        if (!clock_take(&rest, &clock) || !zone_take(&rest, &zone) || rest.at != rest.end) {
            return false;
        }
    }
    *microseconds = days * DAY_MICROSECONDS + clock - zone;
    return true;
}

/* ---- Writing --------------------------------------------------------------------------------------------------------------------- */

static size_t date_put(int64_t days, char text[IVM_VALUE_TEXT_SIZE])
{
    civil date = civil_of(days);
    const char *format = date.year >= 1 && date.year <= 9999 ? "%04lld-%02d-%02d" : "%+05lld-%02d-%02d";
    return (size_t)snprintf(text, IVM_VALUE_TEXT_SIZE, format, (long long)date.year, date.month, date.day);
}

size_t ivm__date_write(int32_t days, char text[IVM_VALUE_TEXT_SIZE])
{
    return date_put(days, text);
}

size_t ivm__timestamp_write(int64_t microseconds, char text[IVM_VALUE_TEXT_SIZE])
{
    int64_t days = floor_divide(microseconds, DAY_MICROSECONDS);
    int64_t clock = microseconds % DAY_MICROSECONDS;
    clock += clock < 0 ? DAY_MICROSECONDS : 0; /* the day's start itself may be out of range */
    int64_t second = clock / 1000000;
    size_t size = date_put(days, text);
    return size + (size_t)snprintf(text + size, IVM_VALUE_TEXT_SIZE - size, "T%02d:%02d:%02d.%06dZ", (int)(second / 3600),
                                   (int)(second / 60 % 60), (int)(second % 60), (int)(clock % 1000000));
}
