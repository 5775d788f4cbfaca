/* Probing for what is not there: the children that have no parent. Rows stand in an index until the step that takes them out has ended, so that a key
 * without one has none before the step nor after. A cover that is there anyway tells so in one line of memory. */
#include "cover.h"

/* Of the keys that have rows, marks which. True where all have: then nothing was marked. */
static bool present_find(const ivm__index *index, const ivm__keys *keys, uint8_t *present)
{
    uint32_t positions[IVM__CHUNK_ROWS], found;
    ivm__row_id rows[IVM__CHUNK_ROWS];
    ivm__probe probe = { 0 };
    memset(present, 0, keys->rows_count);
    while ((found = ivm__index_probe(index, keys, &probe, IVM__CHUNK_ROWS, positions, rows)) > 0) {
        if (found == keys->rows_count && index->doubles == 0) {
            return true;
        }
        for (uint32_t i = 0; i < found; i++) {
            present[positions[i]] = 1;
        }
    }
    return false;
}

uint32_t ivm__index_absent(const ivm__index *index, const ivm__keys *keys, uint32_t *absent)
{
    uint8_t present[IVM__CHUNK_ROWS];
    uint32_t count = 0;
    assert(index->unique && keys->rows_count <= IVM__CHUNK_ROWS);
    const ivm__cover *cover = index->used > 0 ? ivm__index_cover_any(index) : NULL;
    if (cover) {
        return ivm__cover_absent(cover, keys, absent);
    }
    if (present_find(index, keys, present)) {
        return 0;
    }
    for (uint32_t i = 0; i < keys->rows_count; i++) {
        absent[count] = i;
        count += !present[i] & !(keys->skip && keys->skip[i]);
    }
    return count;
}
