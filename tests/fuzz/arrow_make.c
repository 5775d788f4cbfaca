/* Record batches of a fuzzer's bytes; see arrow_make.h. */
#include "arrow_make.h"

#include <string.h>

#define ROWS_MAX 24
#define OFFSET_MAX 9
#define SLACK_MAX 4
#define BYTES_MAX 48 /* of a buffer of strings */

uint8_t byte_draw(byte_source *from)
{
    if (!from->left) {
        return 0;
    }
    from->left--;
    return *from->at++;
}

size_t draw_below(byte_source *from, size_t bound)
{
    return byte_draw(from) % bound;
}

/* Once in sixteen, and never behind the last byte. */
static bool draw_seldom(byte_source *from)
{
    return byte_draw(from) % 16 == 15;
}

static uint8_t *bytes_draw(byte_source *from, size_t size)
{
    uint8_t *bytes = calloc(1, size ? size : 1);
    NEED(bytes);
    size_t count = size < from->left ? size : from->left;
    memcpy(bytes, from->at, count);
    from->at += count;
    from->left -= count;
    return bytes;
}

/* A number that nobody can take for one of an array. */
static int64_t lie_draw(byte_source *from)
{
    static const int64_t lies[] = { -1, -2, INT64_MIN, INT64_MAX };
    return lies[draw_below(from, sizeof lies / sizeof *lies)];
}

/* ---- Buffers ----------------------------------------------------------------------------------------------------------------------------- */

/* Puts a block of its own of just that size behind the others, at an odd address for some; frees what it was given, which may be NULL. */
static void buffer_add(made_node *node, void *bytes, size_t size)
{
    NEED(node->buffers_count < MADE_BUFFERS);
    uint8_t *block = bytes ? malloc(node->shift + size) : NULL;
    NEED(!bytes || block || !(node->shift + size));
    if (block) {
        memcpy(block + node->shift, bytes, size);
    }
    free(bytes);
    node->buffers[node->buffers_count++] = block ? block + node->shift : NULL;
}

/* Ascending for the most part, within the bytes; those of 64 bits may lie beyond any buffer, which ends strings of more than 2 GB. */
static void offsets_add(made_node *node, byte_source *from, size_t positions, uint32_t width)
{
    size_t bytes_count = draw_below(from, BYTES_MAX);
    uint8_t *offsets = calloc(positions + 1, width);
    bool wild = draw_seldom(from), apart = width == 8 && draw_seldom(from);
    int64_t at = (int64_t)draw_below(from, 3);
    NEED(offsets);
    for (size_t i = 0; i <= positions; i++) {
        int64_t drawn = (int64_t)draw_below(from, wild ? bytes_count + 2 : 6);
        at = wild ? drawn - 1 : at + drawn;
        at = at < (int64_t)bytes_count ? at : (int64_t)bytes_count;
        int64_t put = apart && draw_seldom(from) ? lie_draw(from) : at;
        memcpy(offsets + i * width, &put, width);
    }
    buffer_add(node, offsets, (positions + 1) * width);
    buffer_add(node, bytes_draw(from, bytes_count), bytes_count);
}

/* Views of what is there, or of any bytes; the sizes of buffers are true. */
static void views_add(made_node *node, byte_source *from, size_t positions)
{
    size_t buffers = draw_below(from, 3), bytes_count = draw_below(from, BYTES_MAX);
    uint8_t *views = bytes_draw(from, positions * 16);
    int64_t *sizes = calloc(buffers + 1, sizeof *sizes);
    bool wild = draw_seldom(from);
    NEED(sizes);
    for (size_t i = 0; i < positions && !wild; i++) {
        int32_t view[4];
        memcpy(view, views + 16 * i, sizeof view);
        view[0] = (int32_t)((uint32_t)view[0] % (bytes_count && buffers ? bytes_count + 1 : 13));
        view[2] = view[0] > 12 ? (int32_t)((uint32_t)view[2] % buffers) : view[2];
        view[3] = view[0] > 12 ? (int32_t)((uint32_t)view[3] % (bytes_count - (size_t)view[0] + 1)) : view[3];
        memcpy(views + 16 * i, view, sizeof view);
    }
    buffer_add(node, views, positions * 16);
    for (size_t i = 0; i < buffers; i++) {
        sizes[i] = (int64_t)bytes_count;
        buffer_add(node, bytes_draw(from, bytes_count), bytes_count);
    }
    buffer_add(node, sizes, buffers * sizeof *sizes);
}

