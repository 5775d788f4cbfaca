/* Sorting rows: by radix over the images of one column, then each run of equal images by the next column, and so on; what images cannot tell apart
 * (strings but for null bytes at their end, decimals past 64 bits, the greatest cell from a null) is merged by comparing whole rows. So the order
 * never rests on images, only the cost does. No more of the stack is used than RUNS_DEPTH_MAX frames, whatever the rows are. */
#include "row_sort.h"

#define SIGN_BIT ((uint64_t)1 << 63)
#define IMAGE_OF_NULL UINT64_MAX
#define RADIX_MIN 384u /* fewer are merged by their images */
#define PREFETCH_AHEAD 12u
#define RUNS_DEPTH_MAX 24u /* columns and parts of strings; beyond them rows are compared */

ivm__row_pages ivm__store_row_pages(const ivm__store *store)
{
    assert(store->touched_count == 0 && store->step_end == store->rows_end && !store->laid);
    return (ivm__row_pages){ store->layout,
                             store->pages,
                             store->page_shift,
                             store->page_mask,
                             0,
                             store->rows_end,
                             store->rows_live,
                             store->heavies ? store->heavies->list : NULL,
                             store->heavy_count };
}

int64_t ivm__row_pages_heavy(const ivm__row_pages *rows, ivm__row_id row)
{
    uint32_t low = 0, high = rows->heavy_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (rows->heavy[middle].row < row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    assert(low < rows->heavy_count && rows->heavy[low].row == row);
    return rows->heavy[low].weight;
}

static uint32_t column_at(const ivm__row_sorter *sorter, uint32_t i)
{
    return sorter->columns ? sorter->columns[i] : i;
}

static inline ivm__wide cell_of(const ivm__layout *layout, const uint8_t *at, uint32_t column)
{
    return ivm__type_is_wide(layout->types[column]) ? ivm__row_wide(layout, at, column) : (ivm__wide)ivm__row_word(layout, at, column);
}

static inline const ivm__text *text_of(const ivm__layout *layout, const uint8_t *at, uint32_t column)
{
    return (const ivm__text *)(uintptr_t)ivm__row_word(layout, at, column);
}

static int column_compare(const ivm__layout *layout, const uint8_t *a, const uint8_t *b, uint32_t column)
{
    bool a_null = ivm__row_is_null(layout, a, column), b_null = ivm__row_is_null(layout, b, column);
    if (a_null || b_null) {
        return a_null - b_null;
    }
    return ivm__cell_compare(layout->types[column], cell_of(layout, a, column), cell_of(layout, b, column));
}

int ivm__row_sorter_compare(const ivm__row_sorter *sorter, const uint8_t *a, const uint8_t *b, uint32_t from)
{
    for (uint32_t i = from; i < sorter->columns_count; i++) {
        int order = column_compare(sorter->rows.layout, a, b, column_at(sorter, i));
        if (order) {
            return order;
        }
    }
    return 0;
}

/* ---- Images ----------------------------------------------------------------------------------------------------------------------------- */

/* Eight bytes of a text, the first of them highest; those past its end are 0. */
static uint64_t text_image(const ivm__text *text, uint32_t first)
{
    uint64_t word = 0;
    uint32_t size = text->size > first ? text->size - first : 0;
    memcpy(&word, text->bytes + (size ? first : 0), size < 8 ? size : 8);
    return __builtin_bswap64(word);
}

static uint64_t wide_image(ivm__wide cell)
{
    return cell > INT64_MAX ? UINT64_MAX : cell < INT64_MIN ? 0 : (uint64_t)cell ^ SIGN_BIT;
}

static inline uint64_t image_of(const ivm__layout *layout, const uint8_t *at, uint32_t column, uint32_t byte)
{
    if (ivm__row_is_null(layout, at, column)) {
        return IMAGE_OF_NULL;
    }
    uint64_t word = ivm__row_word(layout, at, column);
    switch (IVM_TYPE_KIND(layout->types[column])) {
    case IVM_STRING:
        return text_image((const ivm__text *)(uintptr_t)word, byte);
    case IVM_DECIMAL_KIND:
        return wide_image(ivm__row_wide(layout, at, column));
    case IVM_FLOAT64: /* negative ones run backwards; the one NaN is above all */
        return word & SIGN_BIT ? ~word : word | SIGN_BIT;
    default:
        return word ^ SIGN_BIT;
    }
}

/* Whether rows of this image of a column all have one cell there, or all none. */
static bool image_tells(ivm_type type, uint64_t image)
{
    uint32_t kind = IVM_TYPE_KIND(type);
    return kind != IVM_STRING && image != IMAGE_OF_NULL && (kind != IVM_DECIMAL_KIND || image != 0);
}

uint64_t ivm__row_sorter_image(const ivm__row_sorter *sorter, const uint8_t *at)
{
    return sorter->columns_count ? image_of(sorter->rows.layout, at, column_at(sorter, 0), 0) : 0;
}

/* ---- Merging ---------------------------------------------------------------------------------------------------------------------------- */

/* Whether b belongs before a. */
typedef bool before(const ivm__row_sorter *sorter, const ivm__row_entry *b, const ivm__row_entry *a, uint32_t from);

static inline bool before_by_image(const ivm__row_sorter *sorter, const ivm__row_entry *b, const ivm__row_entry *a, uint32_t from)
{
    (void)sorter, (void)from;
    return b->image < a->image;
}

static inline bool before_by_row(const ivm__row_sorter *sorter, const ivm__row_entry *b, const ivm__row_entry *a, uint32_t from)
{
    return ivm__row_sorter_compare(sorter, ivm__row_pages_at(&sorter->rows, b->row), ivm__row_pages_at(&sorter->rows, a->row), from) < 0;
}

#define INSERTED 8u

__attribute__((always_inline)) static inline void runs_insert(ivm__row_sorter *sorter, ivm__row_entry *entries, uint32_t count,
                                                              uint32_t from, before *is_before)
{
    for (uint32_t i = 1; i < count && !ivm__row_sorter_ends(sorter, i); i++) {
        ivm__row_entry entry = entries[i];
        uint32_t at = i;
        for (; at % INSERTED && is_before(sorter, &entry, &entries[at - 1], from); at--) {
            entries[at] = entries[at - 1];
        }
        entries[at] = entry;
    }
}

/* entries[0..middle) and [middle..count), each in order, become one in `to`. */
__attribute__((always_inline)) static inline void runs_merge(ivm__row_sorter *sorter, const ivm__row_entry *entries, uint32_t middle,
                                                             uint32_t count, ivm__row_entry *to, uint32_t from, before *is_before)
{
    uint32_t a = 0, b = middle;
    for (uint32_t i = 0; i < count && !ivm__row_sorter_ends(sorter, i); i++) {
        bool second = b < count && (a == middle || is_before(sorter, &entries[b], &entries[a], from));
        to[i] = entries[second ? b : a];
        a += !second;
        b += second;
    }
}

__attribute__((always_inline)) static inline void entries_merge(ivm__row_sorter *sorter, ivm__row_entry *entries, uint32_t count,
                                                                uint32_t from, before *is_before)
{
    ivm__row_entry *in = entries, *out = sorter->other;
    runs_insert(sorter, entries, count, from, is_before);
    for (uint64_t run = INSERTED; run < count; run *= 2) {
        for (uint64_t first = 0; first < count; first += 2 * run) {
            uint64_t size = count - first < 2 * run ? count - first : 2 * run;
            runs_merge(sorter, in + first, (uint32_t)(size < run ? size : run), (uint32_t)size, out + first, from, is_before);
        }
        ivm__row_entry *filled = out;
        out = in;
        in = filled;
    }
    if (in != entries) {
        memcpy(entries, in, count * sizeof *entries);
    }
}

static void sort_by_image(ivm__row_sorter *sorter, ivm__row_entry *entries, uint32_t count)
{
    entries_merge(sorter, entries, count, 0, before_by_image);
}

/* By whole rows, the last resort: then no column is left, and equal rows are known. */
static void sort_by_row(ivm__row_sorter *sorter, ivm__row_entry *entries, uint32_t count, uint32_t from)
{
    entries_merge(sorter, entries, count, from, before_by_row);
    for (uint32_t i = 1; i < count && !ivm__row_sorter_ends(sorter, i); i++) {
        entries[i].equal = !before_by_row(sorter, &entries[i - 1], &entries[i], from);
    }
}

/* ---- Radix ------------------------------------------------------------------------------------------------------------------------------ */

/* Counts each byte of the images; false: they ascend as they are. */
static bool bytes_count(ivm__row_sorter *sorter, const ivm__row_entry *entries, uint32_t count)
{
    bool ascend = true;
    memset(sorter->counts, 0, sizeof sorter->counts);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t image = entries[i].image;
        ascend &= i == 0 || entries[i - 1].image <= image;
        for (uint32_t byte = 0; byte < 8; byte++) {
            sorter->counts[byte][image >> 8 * byte & 0xff]++;
        }
    }
    return !ascend;
}

