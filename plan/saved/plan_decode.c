/* Plans from bytes: read in the order in which they were written, built by the builders. See plan_code.h. Recursion is bounded by the depth that
 * builders allow. A function that fails gives NULL, and either the bytes or a builder know why. */
#include "build.h"
#include "plan_code.h"

typedef struct plan_reader {
    ivm__decode decode;
    uint32_t plans, exprs; /* how deep it is in each */
} plan_reader;

/* ---- Expressions ------------------------------------------------------------------------------------------------------------------ */

static ivm_expr *expr_read(plan_reader *it);

static void value_read(ivm__decode *decode, ivm_value *value)
{
    switch (IVM_TYPE_KIND(value->type)) {
    case IVM_BOOL:
        value->as.boolean = ivm__decode_below(decode, 1, 2);
        break;
    case IVM_FLOAT64:
        value->as.float64 = ivm__word_float(ivm__decode_number(decode, 8));
        break;
    case IVM_STRING:
        value->as.string.bytes = (const char *)ivm__decode_bytes(decode, &value->as.string.size);
        break;
    case IVM_DATE:
        value->as.date = (int32_t)(uint32_t)ivm__decode_number(decode, 4);
        break;
    case IVM_DECIMAL_KIND:
        value->as.decimal.low = ivm__decode_number(decode, 8);
        value->as.decimal.high = (int64_t)ivm__decode_number(decode, 8);
        break;
    default: /* int64 and timestamp */
        value->as.int64 = (int64_t)ivm__decode_number(decode, 8);
        break;
    }
}

/* An untyped null has no type. */
static ivm_expr *literal_read(plan_reader *it)
{
    ivm_value value = { .type = (ivm_type)ivm__decode_number(&it->decode, 4) };
    value.is_null = ivm__decode_below(&it->decode, 1, 2);
    if (value.type ? !ivm__type_is_valid(value.type) : !value.is_null) {
        it->decode.failed = true;
    }
    if (!it->decode.failed && !value.is_null) {
        value_read(&it->decode, &value);
    }
    return it->decode.failed ? NULL : ivm_literal(value);
}

/* Arguments take a byte each at least, so that memory for them is bounded by the bytes. */
static ivm_expr *call_read(plan_reader *it)
{
    const char *function = ivm__decode_text(&it->decode);
    uint32_t count = ivm__decode_count(&it->decode, 1), read = 0;
    if (it->decode.failed) {
        return NULL;
    }
    ivm_expr **arguments = ivm__allocate(&ivm__builder_memory, count * sizeof *arguments);
    if (!arguments) {
        ivm__builder_fail_memory();
        return NULL;
    }
    while (read < count && (arguments[read] = expr_read(it))) {
        read++;
    }
    ivm_expr *call = NULL;
    if (read == count) {
        call = ivm_call(function, arguments, count);
    }
    for (uint32_t i = 0; read < count && i < read; i++) {
        ivm_expr_free(arguments[i]);
    }
    ivm__release(&ivm__builder_memory, arguments, count * sizeof *arguments);
    return call;
}

static ivm_expr *cast_read(plan_reader *it)
{
    ivm_type type = ivm__decode_type(&it->decode);
    ivm_expr *value = it->decode.failed ? NULL : expr_read(it);
    return value ? ivm_cast(value, type) : NULL;
}

static ivm_expr *expr_read_kind(plan_reader *it)
{
    const char *name;
    switch (ivm__decode_below(&it->decode, 1, IVM__EXPR_CAST + 1)) {
    case IVM__EXPR_COLUMN:
        name = ivm__decode_text(&it->decode);
        return name ? ivm_column(name) : NULL;
    case IVM__EXPR_LITERAL:
        return literal_read(it);
    case IVM__EXPR_CALL:
        return call_read(it);
    default:
        return cast_read(it);
    }
}

static ivm_expr *expr_read(plan_reader *it)
{
    if (++it->exprs > IVM_PLAN_DEPTH_MAX) {
        it->decode.failed = true;
    }
    ivm_expr *expr = it->decode.failed ? NULL : expr_read_kind(it);
    it->exprs--;
    return expr;
}

/* *expr NULL: there is none. False where reading fails. */
static bool expr_read_any(plan_reader *it, ivm_expr **expr)
{
    bool some = ivm__decode_below(&it->decode, 1, 2);
    *expr = some ? expr_read(it) : NULL;
    return !it->decode.failed && (*expr || !some);
}

/* ---- What operators have: each takes the plan and gives it back, or NULL ------------------------------------------------------------ */

static bool text_read_any(plan_reader *it, const char **text)
{
    *text = ivm__decode_below(&it->decode, 1, 2) ? ivm__decode_text(&it->decode) : NULL;
    return !it->decode.failed;
}

