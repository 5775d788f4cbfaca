/* Fuzzes scenario files: read and replayed as `ivm replay` does, once plain and once saved and restored before every push, audited and summed up. */
#include "fuzz.h"
#include "replay.h"

#include <string.h>

#define SIZE_MAX_READ ((size_t)64 << 10)
#define SCANS_MAX 12 /* more, and a cross product of some rows takes minutes */

static size_t scans_count(const uint8_t *data, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i + 4 < size; i++) {
        count += memcmp(data + i, "scan", 4) == 0;
    }
    return count;
}

static void replay_once(const scenario_file *file, bool restored)
{
    ivm_engine_options how = IVM_ENGINE_OPTIONS_INIT;
    replay_counts counts = { 0 };
    replay_session replay;
    how.hash_seed = 5;
    NEED(replay_open(&replay, &how, NULL));
    replay.digest.wanted = replay.audits = replay.restored = restored;
    replay_run(&replay, file, false, &counts);
    replay_close(&replay);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scenario_file file;
    if (size == 0 || size > SIZE_MAX_READ || scans_count(data, size) > SCANS_MAX) {
        return -1;
    }
    FILE *in = fmemopen((void *)(uintptr_t)data, size, "r");
    NEED(in);
    bool read = scenario_file_take(in, "fuzzed", &file);
    fclose(in);
    if (read) {
        replay_once(&file, false);
        replay_once(&file, true);
        scenario_file_free(&file);
    }
    return 0;
}
