import importlib
import tarfile

import numpy as np
import official
import pytest

from dlcourse.datasets import cifar10

cifar = importlib.import_module("dlcourse.datasets.cifar10")  # the module; the package has the function by that name

ROWS = 20


@pytest.fixture
def small(monkeypatch, server):
    """CIFAR-10 with 20 pictures a batch, at a server on this machine."""
    train, test, binary, python = official.cifar10(ROWS)
    archives = {"binary": official.tar_gz(binary), "python": official.tar_gz(python)}
    server.train, server.test, server.members, server.archives = train, test, {**binary, **python}, archives
    monkeypatch.setattr(cifar, "ROWS", ROWS)
    for form in ("binary", "python"):
        file = f"/cifar-10-{form}.tar.gz"
        server.files[file] = archives[form]
        monkeypatch.setattr(cifar, form.upper(), official.source(server.url + file, archives[form]))
    return server


def extract(small, folder, form):
    """The files of one archive, as tar would lay them."""
    for member, data in small.members.items():
        if form in member:
            path = folder / member
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return folder


def assert_is_whole(data, small):
    for split, (x, y) in ((data.train, small.train), (data.test, small.test)):
        np.testing.assert_array_equal(split.x, x)
        np.testing.assert_array_equal(split.y, y)
        assert isinstance(split.x, np.memmap) and split.x.dtype == np.uint8 and split.y.dtype == np.int64
    assert data.train.class_names[3] == "cat" and len(data.train) == 5 * ROWS and len(data.test) == ROWS


def test_it_is_downloaded_once_converted_once_and_then_mapped(small, tmp_path):
    assert_is_whole(cifar10(), small)
    assert_is_whole(cifar10(), small)
    assert small.asked == ["/cifar-10-binary.tar.gz"]
    names = sorted(path.name for path in (tmp_path / "data" / "cifar10").iterdir())
    assert names == ["test_x.npy", "test_y.npy", "train_x.npy", "train_y.npy"]


@pytest.mark.parametrize("form", ["binary", "python"])
def test_an_archive_is_read_from_a_path(small, tmp_path, form):
    path = tmp_path / "any name"
    path.write_bytes(small.archives[form])
    assert_is_whole(cifar10(path, folder=tmp_path / "set"), small)
    assert small.asked == []


@pytest.mark.parametrize(
    ("form", "below"), [("bin", ""), ("bin", "cifar-10-batches-bin"), ("py", ""), ("py", "cifar-10-batches-py")]
)
def test_extracted_files_are_read_from_their_folder_or_the_one_around_it(small, tmp_path, form, below):
    assert_is_whole(cifar10(extract(small, tmp_path, f"-{form}/") / below), small)


def test_a_damaged_converted_file_is_made_again(small, tmp_path):
    cifar10()
    file = tmp_path / "data" / "cifar10" / "train_x.npy"
    file.write_bytes(file.read_bytes()[:-100])
    assert_is_whole(cifar10(), small)
    assert len(small.asked) == 1, "the archive is still there and whole"


def test_a_truncated_archive_in_the_data_folder_is_not_used_for_ever(small, tmp_path):
    archive = tmp_path / "data" / "cifar-10-binary.tar.gz"
    archive.parent.mkdir()
    archive.write_bytes(small.archives["binary"][:1000])
    assert_is_whole(cifar10(), small)


def test_a_truncated_archive_at_a_path_says_bytes_expected_and_found(small, tmp_path):
    path = tmp_path / "cifar-10-python.tar.gz"
    path.write_bytes(small.archives["python"][:1000])
    size = len(small.archives["python"])
    with pytest.raises(ValueError, match=rf"has 1,000 bytes; expected {size:,} .*cut off.* Download it again"):
        cifar10(path)
    assert not (tmp_path / "data").exists() or not list((tmp_path / "data" / "cifar10").iterdir())


