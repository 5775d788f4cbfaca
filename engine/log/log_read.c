/* Recovery, the way of log_read.h. A record is judged whole before its payload is given. Cost: two hashes of every byte, most of them of bytes that
 * are at hand; memory: a window on the file, no larger than a fragment or the file. */
#include "log_read.h"

#include <string.h>

#define WINDOW_BYTES ((uint64_t)256 << 10) /* read at once, where so many are there */

/* "FILE: byte N: what, in DIR" */
static ivm_status fail_at(const ivm__log *log, uint64_t at, const char *what, ivm_error *error)
{
    return ivm__fail(error, IVM_CORRUPT, "%s: byte %llu: %s, in %s", log->segment.file.name.text, (unsigned long long)at, what,
                     log->directory.path);
}

static ivm_status head_fail(const ivm__log *log, ivm__file_name name, ivm__head_found found, ivm_error *error)
{
    return ivm__fail(error, found == IVM__HEAD_LATER ? IVM_UNSUPPORTED : IVM_CORRUPT, "%s: byte 0: %s, in %s", name.text,
                     ivm__head_found_text(found), log->directory.path);
}

/* ---- The checkpoint ----------------------------------------------------------------------------------------------------------------- */

static ivm_status checkpoint_open(ivm__log *log, uint64_t sequence, ivm_error *error)
{
    ivm__log_checkpoint_feed *feed = &log->reader.checkpoint;
    ivm__file_name name = ivm__file_name_of(IVM__FILE_CHECKPOINT, sequence);
    ivm__checkpoint_head head;
    IVM_TRY(ivm__file_open(&feed->file, &log->directory, name, IVM__FILES_READ, error));
    IVM_TRY(ivm__file_size(&feed->file, &feed->size, error));
    IVM_TRY(ivm__file_read(&feed->file, &head, sizeof head, 0, error));
    ivm__head_found found = ivm__checkpoint_head_judge(&head, sequence);
    if (found != IVM__HEAD_RIGHT) {
        return head_fail(log, name, found, error);
    }
    feed->at = sizeof head;
    log->identity = head.directory;
    return IVM_OK;
}

ivm_status ivm__log_reader_open(ivm__log *log, ivm_error *error)
{
    ivm__log_reader *reader = &log->reader;
    const ivm__directory_list *list = &reader->list;
    assert(list->checkpoint_found);
    IVM_TRY(checkpoint_open(log, list->checkpoint, error));
    while (reader->next < list->segments_count && list->segments[reader->next] < list->checkpoint) {
        reader->next++;
    }
    reader->record = list->checkpoint;
    log->recovery.checkpoint = list->checkpoint;
    log->state.checkpoint = log->state.sequence = log->state.synced = list->checkpoint;
    return IVM_OK;
}

void ivm__log_reader_close(ivm__log *log)
{
    ivm__log_reader *reader = &log->reader;
    ivm__file_close(&reader->checkpoint.file);
    if (log->directory.files) {
        ivm__directory_list_release(&log->directory, &reader->list);
    }
    ivm__release(log->memory, reader->window, reader->window_capacity);
    *reader = (ivm__log_reader){ .ended = reader->ended };
}

static ivm_status checkpoint_feed_read(ivm__feed *self, void *bytes, size_t size)
{
    ivm__log_checkpoint_feed *feed = (ivm__log_checkpoint_feed *)self;
    IVM_TRY(ivm__file_read(&feed->file, bytes, size, feed->at, feed->feed.error));
    feed->at += size;
    return IVM_OK;
}

ivm_status ivm__log_checkpoint_read(ivm__log *log, ivm__feed **feed, ivm_error *error)
{
    ivm__log_checkpoint_feed *made = &log->reader.checkpoint;
    assert(made->file.directory && made->at == sizeof(ivm__checkpoint_head));
    made->feed = (ivm__feed){ checkpoint_feed_read, error };
    *feed = log->recovery.checkpoint == 0 && made->size == made->at ? NULL : &made->feed;
    return IVM_OK;
}

