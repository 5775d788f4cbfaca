/* A feed's checkpoint: the engine as one file, whose position says where in the inputs and in the output file it was taken. Output first, then the file beside,
 * then its name: whatever breaks off, what the file says was written is. Who goes on passes over the inputs before that place and cuts the output to it, so
 * that each line counts once and each change stands once. */
#include "feed.h"
#include "option.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static ivm_status bytes_write(void *context, const void *bytes, size_t size)
{
    return fwrite(bytes, 1, size, context) == size ? IVM_OK : IVM_IO;
}

static ivm_status bytes_read(void *context, void *bytes, size_t size, size_t *got)
{
    *got = fread(bytes, 1, size, context);
    return ferror((FILE *)context) ? IVM_IO : IVM_OK;
}

/* ---- Going on -------------------------------------------------------------------------------------------------------------------------- */

static size_t position_size(size_t inputs_count)
{
    return offsetof(feed_position, inputs) + inputs_count * sizeof(feed_place);
}

void position_put(ivm_batch *batch, const feed_position *position)
{
    (void)ivm_batch_position(batch, position, position_size(position->inputs_count)); /* the push tells */
}

bool position_read(feed_session *feed, ivm_error *error)
{
    size_t size = 0;
    feed_position position = { 0 };
    if (ivm_engine_position(feed->replay.engine, &position, sizeof position, &size, error) != IVM_OK) {
        return false;
    }
    if (size < position_size(0) || position.inputs_count > FEED_INPUTS_MAX || size != position_size(position.inputs_count)) {
        snprintf(error->message, sizeof error->message, "its position is none of a feed's");
        return false;
    }
    if (position.inputs_count != feed->position.inputs_count || position.inputs_hash != feed->position.inputs_hash) {
        snprintf(error->message, sizeof error->message, "is of a feed of other inputs, or of these in another order");
        return false;
    }
    feed->position = position;
    return true;
}

/* A file beside the checkpoint, from where it takes its place when it is whole. */
static void path_beside(const char *path, char beside[PATH_MAX])
{
    snprintf(beside, PATH_MAX, "%s.new", path);
}

/* Found out before a line is read, not when the first checkpoint is due. */
static bool can_save(const char *path)
{
    char beside[PATH_MAX];
    path_beside(path, beside);
    FILE *out = fopen(beside, "ab");
    if (!out) {
        usage_error("%s: cannot write: %s", path, strerror(errno));
        return false;
    }
    fclose(out);
    remove(beside);
    return true;
}

bool feed_restore(feed_session *feed)
{
    const char *path = feed->options.checkpoint;
    ivm_error error = IVM_ERROR_INIT;
    if (feed->options.durable) {
        return durable_restore(feed);
    }
    if (path && !can_save(path)) {
        return false;
    }
    FILE *in = path ? fopen(path, "rb") : NULL;
    if (!in && (!path || errno == ENOENT)) {
        return true;
    }
    if (!in) {
        usage_error("%s: cannot read: %s", path, strerror(errno));
        return false;
    }
    bool ok = ivm_restore(feed->replay.engine, bytes_read, in, &error) == IVM_OK && position_read(feed, &error);
    fclose(in);
    if (!ok) {
        usage_error("%s: %s", path, error.message);
    }
    feed->restored = ok;
    return ok;
}

/* ---- Saving ---------------------------------------------------------------------------------------------------------------------------- */

/* A batch that is a position alone. */
ivm_status position_give(feed_session *feed, ivm_error *error)
{
    ivm_batch *batch;
    ivm_status status = ivm_batch_create(feed->replay.engine, &batch, error);
    if (status != IVM_OK) {
        return status;
    }
    feed->position.written = 1;
    position_put(batch, &feed->position);
    return ivm_push_batch(feed->replay.engine, batch, NULL, error);
}

static bool file_write(feed_session *feed, const char *path, ivm_error *error)
{
    FILE *out = fopen(path, "wb");
    if (!out) {
        snprintf(error->message, sizeof error->message, "cannot write: %s", strerror(errno));
        return false;
    }
    errno = 0;
    bool ok = ivm_checkpoint(feed->replay.engine, bytes_write, out, NULL, error) == IVM_OK;
    ok = ok && fflush(out) == 0 && fsync(fileno(out)) == 0;
    int cause = errno;
    ok = fclose(out) == 0 && ok;
    if (!ok && cause) {
        snprintf(error->message, sizeof error->message, "cannot write: %s", strerror(cause));
    }
    return ok;
}

/* So that the new name is there when the machine comes back. */
static void directory_sync(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    int descriptor = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) {
        fsync(descriptor);
        close(descriptor);
    }
}

bool feed_save(feed_session *feed)
{
    const char *path = feed->options.checkpoint;
    char beside[PATH_MAX];
    ivm_error error = IVM_ERROR_INIT;
    if (!path && !feed->options.durable) {
        return true;
    }
    if (!output_sync(feed)) {
        return false;
    }
    if (!path) {
        return durable_save(feed);
    }
    path_beside(path, beside);
    bool ok = position_give(feed, &error) == IVM_OK && file_write(feed, beside, &error);
    if (ok && rename(beside, path) != 0) {
        snprintf(error.message, sizeof error.message, "cannot take the place of the last: %s", strerror(errno));
        ok = false;
    }
    if (!ok) {
        usage_error("%s: %s", path, error.message);
        return false;
    }
    directory_sync(path);
    return true;
}
