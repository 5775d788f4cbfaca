#!/usr/bin/env python3
"""doxygen.py HEADER: the header as Doxygen wants it, on standard output: its input filter (Doxyfile.in).
doxygen.py --values HEADER...: which values of enums have no documentation, for Doxygen does not tell; the exit code is 1 if any.

A header's comments say it in a shorter way than Doxygen's:

    the first comment                     documents the file
    a comment before declarations         documents all of them, to the next blank line or comment
    a comment behind a declaration        documents it
    a comment before a struct or an enum  documents those members and values, too, that it names; of IVM_JOIN_AUTO "AUTO" is name enough
    a comment before a blank line         belongs to nothing

What is left has no documentation, and Doxygen says so. What Arrow publishes, and rulers, are passed over."""
import re
import sys

TRAILING = re.compile(r"(\S.*?)\s*/\* (.*?) \*/\s*$")


def said_as(name):
    """-> how a comment may call a member, or a value: IVM_FK_PRUNING_ROW is ROW, IVM_INNER_JOIN is INNER."""
    words = name.split("_")[1:]
    return ["_".join(words[at:end]) for at in range(len(words)) for end in range(at + 1, len(words) + 1)] if name.isupper() else [name]


def named(name, comment):
    return any(re.search(rf"\b{word}\b", comment) for word in said_as(name))


def told_of(name, comment):
    """-> what the comment says of it: from "`name`:" or "NAME:" to the next such, or where it is to be found."""
    for word in said_as(name):
        found = re.search(rf"(?:`{word}`|\b{word}): (.*?)(?=\n[ *]*`|\b[A-Z_]{{3,}}: |\*/|\Z)", comment, re.DOTALL)
        if found:
            return re.sub(r"\s*\n \* ?", " ", found.group(1)).strip()
    return "Told above."


def member(line, comment):
    """A line of a struct or an enum, each name of it documented if it is."""
    body = line.rstrip(" ,;")
    names = re.findall(r"\(\*(\w+)\)", body) or re.findall(r"(\w+)(?: = \d+|\[\w+\])?(?=,|$)", body)
    if not names or line.strip().startswith(("}", "union", "struct {", "{", "/*")):
        return line
    if all(named(name, comment) for name in names):
        return f"/** {told_of(names[0], comment)} */ {line}"
    return line


def enum_lines(line):
    """An enum that stands on one line, on several."""
    found = re.match(r"typedef enum (\w+) \{ (.*) \} (\w+);", line)
    if not found:
        return [line]
    return [f"typedef enum {found.group(1)} {{", *(f"    {value}," for value in found.group(2).split(", ")), f"}} {found.group(3)};"]


def apart(line):
    """A declaration of several members, as one of each."""
    found = re.match(r"( +)([\w ]+?) (\*?\w+(?:, \*?\w+)+);(.*)", line)
    return [f"{found.group(1)}{found.group(2)} {name};{found.group(4)}" for name in found.group(3).split(", ")] if found else [line]


def declaration_starts(line):
    return re.match(r"(IVM_API|typedef|#define|enum)\b", line)


def documented(comment, lines):
    """Declarations under one comment, each with it; behind a declaration stands more."""
    text = re.sub(r"/\*", "/**", comment, count=1)
    inside = False
    for line in (one for line in lines for part in enum_lines(line) for one in apart(part)):
        trailing = TRAILING.search(line)
        if declaration_starts(line) and not (trailing and line.startswith("#define")):
            yield text
        if trailing:
            line = f"/** {trailing.group(2)} */ {line[:trailing.end(1)]}" if re.match(" +[^ }]", line) else line.replace("/*", "/**<", 1)
        elif inside:
            line = member(line, comment)
        inside = (inside or re.search(r"\b(struct|enum|union)\b.*\{$", line)) and not line.startswith("}")
        yield line


def paragraphs(text):
    """-> (comment, lines) of what stands between blank lines."""
    text = re.sub(r"^#ifndef ARROW_C_\w+\n.*?^#endif\n", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^/\* (?:-{4}|clang-format).*\*/$", "", text, flags=re.MULTILINE)
    comment, lines = "", []
    for part in re.findall(r"^/\*(?:[^*]|\*(?!/))*\*/$|^.*$", text, re.MULTILINE):
        if part.startswith("/*") or not part:
            yield comment, lines
            comment, lines = part, []
        else:
            lines.append(part)
    yield comment, lines


def converted(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"<(\w+)>(?=.*\*/|[^/]*\n \*)", r"\\<\1\\>", text)
    first = re.match(r"/\*(.*?)\*/\n", text, re.DOTALL)
    out = [f"/** @file\n *{first.group(1)}*/"]
    for comment, lines in paragraphs(text[first.end():]):
        if not comment or not lines:
            out.append(comment)
        out.extend(documented(comment if lines else "", lines))
    return "\n".join(out)


def values_told(paths):
    """-> 1 if a value of an enum stands without a comment, and says so."""
    wanting = [(path, name) for path in paths for body in re.findall(r"\benum\b[^;{]*\{(.*?)\}", converted(path), re.DOTALL)
               for name in re.findall(r"^ *(IVM_\w+)", body, re.MULTILINE)]
    for path, name in wanting:
        print(f"{path}: {name} is not documented", file=sys.stderr)
    return 1 if wanting else 0


if sys.argv[1] == "--values":
    sys.exit(values_told(sys.argv[2:]))
print(converted(sys.argv[1]))
