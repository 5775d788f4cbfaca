/* Heads and fragments of a log: made and judged. Cost: a hash of the bytes each. */
#include "log_fragment.h"

#include <assert.h>

#include "hash.h"

#define CHECKPOINT_MAGIC 0x434d5649u /* "IVMC" */
#define SEGMENT_MAGIC 0x4c4d5649u    /* "IVML" */
#define FRAGMENT_MAGIC 0x9d1c7bf3u   /* no text */

ivm__checkpoint_head ivm__checkpoint_head_make(uint64_t directory, uint64_t sequence)
{
    ivm__checkpoint_head head = { CHECKPOINT_MAGIC, IVM__LOG_FORMAT, directory, sequence, 0 };
    head.hash = ivm__hash_bytes(&head, offsetof(ivm__checkpoint_head, hash), 0);
    return head;
}

ivm__segment_head ivm__segment_head_make(uint64_t directory, uint64_t segment, uint64_t sequence)
{
    ivm__segment_head head = { SEGMENT_MAGIC, IVM__LOG_FORMAT, directory, segment, sequence, 0 };
    head.hash = ivm__hash_bytes(&head, offsetof(ivm__segment_head, hash), directory);
    return head;
}

ivm__head_found ivm__checkpoint_head_judge(const ivm__checkpoint_head *head, uint64_t sequence)
{
    if (head->magic != CHECKPOINT_MAGIC || head->hash != ivm__hash_bytes(head, offsetof(ivm__checkpoint_head, hash), 0)) {
        return IVM__HEAD_UNSOUND;
    }
    if (head->format != IVM__LOG_FORMAT) {
        return IVM__HEAD_LATER;
    }
    return head->sequence == sequence ? IVM__HEAD_RIGHT : IVM__HEAD_RENAMED;
}

ivm__head_found ivm__segment_head_judge(const ivm__segment_head *head, uint64_t directory, uint64_t sequence)
{
    if (head->magic != SEGMENT_MAGIC || head->hash != ivm__hash_bytes(head, offsetof(ivm__segment_head, hash), head->directory)) {
        return IVM__HEAD_UNSOUND;
    }
    if (head->format != IVM__LOG_FORMAT) {
        return IVM__HEAD_LATER;
    }
    if (head->directory != directory) {
        return IVM__HEAD_FOREIGN;
    }
    return head->sequence == sequence ? IVM__HEAD_RIGHT : IVM__HEAD_RENAMED;
}

const char *ivm__head_found_text(ivm__head_found found)
{
    static const char *const texts[] = {
        [IVM__HEAD_RIGHT] = "its head is right",
        [IVM__HEAD_UNSOUND] = "its head is not what was written",
        [IVM__HEAD_LATER] = "it is of a later version of the library",
        [IVM__HEAD_FOREIGN] = "it is of another directory than the checkpoint",
        [IVM__HEAD_RENAMED] = "it was written under another name",
    };
    return texts[found];
}

static uint64_t fragment_hash(const ivm__fragment *fragment, uint64_t segment)
{
    return ivm__hash_bytes(fragment, offsetof(ivm__fragment, hash), segment);
}

void ivm__fragment_seal(ivm__fragment *fragment, const void *bytes, uint64_t segment, uint64_t hash_before)
{
    assert(fragment->size <= IVM__FRAGMENT_BYTES && !fragment->zero);
    fragment->magic = FRAGMENT_MAGIC;
    fragment->payload_hash = ivm__hash_bytes(bytes, ivm__fragment_padded(fragment->size), hash_before);
    fragment->hash = fragment_hash(fragment, segment);
}

bool ivm__fragment_is_sound(const ivm__fragment *fragment, uint64_t segment)
{
    bool first = fragment->flags & IVM__FRAGMENT_FIRST, last = fragment->flags & IVM__FRAGMENT_LAST;
    if (fragment->magic != FRAGMENT_MAGIC || fragment->hash != fragment_hash(fragment, segment) || fragment->zero ||
        fragment->flags > (IVM__FRAGMENT_FIRST | IVM__FRAGMENT_LAST) || first != (fragment->index == 0) ||
        fragment->synced > fragment->sequence) { /* records that had not come cannot have been on the disk */
        return false;
    }
    if (fragment->synced > fragment->sequence) {
        return false;
    }
    if (!fragment->kind) {
        return first && last && fragment->size == 0;
    }
    return last ? fragment->size <= IVM__FRAGMENT_BYTES : fragment->size == IVM__FRAGMENT_BYTES;
}

bool ivm__fragment_ends_record(const ivm__fragment *fragment)
{
    return fragment->kind && (fragment->flags & IVM__FRAGMENT_LAST);
}

bool ivm__fragment_has(const ivm__fragment *fragment, const void *bytes, uint64_t hash_before)
{
    return fragment->payload_hash == ivm__hash_bytes(bytes, ivm__fragment_padded(fragment->size), hash_before);
}
