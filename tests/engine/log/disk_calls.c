/* The disk of tests: its calls, and the faults in them. */
#include "disk_inside.h"

#include <errno.h>
#include <string.h>

/* 0: the call goes on, with less to do where *size has become less; else the number of the error it gives. */
static int call_enter(disk_model *disk, bool change, size_t *size)
{
    disk->calls++;
    disk->changes += change;
    disk->now = false;
    if (disk->dead) {
        return EIO;
    }
    if (!disk->fault_at || --disk->fault_at) {
        return 0;
    }
    disk->faulted = disk->now = true;
    switch (disk->fault) {
    case DISK_SHORT:
        if (size && *size > 1) {
            *size = 1 + disk_draw(disk, *size - 1);
        }
        return 0;
    case DISK_CUT:
        disk->dead = true;
        return EIO;
    default:
        return disk->fault_number;
    }
}

/* A call during which the power goes may yet have had its effect. */
static bool is_done_all_the_same(disk_model *disk)
{
    return disk->now && disk->fault == DISK_CUT && disk_draw(disk, 2);
}

static int handle_new(disk_model *disk, int file, int *made)
{
    for (int i = 0; i < HANDLES_MAX; i++) {
        if (disk->handles[i].file == HANDLE_FREE) {
            disk->handles[i] = (model_handle){ file, IVM__FILES_UNLOCK };
            *made = i;
            return 0;
        }
    }
    return EMFILE;
}

static model_file *file_of(disk_model *disk, int handle)
{
    assert(handle >= 0 && handle < HANDLES_MAX && disk->handles[handle].file >= 0);
    return disk->list[disk->handles[handle].file];
}

static int model_directory_make(void *context, const char *path)
{
    disk_model *disk = context;
    (void)path;
    int failed = call_enter(disk, !disk->made, NULL);
    if (failed && !is_done_all_the_same(disk)) {
        return failed;
    }
    bool there = disk->made;
    disk->made = true;
    return failed ? failed : there ? EEXIST : 0;
}

static int model_directory_open(void *context, const char *path, int *directory)
{
    disk_model *disk = context;
    int failed = call_enter(disk, false, NULL);
    size_t size = strlen(path);
    if (failed || !disk->made) {
        return failed ? failed : ENOENT;
    }
    return handle_new(disk, size > 3 && strcmp(path + size - 3, "/..") == 0 ? HANDLE_ABOVE : HANDLE_DIRECTORY, directory);
}

static int model_directory_list(void *context, int directory, ivm__files_visit *visit, void *visitor)
{
    disk_model *disk = context;
    int failed = call_enter(disk, false, NULL);
    assert(failed || disk->handles[directory].file == HANDLE_DIRECTORY);
    (void)directory;
    model_names names = disk->seen;
    for (uint32_t i = 0; !failed && i < names.count; i++) {
        failed = visit(visitor, names.list[i].text);
    }
    return failed;
}

static int model_open(void *context, int directory, const char *name, ivm__files_open how, int *handle)
{
    disk_model *disk = context;
    (void)directory;
    int at = disk_name_find(&disk->seen, name);
    bool makes = at < 0 && (how == IVM__FILES_CREATE || how == IVM__FILES_ENSURE);
    int failed = call_enter(disk, makes, NULL);
    if (failed && !(makes && is_done_all_the_same(disk))) {
        return failed;
    }
    if (at >= 0 && how == IVM__FILES_CREATE) {
        return EEXIST;
    }
    if (at < 0 && !makes) {
        return ENOENT;
    }
    int file = makes ? disk_file_make(disk) : disk->seen.list[at].file;
    if (makes) {
        disk_name_change(disk, "", name, file);
    }
    return failed ? failed : handle_new(disk, file, handle);
}

static int model_lock(void *context, int handle, ivm__files_lock how)
{
    disk_model *disk = context;
    int failed = call_enter(disk, false, NULL);
    for (int i = 0; !failed && i < HANDLES_MAX; i++) {
        const model_handle *other = &disk->handles[i];
        if (i != handle && other->file == disk->handles[handle].file && how != IVM__FILES_UNLOCK &&
            (other->lock == IVM__FILES_OWN || (other->lock == IVM__FILES_SHARE && how == IVM__FILES_OWN))) {
            return EWOULDBLOCK;
        }
    }
    if (!failed) {
        disk->handles[handle].lock = how;
    }
    return failed;
}

