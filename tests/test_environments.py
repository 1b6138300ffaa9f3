"""The script that tests each extra alone knows the tests of all of them."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def environments():
    spec = importlib.util.spec_from_file_location("environments", ROOT / "scripts/environments.py")
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_extra_has_tests(environments):
    extras = environments.declared()
    assert {"onnx", "spark"} < set(extras)
    for paths in [*environments.TESTS.values(), environments.APART_FROM_LIBRARIES]:
        assert [path for path in paths if not (ROOT / path).exists()] == []


def test_an_extra_without_tests_is_refused(environments, monkeypatch):
    monkeypatch.delitem(environments.TESTS, "onnx")
    with pytest.raises(SystemExit, match="name the tests of each extra in TESTS"):
        environments.declared()


def test_an_unknown_environment_is_refused(environments, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["environments", "onxn"])
    with pytest.raises(SystemExit):
        environments.main()
    assert "there is no extra 'onxn'; there are onnx, " in capsys.readouterr().err


def test_one_environment_sees_another(environments, tmp_path):
    """Behind its own packages."""
    pythons = []
    for name in ("base", "layer"):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / name], check=True)
        pythons.append(tmp_path / name / "bin/python")
        folder = environments.site_packages(pythons[-1])
        (folder / "both.py").write_text(f"home = {name!r}\n")
        (folder / f"only_{name}.py").write_text("")
    base, layer = pythons
    environments.link(base, layer)
    asked = "import both, only_base, only_layer; print(both.home)"
    ran = subprocess.run([layer, "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout == "layer\n"
    assert subprocess.run([base, "-c", "import only_layer"], capture_output=True,
                          check=False).returncode == 1
