/* Stores: the rows of a Z-set in state, in pages that snapshots share (copy on write), with the weight before and after the step under way.
 *
 * A row's header is its weight * 2, or a touch * 2 + 1. With a weight the row is as it was when the step began, or was appended by it (its id is at
 * or past `step_end`; its weight before is 0). With a touch touched[touch - 1] holds its weight before and after. The touched rows are the undo
 * log, and both readings cost one load more than none. Bodies never change: an update is one row gone and one come. A weight outside 31 bits
 * lies in `heavies`, a short list in row order that snapshots share; its header says IVM__WEIGHT_HEAVY.
 *
 * The touch list of the last committed step is kept until the next commit, and so are the rows it took out (unlinked, but neither their
 * ids nor their texts given back): they are the changes that ivm_read_changes() shows, at no cost to the step.
 *
 *     step:    reserve, append / insert / touch + weight_set ...   then   commit (sweeps rows of weight 0)   or   undo
 *
 * Rows are found through indexes (index.h), which the store links and unlinks as rows come and go. */
#ifndef IVM__STORE_H
#define IVM__STORE_H

#include "items.h"
#include "layout.h"
#include "pool.h"

typedef uint32_t ivm__row_id;
#define IVM__ROW_NONE UINT32_MAX
#define IVM__PAGE_BYTES                                                                                                                    \
    12288u /* at most, or one row's: a page holds a power of two of rows. Allocators keep blocks below 16 KB close together. */

typedef enum ivm__reading { IVM__READ_OLD, IVM__READ_CUR } ivm__reading;

#define IVM__WEIGHT_HEAVY (-((int32_t)1 << 30))
#define IVM__TOUCHES_MAX ((uint32_t)INT32_MAX)

/* Rows of the step that a reader takes as there both before and after (split.h): those that came as if they had been before, those that went as if
 * they still were. A byte for each touched row and for each appended one, not 0 where it is one. */
typedef struct ivm__aside {
    const uint8_t *touched, *appended;
    bool fresh, gone; /* there are such that came, that went */
} ivm__aside;

typedef uint32_t ivm__row_header; /* 0: neither weight nor touch */

/* 32 bytes: a step that updates every row of a view writes two of them a row. */
typedef struct ivm__touch {
    ivm__weight after; /* of 128 bits while the step lasts */
    int64_t before;
    ivm__row_id row;
} ivm__touch;

/* What is to be known of a page beside its rows, which fill a block of their own: with the two in one a page of 8 KB would take 10. */
typedef struct ivm__page {
    _Atomic uint32_t references;
    uint32_t bytes; /* of rows */
    uint8_t before; /* see ivm__lines_release() */
} ivm__page;

#define IVM__FAN_SHIFT 4u
#define IVM__FAN (1u << IVM__FAN_SHIFT)

/* A directory of pages, a tree: a node of height h leads to IVM__FAN^(h + 1) pages, those behind the last being NULL. A snapshot holds a reference to
 * the root, and the store changes no node that it does not hold alone (pages.c). */
typedef struct ivm__pages {
    _Atomic uint32_t references;
    uint32_t height;
    union {
        struct ivm__pages *below[IVM__FAN]; /* of height 1 and more */
        struct {
            uint8_t *rows[IVM__FAN];
            ivm__page *page[IVM__FAN];
        };
    };
} ivm__pages;

typedef struct ivm__heavy {
    ivm__row_id row;
    int64_t weight;
} ivm__heavy;

/* A list of them. Snapshots hold a reference each; the store writes to it only where its own is the only one. */
typedef struct ivm__heavies {
    _Atomic uint32_t references;
    uint32_t capacity;
    ivm__heavy list[];
} ivm__heavies;

/* Rows overwritten in place, with the bodies that they had. */
typedef struct ivm__overwritten {
    ivm__row_id *rows;
    uint8_t *bodies; /* without headers, one after the other */
    uint32_t count, rows_capacity, bodies_capacity;
} ivm__overwritten;

