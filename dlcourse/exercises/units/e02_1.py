"""02.1  The peak that a process remembers."""

from dlcourse.exercises.unit import solution, wrong

hints = """
- Three kinds of systems are in the text: one that counts in bytes, one that has no such number, and all others.
- `sys.platform` is "darwin" on macOS, "win32" on Windows, "linux" on Linux. Test for the two special ones and let all
  others be KiB.
"""


@solution
def peak_in_bytes(maxrss, system):
    """ru_maxrss of a process and sys.platform -> bytes, None where the system has no such number."""
    if system == "win32":
        return None
    if system == "darwin":
        return maxrss  # macOS counts bytes
    return 1024 * maxrss  # Linux and the BSDs count KiB


@wrong
def always_kib(maxrss, system):
    """On macOS the number is in bytes already. Taken as KiB, a process of 137 MiB would have 137 GiB."""
    return None if system == "win32" else 1024 * maxrss


@wrong
def always_bytes(maxrss, system):
    """On Linux the number counts KiB. Taken as bytes, a process of 137 MiB would have 0.13 MiB."""
    return None if system == "win32" else maxrss


@wrong
def exchanged(maxrss, system):
    """The two systems are exchanged: macOS counts bytes, Linux counts KiB."""
    if system == "win32":
        return None
    return 1024 * maxrss if system == "darwin" else maxrss


@wrong
def thousands(maxrss, system):
    """Linux's manual says kilobytes and means 1,024 bytes. With 1,000 the result is 2.3 % too low."""
    if system == "win32":
        return None
    return maxrss if system == "darwin" else 1000 * maxrss


@wrong
def only_linux(maxrss, system):
    """Linux is not the only system that counts KiB; FreeBSD does too. macOS is the exception: test for that one."""
    if system == "win32":
        return None
    return 1024 * maxrss if system == "linux" else maxrss


@wrong
def zero_on_windows(maxrss, system):
    """0 looks like a measurement. Windows has no such number, so the honest answer is None."""
    if system == "win32":
        return 0
    return maxrss if system == "darwin" else 1024 * maxrss


def inputs(rng):
    yield "Linux", (140_000, "linux")
    yield "macOS", (143_360_000, "darwin")
    yield "FreeBSD counts as Linux does", (140_000, "freebsd14")
    yield "Windows has no such number", (0, "win32")
    yield "Linux, a process of 52 GiB", (54_525_952, "linux")