/* What the format calls for at so many positions. */
static void buffers_add(made_node *node, byte_source *from, const ivm__arrow_form *form, size_t positions)
{
    if (form->layout == IVM__ARROW_NULLS) {
        return;
    }
    buffer_add(node, byte_draw(from) & 1 ? bytes_draw(from, (positions + 7) / 8) : NULL, (positions + 7) / 8);
    if (form->layout == IVM__ARROW_STRINGS) {
        offsets_add(node, from, positions, form->width);
    } else if (form->layout == IVM__ARROW_VIEWS) {
        views_add(node, from, positions);
    } else {
        size_t size = form->layout == IVM__ARROW_BITS ? (positions + 7) / 8 : positions * form->width;
        buffer_add(node, bytes_draw(from, size), size);
    }
}

/* ---- Fields ------------------------------------------------------------------------------------------------------------------------------ */

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void never_called(struct ArrowArray *array)
{
    (void)array;
    NEED(!"the base alone is released by a consumer");
}

static const char *format_draw(byte_source *from, bool whole, char text[IVM__ARROW_FORMAT_SIZE])
{
    static const char *const formats[] = { "l",    "u",    "g",     "tsu:UTC", "d:10,2",   "tdD",       "b", "z",  "U",  "vu",        "c",
                                           "C",    "s",    "S",     "i",       "I",        "L",         "f", "n",  "Z",  "vz",        "tdm",
                                           "tss:", "tsm:", "tsn:Z", "d:38,0",  "d:9,3,32", "d:18,2,64", "e", "+l", "+s", "d:10,2,256" };
    static const char *const indexes[] = { "c", "C", "s", "S", "i", "I", "l", "L", "u" };
    if (draw_seldom(from)) {
        for (size_t i = 0; i + 1 < IVM__ARROW_FORMAT_SIZE && (text[i] = (char)byte_draw(from)); i++) {
        }
        return text;
    }
    return whole ? indexes[draw_below(from, sizeof indexes / sizeof *indexes)]
                 : formats[draw_below(from, sizeof formats / sizeof *formats)];
}

/* Lies that can be seen through; then what is in the structs need not fit together. */
static void node_distort(made_node *node, byte_source *from)
{
    struct ArrowArray *array = &node->array;
    switch (draw_below(from, 10)) {
    case 0:
        array->length = lie_draw(from);
        break;
    case 1:
        array->length = (int64_t)draw_below(from, 8) < array->length ? (int64_t)draw_below(from, 2) : 0;
        break;
    case 2:
        array->offset = lie_draw(from);
        break;
    case 3:
        array->null_count = lie_draw(from);
        break;
    case 4:
        array->n_buffers = (int64_t)draw_below(from, node->buffers_count + 1);
        break;
    case 5:
        array->buffers = NULL;
        break;
    case 6:
        array->release = NULL;
        break;
    case 7:
        array->n_children = 1;
        break;
    case 8:
        node->schema.release = NULL;
        break;
    default:
        node->schema.format = NULL;
    }
}

static made_node *node_draw(made_batch *made, byte_source *from, size_t wanted, bool whole, const made_batch *like)
{
    const made_node *model = like ? &like->nodes[made->nodes_count] : NULL;
    made_node *node = &made->nodes[made->nodes_count++];
    ivm__arrow_form form = { .layout = IVM__ARROW_NULLS };
    size_t offset = draw_below(from, OFFSET_MAX), length = wanted + draw_below(from, SLACK_MAX);
    node->format = model ? model->format : format_draw(from, whole, node->drawn);
    ignore(ivm__arrow_form_parse(node->format, &form));
    node->shift = byte_draw(from) & 1;
    buffers_add(node, from, &form, offset + length);
    node->schema = (struct ArrowSchema){ .format = node->format, .flags = byte_draw(from), .release = schema_release };
    node->array = (struct ArrowArray){ .length = (int64_t)length,
                                       .null_count = (int64_t)draw_below(from, 4) - 1,
                                       .offset = (int64_t)offset,
                                       .n_buffers = (int64_t)node->buffers_count,
                                       .buffers = node->buffers,
                                       .release = never_called };
    if (draw_seldom(from)) {
        node_distort(node, from);
    }
    return node;
}

