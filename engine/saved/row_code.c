/* Writing rows as bytes: each column packed to what it needs, then handed on in one piece. */
#include "row_code.h"

/* The cells that are not null, side by side. */
typedef union packed {
    uint8_t bits[IVM__CHUNK_ROWS / 8];
    int32_t days[IVM__CHUNK_ROWS];
    uint32_t sizes[IVM__CHUNK_ROWS];
    int64_t words[IVM__CHUNK_ROWS];
    ivm__wide wides[IVM__CHUNK_ROWS];
} packed;

/* What no reader would take is not written. */
static ivm_status weights_write(ivm__sink *sink, const ivm__row_shape *shape, const ivm__chunk *chunk)
{
    int64_t weights[IVM__CHUNK_ROWS];
    bool ones = true, below = false;
    for (uint32_t i = 0; chunk->weights && i < chunk->rows_count; i++) {
        weights[i] = (int64_t)chunk->weights[i];
        assert(weights[i] == chunk->weights[i] && weights[i]);
        ones &= weights[i] == 1;
        below |= weights[i] < 0;
    }
    if (shape->weights == IVM__WEIGHTS_ONE ? !ones : below && shape->weights == IVM__WEIGHTS_ABOVE_0) {
        return IVM_CORRUPT;
    }
    IVM_TRY(ivm__put_u8(sink, !ones));
    return ones ? IVM_OK : ivm__put(sink, weights, chunk->rows_count * sizeof *weights);
}

static void bits_pack(const uint8_t *bytes, uint32_t count, uint8_t *bits)
{
    memset(bits, 0, (count + 7) / 8);
    for (uint32_t i = 0; i < count; i++) {
        bits[i / 8] |= (uint8_t)(bytes[i] << i % 8);
    }
}

/* Which rows have a cell; how many. */
static uint32_t rows_present(const ivm__vector *in, uint32_t count, uint16_t *rows)
{
    uint32_t present = 0;
    for (uint32_t i = 0; i < count; i++) {
        rows[present] = (uint16_t)i;
        present += !in->nulls || !in->nulls[i];
    }
    return present;
}

static ivm_status strings_write(ivm__sink *sink, const ivm__vector *in, const uint16_t *rows, uint32_t count, packed *room)
{
    for (uint32_t i = 0; i < count; i++) {
        room->sizes[i] = ivm__text_cell(in, rows[i])->size;
    }
    IVM_TRY(ivm__put(sink, room->sizes, count * sizeof *room->sizes));
    for (uint32_t i = 0; i < count; i++) {
        const ivm__text *text = ivm__text_cell(in, rows[i]);
        IVM_TRY(ivm__put(sink, text->bytes, text->size));
    }
    return IVM_OK;
}

static ivm_status bools_write(ivm__sink *sink, const ivm__vector *in, const uint16_t *rows, uint32_t count, packed *room)
{
    uint8_t bytes[IVM__CHUNK_ROWS];
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)ivm__word(in, rows[i]);
        assert(bytes[i] <= 1);
    }
    bits_pack(bytes, count, room->bits);
    return ivm__put(sink, room->bits, (count + 7) / 8);
}

static ivm_status dates_write(ivm__sink *sink, const ivm__vector *in, const uint16_t *rows, uint32_t count, packed *room)
{
    for (uint32_t i = 0; i < count; i++) {
        room->days[i] = (int32_t)ivm__word(in, rows[i]);
        assert((uint64_t)(int64_t)room->days[i] == ivm__word(in, rows[i]));
    }
    return ivm__put(sink, room->days, count * sizeof *room->days);
}

/* Cells that are written as they lie. */
static ivm_status cells_write(ivm__sink *sink, const ivm__vector *in, const uint16_t *rows, uint32_t count, packed *room)
{
    bool wide = ivm__type_is_wide(in->type);
    size_t size = wide ? sizeof(ivm__wide) : sizeof(uint64_t);
    if (!in->nulls) {
        return ivm__put(sink, in->cells, count * size);
    }
    for (uint32_t i = 0; wide && i < count; i++) {
        room->wides[i] = ivm__wide_cell(in, rows[i]);
    }
    for (uint32_t i = 0; !wide && i < count; i++) {
        room->words[i] = (int64_t)ivm__word(in, rows[i]);
    }
    return ivm__put(sink, room, count * size);
}

static ivm_status column_write(ivm__sink *sink, const ivm__vector *in, uint32_t rows_count)
{
    uint16_t rows[IVM__CHUNK_ROWS];
    packed room;
    uint32_t count = rows_present(in, rows_count, rows);
    IVM_TRY(ivm__put_u8(sink, count < rows_count));
    if (count < rows_count) {
        bits_pack(in->nulls, rows_count, room.bits);
        IVM_TRY(ivm__put(sink, room.bits, (rows_count + 7) / 8));
    }
    switch (IVM_TYPE_KIND(in->type)) {
    case IVM_STRING:
        return strings_write(sink, in, rows, count, &room);
    case IVM_BOOL:
        return bools_write(sink, in, rows, count, &room);
    case IVM_DATE:
        return dates_write(sink, in, rows, count, &room);
    default:
        return cells_write(sink, in, rows, count, &room);
    }
}

ivm_status ivm__rows_write(ivm__sink *sink, const ivm__row_shape *shape, const ivm__chunk *chunk)
{
    assert(chunk->rows_count > 0 && chunk->rows_count <= IVM__CHUNK_ROWS && chunk->columns_count >= shape->columns_count);
    IVM_TRY(ivm__put_u16(sink, (uint16_t)chunk->rows_count));
    IVM_TRY(weights_write(sink, shape, chunk));
    for (uint32_t c = 0; c < shape->columns_count; c++) {
        assert(chunk->columns[c].cells && chunk->columns[c].type == shape->types[c]);
        IVM_TRY(column_write(sink, &chunk->columns[c], chunk->rows_count));
    }
    return IVM_OK;
}

ivm_status ivm__rows_write_end(ivm__sink *sink)
{
    return ivm__put_u16(sink, 0);
}
