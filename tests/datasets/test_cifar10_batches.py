import io
import os
import pickle

import numpy as np
import official
import pytest

from dlcourse.datasets import read_cifar10_batch
from dlcourse.memory import traced_peak


def write(tmp_path, data, name="data_batch_1.bin"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("form", [official.binary_batch, official.python_batch, official.python_2_in_protocol_0])
def test_both_forms_give_pictures_channels_last_and_labels(tmp_path, form):
    x, y = official.pictures(7)
    got_x, got_y = read_cifar10_batch(write(tmp_path, form(x, y)))
    assert got_x.dtype == np.uint8 and got_x.shape == (7, 32, 32, 3) and got_x.flags.c_contiguous
    assert got_y.dtype == np.int64
    np.testing.assert_array_equal(got_x, x)
    np.testing.assert_array_equal(got_y, y)


def test_pictures_that_python_2_pickled_as_one_string_are_read(tmp_path):
    x, y = official.pictures(2)
    text = "".join(f"\\x{byte:02x}" for byte in official.planes(x).tobytes()).encode()
    raw = b"(dp0\nS'labels'\np1\n(lp2\nI%d\naI%d\nasS'data'\np3\nS'%s'\np4\ns." % (*y, text)
    got_x, got_y = read_cifar10_batch(write(tmp_path, raw))
    np.testing.assert_array_equal(got_x, x)
    np.testing.assert_array_equal(got_y, y)
    with pytest.raises(ValueError, match="b'data' is bytes; it must be a uint8 array"):
        read_cifar10_batch(write(tmp_path, b"(dp0\nS'labels'\np1\n(lp2\nI3\nasS'data'\np3\nS'\\x82'\np4\ns."))


def test_a_record_is_label_then_red_green_blue_row_by_row(tmp_path):
    record = np.zeros(3073, np.uint8)
    record[0] = 9
    record[1 + 33] = 11  # red, row 1, column 1
    record[1 + 1024 + 2] = 22  # green, row 0, column 2
    record[1 + 2048 + 64] = 33  # blue, row 2, column 0
    x, y = read_cifar10_batch(write(tmp_path, record.tobytes()))
    assert y.tolist() == [9]
    assert (x[0, 1, 1, 0], x[0, 0, 2, 1], x[0, 2, 0, 2]) == (11, 22, 33) and np.count_nonzero(x) == 3


def test_a_pickled_array_in_column_order_is_read_in_its_order(tmp_path):
    x, y = official.pictures(5)
    got, _ = read_cifar10_batch(write(tmp_path, official.python_batch(x, y, fortran=True)))
    np.testing.assert_array_equal(got, x)


def test_the_helper_writes_what_numpy_itself_reads():
    x, y = official.pictures(3)
    raw = official.python_batch(x, y).replace(b"numpy.core", b"numpy._core")
    batch = pickle.load(io.BytesIO(raw), encoding="bytes")
    np.testing.assert_array_equal(batch[b"data"], official.planes(x))
    assert batch[b"labels"] == y.tolist()


@pytest.mark.parametrize("cut", [1, 3072, 3074, 5000])
def test_a_binary_file_that_was_cut_off_says_bytes_needed_and_found(tmp_path, cut):
    data = official.binary_batch(*official.pictures(4))[:-cut]
    with pytest.raises(ValueError, match=rf"data_batch_1.bin has {len(data):,} bytes.*3,073.*has {len(data) % 3073:,}"):
        read_cifar10_batch(write(tmp_path, data))


def test_a_pickle_that_was_cut_off_is_refused(tmp_path):
    data = official.python_batch(*official.pictures(4))
    for size in (3, 60, 5000, len(data) - 1):
        with pytest.raises(ValueError, match="data_batch_1 cannot be read as a pickled CIFAR-10 batch"):
            read_cifar10_batch(write(tmp_path, data[:size], "data_batch_1"))


def test_an_empty_a_missing_a_packed_file_and_a_folder_each_say_what_is_wrong(tmp_path):
    with pytest.raises(ValueError, match=r"empty \(0 bytes\)"):
        read_cifar10_batch(write(tmp_path, b""))
    with pytest.raises(FileNotFoundError, match=r"nothing.bin does not exist"):
        read_cifar10_batch(tmp_path / "nothing.bin")
    with pytest.raises(ValueError, match=r"gzip archive.*cifar10\(path"):
        read_cifar10_batch(write(tmp_path, official.tar_gz({"a": b"b"})))
    with pytest.raises(IsADirectoryError, match=r"cifar10\(path=folder\)"):
        read_cifar10_batch(tmp_path)


@pytest.mark.parametrize(("form", "label"), [(official.binary_batch, 10), (official.python_batch, -1)])
def test_a_label_that_no_class_has_names_the_record(tmp_path, form, label):
    x, y = official.pictures(4)
    y[2] = label
    shown = label % 256 if form is official.binary_batch else label
    with pytest.raises(ValueError, match=f"record 2 has label {shown}; .* 0 to 9"):
        read_cifar10_batch(write(tmp_path, form(x, y)))


class Runs:
    def __init__(self, function, *arguments):
        self.how = function, arguments

    def __reduce__(self):
        return self.how


def test_a_pickle_that_would_run_something_is_refused_and_runs_nothing(tmp_path):
    mark = tmp_path / "mark"
    for hostile in (
        Runs(os.system, f"echo > {mark}"),
        Runs(eval, "1"),
        Runs(open, str(mark), "w"),
        Runs(getattr, 1, "real"),
    ):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            data = pickle.dumps({"data": hostile, "labels": []}, protocol)
            asked = pickle.dumps(hostile, 2)[3:].split(b"\n")[:2]  # module and name, as Python 2 calls them
            with pytest.raises(
                ValueError, match=rf"asks for \w+\.{asked[1].decode()}, which no CIFAR-10 batch needs; refused"
            ):
                read_cifar10_batch(write(tmp_path, data))
    assert not mark.exists()


@pytest.mark.parametrize(
    "asked",
    [
        (b"numpy", b"load"),
        (b"numpy.core.multiarray", b"scalar"),
        (b"numpy", b"ndarray.tofile"),
        (b"builtins", b"getattr"),
        (b"_codecs", b"decode"),
        (b"numpy._core.numeric", b"frombuffer"),
    ],
)
def test_only_the_names_of_an_array_of_bytes_are_let_in(tmp_path, asked):
    data = official.pickled(official.dictionary([(official.string(b"data"), official.name(*asked))]))
    with pytest.raises(ValueError, match=f"asks for {(b'.'.join(asked)).decode()}, which"):
        read_cifar10_batch(write(tmp_path, data))


def test_a_reference_to_an_outside_object_is_refused(tmp_path):
    with pytest.raises(ValueError, match="outside object"):
        read_cifar10_batch(write(tmp_path, official.pickled(official.string(b"x") + b"Q")))


@pytest.mark.parametrize("code", [b"O", b"O8", b"f4", b"u2", b"V8"])
def test_arrays_of_anything_but_bytes_are_refused(tmp_path, code):
    content = [
        (official.string(b"data"), official.array(b"\0" * 3072, (1, 3072), code)),
        (official.string(b"labels"), b"]"),
    ]
    with pytest.raises(ValueError, match=r"dtype.*pictures are u1"):
        read_cifar10_batch(write(tmp_path, official.pickled(official.dictionary(content))))


@pytest.mark.parametrize(
    ("data", "labels", "message"),
    [
        (official.array(b"\0" * 3000, (1, 3000)), official.listing([official.number(1)]), r"shape \(1, 3000\)"),
        (official.array(b"\0" * 3072, (1, 3072)), official.listing([]), "1 pictures and 0 labels"),
        (official.array(b"\0" * 3072, (1, 3072)), official.string(b"cat"), "list of integers"),
        (official.array(b"\0" * 3072, (1, 3072)), official.listing([official.string(b"1")]), "list of integers"),
        (official.array(b"\0" * 9, (1, 3072)), official.listing([official.number(1)]), "cannot reshape"),
        (official.string(b"cat"), official.listing([official.number(1)]), "'data' is bytes"),
        (official.name(b"numpy", b"ndarray"), official.listing([]), "'data' is type"),
    ],
)
def test_a_pickle_with_other_content_says_what_it_holds(tmp_path, data, labels, message):
    content = official.dictionary([(official.string(b"data"), data), (official.string(b"labels"), labels)])
    with pytest.raises(ValueError, match=message):
        read_cifar10_batch(write(tmp_path, official.pickled(content)))


def test_a_pickle_without_data_names_its_keys(tmp_path):
    content = official.dictionary([(official.string(b"label_names"), official.listing([]))])
    with pytest.raises(ValueError, match=r"label_names.*b'data' and b'labels'"):
        read_cifar10_batch(write(tmp_path, official.pickled(content)))
    with pytest.raises(ValueError, match="pickle of list"):
        read_cifar10_batch(write(tmp_path, official.pickled(official.listing([]))))


def test_a_short_pickle_cannot_ask_for_gigabytes(tmp_path):
    for numbered in (b"r\xff\xff\xff\x7f", b"p2000000000\n"):
        path = write(tmp_path, official.pickled(b"]" + numbered))
        with traced_peak() as traced, pytest.raises(ValueError, match="is a pickle of list"):
            read_cifar10_batch(path)
        assert traced.peak < 2**20


@pytest.mark.parametrize("core", [b"numpy.core", b"numpy._core"])
@pytest.mark.parametrize("key", [str, str.encode])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_batch_that_python_3_wrote_is_read_in_every_protocol(tmp_path, protocol, key, core):
    x, y = official.pictures(5)
    for data in (official.planes(x), np.asfortranarray(official.planes(x))):
        content = {key("data"): data, key("labels"): y.tolist(), key("filenames"): [b"a.png", "b.png"]}
        raw = pickle.dumps(content, protocol)
        if protocol < 4:  # a name ends with its line
            raw = raw.replace(b"numpy._core", core)
        else:  # a byte of length stands before it, and frames have lengths, which are left out
            frame = raw.index(b"\x95")
            raw = raw[:frame] + raw[frame + 9 :]
            for name in (b".multiarray", b".numeric"):
                old, new = b"numpy._core" + name, core + name
                raw = raw.replace(bytes([len(old)]) + old, bytes([len(new)]) + new)
        got_x, got_y = read_cifar10_batch(write(tmp_path, raw, "data_batch_1"))
        np.testing.assert_array_equal(got_x, x)
        np.testing.assert_array_equal(got_y, y)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_of_python_3_with_another_dtype_or_cut_off_is_called_a_pickle(tmp_path, protocol):
    raw = pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": [0, 0]}, protocol)
    with pytest.raises(ValueError, match="cannot be read as a pickled"):
        read_cifar10_batch(write(tmp_path, raw[:-20], "data_batch_1"))
    for dtype in (np.float32, np.int8, object):
        raw = pickle.dumps({"data": np.zeros((2, 3072), dtype), "labels": [0, 0]}, protocol)
        with pytest.raises(ValueError, match="cannot be read as a pickled"):
            read_cifar10_batch(write(tmp_path, raw, "data_batch_1"))


def encoded(text, encoding="latin1"):
    return b"c_codecs\nencode\n(" + official_text(text) + official_text(encoding) + b"tR"


def official_text(text):
    return b"X" + len(text.encode()).to_bytes(4, "little") + text.encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (encoded("00", "hex"), "the encoding 'hex'"),
        (encoded("0", "unicode_escape"), "the encoding 'unicode_escape'"),
        (b"c_codecs\nencode\n}(" + official_text("_room") + official.number(2**30) + b"ub", "cannot be read as a pickled"),
        (b"cnumpy._core.numeric\n_frombuffer\n(NNNNtR", "not of bytes"),
    ],
)  # fmt: skip
def test_the_stand_ins_can_be_neither_changed_nor_made_to_do_more(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        read_cifar10_batch(write(tmp_path, official.pickled(content)))


def test_an_array_that_was_never_filled_and_a_label_of_many_digits_are_refused(tmp_path):
    never = official.name(b"numpy", b"ndarray") + b")\x81"  # made by NEWOBJ, with no state
    labels = official.listing([b"\x8a\x09" + bytes(8) + b"\x01"])  # 2**64
    for data, message in ((never, "'data' is"), (official.array(b"\0" * 3072, (1, 3072)), "list of integers")):
        content = [(official.string(b"data"), data), (official.string(b"labels"), labels)]
        with pytest.raises(ValueError, match=message):
            read_cifar10_batch(write(tmp_path, official.pickled(official.dictionary(content))))
