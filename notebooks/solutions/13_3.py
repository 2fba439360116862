def kept_alive(names, holds, sizes):
    """names: a list; holds: {record: [records]}; sizes: {record: bytes} -> bytes that the names keep alive."""
    seen, waiting = set(), list(names)
    while waiting:
        record = waiting.pop()
        if record not in seen:  # each record counts once, whoever leads to it
            seen.add(record)
            waiting.extend(holds.get(record, []))
    return sum(sizes[record] for record in seen)


check("13.3", kept_alive)
