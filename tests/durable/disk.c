/* See disk.h. */
#include "disk.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

typedef enum kind { OTHER, WRITE, SYNC } kind;

/* Whether the call meets with the mishap, and with what: 0, it goes on. */
static int mishap(disk *it, kind of, bool *half)
{
    bool writes_alone = it->what == DISK_STOPS_HALFWAY || it->what == DISK_SHORT;
    *half = false;
    if ((writes_alone && of != WRITE) || (it->syncs_alone && of != SYNC)) {
        return 0;
    }
    uint64_t call = ++it->calls;
    if (call != it->nth && !(it->what == DISK_FAILS_FROM && it->nth && call > it->nth)) {
        return 0;
    }
    it->happened = true;
    if (it->what == DISK_STOPS) {
        raise(SIGKILL);
    }
    *half = writes_alone;
    return it->what == DISK_FAILS || it->what == DISK_FAILS_FROM ? it->number : 0;
}

#define MEET(of)                                                                                                                           \
    disk *it = context;                                                                                                                    \
    bool half;                                                                                                                             \
    int number = mishap(it, of, &half);                                                                                                    \
    if (number) {                                                                                                                          \
        return number;                                                                                                                     \
    }

static int directory_make(void *context, const char *path)
{
    MEET(OTHER)
    return ivm__files_posix.directory_make(NULL, path);
}

static int directory_open(void *context, const char *path, int *directory)
{
    MEET(OTHER)
    return ivm__files_posix.directory_open(NULL, path, directory);
}

static int directory_list(void *context, int directory, ivm__files_visit *visit, void *visitor)
{
    MEET(OTHER)
    return ivm__files_posix.directory_list(NULL, directory, visit, visitor);
}

static int file_open(void *context, int directory, const char *name, ivm__files_open how, int *file)
{
    MEET(OTHER)
    return ivm__files_posix.open(NULL, directory, name, how, file);
}

static int file_lock(void *context, int file, ivm__files_lock how)
{
    MEET(OTHER)
    return ivm__files_posix.lock(NULL, file, how);
}

static int file_read(void *context, int file, void *bytes, size_t size, uint64_t at, size_t *got)
{
    MEET(OTHER)
    return ivm__files_posix.read(NULL, file, bytes, size, at, got);
}

static int file_write(void *context, int file, const void *bytes, size_t size, uint64_t at, size_t *put)
{
    MEET(WRITE)
    number = ivm__files_posix.write(NULL, file, bytes, half && size > 1 ? size / 2 : size, at, put);
    if (half && it->what == DISK_STOPS_HALFWAY) {
        raise(SIGKILL);
    }
    return number;
}

static int file_size(void *context, int file, uint64_t *size)
{
    MEET(OTHER)
    return ivm__files_posix.size(NULL, file, size);
}

static int file_truncate(void *context, int file, uint64_t size)
{
    MEET(OTHER)
    return ivm__files_posix.truncate(NULL, file, size);
}

static int file_datasync(void *context, int file)
{
    MEET(SYNC)
    it->syncs++;
    if (it->sync_microseconds) {
        usleep((useconds_t)it->sync_microseconds);
    }
    if (it->meanwhile) {
        it->meanwhile(it->meanwhile_context);
    }
    return it->pretends ? 0 : ivm__files_posix.datasync(NULL, file);
}

static int file_sync(void *context, int file)
{
    MEET(SYNC)
    it->syncs++;
    if (it->meanwhile) {
        it->meanwhile(it->meanwhile_context);
    }
    return it->pretends ? 0 : ivm__files_posix.sync(NULL, file);
}

static int file_rename(void *context, int directory, const char *from, const char *to)
{
    disk *it = context;
    bool half;
    int number = mishap(it, OTHER, &half);
    if (number) {
        it->segment_unnamed |= strncmp(to, "log-", 4) == 0;
        return number;
    }
    return ivm__files_posix.rename(NULL, directory, from, to);
}

static int file_unlink(void *context, int directory, const char *name)
{
    MEET(OTHER)
    return ivm__files_posix.unlink(NULL, directory, name);
}

/* It gives its handle back whatever it says. */
static int file_close(void *context, int file)
{
    disk *it = context;
    bool half;
    int number = mishap(it, OTHER, &half), closed = ivm__files_posix.close(NULL, file);
    return number ? number : closed;
}

static int random_bytes(void *context, void *bytes, size_t size)
{
    MEET(OTHER)
    return ivm__files_posix.random(NULL, bytes, size);
}

ivm__files disk_files(disk *it)
{
    return (ivm__files){ it,        directory_make, directory_open, directory_list, file_open,   file_lock,   file_read,  file_write,
                         file_size, file_truncate,  file_datasync,  file_sync,      file_rename, file_unlink, file_close, random_bytes };
}
