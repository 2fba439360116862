import gzip
import importlib

import numpy as np
import official
import pytest

from dlcourse.datasets import mnist

idx = importlib.import_module("dlcourse.datasets.mnist")  # the module; the package has the function by that name

COUNTS = {"train": 25, "test": 10}


@pytest.fixture
def small(monkeypatch, server):
    """MNIST with 25 and 10 pictures, at a server on this machine, read ten pictures at a time."""
    server.data, server.packed = official.mnist(COUNTS)
    monkeypatch.setattr(idx, "COUNTS", COUNTS)
    monkeypatch.setattr(idx, "PICTURES_AT_ONCE", 10)
    use(monkeypatch, server)
    return server


def use(monkeypatch, server):
    """Let the files that the server has now be the official ones."""
    names = {key: source.name for key, source in idx.SOURCES.items()}
    server.names = names
    server.files.update({f"/{names[key]}": data for key, data in server.packed.items()})
    sources = {key: official.source(f"{server.url}/{names[key]}", data) for key, data in server.packed.items()}
    monkeypatch.setattr(idx, "SOURCES", sources)


def lay(small, folder, packed):
    folder.mkdir()
    for key, data in small.packed.items():
        name = small.names[key]
        (folder / name).write_bytes(data) if packed else (folder / name[:-3]).write_bytes(gzip.decompress(data))
    return folder


def assert_is_whole(data, small):
    for part in ("train", "test"):
        split, (x, y) = getattr(data, part), small.data[part]
        np.testing.assert_array_equal(split.x[..., 0], x)
        np.testing.assert_array_equal(split.y, y)
        assert (
            isinstance(split.x, np.memmap) and split.x.shape == (COUNTS[part], 28, 28, 1) and split.y.dtype == np.int64
        )


def test_it_is_downloaded_once_and_then_mapped(small):
    assert_is_whole(mnist(), small)
    assert_is_whole(mnist(), small)
    assert len(small.asked) == 4


@pytest.mark.parametrize("packed", [True, False])
def test_the_four_files_are_read_from_a_folder(small, tmp_path, packed):
    assert_is_whole(mnist(lay(small, tmp_path / "files", packed)), small)
    assert small.asked == []


def test_a_packed_file_that_is_cut_off_or_damaged_is_named(small, tmp_path):
    folder = lay(small, tmp_path / "files", True)
    file = folder / "train-images-idx3-ubyte.gz"
    whole = file.read_bytes()
    for data in (whole[:-9], whole[:100], whole[:5000] + b"x" + whole[5001:], b"no gzip"):
        file.write_bytes(data)
        with pytest.raises(ValueError, match=r"train-images-idx3-ubyte.gz cannot be unpacked to 19,616 bytes: .*fetch"):
            mnist(folder)
    assert not list((tmp_path / "data").rglob("*.npy"))


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("name", ["train-labels-idx1-ubyte", "t10k-images-idx3-ubyte"])
def test_a_file_of_another_data_set_is_refused_packed_or_not_and_nothing_is_kept(small, tmp_path, packed, name):
    folder = lay(small, tmp_path / "files", packed)
    file = folder / (f"{name}.gz" if packed else name)
    data = bytearray(gzip.decompress(file.read_bytes()) if packed else file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(ValueError, match=rf"{name}\S* has the form of {name}.gz, but its content is another: sha256"):
        mnist(folder)
    assert not list((tmp_path / "data").rglob("*.npy"))


def test_a_file_that_was_packed_anew_is_mnist_by_its_content(small, tmp_path):
    folder = lay(small, tmp_path / "files", True)
    for file in folder.iterdir():
        file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes()), 1))
    assert_is_whole(mnist(folder), small)


def test_gzip_under_the_name_of_a_plain_file_is_explained(small, tmp_path):
    folder = lay(small, tmp_path / "files", False)
    file = folder / "train-labels-idx1-ubyte"
    file.write_bytes(gzip.compress(file.read_bytes()))
    with pytest.raises(
        ValueError, match=r"train-labels-idx1-ubyte is packed by gzip and its name does not say so: unpack"
    ):
        mnist(folder)


def test_plain_files_that_are_cut_off_too_long_or_of_another_kind_are_refused(small, tmp_path):
    folder = lay(small, tmp_path / "files", False)
    file = folder / "t10k-images-idx3-ubyte"
    whole = file.read_bytes()
    for data, message in (
        (whole[:1000], r"ends after 1,000 of 7,856 bytes: it was cut off"),
        (whole + b"x", "holds more than the expected 7,856 bytes"),
        (b"<html>", r"starts with 3c68746d6c3e; an idx file of bytes \(10, 28, 28\) starts with 00000803"),
        (b"", "starts with ; an idx file"),
    ):
        file.write_bytes(data)
        with pytest.raises(ValueError, match=f"t10k-images-idx3-ubyte {message}"):
            mnist(folder)
    file.write_bytes(whole)
    assert_is_whole(mnist(folder), small)


def test_missing_files_and_folders_are_named(small, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has neither train-labels-idx1-ubyte.gz nor train-labels-idx1-ubyte"):
        mnist(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere is no folder; give the one that holds train-images"):
        mnist(tmp_path / "nowhere")


def test_without_a_network_the_error_says_what_to_do_by_hand(monkeypatch, small, closed_port):
    small.url = closed_port
    use(monkeypatch, small)
    with pytest.raises(
        ConnectionError, match=r"could not be downloaded: no connection.*mnist\(path='folder of the four files'\)"
    ):
        mnist()


def test_the_published_sizes_are_these():
    assert [source.size for source in idx.SOURCES.values()] == [9_912_422, 28_881, 1_648_877, 4_542]
    assert all(len(source.sha256) == len(source.content) == 64 for source in idx.SOURCES.values())
    assert idx.COUNTS == {"train": 60_000, "test": 10_000}
