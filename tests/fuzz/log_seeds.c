/* Makes seeds for the corpus of logs: fuzz_log_seeds DIRECTORY writes a file for each of some ways to fill a log. */
#include "directory.h"
#include "engine/log/disk_model.h"
#include "fuzz.h"
#include "log.h"

#include <string.h>

static void append(ivm__log *log, uint32_t nth)
{
    ivm__sink *sink;
    char text[100];
    int size = snprintf(text, sizeof text, "record %u%*s", nth, (int)(nth * 13 % 60), "");
    NEED(ivm__log_append_begin(log, (uint8_t)(1 + nth % 5), &sink, NULL) == IVM_OK);
    NEED(sink->write(sink, text, (size_t)size) == IVM_OK && ivm__log_append_end(log, NULL) == IVM_OK);
}

static void disk_write(disk_model *disk, const char *directory, uint32_t way)
{
    char names[16][40], path[4096];
    snprintf(path, sizeof path, "%s/way_%u", directory, way);
    FILE *out = fopen(path, "wb");
    NEED(out);
    for (uint32_t i = 0, count = disk_names(disk, names, 16); i < count; i++) {
        uint64_t size, sequence = 0;
        ivm__file_kind kind;
        uint8_t *bytes = disk_bytes(disk, names[i], &size);
        if (!ivm__file_name_parse(names[i], &kind, &sequence)) {
            continue;
        }
        uint8_t head[8] = { (uint8_t)kind, 0, (uint8_t)sequence, 0, (uint8_t)size, (uint8_t)(size >> 8) };
        NEED(fwrite(head, 1, sizeof head, out) == sizeof head && fwrite(bytes, 1, size, out) == size);
    }
    NEED(fclose(out) == 0);
}

/* way: bit 0: small segments; bit 1: a checkpoint in between; bit 2: synced after each record; bit 3: no record behind. */
static void way_write(const char *directory, uint32_t way)
{
    disk_model *disk = disk_create(way + 1);
    ivm__log_options options = { .files = disk_files(disk), .segment_bytes = way & 1 ? 300 : 0 };
    ivm__memory memory;
    ivm__log *log;
    ivm__feed *feed;
    uint8_t kind;
    ivm__memory_init(&memory, &(ivm_allocator){ 0 });
    NEED(ivm__log_open("d", &options, &memory, &log, NULL) == IVM_OK);
    NEED(ivm__log_checkpoint_read(log, &feed, NULL) == IVM_OK && !feed && ivm__log_record_read(log, &kind, &feed, NULL) == IVM_OK && !feed);
    for (uint32_t i = 0; i < (way & 8 ? 4 : 8); i++) {
        if (way & 2 && i == 3) {
            ivm__sink *sink;
            NEED(ivm__log_checkpoint_begin(log, &sink, NULL) == IVM_OK && sink->write(sink, "state", 5) == IVM_OK);
            NEED(ivm__log_checkpoint_end(log, NULL) == IVM_OK);
        }
        append(log, i);
        NEED(!(way & 4) || ivm__log_sync(log, NULL) == IVM_OK);
    }
    ivm__log_close(log);
    disk_write(disk, directory, way);
    disk_free(disk);
}

int main(int argc, char **argv)
{
    NEED(argc == 2);
    for (uint32_t way = 0; way < 16; way++) {
        way_write(argv[1], way);
    }
    return 0;
}
