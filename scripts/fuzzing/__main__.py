"""Try parts of textnb on inputs that are mutated at random, to find what its tests don't.

{targets}

A finding is an exception that is not one of textnb's, a crash, too much CPU time or memory (of a
target that is not compiled), or an answer that differs between two ways to it. Its smallest input
is written to tests/fuzz/TARGET, where the quick tests run it ever after. The exit code is 3 if
there is one, and 1 if the target does not run or is interrupted (what it tried by then counts).
Targets that are compiled need clang.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fuzzing import harness, pages


def main() -> None:
    targets = harness.names()
    listed = "\n".join(f"    {name:<10} {harness.constant(name, 'ABOUT')}" for name in targets)
    parser = argparse.ArgumentParser(prog="scripts/fuzz",
                                     description=(__doc__ or "").format(targets=listed),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=targets, metavar="TARGET")
    parser.add_argument("--seconds", type=harness.seconds, default=60.0,
                        help="how long to try inputs (60); compiling comes before it, and making "
                             "findings small after it")
    parser.add_argument("--seed", type=int, default=1,
                        help="of the mutations (1); time decides, too, what a run tries, so that a "
                             "finding is repeated by its input, not by the seed")
    parser.add_argument("--until-found", action="store_true",
                        help="end with the first finding, and don't make it small")
    parser.add_argument("--record", action="store_true",
                        help="add the run to docs/tried/fuzz.json and the page What was tried")
    arguments = parser.parse_args()
    if arguments.record:
        pages.check("fuzz")
    print(f"{arguments.target}: {arguments.seconds:.0f} s, after a start of some seconds, or a "
          "minute of compiling", file=sys.stderr, flush=True)
    ran = harness.run(arguments.target, arguments.seconds, arguments.seed, arguments.until_found)
    rate = ran.inputs / max(ran.cpu_seconds, 0.01)
    print(f"{arguments.target}: {ran.inputs:,} inputs by {ran.engine}, {rate:,.0f} per second of "
          f"CPU time, {ran.memory_mb} MB of memory" + (
              "; edges of the code that were reached: " + ", ".join(
              f"{count:,} after {at:,} inputs" for at, count in ran.edges[-4:])
              if ran.edges[-1][1] else ""))
    if not ran.findings:
        print("no findings")
    for kept, text in ran.findings.items():
        again = f"\n(again: scripts/test tests/fuzz -k {Path(kept).name})" if "/" in kept else ""
        print(f"\nfinding: {kept}{again}\n{text}")
    if arguments.record:
        from benchmarks.__main__ import machine

        pages.add("fuzz", {
            "target": arguments.target, "engine": ran.engine, "inputs": ran.inputs,
            "seconds": round(ran.cpu_seconds), "edges": ran.edges,
            "findings": sorted(ran.findings), "cpu": machine()["cpu"]})
    sys.exit(3 if ran.findings else int(ran.is_interrupted))


if __name__ == "__main__":
    with harness.stoppable():
        main()
