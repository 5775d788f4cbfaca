/* Column arrays gathered into an Arrow array, and columns as an Arrow schema. What is made owns itself, child by child, so that each may be moved and outlive
 * everything. */
#ifndef IVM__ARROW_BUILD_H
#define IVM__ARROW_BUILD_H

#include "arrow_form.h"

/* One column on its way; afterwards the child's private data. */
typedef struct ivm__arrow_column {
    ivm_allocator allocator;
    ivm_type type;
    uint64_t capacity; /* rows */
    int64_t null_count;
    uint8_t *validity, *values; /* values: offsets of a string column */
    size_t validity_size, values_size;
    uint8_t *bytes;
    size_t bytes_used, bytes_size;
    const void *buffers[3];
} ivm__arrow_column;

typedef struct ivm__arrow_build {
    ivm_allocator allocator;
    uint32_t columns_count; /* that of weights, the last, among them */
    uint64_t rows_count;
    ivm__arrow_column **columns;
} ivm__arrow_build;

/* Fails for memory alone; then, too, it is to be freed. */
ivm_status ivm__arrow_build_init(ivm__arrow_build *build, const ivm_allocator *allocator, const ivm_type *types,
                                 uint32_t columns_count) IVM_MUST_CHECK;
void ivm__arrow_build_free(ivm__arrow_build *build); /* a zeroed one is fine */
/* Whether the strings of such rows still fit. */
bool ivm__arrow_build_fits(const ivm__arrow_build *build, const ivm_rows *rows, size_t first, size_t count);
/* Adds rows, and their weights where the build has one column more than they. Fails for memory alone, and then is of no further use. */
ivm_status ivm__arrow_build_add(ivm__arrow_build *build, const ivm_rows *rows, size_t first, size_t count) IVM_MUST_CHECK;
/* Makes *array of what was gathered; the build is empty then. Fails for memory alone, and then has changed nothing. */
ivm_status ivm__arrow_build_finish(ivm__arrow_build *build, struct ArrowArray *array) IVM_MUST_CHECK;

/* Makes *schema of columns; all may be null but for the last `firm`. Fails for memory alone. */
typedef struct ivm__arrow_heading {
    const ivm_type *types;
    const char *const *names;
    uint32_t columns_count, firm;
    bool strings_binary;
} ivm__arrow_heading;
ivm_status ivm__arrow_schema_make(const ivm_allocator *allocator, const ivm__arrow_heading *heading,
                                  struct ArrowSchema *schema) IVM_MUST_CHECK;

#endif