ivm_status ivm__log_checkpoint_fail(const ivm__log *log, ivm_status status, const char *why, ivm_error *error)
{
    const ivm__log_checkpoint_feed *feed = &log->reader.checkpoint;
    assert(status != IVM_OK && feed->file.directory);
    return ivm__fail(error, status, "%s: behind its head of %zu bytes: %s, in %s", feed->file.name.text, sizeof(ivm__checkpoint_head), why,
                     log->directory.path);
}

/* One that was read must have been read to its end. */
static ivm_status checkpoint_leave(ivm__log *log, ivm_error *error)
{
    ivm__log_checkpoint_feed *feed = &log->reader.checkpoint;
    if (feed->file.directory && feed->at > sizeof(ivm__checkpoint_head) && feed->at != feed->size) {
        return ivm__fail(error, IVM_CORRUPT, "%s: byte %llu: there is more than the checkpoint, in %s", feed->file.name.text,
                         (unsigned long long)feed->at, log->directory.path);
    }
    ivm__file_close(&feed->file);
    return IVM_OK;
}

/* ---- Segments ----------------------------------------------------------------------------------------------------------------------- */

/* The file's head: unsound, where there are not enough bytes for one. */
static ivm_status segment_judge(ivm__log *log, ivm__log_segment *segment, uint64_t *size, ivm__head_found *found, ivm_error *error)
{
    ivm__segment_head head;
    *found = IVM__HEAD_UNSOUND;
    IVM_TRY(ivm__file_size(&segment->file, size, error));
    if (*size < sizeof head) {
        return IVM_OK;
    }
    IVM_TRY(ivm__file_read(&segment->file, &head, sizeof head, 0, error));
    *found = ivm__segment_head_judge(&head, log->identity, segment->first);
    segment->id = head.segment;
    return IVM_OK;
}

/* Goes on to `end` in the segment under way. */
static void passed(ivm__log *log, uint64_t end)
{
    pthread_mutex_lock(&log->lock);
    log->state.log_bytes += end - log->segment.size;
    pthread_mutex_unlock(&log->lock);
    log->segment.size = end;
}

/* Takes over the segment if its head is right; closes it otherwise. */
static ivm_status segment_enter(ivm__log *log, ivm__log_segment *segment, ivm_error *error)
{
    ivm__log_reader *reader = &log->reader;
    uint64_t size = 0;
    ivm__head_found found;
    ivm_status status = segment_judge(log, segment, &size, &found, error);
    if (status == IVM_OK && found != IVM__HEAD_RIGHT) {
        status = head_fail(log, segment->file.name, found, error);
    }
    if (status != IVM_OK) {
        ivm__file_close(&segment->file);
        return status;
    }
    ivm__file_close(&log->segment.file);
    passed(log, reader->size);
    log->segment = *segment;
    log->segment.size = 0;
    passed(log, sizeof(ivm__segment_head));
    reader->size = size;
    reader->window_size = 0;
    return IVM_OK;
}

/* The segment behind the one under way, which must begin where that ended. */
static ivm_status segment_follow(ivm__log *log, ivm_error *error)
{
    ivm__log_reader *reader = &log->reader;
    const ivm__directory_list *list = &reader->list;
    const char *path = log->directory.path;
    uint64_t wanted = reader->record;
    if (reader->next == list->segments_count || list->segments[reader->next] != wanted) {
        ivm__file_name missing = ivm__file_name_of(IVM__FILE_SEGMENT, wanted);
        if (!log->segment.file.directory) {
            return ivm__fail(error, IVM_CORRUPT, "%s: it is missing: the checkpoint ends where it began, in %s", missing.text, path);
        }
        ivm__file_name found = ivm__file_name_of(IVM__FILE_SEGMENT, list->segments[reader->next]);
        return ivm__fail(error, IVM_CORRUPT, "%s: byte 0: the segment before it, %s, ends at byte %llu with record %llu, in %s", found.text,
                         log->segment.file.name.text, (unsigned long long)reader->size, (unsigned long long)wanted, path);
    }
    ivm__log_segment segment = { .first = wanted };
    ivm__files_open how = log->read_only ? IVM__FILES_READ : IVM__FILES_UPDATE;
    IVM_TRY(ivm__file_open(&segment.file, &log->directory, ivm__file_name_of(IVM__FILE_SEGMENT, wanted), how, error));
    reader->next++;
    return segment_enter(log, &segment, error);
}

