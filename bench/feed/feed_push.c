/* A batch of lines as one push; and where the engine refuses it, which line is to blame. A line that is none of the format is found before the push.
 * What only the engine can find (a key that comes twice, a row that is not there, a null) makes the push fail whole: then fewer lines are tried, half as many
 * each time, down to the one that cannot go in whatever comes with it; behind it twice as many each time. Cost: one bad line among n costs some 4n lines
 * more. Lines go in in their order, each once; `feed_position` stands behind the last of each input. */
#include "feed.h"
#include "option.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define LINE_TEXT_SIZE (PATH_MAX + 32)

typedef enum attempt_end { ATTEMPT_PUSHED, ATTEMPT_REFUSED, ATTEMPT_FATAL } attempt_end;

/* How pushing the lines from `from` to `to` went. */
typedef struct attempt {
    size_t from, to;
    ivm_error error;
    bool by_last;    /* the last line is to blame */
    bool unreadable; /* and is none of the format */
    bool absent;     /* the last line was a deletion by key and no more */
} attempt;

void batch_add(feed_batch *batch, const feed_line *line, feed_place end)
{
    size_t size = line->size;
    if (batch->bytes_count + size > batch->bytes_capacity) {
        batch->bytes_capacity = 2 * (batch->bytes_count + size);
        batch->bytes = memory_grow(batch->bytes, batch->bytes_capacity);
    }
    batch->lines = memory_room(batch->lines, batch->lines_count, &batch->lines_capacity, sizeof *batch->lines);
    memcpy(batch->bytes + batch->bytes_count, line->bytes, size);
    batch->lines[batch->lines_count++] = (feed_text){ batch->bytes_count, size, line->input, end, false };
    batch->bytes_count += size;
}

/* "FILE:7", or "line 7" of standard input. */
static const char *line_called(const feed_session *feed, size_t input, uint64_t number, char text[LINE_TEXT_SIZE])
{
    const char *path = feed->inputs.list[input].path;
    snprintf(text, LINE_TEXT_SIZE, "%s%s%" PRIu64, path ? path : "line", path ? ":" : " ", number);
    return text;
}

void feed_tell_bad(feed_session *feed, size_t input, uint64_t number, const char *message)
{
    char text[LINE_TEXT_SIZE];
    feed->stopped = feed->options.stop || (feed->options.bad_max && feed->position.bad >= feed->options.bad_max);
    feed->position.bad += !feed->stopped; /* where it ends the run the next one reads it again */
    fprintf(stderr, "ivm feed: %s: %s\n", line_called(feed, input, number, text), message);
}

/* Members that are no columns, each the first time it comes: what is misspelled would be null, and nobody the wiser. */
static void unknown_tell(const feed_session *feed, const feed_text *line)
{
    char text[LINE_TEXT_SIZE];
    feed_unknown *unknown = feed->unknown;
    for (; unknown->told < unknown->count; unknown->told++) {
        fprintf(stderr, "ivm feed: %s: %.200s is no column and passed over, here and from now on (--strict: the line is bad)\n",
                line_called(feed, line->input, line->end.lines, text), unknown->names[unknown->told]);
    }
    if (unknown->more && !unknown->more_told) {
        fprintf(stderr, "ivm feed: %s: more members are no columns; no other is told of\n",
                line_called(feed, line->input, line->end.lines, text));
        unknown->more_told = true;
    }
}

/* Another batch may do without the line that brought this. */
static bool lines_are_to_blame(ivm_status status)
{
    switch (status) {
    case IVM_INVALID_ARGUMENT:
    case IVM_TYPE_MISMATCH:
    case IVM_NULL_VIOLATION:
    case IVM_DUPLICATE_KEY:
    case IVM_ROW_NOT_FOUND:
    case IVM_APPEND_ONLY_VIOLATION:
    case IVM_FK_VIOLATION:
    case IVM_OVERFLOW:
    case IVM_UNSUPPORTED:
        return true;
    default:
        return false;
    }
}

/* False where the batch took the line for a mistake, or the line is none: then that line ends the attempt, and nothing of it is in the batch but what
 * will fail the push. */
