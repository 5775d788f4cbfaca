/* The hand-written star loop; see floor.h. Blocks of 128 fact rows: hash and prefetch all four dimensions, then compare the first slot of
 * each without a branch and put the few that differ on a list, walk that list, and add to groups that the cached codes number directly.
 * Cost: four missed lines a fact row, overlapped, and one appended row. */
#include "floor.h"

#include "arena.h"
#include "option.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK 128
#define AHEAD 16
#define HUGE_PAGE ((size_t)2 << 20)

static inline uint64_t mix(uint64_t key)
{
    key ^= key >> 32;
    key *= 0xd6e8feb86659fd93ull;
    key ^= key >> 32;
    key *= 0xd6e8feb86659fd93ull;
    return key ^ key >> 32;
}

/* ---- Filling ------------------------------------------------------------------------------------------------------------------- */

/* On huge pages where the system gives them: a slot of a large table is one missed line and no missed page. */
static floor_slot *slots_take(size_t size)
{
    size_t rounded = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *slots = aligned_alloc(HUGE_PAGE, rounded);
    if (!slots) {
        exit(usage_error("out of memory"));
    }
    (void)madvise(slots, rounded, MADV_HUGEPAGE);
    memset(slots, 0, rounded);
    return slots;
}

static void dimension_fill(floor_dimension *dimension, const int64_t *keys, const int64_t *codes, uint32_t rows)
{
    uint64_t capacity = 16;
    while (capacity * 7 < (uint64_t)rows * 10) {
        capacity *= 2;
    }
    dimension->mask = capacity - 1;
    dimension->slots = slots_take(capacity * sizeof *dimension->slots);
    for (uint64_t i = 0; i < capacity; i++) {
        dimension->slots[i].key = FLOOR_KEY_NONE;
    }
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t at = mix((uint64_t)keys[i]) & dimension->mask;
        while (dimension->slots[at].used) {
            at = (at + 1) & dimension->mask;
        }
        dimension->slots[at] = (floor_slot){ keys[i], (uint32_t)codes[i], 1 };
    }
}

void floor_open(floor_star *floor, const star_data *data)
{
    *floor = (floor_star){ .groups_count = star_groups_count(&data->shape) };
    for (int d = 0; d < FLOOR_DIMENSIONS; d++) {
        dimension_fill(&floor->dimensions[d], data->keys[d], data->attributes[d], star_dimension_rows(&data->shape, (uint32_t)d));
        floor->dimensions[d].codes_count = data->shape.attributes[d];
    }
    floor->groups = memory_take((floor->groups_count + 1) * sizeof *floor->groups);
    for (int c = 0; c <= FLOOR_DIMENSIONS; c++) {
        floor->kept[c] = memory_take(data->shape.fact_rows * sizeof(int64_t));
        memset(floor->kept[c], 1, data->shape.fact_rows * sizeof(int64_t));
    }
}

void floor_close(floor_star *floor)
{
    for (int d = 0; d < FLOOR_DIMENSIONS; d++) {
        free(floor->dimensions[d].slots);
    }
    for (int c = 0; c <= FLOOR_DIMENSIONS; c++) {
        free(floor->kept[c]);
    }
    free(floor->groups);
    *floor = (floor_star){ 0 };
}

void floor_clear(floor_star *floor)
{
    memset(floor->groups, 0, (floor->groups_count + 1) * sizeof *floor->groups);
    floor->kept_count = 0;
}

/* ---- Blocks -------------------------------------------------------------------------------------------------------------------- */

static void block_prefetch(const floor_dimension *dimension, const int64_t *keys, uint32_t count, uint32_t *slots)
{
    const floor_slot *all = dimension->slots;
    uint64_t mask = dimension->mask;
    for (uint32_t i = 0; i < count; i++) {
        slots[i] = (uint32_t)(mix((uint64_t)keys[i]) & mask);
        __builtin_prefetch(&all[slots[i]]);
    }
}

/* Lists the rows whose first slot is another key's. */
static uint32_t block_compare(const floor_dimension *dimension, const int64_t *keys, uint32_t count, const uint32_t *slots, uint32_t *codes,
                              uint32_t *list)
{
    const floor_slot *all = dimension->slots;
    uint32_t listed = 0;
    for (uint32_t i = 0; i < count; i++) {
        const floor_slot *slot = &all[slots[i]];
        codes[i] = slot->code;
        list[listed] = i;
        listed += slot->key != keys[i];
    }
    return listed;
}