/* ---- Fragments ---------------------------------------------------------------------------------------------------------------------- */

/* *bytes: the next `size` of the file from `at` on, which it has; they hold until the next call. */
static ivm_status window_take(ivm__log *log, uint64_t at, uint64_t size, const uint8_t **bytes, ivm_error *error)
{
    ivm__log_reader *reader = &log->reader;
    assert(size <= reader->size && at <= reader->size - size);
    if (at < reader->window_at || at + size > reader->window_at + reader->window_size) {
        uint64_t left = reader->size - at, count = size > WINDOW_BYTES ? size : WINDOW_BYTES;
        count = count < left ? count : left;
        reader->window_size = 0;
        if (count > reader->window_capacity) {
            uint8_t *grown = ivm__resize(log->memory, reader->window, reader->window_capacity, count);
            if (!grown) {
                (void)ivm__fail_memory(error);
                return IVM_OUT_OF_MEMORY;
            }
            reader->window = grown;
            reader->window_capacity = (uint32_t)count;
        }
        IVM_TRY(ivm__file_read(&log->segment.file, reader->window, count, at, error));
        reader->window_at = at;
        reader->window_size = count;
    }
    *bytes = reader->window + (at - reader->window_at);
    return IVM_OK;
}

/* The fragment at `at`, which must follow `before` (NULL: be the first) of the record that is judged. *wrong: what it is instead; NULL: nothing. */
static ivm_status fragment_take(ivm__log *log, uint64_t at, const ivm__fragment *before, ivm__fragment *fragment, const uint8_t **payload,
                                const char **wrong, ivm_error *error)
{
    const ivm__log_reader *reader = &log->reader;
    const uint8_t *bytes;
    ivm__fragment head;
    *wrong = "the file ends within a fragment's head";
    if (reader->size - at < sizeof head) {
        return IVM_OK;
    }
    IVM_TRY(window_take(log, at, sizeof head, &bytes, error));
    memcpy(&head, bytes, sizeof head);
    *wrong = "a fragment's head is not what was written";
    if (!ivm__fragment_is_sound(&head, log->segment.id)) {
        return IVM_OK;
    }
    *wrong = "another fragment stands where this is wanted";
    if (head.sequence != reader->record || head.index != (before ? before->index + 1 : 0) || (before && head.kind != before->kind)) {
        return IVM_OK;
    }
    *wrong = "the file ends within a fragment";
    uint64_t size = sizeof head + ivm__fragment_padded(head.size);
    if (reader->size - at < size) {
        return IVM_OK;
    }
    IVM_TRY(window_take(log, at, size, &bytes, error));
    *wrong = "a fragment's payload is not what was written";
    if (!ivm__fragment_has(&head, bytes + sizeof head, before ? before->payload_hash : log->segment.id)) {
        return IVM_OK;
    }
    *wrong = NULL;
    *fragment = head;
    *payload = bytes + sizeof head;
    return IVM_OK;
}

/* Whether the record at *at is whole and right: *at is where it ends then, and *fragment its last; else where it is not (*wrong: what). */
static ivm_status record_judge(ivm__log *log, uint64_t *at, ivm__fragment *fragment, const char **wrong, ivm_error *error)
{
    const uint8_t *payload;
    *fragment = (ivm__fragment){ 0 };
    for (bool first = true; !(fragment->flags & IVM__FRAGMENT_LAST); first = false) {
        ivm__fragment before = *fragment;
        IVM_TRY(fragment_take(log, *at, first ? NULL : &before, fragment, &payload, wrong, error));
        if (*wrong) {
            return IVM_OK;
        }
        *at += sizeof *fragment + ivm__fragment_padded(fragment->size);
    }
    return IVM_OK;
}

/* ---- Damage or a tail --------------------------------------------------------------------------------------------------------------- */

