/* See onlooker.h. */
#include "onlooker.h"

#include <criterion/criterion.h>

typedef struct onlooker {
    ivm__operator head;
    onlooker_look *look;
    void *context;
    ivm__zset nothing;
} onlooker;

static ivm_status onlooker_finish(ivm__operator *self, ivm__step *step)
{
    const onlooker *it = (const onlooker *)self;
    return it->look(it->context, step);
}

static void onlooker_commit(ivm__operator *self)
{
    ivm__store_commit(&((onlooker *)self)->nothing.store);
}

static void onlooker_free(ivm__operator *self, ivm__memory *memory)
{
    ivm__zset_deinit(&((onlooker *)self)->nothing);
    ivm__release(memory, self, sizeof(onlooker));
}

static const ivm__operator_class onlooker_class = {
    .name = "onlooker", .finish = onlooker_finish, .commit = onlooker_commit, .free = onlooker_free
};

static ivm__operator *operator_make(ivm_engine *engine, onlooker_look *look, void *context, ivm__store **nothing)
{
    const ivm_type type = IVM_INT64;
    ivm__layout *layout;
    onlooker *made = ivm__allocate_zeroed(&engine->memory, sizeof *made);
    *made = (onlooker){ .head = { .class = &onlooker_class }, .look = look, .context = context };
    cr_assert_eq(ivm__layout_create(&engine->memory, &type, NULL, 1, true, &layout), IVM_OK);
    cr_assert_eq(ivm__zset_init(&made->nothing, &engine->memory, &engine->texts, engine->seed, layout), IVM_OK);
    ivm__layout_release(layout);
    *nothing = &made->nothing.store;
    return &made->head;
}

ivm_view *onlooker_make(ivm_engine *engine, const char *name, ivm_refresh refresh, ivm_table *const *tables, uint32_t tables_count,
                        onlooker_look *look, void *context)
{
    ivm__memory *memory = &engine->memory;
    ivm_view *view = ivm__allocate_zeroed(memory, sizeof *view);
    *view = (ivm_view){ .engine = engine, .refresh = refresh, .program.memory = memory, .tables_count = tables_count };
    view->name = ivm__text_copy(memory, name, strlen(name));
    view->tables = ivm__allocate(memory, tables_count * sizeof(ivm_table *));
    memcpy(view->tables, tables, tables_count * sizeof(ivm_table *));
    view->views = ivm__allocate(memory, 0);
    cr_assert_eq(ivm__program_add(&view->program, operator_make(engine, look, context, &view->program.result)), IVM_OK);
    if (refresh == IVM_DEFERRED) {
        cr_assert_eq(ivm__pendings_make(view), IVM_OK);
    }
    ivm__view_enlist(view);
    return view;
}
