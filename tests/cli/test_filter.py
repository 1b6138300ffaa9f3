"""textnb filter: one message on standard input, or the new ones of a Maildir."""

from __future__ import annotations

import builtins
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from tests.cli.conftest import PROGRAM, Run, finished, start
from tests.tiers import examples
from textnb import Calibration, Decision, TextClassifier, load
from textnb.cli.filter import alone
from textnb.filter.maildir import read_content

ROWS = pl.DataFrame({
    "body": ["cheap pills", "a prize for you", "see you at noon", "the minutes"] * 5,
    "label": ["spam", "spam", "ham", "ham"] * 5})
SPAM, HAM, OTHER = (b"Subject: a\n\ncheap pills\n", b"Subject: a\n\nthe noon minutes\n",
                    b"Subject: a\n\nunheard of\n")


@pytest.fixture
def model(folder: Path) -> Path:
    TextClassifier(text="body").fit(ROWS).save(folder / "mail.textnb")
    return folder / "mail.textnb"


@pytest.mark.parametrize(("message", "code", "status"), [
    (SPAM, 0, "spam"), (HAM, 1, "ham"), (OTHER, 2, "unsure")])
def test_the_verdict_is_the_exit_code(
    run: Run, model: Path, message: bytes, code: int, status: str
) -> None:
    ran = run("filter", model, input=message).checked(code)
    name, odds = ran.out.split()
    assert name == status
    assert (float(odds) > 0) == (status == "spam")
    assert ("no word of the message was learned" in ran.err) == (code == 2)
    assert run("filter", model, "--exit-zero", input=message).checked(0).out == ran.out
    told = json.loads(run("filter", model, "--format", "json", input=message).out)
    assert told["status"] == status
    assert set(told) == {
        "status", "log_odds", "measure", "probability", "calibrated", "reason", "errors",
        "since_fit"}


def test_what_is_stale_is_told(run: Run, model: Path) -> None:
    fitted = load(model)
    assert isinstance(fitted, TextClassifier)
    decision = Decision({"ham": 0.0, "spam": 0.0}, "spam")
    fitted.set_decision(decision).set_calibration(Calibration(2.0)).save(model)
    plain = run("filter", model, input=SPAM)
    assert (plain.code, plain.out.split()[0]) == (0, "spam")
    assert plain.err.startswith("note: the model's decision is stale: the model's calibration has")
    # With cutoffs of its own the decision has no part in it.
    assert run("filter", model, "--spam-cutoff", "0.9", input=SPAM).err == ""


@pytest.mark.sweep(2)
@pytest.mark.parametrize("arguments", [
    ["--no-such-option"], [], ["mail.textnb", "--min-learned", "x"], ["none.textnb"]])
def test_every_failure_is_3(model: Path, arguments: list[str]) -> None:
    ran = finished(start("filter", *arguments), SPAM).checked(3)
    assert ran.out == ""
    assert ran.err


@pytest.mark.parametrize("arguments", [
    ["mail.textnb", "--format", "xml"], ["mail.textnb", "--spam-class", "junk"],
    ["mail.textnb", "--spam-cutoff", "2"],
    ["mail.textnb", "--spam-cutoff", "0.4", "--ham-cutoff", "0.6"],
    ["mail.textnb", "--min-learned", "-1"], ["mail.textnb", "--min-learned", "x"],
    ["mail.textnb", "--dry-run"], ["mail.textnb", "--maildir", "nowhere"],
    ["mail.textnb", "--maildir", ".", "--passthrough"], ["notes.txt"],
])
def test_what_can_not_be_done_is_3(run: Run, model: Path, arguments: list[str]) -> None:
    Path("notes.txt").write_text("no model")
    ran = run("filter", *arguments, input=SPAM).checked(3)
    assert ran.out == ""
    assert ran.err


def test_an_empty_message_is_an_error(model: Path) -> None:
    assert "it is empty" in finished(start("filter", model), b"").checked(3).err


@pytest.mark.parametrize("message", [
    SPAM, SPAM.replace(b"\n", b"\r\n"), b"From a@b Mon Jan  1 00:00:00 2024\n" + SPAM,
    b"\n\ncheap pills", b"cheap pills", b"\xff\0\n\xfe cheap pills \r\r\n",
    b"From a@b Mon\r\n" + SPAM.replace(b"\n", b"\r\n"), b"X-Textnb-Status: ham\n" + SPAM,
], ids=range(8))
def test_passthrough_adds_one_line(model: Path, message: bytes) -> None:
    ran = CliRunner().invoke(
        alone, ["filter", str(model), "-p", "-e"], message, catch_exceptions=False)
    assert ran.exit_code == 0
    out = ran.stdout_bytes
    at = out.index(b"X-Textnb-Status: ")
    end = out.index(b"\n", at) + 1
    assert out[:at] + out[end:] == message
    line = out[at:end]
    assert line.endswith(b"\r\n") == message.partition(b"\n")[0].endswith(b"\r")
    assert b"; log-odds=" in line
    assert b"; calibrated=no" in line
    assert out.startswith(b"From " if message.startswith(b"From ") else b"X-Textnb")


