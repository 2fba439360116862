import errno

import official
import pytest

from dlcourse.datasets import download
from dlcourse.datasets.download import fetch, verify

DATA = bytes(range(256)) * 50


def ask(server, data, folder):
    return fetch(official.source(f"{server.url}/a.gz", data), folder, "call it with path=...")


def test_a_file_is_downloaded_once(server, tmp_path, capfd):
    server.files["/a.gz"] = DATA
    assert ask(server, DATA, tmp_path / "new").read_bytes() == DATA
    assert ask(server, DATA, tmp_path / "new") == tmp_path / "new" / "a.gz"
    assert server.asked == ["/a.gz"]
    shown = "".join(capfd.readouterr())
    assert "100%" in shown and str(tmp_path) not in shown, "a bar, and no path of this machine"


def test_a_file_that_is_there_but_damaged_is_downloaded_again(server, tmp_path):
    server.files["/a.gz"] = DATA
    for damaged in (DATA[:100], b"", DATA[:-1] + b"x"):
        (tmp_path / "a.gz").write_bytes(damaged)
        assert ask(server, DATA, tmp_path).read_bytes() == DATA
    assert len(server.asked) == 3


def test_a_server_that_fails_twice_is_asked_a_third_time(server, tmp_path):
    server.files["/a.gz"], server.broken = DATA, download.RETRIES
    assert ask(server, DATA, tmp_path).read_bytes() == DATA
    assert len(server.asked) == 1 + download.RETRIES


def test_a_cut_off_answer_says_bytes_expected_and_received_and_leaves_nothing(server, tmp_path):
    server.files["/a.gz"] = DATA[:777]
    with pytest.raises(
        ConnectionError, match=r"expected 12,800 bytes and received 777\. Download it by hand.*call it with"
    ):
        ask(server, DATA, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_answer_of_the_right_length_and_wrong_bytes_is_refused(server, tmp_path):
    server.files["/a.gz"] = DATA[::-1]
    with pytest.raises(ConnectionError, match="received 12,800 bytes as expected, but their sha256 is not"):
        ask(server, DATA, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_is_not_there_gives_the_reason(server, tmp_path):
    with pytest.raises(ConnectionError, match="404"):
        ask(server, DATA, tmp_path)


def test_a_full_disk_names_the_folder(server, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pooch.HTTPDownloader", lambda **_: full)
    with pytest.raises(OSError, match=r"data folder .*: No space left on device\. Choose another"):
        ask(server, DATA, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_verify_tells_sources_by_their_bytes_and_names_those_expected(tmp_path):
    one, two = official.source("http://x/one.gz", DATA), official.source("http://x/two.gz", DATA[:50])
    path = tmp_path / "file"
    path.write_bytes(DATA[:50])
    assert verify(path, (one, two)) is two
    path.write_bytes(DATA[:70])
    with pytest.raises(ValueError, match=r"has 70 bytes; expected 12,800 \(one.gz\) or 50 \(two.gz\): it was cut off"):
        verify(path, (one, two))
    path.write_bytes(bytes(50))
    with pytest.raises(ValueError, match=r"50 bytes like the official two.gz, but its sha256"):
        verify(path, (one, two))
    path = path.rename(tmp_path / "one.gz")
    with pytest.raises(ValueError, match=r"expected 12,800 .one.gz.: "):
        path.write_bytes(DATA[:70])
        verify(path, (one, two))
