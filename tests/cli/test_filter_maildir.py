"""textnb filter --maildir: new messages are judged and filed once, and none is lost."""

import builtins
import bz2
import gzip
import json
import lzma
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import finished, start
from tests.cli.test_filter import HAM, OTHER, SPAM, model
from tests.filter.models import ROWS, saved
from tests.frames.writing import write_files
from tests.tiers import examples
from textnb.filter.maildir import read_content

__all__ = ["model"]


@pytest.fixture
def maildir(folder):
    (folder / "Mail" / "tmp").mkdir(parents=True)
    return write_files(folder / "Mail", {
        "new/1.spam": SPAM, "new/2.ham": HAM, "new/3.other": OTHER, "cur/0.seen:2,S": SPAM})


@pytest.fixture
def file_new(run, model, maildir):
    """File the new messages, with some options."""
    def file_new(*options, code=0):
        return run("filter", model, "--maildir", maildir, *options).checked(code)

    return file_new


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# What is filed, and what is judged again


def test_a_maildir_is_filed(file_new, maildir):
    dry = file_new("--dry-run")
    assert files(maildir) == ["cur/0.seen:2,S", "new/1.spam", "new/2.ham", "new/3.other"]
    ran = file_new()
    assert ran.out == dry.out
    assert [line.split()[0] for line in ran.out.splitlines()] == ["spam", "ham", "unsure"]
    assert "1 spam, 1 ham, 1 unsure" in ran.err
    assert files(maildir) == [
        ".Spam/new/1.spam", ".textnb-judged", "cur/0.seen:2,S", "new/2.ham", "new/3.other"]
    assert (maildir / ".Spam" / "new" / "1.spam").read_bytes() == SPAM
    again = file_new("--unsure-folder", ".Maybe", "--format", "json")
    told = [json.loads(line) for line in again.out.splitlines()]
    assert [entry["status"] for entry in told] == ["ham", "unsure"]
    assert ".Maybe/new/3.other" in files(maildir)


def test_what_was_judged_is_not_judged_again(file_new, model, maildir):
    def judged(*options):
        return [line.split("/")[-1] for line in file_new(*options).out.splitlines()]

    assert judged("--dry-run") == judged() == ["1.spam", "2.ham", "3.other"]
    assert judged() == judged("--dry-run") == []
    (maildir / "new" / "4.ham").write_bytes(HAM)
    assert file_new().err.splitlines()[0] == "0 spam, 1 ham, 0 unsure, 2 judged before"
    # Other settings, a name that is used again, and another model are judged again.
    assert judged("--ham-cutoff", "0.1", "--spam-cutoff", "0.9") == ["2.ham", "3.other", "4.ham"]
    assert judged() == ["2.ham", "3.other", "4.ham"]
    (maildir / "new" / "4.ham").write_bytes(HAM * 2)
    assert judged() == ["4.ham"]
    saved(model, rows=pl.concat([ROWS, ROWS]))
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


def test_a_message_is_never_replaced(file_new, maildir):
    file_new()
    (maildir / "new" / "1.spam").write_bytes(SPAM * 2)
    assert "1.spam stays where it is: File exists" in file_new(code=3).err
    assert (maildir / ".Spam" / "new" / "1.spam").read_bytes() == SPAM
    assert (maildir / "new" / "1.spam").read_bytes() == SPAM * 2


def test_filing_that_was_ended_in_the_middle_is_finished(file_new, maildir):
    (maildir / ".Spam" / "new").mkdir(parents=True)
    os.link(maildir / "new" / "1.spam", maildir / ".Spam" / "new" / "1.spam")
    file_new()
    assert {"new/1.spam", ".Spam/new/1.spam"} & {*files(maildir)} == {".Spam/new/1.spam"}


def test_what_can_not_be_written_is_a_failure(model, maildir):
    with open("/dev/full", "wb") as full:
        ran = finished(start("filter", model, "--maildir", maildir, stdout=full)).checked(3)
    assert "No space left" in ran.err


