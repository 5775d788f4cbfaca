/* Lines from a descriptor, one read ahead. Cost: one read(2) for 64 KB; memory: the longest line that is allowed, twice at most. Signals are blocked but
 * while waiting for input, so that no push and no write is cut short. */
#include "feed.h"
#include "option.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ((size_t)64 << 10)

/* ---- Signals --------------------------------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t asked_to_end;

static void end_ask(int signal)
{
    (void)signal;
    asked_to_end = 1;
}

void signals_take(void)
{
    struct sigaction end = { .sa_handler = end_ask }, ignore = { .sa_handler = SIG_IGN };
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

/* Above 0: there is something to read, or the end. Where there always is, ppoll() lets no signal through: they get a moment of their own. */
static int input_wait(const feed_input *input, int wait_ms)
{
    struct pollfd wanted = { .fd = input->descriptor, .events = POLLIN };
    struct timespec limit = { wait_ms / 1000, (long)(wait_ms % 1000) * 1000000 };
    sigset_t blocked, open;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    open = blocked;
    sigdelset(&open, SIGTERM);
    sigdelset(&open, SIGINT);
    int ready = ppoll(&wanted, 1, wait_ms < 0 ? NULL : &limit, &open);
    sigprocmask(SIG_SETMASK, &open, NULL);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    return ready;
}

/* ---- Opening --------------------------------------------------------------------------------------------------------------------------- */

/* Passes over what was pushed before: by seeking, or by reading where the input is a pipe. */
static bool input_skip(feed_input *input, uint64_t size)
{
    struct stat file;
    if (fstat(input->descriptor, &file) == 0 && S_ISREG(file.st_mode)) {
        return (uint64_t)file.st_size >= size && lseek(input->descriptor, (off_t)size, SEEK_SET) == (off_t)size;
    }
    while (size) {
        ssize_t got = read(input->descriptor, input->bytes, size < input->capacity ? (size_t)size : input->capacity);
        if (got <= 0) {
            return false;
        }
        size -= (uint64_t)got;
    }
    return true;
}

bool input_open(feed_input *input, const feed_options *options, const feed_position *position)
{
    *input = (feed_input){ .line_max = options->line_max, .offset = position->input_bytes, .number = position->lines };
    bool standard = !options->input || strcmp(options->input, "-") == 0;
    const char *name = standard ? "standard input" : options->input;
    input->descriptor = standard ? STDIN_FILENO : open(options->input, O_RDONLY | O_CLOEXEC);
    if (input->descriptor < 0) {
        usage_error("%s: cannot read: %s", name, strerror(errno));
        return false;
    }
    input->capacity = READ_BYTES;
    input->bytes = memory_take(input->capacity);
    if (!options->goes_on && position->input_bytes && !input_skip(input, position->input_bytes)) {
        usage_error("%s: ends before byte %llu, up to where the checkpoint has it", name, (unsigned long long)position->input_bytes);
        input_close(input);
        return false;
    }
    return true;
}

void input_close(feed_input *input)
{
    if (input->descriptor > STDIN_FILENO) {
        close(input->descriptor);
    }
    free(input->bytes);
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

static void bytes_read(feed_input *input)
{
    room_make(input);
    ssize_t got = read(input->descriptor, input->bytes + input->end, READ_BYTES);
    if (got > 0) {
        input->end += (size_t)got;
    } else if (got == 0) {
        input->ended = true;
    } else if (errno != EINTR && errno != EAGAIN) {
        input->failed = true;
    }
}

static void bytes_take(feed_input *input, size_t size)
{
    input->first += size;
    input->offset += size;
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
    input->number++;
    bool too_long = input->skipping;
    input->skipping = false;
    return too_long ? FEED_LINE_TOO_LONG : FEED_LINE;
}

feed_got input_next(feed_input *input, int wait_ms, const char **bytes, size_t *size)
{
    for (;;) {
        bool ended = input->ended;
        feed_got got = line_take(input, bytes, size);
        if (got != FEED_NOTHING_YET) {
            return got;
        }
        if (asked_to_end || ended || input->failed) {
            return asked_to_end ? FEED_INTERRUPTED : ended ? FEED_END : FEED_FAILED;
        }
        int ready = input_wait(input, wait_ms);
        if (ready > 0) {
            bytes_read(input);
        } else if (ready == 0) {
            return FEED_NOTHING_YET;
        } else if (errno != EINTR) {
            input->failed = true;
        }
    }
}
