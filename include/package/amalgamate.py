#!/usr/bin/env python3
"""amalgamate.py ROOT OUTPUT FILE=CONDITION ...: writes the library as two files, OUTPUT/ivm.h and OUTPUT/ivm.c.

ivm.h is the public headers in the order of their includes. ivm.c is the system's headers, the layers' headers, then each FILE (between
#if and #endif where it has a CONDITION: a macro, or !macro). What a file keeps to itself at file scope is named after the file there: what was
`static void threads_end` in engine/base/pool.c is `pool__threads_end`; so no source may define what a header of the system has elsewhere. Names of
the library (ivm_, IVM_) stay."""
import os
import re
import sys

TOKEN = re.compile(r"""(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(?P<directive>^[ \t]*\#(?:/\*.*?\*/|\\\n|[^\n])*)
    |(?P<name>[A-Za-z_]\w*)|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)|(?P<space>\s+)|(?P<mark>->|\.\.\.|.)""", re.S | re.M | re.X)
INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">].*')
DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)")
PUBLIC = re.compile(r"(ivm|IVM)_")
TAGGED = ("struct", "union", "enum")
# Words of a declaration that are not what is declared.
WORDS = set("""auto char const double enum extern float inline int long register restrict short signed static struct typedef union unsigned void
    volatile sizeof static_assert _Alignas _Atomic _Bool _Complex _Noreturn _Static_assert _Thread_local __attribute__ __extension__ __typeof__""".split())

HEADER = """/* ivm %s, the public headers in one. For ivm.c, which lies beside it; for C and C++. */
"""
SOURCE = """/* ivm %s, the library in one file.
 *
 *     cc -std=gnu17 -O3 -c ivm.c
 *
 * needs libc with -lm and -pthread, and xxhash.h of xxHash, which is a header alone. Parts by macro:
 *     -DIVM_WITH_JSON         ivm_plan_from_json(); needs jansson.h, -ljansson
 *     -DIVM_WITH_ZSTD         compressed blocks; needs zstd.h, -lzstd
 *     -DIVM_WITH_DURABLE=0    without the engines that live in a directory, which are there on Unix
 * Made from the sources of ivm by its target ivm_amalgamation. */
"""
LICENCE = "/*\n%s */\n\n"
START = """#define IVM_BUILDING
#include "ivm.h"

#if !defined(IVM_WITH_DURABLE) && defined(__unix__)
#define IVM_WITH_DURABLE 1
#endif

"""
# What is inside stays inside the program or library that this file becomes part of.
BEFORE = """
#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wunused-function" /* of headers, where a part is left out */
#endif
/* What gcc sees when it inlines all into all: variables set through a pointer, an error that a feed is given for as long as it lasts. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#if __GNUC__ >= 12
#pragma GCC diagnostic ignored "-Wdangling-pointer"
#endif
#endif

"""
AFTER = """
#ifdef __GNUC__
#pragma GCC diagnostic pop
#pragma GCC visibility pop
#endif
"""


class Conditions:
    """The #if a line is within, as one expression; the guard of a header is none."""

    def __init__(self):
        self.stack = []

    def see(self, line):
        found = re.match(r"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b[ \t]*(.*?)[ \t]*(/\*.*)?$", line, re.S)
        word, rest = found.group(1, 2) if found else ("", "")
        if word == "if":
            self.stack.append(rest)
        elif word == "ifdef":
            self.stack.append(f"defined({rest})")
        elif word == "ifndef":
            self.stack.append(None if rest.endswith("_H") else f"!defined({rest})")
        elif word == "else":
            self.stack[-1] = f"!({self.stack[-1]})"
        elif word == "elif":
            self.stack[-1] = f"!({self.stack[-1]}) && ({rest})"
        elif word == "endif":
            self.stack.pop()

    def now(self):
        return " && ".join(f"({condition})" for condition in self.stack if condition)


def tokens_of(text):
    return [(match.lastgroup, match.group()) for match in TOKEN.finditer(text)]


def is_name(token):
    return re.match(r"[A-Za-z_]", token) is not None


def declares(statement, names):
    """Adds what a statement at file scope declares; what is in its braces is not part of it."""
    depth, before = 0, ""
    for i, token in enumerate(statement):
        following = statement[i + 1] if i + 1 < len(statement) else ";"
        if is_name(token) and before in TAGGED and following in ("{", ";"):
            names.add(token)
        if token == "(":
            if depth == 0 and following == "*":
                names.add(statement[i + 2])
            elif depth == 0 and is_name(before) and before not in WORDS:
                names.add(before)
                return
            depth += 1
        elif token == ")":
            depth -= 1
        elif depth == 0 and is_name(token) and before not in TAGGED and following in (";", "=", "[", ","):
            names.add(token)
        before = token


def kept_to_itself(tokens):
    """The names that a source declares at file scope and that are not the library's."""
    names, statement, depth, before = set(), [], 0, ""
    for kind, token in tokens:
        if kind == "directive" and DEFINE.match(token):
            names.add(DEFINE.match(token).group(1))
        if kind in ("directive", "comment", "space"):
            continue
        if token == "}":
            depth -= 1
            if depth == 0 and "(" in statement and "=" not in statement:
                declares(statement, names)
                statement = []
        elif token == "{":
            depth += 1
            if depth == 1:
                statement.append(token)
        elif depth == 1 and "enum" in statement and "(" not in statement and before in ("{", ",") and kind == "name":
            names.add(token)
        elif depth == 0 and token == ";":
            declares(statement, names)
            statement = []
        elif depth == 0:
            statement.append(token)
        before = token
    return {name for name in names if is_name(name) and not PUBLIC.match(name) and name not in WORDS}


