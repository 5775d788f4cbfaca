/* What builders stand on: memory that is malloc's and belongs to no engine, and the first cause of a failure, kept by thread until
 * ivm_view_create() or ivm_plan_from_json() tells it. */
#include "build.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- Causes ------------------------------------------------------------------------------------------------------------------------ */

static _Thread_local ivm_error first_cause;

void ivm__builder_fail(ivm_status status, const char *format, ...)
{
    assert(status != IVM_OK);
    if (first_cause.status != IVM_OK) {
        return;
    }
    char text[2 * IVM_ERROR_MESSAGE_SIZE]; /* cut to one line of whole characters by ivm__fail() */
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)ivm__fail(&first_cause, status, "%s", size < 0 ? "" : text);
}

void ivm__builder_fail_memory(void)
{
    ivm__builder_fail(IVM_OUT_OF_MEMORY, "out of memory while a plan was built");
}

ivm_error ivm__builder_cause_exchange(ivm_error cause)
{
    ivm_error before = first_cause;
    first_cause = cause;
    return before;
}

void ivm__builder_cause_take(ivm_error *error)
{
    ivm_error cause = ivm__builder_cause_exchange((ivm_error)IVM_ERROR_INIT);
    if (error) {
        *error = cause;
    }
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------------------ */

ivm__memory ivm__builder_memory = { .allocator = { IVM__MALLOC }, .bytes_max = UINT64_MAX };

char *ivm__builder_text(const char *text, size_t size)
{
    char *copy = ivm__text_copy(&ivm__builder_memory, text, size);
    if (!copy) {
        ivm__builder_fail_memory();
    }
    return copy;
}

void ivm__builder_text_free(char *text)
{
    ivm__release(&ivm__builder_memory, text, text ? strlen(text) + 1 : 0);
}

static size_t capacity_of(size_t count)
{
    size_t capacity = count ? 1 : 0;
    while (capacity < count) {
        capacity *= 2;
    }
    return capacity;
}

void *ivm__builder_grow(void *array, size_t count, size_t item_size)
{
    size_t old = capacity_of(count), wanted = capacity_of(count + 1);
    if (wanted == old) {
        return array;
    }
    void *grown = array ? ivm__resize(&ivm__builder_memory, array, old * item_size, wanted * item_size)
                        : ivm__allocate(&ivm__builder_memory, wanted * item_size);
    if (!grown) {
        ivm__builder_fail_memory();
    }
    return grown;
}

void ivm__builder_array_free(void *array, size_t count, size_t item_size)
{
    ivm__release(&ivm__builder_memory, array, capacity_of(count) * item_size);
}