static void byte_scatter(const ivm__row_entry *in, uint32_t count, uint32_t byte, uint32_t *starts, ivm__row_entry *out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[starts[in[i].image >> 8 * byte & 0xff]++] = in[i];
    }
}

/* From the lowest byte on, those that all images share left out. */
static void sort_by_radix(ivm__row_sorter *sorter, ivm__row_entry *entries, uint32_t count)
{
    ivm__row_entry *in = entries, *out = sorter->other;
    if (!bytes_count(sorter, entries, count)) {
        return;
    }
    for (uint32_t byte = 0; byte < 8 && !ivm__row_sorter_ends(sorter, 0); byte++) {
        uint32_t *starts = sorter->counts[byte], start = 0;
        if (starts[in[0].image >> 8 * byte & 0xff] == count) {
            continue;
        }
        for (uint32_t value = 0; value < 256; value++) {
            uint32_t here = starts[value];
            starts[value] = start;
            start += here;
        }
        byte_scatter(in, count, byte, starts, out);
        ivm__row_entry *filled = out;
        out = in;
        in = filled;
    }
    if (in != entries) {
        memcpy(entries, in, count * sizeof *entries);
    }
}

/* ---- Columns ---------------------------------------------------------------------------------------------------------------------------- */

static void images_fill(ivm__row_sorter *sorter, ivm__row_entry *entries, uint32_t count, uint32_t column, uint32_t byte)
{
    for (uint32_t i = 0; i < count && !ivm__row_sorter_ends(sorter, i); i++) {
        if (i + PREFETCH_AHEAD < count) {
            __builtin_prefetch(ivm__row_pages_at(&sorter->rows, entries[i + PREFETCH_AHEAD].row));
        }
        entries[i].image = image_of(sorter->rows.layout, ivm__row_pages_at(&sorter->rows, entries[i].row), column, byte);
    }
}

