def way_to(refers, names, array):
    """refers: {object: [objects that it refers to]}; names: where a walk may begin -> the shortest way, a list from a name
    to `array`, both included; of two equally short ones the first. [] if none leads there."""
    ways, seen = [[name] for name in names], set(names)
    for way in ways:  # it grows while we go through it: level by level
        if way[-1] == array:
            return way
        for child in refers[way[-1]]:
            if child not in seen:  # else a cycle would never end
                seen.add(child)
                ways.append([*way, child])
    return []


check("14.2", way_to)