def test_passthrough_loses_no_message(folder: Path) -> None:
    with start("filter", "none.textnb", "--passthrough") as process:
        out, err = process.communicate(SPAM, timeout=60)
    assert (process.returncode, out) == (3, SPAM)
    assert b"no such model file" in err


def test_a_reader_that_has_gone_is_no_spam(model: Path) -> None:
    message = SPAM + b"x" * (1 << 20)
    with start("filter", model, "-p") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write(message)
        process.stdin.close()
        assert process.wait(60) == 3


def test_an_interrupt_is_no_verdict(model: Path) -> None:
    with start("filter", model) as process:
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 3


def test_a_full_disk_is_no_verdict(model: Path) -> None:
    with open("/dev/full", "wb") as full:
        ran = subprocess.run([*PROGRAM, "filter", str(model), "-p"], input=SPAM, stdout=full,
                             stderr=subprocess.PIPE, timeout=60)
    assert ran.returncode == 3
    assert b"No space left" in ran.stderr


def test_thresholds(run: Run, model: Path) -> None:
    assert run("filter", model, "--spam-cutoff", "0.999999", input=SPAM).checked(1)
    doubt = run("filter", model, "--spam-cutoff", "0.999999", "--ham-cutoff", "0.01", input=SPAM)
    assert doubt.checked(2).out.startswith("unsure")
    fitted = load(model)
    assert isinstance(fitted, TextClassifier)
    fitted.set_decision(Decision({"ham": -1.0, "spam": 50.0}, "spam")).save(model)
    run("filter", model, input=SPAM).checked(2)
    run("filter", model, "--spam-cutoff", "0.5", input=SPAM).checked(0)


def test_a_wrong_count_names_its_option(run: Run, model: Path) -> None:
    ran = run("filter", model, "--min-learned", "-5", input=SPAM).checked(3)
    assert "Invalid value for '--min-learned': -5 is not in the range x>=0." in ran.err
    for seconds in ("inf", "nan", "-1"):
        assert "--timeout must be seconds from 0" in run(
            "filter", model, "--timeout", seconds, input=SPAM).checked(3).err


@pytest.mark.parametrize("quick", [True, False])
def test_a_decision_for_ham_is_no_filter_of_ham(run: Run, model: Path, quick: bool) -> None:
    held = model.parent / "held.parquet"
    ROWS.write_parquet(held)
    ran = run("threshold", model, held, "--class", "ham", "--costs", "1,1").checked()
    assert "textnb filter now needs --spam-class spam" in ran.err
    arguments = ["filter", model]
    if quick:
        refused = finished(start(*arguments), SPAM)
        judged = finished(start(*arguments, "--spam-class", "spam"), SPAM)
    else:
        refused = run(*arguments, input=SPAM)
        judged = run(*arguments, "--spam-class", "spam", input=SPAM)
    assert refused.checked(3).out == ""
    assert "Say which of them is filtered out (--spam-class spam)" in refused.err
    assert judged.checked(0).out.startswith("spam")
    ran = run("threshold", model, held, "--class", "spam", "--costs", "1,1").checked()
    assert "--spam-class" not in ran.err


def test_too_little_learned_is_said(run: Run, folder: Path) -> None:
    TextClassifier(text="body").fit(ROWS.head(4)).save("few.textnb")
    ran = run("filter", "few.textnb", input=SPAM).checked(2)
    assert "too little was learned to judge: 2 spam and 2 others" in ran.err
    run("filter", "few.textnb", "--min-learned", "2", input=SPAM).checked(0)


