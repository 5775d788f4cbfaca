/* The join operator inside: its leaves, its probe orders, and a run of one term over them.
 *
 *     join.c         the operator: a step from gathered deltas to checked weights        join_create.c   made from its spec
 *     join_leaf.c    a leaf's delta, its kept rows, its delta as rows that are probed    join_gather.c   chunks taken in by a leaf
 *     join_term.c    a term: sources, driver chunks, what is emitted                     join_probe.c    one chunk through one probe
 *     join_spread.c  a term's chunks on several threads                                  join_fold.c     a driver's rows that ask the same, as one
 *     join_reads.c   what probes read by themselves, sent for ahead
 *     join_drop.c    terms that can match nothing, before indexes are made for them  join_prepare.c  indexes built ahead of terms, and told of
 *     join_save.c    rows of leaves saved and loaded */
#ifndef IVM__JOIN_STATE_H
#define IVM__JOIN_STATE_H

#include "cover.h"
#include "join.h"
#include "operators.h"
#include "source.h"
#include "weights.h"

/* ---- Leaves ------------------------------------------------------------------------------------------------------------------------- */

/* A chunk of a leaf's gathered delta, with room for more rows. */
typedef struct ivm__leaf_part {
    ivm__chunk chunk;
    uint32_t capacity;
    struct ivm__leaf_part *next;
} ivm__leaf_part;

/* Chunks gathered in a step. */
typedef struct ivm__leaf_parts {
    ivm__leaf_part *first, *last;
    uint64_t rows;
    bool negative; /* a weight below 0 is among them */
} ivm__leaf_parts;

/* The kept columns of a leaf are those that anyone needs, in order; a chunk of them alone is called compact. Where nobody needs any, rows
 * and deltas still have one column, of zeros, so that weights have a row to lie in. */
typedef struct ivm__join_leaf {
    ivm__source bare;           /* a bare scan; neither: the rows are the leaf's own */
    const ivm_table *transient; /* of which it repeats rows that are not kept: read by terms as those that waited before; NULL: no such */
    ivm__operator *scan;        /* through which own rows are loaded once a term reads them; NULL: kept from the start */
    uint32_t columns_first, columns_count; /* among the join's columns */
    uint32_t *kept;                        /* the kept columns of the leaf */
    uint32_t *place;                       /* of each column of the leaf among the kept; UINT32_MAX: not kept */
    ivm__layout *layout;                   /* of the kept columns */
    uint32_t kept_count;                   /* 0 where only the zeros are stored */
    bool keeps;                            /* own: `rows` holds what is in the leaf */

    /* of the step under way */
    bool gathered;     /* the delta is in `drives`, compact; else it is a bare source's, read in place */
    bool delta_filled; /* `delta` holds the delta */
    ivm__leaf_prune prune;
    ivm__leaf_parts drives;   /* the delta that drives terms */
    ivm__leaf_parts held_out; /* own: what is set aside of it */
    uint64_t delta_rows;      /* of what drives */
    ivm__aside own_aside;     /* own: what is set aside, among `rows` */
    ivm__zset delta;          /* the kept columns of the delta as rows, never committed: they weigh what they weigh after */

    ivm__zset rows;
} ivm__join_leaf;

/* Where a walk over a leaf's delta stands; zeroed at first. */
typedef struct ivm__leaf_walk {
    bool begun;
    ivm__delta_walk bare;
    const ivm__leaf_part *part;
} ivm__leaf_walk;

typedef struct ivm__join ivm__join;

/* Makes a Z-set for rows of the kept columns, if it is not there yet. */
ivm_status ivm__leaf_rows_make(const ivm__join *join, const ivm__join_leaf *leaf, ivm__zset *rows) IVM_MUST_CHECK;
/* A chunk that the leaf's operator sent: gathered into its delta, or, while loading, added to its rows. */
ivm_status ivm__leaf_consume(ivm__join_leaf *leaf, ivm__step *step, const ivm__chunk *chunk) IVM_MUST_CHECK;
/* The columns of the leaf's chunk that are kept, not copied. False: out of memory. */
bool ivm__leaf_compact(const ivm__join_leaf *leaf, ivm__arena *arena, const ivm__chunk *chunk, ivm__chunk *compact);
/* Copies a compact chunk to the end of these parts of the leaf's. */
ivm_status ivm__leaf_gather(const ivm__join_leaf *leaf, ivm__leaf_parts *parts, ivm__arena *arena,
                            const ivm__chunk *compact) IVM_MUST_CHECK;
