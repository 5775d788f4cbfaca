/* The directory of a log: locking, listing and naming, and its files' calls with their failures told. Cost: the calls themselves. */
#include "directory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_CHECKPOINT "checkpoint-"
#define NAME_SEGMENT "log-"
#define NAME_NEW ".new"
#define NAME_LOCK "lock"
#define NAME_DIGITS 16u
#define REASON_SIZE 128u

/* Once more while it is interrupted before it did anything. */
#define AGAIN(failed, call)                                                                                                                \
    do {                                                                                                                                   \
        (failed) = (call);                                                                                                                 \
    } while ((failed) == EINTR)

/* `name` "" is the directory itself. */
static ivm_status call_fail(const ivm__directory *directory, const char *name, const char *call, int failed, ivm_error *error)
{
    char reason[REASON_SIZE] = "";
    if (failed && strerror_r(failed, reason, sizeof reason) != 0) {
        snprintf(reason, sizeof reason, "error %d", failed);
    }
    if (!*name) {
        return ivm__fail(error, IVM_IO, "%s: %s: %s", directory->path, call, reason);
    }
    return ivm__fail(error, IVM_IO, "%s: %s: %s, in %s", name, call, reason, directory->path);
}

/* ---- Names -------------------------------------------------------------------------------------------------------------------------- */

ivm__file_name ivm__file_name_of(ivm__file_kind kind, uint64_t sequence)
{
    ivm__file_name name;
    bool segment = kind == IVM__FILE_SEGMENT || kind == IVM__FILE_SEGMENT_NEW;
    bool half = kind == IVM__FILE_CHECKPOINT_NEW || kind == IVM__FILE_SEGMENT_NEW;
    int size = snprintf(name.text, sizeof name.text, "%s%0*llx%s", segment ? NAME_SEGMENT : NAME_CHECKPOINT, (int)NAME_DIGITS,
                        (unsigned long long)sequence, half ? NAME_NEW : "");
    assert(size > 0 && (size_t)size < sizeof name.text);
    (void)size;
    return name;
}

bool ivm__file_name_parse(const char *text, ivm__file_kind *kind, uint64_t *sequence)
{
    bool segment = strncmp(text, NAME_SEGMENT, strlen(NAME_SEGMENT)) == 0;
    if (!segment && strncmp(text, NAME_CHECKPOINT, strlen(NAME_CHECKPOINT)) != 0) {
        return false;
    }
    const char *digits = text + (segment ? strlen(NAME_SEGMENT) : strlen(NAME_CHECKPOINT));
    if (strspn(digits, "0123456789abcdef") != NAME_DIGITS) {
        return false;
    }
    const char *rest = digits + NAME_DIGITS;
    bool half = strcmp(rest, NAME_NEW) == 0;
    if (*rest && !half) {
        return false;
    }
    *kind = segment ? (half ? IVM__FILE_SEGMENT_NEW : IVM__FILE_SEGMENT) : half ? IVM__FILE_CHECKPOINT_NEW : IVM__FILE_CHECKPOINT;
    *sequence = strtoull(digits, NULL, 16);
    return true;
}

/* ---- The directory ------------------------------------------------------------------------------------------------------------------ */

static void handle_close(const ivm__directory *directory, int handle)
{
    if (handle >= 0) {
        (void)directory->files->close(directory->files->context, handle);
    }
}

static ivm_status directory_lock(ivm__directory *directory, ivm_error *error)
{
    const ivm__files *files = directory->files;
    int failed;
    AGAIN(failed, files->open(files->context, directory->handle, NAME_LOCK, directory->read_only ? IVM__FILES_READ : IVM__FILES_UPDATE,
                              &directory->lock));
    if (failed == ENOENT && !directory->read_only) {
        directory->lock_made = true;
        AGAIN(failed, files->open(files->context, directory->handle, NAME_LOCK, IVM__FILES_ENSURE, &directory->lock));
    }
    if (failed) {
        directory->lock = -1;
        return failed == ENOENT && directory->read_only ? IVM_OK : call_fail(directory, NAME_LOCK, "open", failed, error);
    }
    AGAIN(failed, files->lock(files->context, directory->lock, directory->read_only ? IVM__FILES_SHARE : IVM__FILES_OWN));
    if (!failed) {
        return IVM_OK;
    }
    handle_close(directory, directory->lock);
    directory->lock = -1;
    return failed == EWOULDBLOCK ? ivm__fail(error, IVM_IN_USE, "%s: another engine or process has it open", directory->path)
                                 : call_fail(directory, NAME_LOCK, "flock", failed, error);
}

