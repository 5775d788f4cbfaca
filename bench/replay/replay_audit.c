/* `ivm replay --audit`: every view that stands is computed anew behind a push or refresh, and each row in which it differs counts as wrong. One that
 * reads a table whose rows are not kept cannot be audited and is passed over; any other failure counts as one. */
#include "replay.h"

#include <stdlib.h>

static void audit_tell(const scenario_file *file, size_t at, const ivm_view *view, const char *text)
{
    fprintf(stderr, "%s:%zu: audit %s: %s\n", file->path, file->lines[at].number, ivm_view_name(view), text);
}

static void differences_tell(replay_session *replay, const scenario_file *file, size_t at, ivm_view *view, ivm_snapshot *differences)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        return;
    }
    ivm_status status = replay_differences_write(replay, view, differences, out);
    fclose(out);
    audit_tell(file, at, view, status == IVM_OK ? text : ivm_status_name(status));
    free(text);
}

void replay_audit(replay_session *replay, const scenario_file *file, size_t at, replay_counts *counts)
{
    for (size_t i = 0; i < at; i++) {
        ivm_view *view = replay_view_made(replay, file, i);
        ivm_snapshot *differences = NULL;
        ivm_error error = IVM_ERROR_INIT;
        ivm_status status = view ? ivm_audit_view(view, &differences, &error) : IVM_UNSUPPORTED;
        if (status == IVM_OK && ivm_snapshot_rows_count(differences)) {
            counts->wrong += ivm_snapshot_rows_count(differences);
            differences_tell(replay, file, at, view, differences);
        } else if (status != IVM_OK && status != IVM_UNSUPPORTED) {
            counts->wrong++;
            audit_tell(file, at, view, error.message);
        }
        ivm_snapshot_close(differences);
    }
}