struct ivm__index;
struct ivm__finder;
struct ivm__offer;

typedef struct ivm__store {
    ivm__memory *memory;
    ivm__texts *texts;
    ivm__layout *layout;
    uint64_t seed;
    ivm__pages *pages;
    uint8_t **rows;  /* of each page, as the directory has them: what the store itself reads by */
    uint64_t *owned; /* of each page, behind `rows`: `shares` when it was last seen to be the store's own */
    uint64_t shares; /* references to the directory that were given to others, ever */
    uint32_t pages_count, pages_capacity;
    uint32_t page_shift, page_mask; /* rows a page, log2, and that minus 1 */
    uint32_t rows_end;              /* ids ever given */
    uint32_t step_end;              /* rows_end when the step began */
    uint64_t rows_live;             /* rows of non-zero weight after */
    ivm__weight weight_max;         /* no present weight has been greater, whatever its sign (never falls) */
    ivm__items free;                /* ivm__row_id: ids to give again */
    uint32_t free_count, free_capacity;
    ivm__touch *touched; /* of the step under way */
    uint32_t touched_count, touched_capacity;
    ivm__touch *last; /* of the step last committed, and the rows it appended */
    uint32_t last_count, last_capacity;
    ivm__row_id last_first, last_end;
    uint64_t last_changes;                          /* rows that ivm__store_changes_last() gives */
    ivm__overwritten overwritten, overwritten_last; /* of the step under way, and of the one last committed */
    bool overwrites;                                /* nobody reads the rows' changes by their ids: rows may be overwritten */
    ivm__heavies *heavies;                          /* NULL: no room for any */
    ivm__heavies *heavies_spare;                    /* where they go once the step changes one; NULL: the list is the store's own */
    uint32_t heavy_count, heavy_capacity;           /* capacity: of what the store may write; 0 since a snapshot was taken */
    struct ivm__index *indexes;                     /* linked through index->next_of_store */
    struct ivm__finder *finder;                     /* of its readers, kept at commit; NULL: nobody looks keys up (finder.h) */
    struct ivm__offer *offer;                       /* where they leave one; NULL: nowhere yet */
    uint64_t reserved;                              /* new rows that there is still room for */
    uint64_t wanted;                                /* the most ids that the step under way has asked for room for */
    bool laid;                                      /* over with an earlier state (store_lay.c) */
    uint32_t laid_end;                              /* rows_end before that */
} ivm__store;

/* Takes a reference to the layout. The store must stay where it is: its indexes point to it. */
ivm_status ivm__store_init(ivm__store *store, ivm__memory *memory, ivm__texts *texts, uint64_t seed, ivm__layout *layout) IVM_MUST_CHECK;
void ivm__store_deinit(ivm__store *store); /* with its indexes; a zeroed store is fine. Releases texts. */
/* Drops all rows at once; keeps memory for the next. No snapshot may be open. */
void ivm__store_clear(ivm__store *store);

static inline ivm__row_header ivm__header_of_weight(int32_t weight)
{
    return (uint32_t)weight << 1;
}
static inline ivm__row_header ivm__header_of_touch(uint32_t touch)
{
    return touch << 1 | 1;
}
static inline bool ivm__header_is_touch(ivm__row_header header)
{
    return header & 1;
}
/* 0: it holds a weight. */
static inline uint32_t ivm__header_touch(ivm__row_header header)
{
    return header & 1 ? header >> 1 : 0;
}
/* The header holds no touch. */
static inline int32_t ivm__header_weight(ivm__row_header header)
{
    return (int32_t)header >> 1;
}
static inline ivm__row_header ivm__row_header_of(const uint8_t *at)
{
    return *(const ivm__row_header *)(const void *)at;
}

