from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llmkernel.errors import RecordError
from llmkernel.records import files
from llmkernel.records.folder import HISTORY_LIMIT
from llmkernel.records.ledger import VerifiedLedger
from llmkernel.records.record import source_digest
from llmkernel.records.store import RecordStore
from tests.unit.unprivileged import open_directory, run_unprivileged

from .strategies import SOURCE, make_record


@pytest.fixture
def store(tmp_path):
    return RecordStore(tmp_path / "kernels", ledger=VerifiedLedger(tmp_path / "ledger"))


def version(number: int, **changes):
    source = f"{SOURCE}// version {number}\n"
    created = f"2026-11-30T12:{number // 60:02}:{number % 60:02}+00:00"
    return make_record(source, created=created, **changes), source


def test_what_is_saved_is_found_again(store):
    record = make_record()

    store.save(record, SOURCE, '{"number": 1}\n')
    found = store.find(record.key)

    assert (found.record, found.source, found.is_edited, found.is_from_history) == (
        record,
        SOURCE,
        False,
        False,
    )
    assert store.transcript(found) == '{"number": 1}\n'
    assert sorted(p.name for p in found.folder.iterdir()) == ["kernel.cu", "record.json", "transcript.jsonl"]
    assert (store.directory / "double_it" / "kernel.cu").read_bytes() == SOURCE.encode()


def test_nothing_is_found_where_nothing_is(store):
    assert store.find("0" * 64) is None
    assert store.load("double_it") is None
    assert store.list() == ()
    assert store.history("double_it") == ()


def test_an_edited_source_is_flagged(store):
    stored = store.save(make_record(), SOURCE)
    (stored.folder / "kernel.cu").write_text(SOURCE + "// faster\n")

    found = store.find(stored.record.key)

    assert found.is_edited
    assert found.source.endswith("// faster\n")
    assert "edited" in store.reason_to_verify(found, stored.record.environment)


def test_line_ends_of_a_windows_checkout_are_not_an_edit(store):
    stored = store.save(make_record(), SOURCE)
    (stored.folder / "kernel.cu").write_bytes(SOURCE.replace("\n", "\r\n").encode())

    assert not store.find(stored.record.key).is_edited


def test_a_new_version_keeps_the_old_one_in_the_history(store):
    first, first_source = version(1)
    second, second_source = version(2, intent="Double it, fast.")
    store.save(first, first_source)
    store.save(second, second_source)

    assert store.load("double_it").source == second_source
    assert [s.source for s in store.history("double_it")] == [first_source]
    from_history = store.find(first.key)
    assert (from_history.source, from_history.is_from_history) == (first_source, True)


def test_an_earlier_version_can_be_put_back(store):
    for number in range(3):
        store.save(*version(number))
    oldest = store.history("double_it")[-1]

    store.rollback("double_it", oldest.version)

    assert store.load("double_it").source == version(0)[1]
    assert {s.source for s in store.history("double_it")} >= {version(1)[1], version(2)[1]}
    with pytest.raises(RecordError, match="no version"):
        store.rollback("double_it", "yesterday")


def test_an_edit_that_was_never_recorded_is_in_the_history_too(store):
    stored = store.save(*version(1))
    (stored.folder / "kernel.cu").write_text("// an afternoon's work\n")

    store.save(*version(2))

    [kept] = store.history("double_it")
    assert (kept.source, kept.is_edited) == ("// an afternoon's work\n", True)


def test_a_broken_record_is_kept_in_the_history_as_it_is(store):
    stored = store.save(*version(1))
    (stored.folder / "record.json").write_text("{")

    store.save(*version(2))

    [kept] = (stored.folder / "history").iterdir()
    assert (kept / "record.json").read_text() == "{"
    assert store.load("double_it").source == version(2)[1]


def test_the_history_is_bounded(store):
    for number in range(HISTORY_LIMIT + 4):
        store.save(*version(number))

    kept = store.history("double_it")
    assert len(kept) == HISTORY_LIMIT
    assert kept[0].source == version(HISTORY_LIMIT + 2)[1]


def test_saving_the_same_version_twice_is_harmless(store):
    store.save(*version(1))
    store.save(*version(1))

    assert store.load("double_it").source == version(1)[1]


def test_the_named_kernel_is_preferred(store):
    for name in ("a", "b"):
        store.save(make_record(name=name), SOURCE)

    assert store.find(make_record().key, name="b").record.name == "b"
    assert store.find(make_record().key, name="missing").record.name == "a"