/* Whether a fragment from `at` on says that the record that is judged was on the disk. */
static ivm_status acknowledged_find(ivm__log *log, uint64_t at, bool *found, ivm_error *error)
{
    const uint8_t *bytes;
    ivm__fragment fragment;
    *found = false;
    for (; !*found && log->reader.size - at >= sizeof fragment; at += 8) {
        IVM_TRY(window_take(log, at, sizeof fragment, &bytes, error));
        memcpy(&fragment, bytes, sizeof fragment);
        *found = ivm__fragment_is_sound(&fragment, log->segment.id) && fragment.synced > log->reader.record;
    }
    return IVM_OK;
}

static void tail_note(ivm__log *log, const char *what)
{
    ivm__log_recovery *recovery = &log->recovery;
    ivm_error text = IVM_ERROR_INIT;
    uint64_t at = log->segment.size, size = log->reader.size - at;
    (void)ivm__fail(&text, IVM_CORRUPT, "%s: %llu bytes from byte %llu on are no whole record: %s", log->segment.file.name.text,
                    (unsigned long long)size, (unsigned long long)at, what);
    memcpy(recovery->message, text.message, sizeof recovery->message);
    recovery->bytes_cut = size;
    log->reader.torn = true;
}

static ivm_status tail_judge(ivm__log *log, uint64_t at, const char *wrong, ivm_error *error)
{
    const ivm__log_reader *reader = &log->reader;
    bool acknowledged = reader->next < reader->list.segments_count;
    if (!acknowledged) {
        IVM_TRY(acknowledged_find(log, at, &acknowledged, error));
    }
    if (acknowledged) {
        return fail_at(log, at, wrong, error);
    }
    tail_note(log, wrong);
    return IVM_OK;
}

/* ---- Records ------------------------------------------------------------------------------------------------------------------------ */

static ivm_status record_feed_read(ivm__feed *self, void *bytes, size_t size)
{
    ivm__log_record_feed *feed = (ivm__log_record_feed *)self;
    uint8_t *to = bytes;
    while (size) {
        if (!feed->left) {
            const char *wrong = "the record ends too early";
            ivm__fragment before = feed->fragment;
            if (!(before.flags & IVM__FRAGMENT_LAST)) {
                bool first = feed->at == feed->log->segment.size;
                IVM_TRY(fragment_take(feed->log, feed->at, first ? NULL : &before, &feed->fragment, &feed->payload, &wrong, self->error));
            }
            if (wrong) {
                return fail_at(feed->log, feed->at, wrong, self->error);
            }
            feed->at += sizeof before + ivm__fragment_padded(feed->fragment.size);
            feed->left = feed->fragment.size;
            continue;
        }
        uint32_t count = size < feed->left ? (uint32_t)size : feed->left;
        memcpy(to, feed->payload + (feed->fragment.size - feed->left), count);
        feed->left -= count;
        to += count;
        size -= count;
    }
    return IVM_OK;
}

/* Where in the segment under way the first record begins that is not known to be on the disk; 0, the head too, where none of it is. */
static ivm_status unknown_find(ivm__log *log, uint64_t *at, ivm_error *error)
{
    const uint8_t *bytes;
    ivm__fragment fragment;
    *at = log->reader.known > log->segment.first ? sizeof(ivm__segment_head) : 0;
    for (uint64_t number = log->segment.first; number < log->reader.known;) {
        IVM_TRY(window_take(log, *at, sizeof fragment, &bytes, error));
        memcpy(&fragment, bytes, sizeof fragment);
        *at += sizeof fragment + ivm__fragment_padded(fragment.size);
        number += ivm__fragment_ends_record(&fragment);
    }
    return IVM_OK;
}

/* After a sync that failed the system may show bytes that are not on the disk and that no later sync writes, for it takes them to be: so what is
 * not known to be there is written once more. */
static ivm_status tail_rewrite(ivm__log *log, ivm_error *error)
{
    const uint8_t *bytes;
    uint64_t at;
    IVM_TRY(unknown_find(log, &at, error));
    for (uint64_t count; at < log->segment.size; at += count) {
        uint64_t left = log->segment.size - at;
        count = left < WINDOW_BYTES ? left : WINDOW_BYTES;
        IVM_TRY(window_take(log, at, count, &bytes, error));
        IVM_TRY(ivm__file_write(&log->segment.file, bytes, count, at, error));
    }
    return IVM_OK;
}

