/* What a push changed in each view, as lines. Of a view's changes deletions come first, so that a reader who keeps rows by key never loses one that
 * came in its place; each in the order of the rows, whatever the engine keeps them in, so that the same changes are the same bytes. A row of weight
 * n stands n times. All are handed on before the next push: a full pipe holds up everything before it. */
#include "feed.h"
#include "option.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Views ----------------------------------------------------------------------------------------------------------------------------- */

static bool listed(const char *list, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, name, size) == 0 && (at[size] == 0 || at[size] == ',' || at[size] == '=')) {
            return true;
        }
    }
    return false;
}

/* N of "name=N" in the list; 0: it is not there. */
static size_t key_count(const char *list, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, name, size) == 0 && at[size] == '=') {
            return strtoull(at + size + 1, NULL, 10);
        }
    }
    return 0;
}

static char *name_quote(const char *name)
{
    json_t *json = json_string(name);
    char *quoted = json_dumps(json, JSON_ENCODE_ANY);
    json_decref(json);
    return quoted;
}

static bool view_add(feed_session *feed, ivm_view *view)
{
    const char *name = ivm_view_name(view);
    feed_view *made = &feed->views[feed->views_count++];
    *made = (feed_view){ view, ivm_view_columns_count(view), key_count(feed->options.key, name), name_quote(name), NULL };
    made->members = memory_take(made->columns_count * sizeof *made->members);
    for (size_t i = 0; i < made->columns_count; i++) {
        made->members[i] = name_quote(ivm_view_column_name(view, i));
    }
    if (feed->options.to == FEED_UPSERT && (!made->key_count || made->key_count > made->columns_count)) {
        usage_error("feed: to write upserts of %s --key wants %s=N, how many of its first columns are its key, 1 to %zu", name, name,
                    made->columns_count);
        return false;
    }
    return true;
}

bool views_find(feed_session *feed, const scenario_file *plan)
{
    feed->views = memory_take((plan->lines_count + 1) * sizeof *feed->views);
    for (size_t i = 0; i < plan->lines_count; i++) {
        const json_t *members = json_object_get(plan->lines[i].json, "view");
        ivm_view *view = replay_view_made(&feed->replay, plan, i);
        const char *refresh = member_text(members, "refresh");
        if (!view || (feed->options.views && !listed(feed->options.views, ivm_view_name(view)))) {
            continue;
        }
        if (refresh && strcmp(refresh, "deferred") == 0) {
            usage_error("feed: %s is deferred; what is written changes with each push", ivm_view_name(view));
            return false;
        }
        if (!view_add(feed, view)) {
            return false;
        }
    }
    if (!feed->views_count) {
        usage_error("feed: there is no view%s%s to write", feed->options.views ? " of " : "",
                    feed->options.views ? feed->options.views : "");
    }
    return feed->views_count;
}

void views_free(feed_session *feed)
{
    for (size_t i = 0; i < feed->views_count; i++) {
        for (size_t j = 0; j < feed->views[i].columns_count; j++) {
            free(feed->views[i].members[j]);
        }
        free(feed->views[i].members);
        free(feed->views[i].quoted);
    }
    free(feed->views);
}

/* ---- The stream ------------------------------------------------------------------------------------------------------------------------ */

static bool output_failed(const feed_session *feed)
{
    const char *name = feed->options.output ? feed->options.output : "standard output";
    if (errno == EPIPE) {
        usage_error("feed: who read %s is gone", name);
    } else {
        usage_error("%s: cannot write: %s", name, strerror(errno));
    }
    return false;
}