static inline uint8_t *ivm__store_row(const ivm__store *store, ivm__row_id row)
{
    return store->rows[row >> store->page_shift] + (size_t)(row & store->page_mask) * store->layout->stride;
}
int64_t ivm__store_heavy(const ivm__store *store, ivm__row_id row);
static inline ivm__weight ivm__store_weight_at(const ivm__store *store, ivm__row_id row, const uint8_t *at, ivm__reading reading)
{
    ivm__row_header header = ivm__row_header_of(at);
    if (ivm__likely(!ivm__header_is_touch(header))) {
        if (reading == IVM__READ_OLD && row >= store->step_end) {
            return 0;
        }
        int32_t weight = ivm__header_weight(header);
        return ivm__likely(weight != IVM__WEIGHT_HEAVY) ? weight : ivm__store_heavy(store, row);
    }
    const ivm__touch *touch = &store->touched[ivm__header_touch(header) - 1];
    return reading == IVM__READ_OLD ? touch->before : touch->after;
}
static inline ivm__weight ivm__store_weight(const ivm__store *store, ivm__row_id row, ivm__reading reading)
{
    return ivm__store_weight_at(store, row, ivm__store_row(store, row), reading);
}

static inline bool ivm__store_row_is_aside(const ivm__store *store, ivm__row_id row, const ivm__aside *aside)
{
    uint32_t touch = ivm__header_touch(ivm__row_header_of(ivm__store_row(store, row)));
    return touch ? aside->touched[touch - 1] : row >= store->step_end && aside->appended[row - store->step_end];
}
/* The weight for a reader with rows set aside (NULL: none). */
static inline ivm__weight ivm__store_weight_aside(const ivm__store *store, ivm__row_id row, ivm__reading reading, const ivm__aside *aside)
{
    if (aside && ivm__store_row_is_aside(store, row, aside)) {
        ivm__weight before = ivm__store_weight(store, row, IVM__READ_OLD);
        return before ? before : ivm__store_weight(store, row, IVM__READ_CUR);
    }
    return ivm__store_weight(store, row, reading);
}

/* Makes room for `rows` new rows, in pages (those of the free ids that would be given next become the store's own), touched, free
 * list and every index, so that as many appends or inserts cannot fail. */
ivm_status ivm__store_reserve(ivm__store *store, uint64_t rows) IVM_MUST_CHECK;
/* A new row of this weight after (not 0, of 31 bits), at the end and untouched: for bulk inserts. The caller writes the body, then links. */
ivm__row_id ivm__store_append(ivm__store *store, int32_t weight);
/* So many new rows of weight 1 as lie side by side in the last page, `most` at most: the place of the first. *count says how many. */
uint8_t *ivm__store_append_run(ivm__store *store, uint32_t most, uint32_t *count);
/* So many new rows of weight 1, in one go: their ids and places. */
void ivm__store_append_ones(ivm__store *store, uint32_t count, ivm__row_id *rows, uint8_t **at);
/* A new row, touched, weight before 0; may take a free id. The caller writes the body, then links. */
ivm__row_id ivm__store_insert(ivm__store *store, ivm__weight weight);
/* A new row by the cheaper of the two: under a free id where there is one, so that rows that come and go take no more room, else at the
 * end, touched only where the weight is outside 31 bits. */
ivm__row_id ivm__store_put(ivm__store *store, ivm__weight weight);
/* Takes references to the row's texts and links it into every index. Cannot fail. */
void ivm__store_link(ivm__store *store, ivm__row_id row);
/* The same for many rows, with the indexes' memory prefetched. */
void ivm__store_link_rows(ivm__store *store, const ivm__row_id *rows, uint32_t count);
/* Reserves for, puts, writes and links all rows of the chunk, equal ones too; weights are not 0. columns[c]: the chunk's column for
 * layout column c (NULL: c). */
ivm_status ivm__store_put_chunk(ivm__store *store, const ivm__chunk *chunk, const uint32_t *columns) IVM_MUST_CHECK;
/* The same of many chunks, in order, on all threads of the pool where they are worth it. The scratch arena is gone back in. */
ivm_status ivm__store_put_chunks(ivm__store *store, ivm__pool *pool, ivm__arena *scratch, ivm__chunk *const *chunks,
                                 uint32_t chunks_count) IVM_MUST_CHECK;
