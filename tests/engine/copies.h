/* Views by hand, without a plan: each holds what its sources hold together, of some of their columns. Their operator distrusts what it is given:
 * in every step it compares each source as it was and as it is, read from the rows, through a scan and through an index, with what the
 * deltas so far have come to. */
#ifndef TEST_COPIES_H
#define TEST_COPIES_H

#include "pending.h"

#define COPIES_SOURCES_MAX 3u

typedef struct copies_seen {
    uint64_t runs, undos, commits; /* of the operator */
    bool refreshing;               /* of the last run */
    uint64_t since;
    uint64_t delta_rows[COPIES_SOURCES_MAX];
    ivm_shape shape[COPIES_SOURCES_MAX];
    const char *wrong; /* NULL, or what has ever been */
} copies_seen;

/* Makes a view of these sources, tables before views, and fills it. `columns`: those of each source that it reads, of equal types. */
ivm_status copies_create(ivm_engine *engine, const char *name, ivm_refresh refresh, const ivm__source *sources, uint32_t sources_count,
                         const uint32_t *columns, uint32_t columns_count, ivm_view **view);
void copies_drop(ivm_view *view);
/* Makes the view's program fail once it has done its work. */
void copies_fail(ivm_view *view, bool fails);
copies_seen *copies_of(const ivm_view *view);
/* Whether the view's rows are those that its sources have together now. */
bool copies_is_current(ivm_view *view);
/* Whether no table, view or pending delta is in a step, and every index is whole: NULL or what is wrong. */
const char *copies_at_rest(const ivm_engine *engine);

#endif