static made_node *field_draw(made_batch *made, byte_source *from, size_t wanted, const made_batch *like)
{
    bool coded = like ? like->nodes[made->nodes_count].coded : byte_draw(from) % 4 == 3;
    made_node *node = node_draw(made, from, wanted, coded, like);
    node->coded = coded;
    if (coded) {
        made_node *values = node_draw(made, from, 1 + draw_below(from, 4), false, like);
        node->schema.dictionary = draw_seldom(from) ? NULL : &values->schema;
        node->array.dictionary = draw_seldom(from) ? NULL : &values->array;
    }
    return node;
}

/* ---- Batches ----------------------------------------------------------------------------------------------------------------------------- */

static void buffers_free(made_batch *made)
{
    for (size_t i = 0; i < made->nodes_count; i++) {
        for (size_t j = 0; j < made->nodes[i].buffers_count; j++) {
            const uint8_t *buffer = made->nodes[i].buffers[j];
            free(buffer ? (void *)(uintptr_t)(buffer - made->nodes[i].shift) : NULL);
        }
        made->nodes[i].buffers_count = 0;
    }
    free((void *)(uintptr_t)made->validity[0]);
    made->validity[0] = NULL;
}

static void batch_release(struct ArrowArray *array)
{
    made_batch *made = array->private_data;
    NEED(made->released++ == 0);
    buffers_free(made);
    array->release = NULL;
}

static void batch_distort(made_batch *made, byte_source *from)
{
    size_t fields = (size_t)made->schema.n_children;
    switch (draw_below(from, 10)) {
    case 0:
        made->array.length = lie_draw(from);
        break;
    case 1:
        made->array.offset = lie_draw(from);
        break;
    case 2:
        made->array.null_count = lie_draw(from);
        break;
    case 3:
        made->array.n_children = made->schema.n_children = (int64_t)fields + 1; /* the last is NULL */
        break;
    case 4:
        made->array.n_children = (int64_t)draw_below(from, fields + 1);
        break;
    case 5:
        made->array.children = NULL;
        break;
    case 6:
        made->children[draw_below(from, fields)] = NULL;
        break;
    case 7:
        made->array.n_buffers = lie_draw(from);
        break;
    case 8:
        made->schema.format = byte_draw(from) & 1 ? "u" : NULL;
        break;
    default:
        made->schema_children[draw_below(from, fields)] = NULL;
    }
}

void made_batch_draw(made_batch *made, byte_source *from, size_t fields, const made_batch *like)
{
    NEED(fields && fields <= MADE_FIELDS);
    memset(made, 0, sizeof *made);
    size_t rows = draw_below(from, ROWS_MAX), offset = draw_below(from, OFFSET_MAX);
    made->schema =
        (struct ArrowSchema){ .format = "+s", .n_children = (int64_t)fields, .children = made->schema_children, .release = schema_release };
    made->array = (struct ArrowArray){ .length = (int64_t)rows,
                                       .null_count = (int64_t)draw_below(from, 2) - 1,
                                       .offset = (int64_t)offset,
                                       .n_buffers = 1,
                                       .n_children = (int64_t)fields,
                                       .buffers = made->validity,
                                       .children = made->children,
                                       .release = batch_release,
                                       .private_data = made };
    made->validity[0] = draw_seldom(from) ? bytes_draw(from, (offset + rows + 7) / 8) : NULL;
    for (size_t i = 0; i < fields; i++) {
        made_node *node = field_draw(made, from, offset + rows, like);
        made->names[i][0] = draw_seldom(from) ? (char)byte_draw(from) : (char)('a' + (int)i);
        node->schema.name = made->names[i];
        made->schema_children[i] = &node->schema;
        made->children[i] = &node->array;
    }
    if (draw_seldom(from)) {
        batch_distort(made, from);
    }
}

void made_batch_free(made_batch *made)
{
    buffers_free(made);
}
