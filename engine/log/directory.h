/* The directory of a log: its lock, the names in it, and its files, each call tried again when it was interrupted and told by name when it failed:
 * "log-0000000000000003: write: No space left on device, in DIR" (io). Opened to be read only, it changes nothing on the disk. */
#ifndef IVM__DIRECTORY_H
#define IVM__DIRECTORY_H

#include "files.h"
#include "memory.h"

typedef struct ivm__directory {
    const ivm__files *files;
    ivm__memory *memory;
    char *path;
    size_t path_size;
    int handle, lock; /* lock -1: read only, where there is no file to lock */
    bool read_only;
    bool lock_made; /* there was no lock file before */
} ivm__directory;

/* NEW: not whole yet; renamed once it is. */
typedef enum ivm__file_kind { IVM__FILE_CHECKPOINT, IVM__FILE_CHECKPOINT_NEW, IVM__FILE_SEGMENT, IVM__FILE_SEGMENT_NEW } ivm__file_kind;

typedef struct ivm__file_name {
    char text[32];
} ivm__file_name;

typedef struct ivm__file {
    const ivm__directory *directory; /* NULL: closed */
    int handle;
    ivm__file_name name;
} ivm__file;

/* ---- The directory ------------------------------------------------------------------------------------------------------------------ */

/* Makes it if it is not there (not read_only), and locks it: in_use where another has. read_only: shares the lock with others that only read;
 * where there is no lock file it goes on without. On failure there is nothing to close. `memory` and `files` must outlive it. */
ivm_status ivm__directory_open(ivm__directory *directory, const char *path, const ivm__files *files, ivm__memory *memory, bool read_only,
                               ivm_error *error) IVM_MUST_CHECK;
void ivm__directory_close(ivm__directory *directory); /* gives the lock back; a zeroed one is fine */

/* Names made, renamed and removed so far are on the disk. */
ivm_status ivm__directory_sync(const ivm__directory *directory, ivm_error *error) IVM_MUST_CHECK;
/* The directory itself is, in the one it stands in. Nothing is done where that one may not be read. */
ivm_status ivm__directory_sync_above(const ivm__directory *directory, ivm_error *error) IVM_MUST_CHECK;

typedef struct ivm__directory_list {
    uint64_t checkpoint; /* the newest */
    bool checkpoint_found;
    uint64_t *segments; /* the numbers of their first records, ascending */
    uint32_t segments_count, segments_capacity;
    char stranger[256]; /* the first, by its bytes, of the names that no log gives; "": there is none. Cut to the size */
} ivm__directory_list;
/* Released by ivm__directory_list_release(), whatever the outcome. */
ivm_status ivm__directory_list_make(const ivm__directory *directory, ivm__directory_list *list, ivm_error *error) IVM_MUST_CHECK;
void ivm__directory_list_release(const ivm__directory *directory, ivm__directory_list *list);

/* Refuses a directory that somebody else has filled, where no log is to be begun: invalid_argument names the stranger. The lock file goes
 * again if opening made it. */
ivm_status ivm__directory_refuse(const ivm__directory *directory, const ivm__directory_list *list, ivm_error *error);

/* Removes checkpoints and segments before `sequence`, and with `half` all files that are not whole. What cannot be removed stays: the next call
 * tries again. */
void ivm__directory_drop(const ivm__directory *directory, uint64_t sequence, bool half);

ivm__file_name ivm__file_name_of(ivm__file_kind kind, uint64_t sequence);
/* Whether it is a name of a log's file. */
bool ivm__file_name_parse(const char *text, ivm__file_kind *kind, uint64_t *sequence);

ivm_status ivm__directory_rename(const ivm__directory *directory, ivm__file_name from, ivm__file_name to, ivm_error *error) IVM_MUST_CHECK;
/* It is not there afterwards; nor need it be before. */
ivm_status ivm__directory_unlink(const ivm__directory *directory, ivm__file_name name, ivm_error *error) IVM_MUST_CHECK;
bool ivm__directory_remove(const ivm__directory *directory, ivm__file_name name); /* the same, where it does not matter */
ivm_status ivm__directory_random(const ivm__directory *directory, uint64_t *number, ivm_error *error) IVM_MUST_CHECK;

/* ---- Its files ---------------------------------------------------------------------------------------------------------------------- */

/* On failure *file is closed. */
ivm_status ivm__file_open(ivm__file *file, const ivm__directory *directory, ivm__file_name name, ivm__files_open how,
                          ivm_error *error) IVM_MUST_CHECK;
void ivm__file_close(ivm__file *file); /* a closed or zeroed one is fine */
/* All of the bytes; corrupt where the file has fewer. */
ivm_status ivm__file_read(const ivm__file *file, void *bytes, size_t size, uint64_t at, ivm_error *error) IVM_MUST_CHECK;
/* All of the bytes; on failure some of them, at any place, may have been written. */
ivm_status ivm__file_write(const ivm__file *file, const void *bytes, size_t size, uint64_t at, ivm_error *error) IVM_MUST_CHECK;
ivm_status ivm__file_size(const ivm__file *file, uint64_t *size, ivm_error *error) IVM_MUST_CHECK;
ivm_status ivm__file_truncate(const ivm__file *file, uint64_t size, ivm_error *error) IVM_MUST_CHECK;
ivm_status ivm__file_datasync(const ivm__file *file, ivm_error *error) IVM_MUST_CHECK;
ivm_status ivm__file_sync(const ivm__file *file, ivm_error *error) IVM_MUST_CHECK;

#endif
