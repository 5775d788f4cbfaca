/* Views, the part that needs no plan: giving back what one holds. Made in plan/compile/view.c. */
#include "pending.h"
#include "publish.h"
#include "transient.h"

void ivm__view_free(ivm_view *view)
{
    ivm__memory *memory = &view->engine->memory;
    assert(!view->ran && !view->telling && !view->kept);
    ivm__state_free(view->engine, view->published);
    ivm__pendings_free(view);
    ivm__hops_free(view);
    ivm__program_deinit(&view->program);
    if (view->planned) {
        view->planned_free(view->planned, memory);
    }
    for (uint32_t i = 0; view->columns && i < view->columns_count; i++) {
        if (view->columns[i].name) {
            ivm__release(memory, view->columns[i].name, strlen(view->columns[i].name) + 1);
        }
    }
    ivm__release(memory, view->columns, view->columns_count * sizeof *view->columns);
    ivm__release(memory, view->types, view->columns_count * sizeof *view->types);
    for (uint32_t i = 0; view->used && i < view->tables_count; i++) {
        ivm__release(memory, view->used[i].columns, view->used[i].columns_capacity * sizeof(bool));
    }
    ivm__release(memory, view->used, view->tables_count * sizeof *view->used);
    ivm__release(memory, view->views, view->views_count * sizeof(ivm_view *));
    ivm__release(memory, view->plan, view->plan_size);
    ivm__release(memory, view->tables, view->tables_count * sizeof(ivm_table *));
    if (view->name) {
        ivm__release(memory, view->name, strlen(view->name) + 1);
    }
    ivm__release(memory, view, sizeof *view);
}
