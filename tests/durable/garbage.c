/* Records that are whole and right by their checksums but say what no engine would have written: bytes of one changed, cut off or added, of one
 * kind under the name of another. Opening must end in an error that names the record or in an engine that can be used, saved and closed; under the address
 * sanitizer this tells whether anything was believed. Prints how many were read.
 *
 *     garbage [RECORDS] */
#include <string.h>

#include "engine/log/disk_model.h"
#include "random.h"
#include "story.h"

#define STEPS 90

typedef struct record {
    uint8_t kind, *bytes;
    size_t size;
} record;

typedef struct tape {
    record *records;
    size_t count;
} tape;

static uint64_t state = 1;

static uint64_t draw(uint64_t limit)
{
    return random_below(&state, limit);
}

/* A record's bytes are told to journal and log in one piece each; here they are taken from a log that is read. */
static void record_take(tape *it, uint8_t kind, ivm__feed *feed)
{
    record made = { .kind = kind, .bytes = malloc(1) };
    uint8_t byte;
    while (feed->read(feed, &byte, 1) == IVM_OK) {
        made.bytes = realloc(made.bytes, made.size + 1);
        made.bytes[made.size++] = byte;
    }
    it->records = realloc(it->records, (it->count + 1) * sizeof *it->records);
    it->records[it->count++] = made;
}

/* What the story's first steps write, but for large pushes and checkpoints. */
static void story_tape(tape *it)
{
    disk_model *disk = disk_create(1);
    ivm_engine *engine;
    ivm__memory memory;
    ivm__log *log;
    ivm__feed *feed;
    uint8_t kind;
    OK(ivm__durable_open("engine", NULL, disk_files(disk), &engine, NULL, error));
    for (uint64_t step = 0; step < STEPS; step++) {
        ivm_error ignored;
        bool told = step < STORY_DECLARES || (step % 31 && step != STORY_CHECKPOINT);
        (void)!(told ? story_step(engine, step, &ignored) : IVM_OK);
    }
    OK(ivm_engine_close(engine, error));
    ivm__memory_init(&memory, &(ivm_allocator){ 0 });
    OK(ivm__log_open("engine", &(ivm__log_options){ .files = disk_files(disk) }, &memory, &log, error));
    for (;;) {
        ivm_error why = IVM_ERROR_INIT;
        NEED(ivm__log_record_read(log, &kind, &feed, &why) == IVM_OK);
        if (!feed) {
            break;
        }
        record_take(it, kind, feed);
    }
    ivm__log_close(log);
    disk_free(disk);
}

static void record_write(ivm__log *log, uint8_t kind, const uint8_t *bytes, size_t size)
{
    ivm__sink *sink;
    OK(ivm__log_append_begin(log, kind, &sink, error));
    NEED(sink->write(sink, bytes, size) == IVM_OK);
    OK(ivm__log_append_end(log, error));
}

static void record_spoil(ivm__log *log, const record *from)
{
    uint8_t *bytes = malloc(from->size + 8), kind = from->kind;
    size_t size = from->size;
    memcpy(bytes, from->bytes, size);
    switch (draw(8)) {
    case 0:
        size = draw(size);
        break;
    case 1:
        memset(bytes + size, (int)draw(256), 8);
        size += 1 + draw(8);
        break;
    case 2:
        kind = (uint8_t)(1 + draw(IVM__RECORD_END));
        break;
    default:
        for (uint64_t changes = 1 + draw(3); changes > 0; changes--) {
            bytes[draw(size)] = (uint8_t)(draw(2) ? draw(256) : draw(4));
        }
        break;
    }
    record_write(log, kind, bytes, size);
    free(bytes);
}

/* A log of the first records, one that is spoilt, and the rest. */
static disk_model *disk_make(const tape *it, size_t spoilt)
{
    disk_model *disk = disk_create(1);
    ivm__memory memory;
    ivm__log *log;
    ivm__feed *feed;
    uint8_t kind;
    ivm__memory_init(&memory, &(ivm_allocator){ 0 });
    OK(ivm__log_open("engine", &(ivm__log_options){ .files = disk_files(disk) }, &memory, &log, error));
    ivm_error why = IVM_ERROR_INIT;
    NEED(ivm__log_record_read(log, &kind, &feed, &why) == IVM_OK && !feed);
    for (size_t i = 0; i < it->count; i++) {
        if (i == spoilt) {
            record_spoil(log, &it->records[i]);
        } else {
            record_write(log, it->records[i].kind, it->records[i].bytes, it->records[i].size);
        }
    }
    ivm__log_close(log);
    return disk;
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1500, corrupt = 0, others = 0;
    tape it = { 0 };
    story_tape(&it);
    NEED(it.count > STEPS / 2);
    for (uint64_t i = 0; i < count; i++) {
        disk_model *disk = disk_make(&it, draw(it.count));
        ivm_engine *engine;
        ivm_error why = IVM_ERROR_INIT;
        ivm_status status = ivm__durable_open("engine", NULL, disk_files(disk), &engine, NULL, &why);
        if (status == IVM_OK) {
            (void)story_digest(engine);
            OK(ivm_engine_close(engine, error));
        } else {
            bool known = status == IVM_CORRUPT || status == IVM_UNSUPPORTED || status == IVM_OVERFLOW || status == IVM_OUT_OF_MEMORY;
            corrupt += status == IVM_CORRUPT;
            others += status != IVM_CORRUPT;
            if (!known || (status != IVM_OUT_OF_MEMORY && !strstr(why.message, "the log's record "))) {
                fprintf(stderr, "%s: %s\n", ivm_status_name(status), why.message);
                return 1;
            }
        }
        disk_free(disk);
    }
    printf("%llu logs with a record that is none: %llu corrupt, %llu unsupported or out of range, the others read\n",
           (unsigned long long)count, (unsigned long long)corrupt, (unsigned long long)others);
    for (size_t i = 0; i < it.count; i++) {
        free(it.records[i].bytes);
    }
    free(it.records);
    return corrupt > count / 3 ? 0 : 1;
}
