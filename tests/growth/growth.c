/* Tables, groups, strings, match counts and what readers look keys up in, grown a row at a time past several doublings, mixed with retractions, changes of keys
 * and values, weights above 1, batches of many rows, columns and views that come and go, snapshots held over it, allocations that fail, calls that are
 * cancelled, checkpoints and restores. Every push is judged: what each view held and what the push says it changed must come to what the model computes anew
 * (model.h); whole views, tables, lists of orphans and look-ups take turns. A plain program, for any sanitizer:
 *
 *     test_growth [--rounds N] [--pushes N] [--seed S]
 *
 * Round i is drawn from seed S + i alone. It prints how often pushes met each kind of slots that grow beside; where slots are few enough to do so within a round
 * it fails unless each kind was met. */
#include "side.h"

#include "figure.h"
#include "growth.h"

#include <inttypes.h>
#include <string.h>

#define HELD 4u

typedef struct bytes {
    uint8_t *at;
    size_t size, capacity, read;
} bytes;

typedef struct held {
    ivm_snapshot *snapshot; /* NULL: none */
    uint64_t digest;
} held;

typedef struct round {
    growth_engine_kind kind;
    growth_model model;
    growth_side sides[2], *side; /* the other is made by a restore */
    growth_digests now;          /* what is held */
    uint64_t late;               /* by the deferred view */
    held held[HELD];
} round;

static struct totals {
    growth_beside beside;
    uint64_t pushes, met, failed, cancelled, restored;
} totals;

static uint32_t below(round *it, uint32_t count)
{
    return (uint32_t)random_below(&it->model.random, count);
}

/* ---- What is held -------------------------------------------------------------------------------------------------------------------------- */

