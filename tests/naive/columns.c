/* Columns of the oracle's tables that are renamed, come, and go. Rows are written anew, with a cell more or less. */
#include "naive.h"

#include <string.h>

void naive_column_rename(naive_table *table, size_t column, const char *name)
{
    table->columns[column].name = name;
}

/* Every row with the columns [0, kept) as they are, one at `kept` left out or put in as null, and the rest behind it. */
static void rows_rewrite(naive_pool *pool, naive_relation *rows, size_t kept, bool adds)
{
    naive_relation out;
    naive_relation_init(&out, adds ? rows->width + 1 : rows->width - 1);
    ivm_value *row = naive_take(pool, (out.width + 1) * sizeof *row);
    for (size_t r = 0; r < rows->count; r++) {
        for (size_t c = 0; c < out.width; c++) {
            size_t from = adds || c < kept ? c : c + 1;
            row[c] = adds && c == kept ? ivm_null() : naive_row(rows, r)[from];
        }
        (void)naive_row_add(&out, row, rows->weights[r]); /* as many as before */
    }
    naive_consolidate(&out);
    naive_relation_free(rows);
    *rows = out;
}

void naive_column_add(naive_database *database, naive_table *table, const char *name, ivm_type type)
{
    naive_table_column *columns = naive_take(database->pool, (table->columns_count + 1) * sizeof *columns);
    memcpy(columns, table->columns, table->columns_count * sizeof *columns);
    columns[table->columns_count] = (naive_table_column){ name, type, false, ++database->ids };
    rows_rewrite(database->pool, &table->rows, table->columns_count, true);
    table->columns = columns;
    table->columns_count++;
}

void naive_column_drop(naive_database *database, naive_table *table, size_t column)
{
    uint32_t id = table->columns[column].id;
    for (size_t i = database->facts_count; i-- > 0;) {
        const naive_fact *fact = &database->facts[i];
        bool names = false;
        for (size_t k = 0; k < fact->count; k++) {
            names |= fact->child_ids[k] == id;
        }
        if (names) {
            naive_fact_remove(database, i);
        }
    }
    rows_rewrite(database->pool, &table->rows, column, false);
    memmove(&table->columns[column], &table->columns[column + 1], (table->columns_count - column - 1) * sizeof *table->columns);
    table->columns_count--;
    for (size_t k = 0; k < table->key_count; k++) {
        table->key[k] -= table->key[k] > column;
    }
}
