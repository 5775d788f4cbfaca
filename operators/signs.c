/* Signs: an input whose weights may be negative, told apart for its reader.
 *
 *     rows      w                         delta: as it came, net
 *     present   w where w > 0             delta: max(after, 0) - max(before, 0)
 *     support   1 where w is not 0        delta: [after != 0] - [before != 0]
 *
 * w being the net weight of a whole row, kept in a Z-set. Each is sent to its own port of the reader. Cost: one lookup a row that came, and
 * one pass over what it came to for each port. */
#include "delta.h"
#include "keeper.h"

typedef struct signs {
    ivm__keeper kept;
    ivm__signs_ports ports;
} signs;

/* ---- Sending ----------------------------------------------------------------------------------------------------------------------- */

typedef enum told { ROWS, PRESENT, SUPPORT } told;

static ivm__weight weight_told(ivm__weight weight, told what)
{
    return what == ROWS ? weight : what == PRESENT ? (weight > 0 ? weight : 0) : weight != 0;
}

/* weights[i]: by how much what is told of row i changed; `rows`: the positions of those that did. */
static uint32_t changes_tell(const ivm__store *store, const ivm__row_id *ids, uint32_t count, told what, ivm__weight *weights,
                             uint32_t *rows)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        ivm__weight before = ivm__store_weight(store, ids[i], IVM__READ_OLD), after = ivm__store_weight(store, ids[i], IVM__READ_CUR);
        weights[i] = weight_told(after, what) - weight_told(before, what);
        rows[kept] = i;
        kept += weights[i] != 0;
    }
    return kept;
}

/* Sends the changes of these rows, `chunk`, to a port. */
static ivm_status port_send(signs *it, ivm__step *step, const ivm__chunk *chunk, const ivm__row_id *ids, told what, uint32_t port)
{
    uint32_t *rows = ivm__arena_allocate(step->scratch, chunk->rows_count * sizeof *rows);
    ivm__weight *weights = ivm__arena_allocate(step->scratch, chunk->rows_count * sizeof *weights);
    if (!rows || !weights) {
        return IVM_OUT_OF_MEMORY;
    }
    uint32_t count = changes_tell(&it->kept.rows.store, ids, chunk->rows_count, what, weights, rows);
    ivm__chunk told_chunk = *chunk;
    const ivm__chunk *sent = &told_chunk;
    told_chunk.weights = weights;
    if (count > 0 && count < chunk->rows_count) {
        sent = ivm__chunk_gather(step->scratch, &told_chunk, rows, count);
    }
    if (!sent) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm__operator *reader = it->kept.head.next;
    return count > 0 && reader ? reader->class->consume(reader, step, port, sent) : IVM_OK;
}

/* The same to every port that is wanted. */
static ivm_status ports_send(ivm__operator *self, ivm__step *step, const ivm__chunk *chunk, const ivm__row_id *ids)
{
    signs *it = (signs *)self;
    const uint32_t ports[] = { [ROWS] = it->ports.rows, [PRESENT] = it->ports.present, [SUPPORT] = it->ports.support };
    for (told what = ROWS; what <= SUPPORT; what++) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        if (ports[what] != UINT32_MAX) {
            IVM_TRY(port_send(it, step, chunk, ids, what, ports[what]));
        }
        ivm__arena_back(step->scratch, mark);
    }
    return IVM_OK;
}

static ivm_status signs_finish(ivm__operator *self, ivm__step *step)
{
    IVM_TRY(ivm__keeper_finish(self, step));
    ivm_status status = ivm__delta_changes(self, step, &((signs *)self)->kept.rows.store, ports_send);
    return status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(step->error) : status;
}

/* ---- The operator ------------------------------------------------------------------------------------------------------------------ */

static const ivm__operator_class signs_class = { .name = "signs",
                                                 .consume = ivm__keeper_consume,
                                                 .finish = signs_finish,
                                                 .commit = ivm__keeper_commit,
                                                 .undo = ivm__keeper_undo,
                                                 .free = ivm__keeper_free,
                                                 .save = ivm__keeper_save,
                                                 .load = ivm__keeper_load,
                                                 .settle = ivm__keeper_settle };

ivm_status ivm__signs_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm_type *types, uint32_t columns_count,
                             ivm__signs_ports ports, ivm__operator **made)
{
    ivm__keeper *kept;
    IVM_TRY(ivm__keeper_create(&signs_class, sizeof(signs), memory, texts, seed, types, columns_count, &kept));
    ((signs *)kept)->ports = ports;
    *made = &kept->head;
    return IVM_OK;
}
