/* Pruning by row, and by batch, of random views over random tables, foreign keys and batches: after every push each view is what its plan gives when
 * computed anew. */
#include "web.h"

#include <criterion/criterion.h>

#define PUSHES 25u

static void event(web *it)
{
    uint32_t kind = web_below(it, 12);
    web_view *view = &it->views[web_below(it, WEB_VIEWS_MAX)];
    if (kind >= 10) {
        web_fact_turn(it);
    } else if (kind == 1) {
        web_column_turn(it);
    } else if (kind == 2 && view->view) {
        web_view_drop(it, view);
    }
    if (kind < 4 && !view->view) {
        web_view_make(it, view);
    }
}

/* How many pushes changed a view. */
static uint32_t history(uint64_t seed)
{
    static web it;
    web_open(&it, seed);
    for (uint32_t v = 0; v < WEB_VIEWS_MAX; v++) {
        if (web_below(&it, 3)) {
            web_view_make(&it, &it.views[v]);
        }
    }
    for (uint32_t n = 0; n < PUSHES; n++) {
        event(&it);
        web_push(&it);
        web_check(&it);
    }
    web_close(&it);
    return it.joined;
}

Test(view_prune, random_webs_are_what_they_are_when_computed_anew)
{
    uint32_t joined = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        joined += history(seed);
    }
    cr_assert_gt(joined, 5000u, "%u changes", joined);
}
