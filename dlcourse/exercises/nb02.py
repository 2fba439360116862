"""Exercises of notebook 02."""

from collections.abc import Iterator

import numpy as np

from dlcourse.exercises.exercise import Exercise, Wrong

MIB = 2**20
Lives = list[tuple[float, float, int]]  # of arrays: (second when made, second when gone, bytes)
Pages = list[set[int]]  # of processes: the numbers of the pages that each has in memory


def peak_in_bytes(maxrss: int, system: str) -> int | None:
    if system == "win32":
        return None
    return maxrss if system == "darwin" else 1024 * maxrss


def _always_kib(maxrss: int, system: str) -> int | None:
    return None if system == "win32" else 1024 * maxrss


def _always_bytes(maxrss: int, system: str) -> int | None:
    return None if system == "win32" else maxrss


def _exchanged(maxrss: int, system: str) -> int | None:
    if system == "win32":
        return None
    return 1024 * maxrss if system == "darwin" else maxrss


def _thousands(maxrss: int, system: str) -> int | None:
    if system == "win32":
        return None
    return maxrss if system == "darwin" else 1000 * maxrss


def _only_linux(maxrss: int, system: str) -> int | None:
    if system == "win32":
        return None
    return 1024 * maxrss if system == "linux" else maxrss


def _zero_on_windows(maxrss: int, system: str) -> int | None:
    if system == "win32":
        return 0
    return maxrss if system == "darwin" else 1024 * maxrss


