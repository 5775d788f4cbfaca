/* Rows gathered into Arrow arrays: each column has buffers of its own that double as they fill. Cost: a copy of the rows, twice at most. */
#include "arrow_build.h"

#include <assert.h>
#include <string.h>

#define ROWS_MIN 64u

static bool is_string(const ivm__arrow_column *column)
{
    return column->type == IVM_STRING;
}

static size_t values_size(ivm_type type, uint64_t rows)
{
    switch (IVM_TYPE_KIND(type)) {
    case IVM_BOOL:
        return (rows + 7) / 8;
    case IVM_STRING:
        return (rows + 1) * sizeof(int32_t);
    case IVM_DATE:
        return rows * sizeof(int32_t);
    case IVM_DECIMAL_KIND:
        return rows * sizeof(ivm_int128);
    default:
        return rows * sizeof(int64_t);
    }
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------------------------ */

static void *allocate(const ivm_allocator *allocator, size_t size)
{
    void *block = allocator->allocate(allocator->context, size);
    return block ? memset(block, 0, size) : NULL;
}

static void release(const ivm_allocator *allocator, void *block, size_t size)
{
    if (block) {
        allocator->release(allocator->context, block, size);
    }
}

static bool grow(const ivm_allocator *allocator, uint8_t **block, size_t *size, size_t wanted)
{
    uint8_t *grown =
        *block ? allocator->resize(allocator->context, *block, *size, wanted) : allocator->allocate(allocator->context, wanted);
    if (!grown) {
        return false;
    }
    memset(grown + *size, 0, wanted - *size);
    *block = grown;
    *size = wanted;
    return true;
}

static void column_free(ivm__arrow_column *column)
{
    if (!column) {
        return;
    }
    ivm_allocator allocator = column->allocator;
    release(&allocator, column->validity, column->validity_size);
    release(&allocator, column->values, column->values_size);
    release(&allocator, column->bytes, column->bytes_size);
    release(&allocator, column, sizeof *column);
}

static bool column_reserve(ivm__arrow_column *column, uint64_t rows)
{
    if (rows <= column->capacity) {
        return true;
    }
    uint64_t capacity = column->capacity ? column->capacity : ROWS_MIN;
    while (capacity < rows) {
        capacity *= 2;
    }
    if (!grow(&column->allocator, &column->validity, &column->validity_size, (capacity + 7) / 8) ||
        !grow(&column->allocator, &column->values, &column->values_size, values_size(column->type, capacity))) {
        return false;
    }
    column->capacity = capacity;
    return true;
}

static bool bytes_reserve(ivm__arrow_column *column, size_t more)
{
    size_t wanted = column->bytes_used + more;
    if (wanted <= column->bytes_size) {
        return true;
    }
    size_t doubled = 2 * column->bytes_size;
    return grow(&column->allocator, &column->bytes, &column->bytes_size, wanted > doubled ? wanted : doubled);
}

ivm_status ivm__arrow_build_init(ivm__arrow_build *build, const ivm_allocator *allocator, const ivm_type *types, uint32_t columns_count)
{
    *build = (ivm__arrow_build){ .allocator = *allocator, .columns_count = columns_count };
    build->columns = allocate(allocator, columns_count * sizeof *build->columns);
    for (uint32_t c = 0; build->columns && c < columns_count; c++) {
        ivm__arrow_column *column = build->columns[c] = allocate(allocator, sizeof *column);
        if (!column) {
            return IVM_OUT_OF_MEMORY;
        }
        column->allocator = *allocator;
        column->type = types[c];
    }
    return build->columns ? IVM_OK : IVM_OUT_OF_MEMORY;
}

void ivm__arrow_build_free(ivm__arrow_build *build)
{
    for (uint32_t c = 0; build->columns && c < build->columns_count; c++) {
        column_free(build->columns[c]);
    }
    release(&build->allocator, build->columns, build->columns_count * sizeof *build->columns);
    build->columns = NULL;
}

/* ---- Rows -------------------------------------------------------------------------------------------------------------------------------- */

static bool bit_at(const uint8_t *bits, size_t at)
{
    return bits[at >> 3] >> (at & 7) & 1;
}

/* Bits to where none are set yet; how many of them are 0. */
static int64_t bits_copy(const uint8_t *from, size_t from_at, uint8_t *to, size_t to_at, size_t count)
{
    int64_t zeros = 0;
    for (size_t i = 0; i < count; i++) {
        bool bit = !from || bit_at(from, from_at + i);
        to[(to_at + i) >> 3] |= (uint8_t)(bit << ((to_at + i) & 7));
        zeros += !bit;
    }
    return zeros;
}

static bool strings_add(ivm__arrow_column *column, const ivm_column_data *data, size_t first, size_t count, uint64_t at)
{
    const int32_t *from = data->offsets + data->offset + first;
    size_t size = (size_t)(from[count] - from[0]);
    int32_t *offsets = (int32_t *)(void *)column->values, start = (int32_t)column->bytes_used;
    if (!bytes_reserve(column, size)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        offsets[at + i + 1] = start + (from[i + 1] - from[0]);
    }
    if (size) {
        memcpy(column->bytes + column->bytes_used, (const char *)data->values + from[0], size);
    }
    column->bytes_used += size;
    return true;
}

static bool column_add(ivm__arrow_column *column, const ivm_column_data *data, size_t first, size_t count, uint64_t at)
{
    size_t from = data->offset + first;
    if (!column_reserve(column, at + count)) {
        return false;
    }
    column->null_count += bits_copy(data->validity, from, column->validity, at, count);
    if (is_string(column)) {
        return strings_add(column, data, first, count, at);
    }
    if (column->type == IVM_BOOL) {
        (void)bits_copy(data->values, from, column->values, at, count);
        return true;
    }
    size_t width = values_size(column->type, 1);
    assert(count == 0 || data->values);
    if (data->values) {
        memcpy(column->values + at * width, (const uint8_t *)data->values + from * width, count * width);
    }
    return true;
}

bool ivm__arrow_build_fits(const ivm__arrow_build *build, const ivm_rows *rows, size_t first, size_t count)
{
    for (uint32_t c = 0; c < rows->columns_count; c++) {
        if (is_string(build->columns[c])) {
            const int32_t *offsets = rows->columns[c].offsets + rows->columns[c].offset + first;
            if ((size_t)(offsets[count] - offsets[0]) > IVM_STRING_SIZE_MAX - build->columns[c]->bytes_used) {
                return false;
            }
        }
    }
    return true;
}

ivm_status ivm__arrow_build_add(ivm__arrow_build *build, const ivm_rows *rows, size_t first, size_t count)
{
    assert(build->columns_count == rows->columns_count || build->columns_count == rows->columns_count + 1);
    assert(ivm__arrow_build_fits(build, rows, first, count));
    for (uint32_t c = 0; c < build->columns_count; c++) {
        const ivm_column_data weights = { .values = rows->weights };
        const ivm_column_data *data = c < rows->columns_count ? &rows->columns[c] : &weights;
        if (!column_add(build->columns[c], data, first, count, build->rows_count)) {
            return IVM_OUT_OF_MEMORY;
        }
    }
    build->rows_count += count;
    return IVM_OK;
}

/* ---- Arrays ------------------------------------------------------------------------------------------------------------------------------ */

/* An array and its children, as the parent's private data. */
typedef struct built {
    ivm_allocator allocator;
    size_t size;
    const void *validity;
    struct ArrowArray **list;
    struct ArrowArray children[];
} built;

static size_t built_size(uint32_t columns_count)
{
    return sizeof(built) + columns_count * (sizeof(struct ArrowArray) + sizeof(struct ArrowArray *));
}

static void child_release(struct ArrowArray *child)
{
    column_free(child->private_data);
    child->release = NULL;
}

/* A child that was moved out is no longer there to be released. */
static void array_release(struct ArrowArray *array)
{
    built *it = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++) {
        if (it->children[i].release) {
            it->children[i].release(&it->children[i]);
        }
    }
    ivm_allocator allocator = it->allocator;
    release(&allocator, it, it->size);
    array->release = NULL;
}