#define NEED_SAME(got, wanted, what)                                                                                                       \
    do {                                                                                                                                   \
        if ((got) != (wanted)) {                                                                                                           \
            fprintf(stderr, "%s:%d: %s is not what it must be\n", __FILE__, __LINE__, what);                                               \
            abort();                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

static const char *const names[GROWTH_VIEWS] = { "grouped", "full", "by_text", "semi", "anti", "texts_all", "top", "joined" };

static void view_check(round *it, uint32_t view)
{
    NEED_SAME(growth_view_digest(it->side->views[view]), it->now.views[view], names[view]);
}

static void tables_check(round *it)
{
    NEED_SAME(growth_table_digest(it->side->dim), it->now.dim, "dim");
    NEED_SAME(growth_table_digest(it->side->fact), it->now.fact, "fact");
    NEED_SAME(growth_view_digest(it->side->late), it->late, "late");
    if (it->kind.trust == GROWTH_TRACKED) {
        NEED_SAME(growth_orphans_digest(it->side->foreign_key), it->now.orphans, "orphans");
    }
}

static void all_check(round *it)
{
    for (uint32_t v = 0; v < GROWTH_VIEWS; v++) {
        view_check(it, v);
    }
    tables_check(it);
}

/* Of a few, drawn: the others take their turn. */
static void some_check(round *it)
{
    view_check(it, below(it, GROWTH_VIEWS));
    if (below(it, 8) == 0) {
        tables_check(it);
    }
}

static uint64_t found(ivm_snapshot *snapshot, const ivm_value *values, size_t count)
{
    ivm_rows rows;
    ivm_status status = ivm_snapshot_find(snapshot, values, count, &rows, &growth_error);
    NEED(status == IVM_OK || status == IVM_ROW_NOT_FOUND);
    uint64_t digest = status == IVM_OK ? growth_rows_digest(snapshot, &rows) : 0;
    ivm_snapshot_close(snapshot);
    return digest;
}

/* A dim by its key, a group by its text, both drawn or one that was changed just now. */
static void finds_check(round *it)
{
    const growth_model *model = &it->model;
    const growth_change *change = &model->changes[0];
    uint32_t id = below(it, 2) ? below(it, GROWTH_IDS) : change->id;
    uint32_t text = below(it, 2) ? below(it, 1 + model->texts_next % GROWTH_TEXTS) : change->fact.text;
    char bytes_of_text[GROWTH_TEXT_SIZE];
    ivm_snapshot *snapshot;
    NEED_OK(ivm_read_table(it->side->dim, &snapshot, &growth_error));
    const growth_dim *dim = &model->dims[id];
    ivm_value values[] = { ivm_int64(growth_key(model, id)) };
    growth_text(dim->text, bytes_of_text);
    uint64_t row = growth_hash_int(growth_hash_int(0, values[0].as.int64), dim->v);
    row = growth_hash_bytes(row, bytes_of_text, strlen(bytes_of_text));
    NEED_SAME(found(snapshot, values, 1), dim->there ? row : 0, "a dim that was looked up");
    NEED_OK(ivm_read_view(it->side->views[GROWTH_BY_TEXT], &snapshot, &growth_error));
    growth_text(text, bytes_of_text);
    values[0] = ivm_string(bytes_of_text);
    NEED_SAME(found(snapshot, values, 1), growth_expect_text(model, text), "a group that was looked up");
}

/* ---- Snapshots held ------------------------------------------------------------------------------------------------------------------------ */

static void let_go(held *of)
{
    if (of->snapshot) {
        NEED_SAME(growth_snapshot_digest(of->snapshot), of->digest, "a snapshot that was held");
        ivm_snapshot_close(of->snapshot);
        of->snapshot = NULL;
    }
}

static void hold(round *it)
{
    held *of = &it->held[below(it, HELD)];
    uint32_t which = below(it, GROWTH_VIEWS + 2);
    let_go(of);
    if (which < GROWTH_VIEWS) {
        NEED_OK(ivm_read_view(it->side->views[which], &of->snapshot, &growth_error));
        of->digest = it->now.views[which];
    } else {
        ivm_table *table = which == GROWTH_VIEWS ? it->side->dim : it->side->fact;
        NEED_OK(ivm_read_table(table, &of->snapshot, &growth_error));
        of->digest = which == GROWTH_VIEWS ? it->now.dim : it->now.fact;
    }
}

static void all_let_go(round *it)
{
    for (uint32_t i = 0; i < HELD; i++) {
        let_go(&it->held[i]);
    }
}

/* ---- Calls that fail ----------------------------------------------------------------------------------------------------------------------- */

static void cancel(void *engine)
{
    ivm_engine_cancel(engine);
}

/* Until it goes through: `step` 1: with every allocation failing once; else with some. What failed has changed nothing. */
static void call_failing(round *it, ivm_status (*call)(round *it), uint32_t step)
{
    for (uint64_t n = 1;; n += 1 + below(it, step)) {
        test_allocator_arm(&it->side->allocator, n);
        ivm_status status = call(it);
        bool failed = test_allocator_disarm(&it->side->allocator);
        totals.failed += failed;
        if (status == IVM_OK) {
            return;
        }
        NEED(failed && status == IVM_OUT_OF_MEMORY);
        some_check(it);
    }
}

static void call_cancelled(round *it, ivm_status (*call)(round *it))
{
    ivm_status status = IVM_CANCELLED;
    for (uint32_t tries = 0; tries < 3 && status == IVM_CANCELLED; tries++) {
        test_allocator_ring(&it->side->allocator, 1 + below(it, 20), cancel, it->side->engine);
        status = call(it);
        bool rung = test_allocator_unring(&it->side->allocator);
        NEED(status == IVM_OK || (rung && status == IVM_CANCELLED));
        if (status == IVM_CANCELLED) {
            totals.cancelled++;
            some_check(it);
        }
    }
    if (status == IVM_CANCELLED) {
        NEED_OK(call(it));
    }
}

/* One in so many fails at each allocation first, one at some, one is cancelled. */
static void call(round *it, ivm_status (*it_is)(round *it), uint32_t one_in, uint32_t step)
{
    uint32_t way = below(it, one_in);
    if (way == 0) {
        call_failing(it, it_is, step);
    } else if (way == 1) {
        call_cancelled(it, it_is);
    } else {
        NEED_OK(it_is(it));
    }
}

/* ---- Changes ------------------------------------------------------------------------------------------------------------------------------- */

static ivm_status batch_push(round *it)
{
    return growth_push(it->side, &it->model);
}

static void push(round *it, bool first)
{
    growth_beside now = { 0 };
    bool beside = growth_look(it->side, false, &now);
    uint32_t size = below(it, 60);
    if (now.words + now.pairs > 0 && it->model.turned == 0 && below(it, 5) == 0) {
        growth_turn(&it->model, now.words > 0);
    }
    growth_drift(&it->model, beside ? 10 : 1);
    growth_draw(&it->model, first ? 50 + below(it, 350) : size == 0 ? 200 : size < 6 ? 2 + below(it, 20) : 1);
    if (it->model.changes_count == 0) {
        return;
    }
    growth_digests next;
    growth_expect(&it->model, &next);
    call(it, batch_push, beside ? 8 : 25, it->model.changes_count > 8 ? 40 : 1);
    for (uint32_t v = 0; v < GROWTH_VIEWS; v++) {
        NEED_SAME(it->now.views[v] + growth_changes_digest(it->side->views[v]), next.views[v], names[v]);
    }
    it->now = next;
    totals.pushes++;
    totals.met += growth_look(it->side, below(it, 8) == 0, &totals.beside);
    some_check(it);
    if (below(it, 3) == 0) {
        finds_check(it);
    }
}

static ivm_status late_refresh(round *it)
{
    return ivm_refresh_view(it->side->late, NULL, &growth_error);
}

static void refresh(round *it)
{
    call(it, late_refresh, 4, 3);
    NEED_SAME(it->late + growth_changes_digest(it->side->late), it->now.views[GROWTH_GROUPED], "late");
    it->late = it->now.views[GROWTH_GROUPED];
}

static ivm_status dim_column_change(round *it)
{
    const ivm_column_definition extra = { "extra", IVM_BOOL, false };
    return it->side->dim_extra ? ivm_table_column_drop(it->side->dim, "extra", &growth_error)
                               : ivm_table_column_add(it->side->dim, &extra, &growth_error);
}

static ivm_status fact_column_change(round *it)
{
    const ivm_column_definition extra = { "extra", IVM_BOOL, false };
    return it->side->fact_extra ? ivm_table_column_drop(it->side->fact, "extra", &growth_error)
                                : ivm_table_column_add(it->side->fact, &extra, &growth_error);
}

static void column_change(round *it)
{
    if (below(it, 2)) {
        call(it, dim_column_change, 3, 3);
        it->side->dim_extra = !it->side->dim_extra;
    } else {
        call(it, fact_column_change, 3, 3);
        it->side->fact_extra = !it->side->fact_extra;
    }
    tables_check(it);
}

static void planner_set(round *it)
{
    ivm_planner_options planner = { (ivm_fk_pruning)below(it, 3), (ivm_join_rule)below(it, 3), below(it, 2) };
    NEED_OK(ivm_engine_planner_set(it->side->engine, &planner, &growth_error));
    it->kind.planner = planner;
}

/* ---- Checkpoints --------------------------------------------------------------------------------------------------------------------------- */

static ivm_status bytes_write(void *context, const void *from, size_t size)
{
    bytes *to = context;
    if (to->size + size > to->capacity) {
        to->capacity = 2 * (to->size + size);
        to->at = realloc(to->at, to->capacity);
        NEED(to->at != NULL);
    }
    memcpy(to->at + to->size, from, size);
    to->size += size;
    return IVM_OK;
}

static ivm_status bytes_read(void *context, void *to, size_t size, size_t *got)
{
    bytes *from = context;
    *got = size < from->size - from->read ? size : from->size - from->read;
    memcpy(to, from->at + from->read, *got);
    from->read += *got;
    return IVM_OK;
}

static bytes checkpoint(growth_side *side)
{
    bytes made = { 0 };
    ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION, .compression = IVM_COMPRESSION_NONE };
    NEED_OK(ivm_checkpoint(side->engine, bytes_write, &made, &options, &growth_error));
    return made;
}

/* Into a fresh engine, which holds the same; one of the two goes on. */
static void restore_beside(round *it)
{
    growth_side *other = it->side == it->sides ? it->sides + 1 : it->sides;
    growth_engine_kind kind = it->kind;
    kind.hash_seed = below(it, 2) ? kind.hash_seed : 1 + below(it, 1000);
    bytes was = checkpoint(it->side);
    growth_open_empty(other, &kind);
    NEED_OK(ivm_restore(other->engine, bytes_read, &was, &growth_error));
    growth_find_all(other, it->kind.trust != GROWTH_NO_FACT);
    other->dim_extra = it->side->dim_extra;
    other->fact_extra = it->side->fact_extra;
    bytes is = checkpoint(other);
    NEED(was.size == is.size && memcmp(was.at, is.at, is.size) == 0);
    free(was.at);
    free(is.at);
    if (below(it, 2)) {
        all_let_go(it);
        growth_side *old = it->side;
        it->side = other;
        other = old;
    }
    growth_close(other);
    all_check(it);
    totals.restored++;
}

/* Into itself, some allocations failing. */
static void restore_itself(round *it)
{
    bytes was = checkpoint(it->side);
    ivm_status status = IVM_OUT_OF_MEMORY;
    for (uint32_t tries = 0; status == IVM_OUT_OF_MEMORY; tries++) {
        was.read = 0;
        test_allocator_arm(&it->side->allocator, tries < 3 ? 1 + below(it, 300) : UINT32_MAX);
        status = ivm_restore(it->side->engine, bytes_read, &was, &growth_error);
        totals.failed += test_allocator_disarm(&it->side->allocator);
        some_check(it);
    }
    NEED(status == IVM_OK);
    free(was.at);
    all_check(it);
    totals.restored++;
}

/* ---- Rounds -------------------------------------------------------------------------------------------------------------------------------- */

static void operate(round *it, bool first)
{
    push(it, first);
    uint32_t kind = below(it, 400);
    if (kind < 40) {
        hold(it);
    } else if (kind < 60) {
        refresh(it);
    } else if (kind < 64) {
        column_change(it);
    } else if (kind < 72) {
        planner_set(it);
    } else if (kind < 75) {
        restore_beside(it);
    } else if (kind < 77) {
        restore_itself(it);
    }
}

static void round_run(uint64_t seed, uint64_t pushes)
{
    static round rounds[1];
    round *it = rounds;
    memset(it, 0, sizeof *it);
    growth_model_init(&it->model, seed);
    it->kind = (growth_engine_kind){ .hash_seed = 1 + seed,
                                     .threads = 1 + (seed % 4 == 3),
                                     .trust = (growth_trust)(seed % GROWTH_TRUSTS),
                                     .planner = { IVM_FK_PRUNING_ROW, IVM_JOIN_AUTO, false },
                                     .bag = it->model.bag };
    it->model.keeps = it->kind.trust == GROWTH_RELY || it->kind.trust == GROWTH_ENFORCED;
    it->side = it->sides;
    growth_open(it->side, &it->kind);
    it->model.special = growth_special(it->side);
    growth_expect(&it->model, &it->now);
    it->late = it->now.views[GROWTH_GROUPED];
    for (uint64_t i = 0; i < pushes; i++) {
        operate(it, i == 0);
    }
    all_check(it);
    all_let_go(it);
    growth_close(it->side);
}

static bool all_met(const growth_beside *of)
{
    return of->slots && of->pairs && of->words && of->texts && of->finders;
}

int main(int argc, char **argv)
{
    uint64_t rounds = 6, pushes = 700, seed = 1;
    for (int i = 1; i < argc; i += 2) {
        uint64_t *to = strcmp(argv[i], "--rounds") == 0   ? &rounds
                       : strcmp(argv[i], "--pushes") == 0 ? &pushes
                       : strcmp(argv[i], "--seed") == 0   ? &seed
                                                          : NULL;
        NEED(to && i + 1 < argc);
        *to = strtoull(argv[i + 1], NULL, 10);
    }
    for (uint64_t i = 0; i < rounds; i++) {
        fprintf(stderr, "test_growth --rounds 1 --pushes %" PRIu64 " --seed %" PRIu64 "\n", pushes, seed + i);
        round_run(seed + i, pushes);
    }
    const growth_beside *of = &totals.beside;
    printf("%" PRIu64 " pushes, %" PRIu64 " beside something that grew: indexes %" PRIu64 " (%" PRIu64 " narrow to wide), pairs %" PRIu64
           ", words %" PRIu64 " (%" PRIu64 " failed), texts %" PRIu64 ", finders %" PRIu64 "\n",
           totals.pushes, totals.met, of->slots, of->wide_from_narrow, of->pairs, of->words, of->words_failed, of->texts, of->finders);
    printf("%" PRIu64 " allocations failed, %" PRIu64 " calls cancelled, %" PRIu64 " restored\n", totals.failed, totals.cancelled,
           totals.restored);
    figure_add("pushes judged while slots grew beside those in use", totals.met);
    NEED(IVM__GROWN_BESIDE_MIN > 64 || rounds * pushes < 4000 || all_met(of));
    return 0;
}
