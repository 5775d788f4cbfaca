/* Several inputs as one. A file always has more until its end: files come first, one after the other in the order given, and lie behind one another as if they
 * were one. Pipes come then, as lines come: a line of each in turn, where several have one, and all are waited for together. An input is read when no line of any is
 * there whole, so that what is read ahead is 64 KB of each. Signals are blocked but while waiting, so that no push and no write is cut short. */
#include "feed.h"
#include "option.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

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

/* How many have something to read, or their end. Where there always is, ppoll() lets no signal through: they get a moment of their own. */
static int wanted_wait(struct pollfd *wanted, size_t count, int wait_ms)
{
    struct timespec limit = { wait_ms / 1000, (long)(wait_ms % 1000) * 1000000 };
    sigset_t blocked, open;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    open = blocked;
    sigdelset(&open, SIGTERM);
    sigdelset(&open, SIGINT);
    int ready = ppoll(wanted, count, wait_ms < 0 ? NULL : &limit, &open);
    int cause = errno;
    sigprocmask(SIG_SETMASK, &open, NULL);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    errno = cause;
    return ready;
}

/* ---- Which they are -------------------------------------------------------------------------------------------------------------------- */

static const feed_table *table_named(const feed_session *feed, const char *name)
{
    for (size_t i = 0; name && i < feed->tables_count; i++) {
        if (strcmp(feed->tables[i].name, name) == 0) {
            return &feed->tables[i];
        }
    }
    return NULL;
}

/* What is behind the last colon is a table where there is one of that name; else it belongs to the file's. */
static bool input_find(feed_session *feed, const char *text)
{
    feed_inputs *inputs = &feed->inputs;
    const char *colon = strrchr(text, ':');
    const feed_table *table = table_named(feed, colon ? colon + 1 : NULL);
    size_t size = table ? (size_t)(colon - text) : strlen(text);
    feed_input *input = &inputs->list[inputs->count++];
    bool standard = size == 1 && *text == '-';
    *input = (feed_input){ .descriptor = -1, .table = table ? table : table_named(feed, feed->options.table) };
    if (!standard) {
        input->path = memory_take(size + 1);
        memcpy(input->path, text, size);
        input->path[size] = 0;
    }
    for (size_t i = 0; standard && i + 1 < inputs->count; i++) {
        if (!inputs->list[i].path) {
            usage_error("feed: standard input can be given once");
            return false;
        }
    }
    return true;
}

/* FNV-1a, over texts and the bytes of 0 behind them. */
static uint64_t texts_hash(char *const *texts, size_t count)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++) {
        for (const char *at = texts[i]; at == texts[i] || at[-1]; at++) {
            hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
        }
    }
    return hash;
}

bool inputs_find(feed_session *feed, char *const *texts, size_t count)
{
    if (count > FEED_INPUTS_MAX) {
        usage_error("feed: %zu inputs, %d at most", count, FEED_INPUTS_MAX);
        return false;
    }
    bool ok = count || input_find(feed, "-");
    for (size_t i = 0; ok && i < count; i++) {
        ok = input_find(feed, texts[i]);
    }
    feed->position.inputs_count = feed->inputs.count;
    feed->position.inputs_hash = count > 1 ? texts_hash(texts, count) : 0;
    return ok;
}

bool inputs_open(feed_session *feed)
{
    bool ok = true;
    for (size_t i = 0; ok && i < feed->inputs.count; i++) {
        ok = input_open(&feed->inputs.list[i], feed->position.inputs[i], feed->options.line_max, feed->options.goes_on);
    }
    return ok;
}

void inputs_close(feed_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        input_close(&inputs->list[i]);
    }
    inputs->count = 0;
}

/* ---- Lines ----------------------------------------------------------------------------------------------------------------------------- */

/* It is not at its end, and no file is to be read before it. */
static bool has_turn(const feed_inputs *inputs, const feed_input *input)
{
    for (size_t i = 0; i < inputs->count; i++) {
        const feed_input *other = &inputs->list[i];
        if (other->is_file && !other->done) {
            return other == input;
        }
    }
    return !input->done;
}

static feed_got line_find(feed_inputs *inputs, feed_line *line)
{
    bool all_done = true;
    for (size_t n = 0; n < inputs->count; n++) {
        size_t at = (inputs->turn + n) % inputs->count;
        feed_input *input = &inputs->list[at];
        feed_got got = has_turn(inputs, input) ? input_line(input, &line->bytes, &line->size) : FEED_NOTHING_YET;
        all_done = all_done && input->done;
        if (got != FEED_NOTHING_YET && got != FEED_END) {
            line->input = at;
            inputs->turn = (at + 1) % inputs->count;
            return got;
        }
    }
    return all_done ? FEED_END : FEED_NOTHING_YET;
}

/* As wanted_wait(), and what is there is read. */
static int inputs_read(feed_inputs *inputs, int wait_ms)
{
    struct pollfd wanted[FEED_INPUTS_MAX];
    feed_input *whose[FEED_INPUTS_MAX];
    nfds_t count = 0;
    for (size_t i = 0; i < inputs->count; i++) {
        if (has_turn(inputs, &inputs->list[i])) {
            whose[count] = &inputs->list[i];
            wanted[count++] = (struct pollfd){ .fd = inputs->list[i].descriptor, .events = POLLIN };
        }
    }
    int ready = wanted_wait(wanted, count, wait_ms);
    for (nfds_t i = 0; ready > 0 && i < count; i++) {
        if (wanted[i].revents) {
            input_read(whose[i]);
        }
    }
    return ready;
}

feed_got inputs_next(feed_inputs *inputs, int wait_ms, feed_line *line)
{
    for (;;) {
        feed_got got = line_find(inputs, line);
        if (got != FEED_NOTHING_YET) {
            return got;
        }
        if (asked_to_end) {
            return FEED_INTERRUPTED;
        }
        int ready = inputs_read(inputs, wait_ms);
        if (ready == 0) {
            return FEED_NOTHING_YET;
        }
        if (ready < 0 && errno != EINTR) {
            usage_error("feed: cannot wait for input: %s", strerror(errno));
            return FEED_FAILED;
        }
    }
}
