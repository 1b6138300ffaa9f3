"""The compiled kernel; all else about the package is in pyproject.toml.

It is optional: without a C compiler the package is installed without it. With
TEXTNB_REQUIRE_KERNEL=1 in the environment a kernel that can't be compiled is an error.
TEXTNB_KERNEL_CHECKS=1 compiles it with the bounds of all arrays checked, which is slow.
"""

import os
import runpy
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

SOURCE = runpy.run_path("textnb/runtime/native.py")
REQUIRED = os.environ.get("TEXTNB_REQUIRE_KERNEL") == "1"
CHECKED = os.environ.get("TEXTNB_KERNEL_CHECKS") == "1"


def extensions() -> list[Extension]:
    from Cython.Build import cythonize

    modules: list[Extension] = cythonize(
        [Extension(
            f"{package}.{name}", [f"{package.replace('.', '/')}/{name}.py"],
            define_macros=[("TEXTNB_SOURCE", f'"{SOURCE["digest"](package, name)}"')],
            # A product and a sum that are made one operation would give other bits than two.
            extra_compile_args=[] if sys.platform == "win32" else [
                "-O1" if CHECKED else "-O3", "-ffp-contract=off"])
            for package, names in SOURCE["PACKAGES"].items() for name in names],
        build_dir="build/checked" if CHECKED else "build/kernel",
        compiler_directives={
            "language_level": 3, "boundscheck": CHECKED, "initializedcheck": CHECKED,
            "wraparound": False, "cdivision": True})
    for module in modules:
        # Said here, as Cython makes extensions of its own from those that it is given.
        module.optional = not REQUIRED
    return modules


class Build(build_ext):
    """Extensions that are optional where there is no compiler either."""

    def build_extension(self, extension: Extension) -> None:
        try:
            super().build_extension(extension)
        except OSError as error:
            # A compiler that is not there; setuptools lets an optional extension fail by its own
            # errors alone.
            raise CompileError(f"{error}") from error


if __name__ == "__main__":
    setup(ext_modules=extensions(), cmdclass={"build_ext": Build})
