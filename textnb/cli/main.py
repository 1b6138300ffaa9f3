"""The command line: thin verbs over the library.

Results go to standard output, progress and notes to standard error. Exit codes: 0 success, 1 bad
data (the file or row is named), 2 bad usage; `filter` alone has its own.
"""

from __future__ import annotations

from typing import Annotated

import typer

from textnb.cli import calibrate, duplicates, filter, mail, run, threshold, validate
from textnb.cli import export as leaving
from textnb.cli import predict as answering
from textnb.cli import test as testing
from textnb.cli import train as training
from textnb.cli import update as learning
from textnb.cli.console import out

app = typer.Typer(
    name="textnb", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    help="Text classification from a table of documents: train, test, predict, explain.",
    epilog="With Numba (the extra 'fast') much text is read faster, with the same results; "
           "TEXTNB_KERNEL=on, off or auto in the environment says when.",
)


def _show_version(asked: bool) -> None:
    if not asked:
        return
    import platform
    from importlib.metadata import version
    from importlib.util import find_spec

    # Numba alone: whether it works is seen where it is used.
    loops = "with" if find_spec("numba") is not None else "without"
    out(f"textnb {version('textnb')} (Python {platform.python_version()}, Polars "
        f"{version('polars')}, {loops} Numba for the compiled loops)")
    raise typer.Exit


@app.callback()
def common(
    version: Annotated[bool, typer.Option(
        "--version", "-V", is_eager=True, callback=_show_version,
        help="Show the version and exit.")] = False,
) -> None:
    """Text classification from a table of documents: train, test, predict, explain."""


app.command("train")(training.train)
app.command("test")(testing.run_test)
app.command("predict")(answering.predict)
app.command("top")(answering.top)
app.command("explain")(answering.explain)
app.command("mail")(mail.mail)
app.command("filter", cls=filter.JudgingCommand)(filter.filter_mail)
app.command("run")(run.run)
app.command("update")(learning.update)
app.command("forget")(learning.forget)
app.command("merge")(learning.merge)
app.command("diff")(learning.diff)
app.command("calibrate")(calibrate.calibrate)
app.command("threshold")(threshold.threshold)
app.command("validate")(validate.validate)
app.command("duplicates")(duplicates.duplicates)
app.command("export")(leaving.export)
app.command("verify")(leaving.verify)
app.command("describe")(leaving.describe)
