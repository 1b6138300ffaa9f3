"""textnb samples."""


def test_samples(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = run("samples", "new/folder").checked()
    assert ran.out == "14 files -> new/folder; SAMPLES.md says what they hold\n"
    assert ran.err == ""
    (tmp_path / "new/folder/today.csv").write_text("of the user")
    assert run("samples", "new/folder").checked(1).err == (
        "error: can't write 'new/folder/today.csv': it is there and differs; give another folder, "
        "or remove it\n")
    assert "can't write '': the name is empty" in run("samples", "").checked(1).err
