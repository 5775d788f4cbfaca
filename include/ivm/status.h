/* Status codes and the error a caller owns. Every fallible function returns an ivm_status and fills the error it is given. */
#ifndef IVM_STATUS_H
#define IVM_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

typedef enum ivm_status {
    IVM_OK = 0,
    IVM_INVALID_ARGUMENT,
    IVM_INVALID_PLAN,
    IVM_UNKNOWN_TABLE,
    IVM_UNKNOWN_VIEW,
    IVM_UNKNOWN_COLUMN,
    IVM_AMBIGUOUS_COLUMN,
    IVM_ALREADY_EXISTS,
    IVM_IN_USE,
    IVM_TYPE_MISMATCH,
    IVM_NULL_VIOLATION,
    IVM_DUPLICATE_KEY,
    IVM_ROW_NOT_FOUND,
    IVM_APPEND_ONLY_VIOLATION,
    IVM_FK_VIOLATION,
    IVM_OVERFLOW,
    IVM_CORRUPT,
    IVM_IO,
    IVM_OUT_OF_MEMORY,
    IVM_UNSUPPORTED,
    IVM_STATUS_COUNT
} ivm_status;

#define IVM_ERROR_MESSAGE_SIZE 256

/* Owned by the caller, reused as often as wanted. A function that succeeds leaves it alone; one that fails sets both members.
 * The message is one line, ends with a null byte, names the offending thing and is never longer than the array: it is cut. */
typedef struct ivm_error {
    ivm_status status;
    char message[IVM_ERROR_MESSAGE_SIZE];
} ivm_error;
/* clang-format off */
#define IVM_ERROR_INIT { IVM_OK, { 0 } }
/* clang-format on */

/* The code's name as a word: "ok", "invalid_argument", "row_not_found" ... "unknown" for a number that is no status. A string
 * constant; never NULL. */
IVM_API const char *ivm_status_name(ivm_status status);

/* The library's version, "major.minor.patch": a string constant. */
IVM_API const char *ivm_version(void);

#ifdef __cplusplus
}
#endif
#endif