bool output_open(feed_session *feed)
{
    uint64_t size = feed->position.output_bytes;
    if (!feed->options.output) {
        int flags = fcntl(STDOUT_FILENO, F_GETFL);
        if (flags >= 0 && flags & O_NONBLOCK) { /* as whoever shares the pipe may have left it; waiting is what is wanted here */
            fcntl(STDOUT_FILENO, F_SETFL, flags & ~O_NONBLOCK);
        }
        feed->out = stdout;
        return true;
    }
    int descriptor = open(feed->options.output, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    feed->out = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (!feed->out) {
        return output_failed(feed);
    }
    off_t end = lseek(descriptor, 0, SEEK_END);
    if (end >= 0 && (uint64_t)end < size) {
        usage_error("%s: %lld bytes, %llu were written before", feed->options.output, (long long)end, (unsigned long long)size);
        return false;
    }
    if (end >= 0 && (ftruncate(descriptor, (off_t)size) != 0 || lseek(descriptor, (off_t)size, SEEK_SET) < 0)) {
        return output_failed(feed);
    }
    return true;
}

bool output_sync(feed_session *feed)
{
    if (feed->options.output && fdatasync(fileno(feed->out)) != 0 && errno != EINVAL) { /* so for a pipe */
        usage_error("%s: cannot sync: %s", feed->options.output, strerror(errno));
        return false;
    }
    return true;
}

bool output_close(feed_session *feed, bool ok)
{
    if (!feed->out || feed->out == stdout) {
        return ok;
    }
    bool closed = fclose(feed->out) == 0;
    feed->out = NULL;
    return ok && !closed ? output_failed(feed) : ok;
}

/* ---- Lines ----------------------------------------------------------------------------------------------------------------------------- */

static void cells_write(const feed_session *feed, const feed_view *view, const ivm_rows *rows, size_t row, size_t columns_count)
{
    fputc('{', feed->out);
    for (size_t i = 0; i < columns_count; i++) {
        ivm_type type = ivm_view_column_type(view->view, i);
        ivm_value value = ivm_rows_value(rows, type, row, i);
        fprintf(feed->out, "%s%s: ", i ? ", " : "", view->members[i]);
        cell_write(type, &value, feed->out);
    }
    fputc('}', feed->out);
}

static void change_write(const feed_session *feed, const feed_view *view, const ivm_rows *rows, size_t row, bool comes)
{
    FILE *out = feed->out;
    switch (feed->options.to) {
    case FEED_DEBEZIUM:
        fputs(comes ? "{\"before\": null, \"after\": " : "{\"before\": ", out);
        cells_write(feed, view, rows, row, view->columns_count);
        fprintf(out, "%s, \"op\": \"%s\", \"source\": {\"table\": %s}}\n", comes ? "" : ", \"after\": null", comes ? "c" : "d",
                view->quoted);
        break;
    case FEED_UPSERT:
        fprintf(out, "{\"table\": %s, \"key\": ", view->quoted);
        cells_write(feed, view, rows, row, view->key_count);
        fputs(", \"value\": ", out);
        if (comes) {
            cells_write(feed, view, rows, row, view->columns_count);
        } else {
            fputs("null", out);
        }
        fputs("}\n", out);
        break;
    default:
        fprintf(out, "{\"table\": %s, \"%s\": ", view->quoted, comes ? "insert" : "delete");
        cells_write(feed, view, rows, row, view->columns_count);
        fputs("}\n", out);
    }
}

/* Whether a row of the same key comes: then its upsert says all. `changes` is asked, not walked. */
static bool key_comes(const feed_view *view, const ivm_rows *rows, size_t row, ivm_snapshot *changes, ivm_value *key)
{
    ivm_rows found = { 0 };
    ivm_error ignored;
    for (size_t i = 0; i < view->key_count; i++) {
        key[i] = ivm_rows_value(rows, ivm_view_column_type(view->view, i), row, i);
    }
    bool comes = false;
    if (ivm_snapshot_find(changes, key, view->key_count, &found, &ignored) == IVM_OK) {
        for (size_t i = 0; i < found.rows_count && !comes; i++) {
            comes = !found.weights || found.weights[i] > 0;
        }
    }
    return comes;
}

/* Those that come, or those that go. */
static void changes_write(feed_session *feed, const feed_view *view, ivm_snapshot *changes, ivm_snapshot *asked, bool coming)
{
    ivm_value *key = memory_take((view->key_count + 1) * sizeof *key);
    for (ivm_rows rows; !ferror(feed->out) && ivm_snapshot_next(changes, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            int64_t weight = rows.weights ? rows.weights[i] : 1;
            if ((weight > 0) != coming || (asked && !coming && key_comes(view, &rows, i, asked, key))) {
                continue;
            }
            int64_t times = asked ? 1 : weight > 0 ? weight : -weight;
            for (int64_t n = 0; n < times && !ferror(feed->out); n++) {
                change_write(feed, view, &rows, i, coming);
                feed->changes_count++;
            }
        }
    }
    free(key);
}

static ivm_status view_write(feed_session *feed, const feed_view *view, bool whole, ivm_error *error)
{
    ivm_snapshot *changes = NULL, *asked = NULL;
    ivm_status status = whole ? ivm_read_view(view->view, &changes, error) : ivm_read_changes(view->view, &changes, error);
    if (status == IVM_OK && feed->options.to == FEED_UPSERT) {
        status = ivm_read_changes(view->view, &asked, error);
    }
    status = status == IVM_OK ? ivm_snapshot_sort(changes, error) : status;
    if (status == IVM_OK) {
        changes_write(feed, view, changes, asked, false);
        changes_write(feed, view, changes, asked, true);
        status = ivm_snapshot_status(changes);
    }
    ivm_snapshot_close(changes);
    ivm_snapshot_close(asked);
    return status;
}

bool feed_write(feed_session *feed, bool whole)
{
    ivm_error error = IVM_ERROR_INIT;
    errno = 0;
    for (size_t i = 0; i < feed->views_count && !ferror(feed->out); i++) {
        ivm_status status = view_write(feed, &feed->views[i], whole, &error);
        if (status != IVM_OK) {
            usage_error("feed: %s: %s: %s", ivm_view_name(feed->views[i].view), ivm_status_name(status), error.message);
            return false;
        }
    }
    if (fflush(feed->out) != 0 || ferror(feed->out)) {
        return output_failed(feed);
    }
    if (feed->options.output) {
        off_t at = ftello(feed->out); /* of a pipe there is none */
        feed->position.output_bytes = at < 0 ? 0 : (uint64_t)at;
    }
    return !feed->options.durable || output_sync(feed); /* before the next push says that it is there */
}
