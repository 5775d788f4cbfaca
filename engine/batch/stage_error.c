/* What a refused batch says: the table and the row, in one line. */
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
