/* tests engine/store/pages.c where a directory has several levels: rows so wide that each fills a page come, change and are undone, with directories
 * held across, some of the calls for memory failing, and pages given back; against arrays of what the rows weighed. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "pages.h"

#include "allocator.h"
#include "random.h"

#define COLUMNS 800u
#define ROWS_MAX 700u
#define HELD_MAX 5u

typedef struct held {
    ivm__pages *pages; /* NULL: none is */
    uint32_t count;
    int64_t weights[ROWS_MAX];
} held;

typedef struct world {
    test_allocator allocator;
    ivm__memory memory;
    ivm__layout *layout;
    ivm__store store;
    uint64_t random;
    int64_t weights[ROWS_MAX], before[ROWS_MAX];
    held helds[HELD_MAX];
} world;

static uint64_t draw(world *it, uint64_t below)
{
    return random_below(&it->random, below);
}

static world *world_open(uint64_t seed)
{
    static ivm_type types[COLUMNS];
    world *it = calloc(1, sizeof *it);
    it->random = seed;
    for (uint32_t c = 0; c < COLUMNS; c++) {
        types[c] = IVM_INT64;
    }
    test_allocator_init(&it->allocator);
    ivm_allocator functions = test_allocator_functions(&it->allocator);
    ivm__memory_init(&it->memory, &functions);
    cr_assert_eq(ivm__layout_create(&it->memory, types, NULL, COLUMNS, false, &it->layout), IVM_OK);
    cr_assert_eq(ivm__store_init(&it->store, &it->memory, NULL, seed, it->layout), IVM_OK);
    cr_assert_eq(it->store.page_mask, 0u);
    return it;
}

static void world_close(world *it)
{
    for (uint32_t i = 0; i < HELD_MAX; i++) {
        ivm__pages_release(it->helds[i].pages, &it->memory);
    }
    ivm__store_deinit(&it->store);
    ivm__layout_release(it->layout);
    cr_assert(test_allocator_is_clean(&it->allocator));
    free(it);
}

/* ---- What must hold -------------------------------------------------------------------------------------------------------------------- */

static ivm__page *page_of(const ivm__pages *pages, uint32_t page)
{
    return ivm__pages_leaf(pages, page)->page[page % IVM__FAN];
}

static uint8_t *rows_of(const ivm__pages *pages, uint32_t page)
{
    return ivm__pages_leaf(pages, page)->rows[page % IVM__FAN];
}

static bool path_is_own(const ivm__store *store, uint32_t page)
{
    const ivm__pages *node = store->pages;
    for (; node->height > 0; node = node->below[page >> node->height * IVM__FAN_SHIFT & (IVM__FAN - 1)]) {
        if (atomic_load(&node->references) != 1) {
            return false;
        }
    }
    return atomic_load(&node->references) == 1 && atomic_load(&page_of(store->pages, page)->references) == 1;
}

static void check_held(const world *it, const held *of)
{
    uint32_t end = it->store.rows_end, differ = end;
    for (uint32_t row = 0; row < of->count; row++) {
        ivm__row_header header = ivm__row_header_of(rows_of(of->pages, row));
        cr_assert(!ivm__header_is_touch(header) && ivm__header_weight(header) == of->weights[row], "row %u", row);
    }
    for (uint32_t row = end; row-- > 0;) {
        bool same = row < of->count && page_of(of->pages, row) == page_of(it->store.pages, row);
        differ = same ? differ : row;
        cr_assert_eq(ivm__pages_differ(of->pages, it->store.pages, row, end), differ, "row %u", row);
    }
    cr_assert_eq(ivm__pages_differ(it->store.pages, it->store.pages, 0, end), end);
}

static void check(const world *it, uint32_t rows)
{
    const ivm__store *store = &it->store;
    cr_assert_eq(store->rows_end, rows);
    for (uint32_t row = 0; row < rows; row++) {
        cr_assert_eq(ivm__store_weight(store, row, IVM__READ_CUR), it->weights[row], "row %u", row);
    }
    for (uint32_t page = 0; page < store->pages_count; page++) {
        cr_assert_eq(rows_of(store->pages, page), store->rows[page], "page %u", page);
        cr_assert(store->owned[page] != store->shares || path_is_own(store, page), "page %u", page);
    }
    for (uint32_t i = 0; i < HELD_MAX; i++) {
        if (it->helds[i].pages) {
            check_held(it, &it->helds[i]);
        }
    }
}

/* ---- Steps ----------------------------------------------------------------------------------------------------------------------------- */

static void hold_or_let_go(world *it, uint32_t rows)
{
    held *of = &it->helds[draw(it, HELD_MAX)];
    ivm__pages_release(of->pages, &it->memory);
    if (of->pages) {
        of->pages = NULL;
        return;
    }
    of->pages = ivm__pages_acquire(&it->store);
    of->count = rows;
    memcpy(of->weights, it->weights, sizeof of->weights);
}