static bool line_add(feed_session *feed, feed_batch *lines, size_t at, feed_changes *changes, ivm_batch *batch, attempt *now)
{
    feed_text *line = &lines->lines[at];
    bool ok = true;
    changes->table = feed->inputs.list[line->input].table;
    if (line_read(feed, lines->bytes + line->at, line->size, changes)) {
        now->absent = changes->count == 1 && changes->list[0].change == IVM_DELETE_KEY;
        for (size_t i = 0; i < changes->count && ok; i++) {
            const feed_change *change = &changes->list[i];
            ok = ivm_batch_row(batch, change->table->table, change->change, 1, change->values, change->values_count) == IVM_OK;
        }
    } else if (feed->options.stop || feed->options.bad_max) { /* it may end the run: not before the lines before it are in, or told */
        now->unreadable = true;
        memcpy(now->error.message, changes->message, sizeof now->error.message);
        ok = false;
    } else {
        line->left_out = true;
        feed_tell_bad(feed, line->input, line->end.lines, changes->message);
    }
    changes_free(changes);
    unknown_tell(feed, line);
    return ok;
}

/* Behind the lines from `from` to `to`. */
static void position_move(feed_position *position, const feed_batch *lines, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        position->inputs[lines->lines[i].input] = lines->lines[i].end;
    }
}

static attempt_end attempt_make(feed_session *feed, feed_batch *lines, attempt *now)
{
    ivm_batch *batch;
    now->error = (ivm_error)IVM_ERROR_INIT;
    ivm_status status = ivm_batch_create(feed->replay.engine, &batch, &now->error);
    if (status != IVM_OK) {
        return ATTEMPT_FATAL;
    }
    feed_changes *changes = memory_take(sizeof *changes);
    size_t at = now->from;
    bool added = true;
    while (at < now->to && added) {
        added = lines->lines[at].left_out || line_add(feed, lines, at, changes, batch, now);
        at++;
    }
    free(changes);
    now->to = at;
    now->by_last = !added;
    if (now->unreadable) {
        ivm_batch_free(batch);
        return ATTEMPT_REFUSED;
    }
    feed_position behind = feed->position;
    position_move(&behind, lines, now->from, now->to);
    behind.written = 0;
    position_put(batch, &behind);
    status = ivm_push_batch(feed->replay.engine, batch, NULL, &now->error);
    if (status == IVM_OK) {
        return ATTEMPT_PUSHED;
    }
    return lines_are_to_blame(status) ? ATTEMPT_REFUSED : ATTEMPT_FATAL;
}

/* One line that cannot go in. Deleting a key that is not there is no mistake of the feed's: it may have been told before. */
static void line_refused(feed_session *feed, const feed_text *line, const attempt *now)
{
    char message[IVM_ERROR_MESSAGE_SIZE + 32];
    if (now->error.status == IVM_ROW_NOT_FOUND && now->absent) {
        feed->absent_count++;
        return;
    }
    const char *status = now->unreadable ? "" : ivm_status_name(now->error.status);
    snprintf(message, sizeof message, "%s%s%s", status, *status ? ": " : "", now->error.message);
    feed_tell_bad(feed, line->input, line->end.lines, message);
}

static bool lines_push(feed_session *feed, feed_batch *batch)
{
    size_t from = 0, tried = batch->lines_count;
    char text[LINE_TEXT_SIZE];
    while (from < batch->lines_count && !feed->stopped) {
        size_t left = batch->lines_count - from;
        attempt now = { .from = from, .to = from + (tried < left ? tried : left) };
        attempt_end end = attempt_make(feed, batch, &now);
        size_t count = now.to - from;
        if (end == ATTEMPT_FATAL) {
            const feed_text *first = &batch->lines[from];
            usage_error("feed: %s: %s: %s", line_called(feed, first->input, first->end.lines, text), ivm_status_name(now.error.status),
                        now.error.message);
            return false;
        }
        if (end == ATTEMPT_REFUSED && count > 1) {
            tried = now.by_last ? count - 1 : count / 2;
            continue;
        }
        if (end == ATTEMPT_PUSHED && !feed_write(feed, false)) {
            return false;
        }
        if (end == ATTEMPT_REFUSED) {
            line_refused(feed, &batch->lines[from], &now);
        }
        if (!feed->stopped) {
            position_move(&feed->position, batch, from, now.to);
        }
        from = now.to;
        tried = 2 * count;
    }
    return true;
}

bool feed_push(feed_session *feed, feed_batch *batch)
{
    bool ok = lines_push(feed, batch);
    batch->lines_count = batch->bytes_count = 0;
    return ok;
}
