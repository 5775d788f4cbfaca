/* Lines from one descriptor, one read ahead. Cost: one read(2) for 64 KB; memory: the longest line that is allowed, twice at most. */
#include "feed.h"
#include "option.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ((size_t)64 << 10)

static const char *input_name(const feed_input *input)
{
    return input->path ? input->path : "standard input";
}

/* ---- Opening --------------------------------------------------------------------------------------------------------------------------- */

static bool short_tell(const feed_input *input)
{
    usage_error("%s: ends before byte %" PRIu64 ", up to where it was read before", input_name(input), input->place.bytes);
    return false;
}

/* What was pushed before is passed over: by seeking, or while reading where the input is a pipe. */
static bool input_skip(feed_input *input, uint64_t file_size)
{
    uint64_t size = input->place.bytes;
    if (!input->is_file) {
        input->skipped = size;
        return true;
    }
    return (file_size >= size && lseek(input->descriptor, (off_t)size, SEEK_SET) == (off_t)size) || short_tell(input);
}

bool input_open(feed_input *input, feed_place place, uint64_t line_max, bool goes_on)
{
    struct stat about;
    /* A pipe that has no writer yet is waited for with all others. */
    input->descriptor = input->path ? open(input->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : STDIN_FILENO;
    if (input->descriptor < 0 || fstat(input->descriptor, &about) != 0) {
        const char *colon = input->path && errno == ENOENT ? strrchr(input->path, ':') : NULL;
        usage_error("%s: cannot read: %s%s%s%s", input_name(input), strerror(errno), colon ? ", and " : "", colon ? colon + 1 : "",
                    colon ? " is no table of the plan" : "");
        return false;
    }
    input->is_file = S_ISREG(about.st_mode);
    input->place = place;
    input->line_max = line_max;
    input->capacity = READ_BYTES;
    input->bytes = memory_take(input->capacity);
    bool passes_over = place.bytes && !(goes_on && !(input->path && input->is_file));
    return !passes_over || input_skip(input, (uint64_t)about.st_size);
}

void input_close(feed_input *input)
{
    if (input->descriptor > STDIN_FILENO) {
        close(input->descriptor);
    }
    free(input->bytes);
    free(input->path);
    *input = (feed_input){ .descriptor = -1 };
}

/* ---- Lines ----------------------------------------------------------------------------------------------------------------------------- */

static void room_make(feed_input *input)
{
    size_t kept = input->end - input->first;
    if (input->first && input->capacity - input->end < READ_BYTES) {
        memmove(input->bytes, input->bytes + input->first, kept);
        input->first = 0;
        input->end = kept;
    }
    if (input->capacity - input->end < READ_BYTES) {
        input->capacity = 2 * input->capacity;
        input->bytes = memory_grow(input->bytes, input->capacity);
    }
}

void input_read(feed_input *input)
{
    room_make(input);
    ssize_t got = read(input->descriptor, input->bytes + input->end, READ_BYTES);
    if (got > 0) {
        size_t passed = input->skipped < (uint64_t)got ? (size_t)input->skipped : (size_t)got;
        input->end += (size_t)got;
        input->first += passed;
        input->skipped -= passed;
    } else if (got == 0) {
        input->ended = true;
    } else if (errno != EINTR && errno != EAGAIN) {
        usage_error("%s: cannot read on behind line %" PRIu64 ": %s", input_name(input), input->place.lines, strerror(errno));
        input->failed = true;
    }
}

static void bytes_take(feed_input *input, size_t size)
{
    input->first += size;
    input->place.bytes += size;
    input->searched = 0;
}

/* A line that is there whole; or the end of one that is too long. */
static feed_got line_take(feed_input *input, const char **bytes, size_t *size)
{
    char *start = input->bytes + input->first;
    size_t held = input->end - input->first;
    const char *end = memchr(start + input->searched, '\n', held - input->searched);
    input->searched = held;
    bool whole = end || (input->ended && held);
    *bytes = start;
    *size = end ? (size_t)(end - start) : held;
    input->skipping |= *size > input->line_max;
    if (!whole && input->skipping) {
        bytes_take(input, held);
    }
    if (!whole && !(input->skipping && input->ended)) {
        return FEED_NOTHING_YET;
    }
    if (whole) {
        bytes_take(input, *size + (end != NULL));
    }
    input->place.lines++;
    bool too_long = input->skipping;
    input->skipping = false;
    return too_long ? FEED_LINE_TOO_LONG : FEED_LINE;
}

feed_got input_line(feed_input *input, const char **bytes, size_t *size)
{
    feed_got got = line_take(input, bytes, size);
    if (got != FEED_NOTHING_YET || !(input->ended || input->failed)) {
        return got;
    }
    if (input->ended && input->skipped) {
        short_tell(input);
        return FEED_SHORT;
    }
    input->done = true;
    return input->failed ? FEED_FAILED : FEED_END;
}