def test_records_of_another_provider_or_model_can_be_passed_over(store):
    first, first_source = version(1, provider="claude", model="a")
    second, second_source = version(2, provider="codex", model="b")
    store.save(first, first_source)
    store.save(second, second_source)

    assert store.find(first.key).source == second_source
    assert store.find(first.key, provider="claude").source == first_source
    assert store.find(first.key, provider="claude", model="b") is None
    assert store.find(first.key, model="b").source == second_source


def test_an_unreadable_folder_hides_no_other(store):
    store.save(make_record(name="good"), SOURCE)
    broken = store.save(make_record(name="broken"), SOURCE)
    (broken.folder / "record.json").write_bytes(b"\xff")

    assert store.find(make_record().key).record.name == "good"
    assert [s.record.name for s in store.list()] == ["good"]
    [error] = store.unreadable()
    assert "broken" in str(error)
    with pytest.raises(RecordError):
        store.load("broken")


@pytest.mark.parametrize("name", ["kernel.cu", "record.json"])
def test_links_and_pipes_are_not_followed(store, tmp_path, name):
    stored = store.save(make_record(), SOURCE)
    (tmp_path / "elsewhere").write_bytes((stored.folder / name).read_bytes())
    (stored.folder / name).unlink()
    (stored.folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RecordError, match="not a regular file"):
        store.load("double_it")

    (stored.folder / name).unlink()
    os.mkfifo(stored.folder / name)
    with pytest.raises(RecordError, match="not a regular file"):
        store.load("double_it")