/* Keeps the row's weight before (and makes its page the store's own). Fails only for memory; the row is then as it was. */
ivm_status ivm__store_touch(ivm__store *store, ivm__row_id row) IVM_MUST_CHECK;
/* One row gone and another one come, both of weight 1, as an update makes them: takes `old` out and gives the id of a new row with this body,
 * linked. Room for `rows` such updates must have been made. */
ivm_status ivm__store_update_reserve(ivm__store *store, uint64_t rows) IVM_MUST_CHECK;
ivm_status ivm__store_update(ivm__store *store, ivm__row_id old, const uint8_t *row, ivm__row_id *replaced) IVM_MUST_CHECK;
/* Rows whose texts stay what they are, written in place where that may be: a copy of the body instead of two touches. Their ids stay. Between begin,
 * which keeps the old bodies and says where the rows lie, and end the caller writes cells; changed[i]: whether row i is another one now. A row is
 * overwritten once a step. Walks of changes by id do not tell of it: `overwritten` does. Fails for memory alone: nothing is kept then. */
bool ivm__store_may_overwrite(const ivm__store *store, ivm__row_id row);
ivm_status ivm__store_overwrite_begin(ivm__store *store, const ivm__row_id *rows, uint32_t count, uint8_t **at) IVM_MUST_CHECK;
void ivm__store_overwrite_end(ivm__store *store, const uint8_t *changed, uint32_t count);
/* The weight after, of a touched row. In a step it may be anything of 128 bits; when the step commits it must fit int64. */
void ivm__store_weight_set(ivm__store *store, ivm__row_id row, ivm__weight after);
/* Touches and adds. */
ivm_status ivm__store_weight_add(ivm__store *store, ivm__row_id row, ivm__weight weight) IVM_MUST_CHECK;

/* Ends the step: unlinks rows of weight 0, frees those the step before took out, keeps the touch list as the last. Cannot fail. */
void ivm__store_commit(ivm__store *store);
/* Nothing has happened in the step under way, and the last one changed nothing: a commit has nothing to do. */
static inline bool ivm__store_is_settled(const ivm__store *store)
{
    uint32_t lists = store->touched_count | store->last_count | store->overwritten.count | store->overwritten_last.count;
    return lists == 0 && store->rows_end == store->step_end && store->last_first == store->last_end && store->last_end == store->rows_end;
}
/* Ends the step as if it had not been. Cannot fail. */
void ivm__store_undo(ivm__store *store);

/* Between steps a store can be laid over with an earlier state: it then reads as if a step were under way that led from there to here, and nothing
 * may change it until it is lifted again. What the last step changed stays readable.
 *
 * Rows with ids from `first` on have come since. */
void ivm__store_lay_from(ivm__store *store, ivm__row_id first);
/* The rows of `delta`, a Z-set of the same layout, are what changed since: before = now - delta. `index`: of the store, any in which equal rows
 * have one key. Fails for memory alone; what was laid so far is then lifted by the caller. Cost: a lookup a row of the delta. */
ivm_status ivm__store_lay_delta(ivm__store *store, const struct ivm__index *index, const ivm__store *delta,
                                ivm__arena *scratch) IVM_MUST_CHECK;
/* Whether such a delta can be: *wrong is its first row that would have weighed less than `least` before, or more than `most`; IVM__ROW_NONE where
 * there is none. Nothing is laid. Fails for memory alone. Cost: as above. */
ivm_status ivm__store_lay_check(const ivm__store *store, const struct ivm__index *index, const ivm__store *delta, ivm__weight least,
                                ivm__weight most, ivm__arena *scratch, ivm__row_id *wrong) IVM_MUST_CHECK;
/* As it was before. Cannot fail. A store that is not laid over is left alone. */
void ivm__store_lift(ivm__store *store);