/* The step begins: what is set aside of the leaf's delta in it. */
void ivm__leaf_begin(ivm__join_leaf *leaf, const ivm__leaf_prune *prune);

/* All of the delta has come: adds it to kept rows, consolidates it where a weight is negative, counts it. */
ivm_status ivm__leaf_settle(ivm__join *join, ivm__join_leaf *leaf, ivm__step *step) IVM_MUST_CHECK;
/* The next chunk of the delta, compact and in the scratch arena or the parts; *chunk NULL at the end. */
ivm_status ivm__leaf_delta_next(const ivm__join_leaf *leaf, ivm__step *step, ivm__leaf_walk *walk, const ivm__chunk **chunk) IVM_MUST_CHECK;
/* Makes the rows readable as cur and old: loads own rows that are not kept yet. */
ivm_status ivm__leaf_keep(ivm__join *join, ivm__join_leaf *leaf, ivm__step *step) IVM_MUST_CHECK;
/* Makes the delta readable as rows. */
ivm_status ivm__leaf_delta_fill(ivm__join *join, ivm__join_leaf *leaf, ivm__step *step) IVM_MUST_CHECK;
static inline bool ivm__leaf_is_bare(const ivm__join_leaf *leaf)
{
    return ivm__source_is(leaf->bare);
}
/* The store of the source or of the own rows. */
static inline ivm__store *ivm__leaf_store(ivm__join_leaf *leaf)
{
    assert(ivm__leaf_is_bare(leaf) || leaf->keeps);
    return ivm__leaf_is_bare(leaf) ? ivm__source_store(leaf->bare) : (ivm__store *)&leaf->rows.store;
}
/* What a reading of the leaf's rows takes as there on both sides of the step; NULL: nothing. */
static inline const ivm__aside *ivm__leaf_aside(const ivm__join_leaf *leaf, ivm__reading reading)
{
    const ivm__aside *aside = ivm__leaf_is_bare(leaf) ? leaf->prune.aside : leaf->own_aside.touched ? &leaf->own_aside : NULL;
    return aside && (reading == IVM__READ_CUR ? aside->gone : aside->fresh) ? aside : NULL;
}
/* The column of a store that holds the i-th kept column. */
static inline uint32_t ivm__leaf_store_column(const ivm__join_leaf *leaf, const ivm__store *store, uint32_t i)
{
    return ivm__leaf_is_bare(leaf) && store == ivm__source_store(leaf->bare) ? ivm__source_column(leaf->bare, leaf->kept[i]) : i;
}
void ivm__leaf_commit(ivm__join_leaf *leaf);
void ivm__leaf_undo(ivm__join_leaf *leaf);

/* ---- Orders --------------------------------------------------------------------------------------------------------------------------- */

typedef struct ivm__join_probe {
    uint32_t leaf;
    uint32_t keys_count;
    uint32_t *from;  /* join columns */
    uint32_t *to;    /* columns of the leaf, in the order of the table's key where they are all of it */
    uint32_t *place; /* the same among the kept */
    bool unique;     /* they are all of a table's key */
    uint32_t equal_count;
    ivm__probe_key *equal;
} ivm__join_probe;

/* Moments of a run at which a column may be read for the last time: entering probe p, judging the equal pairs behind it, the residual
 * condition, above. */
#define IVM__READ_ENTERING(p) (2 * (p))
#define IVM__READ_BEHIND(p) (2 * (p) + 1)
#define IVM__READ_RESIDUAL 254u
#define IVM__READ_ABOVE 255u
static_assert(IVM__READ_BEHIND(IVM_JOIN_LEAVES_MAX) < IVM__READ_RESIDUAL, "moments fit a byte");

typedef struct ivm__join_order {
    ivm__join_probe *probes; /* leaves_count - 1 */
    ivm__probe_key *equal;
    uint32_t equal_count;
    uint8_t *last; /* of each join column: the last moment at which it is read, driver's first */
} ivm__join_order;

