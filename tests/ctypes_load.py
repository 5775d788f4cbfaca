#!/usr/bin/env python3
"""ctypes_load.py LIBRARY: loads the shared library into Python and keeps a tiny view: a join whose parent comes in the same batch.
An interpreter has no memory allocator or thread of ours; what fails here cannot be embedded."""
import ctypes
import json
import sys


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char * 256)]


class Text(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char_p), ("size", ctypes.c_size_t)]


class As(ctypes.Union):
    _fields_ = [("int64", ctypes.c_int64), ("float64", ctypes.c_double), ("string", Text), ("decimal", ctypes.c_uint64 * 2)]


class Value(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint32), ("is_null", ctypes.c_bool), ("value", As)]


class Column(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_uint32), ("not_null", ctypes.c_bool)]


class TableOptions(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("columns", ctypes.POINTER(Column)), ("columns_count", ctypes.c_size_t),
                ("key", ctypes.c_char_p), ("append_only", ctypes.c_bool)]


class Rows(ctypes.Structure):
    _fields_ = [("rows_count", ctypes.c_size_t), ("columns_count", ctypes.c_size_t), ("columns", ctypes.c_void_p),
                ("weights", ctypes.POINTER(ctypes.c_int64))]


INT64, STRING = 2, 4
PLAN = {"op": "aggregate", "group_by": ["p.name"], "aggregates": [{"as": "total", "fn": "sum", "arg": "f.amount"}],
        "input": {"op": "join", "inputs": [{"op": "scan", "table": "sale", "as": "f"}, {"op": "scan", "table": "product", "as": "p"}],
                  "on": [["f.product", "p.id"]]}}


def main(path):
    ivm = ctypes.CDLL(path)
    ivm.ivm_int64.restype, ivm.ivm_int64.argtypes = Value, [ctypes.c_int64]
    ivm.ivm_string.restype, ivm.ivm_string.argtypes = Value, [ctypes.c_char_p]
    ivm.ivm_rows_value.restype = Value
    ivm.ivm_rows_value.argtypes = [ctypes.POINTER(Rows), ctypes.c_uint32, ctypes.c_size_t, ctypes.c_size_t]
    ivm.ivm_snapshot_next.restype = ctypes.c_bool
    ivm.ivm_snapshot_close.restype = None
    ivm.ivm_batch_row.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_void_p, ctypes.c_size_t]
    error = Error()

    def call(name, *arguments):
        if getattr(ivm, name)(*arguments, ctypes.byref(error)) != 0:
            sys.exit(f"{name}: {error.status} {error.message.decode()}")

    def table(name, columns, key):
        handle = ctypes.c_void_p()
        definitions = (Column * len(columns))(*(Column(n.encode(), t, True) for n, t in columns))
        options = TableOptions(1, definitions, len(columns), key, False)
        call("ivm_table_create", engine, name, ctypes.byref(options), ctypes.byref(handle))
        return handle

    def insert(batch, handle, *values):
        row = (Value * len(values))(*values)
        if ivm.ivm_batch_row(batch, handle, 0, 1, row, len(values)) != 0:
            sys.exit("ivm_batch_row failed")

    engine, plan, view, batch, snapshot = (ctypes.c_void_p() for _ in range(5))
    call("ivm_engine_open", None, ctypes.byref(engine))
    product = table(b"product", [("id", INT64), ("name", STRING)], b"id")
    sale = table(b"sale", [("product", INT64), ("amount", INT64)], None)
    text = json.dumps(PLAN).encode()
    call("ivm_plan_from_json", text, ctypes.c_size_t(len(text)), ctypes.byref(plan))
    call("ivm_view_create", engine, b"by_name", plan, None, ctypes.byref(view))
    call("ivm_batch_create", engine, ctypes.byref(batch))
    for i in range(4):
        insert(batch, sale, ivm.ivm_int64(i % 2), ivm.ivm_int64(10 + i))
    insert(batch, product, ivm.ivm_int64(0), ivm.ivm_string(b"tea"))
    insert(batch, product, ivm.ivm_int64(1), ivm.ivm_string(b"coffee"))
    call("ivm_push_batch", engine, batch, None)
    call("ivm_read_view", view, ctypes.byref(snapshot))
    rows, got = Rows(), {}
    while ivm.ivm_snapshot_next(snapshot, ctypes.byref(rows)):
        for i in range(rows.rows_count):
            name = ivm.ivm_rows_value(ctypes.byref(rows), STRING, i, 0).value.string
            got[ctypes.string_at(name.bytes, name.size)] = ivm.ivm_rows_value(ctypes.byref(rows), INT64, i, 1).value.int64
    ivm.ivm_snapshot_close(snapshot)
    call("ivm_engine_close", engine)
    if got != {b"tea": 22, b"coffee": 24}:
        sys.exit(f"the view holds {got}")
    print("loaded and ran in Python")


main(sys.argv[1])