/* The reader stands behind the last whole record: what is left is made sure of, what does not count is removed. The names must be on the disk
 * before older ones go. */
static ivm_status recovery_settle(ivm__log *log, ivm_error *error)
{
    ivm__log_reader *reader = &log->reader;
    if (reader->torn) {
        IVM_TRY(ivm__file_truncate(&log->segment.file, log->segment.size, error));
        reader->size = log->segment.size;
    }
    IVM_TRY(tail_rewrite(log, error));
    IVM_TRY(ivm__file_sync(&log->segment.file, error));
    IVM_TRY(ivm__directory_sync(&log->directory, error));
    /* Whoever opened it before this may have cut it: one that was closed without a mark too. */
    log->segment.cut = reader->torn || !(log->segment.marked || log->recovery.created);
    ivm__directory_drop(&log->directory, log->recovery.checkpoint, true);
    return IVM_OK;
}

static ivm_status recovery_end(ivm__log *log, ivm_error *error)
{
    if (!log->read_only) {
        IVM_TRY(recovery_settle(log, error));
        log->state.synced = log->state.sequence;
    }
    log->reader.ended = true;
    ivm__log_reader_close(log);
    return IVM_OK;
}

/* What is in a segment behind the last record before the next one's first does not count. */
static bool segment_is_over(const ivm__log *log)
{
    const ivm__log_reader *reader = &log->reader;
    const ivm__directory_list *list = &reader->list;
    return !log->segment.file.directory ||
           (reader->next < list->segments_count && (list->segments[reader->next] == reader->record || log->segment.size == reader->size));
}

/* To the segment that has the next record or mark; *more false: there is none. */
static ivm_status segment_find(ivm__log *log, bool *more, ivm_error *error)
{
    while (segment_is_over(log)) {
        IVM_TRY(segment_follow(log, error));
    }
    *more = log->segment.size < log->reader.size;
    return IVM_OK;
}

/* Judges the next record: *end is where it ends, or 0: there is none. */
static ivm_status record_next(ivm__log *log, uint8_t *kind, uint64_t *end, ivm_error *error)
{
    ivm__log_reader *reader = &log->reader;
    *end = 0;
    for (bool more = true;;) {
        IVM_TRY(segment_find(log, &more, error));
        if (!more) {
            return IVM_OK;
        }
        const char *wrong = NULL;
        uint64_t at = log->segment.size;
        ivm__fragment last;
        IVM_TRY(record_judge(log, &at, &last, &wrong, error));
        if (wrong) {
            return tail_judge(log, at, wrong, error);
        }
        reader->known = last.synced;
        log->segment.marked = !last.kind;
        if (last.kind) {
            *kind = last.kind;
            *end = at;
            return IVM_OK;
        }
        passed(log, at);
    }
}

/* Goes past the record that was given last. */
static void record_leave(ivm__log *log)
{
    ivm__log_record_feed *feed = &log->reader.feed;
    if (feed->log) {
        passed(log, feed->end);
        log->reader.record++;
        feed->log = NULL;
    }
}

ivm_status ivm__log_record_read(ivm__log *log, uint8_t *kind, ivm__feed **feed, ivm_error *error)
{
    ivm__log_reader *reader = &log->reader;
    uint64_t end;
    assert(!reader->ended);
    IVM_TRY(checkpoint_leave(log, error));
    record_leave(log);
    IVM_TRY(record_next(log, kind, &end, error));
    if (!end) {
        *feed = NULL;
        return recovery_end(log, error);
    }
    pthread_mutex_lock(&log->lock);
    log->state.sequence++;
    pthread_mutex_unlock(&log->lock);
    reader->feed = (ivm__log_record_feed){ .feed = { record_feed_read, error }, .log = log, .at = log->segment.size, .end = end };
    *feed = &reader->feed.feed;
    return IVM_OK;
}