@pytest.mark.parametrize("pack", [partial(gzip.compress, mtime=0), bz2.compress, lzma.compress])
def test_compressed_messages_are_judged_as_others(file_new, maildir, pack):
    plain = [line.split()[:2] for line in file_new("--dry-run").out.splitlines()]
    for path in (maildir / "new").iterdir():
        path.write_bytes(pack(path.read_bytes()))
    assert [line.split()[:2] for line in file_new().out.splitlines()] == plain
    assert (maildir / ".Spam" / "new" / "1.spam").read_bytes() == pack(SPAM)


def test_what_holds_no_message_gets_no_verdict(file_new, maildir):
    broken = {"4.empty": b"", "5.packed": gzip.compress(b""), "6.cut": gzip.compress(SPAM)[:-9]}
    write_files(maildir / "new", broken)
    ran = file_new(code=3)
    assert "1 spam, 1 ham, 1 unsure, 3 could not be judged or filed" in ran.err
    assert ran.err.count("stays where it is: it is empty, and a message was expected") == 2
    assert "6.cut stays where it is: Compressed file ended" in ran.err
    assert {path.name for path in (maildir / "new").iterdir()} >= set(broken)


# Names and links


@pytest.mark.parametrize("name", ["Spam", "../elsewhere", ".a/b", "..", ".", ".a/../../b", "/tmp"])
def test_messages_stay_in_the_maildir(file_new, maildir, name):
    assert "a name such as .Spam" in file_new("--spam-folder", name, code=3).err
    assert "new/1.spam" in files(maildir)


def test_names_of_messages_do_not_control_the_terminal(file_new, maildir):
    (maildir / "new" / "1\nspam 9.9 forged\x1b[31m").write_bytes(HAM)
    ran = file_new()
    assert "\x1b" not in ran.out
    assert not any(line.startswith("spam 9.9") for line in ran.out.splitlines())
    assert "forged" in ran.out


def test_what_is_no_file_is_not_filed(file_new, maildir):
    (maildir / "new" / "0.link").symlink_to("1.spam")
    (maildir / "new" / "away").symlink_to("nowhere")
    (maildir / "new" / "folder").mkdir()
    os.mkfifo(maildir / "new" / "pipe")
    ran = file_new()
    assert ran.out.count("\n") == 3
    assert ran.err.splitlines()[0] == (
        "1 spam, 1 ham, 1 unsure, 2 links skipped, 2 others skipped (no files)")
    assert (maildir / "new" / "0.link").is_symlink()
    assert ".Spam/new/1.spam" in files(maildir)
    # Nor is it read if it becomes a link or a pipe after it was listed.
    for name in ("0.link", "pipe"):
        with pytest.raises(OSError, match=r"symbolic links|not a file"):
            read_content(str(maildir / "new" / name), 9)


@pytest.mark.parametrize(("link", "there"), [
    (".Spam", True), (".Spam", False), (".Spam/new", True), (".Spam/new", False), ("new", True)])
def test_folders_that_lead_outside_are_refused(file_new, maildir, link, there):
    outside, place = maildir.parent / "outside", maildir / link
    if there:
        outside.mkdir()
    if link == "new":
        place.rename(maildir / "other")
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside)
    assert "leads outside the Maildir by a symbolic link" in file_new(code=3).err
    assert not (list(outside.iterdir()) if there else outside.exists())


def test_a_link_within_the_maildir_is_followed(file_new, maildir):
    for part in ("cur", "new", "tmp"):
        (maildir / ".Junk" / part).mkdir(parents=True)
    (maildir / ".Spam").symlink_to(".Junk")
    maildir.rename("Real")
    maildir.symlink_to("Real")
    file_new()
    assert ".Junk/new/1.spam" in files(Path("Real"))


@pytest.mark.parametrize(("link", "to"), [
    (".Spam", "."), (".Spam/new", "../new"), (".Spam/new/1.spam", "../../new/1.spam")])