/* The store's index over these columns in this order, made and filled (in one pass, with the rows gone in this step) if there is none.
 * `unique`: no two rows of non-zero weight have one key (but a step's old and new row may stand side by side). */
ivm_status ivm__store_index(ivm__store *store, const uint32_t *columns, uint32_t columns_count, bool unique,
                            struct ivm__index **index) IVM_MUST_CHECK;
/* The same, given up where the call is cancelled (NULL: nobody asks): IVM_CANCELLED, of which no error tells, and there is no new index. */
struct ivm__cancel;
ivm_status ivm__store_index_unless(ivm__store *store, const uint32_t *columns, uint32_t columns_count, bool unique,
                                   const struct ivm__cancel *cancel, struct ivm__index **index) IVM_MUST_CHECK;
/* Frees every index but these (NULL: none) and the covers of those: nobody reads the store any more, and a term that does will make its own. */
void ivm__store_indexes_drop(ivm__store *store, const struct ivm__index *kept, const struct ivm__index *kept_too);
/* Frees every index made since this one was the newest, which is the first of store->indexes (NULL: since there was none). */
void ivm__store_indexes_drop_since(ivm__store *store, const struct ivm__index *newest);
/* The index over these columns if there is one; else NULL. */
struct ivm__index *ivm__store_index_find(const ivm__store *store, const uint32_t *columns, uint32_t columns_count);

/* Walks the rows whose weight under the reading is not 0, from *next on (0 at first): fills ids and weights, at most `capacity`; 0 at the
 * end. */
uint32_t ivm__store_scan(const ivm__store *store, ivm__reading reading, uint32_t *next, uint32_t capacity, ivm__row_id *rows,
                         ivm__weight *weights);
/* The same for a reader with rows set aside. */
uint32_t ivm__store_scan_aside(const ivm__store *store, ivm__reading reading, const ivm__aside *aside, uint32_t *next, uint32_t capacity,
                               ivm__row_id *rows, ivm__weight *weights);
/* What its rows weigh now, all together. Cost: a scan. */
ivm__weight ivm__store_weights_sum(const ivm__store *store);
/* Walks what the step changed so far: rows whose weight after differs from before; weights[i] = after - before. Appended rows too. */
uint32_t ivm__store_changes(const ivm__store *store, uint32_t *next, uint32_t capacity, ivm__row_id *rows, ivm__weight *weights);
/* The same for the step last committed. */
uint32_t ivm__store_changes_last(const ivm__store *store, uint32_t *next, uint32_t capacity, ivm__row_id *rows, ivm__weight *weights);
/* One column of these rows into a vector with room (nulls given where the layout may hold nulls). Prefetches. */
void ivm__store_gather(const ivm__store *store, const ivm__row_id *rows, uint32_t count, uint32_t column, ivm__vector *out);

/* A reference to the present directory; one more to a directory that the caller, on any thread, holds already; and giving it back from any thread. */
ivm__pages *ivm__pages_acquire(ivm__store *store);
ivm__pages *ivm__pages_hold(ivm__pages *pages);
void ivm__pages_release(ivm__pages *pages, ivm__memory *memory);
/* An empty directory. NULL: out of memory. */
ivm__pages *ivm__pages_create(ivm__memory *memory);
/* The node that points to the page, which is there. Cost: a load a level, of which there are log16 of the pages. */
static inline const ivm__pages *ivm__pages_leaf(const ivm__pages *pages, uint32_t page)
{
    for (uint32_t shift = pages->height * IVM__FAN_SHIFT; shift; shift -= IVM__FAN_SHIFT) {
        pages = pages->below[page >> shift & (IVM__FAN - 1)];
    }
    return pages;
}
/* The first page from `page` on that in `now` is another one than in `before`, or is there alone; `end`: there is none before that. Passes over what
 * the two have in common, so that a walk takes as long as they differ. */
uint32_t ivm__pages_differ(const ivm__pages *before, const ivm__pages *now, uint32_t page, uint32_t end);

#endif
