/* What is in the catalog: lists of tables, views and facts in the order of their making, and all names in chains by their hash. The lists are linked
 * both ways and the first one's previous is the last, so that whoever has a head has both ends. Cost of each call: none that grows with the
 * catalog; names are spread anew whenever their count has doubled. */
#include "catalog.h"
#include "hash.h"

#define LIST_ADD(head, item, next, previous)                                                                                               \
    do {                                                                                                                                   \
        if (head) {                                                                                                                        \
            (item)->previous = (head)->previous;                                                                                           \
            (head)->previous->next = (item);                                                                                               \
        } else {                                                                                                                           \
            (head) = (item);                                                                                                               \
        }                                                                                                                                  \
        (item)->next = NULL;                                                                                                               \
        (head)->previous = (item);                                                                                                         \
    } while (0)

#define LIST_REMOVE(head, item, next, previous)                                                                                            \
    do {                                                                                                                                   \
        if ((head) == (item)) {                                                                                                            \
            (head) = (item)->next;                                                                                                         \
        } else {                                                                                                                           \
            (item)->previous->next = (item)->next;                                                                                         \
        }                                                                                                                                  \
        if ((item)->next) {                                                                                                                \
            (item)->next->previous = (item)->previous;                                                                                     \
        } else if (head) {                                                                                                                 \
            (head)->previous = (item)->previous;                                                                                           \
        }                                                                                                                                  \
        (item)->next = (item)->previous = NULL;                                                                                            \
    } while (0)

/* Numbers a list unless that is known, and says so by its first item. */
#define LIST_NUMBER(head, known)                                                                                                           \
    do {                                                                                                                                   \
        uint32_t nth = 0;                                                                                                                  \
        for (__typeof__(head) at = (known) ? NULL : (head); at; at = at->next) {                                                           \
            at->ordinal = nth++;                                                                                                           \
        }                                                                                                                                  \
        (known) = (known) ? (known) : (head);                                                                                              \
    } while (0)

/* Goes from the item that is known, or from the first where that is nearer, to the one with the ordinal. */
#define LIST_FIND(head, known, wanted, found)                                                                                              \
    do {                                                                                                                                   \
        LIST_NUMBER(head, known);                                                                                                          \
        (found) = (known) && (wanted) < (known)->ordinal / 2 ? (head) : (known);                                                           \
        while ((found) && (found)->ordinal > (wanted)) {                                                                                   \
            (found) = (found)->previous;                                                                                                   \
        }                                                                                                                                  \
        while ((found) && (found)->ordinal < (wanted)) {                                                                                   \
            (found) = (found)->next;                                                                                                       \
        }                                                                                                                                  \
        (known) = (found) ? (found) : (known);                                                                                             \
    } while (0)

/* ---- Names -------------------------------------------------------------------------------------------------------------------------- */

static uint32_t slots_count(const ivm__name_slots *names)
{
    return names->many ? names->many_count : IVM__NAMES_FEW;
}

static ivm__named *const *slot_at(const ivm__name_slots *names, uint64_t hash)
{
    return &(names->many ? names->many : names->few)[hash & (slots_count(names) - 1)];
}

static void name_add(ivm__name_slots *names, ivm__named *named)
{
    ivm__named **slot = &(names->many ? names->many : names->few)[named->hash & (slots_count(names) - 1)];
    named->next = *slot;
    *slot = named;
    names->count++;
}

static void name_remove(ivm_engine *engine, ivm__named *named)
{
    ivm__name_slots *names = &engine->names;
    ivm__named **at = &(names->many ? names->many : names->few)[named->hash & (slots_count(names) - 1)];
    while (*at != named) {
        at = &(*at)->next;
    }
    *at = named->next;
    if (--names->count == 0) {
        ivm__name_slots_deinit(names, &engine->memory);
    }
}

void ivm__name_slots_deinit(ivm__name_slots *names, ivm__memory *memory)
{
    ivm__release(memory, names->many, names->many_count * sizeof(ivm__named *));
    *names = (ivm__name_slots){ 0 };
}

ivm_status ivm__name_slots_reserve(ivm_engine *engine)
{
    ivm__name_slots *names = &engine->names, grown = { .many_count = 2 * slots_count(names) };
    if (names->count < slots_count(names)) {
        return IVM_OK;
    }
    grown.many = ivm__allocate_zeroed(&engine->memory, grown.many_count * sizeof(ivm__named *));
    if (!grown.many) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < slots_count(names); i++) {
        for (ivm__named *named = *slot_at(names, i), *next; named; named = next) {
            next = named->next;
            name_add(&grown, named);
        }
    }
    assert(grown.count == names->count);
    ivm__name_slots_deinit(names, &engine->memory);
    *names = grown;
    return IVM_OK;
}

