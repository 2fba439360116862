def peak_in_bytes(maxrss, system):
    """ru_maxrss of a process and sys.platform -> bytes, None where the system has no such number."""
    if system == "win32":
        return None
    if system == "darwin":
        return maxrss  # macOS counts bytes
    return 1024 * maxrss  # Linux and the BSDs count KiB


check("02.1", peak_in_bytes)
