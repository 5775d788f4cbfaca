/* What a join's leaf takes in: chunks of its operator's delta, copied to the end of a list of parts, the kept columns alone. Small chunks, as a
 * filter gives, are put together, so that terms run over full ones. Cost: one copy of each kept cell. */
#include "join_state.h"

#define PART_ROWS_MIN 64u

static const uint64_t zeros[IVM__CHUNK_ROWS];

bool ivm__leaf_compact(const ivm__join_leaf *leaf, ivm__arena *arena, const ivm__chunk *chunk, ivm__chunk *compact)
{
    uint32_t columns_count = leaf->layout->columns_count;
    ivm__vector *columns = ivm__arena_allocate(arena, columns_count * sizeof *columns);
    if (!columns) {
        return false;
    }
    for (uint32_t i = 0; i < leaf->kept_count; i++) {
        columns[i] = chunk->columns[leaf->kept[i]];
        assert(columns[i].cells);
    }
    if (leaf->kept_count == 0) {
        columns[0] = (ivm__vector){ .type = IVM_INT64, .cells = (void *)zeros };
    }
    *compact = *chunk;
    compact->columns = columns;
    compact->columns_count = columns_count;
    return true;
}

static ivm__leaf_part *part_open(const ivm__join_leaf *leaf, ivm__leaf_parts *parts, ivm__arena *arena, uint32_t rows)
{
    uint32_t capacity = rows * 4 < PART_ROWS_MIN ? PART_ROWS_MIN : rows * 4 > IVM__CHUNK_ROWS ? IVM__CHUNK_ROWS : rows * 4;
    ivm__leaf_part *part = ivm__arena_allocate(arena, sizeof *part);
    ivm__chunk *chunk = ivm__chunk_make(arena, leaf->layout->types, leaf->layout->columns_count);
    if (!part || !chunk) {
        return NULL;
    }
    for (uint32_t i = 0; i < chunk->columns_count; i++) {
        if (!ivm__vector_make(arena, &chunk->columns[i], leaf->layout->types[i], capacity, false)) {
            return NULL;
        }
    }
    *part = (ivm__leaf_part){ .chunk = *chunk, .capacity = capacity };
    part->chunk.rows_count = 0;
    part->chunk.weights = NULL;
    *(parts->last ? &parts->last->next : &parts->first) = part;
    parts->last = part;
    return part;
}

static bool cells_append(const ivm__leaf_part *part, ivm__arena *arena, uint32_t column, const ivm__vector *from, uint32_t first,
                         uint32_t count)
{
    ivm__vector *to = &part->chunk.columns[column];
    uint32_t at = part->chunk.rows_count;
    size_t size = ivm__type_words(from->type) * sizeof(uint64_t);
    assert(to->type == from->type);
    memcpy((uint8_t *)to->cells + at * size, (const uint8_t *)from->cells + first * size, count * size);
    if (from->nulls && !to->nulls) {
        to->nulls = ivm__arena_allocate(arena, part->capacity);
        if (!to->nulls) {
            return false;
        }
        memset(to->nulls, 0, at);
    }
    if (from->nulls) {
        memcpy(to->nulls + at, from->nulls + first, count);
    } else if (to->nulls) {
        memset(to->nulls + at, 0, count);
    }
    return true;
}

static void fill_ones(ivm__weight *weights, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        weights[i] = 1;
    }
}

static bool weights_append(ivm__leaf_part *part, ivm__arena *arena, const ivm__weight *from, uint32_t count)
{
    uint32_t at = part->chunk.rows_count;
    if (from && !part->chunk.weights) {
        part->chunk.weights = ivm__arena_allocate(arena, part->capacity * sizeof *part->chunk.weights);
        if (!part->chunk.weights) {
            return false;
        }
        fill_ones(part->chunk.weights, at);
    }
    if (from) {
        memcpy(part->chunk.weights + at, from, count * sizeof *from);
    } else if (part->chunk.weights) {
        fill_ones(part->chunk.weights + at, count);
    }
    return true;
}

ivm_status ivm__leaf_gather(const ivm__join_leaf *leaf, ivm__leaf_parts *parts, ivm__arena *arena, const ivm__chunk *compact)
{
    for (uint32_t first = 0, count; first < compact->rows_count; first += count) {
        ivm__leaf_part *part = parts->last;
        if (!part || part->chunk.rows_count == part->capacity) {
            part = part_open(leaf, parts, arena, compact->rows_count - first);
        }
        if (!part) {
            return IVM_OUT_OF_MEMORY;
        }
        uint32_t room = part->capacity - part->chunk.rows_count, left = compact->rows_count - first;
        count = left < room ? left : room;
        for (uint32_t i = 0; i < compact->columns_count; i++) {
            if (!cells_append(part, arena, i, &compact->columns[i], first, count)) {
                return IVM_OUT_OF_MEMORY;
            }
        }
        if (!weights_append(part, arena, compact->weights ? compact->weights + first : NULL, count)) {
            return IVM_OUT_OF_MEMORY;
        }
        part->chunk.rows_count += count;
    }
    parts->rows += compact->rows_count;
    parts->negative |= ivm__chunk_any_negative(compact);
    return IVM_OK;
}

ivm_status ivm__leaf_consume(ivm__join_leaf *leaf, ivm__step *step, const ivm__chunk *chunk)
{
    ivm__chunk compact;
    if (!ivm__leaf_compact(leaf, step->scratch, chunk, &compact)) {
        return IVM_OUT_OF_MEMORY;
    }
    if (step->loading) {
        assert(!leaf->keeps && leaf->scan);
        return ivm__zset_add(&leaf->rows, step->scratch, &compact, NULL, 1);
    }
    return ivm__leaf_gather(leaf, step->aside ? &leaf->held_out : &leaf->drives, step->arena, &compact);
}
