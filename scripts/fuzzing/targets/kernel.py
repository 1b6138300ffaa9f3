"""The compiled kernel in memory that is watched: texts of any plan, and linear problems.

`kernel.pyx` calls its loops. They are compiled in one module, with all sizes so small that short
texts meet every one of them: pieces of texts, tables that grow, rows that are sorted.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from Cython.Compiler import Main, Options

from textnb.runtime.native import PACKAGES

ABOUT = "the compiled kernel with sanitizers, against the plainest loops"
LONGEST = 128
_ROOT = Path(__file__).parents[3]
# Sizes that are made smaller.
_SMALLER = {
    "_PIECE_SIZE = cython.declare(cython.Py_ssize_t, 16384)":
        "_PIECE_SIZE = cython.declare(cython.Py_ssize_t, 16)",
    "_CHUNK_SIZE = cython.declare(cython.Py_ssize_t, 4096)":
        "_CHUNK_SIZE = cython.declare(cython.Py_ssize_t, 8)",
    "_MAX_INSERTION_SIZE = cython.declare(cython.Py_ssize_t, 24)":
        "_MAX_INSERTION_SIZE = cython.declare(cython.Py_ssize_t, 3)",
    "_MAX_DIGIT_BITS = cython.declare(cython.Py_ssize_t, 9)":
        "_MAX_DIGIT_BITS = cython.declare(cython.Py_ssize_t, 2)",
    "_KEY_DIGIT_BITS = cython.declare(cython.Py_ssize_t, 11)":
        "_KEY_DIGIT_BITS = cython.declare(cython.Py_ssize_t, 2)",
    "_free_slots(1 << 11)": "_free_slots(8)", "_empty(1 << 10,": "_empty(4,",
    "_empty(1 << 12,": "_empty(8,"}
_EMPTY = re.compile(r'_empty\(([^"]+), "(\w+)"\)')
# The functions of the loops, and those around them, whose memory is not watched, and whose edges do
# not count as covered.
_LOOPS = "src:*\nfun:__pyx_f_6kernel_*\n"
_AROUND = "".join(f"fun:{name}*\n" for name in (
    "__Pyx", "__pyx_memoryview", "__pyx_array", "__pyx_pw", "__pyx_pymod", "__pyx_f_6kernel_check",
    "__pyx_f_6kernel_plain"))
_SETTINGS = [bytes([loops, 1, sizes, kinds, 0, 1, 3, secret, 1, 1, 3]) for loops in range(4)
             for sizes, kinds, secret in ((3, 0, 0), (0, 15, 1), (2, 15, 1))]
_TEXTS = ("The cat sat, c++ x c# U.S. 1a $5.50 10%! £3,000.", "été longer_than_seven 日本語 cat",
          "isn't 中文文本 \u3000 ไทย İ 😀👩‍👧", "the sevenab sevenabc 1.5.5% ?!")
# What `kernel.pyx` takes for characters of scripts without spaces, which have the most tokens.
_UNSPACED = "".join(chr(code) for code in range(0x4E00, 0x4E60) if code * 2654435761 >> 7 & 3 == 2)


def build(folder: Path) -> list[str]:
    """Compile the loops and their caller."""
    translate(folder)
    library = sysconfig.get_config_var("LIBDIR")
    # The stack has no arrays, and to watch it takes half of the time.
    subprocess.run(
        ["clang", "-O2", "-gline-tables-only", "-w", "kernel.c", "-o", "kernel",
         "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all", "-mllvm",
         "-asan-stack=0", "-fno-sanitize=null,alignment,object-size",
         "-fsanitize-ignorelist=around", "-fsanitize-coverage-allowlist=loops",
         "-fsanitize-coverage-ignorelist=around", "-fno-sanitize-coverage=trace-cmp",
         f"-I{sysconfig.get_path('include')}", f"-L{library}", f"-Wl,-rpath,{library}",
         f"-lpython{sysconfig.get_config_var('LDVERSION')}"], cwd=folder, check=True)
    for number, (settings, texts) in enumerate(product(_SETTINGS, (_TEXTS, [_UNSPACED[:16]]))):
        (folder / "corpus" / str(number)).write_bytes(
            settings + b"\xff".join(text.encode() for text in texts))
    # The interpreter holds memory to the end.
    return ["env", "ASAN_OPTIONS=detect_leaks=0", f"PYTHONPATH={sysconfig.get_path('purelib')}",
            str(folder / "kernel"), "-detect_leaks=0"]


def translate(folder: Path) -> None:
    """Write the loops and their caller as one program in C, which needs no compiler."""
    source = "\n".join(_definitions())
    for old, new in _SMALLER.items():
        if old not in source:
            raise ValueError(f"{old!r} is in no loop of the kernel")
        source = source.replace(old, new)
    caller = Path(__file__).with_suffix(".pyx").read_text()
    for name, text in (("kernel.pxi", _EMPTY.sub(r"\2_array(\1)", source)), ("loops", _LOOPS),
                       ("around", _AROUND), ("kernel.pyx", caller)):
        (folder / name).write_text(text)
    # Arrays that are passed on are copied with the room for all their dimensions.
    Options.buffer_max_dims = 3
    # It has no types.
    compile_cython: Any = Main.compile
    if compile_cython(str(folder / "kernel.pyx"), language_level=3).num_errors:
        raise ValueError("kernel.pyx does not fit the loops of the kernel: see above")


def _definitions() -> Iterator[str]:
    """What the modules of the kernel define, once where several do, and callable without Python."""
    # These are the caller's.
    names = {"SOURCE", "_empty", "_free_slots"}
    for package, modules in PACKAGES.items():
        for module in modules:
            text = (_ROOT / package.replace(".", "/") / f"{module}.py").read_text()
            lines = text.splitlines()
            for node in ast.parse(text).body:
                if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign):
                    continue
                name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else node.name
                if name in names:
                    continue
                names.add(name)
                decorators = getattr(node, "decorator_list", [])
                first = min(part.lineno for part in (node, *decorators))
                yield from _callable(lines[first - 1:node.end_lineno])


def _callable(lines: list[str]) -> Iterator[str]:
    """Functions of Python become such that Cython can call without it."""
    is_cython = False
    for line in lines:
        word = line.lstrip()
        if word.startswith("def "):
            if not is_cython and not word.startswith("def __"):
                yield f"{line[:-len(word)]}@cython.ccall"
            is_cython = False
        is_cython = is_cython or word == "@cython.cfunc"
        yield line
