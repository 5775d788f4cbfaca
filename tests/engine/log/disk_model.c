/* The disk of tests: what it holds, and what of it is left when the power goes. */
#include "disk_inside.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR 512u

uint64_t disk_draw(disk_model *disk, uint64_t below)
{
    return (random_next(&disk->random) >> 11) % below;
}

static void *room(size_t size)
{
    void *bytes = calloc(1, size ? size : 1);
    if (!bytes) {
        abort();
    }
    return bytes;
}

/* The array, with room for one more. */
static void *grown(void *array, uint32_t *capacity, uint32_t count, size_t item_size)
{
    if (count < *capacity) {
        return array;
    }
    *capacity = count ? 2 * count : 4;
    array = realloc(array, *capacity * item_size);
    if (!array) {
        abort();
    }
    return array;
}

static void content_reserve(model_content *content, uint64_t size)
{
    if (size > content->capacity) {
        uint64_t capacity = size < 2 * content->capacity ? 2 * content->capacity : size;
        uint8_t *moved = room(capacity);
        if (content->capacity) {
            memcpy(moved, content->bytes, content->capacity);
        }
        free(content->bytes);
        content->bytes = moved;
        content->capacity = capacity;
    }
}

static void content_size(model_content *content, uint64_t size)
{
    content_reserve(content, size);
    if (size > content->size) {
        memset(content->bytes + content->size, 0, size - content->size);
    }
    content->size = size;
}

static void content_copy(model_content *to, const model_content *from)
{
    content_reserve(to, from->size);
    to->size = from->size;
    if (from->size) {
        memcpy(to->bytes, from->bytes, from->size);
    }
}

static void content_write(model_content *content, const uint8_t *bytes, uint64_t at, uint64_t size)
{
    if (at + size > content->size) {
        content_size(content, at + size);
    }
    memcpy(content->bytes + at, bytes, size);
}

static void change_make(model_content *content, const file_change *change)
{
    if (change->bytes) {
        content_write(content, change->bytes, change->at, change->size);
    } else {
        content_size(content, change->size);
    }
}

static void changes_forget(model_file *file)
{
    for (uint32_t i = 0; i < file->changes_count; i++) {
        free(file->changes[i].bytes);
    }
    file->changes_count = 0;
}

int disk_file_make(disk_model *disk)
{
    disk->list = grown(disk->list, &disk->capacity, disk->count, sizeof(model_file *));
    disk->list[disk->count] = room(sizeof(model_file));
    return (int)disk->count++;
}

