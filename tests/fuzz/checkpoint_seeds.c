/* Makes seeds for the corpus of checkpoints: fuzz_checkpoint_seeds SCENARIO FILE plays the scenario and writes a checkpoint of the engine as it
 * is then. */
#include "replay.h"

static ivm_status file_write(void *context, const void *bytes, size_t size)
{
    return fwrite(bytes, 1, size, context) == size ? IVM_OK : IVM_IO;
}

int main(int argc, char **argv)
{
    ivm_engine_options how = IVM_ENGINE_OPTIONS_INIT;
    ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION, .compression = IVM_COMPRESSION_NONE };
    scenario_file file;
    replay_session replay;
    replay_counts counts = { 0 };
    FILE *out = argc == 3 ? fopen(argv[2], "wb") : NULL;
    if (!out || !scenario_file_read(argv[1], &file) || !replay_open(&replay, &how, NULL)) {
        return 2;
    }
    replay_run(&replay, &file, true, &counts);
    ivm_status status = ivm_checkpoint(replay.engine, file_write, out, &options, NULL);
    replay_close(&replay);
    scenario_file_free(&file);
    return fclose(out) == 0 && status == IVM_OK ? 0 : 1;
}
