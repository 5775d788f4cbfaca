/* What must hold of an index, told by going through it: for tests. Cost: a lookup a row and a comparison a link, and every slot. */
#include "index_inside.h"

static bool row_stands(const ivm__store *store, ivm__row_id row)
{
    return row < store->rows_end && ivm__row_is_linked(ivm__store_row(store, row));
}

static ivm__slot_aim row_aim(const ivm__index *index, ivm__row_id row)
{
    return ivm__index_aim(index, ivm__index_row_hash(index, ivm__store_row(index->store, row)));
}

/* Whether a slot of the same key comes earlier on the way from their home. */
static bool key_is_earlier(const ivm__index *index, uint32_t of)
{
    ivm__row_id row = ivm__slot_row(ivm__index_slot(index, of));
    const uint8_t *key = ivm__store_row(index->store, row);
    ivm__slot_aim aim = row_aim(index, row);
    for (uint32_t at = aim.home; at != of; at = ivm__index_next(index, at)) {
        uint64_t slot = ivm__index_slot(index, at);
        if (ivm__slot_tag(slot) == aim.tag && ivm__index_rows_equal(index, ivm__store_row(index->store, ivm__slot_row(slot)), key)) {
            return true;
        }
    }
    return false;
}

static const char *slot_validate(const ivm__index *index, uint32_t at)
{
    ivm__row_id row = ivm__slot_row(ivm__index_slot(index, at));
    if (!row_stands(index->store, row)) {
        return "a slot of a row that does not stand in the store";
    }
    if (row_aim(index, row).tag != ivm__slot_tag(ivm__index_slot(index, at))) {
        return "a slot whose tag is not its row's";
    }
    for (uint32_t before = row_aim(index, row).home; before != at; before = ivm__index_next(index, before)) {
        if (ivm__index_slot(index, before) == 0) {
            return "a free slot before a slot's place";
        }
    }
    return NULL;
}

/* *rows grows by those of the block. */
static const char *block_validate(const ivm__index *index, uint32_t at, ivm__row_id representative, uint64_t *rows)
{
    const ivm__store *store = index->store;
    const ivm__block *block = ivm__index_block(index, at);
    if (block->count == 0 || block->count > IVM__BLOCK_ROWS) {
        return "a block of a list without rows, or with too many";
    }
    for (uint32_t i = 0; i < block->count; i++, ++*rows) {
        ivm__row_id row = block->rows[i];
        if (!row_stands(store, row) || row >= ivm__index_places_room(index)) {
            return "a list with a row that does not stand in the store";
        }
        if (*ivm__index_place(index, row) != at * 16 + i) {
            return "a row in another place than it says";
        }
        if (!ivm__index_rows_equal(index, ivm__store_row(store, representative), ivm__store_row(store, row))) {
            return "a list of rows of different keys";
        }
    }
    return NULL;
}

/* *rows and *blocks grow by the list's. */
static const char *list_validate(const ivm__index *index, ivm__row_id representative, uint64_t *rows, uint64_t *blocks)
{
    if (*ivm__index_place(index, representative) == IVM__ROW_NONE) {
        ++*rows;
        return NULL;
    }
    uint32_t previous = IVM__BLOCK_NONE, at = *ivm__index_place(index, representative) >> 4;
    uint64_t rows_before = *rows;
    if (*ivm__index_place(index, representative) & 15) {
        return "a slot with another row than its list's first";
    }
    for (; at != IVM__BLOCK_NONE; previous = at, at = ivm__index_block(index, at)->next) {
        if (at >= index->blocks_count || ++*blocks > index->blocks_count) {
            return "a list of blocks that are not there, or without an end";
        }
        if (ivm__index_block(index, at)->previous != previous) {
            return "a list that does not lead back";
        }
        if (previous != IVM__BLOCK_NONE && ivm__index_block(index, previous)->count <= IVM__BLOCK_ROWS / 2 &&
            ivm__index_block(index, at)->count <= IVM__BLOCK_ROWS / 2) {
            return "two blocks side by side that should be one";
        }
        const char *wrong = block_validate(index, at, representative, rows);
        if (wrong) {
            return wrong;
        }
    }
    return *rows - rows_before > 1 ? NULL : "a list of one row";
}

typedef struct counts {
    uint64_t used, rows, doubles, blocks;
} counts;

static const char *slots_validate(const ivm__index *index, counts *counted)
{
    for (uint64_t at = 0; at < index->slots_capacity; at++) {
        uint64_t slot = ivm__index_slot(index, (uint32_t)at);
        if (slot == 0) {
            continue;
        }
        const char *wrong = slot_validate(index, (uint32_t)at);
        if (wrong) {
            return wrong;
        }
        bool doubled = key_is_earlier(index, (uint32_t)at);
        if (doubled && !index->unique) {
            return "two slots of one key";
        }
        counted->used++;
        counted->doubles += doubled;
        if (index->unique) {
            counted->rows++;
        } else if ((wrong = list_validate(index, ivm__slot_row(slot), &counted->rows, &counted->blocks)) != NULL) {
            return wrong;
        }
    }
    const char *wrong = ivm__narrow_validate(index);
    return wrong ? wrong : ivm__larger_validate(index);
}

const char *ivm__index_validate(const ivm__index *index)
{
    const ivm__store *store = index->store;
    counts counted = { 0 };
    const char *wrong = slots_validate(index, &counted);
    if (wrong) {
        return wrong;
    }
    if (counted.used != index->used) {
        return "a wrong count of slots in use";
    }
    if (counted.used > ivm__slots_limit_meanwhile(index)) {
        return "too many slots in use";
    }
    if (counted.doubles != index->doubles) {
        return "a wrong count of doubles";
    }
    if (counted.blocks + index->blocks_free_count != index->blocks_count) {
        return "blocks that are neither in a list nor free";
    }
    uint64_t standing = 0;
    for (ivm__row_id row = 0; row < store->rows_end; row++) {
        standing += row_stands(store, row);
    }
    return standing == counted.rows ? NULL : "rows that are not linked, or linked twice";
}