struct ivm__join {
    ivm__operator head;
    ivm__memory *memory;
    ivm__texts *texts;
    uint64_t seed;
    ivm__join_leaf *leaves;
    uint32_t leaves_count;
    ivm__join_order *orders; /* one a driver */
    ivm__expression *residual;
    bool residual_fallible;
    bool *read_last; /* by join column: the residual condition or the reader above needs it */
    bool *needed_above;
    ivm__join_planner planner;
    bool planner_begun;                 /* in the step under way */
    uint64_t rows_probed, rows_matched; /* in it, by all terms */
    ivm__failures failures;
    struct ivm__join_store { /* arrays that orders share */
        ivm__join_probe *probes;
        uint32_t *words;
        ivm__probe_key *equal;
        uint8_t *last;
        uint32_t probes_count, words_count, equal_count;
    } shared;
};

void ivm__join_free(ivm__operator *self, ivm__memory *memory);
extern const ivm__operator_class ivm__join_class;

/* ---- Saved and loaded (join_save.c) ------------------------------------------------------------------------------------------------------ */

ivm_status ivm__join_save(const ivm__operator *self, ivm__saver *saver) IVM_MUST_CHECK;
ivm_status ivm__join_load(ivm__operator *self, ivm__step *step, uint32_t holding, const ivm__chunk *chunk, ivm__feed *from) IVM_MUST_CHECK;
ivm_status ivm__join_settle(ivm__operator *self, ivm__step *step) IVM_MUST_CHECK;

/* ---- Runs ------------------------------------------------------------------------------------------------------------------------------ */

/* The columns of the probed store that are read later, and the join's columns they become: of one probe, planned when it is first asked in a term. */
typedef struct ivm__probe_reads {
    bool known;        /* all that follows */
    bool possible;     /* the probe reads them by itself */
    bool covered;      /* a cover answers as the rows would */
    ivm__cover *cover; /* NULL: not looked for yet, or there is none */
    uint32_t count;
    uint32_t columns[IVM__READ_COLUMNS_MAX], targets[IVM__READ_COLUMNS_MAX];
} ivm__probe_reads;

/* Where one probe of the term under way looks. */
typedef struct ivm__probe_source {
    const ivm__join_probe *probe;
    const ivm__join_leaf *leaf;
    ivm__store *store;
    ivm__index *index; /* NULL: a cross product */
    bool in_place;     /* the store is a table's own */
    ivm__reading reading;
    const ivm__aside *aside; /* NULL: none that matters to the reading */
    ivm__probe_reads reads;  /* with an index */
} ivm__probe_source;

/* What a run on another thread would emit, in its step's scratch arena: the calling thread will (join_spread.c). */
#define IVM__JOIN_KEPT_MAX 8u
typedef struct ivm__join_kept {
    ivm__chunk *chunks[IVM__JOIN_KEPT_MAX];
    uint32_t count;
    bool overfull; /* there were more */
} ivm__join_kept;

/* A driver's rows that ask the same and go through the probes as one (join_fold.c). */
typedef struct ivm__join_folded ivm__join_folded;

typedef struct ivm__join_run {
    ivm__join *join;
    ivm__step *step;
    ivm__join_kept
        *kept; /* NULL: a run on the calling thread. Else nothing but scratch and this may be written to, and any failure leaves the
                             driver's chunk to the calling thread */
    const ivm__join_order *order;
    ivm__join_leaf *driver;
    int sign;
    const ivm__join_folded *fold; /* of the driver's chunk under way; NULL: its rows go as they are */
    uint64_t rows_probed, rows_matched;
    const ivm__chunk *ahead_of; /* the chunk of which `ahead` has keys; NULL: none */
    const ivm__keys *ahead;     /* of each probe; none where its rows_count is 0 */
    uint32_t sources_count;     /* one for each leaf but the driver */
    ivm__probe_source sources[IVM_JOIN_LEAVES_MAX];
} ivm__join_run;

/* Where one probe looks under this ivm__leaf_reading: a store and its index, made if they are missing. source->index: as
 * ivm__join_index_find() found it for a reading other than delta, or NULL. */
ivm_status ivm__join_source_prepare(const ivm__join_run *run, const ivm__join_probe *probe, uint8_t reading,
                                    ivm__probe_source *source) IVM_MUST_CHECK;
