/* The trees of expressions: making, freeing, and what is known of a node before any row is seen.
 *
 * Whether a node can fail follows from its types alone: int64 arithmetic can, decimal arithmetic and casts can where the digits of the
 * result may pass its precision, float64 never does. */
#include "evaluate.h"

/* ---- What can fail ----------------------------------------------------------------------------------------------------------------- */

/* Digits before the point; an int64 has 19. */
static uint32_t whole_digits(ivm_type type)
{
    return ivm__type_is_wide(type) ? IVM_TYPE_PRECISION(type) - IVM_TYPE_SCALE(type) : 19;
}

static uint32_t precision(ivm_type type)
{
    return ivm__type_is_wide(type) ? IVM_TYPE_PRECISION(type) : 19;
}

/* Whether a value of the one type may not fit the other, a decimal of at least its scale. */
static bool widening_fails(ivm_type from, ivm_type to)
{
    return from && ivm__type_is_wide(to) && IVM_TYPE_KIND(from) != IVM_BOOL && whole_digits(from) > whole_digits(to);
}

static bool arithmetic_fails(const ivm__expression *node)
{
    if (!ivm__type_is_wide(node->type)) {
        return IVM_TYPE_KIND(node->type) == IVM_INT64;
    }
    ivm_type a = node->arguments[0]->type, b = node->arguments[1]->type;
    if (node->function == IVM__MULTIPLY) {
        return precision(a) + precision(b) > IVM_DECIMAL_PRECISION_MAX;
    }
    uint32_t whole = whole_digits(a) > whole_digits(b) ? whole_digits(a) : whole_digits(b);
    return whole + 1 + IVM_TYPE_SCALE(node->type) > IVM_DECIMAL_PRECISION_MAX;
}

/* INT64_MIN div -1 is the one quotient out of range. */
static bool quotient_fails(const ivm__expression *divisor)
{
    return divisor->function != IVM__LITERAL || (!divisor->is_null && (int64_t)divisor->cell == -1);
}

static bool any_widening_fails(const ivm__expression *node)
{
    for (uint32_t i = 0; i < node->arguments_count; i++) {
        if (widening_fails(node->arguments[i]->type, node->type)) {
            return true;
        }
    }
    return false;
}

bool ivm__node_fails(const ivm__expression *node)
{
    switch (node->function) {
    case IVM__ADD:
    case IVM__SUBTRACT:
    case IVM__MULTIPLY:
        return arithmetic_fails(node);
    case IVM__NEGATE:
    case IVM__ABS:
        return IVM_TYPE_KIND(node->type) == IVM_INT64;
    case IVM__DIV:
        return quotient_fails(node->arguments[1]);
    case IVM__CAST:
    case IVM__LEAST:
    case IVM__GREATEST:
        return any_widening_fails(node);
    case IVM__CONCAT: /* a string has at most IVM_STRING_SIZE_MAX bytes */
        return node->arguments_count > 1;
    default:
        return false;
    }
}

static bool node_makes_texts(const ivm__expression *node)
{
    return node->function == IVM__CONCAT || node->function == IVM__LOWER || node->function == IVM__UPPER;
}

static void mark_node(ivm__expression *node)
{
    node->fallible = ivm__node_fails(node);
    node->makes_texts = node_makes_texts(node);
    for (uint32_t i = 0; i < node->arguments_count; i++) {
        node->fallible |= node->arguments[i]->fallible;
        node->makes_texts |= node->arguments[i]->makes_texts;
    }
}

bool ivm__expression_is_fallible(const ivm__expression *expression)
{
    return expression->fallible;
}

/* ---- Trees ------------------------------------------------------------------------------------------------------------------------- */

static ivm__expression *node_make(ivm__memory *memory, ivm__function function, ivm_type type)
{
    ivm__expression *node = ivm__allocate_zeroed(memory, sizeof *node);
    if (node) {
        node->function = function;
        node->type = type;
    }
    return node;
}

static bool all_there(ivm__expression *const *arguments, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!arguments[i]) {
            return false;
        }
    }
    return true;
}

ivm__expression *ivm__expression_make(ivm__memory *memory, ivm__function function, ivm_type type, ivm__expression **arguments,
                                      uint32_t arguments_count)
{
    assert(function != IVM__COLUMN && function != IVM__LITERAL && arguments_count);
    ivm__expression *node = all_there(arguments, arguments_count) ? node_make(memory, function, type) : NULL;
    if (!node) {
        goto cleanup;
    }
    node->arguments = ivm__allocate(memory, arguments_count * sizeof(ivm__expression *));
    if (!node->arguments) {
        ivm__release(memory, node, sizeof *node);
        goto cleanup;
    }
    memcpy(node->arguments, arguments, arguments_count * sizeof(ivm__expression *));
    node->arguments_count = arguments_count;
    mark_node(node);
    return node;

cleanup:
    for (uint32_t i = 0; i < arguments_count; i++) {
        ivm__expression_free(arguments[i], memory, NULL);
    }
    return NULL;
}

ivm__expression *ivm__expression_column(ivm__memory *memory, uint32_t column, ivm_type type)
{
    ivm__expression *node = node_make(memory, IVM__COLUMN, type);
    if (node) {
        node->column = column;
    }
    return node;
}

ivm__expression *ivm__expression_literal(ivm__memory *memory, ivm__texts *texts, ivm_type type, bool is_null, ivm__wide cell)
{
    assert(type || is_null);
    ivm__expression *node = node_make(memory, IVM__LITERAL, type);
    if (!node) {
        return NULL;
    }
    node->is_null = is_null;
    node->cell = is_null ? 0 : cell;
    if (!is_null && IVM_TYPE_KIND(type) == IVM_STRING) {
        node->texts = texts;
        ivm__texts_acquire(texts, (const ivm__text *)(uintptr_t)cell);
    }
    return node;
}

void ivm__expression_free(ivm__expression *expression, ivm__memory *memory, ivm__texts *texts)
{
    if (!expression) {
        return;
    }
    assert(!texts || !expression->texts || texts == expression->texts);
    for (uint32_t i = 0; i < expression->arguments_count; i++) {
        ivm__expression_free(expression->arguments[i], memory, texts);
    }
    if (expression->texts) {
        ivm__texts_release(expression->texts, (const ivm__text *)(uintptr_t)expression->cell);
    }
    ivm__release(memory, expression->arguments, expression->arguments_count * sizeof(ivm__expression *));
    ivm__release(memory, expression, sizeof *expression);
}

void ivm__expression_mark_columns(const ivm__expression *expression, bool *read)
{
    if (expression->function == IVM__COLUMN) {
        read[expression->column] = true;
    }
    for (uint32_t i = 0; i < expression->arguments_count; i++) {
        ivm__expression_mark_columns(expression->arguments[i], read);
    }
}