def _systems(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "Linux", (140_000, "linux")
    yield "macOS", (143_360_000, "darwin")
    yield "FreeBSD counts as Linux does", (140_000, "freebsd14")
    yield "Windows has no such number", (0, "win32")
    yield "Linux, a process of 52 GiB", (54_525_952, "linux")


def two_peaks(arrays: Lives, looks: list[float]) -> tuple[int, int]:
    def alive(second: float) -> int:
        return sum(size for made, gone, size in arrays if made <= second < gone)

    return max(map(alive, looks), default=0), max((alive(made) for made, _, _ in arrays), default=0)


def _largest_array(arrays: Lives, looks: list[float]) -> tuple[int, int]:
    seen = (size for made, gone, size in arrays for look in looks if made <= look < gone)
    return max(seen, default=0), max((size for _, _, size in arrays), default=0)


def _all_added(arrays: Lives, looks: list[float]) -> tuple[int, int]:
    met = (size for made, gone, size in arrays if any(made <= look < gone for look in looks))
    return sum(met), sum(size for _, _, size in arrays)


def _still_there(arrays: Lives, looks: list[float]) -> tuple[int, int]:
    def alive(second: float) -> int:
        return sum(size for made, gone, size in arrays if made <= second <= gone)

    return max(map(alive, looks), default=0), max((alive(made) for made, _, _ in arrays), default=0)


def _the_looks_are_all(arrays: Lives, looks: list[float]) -> tuple[int, int]:
    sampled = two_peaks(arrays, looks)[0]
    return sampled, sampled


def _last_look(arrays: Lives, looks: list[float]) -> tuple[int, int]:
    return two_peaks(arrays, looks[-1:])[0], two_peaks(arrays, looks)[1]


def _never_freed(arrays: Lives, looks: list[float]) -> tuple[int, int]:
    sampled = max((sum(size for made, _, size in arrays if made <= look) for look in looks), default=0)
    return sampled, sum(size for _, _, size in arrays)


def _watched(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "one array, one look that meets it", ([(0.0, 1.0, 64 * MIB)], [0.5])
    yield "one short array between two looks", ([(0.25, 0.5, 64 * MIB)], [0.0, 1.0])
    yield "two arrays one after the other: never both", ([(0.0, 0.5, 3 * MIB), (0.5, 1.0, 2 * MIB)], [0.25, 0.5, 0.75])
    yield "two arrays that overlap where nobody looks", ([(0.0, 0.5, 3 * MIB), (0.25, 1.0, 2 * MIB)], [0.125, 0.75])
    yield "a small one that is met, a large one that is not", ([(0.0, 1.0, MIB), (1.0, 1.5, 9 * MIB)], [0.5, 2.0])
    yield "nobody looks", ([(0.0, 1.0, MIB)], [])
    yield "nothing is made", ([], [0.0, 0.5])
    lives = [(float(made), float(made + rng.integers(1, 4)), int(rng.integers(1, 9)) * MIB) for made in range(12)]
    yield "twelve arrays, a look every 5 seconds", (lives, [0.5, 5.5, 10.5])


def usage_percent(heap: int, used: int, holes: int, mapped: int) -> float:
    taken = heap + mapped
    return 100 * (used + mapped) / taken if taken else 100.0


def _heap_alone(heap: int, used: int, holes: int, mapped: int) -> float:
    return 100 * used / heap if heap else 100.0


def _mapped_below_only(heap: int, used: int, holes: int, mapped: int) -> float:
    return 100 * used / (heap + mapped) if heap + mapped else 100.0


def _mapped_above_only(heap: int, used: int, holes: int, mapped: int) -> float:
    return 100 * (used + mapped) / heap if heap else 100.0


def _share_of_holes(heap: int, used: int, holes: int, mapped: int) -> float:
    return 100 * holes / (heap + mapped) if heap + mapped else 0.0


def _as_a_share(heap: int, used: int, holes: int, mapped: int) -> float:
    return usage_percent(heap, used, holes, mapped) / 100


def _divides_by_zero(heap: int, used: int, holes: int, mapped: int) -> float:
    return 100 * (used + mapped) / (heap + mapped)


def _heaps(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "nothing mapped, half of the heap in use", (100 * MIB, 50 * MIB, 50 * MIB, 0)
    yield "a heap full of holes beside one large array", (100 * MIB, 20 * MIB, 80 * MIB, 64 * MIB)
    yield "everything in use", (10 * MIB, 10 * MIB, 0, 5 * MIB)
    yield "an empty heap that was not given back", (30 * MIB, 0, 30 * MIB, 0)
    yield "only mappings", (0, 0, 0, 64 * MIB)
    yield "nothing taken yet: nothing is wasted", (0, 0, 0, 0)


def rss_uss_pss(processes: Pages, which: int) -> tuple[int, int, float]:
    have = [sum(page in pages for pages in processes) for page in processes[which]]
    return 4096 * len(have), 4096 * have.count(1), 4096 * sum(1 / count for count in have)


def _pages_not_bytes(processes: Pages, which: int) -> tuple[int, int, float]:
    rss, uss, pss = rss_uss_pss(processes, which)
    return rss // 4096, uss // 4096, pss / 4096


def _rss_shared_out(processes: Pages, which: int) -> tuple[int, int, float]:
    rss, uss, _ = rss_uss_pss(processes, which)
    return rss, uss, rss / len(processes)


def _divided_by_all(processes: Pages, which: int) -> tuple[int, int, float]:
    rss, uss, _ = rss_uss_pss(processes, which)
    return rss, uss, uss + (rss - uss) / len(processes)


def _always_two(processes: Pages, which: int) -> tuple[int, int, float]:
    rss, uss, _ = rss_uss_pss(processes, which)
    return rss, uss, uss + (rss - uss) / 2


def _all_have_it(processes: Pages, which: int) -> tuple[int, int, float]:
    rss, _, pss = rss_uss_pss(processes, which)
    return rss, rss - 4096 * len(set.intersection(*processes)), pss


def _whole_system(processes: Pages, which: int) -> tuple[int, int, float]:
    _, uss, pss = rss_uss_pss(processes, which)
    return 4096 * len(set.union(*processes)), uss, pss


def _sharing(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "one process alone", ([{1, 2, 3}], 0)
    yield "a kernel and a child that share two pages", ([{1, 2, 3, 4}, {3, 4, 5}], 0)
    yield "the same two, seen from the child", ([{1, 2, 3, 4}, {3, 4, 5}], 1)
    yield "three processes; page 9 is in two of them, page 7 in all", ([{7, 9, 1}, {7, 9}, {7, 2}], 0)
    yield "three that share nothing", ([{1}, {2, 3}, {4, 5, 6}], 2)
    yield "a process that has nothing in memory", ([{1, 2}, set()], 1)
    yield "four processes, pages drawn at random", ([set(rng.integers(0, 40, size=30).tolist()) for _ in range(4)], 2)


EXERCISES = [
    Exercise(
        id="02.1",
        title="The peak that a process remembers",
        reference=peak_in_bytes,
        inputs=_systems,
        hints=(
            (
                "Three kinds of systems are in the text: one that counts in bytes, one that has no such number, and all "
                "others."
            ),
            (
                '`sys.platform` is "darwin" on macOS, "win32" on Windows, "linux" on Linux. Test for the two special ones '
                "and let all others be KiB."
            ),
        ),
        wrong=(
            Wrong(
                _always_kib,
                "On macOS the number is in bytes already. Taken as KiB, a process of 137 MiB would have 137 GiB.",
            ),
            Wrong(
                _always_bytes,
                "On Linux the number counts KiB. Taken as bytes, a process of 137 MiB would have 0.13 MiB.",
            ),
            Wrong(
                _exchanged,
                "The two systems are exchanged: macOS counts bytes, Linux counts KiB.",
            ),
            Wrong(
                _thousands,
                "Linux's manual says kilobytes and means 1,024 bytes. With 1,000 the result is 2.3 % too low.",
            ),
            Wrong(
                _only_linux,
                "Linux is not the only system that counts KiB; FreeBSD does too. macOS is the exception: test for that one.",
            ),
            Wrong(
                _zero_on_windows,
                "0 looks like a measurement. Windows has no such number, so the honest answer is None.",
            ),
        ),
    ),
    Exercise(
        id="02.2",
        title="What a sampler sees",
        reference=two_peaks,
        inputs=_watched,
        hints=(
            (
                "Write a small function first: how many bytes are alive at one given second? It adds up all arrays that are "
                "made already and not yet gone."
            ),
            (
                "The sampler's peak is the largest value of that function over the looks. 0 if there are none: "
                "`max(…, default=0)`."
            ),
            (
                "The number of bytes rises only when something is made. So for the true peak it is enough to ask at the "
                "seconds at which an array is made."
            ),
        ),
        wrong=(
            Wrong(
                _largest_array,
                "You take the largest single array. Arrays that are alive at the same second add up.",
            ),
            Wrong(
                _all_added,
                "You add up all arrays, also those that were never alive at the same time. A peak belongs to one moment.",
            ),
            Wrong(
                _still_there,
                "An array that is gone at second 0.5 is not there any more at 0.5. Ask for `made <= second < gone`.",
            ),
            Wrong(
                _the_looks_are_all,
                "Your true peak is what the sampler saw. Between two looks there can be more: that is why the sampler's "
                "number is a lower bound.",
            ),
            Wrong(
                _last_look,
                "Your sampler keeps its last look. A peak is the largest of all looks.",
            ),
            Wrong(
                _never_freed,
                "Your bytes only rise: arrays that are gone are still counted. Look at the second number of each array.",
            ),
        ),
        parts=("sampled", "true"),
    ),
    Exercise(
        id="02.3",
        title="Usage per cent",
        reference=usage_percent,
        inputs=_heaps,
        hints=(
            (
                "Two questions: how much did the allocator take from the system, and how much of that is in use? Both have "
                "two parts, the heap and the mappings."
            ),
            (
                "A mapping belongs to one array and goes back when the array is freed. So all of it is in use, and all of "
                "it was taken."
            ),
            "`100 * (used + mapped) / (heap + mapped)`, and 100 where nothing was taken.",
        ),
        wrong=(
            Wrong(
                _heap_alone,
                "This is the usage of the heap alone. Mappings were taken from the system too, and they are in use.",
            ),
            Wrong(
                _mapped_below_only,
                "Mappings count as taken here and not as in use. So every large array would look like waste.",
            ),
            Wrong(
                _mapped_above_only,
                "Mappings count as in use here and not as taken. So the usage can go above 100 %.",
            ),
            Wrong(
                _share_of_holes,
                "This is the share of the holes, what is *not* in use. Usage is the other part of 100 %.",
            ),
            Wrong(
                _as_a_share,
                "This is a share between 0 and 1. Asked is per cent: multiply by 100.",
            ),
            Wrong(
                _divides_by_zero,
                "Where nothing was taken from the system yet, this divides by zero. Nothing is wasted then: 100 %.",
            ),
        ),
    ),
    Exercise(
        id="02.4",
        title="Pages that several processes share",
        reference=rss_uss_pss,
        inputs=_sharing,
        hints=(
            "For each page of the process, count how many processes have it. All three numbers follow from these counts.",
            "RSS: all pages. USS: those whose count is 1. PSS: a page with the count n gives 1/n of a page.",
            (
                "`counts = [sum(page in pages for pages in processes) for page in processes[which]]`. Then 4,096 times "
                "`len(counts)`, `counts.count(1)` and `sum(1 / n for n in counts)`."
            ),
        ),
        wrong=(
            Wrong(_pages_not_bytes, "These are pages. Asked are bytes: a page has 4,096 of them."),
            Wrong(
                _rss_shared_out,
                "Your PSS divides all pages among all processes. Only a page that is shared is divided, and only among "
                "those that have it.",
            ),
            Wrong(
                _divided_by_all,
                "Your PSS divides each shared page by the number of all processes. A page that two of three processes "
                "have counts a half in each of the two.",
            ),
            Wrong(
                _always_two,
                "Your PSS gives a half for each shared page. A page can be in more than two processes: count them.",
            ),
            Wrong(
                _all_have_it,
                "Your USS leaves out the pages that *all* processes have. It is the pages that *no other* process has.",
            ),
            Wrong(
                _whole_system,
                "Your RSS counts the pages of all processes. It belongs to one: all pages that this process has.",
            ),
        ),
        parts=("RSS", "USS", "PSS"),
    ),
]
