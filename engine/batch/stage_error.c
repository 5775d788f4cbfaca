/* What a refused batch says: the table and the row, in one line, and which of the rows that were added it is. Nothing counts them while all is well: the
 * batch is walked when it is refused. */
#include <stdio.h>

#include "staging.h"

static ivm_value cell_value(const ivm__vector *vector, uint32_t row)
{
    ivm_value value = { .type = vector->type, .is_null = ivm__is_null(vector, row) };
    if (value.is_null) {
        return value;
    }
    switch (IVM_TYPE_KIND(vector->type)) {
    case IVM_BOOL:
        value.as.boolean = ivm__word(vector, row) != 0;
        break;
    case IVM_FLOAT64:
        value.as.float64 = ivm__word_float(ivm__word(vector, row));
        break;
    case IVM_STRING:
        value.as.string.bytes = ivm__text_cell(vector, row)->bytes;
        value.as.string.size = ivm__text_cell(vector, row)->size;
        break;
    case IVM_DATE:
        value.as.date = (int32_t)ivm__word(vector, row);
        break;
    case IVM_DECIMAL_KIND: {
        ivm__wide unscaled = ivm__wide_cell(vector, row);
        value.as.decimal = (ivm_int128){ (uint64_t)unscaled, (int64_t)(unscaled >> 64) };
        break;
    }
    default:
        value.as.int64 = (int64_t)ivm__word(vector, row);
        break;
    }
    return value;
}

void ivm__stage_row_text(const ivm__chunk *chunk, const uint32_t *columns, uint32_t columns_count, uint32_t row,
                         char text[IVM__ROW_TEXT_SIZE])
{
    int used = 0;
    text[0] = 0;
    for (uint32_t c = 0; c < columns_count && used < (int)IVM__ROW_TEXT_SIZE; c++) {
        char cell[IVM_VALUE_TEXT_SIZE];
        ivm_value value = cell_value(&chunk->columns[columns ? columns[c] : c], row);
        const char *quote = value.type == IVM_STRING && !value.is_null ? "\"" : "";
        ivm_value_format(&value, cell, sizeof cell);
        used += snprintf(text + used, (size_t)((int)IVM__ROW_TEXT_SIZE - used), "%s%s%s%s%s", c ? ", " : "(", quote, cell, quote,
                         c + 1 == columns_count ? ")" : "");
    }
}

ivm_status ivm__stage_fail(ivm__step *step, const ivm_table *table, ivm_status status, const char *what, const char *row_text)
{
    return ivm__fail(step->error, status, "table %s: %s %s", table->name, what, row_text);
}

/* ---- Which row it was ------------------------------------------------------------------------------------------------------------ */

static bool values_equal(const ivm_value *a, const ivm_value *b)
{
    assert(a->type == b->type);
    if (a->is_null || b->is_null) {
        return a->is_null && b->is_null;
    }
    switch (IVM_TYPE_KIND(a->type)) {
    case IVM_BOOL:
        return a->as.boolean == b->as.boolean;
    case IVM_DATE:
        return a->as.date == b->as.date;
    case IVM_FLOAT64:
        return ivm__float_word(a->as.float64) == ivm__float_word(b->as.float64);
    case IVM_STRING:
        return a->as.string.size == b->as.string.size &&
               (a->as.string.size == 0 ||
                memcmp(a->as.string.bytes, b->as.string.bytes, a->as.string.size) == 0); /* of none the bytes may be NULL */
    case IVM_DECIMAL_KIND:
        return a->as.decimal.low == b->as.decimal.low && a->as.decimal.high == b->as.decimal.high;
    default:
        return a->as.int64 == b->as.int64;
    }
}

static bool row_equals(const ivm__part *part, uint64_t at, const ivm__stage_row *net)
{
    ivm_rows rows = { .rows_count = part->rows_count, .columns_count = part->columns_count, .columns = part->columns };
    for (uint32_t c = 0; c < net->columns_count; c++) {
        uint32_t column = net->columns ? net->columns[c] : c;
        ivm_value is = cell_value(&net->chunk->columns[column], net->row);
        ivm_value was = ivm_rows_value(&rows, part->table->types[column], at, column);
        if (!values_equal(&is, &was)) {
            return false;
        }
    }
    return true;
}

/* Whether the part's row brings a row, or takes one away. Deletions by key name no row of theirs. */
static bool row_is_of_sign(const ivm__part *part, uint64_t at, bool comes)
{
    switch (part->change) {
    case IVM_WEIGHTED:
        return comes ? ivm__weight_at(part->weights, at) > 0 : ivm__weight_at(part->weights, at) < 0;
    case IVM_DELETE:
        return !comes;
    default:
        return comes && part->change != IVM_DELETE_KEY;
    }
}

/* False: the batch does not say it so. */
static bool row_find(const ivm_batch *batch, uint64_t table_id, bool comes, const ivm__stage_row *net, uint64_t *number)
{
    uint64_t before = 0, found = 0;
    for (const ivm__part *part = batch ? batch->parts : NULL; part; part = part->next) {
        if (part->table_id != table_id) {
            continue;
        }
        for (uint64_t i = 0; i < part->rows_count && !(comes && found == 2); i++) {
            if (row_is_of_sign(part, i, comes) && row_equals(part, i, net)) {
                *number = before + i;
                found++;
            }
        }
        before += part->rows_count;
    }
    return found > 0;
}

ivm_status ivm__stage_fail_row(ivm__step *step, const ivm_table *table, ivm_status status, const char *format, ivm__stage_row net)
{
    char text[IVM__ROW_TEXT_SIZE], what[IVM_ERROR_MESSAGE_SIZE], at[32] = "";
    uint64_t number;
    ivm__stage_row_text(net.chunk, net.columns, net.columns_count, net.row, text);
    (void)snprintf(what, sizeof what, format, text);
    if (row_find(step->batch, table->id, status == IVM_DUPLICATE_KEY, &net, &number)) {
        (void)snprintf(at, sizeof at, ", row %llu", (unsigned long long)number);
    }
    return ivm__fail(step->error, status, "table %s%s: %s", table->name, at, what);
}
