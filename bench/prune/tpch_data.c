/* Rows after the TPC-H specification; see tpch.h. */
#include "tpch.h"

#include "arena.h"
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>

#define DATE_FIRST 8035 /* 1992-01-01 */
#define DATE_LAST 10440 /* 1998-08-02: 151 days before the last of 1998 */

const char *const tpch_regions[TPCH_REGIONS] = { "AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST" };
const char *const tpch_nations[TPCH_NATIONS] = { "ALGERIA",      "ARGENTINA",  "BRAZIL",  "CANADA",         "EGYPT",
                                                 "ETHIOPIA",     "FRANCE",     "GERMANY", "INDIA",          "INDONESIA",
                                                 "IRAN",         "IRAQ",       "JAPAN",   "JORDAN",         "KENYA",
                                                 "MOROCCO",      "MOZAMBIQUE", "PERU",    "CHINA",          "ROMANIA",
                                                 "SAUDI ARABIA", "VIETNAM",    "RUSSIA",  "UNITED KINGDOM", "UNITED STATES" };
const uint8_t tpch_nation_regions[TPCH_NATIONS] = { 0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1 };
const char *const tpch_segments[] = { "AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD" };
const char *const tpch_priorities[] = { "1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW" };
const char *const tpch_instructs[] = { "DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN" };
const char *const tpch_modes[] = { "REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB" };

void tpch_brand(char *text, uint8_t brand)
{
    snprintf(text, 16, "Brand#%d%d", brand / 5 % 5 + 1, brand % 5 + 1);
}

void tpch_container(char *text, uint8_t container)
{
    static const char *const sizes[] = { "SM", "LG", "MED", "JUMBO", "WRAP" };
    static const char *const kinds[] = { "CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM" };
    snprintf(text, 16, "%s %s", sizes[container / 8 % 5], kinds[container % 8]);
}

static uint32_t scaled(double scale, double count)
{
    double rows = scale * count;
    return rows < 4 ? 4 : (uint32_t)rows;
}

/* ---- Tables that stay ---------------------------------------------------------------------------------------------------------- */

static void others_make(tpch_data *data, random_state *random)
{
    data->customers = memory_take(data->customers_count * sizeof *data->customers);
    data->items = memory_take(data->items_count * sizeof *data->items);
    data->supplier_nations = memory_take(data->suppliers_count);
    for (uint32_t i = 0; i < data->customers_count; i++) {
        data->customers[i] = (tpch_customer){ .balance = (int64_t)random_below(random, 1099999) - 99999,
                                              .nation = (uint8_t)random_below(random, TPCH_NATIONS),
                                              .segment = (uint8_t)random_below(random, 5) };
    }
    for (uint32_t i = 0; i < data->items_count; i++) {
        data->items[i] = (tpch_item){ .brand = (uint8_t)random_below(random, 25),
                                      .container = (uint8_t)random_below(random, 40),
                                      .size = (uint8_t)(1 + random_below(random, 50)) };
    }
    for (uint32_t i = 0; i < data->suppliers_count; i++) {
        data->supplier_nations[i] = (uint8_t)random_below(random, TPCH_NATIONS);
    }
}

/* ---- Orders and lines ---------------------------------------------------------------------------------------------------------- */

/* p_retailprice of a part's key. */
static int64_t part_price(int64_t part)
{
    return 90000 + part / 10 % 20001 + 100 * (part % 1000);
}

/* The i-th of the four suppliers of a part. */
static int64_t part_supplier(int64_t part, int64_t i, int64_t suppliers)
{
    return (part + i * (suppliers / 4 + (part - 1) / suppliers)) % suppliers + 1;
}

static tpch_line line_make(const tpch_data *data, uint8_t number, int32_t date, random_state *random)
{
    int64_t part = 1 + (int64_t)random_below(random, data->items_count);
    tpch_line line = { .number = number,
                       .part = (int32_t)part,
                       .supplier = (int32_t)part_supplier(part, random_below(random, 4), data->suppliers_count),
                       .quantity = (uint8_t)(1 + random_below(random, 50)),
                       .discount = (uint8_t)random_below(random, 11),
                       .tax = (uint8_t)random_below(random, 9),
                       .ship = date + 1 + (int32_t)random_below(random, 121),
                       .commit = date + 30 + (int32_t)random_below(random, 61),
                       .instruct = (uint8_t)random_below(random, 4),
                       .mode = (uint8_t)random_below(random, 7) };
    line.price = line.quantity * part_price(part);
    line.receipt = line.ship + 1 + (int32_t)random_below(random, 30);
    line.flag = line.receipt > TPCH_NOW ? 'N' : random_below(random, 2) ? 'R' : 'A';
    return line;
}

/* Of 32 keys in a row the population has the first eight and the refresh functions the next eight. A third of the customers orders nothing. */
static tpch_order order_make(tpch_data *data, uint32_t number, random_state *random)
{
    uint32_t among = number < data->loaded ? number : number - data->loaded;
    tpch_order order = { .key = (int64_t)among / 8 * 32 + among % 8 + (number < data->loaded ? 1 : 9),
                         .date = DATE_FIRST + (int32_t)random_below(random, DATE_LAST - DATE_FIRST + 1),
                         .line_first = data->lines_count,
                         .lines_count = (uint8_t)(1 + random_below(random, 7)),
                         .priority = (uint8_t)random_below(random, 5) };
    do {
        order.customer = 1 + (int32_t)random_below(random, data->customers_count);
    } while (order.customer % 3 == 0);
    for (uint8_t i = 0; i < order.lines_count; i++) {
        data->lines[data->lines_count++] = line_make(data, (uint8_t)(i + 1), order.date, random);
    }
    return order;
}

void tpch_data_make(tpch_data *data, double scale, uint32_t refresh_sets)
{
    random_state random = { 0x9216D5D98979FB1Bull };
    *data = (tpch_data){ .customers_count = scaled(scale, 150000),
                         .items_count = scaled(scale, 200000),
                         .suppliers_count = scaled(scale, 10000),
                         .loaded = scaled(scale, 1500000),
                         .refresh_orders = scaled(scale, 1500),
                         .refresh_sets = refresh_sets };
    data->orders_count = data->loaded + refresh_sets * data->refresh_orders;
    others_make(data, &random);
    data->orders = memory_take(data->orders_count * sizeof *data->orders);
    data->lines = memory_take((size_t)data->orders_count * 7 * sizeof *data->lines);
    for (uint32_t i = 0; i < data->orders_count; i++) {
        data->orders[i] = order_make(data, i, &random);
    }
}

void tpch_data_free(tpch_data *data)
{
    free(data->customers);
    free(data->items);
    free(data->supplier_nations);
    free(data->orders);
    free(data->lines);
}