static ivm_status directory_enter(ivm__directory *directory, ivm_error *error)
{
    const ivm__files *files = directory->files;
    int failed = 0;
    if (!directory->read_only) {
        AGAIN(failed, files->directory_make(files->context, directory->path));
    }
    if (failed && failed != EEXIST) {
        return call_fail(directory, "", "mkdir", failed, error);
    }
    AGAIN(failed, files->directory_open(files->context, directory->path, &directory->handle));
    if (failed) {
        directory->handle = -1;
        return call_fail(directory, "", "open", failed, error);
    }
    return directory_lock(directory, error);
}

ivm_status ivm__directory_open(ivm__directory *directory, const char *path, const ivm__files *files, ivm__memory *memory, bool read_only,
                               ivm_error *error)
{
    assert(path && files);
    *directory =
        (ivm__directory){ .files = files, .memory = memory, .path_size = strlen(path), .handle = -1, .lock = -1, .read_only = read_only };
    directory->path = ivm__text_copy(memory, path, directory->path_size);
    ivm_status status = directory->path ? directory_enter(directory, error) : ivm__fail_memory(error);
    if (status != IVM_OK) {
        ivm__directory_close(directory);
    }
    return status;
}

void ivm__directory_close(ivm__directory *directory)
{
    if (!directory->files) {
        return;
    }
    handle_close(directory, directory->handle);
    if (directory->lock >= 0) {
        /* Said, not left to closing: a child that was forked may still hold the handle. */
        (void)directory->files->lock(directory->files->context, directory->lock, IVM__FILES_UNLOCK);
        handle_close(directory, directory->lock);
    }
    ivm__release(directory->memory, directory->path, directory->path_size + 1);
    *directory = (ivm__directory){ 0 };
}

ivm_status ivm__directory_sync(const ivm__directory *directory, ivm_error *error)
{
    int failed;
    AGAIN(failed, directory->files->sync(directory->files->context, directory->handle));
    return failed ? call_fail(directory, "", "fsync", failed, error) : IVM_OK;
}

ivm_status ivm__directory_sync_above(const ivm__directory *directory, ivm_error *error)
{
    static const char above[] = "/..";
    const ivm__files *files = directory->files;
    size_t size = directory->path_size + sizeof above;
    char *path = ivm__allocate(directory->memory, size);
    if (!path) {
        return ivm__fail_memory(error);
    }
    memcpy(path, directory->path, directory->path_size);
    memcpy(path + directory->path_size, above, sizeof above);
    int handle = -1, failed;
    AGAIN(failed, files->directory_open(files->context, path, &handle));
    if (!failed) {
        AGAIN(failed, files->sync(files->context, handle));
        handle_close(directory, handle);
    } else if (failed == EACCES) {
        failed = 0;
    }
    ivm__release(directory->memory, path, size);
    return failed ? call_fail(directory, "", "fsync of the directory it is in", failed, error) : IVM_OK;
}

/* lost+found is the file system's own, at the top of each. */
static void stranger_take(ivm__directory_list *list, const char *name)
{
    static const char *const none[] = { NAME_LOCK, ".", "..", "lost+found" };
    bool own = false;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        own |= strcmp(name, none[i]) == 0;
    }
    if (!own && (!list->stranger[0] || strcmp(name, list->stranger) < 0)) {
        snprintf(list->stranger, sizeof list->stranger, "%s", name);
    }
}

typedef struct lister {
    const ivm__directory *directory;
    ivm__directory_list *list;
} lister;

