/* tests engine/store/pages.c */
#include "pages.h"

#include "heavy.h"

#include <pthread.h>
#include <sched.h>

#include "store_model.h"

#define HELD_MAX 6u

/* A directory and what its pages were when it was acquired, byte for byte, also past the last row; and so the heavy weights. */
typedef struct held {
    ivm__pages *pages;
    uint32_t count;
    size_t page_bytes;
    uint8_t *bytes;
    ivm__heavies *heavies; /* NULL: there are none */
    uint32_t heavy_count;
    ivm__heavy *heavy;
} held;

static uint8_t *rows_of(const ivm__pages *pages, uint32_t page)
{
    return ivm__pages_leaf(pages, page)->rows[page % IVM__FAN];
}

static ivm__page *page_of(const ivm__pages *pages, uint32_t page)
{
    return ivm__pages_leaf(pages, page)->page[page % IVM__FAN];
}

static held hold(model *self)
{
    held out = { .pages = ivm__pages_acquire(&self->store), .page_bytes = (size_t)self->layout->stride << self->store.page_shift };
    out.count = self->store.pages_count;
    out.bytes = malloc(out.count * out.page_bytes + 1);
    for (uint32_t i = 0; i < out.count; i++) {
        memcpy(out.bytes + i * out.page_bytes, rows_of(out.pages, i), out.page_bytes);
    }
    out.heavies = ivm__heavies_acquire(&self->store);
    out.heavy_count = out.heavies ? self->store.heavy_count : 0;
    out.heavy = malloc(out.heavy_count * sizeof *out.heavy + 1);
    for (uint32_t i = 0; i < out.heavy_count; i++) {
        out.heavy[i] = out.heavies->list[i];
    }
    return out;
}

static void held_check(const held *of)
{
    for (uint32_t i = 0; i < of->count; i++) {
        cr_assert_eq(memcmp(of->bytes + i * of->page_bytes, rows_of(of->pages, i), of->page_bytes), 0, "page %u", i);
    }
    for (uint32_t i = 0; i < of->heavy_count; i++) {
        const ivm__heavy *then = &of->heavy[i], *now = &of->heavies->list[i];
        cr_assert(then->row == now->row && then->weight == now->weight, "heavy weight %u", i);
    }
}

static void let_go(model *self, held *of)
{
    ivm__pages_release(of->pages, &self->memory);
    ivm__heavies_release(of->heavies, &self->memory);
    free(of->bytes);
    free(of->heavy);
    *of = (held){ 0 };
}

static void run(uint64_t seed)
{
    model *self = model_begin(seed);
    held helds[HELD_MAX] = { 0 };
    cr_assert_eq(model_index_make(self, 1), IVM_OK);
    for (uint32_t step = 0; step < 30; step++) {
        held *of = &helds[model_random(self, HELD_MAX)];
        if (of->pages) {
            let_go(self, of);
        } else {
            *of = hold(self);
        }
        model_step_begin(self);
        cr_assert_eq(model_step(self, (uint32_t)model_random(self, 30)), IVM_OK);
        if (model_random(self, 3) == 0) {
            model_undo(self);
        } else {
            model_commit(self);
        }
        model_check(self);
        for (uint32_t i = 0; i < HELD_MAX; i++) {
            if (helds[i].pages) {
                held_check(&helds[i]);
            }
        }
    }
    for (uint32_t i = 0; i < HELD_MAX; i++) {
        if (helds[i].pages) {
            let_go(self, &helds[i]);
        }
    }
    model_end(self);
}

Test(engine_pages, held_directories_never_change, .fini = model_seed_tell)
{
    for (uint64_t seed = 1; seed <= 25; seed++) {
        run(seed);
    }
}

Test(engine_pages, rows_begin_at_cache_lines)
{
    model *self = model_begin(1);
    cr_assert_eq(ivm__store_reserve(&self->store, 5000), IVM_OK);
    for (uint32_t i = 0; i < self->store.pages_count; i++) {
        cr_assert_eq((uintptr_t)self->store.rows[i] % 64, 0);
    }
    model_end(self);
}

Test(engine_pages, a_page_holds_a_power_of_two_of_rows)
{
    static const struct {
        uint32_t stride, rows;
    } expected[] = { { 16, 512 }, { 24, 512 }, { 32, 256 }, { 48, 256 }, { 64, 128 }, { 8, 1024 }, { 6144, 2 }, { 8192, 1 }, { 20000, 1 } };
    for (uint32_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        cr_assert_eq(1u << ivm__page_shift(expected[i].stride), expected[i].rows, "stride %u", expected[i].stride);
    }
}

