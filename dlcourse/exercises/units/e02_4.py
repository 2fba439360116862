"""02.4  Pages that several processes share."""

from dlcourse.exercises.unit import solution, wrong

parts = "RSS", "USS", "PSS"
hints = """
- For each page of the process, count how many processes have it. All three numbers follow from these counts.
- RSS: all pages. USS: those whose count is 1. PSS: a page with the count n gives 1/n of a page.
- `counts = [sum(page in pages for pages in processes) for page in processes[which]]`. Then 4,096 times `len(counts)`,
  `counts.count(1)` and `sum(1 / n for n in counts)`.
"""


@solution
def rss_uss_pss(processes, which):
    """processes: [{number of a page, …}, …] -> RSS, USS and PSS in bytes of process number `which`."""
    counts = [sum(page in pages for pages in processes) for page in processes[which]]
    rss = 4096 * len(counts)
    uss = 4096 * counts.count(1)  # nobody else has these
    pss = 4096 * sum(1 / n for n in counts)
    return rss, uss, pss


@wrong
def rss_shared_out(processes, which):
    """Your PSS divides all pages among all processes. Only a page that is shared is divided, and only among those that
    have it."""
    rss, uss, _ = rss_uss_pss(processes, which)
    return rss, uss, rss / len(processes)


@wrong
def divided_by_all(processes, which):
    """Your PSS divides each shared page by the number of all processes. A page that two of three processes have counts
    a half in each of the two."""
    rss, uss, _ = rss_uss_pss(processes, which)
    return rss, uss, uss + (rss - uss) / len(processes)


@wrong
def always_two(processes, which):
    """Your PSS gives a half for each shared page. A page can be in more than two processes: count them."""
    rss, uss, _ = rss_uss_pss(processes, which)
    return rss, uss, uss + (rss - uss) / 2


@wrong
def all_have_it(processes, which):
    """Your USS leaves out the pages that *all* processes have. It is the pages that *no other* process has."""
    rss, _, pss = rss_uss_pss(processes, which)
    return rss, rss - 4096 * len(set.intersection(*processes)), pss


@wrong
def uss_is_shared(processes, which):
    """Your USS counts the pages that others have too. It is the other ones: those that no other process has."""
    rss, uss, pss = rss_uss_pss(processes, which)
    return rss, rss - uss, pss


@wrong
def pss_without_its_own(processes, which):
    """Your PSS has the shared pages alone. A page that nobody shares counts in full."""
    rss, uss, pss = rss_uss_pss(processes, which)
    return rss, uss, pss - uss


also_wrong = (
    lambda *a: tuple(size / 4096 for size in rss_uss_pss(*a)),
    lambda processes, which: (4096 * len(set.union(*processes)), *rss_uss_pss(processes, which)[1:]),
    lambda all_, which: rss_uss_pss([all_[which], *(one for one in all_ if one != all_[which])], 0),
)


def inputs(rng):
    yield "one process alone", ([{1, 2, 3}], 0)
    yield "a kernel and a child that share two pages", ([{1, 2, 3, 4}, {3, 4, 5}], 0)
    yield "the same two, seen from the child", ([{1, 2, 3, 4}, {3, 4, 5}], 1)
    yield "three processes; page 9 is in two of them, page 7 in all", ([{7, 9, 1}, {7, 9}, {7, 2}], 0)
    yield "three that share nothing", ([{1}, {2, 3}, {4, 5, 6}], 2)
    yield "a process that has nothing in memory", ([{1, 2}, set()], 1)
    yield "four processes, pages drawn at random", ([set(rng.integers(0, 40, size=30).tolist()) for _ in range(4)], 2)
    yield "a kernel and its child just after the fork: the same pages", ([{1, 2, 3}, {1, 2, 3}, {3}], 1)
