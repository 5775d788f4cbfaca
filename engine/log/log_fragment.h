/* The bytes of a log: heads of files and fragments of records. All little endian; in a segment everything begins at a multiple of 8.
 *
 *     checkpoint = 32 bytes: magic u32 | format u32 (1) | directory u64 | sequence u64 | hash u64, then a stream of bytes; at 0 it may be missing
 *     segment    = 40 bytes: magic u32 | format u32 (1) | directory u64 | segment u64 | sequence u64 | hash u64, then fragments
 *     fragment   = 48 bytes: magic u32 | kind u8 | flags u8 (1: first, 2: last of its record) | 0 u16 | size u32 | index u32 | sequence u64
 *                  | synced u64 | payload's hash u64 | hash u64, then the payload and zeros to the next multiple of 8
 *
 * directory, segment: numbers drawn when they were made: files of another directory, and old blocks of a disk that come up again in a file, are found
 * out. sequence: a record's number; of a head, the number of records before. synced: how many records were known to be on the disk when this
 * was written: that tells damage from a torn tail. Every fragment of a record but its last has IVM__FRAGMENT_BYTES of payload.
 * Hashes: XXH3-64 of the bytes before them, seeded with the directory's number in a segment's head, the segment's in a fragment, 0 in a
 * checkpoint's head; a payload's with its zeros, seeded with the payload's hash before it in its record, in the first with the segment's number.
 * A fragment of kind 0 is no record but a mark behind one: it has no payload, and says of the records before its sequence that they are on the disk.
 * A fragment's head is judged alone, so that looking for one in a damaged file costs time in proportion to the file. */
#ifndef IVM__LOG_FRAGMENT_H
#define IVM__LOG_FRAGMENT_H

#include "bytes.h"

#define IVM__FRAGMENT_BYTES (1u << 20) /* of payload, at most */
#define IVM__LOG_FORMAT 1u

typedef struct ivm__checkpoint_head {
    uint32_t magic, format;
    uint64_t directory, sequence, hash;
} ivm__checkpoint_head;
static_assert(sizeof(ivm__checkpoint_head) == 32, "as it lies");

typedef struct ivm__segment_head {
    uint32_t magic, format;
    uint64_t directory, segment, sequence, hash;
} ivm__segment_head;
static_assert(sizeof(ivm__segment_head) == 40, "as it lies");

typedef enum ivm__fragment_flag { IVM__FRAGMENT_FIRST = 1, IVM__FRAGMENT_LAST = 2 } ivm__fragment_flag;

typedef struct ivm__fragment {
    uint32_t magic;
    uint8_t kind, flags;
    uint16_t zero;
    uint32_t size, index;
    uint64_t sequence, synced, payload_hash, hash;
} ivm__fragment;
static_assert(sizeof(ivm__fragment) == 48, "as it lies");

/* What a payload takes with the zeros behind it. */
static inline uint32_t ivm__fragment_padded(uint32_t size)
{
    return (size + 7) & ~7u;
}

ivm__checkpoint_head ivm__checkpoint_head_make(uint64_t directory, uint64_t sequence);
ivm__segment_head ivm__segment_head_make(uint64_t directory, uint64_t segment, uint64_t sequence);

/* What a head that was found is, against the number in its file's name and, of a segment, the directory's. */
typedef enum ivm__head_found {
    IVM__HEAD_RIGHT,
    IVM__HEAD_UNSOUND, /* nothing that was ever written */
    IVM__HEAD_LATER,   /* of a later version */
    IVM__HEAD_FOREIGN, /* of another directory */
    IVM__HEAD_RENAMED
} ivm__head_found;
ivm__head_found ivm__checkpoint_head_judge(const ivm__checkpoint_head *head, uint64_t sequence);
ivm__head_found ivm__segment_head_judge(const ivm__segment_head *head, uint64_t directory, uint64_t sequence);
/* As the end of a message. */
const char *ivm__head_found_text(ivm__head_found found);

/* Fills in the magic and the hashes. `bytes` is the payload with its zeros. */
void ivm__fragment_seal(ivm__fragment *fragment, const void *bytes, uint64_t segment, uint64_t hash_before);
/* Whether it is a fragment's head that was written into this segment. */
bool ivm__fragment_is_sound(const ivm__fragment *fragment, uint64_t segment);
bool ivm__fragment_ends_record(const ivm__fragment *fragment); /* it is the last of a record, and no mark */
bool ivm__fragment_has(const ivm__fragment *fragment, const void *bytes, uint64_t hash_before);

#endif
