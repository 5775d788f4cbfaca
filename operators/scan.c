/* Scan: where a table's or a view's delta enters a program.
 *
 *     delta(scan T) = delta(T)
 *
 * Its chunks are passed on as staging made them, often the user's own arrays; columns that nobody reads, or that came since the scan was made, are
 * left out. Cost: a call a chunk; where a view is filled, or rows from before the step are loaded into a join's leaf, reading the store
 * once. */
#include "operators.h"
#include "source.h"

typedef struct scan {
    ivm__operator head;
    ivm__source source;
    bool *carried;           /* by column; NULL: all */
    const ivm__aside *aside; /* of the step under way; NULL: none */
} scan;

/* The chunk with the carried columns alone, in *narrow where some are not. */
static ivm_status narrow_to(const scan *it, ivm__step *step, const ivm__chunk *chunk, ivm__chunk *narrow, const ivm__chunk **out)
{
    *out = chunk;
    if (!it->carried) {
        return IVM_OK;
    }
    *narrow = *chunk;
    narrow->columns = ivm__arena_allocate(step->scratch, chunk->columns_count * sizeof *narrow->columns);
    if (!narrow->columns) {
        return ivm__fail_memory(step->error);
    }
    for (uint32_t c = 0; c < chunk->columns_count; c++) {
        narrow->columns[c] = it->carried[c] ? chunk->columns[c] : (ivm__vector){ .type = chunk->columns[c].type };
    }
    *out = narrow;
    return IVM_OK;
}

static ivm_status emit_carried(scan *it, ivm__step *step, const ivm__chunk *chunk)
{
    ivm__chunk narrow;
    const ivm__chunk *out;
    IVM_TRY(narrow_to(it, step, chunk, &narrow, &out));
    return ivm__emit(&it->head, step, out);
}

/* The delta's rows that are set aside, or those that are not. */
static ivm_status emit_part(scan *it, ivm__step *step, bool aside)
{
    for (ivm__delta_walk walk = { 0 };;) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm__chunk *chunk;
        IVM_TRY(ivm__source_aside_next(step, it->source, it->aside, aside, &walk, &chunk));
        if (!chunk) {
            return IVM_OK;
        }
        IVM_TRY(emit_carried(it, step, chunk));
        ivm__arena_back(step->scratch, mark);
    }
}

static ivm_status emit_parts(scan *it, ivm__step *step)
{
    IVM_TRY(emit_part(it, step, false));
    step->aside = true;
    ivm_status status = emit_part(it, step, true);
    step->aside = false;
    return status;
}

static ivm_status scan_finish(ivm__operator *self, ivm__step *step)
{
    scan *it = (scan *)self;
    if (it->aside) {
        return emit_parts(it, step);
    }
    for (ivm__delta_walk walk = { 0 };;) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm__chunk *chunk;
        IVM_TRY(ivm__source_delta_next(step, it->source, &walk, &chunk));
        if (!chunk) {
            return IVM_OK;
        }
        IVM_TRY(emit_carried(it, step, chunk));
        ivm__arena_back(step->scratch, mark);
    }
}

void ivm__scan_aside(ivm__operator *self, const ivm__aside *aside)
{
    scan *it = (scan *)self;
    assert(!aside || it->source.table);
    it->aside = aside;
}

ivm_status ivm__scan_load(ivm__operator *self, ivm__step *step)
{
    scan *it = (scan *)self;
    assert(step->loading && !step->initial);
    uint32_t next = 0;
    for (;;) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm__chunk *chunk;
        IVM_TRY(ivm__store_chunk(ivm__source_store(it->source), step->scratch, IVM__READ_OLD, &next, &chunk));
        if (!chunk) {
            return IVM_OK;
        }
        chunk = ivm__source_chunk(it->source, step->scratch, chunk);
        if (!chunk) {
            return IVM_OUT_OF_MEMORY;
        }
        IVM_TRY(emit_carried(it, step, chunk));
        ivm__arena_back(step->scratch, mark);
    }
}

static void scan_free(ivm__operator *self, ivm__memory *memory)
{
    ivm__release(memory, ((scan *)self)->carried, self->columns_count * sizeof(bool));
    ivm__release(memory, self, sizeof(scan));
}

static const ivm__operator_class scan_class = { .name = "scan", .finish = scan_finish, .free = scan_free };

ivm__source ivm__scan_source(const ivm__operator *self)
{
    assert(self->class == &scan_class);
    return ((const scan *)self)->source;
}

ivm_status ivm__scan_carry(ivm__operator *self, ivm__memory *memory, const bool *columns)
{
    scan *it = (scan *)self;
    assert(self->class == &scan_class && !it->carried);
    if (!memchr(columns, false, self->columns_count)) {
        return IVM_OK;
    }
    it->carried = ivm__allocate(memory, self->columns_count * sizeof *it->carried);
    if (!it->carried) {
        return IVM_OUT_OF_MEMORY;
    }
    memcpy(it->carried, columns, self->columns_count * sizeof *it->carried);
    return IVM_OK;
}

static ivm_status create(ivm__memory *memory, ivm__source source, uint32_t columns_count, const ivm_type *types, ivm__operator **made)
{
    scan *it = ivm__allocate_zeroed(memory, sizeof *it);
    if (!it) {
        return IVM_OUT_OF_MEMORY;
    }
    it->head = (ivm__operator){ .class = &scan_class, .columns_count = columns_count, .types = types };
    it->source = source;
    *made = &it->head;
    return IVM_OK;
}

ivm_status ivm__scan_create(ivm__memory *memory, ivm_table *table, const ivm__heading *heading, ivm__operator **made)
{
    return create(memory, (ivm__source){ .table = table, .heading = heading }, heading->columns_count, heading->types, made);
}

ivm_status ivm__scan_view_create(ivm__memory *memory, ivm_view *view, ivm__operator **made)
{
    return create(memory, (ivm__source){ .view = view }, view->columns_count, view->types, made);
}
