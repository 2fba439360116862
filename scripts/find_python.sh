#!/bin/sh
# Print the first interpreter that really runs and is new enough: find_python.sh [PYTHON]
# A name on the PATH proves nothing: a pyenv shim, for one, exists and fails.
works() { "$1" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

if [ -n "$1" ]; then
    if works "$1"; then printf '%s\n' "$1"; exit 0; fi
    echo "PYTHON=$1 does not run, is older than Python 3.11, or has no venv module." >&2
    exit 1
fi
for candidate in .venv/bin/python python3 python3.14 python3.13 python3.12 python3.11; do
    if works "$candidate"; then printf '%s\n' "$candidate"; exit 0; fi
done
echo "No Python 3.11 or newer was found. Tried: python3, python3.14, python3.13, python3.12, python3.11." >&2
echo "Install one (Debian, Ubuntu: apt-get install python3 python3-venv; macOS: brew install python)," >&2
echo "or name it: make PYTHON=/path/to/python3" >&2
exit 1
