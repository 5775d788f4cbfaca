/* Gathering: chunks that a leaf is sent, put together. */
#include <criterion/criterion.h>

#include "hand.h"
#include "join_state.h"

/* A chunk of random rows of two columns, some with nulls, some with weights; also in the bag. */
static void chunk_draw(ivm__chunk *chunk, ivm__arena *arena, hand_bag *bag, uint64_t *random)
{
    static const ivm_type types[] = { IVM_INT64, IVM_DECIMAL(9, 0) };
    uint32_t rows = 1 + hand_below(random, hand_below(random, 3) ? 40 : IVM__CHUNK_ROWS);
    *chunk = *ivm__chunk_make(arena, types, 2);
    chunk->rows_count = rows;
    cr_assert(ivm__vector_make(arena, &chunk->columns[0], types[0], rows, hand_below(random, 2)));
    cr_assert(ivm__vector_make(arena, &chunk->columns[1], types[1], rows, hand_below(random, 2)));
    chunk->weights = hand_below(random, 2) ? ivm__arena_allocate(arena, rows * sizeof(ivm__weight)) : NULL;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t cell = hand_below(random, 1000);
        ((uint64_t *)chunk->columns[0].cells)[i] = cell;
        ((ivm__wide *)chunk->columns[1].cells)[i] = (ivm__wide)cell + 1;
        for (uint32_t c = 0; c < 2; c++) {
            if (chunk->columns[c].nulls) {
                chunk->columns[c].nulls[i] = hand_below(random, 4) == 0;
            }
        }
        if (chunk->weights) {
            chunk->weights[i] = 1 + hand_below(random, 5);
        }
    }
    hand_chunk_rows(chunk, bag);
}

static uint32_t parts_read(const ivm__join_leaf *leaf, hand_bag *got)
{
    uint32_t count = 0;
    for (const ivm__leaf_part *part = leaf->drives.first; part; part = part->next, count++) {
        cr_assert_leq(part->chunk.rows_count, part->capacity);
        hand_chunk_rows(&part->chunk, got);
    }
    return count;
}

Test(operators_join_gather, gathered_chunks_are_put_together)
{
    uint64_t random = 17;
    ivm__memory memory;
    ivm__arena arena;
    ivm__layout *layout;
    ivm__memory_init(&memory, NULL);
    ivm__arena_init(&arena, &memory);
    cr_assert_eq(ivm__layout_create(&memory, (ivm_type[]){ IVM_INT64, IVM_DECIMAL(9, 0) }, NULL, 2, false, &layout), IVM_OK);
    for (uint32_t round = 0; round < 300; round++) {
        ivm__join_leaf leaf = { .layout = layout, .kept_count = 2 };
        hand_bag want = { 0 }, got = { 0 };
        uint32_t chunks = 1 + hand_below(&random, 40);
        for (uint32_t n = 0; n < chunks; n++) {
            ivm__chunk chunk;
            chunk_draw(&chunk, &arena, &want, &random);
            cr_assert_eq(ivm__leaf_gather(&leaf, &leaf.drives, &arena, &chunk), IVM_OK);
        }
        cr_assert_eq(leaf.drives.rows, want.count);
        uint32_t parts = parts_read(&leaf, &got);
        cr_assert_leq(parts, want.count / 64 + 2, "%u parts of %zu rows", parts, want.count);
        cr_assert(hand_bag_equal(&got, &want), "round %u", round);
        hand_bag_free(&got);
        hand_bag_free(&want);
        ivm__arena_reset(&arena);
    }
    ivm__layout_release(layout);
    ivm__arena_deinit(&arena);
}