static ivm_plan *scan_read(plan_reader *it)
{
    const char *table = ivm__decode_text(&it->decode), *alias;
    return text_read_any(it, &alias) ? ivm_plan_scan_name(table, alias) : NULL;
}

/* Of a project, or the groups of an aggregate. Only a plain column may go without a name. */
static ivm_plan *columns_read(plan_reader *it, ivm_plan *plan)
{
    uint32_t count = ivm__decode_count(&it->decode, 2);
    for (uint32_t i = 0; plan && i < count; i++) {
        const char *name;
        ivm_expr *value = text_read_any(it, &name) ? expr_read(it) : NULL;
        if (!value || (!name && value->kind != IVM__EXPR_COLUMN)) {
            it->decode.failed |= value != NULL;
            ivm_expr_free(value);
            return ivm__plan_drop(plan);
        }
        if (name) {
            plan = ivm__plan_name(plan, "a plan read from bytes", name, value);
        } else {
            plan = ivm__plan_keep(plan, value->text, strlen(value->text));
            ivm_expr_free(value);
        }
    }
    return it->decode.failed ? ivm__plan_drop(plan) : plan;
}

static ivm_plan *aggregates_read(plan_reader *it, ivm_plan *plan)
{
    uint32_t count = plan ? ivm__decode_count(&it->decode, 10) : 0;
    for (uint32_t i = 0; plan && i < count; i++) {
        const char *name = ivm__decode_text(&it->decode), *function = ivm__decode_text(&it->decode);
        ivm_expr *value, *where;
        if (!expr_read_any(it, &value)) {
            return ivm__plan_drop(plan);
        }
        plan = value ? ivm_plan_add(plan, name, function, value) : ivm__plan_add_rows(plan, name, function);
        if (!plan || !expr_read_any(it, &where)) {
            return ivm__plan_drop(plan);
        }
        plan = where ? ivm_plan_add_where(plan, where) : plan;
    }
    ivm_expr *having;
    if (!plan || !expr_read_any(it, &having)) {
        return ivm__plan_drop(plan);
    }
    return having ? ivm_plan_having(plan, having) : plan;
}

static ivm_plan *join_read(plan_reader *it, ivm__plan_op op, ivm_plan **inputs, uint32_t count)
{
    uint64_t kind = ivm__decode_below(&it->decode, 1, IVM_ANTI_JOIN + 1);
    bool inner = kind == IVM_INNER_JOIN;
    if (it->decode.failed || inner != (op == IVM__PLAN_JOIN) || (!inner && count != 2)) {
        it->decode.failed = true;
        for (uint32_t i = 0; i < count; i++) {
            ivm_plan_free(inputs[i]);
        }
        return NULL;
    }
    ivm_plan *join = inner ? ivm_plan_join_many(inputs, count, NULL) : ivm_plan_join_kind((ivm_join_kind)kind, inputs[0], inputs[1], NULL);
    uint32_t on_count = ivm__decode_count(&it->decode, 10);
    for (uint32_t i = 0; join && i < on_count; i++) {
        const char *a = ivm__decode_text(&it->decode), *b = ivm__decode_text(&it->decode);
        join = it->decode.failed ? ivm__plan_drop(join) : ivm__plan_equate(join, a, strlen(a), b, strlen(b));
    }
    ivm_expr *where;
    if (!join || !expr_read_any(it, &where)) {
        return ivm__plan_drop(join);
    }
    return where ? ivm_plan_join_where(join, where) : join;
}

static ivm_plan *set_read(plan_reader *it, ivm_plan **inputs, uint32_t count)
{
    static const ivm_set_operation operations[] = {
        [IVM__SET_UNION_ALL] = IVM_UNION_ALL,         [IVM__SET_UNION] = IVM_UNION,
        [IVM__SET_EXCEPT_ALL] = IVM_EXCEPT_ALL,       [IVM__SET_EXCEPT] = IVM_EXCEPT,
        [IVM__SET_INTERSECT_ALL] = IVM_INTERSECT_ALL, [IVM__SET_INTERSECT] = IVM_INTERSECT,
    };
    uint64_t kind = ivm__decode_below(&it->decode, 1, IVM__SET_INTERSECT + 1);
    it->decode.failed |= (kind == IVM__SET_DISTINCT) != (count == 1);
    if (it->decode.failed) {
        for (uint32_t i = 0; i < count; i++) {
            ivm_plan_free(inputs[i]);
        }
        return NULL;
    }
    return kind == IVM__SET_DISTINCT ? ivm_plan_distinct(inputs[0]) : ivm_plan_set(operations[kind], inputs, count);
}

