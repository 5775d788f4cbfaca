/* The joins and aggregates of seven TPC-H queries with the validation values of their parameters, as plans in JSON. Filters on one table stand on its
 * scan. Sorting and limits are left out, and of q10 the customer's phone, address and comment. */
#include "tpch.h"

#define DATE(text) "{\"lit\": \"" text "\", \"type\": \"date\"}"
#define MONEY(text) "{\"lit\": \"" text "\", \"type\": \"decimal(15,2)\"}"
#define TEXT(text) "{\"lit\": \"" text "\"}"
#define SCAN(table) "{\"op\": \"scan\", \"table\": \"" table "\"}"
#define FILTER(table, where) "{\"op\": \"filter\", \"input\": " SCAN(table) ", \"where\": " where "}"
#define JOIN(inputs, on) "{\"op\": \"join\", \"inputs\": [" inputs "], \"on\": [" on "]}"
#define ON(a, b) "[\"" a "\", \"" b "\"]"
#define REVENUE "[\"*\", \"l_extendedprice\", [\"-\", 1, \"l_discount\"]]"
#define SUM(as, arg) "{\"as\": \"" as "\", \"fn\": \"sum\", \"arg\": " arg "}"
#define AVG(as, arg) "{\"as\": \"" as "\", \"fn\": \"avg\", \"arg\": " arg "}"
#define GROUP(input, by, aggregates)                                                                                                       \
    "{\"op\": \"aggregate\", \"input\": " input ", \"group_by\": [" by "], \"aggregates\": [" aggregates "]}"

#define URGENT "[\"in\", \"o_orderpriority\", " TEXT("1-URGENT") ", " TEXT("2-HIGH") "]"

/* One of the three kinds of part that q19 asks for. */
#define KIND(brand, a, b, c, d, from, to, size)                                                                                            \
    "[\"and\", [\"=\", \"p_brand\", " TEXT(brand) "], [\"in\", \"p_container\", " TEXT(a) ", " TEXT(b) ", " TEXT(c) ", " TEXT(             \
        d) "], "                                                                                                                           \
           "[\">=\", \"l_quantity\", " from "], [\"<=\", \"l_quantity\", " to "], [\">=\", \"p_size\", 1], [\"<=\", \"p_size\", " size     \
           "]]"

