/* The system's calls as a log asks for them. Cost: a call each. */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MODE 0666 /* less what the process takes off */
#define DIRECTORY_MODE 0777
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

static int outcome(int result)
{
    return result < 0 ? errno : 0;
}

static int handle_take(int result, int *handle)
{
    if (result < 0) {
        return errno;
    }
    *handle = result;
    return 0;
}

static int directory_make(void *context, const char *path)
{
    (void)context;
    return outcome(mkdir(path, DIRECTORY_MODE));
}

static int directory_open(void *context, const char *path, int *directory)
{
    (void)context;
    return handle_take(open(path, DIRECTORY_FLAGS), directory);
}

/* By a handle of its own: the place in a listing belongs to the handle. */
static int directory_list(void *context, int directory, ivm__files_visit *visit, void *visitor)
{
    (void)context;
    int own = openat(directory, ".", DIRECTORY_FLAGS);
    if (own < 0) {
        return errno;
    }
    DIR *listing = fdopendir(own);
    if (!listing) {
        int failed = errno;
        close(own);
        return failed;
    }
    int failed = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(listing);
        if (!entry) {
            failed = errno;
            break;
        }
        failed = visit(visitor, entry->d_name);
        if (failed) {
            break;
        }
    }
    closedir(listing);
    return failed;
}

static int file_open(void *context, int directory, const char *name, ivm__files_open how, int *file)
{
    (void)context;
    static const int flags[] = {
        [IVM__FILES_READ] = O_RDONLY,
        [IVM__FILES_UPDATE] = O_RDWR,
        [IVM__FILES_CREATE] = O_RDWR | O_CREAT | O_EXCL,
        [IVM__FILES_ENSURE] = O_RDWR | O_CREAT,
    };
    return handle_take(openat(directory, name, flags[how] | O_CLOEXEC, FILE_MODE), file);
}

static int file_lock(void *context, int file, ivm__files_lock how)
{
    (void)context;
    static const int operations[] = {
        [IVM__FILES_UNLOCK] = LOCK_UN,
        [IVM__FILES_SHARE] = LOCK_SH | LOCK_NB,
        [IVM__FILES_OWN] = LOCK_EX | LOCK_NB,
    };
    return outcome(flock(file, operations[how]));
}

static int file_read(void *context, int file, void *bytes, size_t size, uint64_t at, size_t *got)
{
    (void)context;
    ssize_t count = pread(file, bytes, size, (off_t)at);
    if (count < 0) {
        return errno;
    }
    *got = (size_t)count;
    return 0;
}

static int file_write(void *context, int file, const void *bytes, size_t size, uint64_t at, size_t *put)
{
    (void)context;
    ssize_t count = pwrite(file, bytes, size, (off_t)at);
    if (count < 0) {
        return errno;
    }
    *put = (size_t)count;
    return 0;
}

static int file_size(void *context, int file, uint64_t *size)
{
    (void)context;
    struct stat about;
    if (fstat(file, &about) < 0) {
        return errno;
    }
    *size = (uint64_t)about.st_size;
    return 0;
}

static int file_truncate(void *context, int file, uint64_t size)
{
    (void)context;
    return outcome(ftruncate(file, (off_t)size));
}

static int file_datasync(void *context, int file)
{
    (void)context;
    return outcome(fdatasync(file));
}

static int file_sync(void *context, int file)
{
    (void)context;
    return outcome(fsync(file));
}

static int file_rename(void *context, int directory, const char *from, const char *to)
{
    (void)context;
    return outcome(renameat(directory, from, directory, to));
}

static int file_unlink(void *context, int directory, const char *name)
{
    (void)context;
    return outcome(unlinkat(directory, name, 0));
}

static int file_close(void *context, int file)
{
    (void)context;
    return outcome(close(file));
}

static int random_draw(void *context, void *bytes, size_t size)
{
    (void)context;
    for (size_t done = 0; done < size;) {
        ssize_t count = getrandom((uint8_t *)bytes + done, size - done, 0);
        if (count < 0) {
            return errno;
        }
        done += (size_t)count;
    }
    return 0;
}

const ivm__files ivm__files_posix = {
    .directory_make = directory_make,
    .directory_open = directory_open,
    .directory_list = directory_list,
    .open = file_open,
    .lock = file_lock,
    .read = file_read,
    .write = file_write,
    .size = file_size,
    .truncate = file_truncate,
    .datasync = file_datasync,
    .sync = file_sync,
    .rename = file_rename,
    .unlink = file_unlink,
    .close = file_close,
    .random = random_draw,
};