/* One write after an acquire copies the way to one page and that; pages that nobody writes stay shared. */
Test(engine_pages, only_pages_written_to_are_copied)
{
    model *self = model_begin(1);
    uint32_t rows = (self->store.page_mask + 1) * 4;
    cr_assert_eq(ivm__store_reserve(&self->store, rows), IVM_OK);
    for (uint32_t i = 0; i < rows; i++) {
        self->rows[i] = (model_row){ .stands = true, .text = -1, .after = 1 };
        self->rows_end++;
        ivm__row_id row = ivm__store_append(&self->store, 1);
        model_body_write(self, row);
        ivm__store_link(&self->store, row);
    }
    model_commit(self);
    ivm__pages *before = ivm__pages_acquire(&self->store);
    cr_assert_eq(ivm__store_weight_add(&self->store, self->store.page_mask + 2, 1), IVM_OK);
    cr_assert_neq(self->store.pages, before);
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(page_of(self->store.pages, i) == page_of(before, i), i != 1);
    }
    uint64_t calls = self->counted.calls;
    cr_assert_eq(ivm__store_weight_add(&self->store, self->store.page_mask + 3, 1), IVM_OK);
    cr_assert_eq(self->counted.calls, calls);
    ivm__store_undo(&self->store);
    ivm__pages_release(before, &self->memory);
    model_end(self);
}

/* Without a snapshot nothing is copied, and none is needed once it is closed. */
Test(engine_pages, nothing_is_copied_when_nobody_else_reads)
{
    model *self = model_begin(1);
    cr_assert_eq(model_rows_come(self, 100), IVM_OK);
    cr_assert_eq(model_weights_narrow(self), IVM_OK);
    model_commit(self);
    ivm__pages_release(ivm__pages_acquire(&self->store), &self->memory);
    ivm__pages *pages = self->store.pages;
    ivm__page *page = page_of(pages, 0);
    ivm__row_id row = model_row_chosen(self);
    cr_assert_eq(ivm__store_touch(&self->store, row), IVM_OK);
    cr_assert(self->store.pages == pages && page_of(pages, 0) == page);
    ivm__store_undo(&self->store);
    model_end(self);
}

Test(engine_pages, held_directory_outlives_the_store)
{
    model *self = model_begin(1);
    cr_assert_eq(model_rows_come(self, 900), IVM_OK);
    cr_assert_eq(model_weights_narrow(self), IVM_OK);
    model_commit(self);
    held of = hold(self);
    ivm__store_deinit(&self->store);
    held_check(&of);
    let_go(self, &of);
    model_end(self);
}

/* ---- Threads --------------------------------------------------------------------------------------------------------------------- */

/* Directories handed from the writer to readers that read and release them. */
typedef struct exchange {
    model *self;
    _Atomic(ivm__pages *) slots[4];
    _Atomic bool done;
    _Atomic uint64_t wrong;
} exchange;

static void pages_read(exchange *between, ivm__pages *pages)
{
    const model *self = between->self;
    const uint8_t *first = rows_of(pages, 0);
    ivm__row_header header = ivm__row_header_of(first);
    for (ivm__row_id row = 0; row < 600; row++) {
        const uint8_t *at = rows_of(pages, row >> self->store.page_shift) + (row & self->store.page_mask) * (size_t)self->layout->stride;
        between->wrong += ivm__row_header_of(at) != header || ivm__header_is_touch(header);
    }
}

static void *reader(void *argument)
{
    exchange *between = argument;
    while (!between->done) {
        for (uint32_t i = 0; i < 4; i++) {
            ivm__pages *pages = atomic_exchange(&between->slots[i], NULL);
            if (pages) {
                pages_read(between, pages);
                ivm__pages_release(pages, &between->self->memory);
            }
        }
        sched_yield();
    }
    return NULL;
}

/* All rows weigh the same after each step: what a reader sees must be one step's. */
Test(engine_pages, readers_on_other_threads_see_one_step)
{
    model *self = model_begin(1);
    exchange between = { .self = self };
    pthread_t threads[2];
    cr_assert_eq(ivm__store_reserve(&self->store, 600), IVM_OK);
    for (uint32_t i = 0; i < 600; i++) {
        self->rows[i] = (model_row){ .stands = true, .text = -1 };
        model_body_write(self, ivm__store_append(&self->store, 1));
    }
    ivm__store_commit(&self->store);
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, reader, &between), 0);
    }
    for (uint32_t step = 0; step < 400; step++) {
        ivm__pages *taken = atomic_exchange(&between.slots[step % 4], ivm__pages_acquire(&self->store));
        ivm__pages_release(taken, &self->memory);
        for (ivm__row_id row = 0; row < 600; row++) {
            cr_assert_eq(ivm__store_weight_add(&self->store, row, 1), IVM_OK);
        }
        ivm__store_commit(&self->store);
    }
    between.done = true;
    for (uint32_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    for (uint32_t i = 0; i < 4; i++) {
        ivm__pages_release(between.slots[i], &self->memory);
    }
    cr_assert_eq(between.wrong, 0);
    model_end(self);
}