/* The index over the probe's columns of the leaf's rows, which an old heading may number otherwise than the store; NULL: there is none yet. */
ivm__index *ivm__join_index_find(const ivm__join_leaf *leaf, const ivm__join_probe *probe);
/* Whether the term can be dropped before anything is made for it (join_drop.c). `run` has its driver and order; its sources get the indexes that are
 * there, as the sources' own preparation wants them. */
ivm_status ivm__join_term_misses(ivm__join_run *run, const ivm__term *term, bool *misses) IVM_MUST_CHECK;
/* Compact rows of the driver as a chunk of the join's columns, nothing copied. NULL: out of memory. */
ivm__chunk *ivm__join_driver_chunk(const ivm__join_run *run, const ivm__chunk *compact);
/* What the probe reads by itself. */
const ivm__probe_reads *ivm__join_reads(ivm__join_run *run, uint32_t depth);
/* Finds its cover if it can be asked for these keys; made where it is missing, which is the calling thread's to do: unsupported on another. */
ivm_status ivm__join_reads_cover(ivm__join_run *run, uint32_t depth, const ivm__keys *keys) IVM_MUST_CHECK;
/* Sends for what the probes of the driver's few rows will read, and keeps their keys. */
ivm_status ivm__join_send_ahead(ivm__join_run *run, const ivm__chunk *chunk) IVM_MUST_CHECK;
/* The keys of the chunk's rows for this probe if they were kept; else NULL. */
const ivm__keys *ivm__join_keys_ahead(const ivm__join_run *run, uint32_t depth, const ivm__chunk *chunk);
/* Carries compact rows of the driver through all probes. */
ivm_status ivm__join_run_driver(ivm__join_run *run, const ivm__chunk *compact) IVM_MUST_CHECK;
/* The rest of the driver's delta, or the next chunk of it alone. */
ivm_status ivm__join_drive(ivm__join_run *run, ivm__leaf_walk *walk, bool one) IVM_MUST_CHECK;
/* Whether the term is for several threads; and all of the driver's delta by them. */
bool ivm__join_spreads(const ivm__join_run *run);
ivm_status ivm__join_spread(ivm__join_run *run) IVM_MUST_CHECK;
/* Carries a chunk of the join's columns, which may be written to, through the probes from the depth-th on, and emits what comes out. */
ivm_status ivm__join_probe_chunk(ivm__join_run *run, uint32_t depth, ivm__chunk *chunk) IVM_MUST_CHECK;
ivm_status ivm__join_run_emit(ivm__join_run *run, ivm__chunk *chunk) IVM_MUST_CHECK;
/* The same of rows that are not folded. */
ivm_status ivm__join_emit_rows(const ivm__join_run *run, ivm__chunk *chunk) IVM_MUST_CHECK;
/* Sets run->fold: rows of the driver's chunk that ask the same become one where that is worth it, in a chunk of scratch memory. */
ivm_status ivm__join_fold(ivm__join_run *run, ivm__chunk **chunk) IVM_MUST_CHECK;
/* Emits what became of the folded rows, for each of them. */
ivm_status ivm__join_unfold(const ivm__join_run *run, const ivm__chunk *chunk) IVM_MUST_CHECK;
/* The rows for which each pair of columns is equal and not null: *chunk itself or a copy of those rows. */
ivm_status ivm__join_equal(ivm__step *step, const ivm__probe_key *equal, uint32_t equal_count, ivm__chunk **chunk) IVM_MUST_CHECK;
/* Products of weights are held up to here; a joined row that reaches it fails the step. */
#define IVM__JOIN_WEIGHT_LIMIT ((ivm__weight)1 << 126)
/* One that leaves 128 bits stays at the limit: the row may yet find no partner. */
static inline ivm__weight ivm__join_weight_product(ivm__weight a, ivm__weight b)
{
    ivm__weight product;
    if (ivm__unlikely(__builtin_mul_overflow(a, b, &product))) {
        product = (a < 0) != (b < 0) ? -IVM__JOIN_WEIGHT_LIMIT : IVM__JOIN_WEIGHT_LIMIT;
    }
    return product;
}

ivm_status ivm__join_term(ivm__join *join, ivm__step *step, const ivm__term *term) IVM_MUST_CHECK;

#endif