@pytest.fixture
def maildir(folder: Path) -> Path:
    for part in ("cur", "new", "tmp"):
        (folder / "Mail" / part).mkdir(parents=True)
    for name, message in (("1.spam", SPAM), ("2.ham", HAM), ("3.other", OTHER)):
        (folder / "Mail" / "new" / name).write_bytes(message)
    (folder / "Mail" / "cur" / "0.seen:2,S").write_bytes(SPAM)
    return folder / "Mail"


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_maildir_is_filed(run: Run, model: Path, maildir: Path) -> None:
    dry = run("filter", model, "--maildir", maildir, "--dry-run").checked()
    assert files(maildir) == ["cur/0.seen:2,S", "new/1.spam", "new/2.ham", "new/3.other"]
    ran = run("filter", model, "--maildir", maildir).checked()
    assert ran.out == dry.out
    assert [line.split()[0] for line in ran.out.splitlines()] == ["spam", "ham", "unsure"]
    assert "1 spam, 1 ham, 1 unsure" in ran.err
    assert files(maildir) == [
        ".Spam/new/1.spam", ".textnb-judged", "cur/0.seen:2,S", "new/2.ham", "new/3.other"]
    assert (maildir / ".Spam" / "new" / "1.spam").read_bytes() == SPAM
    again = run("filter", model, "--maildir", maildir, "--unsure-folder", ".Maybe", "--format",
                "json").checked()
    told = [json.loads(line) for line in again.out.splitlines()]
    assert [entry["status"] for entry in told] == ["ham", "unsure"]
    assert ".Maybe/new/3.other" in files(maildir)


def test_what_was_judged_is_not_judged_again(run: Run, model: Path, maildir: Path) -> None:
    def judged(*arguments: str) -> list[str]:
        ran = run("filter", model, "--maildir", maildir, *arguments).checked()
        return [line.split("/")[-1] for line in ran.out.splitlines()]

    assert judged("--dry-run") == judged() == ["1.spam", "2.ham", "3.other"]
    assert judged() == judged("--dry-run") == []
    (maildir / "new" / "4.ham").write_bytes(HAM)
    ran = run("filter", model, "--maildir", maildir).checked()
    assert ran.err.splitlines()[0] == "0 spam, 1 ham, 0 unsure, 2 judged before"
    # Other settings, a name that is used again, and another model are judged again.
    assert judged("--ham-cutoff", "0.1", "--spam-cutoff", "0.9") == ["2.ham", "3.other", "4.ham"]
    assert judged() == ["2.ham", "3.other", "4.ham"]
    (maildir / "new" / "4.ham").write_bytes(HAM * 2)
    assert judged() == ["4.ham"]
    TextClassifier(text="body").fit(pl.concat([ROWS, ROWS])).save(model)
    assert judged() == ["2.ham", "3.other", "4.ham"]
    # What has gone is forgotten.
    (maildir / "new" / "2.ham").rename(maildir / "cur" / "2.ham:2,S")
    (maildir / "new" / "5.ham").write_bytes(HAM)
    assert judged() == ["5.ham"]
    ledger = json.loads((maildir / ".textnb-judged").read_text())
    assert sorted(ledger["messages"]) == ["3.other", "4.ham", "5.ham"]
    wrong = json.dumps({**ledger, "messages": {"3.other": 1}})
    for damaged in ("", "{}", "[1]", wrong, "[" * 9999):
        (maildir / ".textnb-judged").write_text(damaged)
        assert judged() == ["3.other", "4.ham", "5.ham"]


def test_the_record_of_what_was_judged_follows_no_link(
    run: Run, model: Path, maildir: Path
) -> None:
    Path("precious").write_text("kept")
    (maildir / ".textnb-judged").symlink_to(Path("precious").resolve())
    run("filter", model, "--maildir", maildir).checked()
    assert Path("precious").read_text() == "kept"
    assert run("filter", model, "--maildir", maildir).checked().out == ""


