/* Status codes and the error a caller owns. Every fallible function returns an ivm_status and fills the error it is given. */
#ifndef IVM_STATUS_H
#define IVM_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the library exports, and what a caller may not pass over: before and behind a declaration. */
#if defined(IVM_BUILDING) && defined(__GNUC__)
#define IVM_API __attribute__((visibility("default")))
#else
#define IVM_API
#endif
#if defined(__GNUC__)
#define IVM_MUST_CHECK __attribute__((warn_unused_result))
#else
#define IVM_MUST_CHECK
#endif

/* How a call ended. */
typedef enum ivm_status {
    IVM_OK = 0,                /* it did what it says */
    IVM_INVALID_ARGUMENT,      /* a NULL, an unknown number, something that cannot be asked for so */
    IVM_INVALID_PLAN,          /* a plan that is none: its shape, an unknown function, an argument too many */
    IVM_UNKNOWN_TABLE,         /* no table, or no table and no view, of this name; or it has been dropped */
    IVM_UNKNOWN_VIEW,          /* no view of this name */
    IVM_UNKNOWN_COLUMN,        /* no column of this name */
    IVM_AMBIGUOUS_COLUMN,      /* more than one column of this name */
    IVM_ALREADY_EXISTS,        /* the name is taken */
    IVM_IN_USE,                /* something reads it or rests on it, or the call comes from inside a callback */
    IVM_TYPE_MISMATCH,         /* a value or a column is not of the type that is wanted, or a row not of the columns */
    IVM_NULL_VIOLATION,        /* a null where none may be */
    IVM_DUPLICATE_KEY,         /* two rows of one key after the batch */
    IVM_ROW_NOT_FOUND,         /* a row to be deleted, or looked for, is not there */
    IVM_APPEND_ONLY_VIOLATION, /* a batch that deletes from an append_only table */
    IVM_FK_VIOLATION,          /* a batch, or rows that are there, leave a child without its parent */
    IVM_OVERFLOW,              /* an integer, a decimal, a weight or a number of rows leaves its range */
    IVM_CORRUPT,               /* a checkpoint or a log that was cut, changed, or is none; the message says where */
    IVM_IO,                    /* a file, a directory or a caller's stream could not be read or written */
    IVM_OUT_OF_MEMORY,         /* the allocator gave none, or more would pass the engine's limit; the message says which */
    IVM_UNSUPPORTED,           /* a thing that makes sense but is not done; the message says why */
    IVM_CANCELLED,             /* ivm_engine_cancel() was called while it went on */
    IVM_STATUS_COUNT           /* how many there are: no status */
} ivm_status;

#define IVM_ERROR_MESSAGE_SIZE 256 /* bytes of a message, its null byte included */

/* Owned by the caller, reused as often as wanted. A function that succeeds leaves it alone; one that fails sets both members, `status` to what it
 * returns. The message is one line, ends with a null byte, names the offending thing and is never longer than the array: it is cut. */
typedef struct ivm_error {
    ivm_status status;
    char message[IVM_ERROR_MESSAGE_SIZE];
} ivm_error;
/* clang-format off */
#define IVM_ERROR_INIT { IVM_OK, { 0 } } /* no error yet */
/* clang-format on */

/* The code's name as a word: "ok", "invalid_argument", "row_not_found" ... "unknown" for a number that is no status. A string
 * constant; never NULL. */
IVM_API const char *ivm_status_name(ivm_status status);

/* The library's version, "major.minor.patch": a string constant. IVM_VERSION (version.h) is the headers'. */
IVM_API const char *ivm_version(void);

#ifdef __cplusplus
}
#endif
#endif
