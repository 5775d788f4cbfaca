/* Loading programs: before anything is loaded each operator names the holdings it would save, and by what these are like those of the stream are
 * read. */
#include "loader.h"

#include "saver_stream.h"

typedef struct ivm__holding {
    uint32_t place, number;    /* of the operator in its program, and its own */
    const ivm__layout *layout; /* of its rows; NULL: it is bytes */
    uint32_t columns_count;
    bool payload;
} ivm__holding;

/* ---- Listing ---------------------------------------------------------------------------------------------------------------------------- */

static ivm_status holding_list(ivm__program_loader *loader, ivm__holding holding)
{
    const ivm__holding *last = loader->holdings_count ? &loader->holdings[loader->holdings_count - 1] : NULL;
    holding.place = loader->place;
    holding.number = last && last->place == holding.place ? last->number + 1 : 0;
    IVM_TRY(ivm__grow(loader->memory, (void **)&loader->holdings, &loader->holdings_capacity, loader->holdings_count + 1ull,
                      sizeof *loader->holdings));
    loader->holdings[loader->holdings_count++] = holding;
    return IVM_OK;
}

static ivm_status list_rows(ivm__saver *self, const ivm__store *store, uint32_t columns_count, ivm__row_save *save, const void *context)
{
    (void)context;
    assert(columns_count <= store->layout->columns_count && store->rows_live == 0);
    return holding_list((ivm__program_loader *)self,
                        (ivm__holding){ .layout = store->layout, .columns_count = columns_count, .payload = save != NULL });
}

static ivm_status list_bytes(ivm__saver *self, ivm__sink **sink)
{
    *sink = &((ivm__program_loader *)self)->nowhere;
    return holding_list((ivm__program_loader *)self, (ivm__holding){ .payload = true });
}

static ivm_status write_nothing(ivm__sink *self, const void *bytes, size_t size)
{
    (void)self, (void)bytes, (void)size;
    return IVM_OK;
}

ivm_status ivm__program_loader_init(ivm__program_loader *loader, ivm__memory *memory, const ivm__program *program)
{
    *loader = (ivm__program_loader){ { list_rows, list_bytes }, { write_nothing }, program, memory, NULL, 0, 0, 0 };
    for (; loader->place < program->operators_count; loader->place++) {
        const ivm__operator *one = program->operators[loader->place];
        if (one->class->save) {
            IVM_TRY(one->class->save(one, &loader->saver));
        }
    }
    return IVM_OK;
}

void ivm__program_loader_deinit(ivm__program_loader *loader)
{
    if (loader->memory) {
        ivm__release(loader->memory, loader->holdings, loader->holdings_capacity * sizeof *loader->holdings);
    }
    *loader = (ivm__program_loader){ 0 };
}

/* ---- Loading ---------------------------------------------------------------------------------------------------------------------------- */

/* A holding on its way in. */
typedef struct intake {
    ivm__operator *to;
    ivm__step *step;
    uint32_t number;
} intake;

static ivm_status chunk_take(void *context, const ivm__chunk *chunk, ivm__feed *from)
{
    const intake *in = context;
    return in->to->class->load(in->to, in->step, in->number, chunk, from);
}

static ivm_status holding_load(intake *in, const ivm__holding *what, ivm__feed *feed)
{
    if (!what->layout) {
        return chunk_take(in, NULL, feed);
    }
    ivm__row_shape shape = ivm__holding_shape(what->layout, what->columns_count);
    return ivm__rows_load(feed, in->step->scratch, in->step->texts, &shape, chunk_take, in);
}

ivm_status ivm__program_loader_load(ivm__program_loader *loader, ivm__step *step, ivm__block_reader *reader, uint32_t view,
                                    ivm__holding_kind kind)
{
    assert(step->error == reader->feed.error);
    for (uint32_t i = 0; i < loader->holdings_count; i++) {
        const ivm__holding *what = &loader->holdings[i];
        if (what->payload != (kind == IVM__HOLDING_AT_ONCE)) {
            continue;
        }
        intake in = { loader->program->operators[what->place], step, what->number };
        IVM_TRY(ivm__block_reader_begin(reader, ivm__holding_section(view, what->place, what->number)));
        IVM_TRY(ivm__block_reader_place(reader, holding_load(&in, what, &reader->feed)));
        IVM_TRY(ivm__block_reader_end(reader));
    }
    return IVM_OK;
}

static ivm_status settle_fail(const ivm__step *step, uint32_t view, uint32_t place)
{
    char what[IVM_ERROR_MESSAGE_SIZE] = "";
    if (step->error) {
        memcpy(what, step->error->message, sizeof what);
    }
    return ivm__fail(step->error, IVM_CORRUPT, "kept %u.%u: %s", view, ivm__holding_section(view, place, 0).part, what);
}

ivm_status ivm__program_settle(const ivm__program *program, ivm__step *step, uint32_t view)
{
    for (uint32_t i = 0; i < program->operators_count; i++) {
        ivm__operator *one = program->operators[i];
        ivm_status status = one->class->settle ? one->class->settle(one, step) : IVM_OK;
        IVM_TRY(status == IVM_CORRUPT ? settle_fail(step, view, i) : status);
    }
    return IVM_OK;
}
