"""Help: the verbs in groups, the options of one verb, and completion."""

import pytest
from click.shell_completion import ShellComplete

from textnb.cli.main import GROUPS, VERBS, app


def test_the_verbs_stand_in_five_groups(run):
    assert [*GROUPS] == ["learn", "judge", "examine", "export", "mail"]
    assert sum(map(len, GROUPS.values())) == len(VERBS) == 27
    shown = run("help").checked()
    at = [shown.out.index(f"\n{group.capitalize()}:\n") for group in GROUPS]
    assert at == sorted(at)
    assert all(f"\n  {verb} " in shown.out for verb in VERBS)
    for spelling in ("-h", "--help"):
        assert run(spelling) == shown
    # Without a verb nothing was done.
    assert run().checked(2).out == shown.out


@pytest.mark.parametrize("verb", VERBS)
def test_help_for_a_verb(run, verb):
    shown = run("help", verb).checked()
    assert shown.out.startswith(f"Usage: textnb {verb} ")
    assert run(verb, "--help") == run(verb, "-h") == shown


@pytest.mark.parametrize("verb", ["train", "tune", "validate", "test"])
def test_classes_by_patterns_are_where_a_user_looks_first(run, verb):
    assert "--classes CLASS=PATTERN,..." in run("help", verb).checked().out


def test_help_for_settings(run):
    for topic in ("set", "read"):
        shown = run("help", "train", topic).checked()
        assert shown == run("train", "--help", topic) == run("help", topic)


@pytest.mark.parametrize(("arguments", "said"), [
    (["help", "trian"], "No such command 'trian' - did you mean 'train'?"),
    (["help", "nonsense"], "No such command 'nonsense'; textnb help lists all"),
    (["hlep"], "No such command 'hlep' - did you mean 'help'?"),
    (["help", "train", "tokens"], "textnb help train has no topic 'tokens': it has read and set"),
    (["help", "run", "set"], "textnb help run has no topic 'set'"),
])
def test_a_verb_that_is_not_known(run, arguments, said):
    assert run(*arguments).checked(2).err.endswith(f"error: {said}\n")


@pytest.mark.parametrize(("words", "typed", "offered"), [
    ([], "dr", {"drift"}), (["help"], "dr", {"drift"}), (["help"], "", {*VERBS}),
    (["drift"], "--ref", {"--reference", "--reference-where"}),
])
def test_completion(words, typed, offered):
    complete = ShellComplete(app, {}, "textnb", "_TEXTNB_COMPLETE")
    assert {item.value for item in complete.get_completions(words, typed)} == offered
