/* tests engine/index/codes.c */
#include "codes.h"

#include <criterion/criterion.h>
#include <string.h>

#include "allocator.h"
#include "chunk.h"

Test(engine_codes, a_cell_keeps_its_code_until_there_are_no_more)
{
    test_allocator counted;
    ivm__memory memory;
    ivm__codes codes;
    test_allocator_init(&counted);
    ivm_allocator functions = test_allocator_functions(&counted);
    ivm__memory_init(&memory, &functions);
    cr_assert_eq(ivm__codes_init(&codes, &memory, 4), IVM_OK);
    for (int round = 0; round < 2; round++) {
        for (uint64_t cell = 0; cell < 15; cell++) {
            cr_assert_eq(ivm__codes_give(&codes, cell << 50, 7), cell + 1);
        }
        cr_assert_eq(ivm__codes_give(&codes, 99, 7), 0u, "all are given");
        cr_assert(ivm__codes_find(&codes, 99, 7) == 0 && ivm__codes_find(&codes, (uint64_t)14 << 50, 7) == 15);
        cr_assert_eq(codes.count, 15u);
        for (uint64_t cell = 0; cell < 15; cell++) {
            cr_assert_eq(codes.cells[cell + 1], cell << 50);
        }
    }
    uint64_t identity = codes.identity;
    ivm__codes_clear(&codes, &memory);
    cr_assert_neq(codes.identity, identity);
    cr_assert_eq(ivm__codes_give(&codes, 99, 7), 1u);
    ivm__codes_deinit(&codes, &memory);
    cr_assert(test_allocator_is_clean(&counted));
}

Test(engine_codes, chosen_rows_keep_their_codes)
{
    static const uint64_t cells[] = { 10, 20, 30, 20 };
    static const uint16_t numbers[] = { 1, 2, 3, 2 };
    static const uint32_t rows[] = { 3, 0 };
    ivm__memory memory;
    ivm__arena arena;
    ivm__codes codes;
    ivm__memory_init(&memory, NULL);
    ivm__arena_init(&arena, &memory);
    ivm__vector in = { .type = IVM_INT64, .cells = (void *)cells, .codes = numbers, .codes_of = &codes }, out;
    ivm__chunk chunk = { .rows_count = 4, .columns_count = 1, .columns = &in };
    cr_assert(ivm__vector_choose(&arena, &in, rows, 2, &out));
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(ivm__word(&out, 0), 20u);
        cr_assert_eq(ivm__word(&out, 1), 10u);
        cr_assert_eq(out.codes[0], 2);
        cr_assert_eq(out.codes[1], 1);
        cr_assert_eq(out.codes_of, &codes);
        ivm__chunk *chosen = ivm__chunk_gather(&arena, &chunk, rows, 2);
        cr_assert_not_null(chosen);
        out = chosen->columns[0];
    }
    ivm__arena_deinit(&arena);
}