const tpch_query tpch_queries[TPCH_QUERIES] = {
    { "q1",
      GROUP(
          FILTER("lineitem", "[\"<=\", \"l_shipdate\", " DATE("1998-09-02") "]"), "\"l_returnflag\", \"l_linestatus\"",
          SUM("sum_qty", "\"l_quantity\"") ", " SUM("sum_base_price", "\"l_extendedprice\"") ", " SUM("sum_disc_price", REVENUE) ", " SUM(
              "sum_charge",
              "[\"*\", " REVENUE
              ", [\"+\", 1, \"l_tax\"]]") ", " AVG("avg_qty",
                                                   "\"l_quantity\"") ", " AVG("avg_price",
                                                                              "\"l_extendedprice\"") ", " AVG("avg_disc",
                                                                                                              "\"l_discount\"") ", "
                                                                                                                                "{\"as\": "
                                                                                                                                "\"count_"
                                                                                                                                "order\", "
                                                                                                                                "\"fn\": "
                                                                                                                                "\"count\""
                                                                                                                                "}") },
    { "q3", GROUP(JOIN(FILTER("customer", "[\"=\", \"c_mktsegment\", " TEXT("BUILDING") "]") ", " FILTER(
                           "orders", "[\"<\", \"o_orderdate\", " DATE(
                                         "1995-03-15") "]") ", " FILTER("lineitem", "[\">\", \"l_shipdate\", " DATE("1995-03-15") "]"),
                       ON("c_custkey", "o_custkey") ", " ON("l_orderkey", "o_orderkey")),
                  "\"l_orderkey\", \"o_orderdate\", \"o_shippriority\"", SUM("revenue", REVENUE)) },
    { "q5",
      GROUP(
          JOIN(SCAN("customer") ", " FILTER(
                   "orders",
                   "[\"and\", [\">=\", \"o_orderdate\", " DATE("1994-01-01") "], [\"<\", \"o_orderdate\", " DATE(
                       "1995-01-01") "]]") ", " SCAN("lineitem") ", " SCAN("supplier") ", " SCAN("nation") ", " FILTER("region",
                                                                                                                       "[\"=\", "
                                                                                                                       "\"r_name\", " TEXT(
                                                                                                                           "ASIA") "]"),
               ON("c_custkey", "o_custkey") ", " ON("l_orderkey", "o_orderkey") ", " ON("l_suppkey", "s_suppkey") ", " ON(
                   "c_nationkey", "s_nationkey") ", " ON("s_nationkey", "n_nationkey") ", " ON("n_regionkey", "r_regionkey")),
          "\"n_name\"", SUM("revenue", REVENUE)) },
    { "q6",
      GROUP(
          FILTER(
              "lineitem",
              "[\"and\", [\">=\", \"l_shipdate\", " DATE("1994-01-01") "], [\"<\", \"l_shipdate\", " DATE(
                  "1995-01-01") "], [\">=\", \"l_discount\", " MONEY("0.05") "], [\"<=\", \"l_discount\", " MONEY("0.07") "], [\"<\", "
                                                                                                                          "\"l_quantity\", "
                                                                                                                          "24]]"),
          "", SUM("revenue", "[\"*\", \"l_extendedprice\", \"l_discount\"]")) },
    { "q10", GROUP(JOIN(SCAN("customer") ", " FILTER(
                            "orders", "[\"and\", [\">=\", \"o_orderdate\", " DATE("1993-10-01") "], [\"<\", \"o_orderdate\", " DATE(
                                          "1994-01-01") "]]") ", " FILTER("lineitem",
                                                                          "[\"=\", \"l_returnflag\", " TEXT("R") "]") ", " SCAN("nation"),
                        ON("c_custkey", "o_custkey") ", " ON("l_orderkey", "o_orderkey") ", " ON("c_nationkey", "n_nationkey")),
                   "\"c_custkey\", \"c_name\", \"c_acctbal\", \"n_name\"", SUM("revenue", REVENUE)) },
    { "q12",
      GROUP(JOIN(SCAN("orders") ", " FILTER(
                     "lineitem", "[\"and\", [\"in\", \"l_shipmode\", " TEXT("MAIL") ", " TEXT(
                                     "SHIP") "], [\"<\", \"l_commitdate\", \"l_receiptdate\"], [\"<\", \"l_shipdate\", \"l_commitdate\"], "
                                             "[\">=\", \"l_receiptdate\", " DATE("1994-01-01") "], [\"<\", \"l_receiptdate\", " DATE(
                                                 "1995-01-01") "]]"),
                 ON("o_orderkey", "l_orderkey")),
            "\"l_shipmode\"",
            SUM("high_line_count", "[\"case\", " URGENT ", 1, 0]") ", " SUM("low_line_count", "[\"case\", " URGENT ", 0, 1]")) },
    { "q19",
      GROUP("{\"op\": \"filter\", \"input\": " JOIN(
                FILTER("lineitem", "[\"and\", [\"in\", \"l_shipmode\", " TEXT("AIR") ", " TEXT(
                                       "REG AIR") "], [\"=\", \"l_shipinstruct\", " TEXT("DELIVER IN PERSON") "]]") ", " SCAN("part"),
                ON("p_partkey", "l_partkey")) ", \"where\": [\"or\", " KIND("Brand#12", "SM CASE", "SM BOX", "SM PACK", "SM PKG", "1", "11",
                                                                            "5") ", " KIND("Brand#23", "MED BAG", "MED BOX", "MED PKG",
                                                                                           "MED PACK", "10", "20",
                                                                                           "10") ", " KIND("Brand#34", "LG CASE", "LG BOX",
                                                                                                           "LG PACK", "LG PKG", "20", "30",
                                                                                                           "15") "]}",
            "", SUM("revenue", REVENUE)) },
};
