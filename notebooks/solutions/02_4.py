def rss_uss_pss(processes, which):
    """processes: [{number of a page, …}, …] -> RSS, USS and PSS in bytes of process number `which`."""
    counts = [sum(page in pages for pages in processes) for page in processes[which]]
    rss = 4096 * len(counts)
    uss = 4096 * counts.count(1)  # nobody else has these
    pss = 4096 * sum(1 / n for n in counts)
    return rss, uss, pss


check("02.4", rss_uss_pss)
