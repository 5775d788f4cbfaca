/* The system calls of a log, through a table of pointers, so that tests can put a disk of their own below. Each gives 0 or the number of an
 * error (errno.h), may be interrupted (EINTR: nothing was done) and may do less than was asked where it says so: who calls it by
 * directory.h tries again. Handles are numbers from 0; names are of files in a directory that a handle stands for. */
#ifndef IVM__FILES_H
#define IVM__FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ivm__files_open {
    IVM__FILES_READ,   /* for reading, that is there */
    IVM__FILES_UPDATE, /* for both, that is there */
    IVM__FILES_CREATE, /* for both, that is not there */
    IVM__FILES_ENSURE  /* for both, made where it is not there */
} ivm__files_open;

typedef enum ivm__files_lock { IVM__FILES_UNLOCK, IVM__FILES_SHARE, IVM__FILES_OWN } ivm__files_lock;

/* Is told each name; anything but 0 ends the listing and is what it gives. */
typedef int ivm__files_visit(void *visitor, const char *name);

typedef struct ivm__files {
    void *context;
    int (*directory_make)(void *context, const char *path); /* EEXIST: it is there */
    int (*directory_open)(void *context, const char *path, int *directory);
    int (*directory_list)(void *context, int directory, ivm__files_visit *visit, void *visitor);
    int (*open)(void *context, int directory, const char *name, ivm__files_open how, int *file);
    int (*lock)(void *context, int file, ivm__files_lock how);                                       /* EWOULDBLOCK: another has it */
    int (*read)(void *context, int file, void *bytes, size_t size, uint64_t at, size_t *got);        /* got 0: the end */
    int (*write)(void *context, int file, const void *bytes, size_t size, uint64_t at, size_t *put); /* may put fewer */
    int (*size)(void *context, int file, uint64_t *size);
    int (*truncate)(void *context, int file, uint64_t size);
    int (*datasync)(void *context, int file); /* bytes and size are on the disk */
    int (*sync)(void *context, int file);     /* all is; of a directory: its names */
    int (*rename)(void *context, int directory, const char *from, const char *to);
    int (*unlink)(void *context, int directory, const char *name);
    int (*close)(void *context, int file);                  /* also of a directory; the handle is gone whatever it gives */
    int (*random)(void *context, void *bytes, size_t size); /* not to be foretold */
} ivm__files;

extern const ivm__files ivm__files_posix;

#endif