static int model_read(void *context, int handle, void *bytes, size_t size, uint64_t at, size_t *got)
{
    disk_model *disk = context;
    int failed = call_enter(disk, false, &size);
    if (failed) {
        return failed;
    }
    const model_content *content = &file_of(disk, handle)->seen;
    uint64_t there = at < content->size ? content->size - at : 0;
    *got = size < there ? size : there;
    if (*got) {
        memcpy(bytes, content->bytes + at, *got);
    }
    return 0;
}

static int model_write(void *context, int handle, const void *bytes, size_t size, uint64_t at, size_t *put)
{
    disk_model *disk = context;
    size_t whole = size;
    int failed = call_enter(disk, true, &size);
    if (failed && (failed == EINTR || !disk->now)) {
        return failed;
    }
    if (failed) {
        size = disk_draw(disk, whole + 1);
        size = disk_draw(disk, 3) ? size : whole;
    }
    if (size && disk->handles[handle].file >= 0) {
        disk_file_change(file_of(disk, handle), bytes, at, size);
    }
    *put = size;
    return failed;
}

static int model_size(void *context, int handle, uint64_t *size)
{
    disk_model *disk = context;
    int failed = call_enter(disk, false, NULL);
    if (!failed) {
        *size = file_of(disk, handle)->seen.size;
    }
    return failed;
}

static int model_truncate(void *context, int handle, uint64_t size)
{
    disk_model *disk = context;
    int failed = call_enter(disk, true, NULL);
    if (!failed || is_done_all_the_same(disk)) {
        disk_file_change(file_of(disk, handle), NULL, 0, size);
    }
    return failed;
}

static int model_sync(void *context, int handle)
{
    disk_model *disk = context;
    int failed = call_enter(disk, true, NULL), what = disk->handles[handle].file;
    model_mood mood = failed ? (model_mood)disk_draw(disk, 4) : ALL;
    if (failed && (failed == EINTR || disk->dead || what < 0)) {
        return failed;
    }
    if (what == HANDLE_ABOVE) {
        disk->made_kept = true;
    } else if (what == HANDLE_DIRECTORY) {
        disk_names_settle(disk, mood);
    } else {
        disk_file_settle(disk, file_of(disk, handle), mood, true);
    }
    return failed;
}

static int model_rename(void *context, int directory, const char *from, const char *to)
{
    disk_model *disk = context;
    (void)directory;
    int failed = call_enter(disk, true, NULL), at = disk_name_find(&disk->seen, from);
    if (failed && !is_done_all_the_same(disk)) {
        return failed;
    }
    if (at < 0) {
        return failed ? failed : ENOENT;
    }
    disk_name_change(disk, from, to, disk->seen.list[at].file);
    return failed;
}

static int model_unlink(void *context, int directory, const char *name)
{
    disk_model *disk = context;
    (void)directory;
    int at = disk_name_find(&disk->seen, name), failed = call_enter(disk, true, NULL);
    if (failed && !is_done_all_the_same(disk)) {
        return failed;
    }
    if (at < 0) {
        return failed ? failed : ENOENT;
    }
    disk_name_change(disk, name, "", disk->seen.list[at].file);
    return failed;
}

static int model_close(void *context, int handle)
{
    disk_model *disk = context;
    int failed = call_enter(disk, false, NULL);
    disk->handles[handle] = (model_handle){ HANDLE_FREE, IVM__FILES_UNLOCK };
    return failed;
}

static int model_random(void *context, void *bytes, size_t size)
{
    disk_model *disk = context;
    int failed = call_enter(disk, false, NULL);
    for (size_t i = 0; !failed && i < size; i++) {
        ((uint8_t *)bytes)[i] = (uint8_t)disk_draw(disk, 256);
    }
    return failed;
}

void disk_calls_set(disk_model *disk)
{
    disk->files = (ivm__files){
        .context = disk,
        .directory_make = model_directory_make,
        .directory_open = model_directory_open,
        .directory_list = model_directory_list,
        .open = model_open,
        .lock = model_lock,
        .read = model_read,
        .write = model_write,
        .size = model_size,
        .truncate = model_truncate,
        .datasync = model_sync,
        .sync = model_sync,
        .rename = model_rename,
        .unlink = model_unlink,
        .close = model_close,
        .random = model_random,
    };
}
