/* What the two files of the model share. */
#ifndef DISK_INSIDE_H
#define DISK_INSIDE_H

#include <assert.h>

#include "disk_model.h"

#define HANDLES_MAX 16
#define NAMES_MAX 64
#define HANDLE_DIRECTORY (-2)
#define HANDLE_ABOVE (-3)
#define HANDLE_FREE (-1)

typedef struct model_content {
    uint8_t *bytes;
    uint64_t size, capacity; /* bytes past the size keep what once stood there */
} model_content;

/* bytes NULL: the size was set. */
typedef struct file_change {
    uint8_t *bytes;
    uint64_t at, size;
} file_change;

typedef struct model_file {
    model_content seen, kept; /* as calls see it; as it is on the disk */
    file_change *changes;
    uint32_t changes_count, changes_capacity;
} model_file;

typedef struct model_name {
    char text[40];
    int file;
} model_name;

typedef struct model_names {
    model_name list[NAMES_MAX];
    uint32_t count;
} model_names;

/* from "": the name is made; to "": it is removed. */
typedef struct name_change {
    char from[40], to[40];
    int file;
} name_change;

typedef struct model_handle {
    int file;
    ivm__files_lock lock;
} model_handle;

struct disk_model {
    ivm__files files;
    uint64_t random, calls, changes, fault_at;
    disk_fault fault;
    int fault_number;
    bool faulted, dead;   /* faulted: the fault that was armed has come */
    bool now;             /* it came in the call under way */
    bool made, made_kept; /* the directory */
    model_file **list;
    uint32_t count, capacity;
    model_names seen, kept;
    name_change *name_changes;
    uint32_t name_changes_count, name_changes_capacity;
    model_handle handles[HANDLES_MAX];
};

/* How a reboot takes what was not synced: all orders of events a disk may have, the plain ones not too rarely. */
typedef enum model_mood { ALL, NONE, PREFIX, ANY } model_mood;

uint64_t disk_draw(disk_model *disk, uint64_t below);
int disk_file_make(disk_model *disk);
int disk_name_find(const model_names *names, const char *text); /* -1: none */
/* Seen at once, noted for the disk. */
void disk_name_change(disk_model *disk, const char *from, const char *to, int file);
void disk_file_change(model_file *file, const uint8_t *bytes, uint64_t at, uint64_t size);
/* What was noted gets to the disk, as the mood is. journal: sizes that were set do, whatever the mood. */
void disk_file_settle(disk_model *disk, model_file *file, model_mood mood, bool journal);
void disk_names_settle(disk_model *disk, model_mood mood);
void disk_calls_set(disk_model *disk);

#endif