def test_a_message_is_not_filed_into_itself(file_new, maildir, link, to):
    (maildir / link).parent.mkdir(parents=True, exist_ok=True)
    (maildir / link).symlink_to(to)
    before = (maildir / "new" / "1.spam").read_bytes()
    file_new(code=3)
    assert (maildir / "new" / "1.spam").read_bytes() == before


def test_the_record_of_what_was_judged_follows_no_link(file_new, maildir):
    Path("precious").write_text("kept")
    (maildir / ".textnb-judged").symlink_to(Path("precious").resolve())
    file_new()
    assert Path("precious").read_text() == "kept"
    assert file_new().out == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_message_that_can_not_be_read(file_new, maildir):
    (maildir / "new" / "1.spam").chmod(0)
    ran = file_new(code=3)
    assert "1.spam stays where it is: Permission denied" in ran.err
    assert "2.ham" in ran.out


def test_a_folder_that_can_not_be_listed_is_named(file_new, maildir, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("textnb.filter.maildir.os.listdir", refuse)
    ran = file_new(code=3)
    assert "Errno" not in ran.err
    assert f"{maildir / 'new'}" in ran.err


# Other programs, and signals


@pytest.mark.parametrize("step", ["link", "unlink", "open"])
def test_a_message_that_another_program_takes_away_is_done(file_new, maildir, monkeypatch, step):
    """At whatever step."""
    place = builtins if step == "open" else os
    real = getattr(place, step)

    def taken(path, *rest, **named):
        if str(path).endswith("new/1.spam") and ".Spam" not in str(path):
            os.rename(path, maildir / "cur" / "1.spam:2,S")
        return real(path, *rest, **named)

    monkeypatch.setattr(place, step, taken)
    ran = file_new()
    assert "1 gone meanwhile" in ran.err
    assert "1.spam" not in ran.out


@pytest.mark.slow
def test_two_filters_at_once_file_each_message_once(model, maildir):
    number_of_more = examples(400)
    for number in range(number_of_more):
        (maildir / "new" / f"{number}.more").write_bytes(HAM if number % 4 else SPAM)
    processes = [start("filter", model, "--maildir", maildir, "--format", "json") for _ in range(2)]
    ran = [finished(process).checked() for process in processes]
    told = [json.loads(line) for one in ran for line in one.out.splitlines()]
    spam = [entry["path"] for entry in told if entry["filed"]]
    assert len(spam) == len(set(spam)) == number_of_more // 4 + 1
    assert len(list((maildir / ".Spam" / "new").iterdir())) == number_of_more // 4 + 1
    assert len({entry["path"] for entry in told}) == number_of_more + 3
    assert finished(start("filter", model, "--maildir", maildir)).checked().out == ""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_filing_ends_with_its_process(model, maildir, number):
    for more in range(5_000):
        (maildir / "new" / f"{more}.more").write_bytes(HAM)
    process = start("filter", model, "--maildir", maildir)
    assert os.read(process.stdout.fileno(), 1) == b"h"
    process.send_signal(number)
    # Standard output ends only when all processes that write to it have ended.
    ran = finished(process)
    assert ran.out.count("\n") < 5_000
    if number == signal.SIGTERM:
        assert ran.checked(3).err == "interrupted; what was filed stays where it was put\n"
        ledger = json.loads((maildir / ".textnb-judged").read_text())
        stayed = [line for line in ran.out.splitlines() if not line.startswith("spam")]
        # The signal may come between the two.
        assert len(ledger["messages"]) - len(stayed) in (0, 1)
        assert stayed


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


def test_an_interrupt_in_a_callback_is_not_lost(model, maildir):
    ran = subprocess.run(
        [sys.executable, "-c", SIGNALLED_IN_A_CALLBACK, "filter", model, "--maildir", maildir],
        capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout.count("\n"), "gnored" in ran.stderr) == (1, False)
    assert "judged or filed" not in ran.stderr
