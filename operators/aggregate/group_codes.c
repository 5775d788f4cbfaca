/* Groups by codes: see group_codes.h. Cost: an addition a row and column and one line a row, of an array of at most PLACES_OF_GROUP places a group. */
#include "group_codes.h"

#include "store.h"

#define PLACES_MIN 4096u
#define PLACES_OF_GROUP 16u
#define PLACE_BITS_MAX 30u

void ivm__group_codes_init(ivm__group_codes *it, ivm__memory *memory, uint32_t columns_count)
{
    *it = (ivm__group_codes){ .memory = memory, .columns_count = columns_count };
    ivm__items_init(&it->place, sizeof(uint32_t));
}

static uint32_t *place_of(const ivm__group_codes *it, uint32_t group)
{
    return ivm__items_at(&it->place, group);
}

static void groups_free(ivm__group_codes *it)
{
    ivm__release(it->memory, it->groups, it->places_count * sizeof *it->groups);
    it->groups = NULL;
    it->places_count = 0;
}

void ivm__group_codes_deinit(ivm__group_codes *it)
{
    groups_free(it);
    ivm__items_free(&it->place, it->memory);
}

void ivm__group_codes_forget_all(ivm__group_codes *it)
{
    if (it->groups) {
        memset(it->groups, 0, it->places_count * sizeof *it->groups);
    }
    it->place.known = 0;
}

/* ---- Codes taken on ------------------------------------------------------------------------------------------------------------------ */

static bool all_coded(const ivm__group_codes *it, const ivm__chunk *keys)
{
    bool coded = it->columns_count > 0 && it->columns_count <= IVM__GROUP_CODES_COLUMNS_MAX;
    for (uint32_t c = 0; coded && c < it->columns_count; c++) {
        coded = keys->columns[c].codes && !keys->columns[c].nulls;
    }
    return coded;
}

/* The same codes, and no more of them than there are places for. */
static bool are_these(const ivm__group_codes *it, const ivm__chunk *keys)
{
    bool these = it->groups;
    for (uint32_t c = 0; these && c < it->columns_count; c++) {
        const ivm__codes *codes = keys->columns[c].codes_of;
        these = codes->identity == it->identity[c] && codes->count <= 1u << it->bits[c];
    }
    return these;
}

/* How many bits hold the numbers below `count`. */
static uint32_t bits_for(uint32_t count)
{
    return count > 1 ? 32 - (uint32_t)__builtin_clz(count - 1) : 0;
}

static ivm_status take_on(ivm__group_codes *it, const ivm__chunk *keys, uint32_t places_count)
{
    uint32_t *groups = ivm__allocate_zeroed(it->memory, places_count * sizeof *groups);
    if (!groups) {
        return IVM_OUT_OF_MEMORY;
    }
    groups_free(it);
    ivm__group_codes_forget_all(it);
    it->groups = groups;
    it->places_count = places_count;
    it->others = 0;
    for (uint32_t c = 0; c < it->columns_count; c++) {
        const ivm__codes *codes = keys->columns[c].codes_of;
        it->identity[c] = codes->identity;
        it->bits[c] = (uint8_t)bits_for(codes->count);
    }
    return IVM_OK;
}

/* Making room for places costs a write each: another one than is there must have been worth it. */
ivm_status ivm__group_codes_serve(ivm__group_codes *it, const ivm__chunk *keys, uint32_t groups_count, bool *serve)
{
    *serve = all_coded(it, keys);
    if (!*serve || are_these(it, keys)) {
        return IVM_OK;
    }
    *serve = false;
    it->others += keys->rows_count;
    uint32_t bits = 0;
    for (uint32_t c = 0; c < it->columns_count; c++) {
        bits += bits_for(keys->columns[c].codes_of->count);
    }
    uint64_t places_most = (uint64_t)groups_count * PLACES_OF_GROUP;
    places_most = places_most < PLACES_MIN ? PLACES_MIN : places_most;
    bool worth = !it->groups || it->others >= it->places_count + groups_count;
    if (!worth || bits > PLACE_BITS_MAX || (uint64_t)1 << bits > places_most) {
        return IVM_OK;
    }
    IVM_TRY(take_on(it, keys, 1u << bits));
    *serve = true;
    return IVM_OK;
}

/* ---- Groups remembered ----------------------------------------------------------------------------------------------------------------- */

static void places_add(const uint16_t *restrict codes, uint32_t count, uint32_t shift, uint32_t *restrict places)
{
    for (uint32_t i = 0; i < count; i++) {
        places[i] += (codes[i] - 1u) << shift;
    }
}

uint32_t ivm__group_codes_find(const ivm__group_codes *it, const ivm__chunk *keys, uint32_t *places, uint32_t *groups, uint32_t *missing)
{
    uint32_t count = keys->rows_count, shift = 0, missing_count = 0;
    memset(places, 0, count * sizeof *places);
    for (uint32_t c = 0; c < it->columns_count; c++) {
        places_add(keys->columns[c].codes, count, shift, places);
        shift += it->bits[c];
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t group = it->groups[places[i]];
        groups[i] = group - 1;
        missing[missing_count] = i;
        missing_count += group == 0;
    }
    return missing_count;
}

ivm_status ivm__group_codes_reserve(ivm__group_codes *it, uint64_t groups)
{
    return ivm__items_reserve_cleared(&it->place, it->memory, groups);
}

void ivm__group_codes_remember(ivm__group_codes *it, uint32_t place, uint32_t group)
{
    assert(place < it->places_count && group < it->place.known);
    it->groups[place] = group + 1;
    *place_of(it, group) = place + 1;
}

void ivm__group_codes_forget(ivm__group_codes *it, uint32_t group)
{
    uint32_t *place = group < it->place.known ? place_of(it, group) : NULL;
    if (place && *place != 0) {
        it->groups[*place - 1] = 0;
        *place = 0;
    }
}

uint64_t ivm__group_codes_bytes(const ivm__group_codes *it)
{
    return it->places_count * sizeof *it->groups + ivm__items_bytes(&it->place);
}
