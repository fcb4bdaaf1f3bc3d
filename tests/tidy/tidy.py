#!/usr/bin/env python3
"""The house rules that a program can check: arrows between folders, whose headers may be seen where,
lengths of files, lines and functions, words that mean unfinished work.

  tidy.py [ROOT]        checks the tree; every breach is one line FILE:LINE: what, and why it matters
  tidy.py --self-test   checks that each rule finds its breach
"""

import os
import re
import sys
import tempfile

LINES_A_FILE, COLUMNS, LINES_A_FUNCTION, LINES_A_TEST = 400, 100, 70, 100

# Who may include whom (design, section 3). A folder may always include itself.
ARROWS = {
    "src/base": [],
    "src/core": ["src/base"],
    "src/sim": ["src/base", "src/core"],
    "src/transport": ["src/base", "src/core"],
    "src/storage": ["src/base", "src/core"],
    "src/telemetry": ["src/base", "src/core"],
    "src/torch": ["src/base", "src/core", "include"],
    "actors": ["src/base", "src/core"],
    "src/app/config": ["src/base", "src/core"],
    "src/app": ["src/base", "src/core", "src/sim", "src/torch", "src/transport", "src/storage",
                "src/telemetry", "actors", "src/app/config", "include"],
    "include": ["src/base", "src/core"],
}

# Libraries that stay in their rooms: (name, pattern of the include, where it is allowed).
LIBRARIES = [
    ("torch", r"^(torch|ATen|c10)/",
     ["src/torch/", "tests/unit/torch/", "tests/layout/", "include/shoal/model.hpp",
      "include/shoal/trainer.hpp", "examples/"]),
    ("CAF", r"^caf/", ["actors/", "tests/actors/"]),
    ("TOML", r"^toml", ["src/app/config/toml_text.cpp"]),
    ("RocksDB", r"^rocksdb/", ["src/storage/", "tests/unit/storage/"]),
    ("Asio", r"^asio", ["src/transport/", "tests/unit/transport/"]),
    ("CLI11", r"^CLI/", ["src/app/"]),
]
# Pure rooms: no clock, thread, file or socket.
PURE = ["src/core/"]
IMPURE = r"^(thread|mutex|condition_variable|future|fstream|filesystem|iostream|unistd\.h|sys/.*)$"

# Split, so that this file does not hold them itself.
BANNED = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK", "not " + "implemented", "st" + "ub",
          "place" + "holder", "dum" + "my"]

CODE = (".cpp", ".hpp")
TEXT = CODE + (".py", ".toml", ".cmake", ".md", ".txt")
SKIPPED = {".git", "build", "runs", ".cache"}


def files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in SKIPPED]
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), root)
            if name.endswith(TEXT) or name in ("dev", "run"):
                yield path


def room_of(path):
    """The deepest folder of ARROWS that holds `path`."""
    rooms = [r for r in ARROWS if path.startswith(r + "/")]
    return max(rooms, key=len) if rooms else None


def target_of(include, root):
    """The file in the tree that an include names, as the compiler would find it."""
    for folder in ("src", "include", ""):
        path = os.path.join(folder, include)
        if os.path.exists(os.path.join(root, path)):
            return path
    return None


def check_include(path, include, root):
    room, target = room_of(path), target_of(include, root)
    if room is not None and target is not None:
        other = room_of(target)
        if other is not None and other != room and other not in ARROWS[room]:
            yield f"{room} must not know {other}: a wrong arrow"
    if target is None:
        for name, pattern, allowed in LIBRARIES:
            if re.match(pattern, include) and not any(path.startswith(a) for a in allowed):
                yield f"{name} is not seen outside {', '.join(allowed)}"
        if any(path.startswith(p) for p in PURE) and re.match(IMPURE, include):
            yield f"<{include}> has no place in the pure core"


