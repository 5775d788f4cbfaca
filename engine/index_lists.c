/* Lists of rows that have one key: blocks of a cache line, so that walking a list waits once for 14 rows where a chain of rows would wait for
 * each, and any row leaves without a search.
 *
 *     slot -> representative = first row of the first block      place[row] = block * 16 + where in it      rows[place] = row
 *
 * New rows go to the first block, or to a new one before it. A row that leaves is replaced by the last of its block; a block that is half empty
 * by that is joined to a neighbour that has room, so that of two beside each other one is more than half full. A key's only row has no block.
 * Cost: 4 bytes a row and 64 a block: 9 to 13 bytes a row of a key with many. */
#include "index_inside.h"

#define LINE_BYTES 64u
#define ITEMS_DOUBLE_MAX (1u << 20) /* above, arrays grow by a half */

static_assert(sizeof(ivm__block) == LINE_BYTES, "a block is a cache line");
static_assert(IVM__BLOCK_ROWS < 16, "a place has four bits for where in the block");

/* ---- Room ------------------------------------------------------------------------------------------------------------------------ */

static uint64_t capacity_grown(uint64_t capacity, uint64_t needed, uint64_t most)
{
    capacity += capacity < ITEMS_DOUBLE_MAX ? capacity : capacity / 2;
    capacity = capacity < needed ? needed : capacity;
    return capacity < most ? capacity : most;
}

static ivm_status places_reserve(ivm__index *index, uint64_t rows)
{
    if (rows <= index->place_capacity) {
        return IVM_OK;
    }
    uint64_t capacity = capacity_grown(index->place_capacity, rows, IVM_TABLE_ROWS_MAX);
    size_t size = sizeof *index->place;
    uint32_t *place = ivm__resize(index->store->memory, index->place, index->place_capacity * size, capacity * size);
    if (!place) {
        return IVM_OUT_OF_MEMORY;
    }
    index->place = place;
    index->place_capacity = (uint32_t)capacity;
    return IVM_OK;
}

static size_t blocks_bytes(uint32_t capacity)
{
    return capacity ? capacity * sizeof(ivm__block) + LINE_BYTES : 0;
}

static ivm_status blocks_reserve(ivm__index *index, uint64_t blocks)
{
    if (blocks <= index->blocks_capacity - index->blocks_count + index->blocks_free_count) {
        return IVM_OK;
    }
    uint64_t needed = index->blocks_count + blocks - index->blocks_free_count;
    if (needed > IVM__BLOCK_NONE) {
        return IVM_OUT_OF_MEMORY;
    }
    uint32_t capacity = (uint32_t)capacity_grown(index->blocks_capacity, needed, IVM__BLOCK_NONE);
    uint8_t *memory = ivm__allocate(index->store->memory, blocks_bytes(capacity));
    if (!memory) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm__block *grown = (ivm__block *)(void *)(memory + (-(uintptr_t)memory & (LINE_BYTES - 1)));
    if (index->blocks_count) {
        memcpy(grown, index->blocks, index->blocks_count * sizeof *grown);
    }
    ivm__release(index->store->memory, index->blocks_memory, blocks_bytes(index->blocks_capacity));
    index->blocks = grown;
    index->blocks_memory = memory;
    index->blocks_capacity = capacity;
    return IVM_OK;
}

/* Every row may need a block: that of its key's second row, or of one whose first block is full. */
ivm_status ivm__lists_reserve(ivm__index *index, uint64_t rows)
{
    IVM_TRY(places_reserve(index, index->store->rows_end + rows));
    return blocks_reserve(index, rows);
}

void ivm__lists_free(ivm__index *index)
{
    ivm__release(index->store->memory, index->place, index->place_capacity * sizeof *index->place);
    ivm__release(index->store->memory, index->blocks_memory, blocks_bytes(index->blocks_capacity));
}

void ivm__lists_clear(ivm__index *index)
{
    index->blocks_count = index->blocks_free_count = 0;
}

uint64_t ivm__lists_bytes(const ivm__index *index)
{
    return index->place_capacity * sizeof *index->place + blocks_bytes(index->blocks_capacity);
}

/* ---- Blocks ---------------------------------------------------------------------------------------------------------------------- */