/* Whether all rows have what the first has in the column; equal texts are one. */
static bool column_is_one(ivm__row_sorter *sorter, const ivm__row_entry *entries, uint32_t count, uint32_t column)
{
    const ivm__layout *layout = sorter->rows.layout;
    const uint8_t *first = ivm__row_pages_at(&sorter->rows, entries[0].row);
    bool null = ivm__row_is_null(layout, first, column);
    ivm__wide cell = cell_of(layout, first, column);
    for (uint32_t i = 1; i < count && !ivm__row_sorter_ends(sorter, i); i++) {
        const uint8_t *at = ivm__row_pages_at(&sorter->rows, entries[i].row);
        if (ivm__row_is_null(layout, at, column) != null || cell_of(layout, at, column) != cell) {
            return false;
        }
    }
    return true;
}

/* How many bytes the texts of all rows begin with, of which `known` are so at least but where one is shorter. */
static uint32_t beginning_of(ivm__row_sorter *sorter, const ivm__row_entry *entries, uint32_t count, uint32_t column, uint32_t known)
{
    const ivm__layout *layout = sorter->rows.layout;
    const ivm__text *first = text_of(layout, ivm__row_pages_at(&sorter->rows, entries[0].row), column);
    uint32_t shared = first->size;
    for (uint32_t i = 1; i < count && shared > known && !ivm__row_sorter_ends(sorter, i); i++) {
        const ivm__text *text = text_of(layout, ivm__row_pages_at(&sorter->rows, entries[i].row), column);
        uint32_t at = known, end = text->size < shared ? text->size : shared;
        for (; at + 8 <= end && memcmp(text->bytes + at, first->bytes + at, 8) == 0; at += 8) {
        }
        for (; at < end && text->bytes[at] == first->bytes[at]; at++) {
        }
        shared = at < end ? at : end;
    }
    return shared;
}

