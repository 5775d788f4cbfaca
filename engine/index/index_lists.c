/* Lists of rows that have one key: blocks of a cache line, so that walking a list waits once for 14 rows where a chain of rows would wait for
 * each, and any row leaves without a search.
 *
 *     slot -> representative = first row of the first block      place[row] = block * 16 + where in it      rows[place] = row
 *
 * New rows go to the first block, or to a new one before it. A row that leaves is replaced by the last of its block; a block that is half empty
 * by that is joined to a neighbour that has room, so that of two beside each other one is more than half full. A key's only row has no block.
 * Places and blocks lie in segments: they grow without a copy, and hardly anything is unused.
 * Cost: 4 bytes a row and 64 a block: 9 to 13 bytes a row of a key with many. */
#include "index_inside.h"

static_assert(sizeof(ivm__block) == IVM__LINE_BYTES, "a block is a cache line");
static_assert(IVM__BLOCK_ROWS < 16, "a place has four bits for where in the block");

/* ---- Room ------------------------------------------------------------------------------------------------------------------------ */

/* Every row may need a block: that of its key's second row, or of one whose first block is full. */
ivm_status ivm__lists_reserve(ivm__index *index, uint64_t rows)
{
    ivm__memory *memory = index->store->memory;
    uint64_t blocks = index->blocks_free_count < rows ? index->blocks_count + rows - index->blocks_free_count : index->blocks_count;
    if (blocks > IVM__BLOCK_NONE) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__segments_reserve(memory, &index->places, (index->store->rows_end + rows) * sizeof(uint32_t)));
    return ivm__segments_reserve(memory, &index->blocks, blocks * sizeof(ivm__block));
}

void ivm__lists_free(ivm__index *index)
{
    ivm__segments_free(index->store->memory, &index->places);
    ivm__segments_free(index->store->memory, &index->blocks);
}

void ivm__lists_clear(ivm__index *index)
{
    index->blocks_count = index->blocks_free_count = 0;
}

uint64_t ivm__lists_bytes(const ivm__index *index)
{
    return ivm__segments_bytes(&index->places) + ivm__segments_bytes(&index->blocks);
}

/* ---- Blocks ---------------------------------------------------------------------------------------------------------------------- */

/* A block of one row at the head of a list. */
static uint32_t block_take(ivm__index *index, ivm__row_id row, uint32_t next)
{
    uint32_t taken = index->blocks_free;
    if (index->blocks_free_count) {
        index->blocks_free = ivm__index_block(index, taken)->next;
        index->blocks_free_count--;
    } else {
        assert(index->blocks_count < ivm__index_blocks_room(index));
        taken = index->blocks_count++;
    }
    ivm__block *block = ivm__index_block(index, taken);
    block->next = next;
    block->count = 1;
    block->previous = IVM__BLOCK_NONE;
    block->rows[0] = row;
    *ivm__index_place(index, row) = taken * 16;
    if (next != IVM__BLOCK_NONE) {
        ivm__index_block(index, next)->previous = taken;
    }
    return taken;
}

/* The block has no rows, or they have moved. */
static void block_give_back(ivm__index *index, uint32_t given)
{
    ivm__block *block = ivm__index_block(index, given);
    if (block->next != IVM__BLOCK_NONE) {
        ivm__index_block(index, block->next)->previous = block->previous;
    }
    if (block->previous != IVM__BLOCK_NONE) {
        ivm__index_block(index, block->previous)->next = block->next;
    }
    block->next = index->blocks_free;
    index->blocks_free = given;
    index->blocks_free_count++;
}

static void block_append(ivm__index *index, uint32_t to, ivm__row_id row)
{
    ivm__block *block = ivm__index_block(index, to);
    *ivm__index_place(index, row) = to * 16 + block->count;
    block->rows[block->count++] = row;
}

/* Joins the block after this one to it, if they fit into one. */
static void block_join(ivm__index *index, uint32_t to)
{
    ivm__block *block = ivm__index_block(index, to);
    uint32_t from = block->next;
    if (from == IVM__BLOCK_NONE || (uint32_t)block->count + ivm__index_block(index, from)->count > IVM__BLOCK_ROWS) {
        return;
    }
    for (uint32_t i = 0; i < ivm__index_block(index, from)->count; i++) {
        block_append(index, to, ivm__index_block(index, from)->rows[i]);
    }
    block_give_back(index, from);
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------------------ */

ivm__row_id ivm__list_push(ivm__index *index, ivm__row_id representative, ivm__row_id row)
{
    assert(row < ivm__index_places_room(index));
    if (*ivm__index_place(index, representative) == IVM__ROW_NONE) {
        block_append(index, block_take(index, representative, IVM__BLOCK_NONE), row);
        return representative;
    }
    uint32_t first = *ivm__index_place(index, representative) >> 4;
    assert(ivm__index_block(index, first)->previous == IVM__BLOCK_NONE && ivm__index_block(index, first)->rows[0] == representative);
    if (ivm__index_block(index, first)->count < IVM__BLOCK_ROWS) {
        block_append(index, first, row);
        return representative;
    }
    block_take(index, row, first);
    return row;
}

/* Keeps a list small after a row left this block; what is left of it may be its only row. */
static void block_settle(ivm__index *index, uint32_t left)
{
    const ivm__block *block = ivm__index_block(index, left);
    if (block->count > IVM__BLOCK_ROWS / 2) {
        return;
    }
    block_join(index, left);
    if (block->previous != IVM__BLOCK_NONE) {
        block_join(index, block->previous);
    } else if (block->count == 1 && block->next == IVM__BLOCK_NONE) {
        *ivm__index_place(index, block->rows[0]) = IVM__ROW_NONE;
        block_give_back(index, left);
    }
}

ivm__row_id ivm__list_remove(ivm__index *index, ivm__row_id row)
{
    uint32_t place = *ivm__index_place(index, row), from = place >> 4;
    ivm__block *block = ivm__index_block(index, from);
    assert(block->rows[place & 15] == row);
    bool represents = block->previous == IVM__BLOCK_NONE && (place & 15) == 0;
    ivm__row_id moved = block->rows[--block->count];
    block->rows[place & 15] = moved;
    *ivm__index_place(index, moved) = place;
    if (block->count > 0) {
        ivm__row_id first = block->rows[0];
        block_settle(index, from);
        return represents ? first : IVM__ROW_NONE;
    }
    assert(block->next == IVM__BLOCK_NONE || ivm__index_block(index, block->next)->count > 1);
    ivm__row_id first = represents ? ivm__index_block(index, block->next)->rows[0] : IVM__ROW_NONE;
    block_give_back(index, from);
    return first;
}
