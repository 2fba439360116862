def left_over(refers, names):
    """refers: {object: [objects that it refers to]}; names: the objects that have a name -> a sorted list of those that no
    name leads to, and that reference counting does not free."""
    left = set(refers)
    while True:
        referred = {other for one in left for other in refers[one]} | set(names)
        if left <= referred:
            break
        left &= referred  # who has no reference goes, and with it the references that it had
    reachable, waiting = set(), list(names)
    while waiting:
        one = waiting.pop()
        if one not in reachable:
            reachable.add(one)
            waiting += refers[one]
    return sorted(left - reachable)


check("14.3", left_over)
