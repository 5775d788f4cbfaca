/* Checkpoints: into the engine as it stands, into a new one, again later; and what is no checkpoint. */
#include "operations.h"

#include <stdlib.h>
#include <string.h>

static ivm_status bytes_write(void *context, const void *bytes, size_t size)
{
    saved_engine *saved = context;
    if (saved->size + size > saved->capacity) {
        saved->capacity = 2 * (saved->size + size);
        saved->bytes = naive_grow(saved->bytes, saved->capacity, 1);
    }
    memcpy(saved->bytes + saved->size, bytes, size);
    saved->size += size;
    return IVM_OK;
}

static ivm_status bytes_read(void *context, void *bytes, size_t size, size_t *got)
{
    saved_engine *saved = context;
    size_t left = saved->size - saved->at;
    *got = size < left ? size : left;
    memcpy(bytes, saved->bytes + saved->at, *got);
    saved->at += *got;
    return IVM_OK;
}

static void save(operations *it, ivm_compression compression, saved_engine *saved)
{
    ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION, .compression = compression };
    saved->size = saved->at = 0;
    if (ivm_checkpoint(it->engine, bytes_write, saved, &options, &it->error) != IVM_OK) {
        operations_wrong(it, "checkpoint: %s", it->error.message);
    }
}

void operations_saved_free(operations *it)
{
    free(it->saved.bytes);
    if (it->saved.database.pool) {
        naive_database_free(&it->saved.database);
    }
    it->saved = (saved_engine){ 0 };
}

void operations_checkpoint(operations *it)
{
    operations_saved_free(it);
    save(it, IVM_COMPRESSION_NONE, &it->saved);
    naive_database_copy(&it->expected, &it->saved.database);
    it->saved.position_size = it->position_size;
    memcpy(it->saved.position, it->position, sizeof it->position);
    operations_say("checkpoint of %zu bytes\n", it->saved.size);
    operations_count("checkpoint");
}

/* ---- Going on ---------------------------------------------------------------------------------------------------------------------- */

static void watch_all(operations *it)
{
    for (size_t i = 0; i < it->expected.views_count; i++) {
        ivm_view *view = operations_view(it, it->expected.views[i].name);
        if (ivm_view_watch(view, operations_view_changed, it, &it->error) != IVM_OK) {
            operations_wrong(it, "watch: %s", it->error.message);
        }
    }
    ivm_fact *fact = NULL;
    for (size_t i = 0; i < it->expected.facts_count; i++) {
        fact = ivm_fact_next(it->engine, fact);
        bool tracked = it->expected.facts[i].trust == IVM_TRACKED;
        if (tracked && ivm_fact_watch(fact, operations_orphans_changed, it, &it->error) != IVM_OK) {
            operations_wrong(it, "watch a fact: %s", it->error.message);
        }
    }
}

/* The oracle goes on from what was saved; the last step changed nothing. */
static void expected_set(operations *it, const saved_engine *saved)
{
    naive_database_free(&it->expected);
    naive_database_copy(&saved->database, &it->expected);
    for (size_t i = 0; i < it->expected.views_count; i++) {
        naive_relation_free(&it->expected.views[i].changes);
    }
    it->position_size = saved->position_size;
    memcpy(it->position, saved->position, sizeof it->position);
}

static void same_again(operations *it, const saved_engine *saved)
{
    saved_engine again = { 0 };
    save(it, IVM_COMPRESSION_NONE, &again);
    size_t at = 0;
    while (at < again.size && at < saved->size && again.bytes[at] == saved->bytes[at]) {
        at++;
    }
    if (again.size != saved->size || at < again.size) {
        operations_wrong(it, "what was restored is saved as other bytes: %zu, not %zu, from byte %zu on", again.size, saved->size, at);
    }
    free(again.bytes);
}

static void restore_into(operations *it, ivm_engine *engine, saved_engine *saved)
{
    unsigned nth = operations_once_in(it, 4) ? 1 + operations_byte(it) : 0;
    saved->at = 0;
    test_allocator_arm(&it->allocator, nth);
    ivm_status status = ivm_restore(engine, bytes_read, saved, &it->error);
    test_allocator_disarm(&it->allocator);
    if (nth && status == IVM_OUT_OF_MEMORY) {
        operations_count("restore with an allocation that fails");
        operations_check(it, true);
        saved->at = 0;
        status = ivm_restore(engine, bytes_read, saved, &it->error);
    }
    if (status != IVM_OK) {
        operations_wrong(it, "restore: %s", it->error.message);
    }
}

void operations_restore(operations *it)
{
    if (!it->saved.database.pool || operations_once_in(it, 2)) {
        operations_checkpoint(it);
    }
    uint64_t fingerprint;
    ivm_checkpoint_info info = { .version = IVM_CHECKPOINT_INFO_VERSION };
    it->saved.at = 0;
    if (ivm_engine_fingerprint(it->engine, &fingerprint, &it->error) != IVM_OK ||
        ivm_checkpoint_inspect(bytes_read, &it->saved, &info, &it->error) != IVM_OK) {
        operations_wrong(it, "inspect: %s", it->error.message);
    }
    bool anew = fingerprint != info.fingerprint || operations_pick(it, 2);
    operations_say("restore %s\n", anew ? "into a new engine" : "in place");
    if (anew) {
        ivm_engine *old = it->engine, *made;
        operations_engine_open(it, &made);
        restore_into(it, made, &it->saved);
        operations_let_go(it);
        it->engine = made;
        if (ivm_engine_close(old, &it->error) != IVM_OK) {
            operations_wrong(it, "close: %s", it->error.message);
        }
    } else {
        restore_into(it, it->engine, &it->saved);
    }
    operations_count(anew ? "restore into a new engine" : "restore in place");
    expected_set(it, &it->saved);
    watch_all(it);
    same_again(it, &it->saved);
}

/* Bytes that were changed or cut, or are another catalog's, change nothing. */
void operations_corrupt(operations *it)
{
    saved_engine broken = { 0 };
    save(it, operations_pick(it, 2) ? IVM_COMPRESSION_AUTO : IVM_COMPRESSION_NONE, &broken);
    size_t at = (operations_byte(it) << 8 | operations_byte(it)) % broken.size;
    if (operations_pick(it, 2)) {
        broken.size = at;
        operations_count("checkpoint that was cut");
    } else {
        broken.bytes[at] ^= (uint8_t)(1u << operations_pick(it, 8));
        operations_count("checkpoint that was changed");
    }
    ivm_status status = ivm_restore(it->engine, bytes_read, &broken, &it->error);
    operations_say("corrupt checkpoint at %zu: %s\n", at, ivm_status_name(status));
    operations_count_status("restore of what is broken", status);
    if (status == IVM_OK) {
        operations_wrong(it, "a checkpoint broken at byte %zu is restored", at);
    }
    free(broken.bytes);
}