int disk_name_find(const model_names *names, const char *text)
{
    for (uint32_t i = 0; i < names->count; i++) {
        if (strcmp(names->list[i].text, text) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static void name_remove(model_names *names, const char *text)
{
    int at = disk_name_find(names, text);
    if (at >= 0) {
        names->list[at] = names->list[--names->count];
    }
}

static void name_set(model_names *names, const char *text, int file)
{
    name_remove(names, text);
    assert(names->count < NAMES_MAX);
    snprintf(names->list[names->count].text, sizeof names->list[0].text, "%s", text);
    names->list[names->count++].file = file;
}

static void name_change_make(model_names *names, const name_change *change)
{
    int at = change->from[0] ? disk_name_find(names, change->from) : -1;
    if (at >= 0 && names->list[at].file == change->file) {
        name_remove(names, change->from);
    }
    if (change->to[0]) {
        name_set(names, change->to, change->file);
    }
}

void disk_name_change(disk_model *disk, const char *from, const char *to, int file)
{
    disk->name_changes = grown(disk->name_changes, &disk->name_changes_capacity, disk->name_changes_count, sizeof *disk->name_changes);
    name_change *change = &disk->name_changes[disk->name_changes_count++];
    snprintf(change->from, sizeof change->from, "%s", from);
    snprintf(change->to, sizeof change->to, "%s", to);
    change->file = file;
    name_change_make(&disk->seen, change);
}

void disk_file_change(model_file *file, const uint8_t *bytes, uint64_t at, uint64_t size)
{
    file_change change = { NULL, at, size };
    if (bytes) {
        change.bytes = room(size);
        memcpy(change.bytes, bytes, size);
    }
    file->changes = grown(file->changes, &file->changes_capacity, file->changes_count, sizeof *file->changes);
    file->changes[file->changes_count++] = change;
    change_make(&file->seen, &change);
}

/* ---- When the power goes ------------------------------------------------------------------------------------------------------------ */

/* Whether the change is kept. `left`: of a prefix. */
static bool is_kept(disk_model *disk, model_mood mood, uint32_t *left)
{
    switch (mood) {
    case ALL:
        return true;
    case NONE:
        return false;
    case PREFIX:
        if (*left) {
            (*left)--;
            return true;
        }
        return false;
    default:
        return disk_draw(disk, 2);
    }
}

/* The file is as long as the write made it, but its bytes did not get there. */
static void write_lose(disk_model *disk, model_content *kept, uint64_t end)
{
    uint64_t from = kept->size;
    if (end <= from) {
        return;
    }
    uint64_t way = disk_draw(disk, 3);
    content_reserve(kept, end);
    for (uint64_t i = from; i < end && way; i++) {
        kept->bytes[i] = way == 1 ? 0 : (uint8_t)disk_draw(disk, 256);
    }
    kept->size = end;
}

static void write_tear(disk_model *disk, model_content *kept, const file_change *change)
{
    uint64_t end = change->at + change->size;
    if (disk_draw(disk, 2)) {
        write_lose(disk, kept, end);
    }
    for (uint64_t at = change->at; at < end;) {
        uint64_t next = (at / SECTOR + 1) * SECTOR;
        next = next < end ? next : end;
        if (disk_draw(disk, 2)) {
            content_write(kept, change->bytes + (at - change->at), at, next - at);
        }
        at = next;
    }
}

void disk_file_settle(disk_model *disk, model_file *file, model_mood mood, bool journal)
{
    uint32_t left = file->changes_count ? (uint32_t)disk_draw(disk, file->changes_count + 1) : 0;
    for (uint32_t i = 0; i < file->changes_count; i++) {
        const file_change *change = &file->changes[i];
        bool torn = change->bytes && mood != ALL && mood != NONE && (mood == ANY ? disk_draw(disk, 3) == 0 : left == 0);
        if (torn) {
            write_tear(disk, &file->kept, change);
        } else if (is_kept(disk, mood, &left) || (journal && !change->bytes)) {
            change_make(&file->kept, change);
        } else if (change->bytes && mood == ANY && disk_draw(disk, 3) == 0) {
            write_lose(disk, &file->kept, change->at + change->size);
        }
        if (torn && mood == PREFIX) {
            break;
        }
    }
    changes_forget(file);
}

void disk_names_settle(disk_model *disk, model_mood mood)
{
    uint32_t left = (uint32_t)disk_draw(disk, disk->name_changes_count + 1);
    for (uint32_t i = 0; i < disk->name_changes_count; i++) {
        if (is_kept(disk, mood, &left)) {
            name_change_make(&disk->kept, &disk->name_changes[i]);
        }
    }
    disk->name_changes_count = 0;
}

static void handles_forget(disk_model *disk)
{
    for (int i = 0; i < HANDLES_MAX; i++) {
        disk->handles[i] = (model_handle){ HANDLE_FREE, IVM__FILES_UNLOCK };
    }
}

void disk_die(disk_model *disk)
{
    disk->dead = true;
}

void disk_restart(disk_model *disk)
{
    handles_forget(disk);
    disk->dead = false;
}

void disk_reboot(disk_model *disk)
{
    model_mood mood = (model_mood)disk_draw(disk, 4);
    for (uint32_t i = 0; i < disk->count; i++) {
        disk_file_settle(disk, disk->list[i], mood, false);
        content_copy(&disk->list[i]->seen, &disk->list[i]->kept);
    }
    disk_names_settle(disk, mood);
    if (disk->made && !disk->made_kept && !is_kept(disk, mood == PREFIX ? ANY : mood, NULL)) {
        disk->made = false;
        disk->kept.count = 0;
    }
    disk->made_kept = disk->made;
    disk->seen = disk->kept;
    disk_restart(disk);
}

/* ---- Made and freed ----------------------------------------------------------------------------------------------------------------- */

disk_model *disk_create(uint64_t seed)
{
    disk_model *made = room(sizeof *made);
    made->random = (seed + 1) * 0x9E3779B97F4A7C15ull;
    disk_calls_set(made);
    handles_forget(made);
    return made;
}

void disk_free(disk_model *disk)
{
    for (uint32_t i = 0; i < disk->count; i++) {
        changes_forget(disk->list[i]);
        free(disk->list[i]->changes);
        free(disk->list[i]->seen.bytes);
        free(disk->list[i]->kept.bytes);
        free(disk->list[i]);
    }
    free(disk->list);
    free(disk->name_changes);
    free(disk);
}

disk_model *disk_copy(const disk_model *from, uint64_t seed)
{
    disk_model *made = disk_create(seed);
    made->made = made->made_kept = from->made;
    for (uint32_t i = 0; i < from->seen.count; i++) {
        const model_content *content = &from->list[from->seen.list[i].file]->seen;
        disk_put(made, from->seen.list[i].text, content->bytes, content->size);
    }
    return made;
}

const ivm__files *disk_files(const disk_model *disk)
{
    return &disk->files;
}

void disk_arm(disk_model *disk, uint64_t n, disk_fault fault, int number)
{
    disk->fault_at = n;
    disk->fault = fault;
    disk->fault_number = number;
    disk->faulted = false;
}

bool disk_disarm(disk_model *disk)
{
    disk->fault_at = 0;
    return disk->faulted;
}

uint64_t disk_calls(const disk_model *disk)
{
    return disk->calls;
}

uint64_t disk_changes(const disk_model *disk)
{
    return disk->changes;
}

uint32_t disk_handles(const disk_model *disk)
{
    uint32_t count = 0;
    for (int i = 0; i < HANDLES_MAX; i++) {
        count += disk->handles[i].file != HANDLE_FREE;
    }
    return count;
}

static int text_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

uint32_t disk_names(const disk_model *disk, char names[][40], uint32_t count_max)
{
    assert(disk->seen.count <= count_max);
    (void)count_max;
    for (uint32_t i = 0; i < disk->seen.count; i++) {
        memcpy(names[i], disk->seen.list[i].text, sizeof names[i]);
    }
    qsort(names, disk->seen.count, sizeof names[0], text_compare);
    return disk->seen.count;
}

uint8_t *disk_bytes(disk_model *disk, const char *name, uint64_t *size)
{
    int at = disk_name_find(&disk->seen, name);
    if (at < 0) {
        return NULL;
    }
    model_file *file = disk->list[disk->seen.list[at].file];
    *size = file->seen.size;
    return file->seen.bytes;
}

void disk_put(disk_model *disk, const char *name, const void *bytes, uint64_t size)
{
    int file = disk_file_make(disk);
    model_content from = { (uint8_t *)bytes, size, size };
    content_copy(&disk->list[file]->seen, &from);
    content_copy(&disk->list[file]->kept, &from);
    name_set(&disk->seen, name, file);
    name_set(&disk->kept, name, file);
}

void disk_take_off(disk_model *disk, const char *name)
{
    name_remove(&disk->seen, name);
    name_remove(&disk->kept, name);
}