def test_only_exact_names_of_an_archive_are_read_and_nothing_is_extracted(small, tmp_path, monkeypatch):
    members = {name: data for name, data in small.members.items() if "-bin/" in name}
    wanted = members.pop("cifar-10-batches-bin/data_batch_2.bin")
    members |= {"../data_batch_2.bin": wanted, "x/cifar-10-batches-bin/data_batch_2.bin": wanted}
    path = tmp_path / "a" / "b.tar.gz"
    path.parent.mkdir()
    path.write_bytes(official.tar_gz(members))
    monkeypatch.setattr(cifar, "BINARY", official.source("http://x/b.tar.gz", path.read_bytes()))
    monkeypatch.setattr(tarfile.TarFile, "extractall", None)
    with pytest.raises(ValueError, match=r"b.tar.gz lacks data_batch_2; it is no CIFAR-10 archive"):
        cifar10(path)
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["b.tar.gz"]


def test_a_folder_with_a_wrong_or_a_missing_file_names_it(small, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds neither data_batch_1.bin .* nor data_batch_1 "):
        cifar10(tmp_path)
    extract(small, tmp_path, "-bin/")
    file = tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin"
    data = file.read_bytes()
    file.write_bytes(data[:-3073])
    with pytest.raises(ValueError, match=rf"data_batch_3.bin has {19 * 3073:,} bytes; expected {20 * 3073:,}"):
        cifar10(tmp_path)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks data_batch_3.bin; extract the archive again"):
        cifar10(tmp_path)
    python = extract(small, tmp_path / "py", "-py/") / "cifar-10-batches-py" / "test_batch"
    python.write_bytes(official.python_batch(*official.pictures(3)))
    with pytest.raises(ValueError, match="test_batch has 3 pictures; expected 20"):
        cifar10(tmp_path / "py")
    file.write_bytes(data)
    assert_is_whole(cifar10(tmp_path), small)


@pytest.mark.parametrize("form", ["bin", "py"])
@pytest.mark.parametrize("batch", ["data_batch_2", "test_batch"])
def test_files_of_the_right_form_with_other_labels_are_refused_and_nothing_is_kept(small, tmp_path, form, batch):
    folder = extract(small, tmp_path, f"-{form}/") / f"cifar-10-batches-{form}"
    x, y = official.pictures(ROWS)
    if form == "bin":
        (folder / f"{batch}.bin").write_bytes(official.binary_batch(x, y))
    else:
        (folder / batch).write_bytes(official.python_batch(x, y))
    with pytest.raises(
        ValueError, match=r"is not CIFAR-10, which has \d+ pictures of each class to (train|test); here"
    ):
        cifar10(folder)
    assert not list((tmp_path / "data").rglob("*.npy"))


def test_a_path_that_is_not_there_is_an_error_even_when_the_data_is(small, tmp_path):
    cifar10()
    with pytest.raises(FileNotFoundError, match=r"nowhere.tar.gz does not exist; give cifar-10-binary.tar.gz"):
        cifar10(tmp_path / "nowhere.tar.gz")


def test_without_a_network_the_error_says_what_to_do_by_hand(monkeypatch, closed_port, tmp_path):
    url = f"{closed_port}/cifar-10-binary.tar.gz"
    monkeypatch.setattr(cifar, "BINARY", official.source(url, b"x"))
    with pytest.raises(ConnectionError) as error:
        cifar10()
    for part in (
        f"{url} could not be downloaded: no connection",
        "by hand",
        "path='.../cifar-10-binary.tar.gz'",
        "data",
    ):
        assert part in str(error.value)
    assert str(tmp_path / "data") in str(error.value)


def test_the_published_sizes_and_checksums_are_these():
    assert cifar.BINARY.size == 170_052_171 and cifar.PYTHON.size == 170_498_071
    assert cifar.BINARY.sha256.startswith("c4a38c50a1bc5f3a") and len(cifar.BINARY.sha256) == 64
    assert cifar.PYTHON.sha256.startswith("6d958be074577803") and len(cifar.PYTHON.sha256) == 64
    assert cifar.ROWS == 10_000