def test_what_is_gone_is_done(
    run: Run, model: Path, maildir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whatever step another program takes the message away."""
    for step in ("link", "unlink", "open"):
        name = f"9.{step}"
        (maildir / "new" / name).write_bytes(SPAM)
        real = getattr(builtins if step == "open" else os, step)

        def taken(
            path: Any, *rest: Any, real: Any = real, name: str = name, **named: Any
        ) -> Any:
            if str(path).endswith(f"new/{name}") and ".Spam" not in str(path):
                os.rename(path, maildir / "cur" / f"{name}:2,S")
            return real(path, *rest, **named)

        monkeypatch.setattr(builtins if step == "open" else os, step, taken)
        ran = run("filter", model, "--maildir", maildir).checked()
        monkeypatch.undo()
        monkeypatch.chdir(maildir.parent)
        assert "1 gone meanwhile" in ran.err
        assert name not in ran.out


def test_two_filters_at_once_file_each_message_once(model: Path, maildir: Path) -> None:
    number_of_more = examples(400)
    for number in range(number_of_more):
        (maildir / "new" / f"{number}.more").write_bytes(HAM if number % 4 else SPAM)
    processes = [start("filter", model, "--maildir", maildir, "--format", "json")
                 for _ in range(2)]
    ran = [finished(process).checked() for process in processes]
    told = [json.loads(line) for one in ran for line in one.out.splitlines()]
    spam = [entry["path"] for entry in told if entry["filed"]]
    assert len(spam) == len(set(spam)) == number_of_more // 4 + 1
    assert len(list((maildir / ".Spam" / "new").iterdir())) == number_of_more // 4 + 1
    assert len({entry["path"] for entry in told}) == number_of_more + 3
    assert finished(start("filter", model, "--maildir", maildir)).checked().out == ""


def test_a_stopped_filing_remembers_what_was_judged(model: Path, maildir: Path) -> None:
    for number in range(5_000):
        (maildir / "new" / f"{number}.more").write_bytes(HAM)
    process = start("filter", model, "--maildir", maildir)
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 1) == b"h"
    process.send_signal(signal.SIGTERM)
    ran = finished(process).checked(3)
    assert ran.err == "interrupted; what was filed stays where it was put\n"
    assert 0 < ran.out.count("\n") < 5_000
    ledger = json.loads((maildir / ".textnb-judged").read_text())
    stayed = [line for line in ran.out.splitlines() if not line.startswith("spam")]
    # The signal may come between the two.
    assert len(ledger["messages"]) - len(stayed) in (0, 1)


# A signal that comes while an object is deleted: an exception that is raised there is lost.
SIGNALLED_IN_A_CALLBACK = """
import os, signal
from textnb.filter.mailfilter import MailFilter
class Deleted:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(100):
            pass
judge = MailFilter.judge
def judge_signalled(self, message):
    Deleted()
    return judge(self, message)
MailFilter.judge = judge_signalled
from textnb.cli.entry import main
main()
"""


def test_an_interrupt_in_a_callback_is_not_lost(model: Path, maildir: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SIGNALLED_IN_A_CALLBACK, "filter", model, "--maildir", maildir],
        capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout.count("\n"), "gnored" in ran.stderr) == (1, False)
    assert "judged or filed" not in ran.stderr


def test_a_message_is_never_replaced(run: Run, model: Path, maildir: Path) -> None:
    run("filter", model, "--maildir", maildir).checked()
    (maildir / "new" / "1.spam").write_bytes(SPAM * 2)
    ran = run("filter", model, "--maildir", maildir).checked(3)
    assert "1.spam stays where it is: File exists" in ran.err
    assert (maildir / ".Spam" / "new" / "1.spam").read_bytes() == SPAM
    assert (maildir / "new" / "1.spam").read_bytes() == SPAM * 2


@pytest.mark.parametrize("name", ["Spam", "../elsewhere", ".a/b", "..", ".", ".a/../../b", "/tmp"])
def test_messages_stay_in_the_maildir(run: Run, model: Path, maildir: Path, name: str) -> None:
    ran = run("filter", model, "--maildir", maildir, "--spam-folder", name).checked(3)
    assert "a name such as .Spam" in ran.err
    assert "new/1.spam" in files(maildir)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_message_that_can_not_be_read(run: Run, model: Path, maildir: Path) -> None:
    (maildir / "new" / "1.spam").chmod(0)
    ran = run("filter", model, "--maildir", maildir).checked(3)
    assert "1.spam stays where it is: Permission denied" in ran.err
    assert "2.ham" in ran.out


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("arguments", "message", "code"), [
    (["none.textnb"], SPAM, 3), (["none.textnb", "-p", "-e"], SPAM, 3),
    (["mail.textnb"], OTHER, 2), (["mail.textnb", "-e"], OTHER, 0)])
def test_a_full_standard_error_changes_no_verdict(
    model: Path, arguments: list[str], message: bytes, code: int
) -> None:
    with open("/dev/full", "wb") as full:
        ran = subprocess.run([*PROGRAM, "filter", *arguments], input=message, stderr=full,
                             stdout=subprocess.PIPE, timeout=60)
    assert ran.returncode == code


@pytest.mark.parametrize("arguments", [
    ["--spam-folder", ".Spam"], ["--unsure-folder", ".U"], ["--ham-cutoff", "0.1"],
    ["-p", "--format", "json"]])
def test_an_option_without_effect_is_refused(
    run: Run, model: Path, arguments: list[str]
) -> None:
    run("filter", model, *arguments, input=SPAM).checked(3)


def test_the_header_does_not_take_what_continues_another(model: Path) -> None:
    message = b" folded\n\tmore\n" + SPAM
    with start("filter", model, "-p", "-e") as process:
        out, _ = process.communicate(message, timeout=60)
    assert out.startswith(b" folded\n\tmore\nX-Textnb-Status: spam;")
    assert out.endswith(SPAM)


def test_filing_that_was_ended_in_the_middle_is_finished(
    run: Run, model: Path, maildir: Path
) -> None:
    (maildir / ".Spam" / "new").mkdir(parents=True)
    os.link(maildir / "new" / "1.spam", maildir / ".Spam" / "new" / "1.spam")
    run("filter", model, "--maildir", maildir).checked()
    assert "new/1.spam" not in files(maildir)
    assert ".Spam/new/1.spam" in files(maildir)


def test_a_link_is_not_filed(run: Run, model: Path, maildir: Path) -> None:
    (maildir / "new" / "0.link").symlink_to("1.spam")
    (maildir / "new" / "away").symlink_to("nowhere")
    (maildir / "new" / "folder").mkdir()
    os.mkfifo(maildir / "new" / "pipe")
    ran = run("filter", model, "--maildir", maildir).checked()
    assert ran.out.count("\n") == 3
    assert ran.err.splitlines()[0] == (
        "1 spam, 1 ham, 1 unsure, 2 links skipped, 2 others skipped (no files)")
    assert (maildir / "new" / "0.link").is_symlink()
    assert ".Spam/new/1.spam" in files(maildir)


def test_what_becomes_a_link_is_not_read(maildir: Path) -> None:
    """Between its listing and its reading."""
    (maildir / "new" / "0.link").symlink_to("1.spam")
    os.mkfifo(maildir / "new" / "pipe")
    for name in ("0.link", "pipe"):
        with pytest.raises(OSError, match=r"symbolic links|no file"):
            read_content(str(maildir / "new" / name), 9)


@pytest.mark.parametrize(("link", "there"), [
    (".Spam", True), (".Spam", False), (".Spam/new", True), (".Spam/new", False), ("new", True)])
def test_folders_that_lead_outside_are_refused(
    run: Run, model: Path, maildir: Path, link: str, there: bool
) -> None:
    outside = maildir.parent / "outside"
    if there:
        outside.mkdir()
    place = maildir / link
    place.parent.mkdir(exist_ok=True)
    if link == "new":
        place.rename(maildir / "other")
    place.symlink_to(outside)
    ran = run("filter", model, "--maildir", maildir).checked(3)
    assert "leads outside the Maildir by a symbolic link" in ran.err
    assert not (list(outside.iterdir()) if there else outside.exists())


def test_a_link_within_the_maildir_is_followed(run: Run, model: Path, maildir: Path) -> None:
    for part in ("cur", "new", "tmp"):
        (maildir / ".Junk" / part).mkdir(parents=True)
    (maildir / ".Spam").symlink_to(".Junk")
    Path("Linked").symlink_to(maildir)
    run("filter", model, "--maildir", "Linked").checked()
    assert ".Junk/new/1.spam" in files(maildir)


def test_names_of_messages_do_not_control_the_terminal(
    run: Run, model: Path, maildir: Path
) -> None:
    name = "1\nspam 9.9 forged\x1b[31m"
    (maildir / "new" / name).write_bytes(HAM)
    ran = run("filter", model, "--maildir", maildir).checked()
    assert "\x1b" not in ran.out
    assert not any(line.startswith("spam 9.9") for line in ran.out.splitlines())
    assert "forged" in ran.out


def test_an_empty_name_of_a_folder_is_refused(run: Run, model: Path, maildir: Path) -> None:
    ran = run("filter", model, "--maildir", maildir, "--spam-folder", "").checked(3)
    assert "--spam-folder must be the name of a folder" in ran.err


def test_a_folder_that_can_not_be_listed_is_named(
    run: Run, model: Path, maildir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> list[str]:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("textnb.filter.maildir.os.listdir", refuse)
    ran = run("filter", model, "--maildir", maildir).checked(3)
    assert "Errno" not in ran.err
    assert f"{maildir / 'new'}" in ran.err


def test_filing_ends_with_the_process_that_asked_for_it(model: Path, maildir: Path) -> None:
    for number in range(5_000):
        (maildir / "new" / f"{number}.more").write_bytes(HAM)
    process = start("filter", model, "--maildir", maildir)
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 1) == b"h"
    process.kill()
    # Standard output ends only when the judging process has ended, too.
    out, _ = process.communicate(timeout=60)
    assert out.count(b"\n") < 5_000