static int name_take(void *visitor, const char *name)
{
    const lister *self = visitor;
    ivm__directory_list *list = self->list;
    ivm__file_kind kind;
    uint64_t sequence;
    if (!ivm__file_name_parse(name, &kind, &sequence)) {
        stranger_take(list, name);
        return 0;
    }
    if (kind == IVM__FILE_SEGMENT) {
        if (ivm__grow(self->directory->memory, (void **)&list->segments, &list->segments_capacity, (uint64_t)list->segments_count + 1,
                      sizeof *list->segments) != IVM_OK) {
            return ENOMEM;
        }
        list->segments[list->segments_count++] = sequence;
    } else if (kind == IVM__FILE_CHECKPOINT && (!list->checkpoint_found || sequence > list->checkpoint)) {
        list->checkpoint = sequence;
        list->checkpoint_found = true;
    }
    return 0;
}

static int sequence_compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

ivm_status ivm__directory_list_make(const ivm__directory *directory, ivm__directory_list *list, ivm_error *error)
{
    const ivm__files *files = directory->files;
    *list = (ivm__directory_list){ 0 };
    lister self = { directory, list };
    int failed;
    do {
        list->segments_count = 0;
        failed = files->directory_list(files->context, directory->handle, name_take, &self);
    } while (failed == EINTR);
    if (failed == ENOMEM) {
        return ivm__fail_memory(error);
    }
    if (failed) {
        return call_fail(directory, "", "readdir", failed, error);
    }
    if (list->segments_count) {
        qsort(list->segments, list->segments_count, sizeof *list->segments, sequence_compare);
    }
    return IVM_OK;
}

void ivm__directory_list_release(const ivm__directory *directory, ivm__directory_list *list)
{
    ivm__release(directory->memory, list->segments, list->segments_capacity * sizeof *list->segments);
    *list = (ivm__directory_list){ 0 };
}

ivm_status ivm__directory_refuse(const ivm__directory *directory, const ivm__directory_list *list, ivm_error *error)
{
    assert(list->stranger[0] && !list->checkpoint_found && !directory->read_only);
    if (directory->lock_made) {
        (void)directory->files->unlink(directory->files->context, directory->handle, NAME_LOCK);
    }
    return ivm__fail(error, IVM_INVALID_ARGUMENT, "%s is in %s, which has no engine: one is made in an empty directory alone",
                     list->stranger, directory->path);
}

ivm_status ivm__directory_rename(const ivm__directory *directory, ivm__file_name from, ivm__file_name to, ivm_error *error)
{
    assert(!directory->read_only);
    int failed;
    AGAIN(failed, directory->files->rename(directory->files->context, directory->handle, from.text, to.text));
    return failed ? call_fail(directory, from.text, "rename", failed, error) : IVM_OK;
}

ivm_status ivm__directory_unlink(const ivm__directory *directory, ivm__file_name name, ivm_error *error)
{
    assert(!directory->read_only);
    int failed;
    AGAIN(failed, directory->files->unlink(directory->files->context, directory->handle, name.text));
    return failed && failed != ENOENT ? call_fail(directory, name.text, "unlink", failed, error) : IVM_OK;
}

bool ivm__directory_remove(const ivm__directory *directory, ivm__file_name name)
{
    return ivm__directory_unlink(directory, name, NULL) == IVM_OK;
}

/* Names are found first and removed afterwards: what a listing gives while names go is not said. */
#define DROPPED_AT_ONCE 64u
typedef struct dropper {
    uint64_t sequence;
    bool half;
    uint32_t count;
    ivm__file_name names[DROPPED_AT_ONCE];
} dropper;

static int dropped_take(void *visitor, const char *name)
{
    dropper *self = visitor;
    ivm__file_kind kind;
    uint64_t sequence;
    if (!ivm__file_name_parse(name, &kind, &sequence) || self->count == DROPPED_AT_ONCE) {
        return 0;
    }
    bool half = kind == IVM__FILE_CHECKPOINT_NEW || kind == IVM__FILE_SEGMENT_NEW;
    if (half ? self->half : sequence < self->sequence) {
        self->names[self->count++] = ivm__file_name_of(kind, sequence);
    }
    return 0;
}

