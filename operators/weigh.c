/* Weigh: what stands at one place of a plan, as one number.
 *
 *     total += sum of weights            no row weighs more than all of them together: while the total fits int64 each row does
 *
 * Chunks are passed on as they come. The sum is that of what stands there, however it came: in flight it may wrap, and comes back. Where weights may be
 * below zero rows can cancel in a sum, and weigh adds up magnitudes instead: a bound that never falls. A total past int64 proves nothing; weigh then
 * asks whoever it was given, who judges row by row (judge.c) at whatever cost. Cost: an addition a weighted row. */
#include "bytes.h"
#include "holding.h"
#include "operators.h"
#include "weights.h"

/* Weights up to this can be added up for a whole step without leaving 128 bits. */
#define SUMMABLE ((ivm__weight)1 << 94)

/* Magnitudes are saved in steps of this, rounded down: how many there were depends on the terms that a join was computed by, and below a step nobody
 * sees it. A bound that was loaded is judged with what rounding may have lost in some 16,000 rounds on top. */
#define SAVED_STEP ((ivm__weight)1 << 48)
#define LOST_MAX ((ivm__weight)1 << 62)

typedef struct weigh {
    ivm__operator head;
    ivm__weigher weigher;
    ivm__weight total;   /* of the steps committed */
    ivm__weight pending; /* of the step under way */
    ivm__weight lost;    /* no more than this is missing in a bound: 0, or where it was loaded LOST_MAX */
    bool negative;
    bool huge; /* a weight of the step under way was past SUMMABLE */
} weigh;

/* Of 128 bits, whatever is lost above them. */
static ivm__weight weight_sum(ivm__weight a, ivm__weight b)
{
    return (ivm__weight)((unsigned __int128)a + (unsigned __int128)b);
}

static ivm__weight sum_weights(const ivm__weight *weights, uint32_t count, bool *huge)
{
    unsigned __int128 sum = 0;
    bool over = false;
    for (uint32_t i = 0; i < count; i++) {
        sum += (unsigned __int128)weights[i];
        over |= weights[i] > SUMMABLE || weights[i] < -SUMMABLE;
    }
    *huge |= over;
    return (ivm__weight)sum;
}

static ivm__weight sum_magnitudes(const ivm__weight *weights, uint32_t count, bool *huge)
{
    ivm__weight sum = 0;
    bool over = false;
    for (uint32_t i = 0; i < count; i++) {
        bool fits = weights[i] <= SUMMABLE && weights[i] >= -SUMMABLE;
        sum += !fits ? 0 : weights[i] < 0 ? -weights[i] : weights[i];
        over |= !fits;
    }
    *huge |= over;
    return sum;
}

static ivm_status weigh_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    weigh *it = (weigh *)self;
    assert(port == 0 && chunk->columns_count == self->columns_count);
    (void)port;
    if (!step->loading) {
        ivm__weight sum = !chunk->weights ? (ivm__weight)chunk->rows_count
                          : it->negative  ? sum_magnitudes(chunk->weights, chunk->rows_count, &it->huge)
                                          : sum_weights(chunk->weights, chunk->rows_count, &it->huge);
        it->pending = weight_sum(it->pending, sum);
    }
    return ivm__emit(self, step, chunk);
}

static ivm_status weigh_finish(ivm__operator *self, ivm__step *step)
{
    weigh *it = (weigh *)self;
    bool fits = !it->huge && ivm__weight_fits(weight_sum(weight_sum(it->total, it->pending), it->lost));
    return fits ? IVM_OK : it->weigher.judge(it->weigher.context, step);
}

static void weigh_commit(ivm__operator *self)
{
    weigh *it = (weigh *)self;
    it->total = weight_sum(it->total, it->pending);
    if (it->negative && (it->huge || it->total > SUMMABLE)) {
        it->total = SUMMABLE; /* from here on every step is judged */
    }
    it->pending = 0;
    it->huge = false;
}

static void weigh_undo(ivm__operator *self)
{
    weigh *it = (weigh *)self;
    it->pending = 0;
    it->huge = false;
}

static void weigh_free(ivm__operator *self, ivm__memory *memory)
{
    ivm__release(memory, self, sizeof(weigh));
}

/* ---- Saved and loaded ---------------------------------------------------------------------------------------------------------------- */

static ivm_status weigh_save(const ivm__operator *self, ivm__saver *saver)
{
    const weigh *it = (const weigh *)self;
    ivm__sink *sink;
    IVM_TRY(saver->bytes(saver, &sink));
    return ivm__put_wide(sink, it->negative ? it->total / SAVED_STEP * SAVED_STEP : it->total);
}

static ivm_status weigh_load(ivm__operator *self, ivm__step *step, uint32_t holding, const ivm__chunk *chunk, ivm__feed *from)
{
    weigh *it = (weigh *)self;
    assert(holding == 0 && !chunk);
    (void)holding;
    (void)chunk;
    IVM_TRY(ivm__holding_count(self, step, from, &it->total));
    if (it->negative && (it->total < 0 || it->total > SUMMABLE || it->total % SAVED_STEP)) {
        return ivm__holding_corrupt(self, step, "no sum of weights");
    }
    it->lost = it->negative ? LOST_MAX : 0;
    return IVM_OK;
}

static const ivm__operator_class weigh_class = {
    .name = "weigh",
    .consume = weigh_consume,
    .finish = weigh_finish,
    .commit = weigh_commit,
    .undo = weigh_undo,
    .free = weigh_free,
    .save = weigh_save,
    .load = weigh_load,
};

bool ivm__operator_weighs(const ivm__operator *self)
{
    return self->class == &weigh_class;
}

void ivm__weigh_begin(ivm__operator *self, ivm__weight standing)
{
    weigh *it = (weigh *)self;
    assert(ivm__operator_weighs(self) && !it->negative && it->pending == 0);
    it->total = weight_sum(it->total, standing);
}

ivm_status ivm__weigh_create(ivm__memory *memory, const ivm_type *types, uint32_t columns_count, bool negative, ivm__weigher weigher,
                             ivm__operator **made)
{
    assert(weigher.judge);
    weigh *it = ivm__allocate_zeroed(memory, sizeof *it);
    if (!it) {
        return IVM_OUT_OF_MEMORY;
    }
    it->head = (ivm__operator){ .class = &weigh_class, .columns_count = columns_count, .types = types };
    it->weigher = weigher;
    it->negative = negative;
    *made = &it->head;
    return IVM_OK;
}
