"""Try parts of textnb on inputs that are mutated at random, to find what its tests don't.

{targets}

A finding is an exception that is not one of textnb's, a crash, fifty times the usual CPU time or
memory, or an answer that differs between two ways to it. Its smallest input is written to
tests/fuzz/TARGET, where the quick tests run it ever after. The exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path

from fuzzing import harness, pages


def main() -> None:
    targets = {name: harness.load(name) for name in harness.names()}
    listed = "\n".join(f"    {name:<10} {target.ABOUT}" for name, target in targets.items())
    parser = argparse.ArgumentParser(prog="scripts/fuzz",
                                     description=(__doc__ or "").format(targets=listed),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=targets, metavar="TARGET")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to run (60)")
    parser.add_argument("--seed", type=int, default=1, help="of the mutations (1)")
    parser.add_argument("--until-found", action="store_true",
                        help="end with the first finding, and don't make it small")
    parser.add_argument("--record", type=Path, metavar="FILE", nargs="?", const=pages.RECORD,
                        help=f"add the run to those of a JSON file ({pages.RECORD.name}), and "
                        "write the page of runs again")
    given = parser.parse_args()
    ran = harness.run(given.target, given.seconds, given.seed, given.until_found)
    per_second = ran.inputs / max(ran.cpu_seconds, 0.01)
    print(f"{given.target}: {ran.inputs:,} inputs by {ran.engine}, {per_second:,.0f} per second of "
          f"CPU time, {ran.memory_mb} MB; edges: " + ", ".join(
              f"{count:,} after {at:,}" for at, count in ran.edges[-4:]))
    for kept, text in ran.findings.items():
        print(f"\nfinding: {kept}\n{text}")
    if given.record is not None:
        _record(given.record, given.target, ran)
    sys.exit(bool(ran.findings))


def _record(file: Path, name: str, ran: harness.Run) -> None:
    from benchmarks.__main__ import machine

    runs = [*pages.read(file), {"target": name, "engine": ran.engine, "inputs": ran.inputs,
                 "seconds": round(ran.cpu_seconds), "edges": ran.edges,
                 "findings": sorted(ran.findings), "cpu": machine()["cpu"],
                 "date": datetime.datetime.now(datetime.UTC).date().isoformat()}]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("[\n" + ",\n".join(map(json.dumps, runs)) + "\n]\n", "utf-8")
    if file == pages.RECORD:
        pages.PAGE.write_text(pages.written(runs), "utf-8")


if __name__ == "__main__":
    main()
