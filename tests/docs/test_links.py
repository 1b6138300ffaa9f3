"""Links of the documentation lead somewhere, and the reference has every public name."""

import importlib
import re
from pathlib import Path

import pytest

import textnb

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")),
         *sorted(path for path in DOCS.rglob("*.md")
                 if not {"generated", "_build"} & set(path.parts))]


def prose(page):
    """A page without its blocks of code and its code in lines."""
    return re.sub(r"`[^`\n]+`", "", re.sub(r"^```.*?^```$", "", page, flags=re.M | re.S))


def links(page):
    """Targets of links and pictures that are no URL."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if not re.match(r"[a-z]+:", target):
            yield target


def anchors(page):
    """Names of headings, as GitHub and MyST make them."""
    plain = re.sub(r"^```.*?^```$", "", page, flags=re.M | re.S)
    heads = re.findall(r"^#+ (.+)$", plain, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def broken(path):
    """Links of a page that lead nowhere. Generated pages are in no clone, where pages are read too.
    """
    found = []
    for link in links(path.read_text("utf-8")):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        has_heads = target.suffix == ".md" and target.exists()
        known = anchors(target.read_text("utf-8")) if has_heads else set()
        generated = DOCS / "generated" in target.parents
        if generated or not target.exists() or (has_heads and anchor and anchor not in known):
            found.append(link)
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(path):
    assert broken(path) == []


def test_wide_code_and_tables_show_that_they_scroll():
    conf = (DOCS / "conf.py").read_text("utf-8")
    [folder] = re.findall(r'^html_static_path = \["(.+)"\]$', conf, flags=re.M)
    [name] = re.findall(r'^html_css_files = \["(.+)"\]$', conf, flags=re.M)
    style = (DOCS / folder / name).read_text("utf-8")
    assert ".highlight pre, .table-wrapper.container {" in style
    assert "no-repeat local" in style


def test_a_link_that_leads_nowhere_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One two\n[a](page.md#one-two) [b](#one) [c](other.md) `[d](e)` [f](https://g)\n"
                    f"[h]({DOCS}/generated/commands.md)")
    assert broken(page) == ["#one", "other.md", f"{DOCS}/generated/commands.md"]


def test_every_page_is_linked_from_the_readme_or_the_index():
    listed = "".join(path.read_text("utf-8") for path in (ROOT / "README.md", DOCS / "index.md"))
    pages = {str(path.relative_to(DOCS).with_suffix("")) for path in PAGES if DOCS in path.parents}
    assert {page for page in pages - {"index"} if page not in listed} == set()


def test_every_public_name_is_in_the_reference(generate):
    names = generate.names_of_reference()
    assert sorted(name for name in names if "." not in name) == sorted(textnb.__all__)


def test_the_reference_says_of_each_name_what_its_docstring_says(generate):
    page = (DOCS / "reference" / "api.md").read_text("utf-8")
    missing = [line for name in generate.names_of_reference()
               if (line := f"| `{name}` | {generate.summary(name)} |\n") not in page]
    assert missing == []
    assert "[`load`](../generated/api/textnb.load.rst)" in generate.with_links(page)


def test_a_picture_of_the_report_has_both_themes(generate):
    page = generate.with_both_themes("a\n![Two curves](../pictures/curves.png)\nb")
    assert re.findall(r"pictures/(\S+)\n:alt: Two curves\n:class: (\S+)", page) == [
        ("curves.png", "only-light"), ("curves-dark.png", "only-dark")]
    pictures = {path.stem for path in (DOCS / "pictures").glob("*.png")}
    light = {name for name in pictures if not name.endswith("-dark")}
    assert pictures - light == {f"{name}-dark" for name in light}


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


@pytest.mark.slow
def test_pages_are_generated_from_the_program(generate):
    assert "--where" in generate.help_text("train")
    page = generate.jobs_page()
    for part in ("| `train` | str | required |", "## `[[exports]]`"):
        assert part in page
    assert "<function" not in page
    assert "<mark" in generate.explained_text()
    page = generate.from_0_1_page()
    for part in ("| train: `--pattern` | say `--set 'pattern=[a-z]+'` |",
                 "| `Drift` | import it from `textnb.evaluation.drift` |"):
        assert part in page
    picture = generate.rooms_picture()
    assert all(f">{room}/</text>" in picture for layer in generate.order() for room in layer
               if room != "errors")


NAMED = re.compile(r"`~?(textnb(?:\.[A-Za-z_]\w*)+)")
TEXTS = [*PAGES, *sorted(path for folder in ("textnb", "scripts", "corpora")
                         for path in (ROOT / folder).rglob("*.py"))]


def is_there(name):
    """Whether a dotted name is that of a module, or of what a module holds."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        missing = object()
        for part in parts[end:]:
            found = getattr(found, part, missing)
        return found is not missing
    return False


def test_modules_and_functions_that_texts_name_are_there():
    """In documentation, docstrings and comments, between backticks."""
    named: dict[str, str] = {}
    for path in TEXTS:
        if path.name != "CHANGELOG.md":
            named.update(dict.fromkeys(
                NAMED.findall(path.read_text("utf-8")), str(path.relative_to(ROOT))))
    files = (".toml", ".textnb", ".zip", ".py")
    gone = {name: place for name, place in named.items()
            if not name.endswith(files) and not is_there(name)}
    assert gone == {}
    assert len(named) > 40
    assert not is_there("textnb.text.native.source")
    assert is_there("textnb.text.tokens.Tokenizer.plan")