/* A block of one row at the head of a list. */
static uint32_t block_take(ivm__index *index, ivm__row_id row, uint32_t next)
{
    uint32_t taken = index->blocks_free;
    if (index->blocks_free_count) {
        index->blocks_free = index->blocks[taken].next;
        index->blocks_free_count--;
    } else {
        assert(index->blocks_count < index->blocks_capacity);
        taken = index->blocks_count++;
    }
    ivm__block *block = &index->blocks[taken];
    block->next = next;
    block->count = 1;
    block->previous = IVM__BLOCK_NONE;
    block->rows[0] = row;
    index->place[row] = taken * 16;
    if (next != IVM__BLOCK_NONE) {
        index->blocks[next].previous = taken;
    }
    return taken;
}

/* The block has no rows, or they have moved. */
static void block_give_back(ivm__index *index, uint32_t given)
{
    ivm__block *block = &index->blocks[given];
    if (block->next != IVM__BLOCK_NONE) {
        index->blocks[block->next].previous = block->previous;
    }
    if (block->previous != IVM__BLOCK_NONE) {
        index->blocks[block->previous].next = block->next;
    }
    block->next = index->blocks_free;
    index->blocks_free = given;
    index->blocks_free_count++;
}

static void block_append(ivm__index *index, uint32_t to, ivm__row_id row)
{
    ivm__block *block = &index->blocks[to];
    index->place[row] = to * 16 + block->count;
    block->rows[block->count++] = row;
}

/* Joins the block after this one to it, if they fit into one. */
static void block_join(ivm__index *index, uint32_t to)
{
    ivm__block *block = &index->blocks[to];
    uint32_t from = block->next;
    if (from == IVM__BLOCK_NONE || (uint32_t)block->count + index->blocks[from].count > IVM__BLOCK_ROWS) {
        return;
    }
    for (uint32_t i = 0; i < index->blocks[from].count; i++) {
        block_append(index, to, index->blocks[from].rows[i]);
    }
    block_give_back(index, from);
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------------------ */

ivm__row_id ivm__list_push(ivm__index *index, ivm__row_id representative, ivm__row_id row)
{
    assert(row < index->place_capacity);
    if (index->place[representative] == IVM__ROW_NONE) {
        block_append(index, block_take(index, representative, IVM__BLOCK_NONE), row);
        return representative;
    }
    uint32_t first = index->place[representative] >> 4;
    assert(index->blocks[first].previous == IVM__BLOCK_NONE && index->blocks[first].rows[0] == representative);
    if (index->blocks[first].count < IVM__BLOCK_ROWS) {
        block_append(index, first, row);
        return representative;
    }
    block_take(index, row, first);
    return row;
}

/* Keeps a list small after a row left this block; what is left of it may be its only row. */
static void block_settle(ivm__index *index, uint32_t left)
{
    const ivm__block *block = &index->blocks[left];
    if (block->count > IVM__BLOCK_ROWS / 2) {
        return;
    }
    block_join(index, left);
    if (block->previous != IVM__BLOCK_NONE) {
        block_join(index, block->previous);
    } else if (block->count == 1 && block->next == IVM__BLOCK_NONE) {
        index->place[block->rows[0]] = IVM__ROW_NONE;
        block_give_back(index, left);
    }
}

ivm__row_id ivm__list_remove(ivm__index *index, ivm__row_id row)
{
    uint32_t place = index->place[row], from = place >> 4;
    ivm__block *block = &index->blocks[from];
    assert(block->rows[place & 15] == row);
    bool represents = block->previous == IVM__BLOCK_NONE && (place & 15) == 0;
    ivm__row_id moved = block->rows[--block->count];
    block->rows[place & 15] = moved;
    index->place[moved] = place;
    if (block->count > 0) {
        ivm__row_id first = block->rows[0];
        block_settle(index, from);
        return represents ? first : IVM__ROW_NONE;
    }
    assert(block->next == IVM__BLOCK_NONE || index->blocks[block->next].count > 1);
    ivm__row_id first = represents ? index->blocks[block->next].rows[0] : IVM__ROW_NONE;
    block_give_back(index, from);
    return first;
}
