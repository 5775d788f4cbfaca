/* Digests: what every view of a scenario holds after each step, as one number. A view is written as bytes - its name, how many rows, each row's
 * weight and cells - with rows sorted and equal ones added up, so that neither their order nor how they are cut into chunks counts; what is
 * written is hashed with the value so far as seed. Cost: a sort of every view a step. */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

void digest_view_made(replay_digest *digest, const char *name)
{
    digest->views = memory_room(digest->views, digest->views_count, &digest->views_capacity, sizeof *digest->views);
    digest->views[digest->views_count++] = name;
}

void digest_view_dropped(replay_digest *digest, const char *name)
{
    size_t at = 0;
    while (at < digest->views_count && strcmp(digest->views[at], name) != 0) {
        at++;
    }
    if (at < digest->views_count) {
        memmove(digest->views + at, digest->views + at + 1, (--digest->views_count - at) * sizeof *digest->views);
    }
}

void digest_views_set(replay_digest *digest, const char *const *views, size_t count)
{
    digest->views_count = 0;
    for (size_t i = 0; i < count; i++) {
        digest_view_made(digest, views[i]);
    }
}

void digest_bytes(replay_digest *digest, const void *bytes, size_t size)
{
    digest->value = digest->wanted ? XXH3_64bits_withSeed(bytes, size, digest->value) : digest->value;
}

void digest_free(replay_digest *digest)
{
    free(digest->views);
    *digest = (replay_digest){ 0 };
}

/* ---- What is hashed ------------------------------------------------------------------------------------------------------------ */

static void cell_put(ivm_type type, const ivm_value *value, FILE *out)
{
    fputc(value->is_null, out);
    if (value->is_null) {
        return;
    }
    switch (IVM_TYPE_KIND(type)) {
    case IVM_BOOL:
        fputc(value->as.boolean, out);
        break;
    case IVM_INT64:
        fwrite(&value->as.int64, sizeof value->as.int64, 1, out);
        break;
    case IVM_FLOAT64:
        fwrite(&value->as.float64, sizeof value->as.float64, 1, out);
        break;
    case IVM_STRING:
        fwrite(&value->as.string.size, sizeof value->as.string.size, 1, out);
        fwrite(value->as.string.bytes, 1, value->as.string.size, out);
        break;
    case IVM_DATE:
        fwrite(&value->as.date, sizeof value->as.date, 1, out);
        break;
    case IVM_TIMESTAMP:
        fwrite(&value->as.timestamp, sizeof value->as.timestamp, 1, out);
        break;
    default:
        fwrite(&value->as.decimal, sizeof value->as.decimal, 1, out);
        break;
    }
}

static void bag_put(const row_bag *bag, const bag_columns *columns, FILE *out)
{
    fwrite(&bag->rows_count, sizeof bag->rows_count, 1, out);
    for (size_t r = 0; r < bag->rows_count; r++) {
        fwrite(&bag->rows[r].weight, sizeof bag->rows[r].weight, 1, out);
        for (size_t i = 0; i < columns->count; i++) {
            cell_put(columns->types[i], &bag->rows[r].cells[i], out);
        }
    }
}

static ivm_status view_put(replay_session *replay, const char *name, FILE *out)
{
    ivm_view *view;
    ivm_snapshot *snapshot;
    row_bag bag = { 0 };
    ivm_status status = ivm_view_find(replay->engine, name, &view, &replay->error);
    if (status == IVM_OK) {
        status = ivm_read_view(view, &snapshot, &replay->error);
    }
    if (status != IVM_OK) {
        return status;
    }
    size_t count = ivm_snapshot_columns_count(snapshot);
    ivm_type *types = arena_take(&replay->memory, (count + 1) * sizeof *types);
    bool *near = arena_take(&replay->memory, count + 1); /* none is */
    for (size_t i = 0; i < count; i++) {
        types[i] = ivm_snapshot_column_type(snapshot, i);
    }
    bag_columns columns = { count, types, near };
    status = bag_take(&bag, snapshot, &columns, &replay->memory);
    ivm_snapshot_close(snapshot);
    if (status == IVM_OK) {
        bag_net(&bag, &columns, false);
        fwrite(name, 1, strlen(name) + 1, out);
        bag_put(&bag, &columns, out);
    } else {
        replay_fail(replay, status, "the snapshot of %s ended early", name);
    }
    bag_free(&bag);
    return status;
}

ivm_status digest_step(replay_session *replay, ivm_status ended)
{
    replay_digest *digest = &replay->digest;
    char *text = NULL;
    size_t size = 0;
    ivm_status status = IVM_OK;
    ivm_error told = replay->error;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        return replay_fail(replay, IVM_OUT_OF_MEMORY, "no memory for a digest");
    }
    fputs(ivm_status_name(ended), out);
    for (size_t i = 0; i < digest->views_count && status == IVM_OK; i++) {
        status = view_put(replay, digest->views[i], out);
    }
    if (fclose(out) == 0 && status == IVM_OK) {
        digest->value = XXH3_64bits_withSeed(text, size, digest->value);
        replay->error = told;
    }
    free(text);
    return status;
}
