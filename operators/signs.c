/* Signs: an input whose weights may be negative, told apart for its reader.
 *
 *     rows      w                         delta: as it came, net
 *     present   w where w > 0             delta: max(after, 0) - max(before, 0)
 *     support   1 where w is not 0        delta: [after != 0] - [before != 0]
 *
 * w being the net weight of a whole row, kept in a Z-set. Each is sent to its own port of the reader. Cost: one lookup a row that came, and
 * one pass over what it came to for each port. */
#include "operators.h"
#include "weights.h"

typedef struct signs {
    ivm__operator head;
    ivm__zset rows;
    ivm__signs_ports ports;
} signs;

static ivm_status signs_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    assert(port == 0 && chunk->columns_count == self->columns_count && !step->loading);
    (void)port;
    ivm_status status = ivm__zset_add(&((signs *)self)->rows, step->scratch, chunk, NULL, 1);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(step->error);
}

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
    uint32_t count = changes_tell(&it->rows.store, ids, chunk->rows_count, what, weights, rows);
    ivm__chunk told_chunk = *chunk;
    const ivm__chunk *sent = &told_chunk;
    told_chunk.weights = weights;
    if (count > 0 && count < chunk->rows_count) {
        sent = ivm__chunk_gather(step->scratch, &told_chunk, rows, count);
    }
    if (!sent) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm__operator *reader = it->head.next;
    return count > 0 && reader ? reader->class->consume(reader, step, port, sent) : IVM_OK;
}

/* The same to every port that is wanted. */
static ivm_status ports_send(signs *it, ivm__step *step, const ivm__chunk *chunk, const ivm__row_id *ids)
{
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

static ivm_status changes_send(signs *it, ivm__step *step)
{
    ivm__row_id ids[IVM__CHUNK_ROWS];
    ivm__weight weights[IVM__CHUNK_ROWS];
    uint32_t next = 0, count;
    do {
        uint32_t first = next;
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm__chunk *chunk;
        IVM_TRY(ivm__store_change_chunk(&it->rows.store, step->scratch, &next, &chunk));
        count = ivm__store_changes(&it->rows.store, &first, IVM__CHUNK_ROWS, ids, weights);
        assert(count == (chunk ? chunk->rows_count : 0));
        if (chunk) {
            IVM_TRY(ports_send(it, step, chunk, ids));
        }
        ivm__arena_back(step->scratch, mark);
    } while (count > 0);
    return IVM_OK;
}

static ivm_status signs_finish(ivm__operator *self, ivm__step *step)
{
    signs *it = (signs *)self;
    if (!ivm__touched_weights_fit(&it->rows.store)) {
        return ivm__fail(step->error, IVM_OVERFLOW, "view %s: the weight of a row is out of range", self->view);
    }
    ivm_status status = changes_send(it, step);
    return status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(step->error) : status;
}

/* ---- The operator ------------------------------------------------------------------------------------------------------------------ */

static void signs_commit(ivm__operator *self)
{
    ivm__store_commit(&((signs *)self)->rows.store);
}

static void signs_undo(ivm__operator *self)
{
    ivm__store_undo(&((signs *)self)->rows.store);
}

static void signs_free(ivm__operator *self, ivm__memory *memory)
{
    signs *it = (signs *)self;
    ivm__zset_deinit(&it->rows);
    ivm__release(memory, (void *)self->types, self->columns_count * sizeof *self->types);
    ivm__release(memory, it, sizeof *it);
}

static const ivm__operator_class signs_class = {
    .name = "signs", .consume = signs_consume, .finish = signs_finish, .commit = signs_commit, .undo = signs_undo, .free = signs_free
};

ivm_status ivm__signs_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm_type *types, uint32_t columns_count,
                             ivm__signs_ports ports, ivm__operator **made)
{
    ivm__layout *layout = NULL;
    signs *it = ivm__allocate_zeroed(memory, sizeof *it);
    ivm_type *copy = ivm__allocate(memory, columns_count * sizeof *copy);
    ivm_status status = IVM_OUT_OF_MEMORY;
    if (!it || !copy) {
        goto cleanup;
    }
    memcpy(copy, types, columns_count * sizeof *copy);
    it->head = (ivm__operator){ .class = &signs_class, .columns_count = columns_count, .types = copy };
    it->ports = ports;
    status = ivm__layout_create(memory, types, NULL, columns_count, true, &layout);
    if (status == IVM_OK) {
        status = ivm__zset_init(&it->rows, memory, texts, seed, layout);
    }
    if (status == IVM_OK) {
        *made = &it->head;
    }
cleanup:
    ivm__layout_release(layout);
    if (status != IVM_OK) {
        ivm__release(memory, it, sizeof *it);
        ivm__release(memory, copy, columns_count * sizeof *copy);
    }
    return status;
}
