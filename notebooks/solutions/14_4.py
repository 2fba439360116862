def kept_alive(arrays, held):
    """arrays: {name: (name of what it is a view of, or None; its bytes)}; held: names -> bytes that stay alive."""
    owners = set()  # each counts once, however many views there are
    for name in held:
        while arrays[name][0] is not None:
            name = arrays[name][0]
        owners.add(name)
    return sum(arrays[name][1] for name in owners)


check("14.4", kept_alive)