/* What images were filled from: the i-th column of the order, of a string from a byte on. */
typedef struct place {
    uint32_t i, byte, depth;
} place;

static void entries_sort(ivm__row_sorter *sorter, ivm__row_entry *entries, uint32_t count, place at);

/* Of the rows of one image here, what comes next: the next column, or a string's bytes after those that it begins with in all of them. False:
 * nothing that images tell. */
static bool place_next(ivm__row_sorter *sorter, const ivm__row_entry *entries, uint32_t count, place *at)
{
    uint32_t column = column_at(sorter, at->i);
    ivm_type type = sorter->rows.layout->types[column];
    at->depth++;
    if (image_tells(type, entries[0].image) || column_is_one(sorter, entries, count, column)) {
        at->i++;
        at->byte = 0;
        return at->depth < RUNS_DEPTH_MAX;
    }
    if (IVM_TYPE_KIND(type) != IVM_STRING || entries[0].image == IMAGE_OF_NULL) {
        return false;
    }
    uint32_t known = at->byte;
    at->byte = beginning_of(sorter, entries, count, column, known);
    return at->byte >= known + 8 && at->depth < RUNS_DEPTH_MAX;
}

static void run_sort(ivm__row_sorter *sorter, ivm__row_entry *entries, uint32_t count, place at)
{
    bool images = place_next(sorter, entries, count, &at);
    if (at.i == sorter->columns_count) {
        for (uint32_t i = 1; i < count; i++) {
            entries[i].equal = true;
        }
    } else if (images) {
        images_fill(sorter, entries, count, column_at(sorter, at.i), at.byte);
        entries_sort(sorter, entries, count, at);
    } else {
        sort_by_row(sorter, entries, count, at.i);
    }
}

static void entries_sort(ivm__row_sorter *sorter, ivm__row_entry *entries, uint32_t count, place at)
{
    if (count < RADIX_MIN) {
        sort_by_image(sorter, entries, count);
    } else {
        sort_by_radix(sorter, entries, count);
    }
    for (uint32_t first = 0, end; first < count && !ivm__row_sorter_ends(sorter, 0); first = end) {
        for (end = first + 1; end < count && entries[end].image == entries[first].image; end++) {
        }
        if (end + PREFETCH_AHEAD + 1 < count && entries[end + PREFETCH_AHEAD].image == entries[end + PREFETCH_AHEAD + 1].image) {
            __builtin_prefetch(ivm__row_pages_at(&sorter->rows, entries[end + PREFETCH_AHEAD].row));
            __builtin_prefetch(ivm__row_pages_at(&sorter->rows, entries[end + PREFETCH_AHEAD + 1].row));
        }
        if (end - first > 1) {
            run_sort(sorter, entries + first, end - first, at);
        }
    }
}

ivm_status ivm__row_sorter_sort(ivm__row_sorter *sorter, ivm__row_entry *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        entries[i].equal = i > 0 && !sorter->columns_count;
    }
    if (sorter->columns_count) {
        entries_sort(sorter, entries, count, (place){ 0, 0, 0 });
    }
    return sorter->cancelled ? IVM_CANCELLED : IVM_OK;
}