static const ivm__named *name_find(const ivm_engine *engine, const char *name, size_t size, bool of_view)
{
    uint64_t hash = ivm__hash_bytes(name, size, engine->seed);
    const ivm__named *at = *slot_at(&engine->names, hash);
    for (; at; at = at->next) {
        const char *other = at->view ? at->view->name : at->table->name;
        if (at->hash == hash && (at->view != NULL) == of_view && strlen(other) == size && memcmp(other, name, size) == 0) {
            break;
        }
    }
    return at;
}

ivm_table *ivm__table_named(const ivm_engine *engine, const char *name, size_t size)
{
    const ivm__named *found = name_find(engine, name, size, false);
    return found ? found->table : NULL;
}

ivm_view *ivm__view_named(const ivm_engine *engine, const char *name, size_t size)
{
    const ivm__named *found = name_find(engine, name, size, true);
    return found ? found->view : NULL;
}

/* ---- Lists -------------------------------------------------------------------------------------------------------------------------- */

void ivm__table_enlist(ivm_table *table)
{
    ivm_engine *engine = table->engine;
    LIST_ADD(engine->tables, table, next, previous);
    table->ordinal = table->previous == table ? 0 : table->previous->ordinal + 1; /* right where the others' are */
    table->named = (ivm__named){ .hash = ivm__hash_bytes(table->name, strlen(table->name), engine->seed), .table = table };
    name_add(&engine->names, &table->named);
}

void ivm__table_delist(ivm_table *table)
{
    name_remove(table->engine, &table->named);
    table->engine->ordinals.table = NULL;
    LIST_REMOVE(table->engine->tables, table, next, previous);
}

void ivm__view_enlist(ivm_view *view)
{
    ivm_engine *engine = view->engine;
    LIST_ADD(engine->views, view, next, previous);
    view->ordinal = view->previous == view ? 0 : view->previous->ordinal + 1; /* right where the others' are */
    view->named = (ivm__named){ .hash = ivm__hash_bytes(view->name, strlen(view->name), engine->seed), .view = view };
    name_add(&engine->names, &view->named);
}

void ivm__view_delist(ivm_view *view)
{
    name_remove(view->engine, &view->named);
    view->engine->ordinals.view = NULL;
    LIST_REMOVE(view->engine->views, view, next, previous);
}

void ivm__fact_enlist(ivm_fact *fact)
{
    LIST_ADD(fact->engine->facts, fact, next, previous);
    fact->ordinal = fact->previous == fact ? 0 : fact->previous->ordinal + 1; /* right where the others' are */
    LIST_ADD(fact->child->facts, fact, next_of_child, previous_of_child);
    LIST_ADD(fact->parent->facts_to, fact, next_of_parent, previous_of_parent);
}

void ivm__fact_delist(ivm_fact *fact)
{
    fact->engine->ordinals.fact = NULL;
    LIST_REMOVE(fact->engine->facts, fact, next, previous);
    LIST_REMOVE(fact->child->facts, fact, next_of_child, previous_of_child);
    LIST_REMOVE(fact->parent->facts_to, fact, next_of_parent, previous_of_parent);
}

/* ---- Positions ---------------------------------------------------------------------------------------------------------------------- */

uint32_t ivm__table_ordinal(const ivm_table *table)
{
    LIST_NUMBER(table->engine->tables, table->engine->ordinals.table);
    return table->ordinal;
}

uint32_t ivm__fact_ordinal(const ivm_fact *fact)
{
    LIST_NUMBER(fact->engine->facts, fact->engine->ordinals.fact);
    return fact->ordinal;
}

uint32_t ivm__view_ordinal(const ivm_view *view)
{
    LIST_NUMBER(view->engine->views, view->engine->ordinals.view);
    return view->ordinal;
}

ivm_table *ivm__table_at(ivm_engine *engine, uint32_t ordinal)
{
    ivm_table *table;
    LIST_FIND(engine->tables, engine->ordinals.table, ordinal, table);
    return table;
}

ivm_fact *ivm__fact_at(ivm_engine *engine, uint32_t ordinal)
{
    ivm_fact *fact;
    LIST_FIND(engine->facts, engine->ordinals.fact, ordinal, fact);
    return fact;
}

ivm_view *ivm__view_at(ivm_engine *engine, uint32_t ordinal)
{
    ivm_view *view;
    LIST_FIND(engine->views, engine->ordinals.view, ordinal, view);
    return view;
}