def without_text(line):
    """A line without its strings, characters and comment, so that braces can be counted."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    line = re.sub(r"(?<![0-9a-fA-F])'(\\.|[^'\\])'", "' '", line)
    return line.split("//")[0]


def long_functions(lines, most):
    """(line, length) of functions of more than `most` lines: a brace that is opened by a line with a
    parameter list, outside another function, namespaces and classes not counted."""
    stack, found, raw = [], [], False
    head = ""
    for number, line in enumerate(lines, 1):
        if raw or 'R"' in line:  # a raw string may hold anything
            raw = ')"' not in line.split('R"', 1)[-1] if not raw else ')"' not in line
            continue
        code = without_text(line)
        for c in code:
            if c == "{":
                inside = any(kind == "function" for kind, _ in stack)
                scope = re.search(r"\b(namespace|class|struct|enum|union)\b[^;()]*$", head)
                is_function = not inside and scope is None and ")" in head
                stack.append(("function" if is_function else "scope", number))
                head = ""
            elif c == "}":
                if stack:
                    kind, begin = stack.pop()
                    if kind == "function" and number - begin + 1 > most:
                        found.append((begin, number - begin + 1))
                head = ""
            elif c == ";":
                head = ""
            else:
                head += c
        head += " "
    return found


def check_words(path, number, line):
    for word in BANNED:
        if re.search(r"(?<![A-Za-z])" + word + r"s?(?![A-Za-z])", line, re.IGNORECASE):
            yield f"{path}:{number}: '{word}': finish it, or open an issue"


def check_code(path, lines, root):
    if len(lines) > LINES_A_FILE:
        yield f"{path}:{len(lines)}: {len(lines)} lines, {LINES_A_FILE} at most: one idea a file"
    if path.endswith(".hpp") and not any(l.strip() == "#pragma once" for l in lines[:3]):
        yield f"{path}:1: a header opens with #pragma once"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            yield f"{path}:{number}: {len(line)} columns, {COLUMNS} at most"
        if line != line.rstrip() or "\t" in line:
            yield f"{path}:{number}: a tab, or space at the end of the line"
        include = re.match(r'\s*#include\s*[<"]([^>"]+)[>"]', line)
        if include:
            for breach in check_include(path, include.group(1), root):
                yield f"{path}:{number}: {breach}"
    most = LINES_A_TEST if path.startswith("tests/") else LINES_A_FUNCTION
    for number, length in long_functions(lines, most):
        yield f"{path}:{number}: a function of {length} lines, {most} at most"


def check(root):
    breaches = []
    for path in files(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            lines = file.read().splitlines()
        for number, line in enumerate(lines, 1):
            breaches += check_words(path, number, line)
        if path.endswith(CODE):
            breaches += check_code(path, lines, root)
    return breaches


def self_test():
    """Each rule finds its breach, and nothing else is found."""
    long_body = "int f(int x) {\n" + "  ++x;\n" * LINES_A_FUNCTION + "  return x;\n}\n"
    cases = [
        ("src/core/a.cpp", '#include "storage/s.hpp"\n', "wrong arrow"),
        ("src/core/a.cpp", '#include "base/b.hpp"\n', None),
        ("src/storage/a.cpp", '#include "telemetry/t.hpp"\n', "wrong arrow"),
        ("src/app/config/a.cpp", '#include "telemetry/t.hpp"\n', "wrong arrow"),
        ("src/app/a.cpp", '#include "telemetry/t.hpp"\n', None),
        ("src/core/a.cpp", "#include <thread>\n", "pure core"),
        ("src/sim/a.cpp", "#include <torch/torch.h>\n", "torch is not seen"),
        ("src/app/a.cpp", "#include <caf/all.hpp>\n", "CAF is not seen"),
        ("src/app/config/a.cpp", "#include <toml++/toml.h>\n", "TOML is not seen"),
        ("src/app/a.cpp", "#include <rocksdb/db.h>\n", "RocksDB is not seen"),
        ("include/shoal/a.hpp", "#pragma once\n#include <ATen/ATen.h>\n", "torch is not seen"),
        ("src/core/a.hpp", "// no guard\n", "#pragma once"),
        ("src/core/a.cpp", "//" + "x" * COLUMNS + "\n", "columns"),
        ("src/core/a.cpp", "int x;  \n", "space at the end"),
        ("src/core/a.cpp", "int x;\n" * (LINES_A_FILE + 1), "lines"),
        ("src/core/a.cpp", long_body, "a function of"),
        ("src/core/a.cpp", "namespace n {\n" + "int x;\n" * 100 + "}\n", None),
        ("src/core/a.cpp", "// " + BANNED[0] + ": later\n", "finish it"),
        ("src/core/a.cpp", "int place" + "holders;\n", "finish it"),
    ]
    failures = 0
    for path, text, expected in cases:
        with tempfile.TemporaryDirectory() as root:
            for known, content in [("src/storage/s.hpp", "#pragma once\n"),
                                   ("src/telemetry/t.hpp", "#pragma once\n"),
                                   ("src/base/b.hpp", "#pragma once\n"), (path, text)]:
                os.makedirs(os.path.dirname(os.path.join(root, known)), exist_ok=True)
                with open(os.path.join(root, known), "w", encoding="utf-8") as file:
                    file.write(content)
            found = check(root)
        right = not found if expected is None else any(expected in f for f in found)
        if not right:
            failures += 1
            print(f"self-test: {path} with {text[:40]!r}: expected {expected}, found {found}")
    return failures


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    breaches = check(os.path.abspath(root))
    print("\n".join(breaches))
    print(f"tidy: {len(breaches)} breaches")
    sys.exit(1 if breaches else 0)


if __name__ == "__main__":
    main()