static ivm_status rows_come(world *it, uint32_t *rows, uint32_t more)
{
    IVM_TRY(ivm__store_reserve(&it->store, more));
    for (; more; more--) {
        ivm__row_id row = ivm__store_append(&it->store, 1);
        cr_assert_eq(row, *rows);
        it->weights[(*rows)++] = 1;
    }
    return IVM_OK;
}

static ivm_status rows_change(world *it, uint32_t rows)
{
    for (uint64_t changes = rows ? draw(it, 6) : 0; changes; changes--) {
        uint32_t row = (uint32_t)draw(it, rows);
        IVM_TRY(ivm__store_weight_add(&it->store, row, 1));
        it->weights[row]++;
    }
    return IVM_OK;
}

/* Adds to `rows` at most up to `most`. One step in four asks for far more than it needs and is undone, and so is what fails. */
static uint32_t step(world *it, uint32_t rows, uint32_t most)
{
    uint32_t end = rows, more = rows < most ? (uint32_t)draw(it, most - rows > 40 ? 40 : most - rows + 1) : 0;
    bool much = draw(it, 4) == 0;
    memcpy(it->before, it->weights, sizeof it->before);
    test_allocator_arm(&it->allocator, draw(it, 3) ? 0 : 1 + draw(it, 12));
    ivm_status status = rows_change(it, rows);
    status = status == IVM_OK && much ? ivm__store_reserve(&it->store, 100 + draw(it, 900)) : status;
    status = status == IVM_OK && !much ? rows_come(it, &end, more) : status;
    status = status == IVM_OK ? rows_change(it, rows) : status;
    bool undone = status != IVM_OK || much || draw(it, 4) == 0;
    if (undone) {
        ivm__store_undo(&it->store);
        memcpy(it->weights, it->before, sizeof it->weights);
    } else {
        ivm__store_commit(&it->store);
    }
    bool failed = test_allocator_disarm(&it->allocator);
    cr_assert(status == IVM_OK || (failed && status == IVM_OUT_OF_MEMORY));
    return undone ? rows : end;
}

Test(engine_page_tree, random_steps_change_nothing_that_is_held)
{
    uint32_t highest = 0, lowest = UINT32_MAX;
    for (uint64_t seed = 1; seed <= 25; seed++) {
        world *it = world_open(seed);
        uint32_t rows = 0;
        for (uint32_t i = 0; i < 80; i++) {
            if (draw(it, 2)) {
                hold_or_let_go(it, rows);
            }
            rows = step(it, rows, i < 40 ? 20 : ROWS_MAX);
            check(it, rows);
            highest = it->store.pages->height > highest ? it->store.pages->height : highest;
            lowest = i > 10 && it->store.pages->height < lowest ? it->store.pages->height : lowest;
        }
        world_close(it);
    }
    cr_assert(highest == 2 && lowest <= 1, "%u and %u", highest, lowest);
}

/* ---- What a write costs ---------------------------------------------------------------------------------------------------------------- */

/* A page and a node a level for the first write after an acquire, and no node twice; none where what was acquired has gone again. */
Test(engine_page_tree, a_write_copies_a_page_and_the_nodes_that_lead_to_it)
{
    world *it = world_open(1);
    uint32_t rows = 0;
    cr_assert_eq(rows_come(it, &rows, ROWS_MAX), IVM_OK);
    ivm__store_commit(&it->store);
    cr_assert_eq(ivm__store_weight_add(&it->store, 1, 1), IVM_OK); /* makes room for touches */
    ivm__store_commit(&it->store);
    static const struct {
        ivm__row_id row;
        uint64_t nodes;
    } writes[] = { { 600, 3 }, { 600, 0 }, { 601, 0 }, { 650, 1 }, { 5, 2 } };
    for (uint32_t kept = 0; kept < 2; kept++) {
        ivm__pages *pages = ivm__pages_acquire(&it->store);
        if (!kept) {
            ivm__pages_release(pages, &it->memory);
        }
        for (uint32_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
            uint64_t asked = it->allocator.asked, page = i == 1 ? 0 : (uint64_t)(it->layout->stride + 63) / 64 * 64;
            cr_assert_eq(ivm__page_own(&it->store, writes[i].row), IVM_OK);
            asked = it->allocator.asked - asked;
            uint64_t least = kept ? page + writes[i].nodes * sizeof(ivm__pages) : 0;
            cr_assert(asked >= least && asked <= least + (kept && page ? 128 : 0), "%u: %llu bytes", i, (unsigned long long)asked);
        }
        if (kept) {
            ivm__pages_release(pages, &it->memory);
        }
    }
    world_close(it);
}
