/* Status codes by name, and how an error is filled in: one place, so that every message is one line and ends within its array. */
#include "ivm/status.h"

#include "ivm/version.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cancel.h"
#include "utf8.h"

const char *ivm_status_name(ivm_status status)
{
    static const char *const names[] = {
        [IVM_OK] = "ok",
        [IVM_INVALID_ARGUMENT] = "invalid_argument",
        [IVM_INVALID_PLAN] = "invalid_plan",
        [IVM_UNKNOWN_TABLE] = "unknown_table",
        [IVM_UNKNOWN_VIEW] = "unknown_view",
        [IVM_UNKNOWN_COLUMN] = "unknown_column",
        [IVM_AMBIGUOUS_COLUMN] = "ambiguous_column",
        [IVM_ALREADY_EXISTS] = "already_exists",
        [IVM_IN_USE] = "in_use",
        [IVM_TYPE_MISMATCH] = "type_mismatch",
        [IVM_NULL_VIOLATION] = "null_violation",
        [IVM_DUPLICATE_KEY] = "duplicate_key",
        [IVM_ROW_NOT_FOUND] = "row_not_found",
        [IVM_APPEND_ONLY_VIOLATION] = "append_only_violation",
        [IVM_FK_VIOLATION] = "fk_violation",
        [IVM_OVERFLOW] = "overflow",
        [IVM_CORRUPT] = "corrupt",
        [IVM_IO] = "io",
        [IVM_OUT_OF_MEMORY] = "out_of_memory",
        [IVM_UNSUPPORTED] = "unsupported",
        [IVM_CANCELLED] = "cancelled",
    };
    _Static_assert(sizeof names / sizeof names[0] == IVM_STATUS_COUNT, "every status has a name");
    return (uint32_t)status < IVM_STATUS_COUNT ? names[status] : "unknown";
}

const char *ivm_version(void)
{
    return IVM_VERSION;
}

/* Names and texts come from outside: a line break in one would break the message's line, and bytes that are no UTF-8 whoever reads it. */
static void line_keep(char *message)
{
    for (size_t left = strlen(message), size; left; message += size, left -= size) {
        size = ivm__utf8_character(message, left);
        if (size == 0) {
            *message = '?';
            size = 1;
        } else if ((unsigned char)*message < ' ' || *message == 0x7f) {
            *message = ' ';
        }
    }
}

/* Drops the first bytes of a character whose last ones were cut. */
static void character_keep(char *message, size_t size)
{
    size_t start = size;
    while (start > 0 && size - start < 3 && ((unsigned char)message[start - 1] & 0xc0) == 0x80) {
        start--;
    }
    if (start == 0) {
        return;
    }
    unsigned char lead = (unsigned char)message[start - 1];
    size_t wanted = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    if (size - start < wanted) {
        message[start - 1] = 0;
    }
}

ivm_status ivm__fail(ivm_error *error, ivm_status status, const char *format, ...)
{
    assert(status != IVM_OK);
    if (!error) {
        return status;
    }
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    if (size < 0) {
        error->message[0] = 0;
    } else if ((size_t)size >= sizeof error->message) {
        character_keep(error->message, sizeof error->message - 1);
    }
    line_keep(error->message);
    return status;
}

ivm_status ivm__fail_null(ivm_error *error, const char *function, const char *argument)
{
    return ivm__fail(error, IVM_INVALID_ARGUMENT, "%s: %s is NULL", function, argument);
}

ivm_status ivm__fail_version(ivm_error *error, const char *function, const char *argument, uint32_t version, uint32_t known)
{
    assert(version > known);
    return ivm__fail(error, IVM_INVALID_ARGUMENT, "%s: %s of version %u, at most %u is known", function, argument, version, known);
}

ivm_status ivm__fail_memory(ivm_error *error)
{
    ivm__refusal refusal = ivm__memory_refusal();
    if (!refusal.bytes_max) {
        return ivm__fail(error, IVM_OUT_OF_MEMORY, "out of memory");
    }
    return ivm__fail(error, IVM_OUT_OF_MEMORY, "out of memory: the engine's limit is %llu bytes, it holds %llu, and %llu more were wanted",
                     (unsigned long long)refusal.bytes_max, (unsigned long long)refusal.bytes_held,
                     (unsigned long long)refusal.bytes_asked);
}

#ifndef NDEBUG
_Atomic uint64_t ivm__cancel_looks, ivm__cancel_looks_end;
#endif

ivm_status ivm__fail_cancelled(ivm_error *error)
{
    return ivm__fail(error, IVM_CANCELLED, "cancelled: ivm_engine_cancel() was called");
}