def renamed(tokens, names, prefix):
    """The tokens with these names prefixed, but for members: after . and ->, and where a struct declares them."""
    out, before, braces, opens_struct, offset_of = [], "", [], False, ""
    meant = [(i, token) for i, (kind, token) in enumerate(tokens) if kind not in ("comment", "space")]
    following = {i: after[1] for (i, _), after in zip(meant, meant[1:])}
    for i, (kind, token) in enumerate(tokens):
        new = token
        if kind in ("comment", "space"):
            out.append(token)
            continue
        if kind == "directive":
            new = "#" + renamed(tokens_of(token.lstrip()[1:]), names, prefix)
        elif token in names and before not in (".", "->"):
            is_member = braces and braces[-1] and before not in TAGGED and following.get(i, "") in (";", ",", "[", ":", ")")
            new = token if is_member or offset_of == "," else prefix + token
        elif token in ("struct", "union"):
            opens_struct = True
        elif token == "{":
            braces.append(opens_struct)
            opens_struct = False
        elif token == "}":
            braces.pop()
        elif token in (";", ")", "="):
            opens_struct = False
        offset_of = token if token in ("offsetof", ",") and (offset_of or token != ",") else "" if token == ")" else offset_of
        out.append(new)
        before = token
    return "".join(out)


class Amalgamation:
    def __init__(self, root, layers):
        self.root = root
        self.headers = {name: f"{os.path.relpath(folder, root)}/{name}"
                        for layer in layers for folder, _, names in os.walk(f"{root}/{layer}") for name in names if name.endswith(".h")}
        self.public, self.inside, self.seen = [], [], set()
        self.system = {}     # #include of the system's: the conditions it is under
        self.conditions = {} # header: the conditions it is included under

    def read(self, path):
        with open(f"{self.root}/{path}", encoding="utf-8") as file:
            return file.read()

    def include(self, name, condition):
        is_public = name.startswith("ivm/")
        path = f"include/{name}" if is_public else self.headers[name]
        self.conditions.setdefault(path, set()).add(condition)
        if path not in self.seen:
            self.seen.add(path)
            text = self.take(path, condition)
            (self.public if is_public else self.inside).append((path, text))

    def take(self, path, condition):
        """The text of a file without its includes, which are taken first; the system's with the #define before it."""
        conditions, lines, define = Conditions(), [], ""
        if condition:
            conditions.stack.append(condition)
        for line in self.read(path).split("\n"):
            found = INCLUDE.match(line)
            if found and found.group(1) == '"':
                self.include(found.group(2), conditions.now())
            elif found and path.startswith("include/"):
                lines.append(line)
            elif found:
                self.system.setdefault(define + line, set()).add(conditions.now())
            else:
                conditions.see(line)
                lines.append(line)
            define = line + "\n" if DEFINE.match(line) else ""
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))

    def within(self, text, conditions):
        text = text.strip("\n") + "\n"
        return text if not conditions or "" in conditions else f"#if {' || '.join(sorted(conditions))}\n{text}#endif\n"


def title(path):
    return f"/* ---- {path} {'-' * max(1, 120 - len(path))} */\n"


def main(root, output, files):
    files = [tuple(file.split("=")) for file in files]
    layers = list(dict.fromkeys(path.split("/")[0] for path, _ in files))
    one = Amalgamation(root, layers)
    one.include("ivm/ivm.h", "")
    stems, sources = [os.path.basename(path)[:-2] for path, _ in files], []
    for (path, condition), stem in zip(files, stems):
        text = one.take(path, condition)
        prefix = (path[:-2].replace("/", "_") if stems.count(stem) > 1 else stem) + "__"
        tokens = tokens_of(text)
        sources.append(title(path) + one.within(renamed(tokens, kept_to_itself(tokens), prefix), {condition}))
    numbers = dict(re.findall(r"#define IVM_VERSION_(MAJOR|MINOR|PATCH) (\d+)", one.read("include/ivm/version.h")))
    version = "{MAJOR}.{MINOR}.{PATCH}".format(**numbers)
    licence = "".join(f" * {line}".rstrip() + "\n" for line in one.read("LICENSE").strip().split("\n"))
    os.makedirs(output, exist_ok=True)
    with open(f"{output}/ivm.h", "w", encoding="utf-8") as file:
        file.write(HEADER % version + LICENCE % licence)
        file.write("\n".join(title(path) + text.strip("\n") + "\n" for path, text in one.public))
    with open(f"{output}/ivm.c", "w", encoding="utf-8") as file:
        file.write(SOURCE % version + LICENCE % licence + START)
        file.write("".join(one.within(text, conditions) for text, conditions in one.system.items()))
        file.write(BEFORE)
        file.write("\n".join(title(path) + one.within(text, one.conditions[path]) for path, text in one.inside))
        file.write("\n" + "\n".join(sources) + AFTER)


main(sys.argv[1], sys.argv[2], sys.argv[3:])
