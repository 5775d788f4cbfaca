/* The outer joins inside: two sides, and what the files of the operator share.
 *
 *     outer.c        the operator: made from its spec, a step from what came to what stands        outer_side.c    a side's rows and counts
 *     outer_match.c  changed rows of one side met with the rows of the other                       outer_stand.c   rows that stand alone
 *     outer_save.c   both sides saved and loaded */
#ifndef IVM__OUTER_STATE_H
#define IVM__OUTER_STATE_H

#include "items.h"
#include "operators.h"

/* ---- Sides -------------------------------------------------------------------------------------------------------------------------- */

/* How many present partners a row has. touch 0: as it was when the step began; else touched[touch - 1] has the count from before. */
typedef struct ivm__partners {
    uint32_t count, touch;
} ivm__partners;
static_assert(IVM_TABLE_ROWS_MAX < UINT32_MAX, "partners are rows of one store: their number fits");

typedef struct ivm__partners_touch {
    ivm__row_id row;
    uint32_t before;
} ivm__partners_touch;

typedef struct ivm__outer_side {
    ivm__memory *memory;
    ivm__zset rows;
    ivm__index *index; /* over the key columns; over none where the join has no equality: all rows are of one key */
    uint32_t *keys;
    uint32_t keys_count;
    uint32_t columns_first, columns_count; /* among the columns of both */
    bool preserved;                        /* its rows are counted for: they stand where they have no partner, or where they have one */
    ivm__items partners;                   /* ivm__partners by row id; all zero for ids that are free */
    ivm__partners_touch *touched;          /* of the step under way */
    uint32_t touched_count, touched_capacity;
} ivm__outer_side;

ivm_status ivm__outer_side_init(ivm__outer_side *side, ivm__memory *memory, ivm__texts *texts, uint64_t seed,
                                const ivm_type *types) IVM_MUST_CHECK; /* columns, keys and kind of the side are set */
void ivm__outer_side_deinit(ivm__outer_side *side);
/* Adds a chunk of the input's delta to the rows; columns that nobody reads, and so are not carried, are nulls. */
ivm_status ivm__outer_side_add(ivm__outer_side *side, ivm__step *step, const ivm__chunk *chunk) IVM_MUST_CHECK;
/* Makes room for a count for every row. */
ivm_status ivm__outer_side_reserve(ivm__outer_side *side) IVM_MUST_CHECK;
/* Makes room for so many more touches. */
ivm_status ivm__outer_side_touches_reserve(ivm__outer_side *side, uint32_t count) IVM_MUST_CHECK;
void ivm__outer_side_commit(ivm__outer_side *side);
void ivm__outer_side_undo(ivm__outer_side *side);

static inline ivm__partners *ivm__partners_of(const ivm__outer_side *side, ivm__row_id row)
{
    return ivm__items_at(&side->partners, row);
}
/* There is room. In a step a count may go below 0 and come back. */
static inline void ivm__partners_add(ivm__outer_side *side, ivm__row_id row, int change)
{
    ivm__partners *partners = ivm__partners_of(side, row);
    if (!partners->touch) {
        side->touched[side->touched_count++] = (ivm__partners_touch){ row, partners->count };
        partners->touch = side->touched_count;
    }
    partners->count += (uint32_t)change;
}
static inline uint32_t ivm__partners_before(const ivm__outer_side *side, ivm__row_id row)
{
    const ivm__partners *partners = ivm__partners_of(side, row);
    return partners->touch ? side->touched[partners->touch - 1].before : partners->count;
}

/* ---- The operator ------------------------------------------------------------------------------------------------------------------- */

typedef struct ivm__outer {
    ivm__operator head; /* types: of both sides' columns, of which semi and anti joins emit the left ones */
    ivm__texts *texts;
    ivm_join_kind kind;
    bool joins; /* emits joined rows: left, right, full */
    ivm__outer_side left, right;
    ivm__expression *condition; /* NULL: none */
    bool *read;                 /* by column of both sides: by the condition */
    uint32_t columns_count;     /* of both sides */
} ivm__outer;

/* Makes every column of the chunk that is not carried one of nulls. False: out of memory. */
bool ivm__outer_pad(ivm__arena *arena, ivm__chunk *chunk);

/* Two holdings: the left side's rows and the right's, those of a preserved side with the number of partners, 4 bytes. */
ivm_status ivm__outer_save(const ivm__operator *self, ivm__saver *saver) IVM_MUST_CHECK;
ivm_status ivm__outer_load(ivm__operator *self, ivm__step *step, uint32_t holding, const ivm__chunk *chunk, ivm__feed *from) IVM_MUST_CHECK;
ivm_status ivm__outer_settle(ivm__operator *self, ivm__step *step) IVM_MUST_CHECK;

/* Meets the rows of a side that the step changed with the rows of the other as they are under the reading: counts partners on both sides,
 * and emits, where the kind joins, change x row. */
ivm_status ivm__outer_match(ivm__outer *outer, ivm__step *step, ivm__outer_side *driver, ivm__reading reading) IVM_MUST_CHECK;
/* All pairs have met: emits by how much each row of a preserved side stands more or less than before the step. */
ivm_status ivm__outer_stand(ivm__outer *outer, ivm__step *step, const ivm__outer_side *side) IVM_MUST_CHECK;
/* A full join whose rows are all null on either side: both padded are one row, whose weight must fit. */
ivm_status ivm__outer_nulls_check(ivm__outer *outer, ivm__step *step) IVM_MUST_CHECK;

#endif
