"""Test textnb with no extra, with each extra alone, with all of them, and with old libraries.

Every environment is a virtual environment in .venv/environments. The first, none, has textnb and
the libraries of its tests; the others hold what their extra adds, and see the rest in the first.
In each, all modules are imported: a module that needs an absent extra must name it. Then the tests
run that concern the extra. "lowest" has no extra, and of each library the lowest version that
pyproject.toml allows; three cases of each quick test run there, but of APART_FROM_LIBRARIES.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".venv/environments"
NONE, ALL, LOWEST = "none", "all", "lowest"
# Extras of those who develop textnb: their packages are in every environment, or in none.
DEVELOPMENT = {"test", "check", "docs"}
EXPORTS = [f"tests/export/test_{name}.py" for name in (
    "sql", "targets", "bundle", "every_plan", "answers", "errors")]
SOURCES = ["tests/frames/test_lake.py", "tests/frames/test_cloud.py", "tests/cli/test_sources.py"]
# The tests that concern an extra: the files that ask for one of its packages, and what uses them.
TESTS = {
    "onnx": ["tests/export/test_interchange.py", *EXPORTS],
    "clickhouse": EXPORTS,
    "duckdb": [*EXPORTS, "tests/frames/test_kinds.py"],
    "postgres": EXPORTS,
    "report": ["tests/evaluation/test_report.py", "tests/test_pipelines.py",
               "tests/cli/test_validate.py"],
    "browser": ["tests/evaluation/test_report_browser.py"],
    "delta": SOURCES,
    "iceberg": SOURCES,
    "database": ["tests/frames/test_database.py", "tests/cli/test_sources.py"],
    "spark": ["tests/engines", "tests/frames/test_kinds.py",
              "tests/test_sklearn_frames.py"],
    "vectors": ["tests/classifier/test_vectors.py"],
}
# Tests of what no version of a library changes: programs in C, processes and signals, servers, and
# this repository's own scripts and pages.
APART_FROM_LIBRARIES = [
    "tests/benchmarks", "tests/cli/test_streams.py", "tests/docs/test_links.py",
    "tests/export/test_c.py", "tests/filter/test_postfix.py",
    "tests/filter/test_protocol.py", "tests/filter/test_serve.py", "tests/filter/test_tell.py",
    "tests/test_environments.py",
    "tests/test_layers.py", "tests/test_tiers.py"]
IMPORTS = ["tests/test_public.py", "-k", "test_every_module_imports and installed"]
# What pytest returns where no test was collected, as a whole file may be skipped.
NO_TESTS = 5


def main() -> None:
    extras = declared()
    parser = argparse.ArgumentParser(
        prog="scripts/environments", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [NONE, *extras, ALL, LOWEST]
    parser.add_argument("names", nargs="*", metavar="NAME", default=every,
                        help=f"of {', '.join(every)}; all of them if none is named")
    parser.add_argument("--but", action="append", default=[], metavar="NAME", help="leave one out")
    parser.add_argument("--make", action="store_true",
                        help="make the environments, run nothing in them")
    arguments = parser.parse_args()
    for name in [*arguments.names, *arguments.but]:
        if name not in every:
            parser.error(f"there is no extra {name!r}; there are {', '.join(extras)}")
    failed = []
    for name in (name for name in arguments.names if name not in arguments.but):
        python = make(name, extras)
        if not arguments.make:
            codes = [run_tests(python, "--all", "-n", "0", *IMPORTS),
                     run_tests(python, "-n", "auto", *tests_of(name))]
            passed = codes in ([0, 0], [0, NO_TESTS])
            print(f"{name}: {'passed' if passed else 'FAILED'}", flush=True)
            failed += [] if passed else [name]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def declared() -> dict[str, list[str]]:
    """The extras that users install, and their requirements."""
    extras = {name: requirements
              for name, requirements in project()["optional-dependencies"].items()
              if name not in DEVELOPMENT}
    if set(extras) != set(TESTS):
        sys.exit(f"scripts/environments.py has tests for {', '.join(TESTS)}, and pyproject.toml "
                 f"declares {', '.join(extras)}: name the tests of each extra in TESTS")
    return extras


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return table


def tests_of(name: str) -> list[str]:
    if name == LOWEST:
        # A library that differs differs for most cases of a test.
        return ["--cases", "3", *(f"--ignore={path}" for path in APART_FROM_LIBRARIES), "tests"]
    return ["--all", *TESTS.get(name, ["tests"])]


def run_tests(python: Path, *arguments: str) -> int:
    return subprocess.run([python, "-m", "pytest", "-q", "-r", "fE", *arguments], cwd=ROOT,
                          check=False).returncode


def make(name: str, extras: dict[str, list[str]]) -> Path:
    """The interpreter of an environment, which is made if it is not there."""
    folder = FOLDER / name
    python, done = folder / "bin/python", folder / "made"
    if done.exists():
        return python
    base = None if name in (NONE, LOWEST) else make(NONE, extras)
    shutil.rmtree(folder, ignore_errors=True)
    print(f"{name}: making {folder.relative_to(ROOT)} ...", flush=True)
    # An environment of extras has no pip: that of its base installs into it.
    subprocess.run([sys.executable, "-m", "venv", *(["--without-pip"] if base else []), folder],
                   check=True)
    if base:
        link(base, python)
        pip(base, "--python", str(python), "install", *(
            line for extra, lines in extras.items() if name in (extra, ALL) for line in lines))
    else:
        constraints = ROOT / "constraints.txt"
        if name == LOWEST:
            locked = constraints.read_text("utf-8").splitlines()
            constraints = folder / "constraints.txt"
            constraints.write_text("\n".join(lowest_versions(locked)) + "\n", "utf-8")
        # Where it lies: `scripts/environment` has compiled its kernel there.
        pip(python, "install", "--editable", f"{ROOT}[test]", PIP_CONSTRAINT=str(constraints),
            CC="/nonexistent/cc", TEXTNB_REQUIRE_KERNEL="")
    done.touch()
    return python


def lowest_versions(locked: list[str]) -> list[str]:
    """The lowest version of each library that textnb needs; of all others, the locked one."""
    lowest: dict[str, str] = dict(re.findall(r"^([\w-]+)>=([\d.]+)$", line)[0]
                                  for line in project()["dependencies"])
    # A library may pin a part of its own, which comes with it.
    parts = tuple(f"{name}{end}" for name in lowest for end in ("-", "_"))
    return [*(f"{name}=={version}" for name, version in lowest.items()), *(
        line for line in locked if "==" in line and line.split("==")[0].lower() not in lowest
        and not line.lower().startswith(parts))]


def link(base: Path, python: Path) -> None:
    """Let one environment see the packages of another, behind its own."""
    theirs, own = site_packages(base), site_packages(python)
    (own / "base.pth").write_text(f"import site; site.addsitedir({str(theirs)!r})\n")


def site_packages(python: Path) -> Path:
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.run([python, "-c", asked], check=True, capture_output=True,
                               text=True).stdout.strip())


def pip(python: Path, *arguments: str, **variables: str) -> None:
    subprocess.run(
        [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True,
        env={**os.environ, "PIP_CONSTRAINT": str(ROOT / "constraints.txt"), **variables})


if __name__ == "__main__":
    main()
