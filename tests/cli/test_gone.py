"""What has gone answers with what to use instead, wherever it is named."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from tests.cli.conftest import Run
from textnb import TextClassifier
from textnb.cli.main import command_of
from textnb.errors import ParameterError
from textnb.export.targets.known import TARGETS, target_of
from textnb.runtime.gone import KEYS, OPTIONS, SETTINGS
from textnb.runtime.gone import TARGETS as GONE


@pytest.mark.parametrize(("verb", "option"), OPTIONS)
def test_options(run: Run, verb: str, option: str) -> None:
    command = command_of(verb)
    assert isinstance(command, click.Command)
    assert option not in {name for param in command.params for name in param.opts}
    ran = run(verb, option, "x").checked(3 if verb == "filter" else 2)
    assert ran.err.endswith(f"Error: {option} is gone: {OPTIONS[verb, option]}\n")


@pytest.mark.parametrize("target", GONE)
def test_targets(run: Run, folder: Path, target: str) -> None:
    assert target not in TARGETS
    said = f"the target {target} is gone: {GONE[target]}"
    with pytest.raises(ParameterError) as refused:
        target_of(target)
    assert str(refused.value) == f"to: {said}"
    ran = run("export", "absent.textnb", "--to", target, "-o", "out").checked(2)
    assert ran.err == f"error: --to: {said}\n"


@pytest.mark.parametrize("key", KEYS)
def test_keys_of_jobs(run: Run, folder: Path, key: str) -> None:
    Path("job.toml").write_text("")
    typed = key.replace("exports.", "exports.0.")
    ran = run("run", "job.toml", "--set", f"{typed}=1").checked(2)
    assert f"{typed}: it is gone: {KEYS[key]}\n" in ran.err


@pytest.mark.parametrize("name", SETTINGS)
def test_settings(run: Run, folder: Path, name: str) -> None:
    Path("job.toml").write_text('output = "out"\n[input]\ntrain = "x.csv"\n')
    ran = run("run", "job.toml", "--set", f"model.{name}=1").checked(2)
    assert f"model.{name}: it is gone: {SETTINGS[name]}\n" in ran.err
    with pytest.raises(ParameterError, match=f"no setting '{name}': it is gone: models keep no"):
        TextClassifier(**{name: 1})
