/* Comparing what the engine's view holds with the floor's groups; see floor.h. */
#include "floor.h"

typedef struct group_comparison {
    const floor_star *floor;
    uint64_t groups, unequal;
} group_comparison;

static void group_compare(void *context, const int64_t *cells, size_t cells_count)
{
    group_comparison *comparison = context;
    const floor_star *floor = comparison->floor;
    uint32_t number = 0;
    for (size_t d = 0; d + 2 < cells_count; d++) {
        number = number * floor->dimensions[d].codes_count + (uint32_t)cells[d];
    }
    const floor_group *group = &floor->groups[number];
    comparison->groups++;
    comparison->unequal += group->sum != cells[cells_count - 2] || group->count != cells[cells_count - 1];
}

uint64_t floor_unequal(const floor_star *floor, star_engine *star)
{
    group_comparison comparison = { .floor = floor };
    uint64_t filled = 0;
    star_rows(star, group_compare, &comparison);
    for (uint32_t g = 0; g < floor->groups_count; g++) {
        filled += floor->groups[g].count != 0;
    }
    return comparison.unequal + (filled > comparison.groups ? filled - comparison.groups : comparison.groups - filled);
}
