/* Columns as an Arrow schema, each field a block of its own with its name and format in it. */
#include "arrow_build.h"

#include <string.h>

/* A field's texts, as its private data. */
typedef struct field_texts {
    ivm_allocator allocator;
    size_t size;
    char format[IVM__ARROW_FORMAT_SIZE];
    char name[];
} field_texts;

/* The parent's private data. */
typedef struct fields {
    ivm_allocator allocator;
    size_t size;
    struct ArrowSchema **list;
    struct ArrowSchema children[];
} fields;

static void field_release(struct ArrowSchema *field)
{
    field_texts *texts = field->private_data;
    ivm_allocator allocator = texts->allocator;
    allocator.release(allocator.context, texts, texts->size);
    field->release = NULL;
}

static void schema_release(struct ArrowSchema *schema)
{
    fields *it = schema->private_data;
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (it->children[i].release) {
            it->children[i].release(&it->children[i]);
        }
    }
    ivm_allocator allocator = it->allocator;
    allocator.release(allocator.context, it, it->size);
    schema->release = NULL;
}

static bool field_make(const ivm_allocator *allocator, const ivm__arrow_heading *heading, uint32_t column, struct ArrowSchema *field)
{
    size_t name_size = strlen(heading->names[column]) + 1, size = sizeof(field_texts) + name_size;
    field_texts *texts = allocator->allocate(allocator->context, size);
    if (!texts) {
        return false;
    }
    texts->allocator = *allocator;
    texts->size = size;
    ivm__arrow_format_write(heading->types[column], heading->strings_binary, texts->format);
    memcpy(texts->name, heading->names[column], name_size);
    *field = (struct ArrowSchema){ .format = texts->format,
                                   .name = texts->name,
                                   .flags = column + heading->firm < heading->columns_count ? ARROW_FLAG_NULLABLE : 0,
                                   .release = field_release,
                                   .private_data = texts };
    return true;
}

ivm_status ivm__arrow_schema_make(const ivm_allocator *allocator, const ivm__arrow_heading *heading, struct ArrowSchema *schema)
{
    uint32_t count = heading->columns_count;
    size_t size = sizeof(fields) + count * (sizeof(struct ArrowSchema) + sizeof(struct ArrowSchema *));
    fields *it = allocator->allocate(allocator->context, size);
    if (!it) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(it, 0, size);
    it->allocator = *allocator;
    it->size = size;
    it->list = (struct ArrowSchema **)(void *)(it->children + count);
    struct ArrowSchema made = {
        .format = "+s", .name = "", .n_children = count, .children = it->list, .release = schema_release, .private_data = it
    };
    for (uint32_t c = 0; c < count; c++) {
        it->list[c] = &it->children[c];
        if (!field_make(allocator, heading, c, &it->children[c])) {
            schema_release(&made);
            return IVM_OUT_OF_MEMORY;
        }
    }
    *schema = made;
    return IVM_OK;
}