static ivm_plan *top_k_read(plan_reader *it, ivm_plan *input)
{
    uint64_t limit = ivm__decode_number(&it->decode, 8), offset = ivm__decode_number(&it->decode, 8);
    ivm_plan *plan = ivm_plan_top_k(input, limit, offset);
    uint32_t partitions = ivm__decode_count(&it->decode, 1);
    for (uint32_t i = 0; plan && i < partitions; i++) {
        ivm_expr *value = expr_read(it);
        plan = value ? ivm_plan_partition_by(plan, value) : ivm__plan_drop(plan);
    }
    uint32_t orders = ivm__decode_count(&it->decode, 2);
    for (uint32_t i = 0; plan && i < orders; i++) {
        uint64_t how = ivm__decode_below(&it->decode, 1, 4);
        ivm_expr *value = expr_read(it);
        plan = value ? ivm_plan_order_by(plan, value, how & 1, how >> 1) : ivm__plan_drop(plan);
    }
    return plan;
}

/* ---- The tree ---------------------------------------------------------------------------------------------------------------------- */

/* Takes the inputs. */
static ivm_plan *op_read(plan_reader *it, ivm__plan_op op, ivm_plan **inputs, uint32_t count)
{
    ivm_expr *where;
    switch (op) {
    case IVM__PLAN_SCAN:
        return scan_read(it);
    case IVM__PLAN_FILTER:
        where = expr_read(it);
        return where ? ivm_plan_filter(inputs[0], where) : ivm__plan_drop(inputs[0]);
    case IVM__PLAN_PROJECT:
        return columns_read(it, ivm_plan_project(inputs[0], NULL));
    case IVM__PLAN_AGGREGATE:
        return aggregates_read(it, columns_read(it, ivm_plan_aggregate(inputs[0], NULL)));
    case IVM__PLAN_SET:
        return set_read(it, inputs, count);
    case IVM__PLAN_TOP_K:
        return top_k_read(it, inputs[0]);
    default:
        return join_read(it, op, inputs, count);
    }
}

static bool inputs_fit(ivm__plan_op op, uint32_t count)
{
    switch (op) {
    case IVM__PLAN_SCAN:
        return count == 0;
    case IVM__PLAN_JOIN:
    case IVM__PLAN_OUTER:
        return count >= 2;
    case IVM__PLAN_SET:
        return count >= 1;
    default:
        return count == 1;
    }
}

static ivm_plan *plan_read(plan_reader *it);

static ivm_plan *inputs_read(plan_reader *it, ivm__plan_op op, uint32_t count)
{
    ivm_plan **inputs = ivm__allocate(&ivm__builder_memory, count * sizeof(ivm_plan *));
    uint32_t read = 0;
    if (!inputs) {
        ivm__builder_fail_memory();
        return NULL;
    }
    while (read < count && (inputs[read] = plan_read(it))) {
        read++;
    }
    ivm_plan *plan = NULL;
    if (read == count) {
        plan = op_read(it, op, inputs, count);
    }
    for (uint32_t i = 0; read < count && i < read; i++) {
        ivm_plan_free(inputs[i]);
    }
    ivm__release(&ivm__builder_memory, inputs, count * sizeof(ivm_plan *));
    return it->decode.failed ? ivm__plan_drop(plan) : plan;
}

static ivm_plan *plan_read(plan_reader *it)
{
    ivm__plan_op op = (ivm__plan_op)ivm__decode_below(&it->decode, 1, IVM__PLAN_TOP_K + 1);
    uint32_t count = ivm__decode_count(&it->decode, 1);
    if (++it->plans > IVM_PLAN_DEPTH_MAX || !inputs_fit(op, count)) {
        it->decode.failed = true;
    }
    ivm_plan *plan = it->decode.failed ? NULL : inputs_read(it, op, count);
    it->plans--;
    return plan;
}

/* Causes of before are kept aside, so that the one judged is this plan's own. */
ivm_status ivm__plan_decode(const uint8_t *bytes, size_t size, ivm_plan **plan, ivm_error *error)
{
    plan_reader it = { .decode = { .at = bytes, .left = size } };
    ivm_error before = ivm__builder_cause_exchange((ivm_error)IVM_ERROR_INIT);
    ivm_plan *made = plan_read(&it);
    ivm_error cause = ivm__builder_cause_exchange(before);
    if (made && it.decode.left == 0) {
        *plan = made;
        return IVM_OK;
    }
    ivm_plan_free(made);
    if (cause.status == IVM_OUT_OF_MEMORY) {
        return ivm__fail_memory(error);
    }
    return ivm__fail(error, IVM_CORRUPT, "a plan that cannot be%s%s", cause.status == IVM_OK ? "" : ": ",
                     cause.status == IVM_OK ? "" : cause.message);
}
