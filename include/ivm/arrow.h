/* Arrow: batches from, and snapshots as, arrays and streams of Arrow's C data and C stream interfaces. Nothing of Arrow is needed: the three structs
 * below are the whole interface.
 *
 *     ivm_batch_arrow(batch, sales, IVM_INSERT, &array, &schema, NULL);              a record batch: a struct array, a field a column
 *     ivm_batch_arrow_stream(batch, sales, IVM_INSERT, &stream, NULL);               all that a stream has
 *     ivm_snapshot_arrow_stream(snapshot, &(ivm_arrow_options){ .view = totals, .weight = "weight" }, &stream, &error);
 *
 * What a field may be, by its format, for a column of a type ("=": read in place, no copy; else converted, and refused where a value is not exact):
 *
 *     column      "="                     converted                                               given out as
 *     bool        b                                                                               b
 *     int64       l                       c C s S i I L (8 to 64 bits), decimals                  l
 *     float64     g                       f; integers                                             g
 *     string      u, z (32-bit offsets)   U, Z (64-bit offsets, bytes not copied), vu, vz         u; z where asked for
 *     date        tdD                     tdm                                                     tdD
 *     timestamp   tsu: with any zone      tss: tsm: tsn:                                          tsu:UTC
 *     decimal     d:p,s of 128 bits,      d: of 32, 64 or 256 bits, another scale; integers       d:p,s
 *                 the column's scale
 *     any                                 n (all null); dictionaries of the above
 *
 * A timestamp is an instant: a zone's name changes nothing, one without a zone is taken as UTC. Strings are bytes, as everywhere in ivm: nobody looks
 * whether they are UTF-8, on the way in or out; where others may not be trusted with what is none, ask for z. Half floats, times, durations,
 * intervals, fixed-size binary, nested types and run-ends are unsupported; the message names field and format. Metadata is not looked at: an
 * extension type is what it is stored as.
 *
 * Validity is taken from the bitmap where there is one, whatever null_count says. What cannot be seen cannot be checked: that buffers are as long as
 * lengths and offsets say. */
#ifndef IVM_ARROW_H
#define IVM_ARROW_H

#include "ivm/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Arrow's own declarations, as it publishes them ------------------------------------------------------------------------------ */

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4
struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};
struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};
#endif

/* ---- Options --------------------------------------------------------------------------------------------------------------------- */

/* `weight`: the field that has the rows' weights. NULL or "": there is none. In: an integer without nulls, for IVM_WEIGHTED alone (invalid_argument
 * else); without it a row counts once. Out: an int64, behind the columns; without it a row is repeated as often as its weight says, and one of a
 * weight below 0 ends the stream (EINVAL).
 * `fields_ignored`: in: a field that is no column of the table is passed over, instead of being a type_mismatch.
 * `view`, `table`, `names`: out: where the fields' names come from: the columns of a view or table, or `names`, one a column; the first that is given
 * counts, last of all "column_0" and so on. Copied by the call.
 * `chunk_rows`: out: rows an array at most; 0: 65536. Fewer where strings come to 2 GB.
 * `strings_binary`: out: strings as z (binary) instead of u.
 * `borrowed`: out: the snapshot stays the caller's, who keeps it open until the stream is released, and does nothing else with it meanwhile. For the
 * changes that a callback is told. */
typedef struct ivm_arrow_options {
    uint32_t version; /* IVM_ARROW_OPTIONS_VERSION; 0 means 1 */
    const char *weight;
    bool fields_ignored;
    const ivm_view *view;
    const ivm_table *table;
    const char *const *names;
    uint32_t chunk_rows;
    bool strings_binary;
    bool borrowed;
} ivm_arrow_options;
#define IVM_ARROW_OPTIONS_VERSION 1u

/* ---- In -------------------------------------------------------------------------------------------------------------------------- */

/* Adds the rows of an array to a batch, as ivm_batch_columns() does. Its schema is a struct; fields are found by name, in any order: all columns of
 * the table (of its key for IVM_DELETE_KEY), and no others. `options` may be NULL.
 * Takes the array, whatever the outcome: array->release is NULL when the call returns. Buffers are read in place where the table above says so, until
 * the batch is pushed or freed: then the array is released, once, by the thread that does it and outside any lock; at once where the call fails or
 * there are no rows. The schema stays the caller's and is not needed after the call. Cost: as ivm_batch_columns(), and a pass over each column that
 * is converted.
 * Mistakes are remembered, as all of a batch: unsupported (a type), type_mismatch (a field that is missing, twice there, too many or of another type;
 * a value that the column cannot have exactly: the message names column and row), null_violation (a weight or a whole row that is null),
 * invalid_argument (an array or schema that was released, or is not built as Arrow says: lengths, offsets, buffers, children, views and dictionary
 * indexes; a field of weights that is a column), overflow (rows; strings of more than 2 GB that are converted), out_of_memory. What is read in place
 * is judged by the push, offsets of strings among it. */
IVM_API ivm_status ivm_batch_arrow(ivm_batch *batch, ivm_table *table, ivm_change change, struct ArrowArray *array,
                                   const struct ArrowSchema *schema, const ivm_arrow_options *options);

/* The same for each array of a stream, to its end. Takes the stream, whatever the outcome: it is released before the call returns, its arrays as
 * above. What was added before one failed counts for nothing: the batch is mistaken. Codes: those above, and io where the stream failed
 * (out_of_memory where it says ENOMEM): the message has its number and what it said. */
IVM_API ivm_status ivm_batch_arrow_stream(ivm_batch *batch, ivm_table *table, ivm_change change, struct ArrowArrayStream *stream,
                                          const ivm_arrow_options *options);

/* Declares a table with a column for each field of a schema, but for that of weights: of the type in whose line the field's format stands above,
 * not_null where the field is not nullable. `options` say the rest and have no columns of their own; they and `arrow` may be NULL. The schema stays
 * the caller's. Codes: those of ivm_table_create(), and unsupported (a field's type), invalid_argument (a schema that is no struct or was released;
 * columns in `options`). */
IVM_API ivm_status ivm_table_create_arrow(ivm_engine *engine, const char *name, const struct ArrowSchema *schema,
                                          const ivm_table_options *options, const ivm_arrow_options *arrow, ivm_table **table,
                                          ivm_error *error) IVM_MUST_CHECK;

/* ---- Out ------------------------------------------------------------------------------------------------------------------------- */

/* Makes *stream one of a snapshot's rows, be they of a view, a table, or changes, from the first on, in the order of the cursor (ivm_snapshot_sort()
 * first, where an order is wanted, or equal rows of a bag as one). `options` may be NULL. Takes the snapshot, whatever the outcome, unless it is
 * borrowed: it is closed when the stream is released, at once where the call fails. The caller releases the stream, and before the engine is closed.
 * Arrays and schemas own what they show and outlive stream, snapshot and engine; their memory is of the engine's allocator, which must live as long,
 * and is not in bytes_held. Cost: a copy of the rows, an array at a time.
 * The stream's calls give ENOMEM, EINVAL (a weight below 0 without a field for it; its last error names the weight) or EOVERFLOW (a row that fits no
 * array); get_next gives the same again after one. One thread at a time, any.
 * Codes: invalid_argument (a name that is NULL, a view or table of other columns, a weight's name that is a column's, no stream), unsupported
 * (options of a newer version), out_of_memory. */
IVM_API ivm_status ivm_snapshot_arrow_stream(ivm_snapshot *snapshot, const ivm_arrow_options *options, struct ArrowArrayStream *stream,
                                             ivm_error *error) IVM_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