void ivm__directory_drop(const ivm__directory *directory, uint64_t sequence, bool half)
{
    assert(!directory->read_only);
    const ivm__files *files = directory->files;
    dropper self = { .sequence = sequence, .half = half };
    bool all = true;
    do {
        self.count = 0;
        (void)files->directory_list(files->context, directory->handle, dropped_take, &self);
        for (uint32_t i = 0; i < self.count; i++) {
            all = ivm__directory_remove(directory, self.names[i]) && all;
        }
    } while (all && self.count == DROPPED_AT_ONCE);
}

ivm_status ivm__directory_random(const ivm__directory *directory, uint64_t *number, ivm_error *error)
{
    int failed;
    AGAIN(failed, directory->files->random(directory->files->context, number, sizeof *number));
    return failed ? call_fail(directory, "", "getrandom", failed, error) : IVM_OK;
}

/* ---- Its files ---------------------------------------------------------------------------------------------------------------------- */

static ivm_status file_fail(const ivm__file *file, const char *call, int failed, ivm_error *error)
{
    return call_fail(file->directory, file->name.text, call, failed, error);
}

ivm_status ivm__file_open(ivm__file *file, const ivm__directory *directory, ivm__file_name name, ivm__files_open how, ivm_error *error)
{
    const ivm__files *files = directory->files;
    assert(!directory->read_only || how == IVM__FILES_READ);
    *file = (ivm__file){ 0 };
    int handle = -1, failed;
    AGAIN(failed, files->open(files->context, directory->handle, name.text, how, &handle));
    if (failed) {
        return call_fail(directory, name.text, "open", failed, error);
    }
    *file = (ivm__file){ directory, handle, name };
    return IVM_OK;
}

void ivm__file_close(ivm__file *file)
{
    if (file->directory) {
        handle_close(file->directory, file->handle);
    }
    *file = (ivm__file){ 0 };
}

ivm_status ivm__file_read(const ivm__file *file, void *bytes, size_t size, uint64_t at, ivm_error *error)
{
    const ivm__files *files = file->directory->files;
    for (size_t done = 0; done < size;) {
        size_t got = 0;
        int failed;
        AGAIN(failed, files->read(files->context, file->handle, (uint8_t *)bytes + done, size - done, at + done, &got));
        if (failed) {
            return file_fail(file, "read", failed, error);
        }
        if (!got) {
            unsigned long long end = at + done;
            return ivm__fail(error, IVM_CORRUPT, "%s: ends at byte %llu, in %s", file->name.text, end, file->directory->path);
        }
        done += got;
    }
    return IVM_OK;
}

ivm_status ivm__file_write(const ivm__file *file, const void *bytes, size_t size, uint64_t at, ivm_error *error)
{
    const ivm__files *files = file->directory->files;
    assert(!file->directory->read_only);
    for (size_t done = 0; done < size;) {
        size_t put = 0;
        int failed;
        AGAIN(failed, files->write(files->context, file->handle, (const uint8_t *)bytes + done, size - done, at + done, &put));
        if (failed || !put) {
            return file_fail(file, "write", failed ? failed : EIO, error);
        }
        done += put;
    }
    return IVM_OK;
}

ivm_status ivm__file_size(const ivm__file *file, uint64_t *size, ivm_error *error)
{
    int failed;
    AGAIN(failed, file->directory->files->size(file->directory->files->context, file->handle, size));
    return failed ? file_fail(file, "fstat", failed, error) : IVM_OK;
}

ivm_status ivm__file_truncate(const ivm__file *file, uint64_t size, ivm_error *error)
{
    int failed;
    assert(!file->directory->read_only);
    AGAIN(failed, file->directory->files->truncate(file->directory->files->context, file->handle, size));
    return failed ? file_fail(file, "ftruncate", failed, error) : IVM_OK;
}

ivm_status ivm__file_datasync(const ivm__file *file, ivm_error *error)
{
    int failed;
    AGAIN(failed, file->directory->files->datasync(file->directory->files->context, file->handle));
    return failed ? file_fail(file, "fdatasync", failed, error) : IVM_OK;
}

ivm_status ivm__file_sync(const ivm__file *file, ivm_error *error)
{
    int failed;
    AGAIN(failed, file->directory->files->sync(file->directory->files->context, file->handle));
    return failed ? file_fail(file, "fsync", failed, error) : IVM_OK;
}
