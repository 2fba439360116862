"""Small files in the forms of the official ones, made here so that no test needs a network or the real data."""

import gzip
import hashlib
import io
import struct
import tarfile

import numpy as np

from dlcourse.datasets.download import Source


def pictures(count, seed=0):
    """x uint8 (count, 32, 32, 3) and y int64 (count,)."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, 32, 32, 3), np.uint8), rng.integers(0, 10, count)


def planes(x):
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2)).reshape(len(x), 3072)


def binary_batch(x, y):
    return np.concatenate([y.astype(np.uint8)[:, None], planes(x)], axis=1).tobytes()


# Opcodes of pickle as Python 2 wrote them: its strings are read as bytes, and NumPy's names are the old ones.


def string(value):
    return b"T" + struct.pack("<i", len(value)) + value


def name(module, attribute):
    return b"c" + module + b"\n" + attribute + b"\n"


def number(value):
    return b"J" + struct.pack("<i", value)


def listing(items):
    return b"](" + b"".join(items) + b"e"


def dictionary(items):
    return b"}(" + b"".join(key + value for key, value in items) + b"u"


def array(data, shape, code=b"u1", fortran=False):
    made = name(b"numpy.core.multiarray", b"_reconstruct")
    made += b"(" + name(b"numpy", b"ndarray") + b"(" + number(0) + b"t" + string(b"b") + b"tR"
    dtype = name(b"numpy", b"dtype") + b"(" + string(code) + number(0) + number(1) + b"tR"
    dtype += b"(" + number(3) + string(b"|") + b"NNN" + number(-1) + number(-1) + number(0) + b"tb"
    axes = b"(" + b"".join(map(number, shape)) + b"t"
    return made + b"(" + number(1) + axes + dtype + (b"\x88" if fortran else b"\x89") + string(data) + b"tb"


def python_2_in_protocol_0(x, y):
    """As Python 2 wrote without being asked for a protocol: text alone, in which bytes are escaped."""
    data = planes(x)
    text = "".join(f"\\x{byte:02x}" for byte in data.tobytes()).encode()
    made = b"cnumpy.core.multiarray\n_reconstruct\np4\n(cnumpy\nndarray\np5\n(I0\ntp6\nS'b'\np7\ntp8\nRp9\n"
    dtype = b"cnumpy\ndtype\np11\n(S'u1'\np12\nI0\nI1\ntp13\nRp14\n(I3\nS'|'\np15\nNNNI-1\nI-1\nI0\ntp16\nb"
    state = b"(I1\n(I%d\nI%d\ntp10\n" % data.shape + dtype + b"I00\nS'" + text + b"'\np17\ntp18\nb"
    labels = b"(lp2\n" + b"".join(b"I%d\na" % label for label in y)
    return b"(dp0\nS'labels'\np1\n" + labels + b"sS'data'\np3\n" + made + state + b"s."


def pickled(content):
    return b"\x80\x02" + content + b"."


def python_batch(x, y, fortran=False):
    data = planes(x)
    content = [
        (string(b"data"), array(data.tobytes(order="F" if fortran else "C"), data.shape, fortran=fortran)),
        (string(b"labels"), listing(map(number, y))),
        (string(b"batch_label"), string(b"training batch 1 of 5")),
        (string(b"filenames"), listing(string(b"leptodactylus_pentadactylus_s_%06d.png" % i) for i in range(len(y)))),
    ]
    return pickled(dictionary(content))


def tar_gz(members):
    """An archive of {name: bytes}."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for member, data in members.items():
            info = tarfile.TarInfo(member)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return raw.getvalue()


def cifar10(rows):
    """x, y of the five training batches and of the test batch, and the members of both archives, not in order."""
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    batches = {name: (pictures(rows, i)[0], np.arange(i, rows + i) % 10) for i, name in enumerate(names)}
    order = ["data_batch_4", "test_batch", "data_batch_1", "data_batch_5", "data_batch_3", "data_batch_2"]
    binary = {f"cifar-10-batches-bin/{b}.bin": binary_batch(*batches[b]) for b in order}
    python = {f"cifar-10-batches-py/{b}": python_batch(*batches[b]) for b in order}
    x, y = (np.concatenate([batches[f"data_batch_{i}"][k] for i in range(1, 6)]) for k in (0, 1))
    return (x, y), batches["test_batch"], binary, python


def idx(data):
    return struct.pack(f">HBB{data.ndim}i", 0, 8, data.ndim, *data.shape) + data.tobytes()


def mnist(counts):
    """{part: (x, y)} and {part, "x" or "y": gzip file}."""
    rng = np.random.default_rng(0)
    data = {
        part: (rng.integers(0, 256, (n, 28, 28), np.uint8), rng.integers(0, 10, n, np.uint8))
        for part, n in counts.items()
    }
    return data, {(part, k): gzip.compress(idx(xy[i])) for part, xy in data.items() for i, k in enumerate("xy")}


def source(url, data):
    content = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    return Source(url, len(data), hashlib.sha256(data).hexdigest(), hashlib.sha256(content).hexdigest())