/* Walks on for the listed rows; what has no partner stays on the list. */
static uint32_t block_walk(const floor_dimension *dimension, const int64_t *keys, const uint32_t *slots, uint32_t *codes, uint32_t *list,
                           uint32_t listed)
{
    uint32_t lost = 0;
    for (uint32_t k = 0; k < listed; k++) {
        uint32_t i = list[k];
        uint64_t at = slots[i];
        while (dimension->slots[at].used && dimension->slots[at].key != keys[i]) {
            at = (at + 1) & dimension->mask;
        }
        codes[i] = dimension->slots[at].code;
        list[lost] = i;
        lost += !dimension->slots[at].used;
    }
    return lost;
}

static void block_number(uint32_t *groups, const uint32_t *codes, uint32_t codes_count, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        groups[i] = groups[i] * codes_count + codes[i];
    }
}

static void block_add(floor_group *groups, const uint32_t *numbers, const int64_t *amounts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        groups[numbers[i]].sum += amounts[i];
        groups[numbers[i]].count++;
    }
}

static void block_push(floor_star *floor, const int64_t *const columns[], uint32_t count)
{
    uint32_t slots[FLOOR_DIMENSIONS][BLOCK], codes[BLOCK], list[BLOCK + 1], lost[FLOOR_DIMENSIONS * BLOCK];
    uint32_t groups[BLOCK] = { 0 }, lost_count = 0;
    for (int d = 0; d < FLOOR_DIMENSIONS; d++) {
        block_prefetch(&floor->dimensions[d], columns[d], count, slots[d]);
    }
    for (int d = 0; d < FLOOR_DIMENSIONS; d++) {
        const floor_dimension *dimension = &floor->dimensions[d];
        uint32_t listed = block_compare(dimension, columns[d], count, slots[d], codes, list);
        listed = block_walk(dimension, columns[d], slots[d], codes, list, listed);
        memcpy(lost + lost_count, list, listed * sizeof *lost);
        lost_count += listed;
        block_number(groups, codes, dimension->codes_count, count);
    }
    for (uint32_t k = 0; k < lost_count; k++) {
        groups[lost[k]] = floor->groups_count;
    }
    block_add(floor->groups, groups, columns[FLOOR_DIMENSIONS], count);
    for (int c = 0; c <= FLOOR_DIMENSIONS; c++) {
        memcpy(floor->kept[c] + floor->kept_count, columns[c], count * sizeof(int64_t));
    }
    floor->kept_count += count;
}

void floor_push(floor_star *floor, const star_data *data, size_t first, size_t count)
{
    for (size_t at = 0; at < count; at += BLOCK) {
        const int64_t *columns[FLOOR_DIMENSIONS + 1];
        for (int c = 0; c <= FLOOR_DIMENSIONS; c++) {
            columns[c] = data->fact_columns[c] + first + at;
        }
        block_push(floor, columns, (uint32_t)(count - at < BLOCK ? count - at : BLOCK));
    }
}

/* ---- Bare probes ----------------------------------------------------------------------------------------------------------------- */

probe_row *probe_rows_make(const star_data *data)
{
    probe_row *rows = memory_take(data->shape.fact_rows * sizeof *rows);
    for (size_t i = 0; i < data->shape.fact_rows; i++) {
        for (int d = 0; d < FLOOR_DIMENSIONS; d++) {
            rows[i].keys[d] = data->fact_columns[d][i];
        }
        rows[i].amount = data->fact_columns[FLOOR_DIMENSIONS][i];
        rows[i].weight = 1;
    }
    return rows;
}

static inline uint32_t probe_code(const floor_dimension *dimension, int64_t key)
{
    uint64_t at = mix((uint64_t)key) & dimension->mask;
    for (;;) {
        const floor_slot *slot = &dimension->slots[at];
        if (slot->used && slot->key == key) {
            return slot->code;
        }
        if (!slot->used) {
            return 0;
        }
        at = (at + 1) & dimension->mask;
    }
}

void probe_run(floor_star *floor, const probe_row *rows, size_t count)
{
    const floor_dimension *d = floor->dimensions;
    for (size_t i = 0; i < count; i++) {
        const probe_row *row = &rows[i], *later = &rows[i + AHEAD < count ? i + AHEAD : i];
        for (int k = 0; k < FLOOR_DIMENSIONS; k++) {
            __builtin_prefetch(&d[k].slots[mix((uint64_t)later->keys[k]) & d[k].mask]);
        }
        uint32_t group = 0;
        for (int k = 0; k < FLOOR_DIMENSIONS; k++) {
            group = group * d[k].codes_count + probe_code(&d[k], row->keys[k]);
        }
        floor->groups[group].sum += row->weight * row->amount;
        floor->groups[group].count += row->weight;
    }
}