static void child_make(ivm__arrow_column *column, uint64_t rows, struct ArrowArray *child)
{
    column->buffers[0] = column->null_count ? column->validity : NULL;
    column->buffers[1] = column->values;
    column->buffers[2] = column->bytes ? column->bytes : (const void *)"";
    *child = (struct ArrowArray){ .length = (int64_t)rows,
                                  .null_count = column->null_count,
                                  .n_buffers = is_string(column) ? 3 : 2,
                                  .buffers = column->buffers,
                                  .release = child_release,
                                  .private_data = column };
}

ivm_status ivm__arrow_build_finish(ivm__arrow_build *build, struct ArrowArray *array)
{
    uint32_t count = build->columns_count;
    built *it = allocate(&build->allocator, built_size(count));
    if (!it) {
        return IVM_OUT_OF_MEMORY;
    }
    it->allocator = build->allocator;
    it->size = built_size(count);
    it->list = (struct ArrowArray **)(void *)(it->children + count);
    for (uint32_t c = 0; c < count; c++) {
        child_make(build->columns[c], build->rows_count, &it->children[c]);
        it->list[c] = &it->children[c];
        build->columns[c] = NULL;
    }
    *array = (struct ArrowArray){ .length = (int64_t)build->rows_count,
                                  .n_buffers = 1,
                                  .n_children = count,
                                  .buffers = &it->validity,
                                  .children = it->list,
                                  .release = array_release,
                                  .private_data = it };
    ivm__arrow_build_free(build);
    return IVM_OK;
}