def test_a_linked_folder_is_not_written_through(store, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    store.directory.mkdir()
    (store.directory / "double_it").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(RecordError, match="link"):
        store.save(make_record(), SOURCE)

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_links_inside_a_folder_lead_nowhere(store, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    other, other_source = version(7)
    RecordStore(outside, ledger=store.ledger).save(other, other_source)
    stored = store.save(*version(1))
    (stored.folder / ".next").symlink_to(outside / "double_it")
    (stored.folder / "history").symlink_to(outside)

    assert store.load("double_it").source == version(1)[1]
    store.save(*version(2))

    assert store.load("double_it").source == version(2)[1]
    assert [s.source for s in store.history("double_it")] == [version(1)[1]]
    assert RecordStore(outside, ledger=store.ledger).load("double_it").source == other_source
    assert [p.name for p in outside.iterdir()] == ["double_it"]


def test_names_stay_inside_the_directory(store):
    stored = store.save(make_record(name="../../escape"), SOURCE)

    assert stored.folder.parent == store.directory


def test_a_source_that_is_not_the_records_is_refused(store):
    with pytest.raises(RecordError, match="not the one"):
        store.save(make_record(), SOURCE + "//")

    assert store.list() == ()


def test_what_json_cannot_hold_is_a_record_error(store):
    with pytest.raises(RecordError, match="JSON"):
        store.save(make_record(environment={"device": object()}), SOURCE)

    assert store.list() == ()


# A crash may come at any system call:
# each operation that changes the disk counts down, at zero the process is gone.
_CRASH = textwrap.dedent(
    """
    import os, pathlib, shutil, sys
    sys.path.insert(0, {root!r})
    from tests.unit.records.test_store import version
    from llmkernel.records.ledger import VerifiedLedger
    from llmkernel.records.store import RecordStore
    left = 0
    def counted(function):
        def call(*args, **kwargs):
            global left
            left -= 1
            if left == 0:
                os._exit(9)
            return function(*args, **kwargs)
        return call
    for owner, name in ((os, "fsync"), (os, "mkdir"), (pathlib.Path, "mkdir"), (pathlib.Path, "replace"),
                        (pathlib.Path, "open"), (shutil, "rmtree")):
        setattr(owner, name, counted(getattr(owner, name)))
    base = pathlib.Path(sys.argv[1])
    outcomes = []
    for moment in range(1, 200):
        directory = base / str(moment)
        store = RecordStore(directory, ledger=VerifiedLedger(base / "ledger"))
        store.save(*version(1), "one")
        child = os.fork()
        if child == 0:
            left = moment
            store.save(*version(2), "two")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == 0:
            print(moment)
            break
    """
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="crashes are tried with fork")
def test_a_crash_at_any_moment_leaves_the_old_or_the_new_set(tmp_path):
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", _CRASH.format(root=root), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    moments = int(done.stdout)
    assert moments > 15

    outcomes = []
    for moment in range(1, moments + 1):
        store = RecordStore(tmp_path / str(moment), ledger=VerifiedLedger(tmp_path / "ledger"))
        found = store.load("double_it")
        new = found.source == version(2)[1]
        assert not found.is_edited
        assert found.record == version(2 if new else 1)[0]
        assert store.transcript(found) == ("two" if new else "one")
        outcomes.append(new)
        # And the next writer goes on as if nothing had happened.
        store.save(*version(3), "three")
        assert store.load("double_it").source == version(3)[1]
        assert sorted(p.name for p in found.folder.iterdir()) == [
            "history",
            "kernel.cu",
            "record.json",
            "transcript.jsonl",
        ]
    assert outcomes == sorted(outcomes)
    assert outcomes[0] is False
    assert outcomes[-1] is True


def test_several_writers_and_readers_see_whole_sets(store):
    store.save(*version(0), "0")

    def write(number: int) -> None:
        store.save(*version(number), str(number))

    def read(_: int) -> bool:
        found = store.load("double_it")
        return source_digest(found.source) == found.record.candidate_digest

    with ThreadPoolExecutor(8) as pool:
        writes = [pool.submit(write, number) for number in range(1, 13)]
        reads = [pool.submit(read, number) for number in range(40)]
        assert all(r.result() for r in reads)
        for w in writes:
            w.result()
    assert len(store.history("double_it")) == HISTORY_LIMIT


def test_a_full_disk_leaves_the_old_version(store, monkeypatch):
    store.save(*version(1))

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(RecordError, match=r"Free some space") as caught:
        store.save(*version(2))
    monkeypatch.undo()

    assert "No space left" in str(caught.value)
    assert store.load("double_it").source == version(1)[1]
    assert [p.name for p in store.folder("double_it").iterdir() if p.name.startswith(".")] == []


def test_a_directory_that_cannot_be_written_is_a_record_error(tmp_path):
    (tmp_path / "file").write_text("")
    store = RecordStore(tmp_path / "file" / "kernels", ledger=VerifiedLedger(tmp_path))

    with pytest.raises(RecordError, match="records_dir"):
        store.save(make_record(), SOURCE)
    assert store.find(make_record().key) is None


def test_a_read_only_directory_can_be_read_and_says_so_when_written():
    def use(store):
        assert store.find(make_record().key).source == SOURCE
        assert store.history("double_it") == ()
        with pytest.raises(RecordError, match="cannot be written"):
            store.save(*version(2))
        with pytest.raises(RecordError, match="cannot be written"):
            store.save(*version(2, name="another"))
        assert store.find(make_record().key).source == SOURCE

    with open_directory() as directory:
        store = RecordStore(directory / "kernels", ledger=VerifiedLedger(directory / "ledger"))
        folder = store.save(make_record(), SOURCE).folder
        for path in (folder, store.directory):
            path.chmod(0o555)
        try:
            run_unprivileged(lambda: use(store))
        finally:
            for path in (store.directory, folder):
                path.chmod(0o755)


def test_a_directory_that_cannot_be_listed_is_a_record_error():
    def use(store):
        with pytest.raises(RecordError, match="cannot be read"):
            store.find("0" * 64)

    with open_directory() as directory:
        store = RecordStore(directory / "kernels", ledger=VerifiedLedger(directory / "ledger"))
        store.save(make_record(), SOURCE)
        store.directory.chmod(0o000)
        try:
            run_unprivileged(lambda: use(store))
        finally:
            store.directory.chmod(0o755)


def test_only_what_was_verified_on_this_machine_needs_no_verification(store, tmp_path):
    record = make_record()
    stored = store.save(record, SOURCE, is_verified_here=True)
    elsewhere = RecordStore(store.directory, ledger=VerifiedLedger(tmp_path / "other home"))

    assert store.reason_to_verify(stored, record.environment) is None
    assert "another machine" in elsewhere.reason_to_verify(stored, record.environment)
    assert "compiler was zig 0.14, is zig 0.15" in store.reason_to_verify(
        stored, {**record.environment, "compiler": "zig 0.15"}
    )

    elsewhere.mark_verified(stored, record.environment)
    assert elsewhere.reason_to_verify(stored, record.environment) is None


def test_a_domain_that_was_widened_by_hand_is_verified_again(store):
    record = make_record()
    stored = store.save(record, SOURCE, is_verified_here=True)
    text = (stored.folder / "record.json").read_text()
    (stored.folder / "record.json").write_text(text.replace('"rank": 1', '"rank": 2'))

    found = store.find(record.key)

    assert found.record.read_domain().arguments[0].rank == 2
    assert store.reason_to_verify(found, record.environment) is not None
