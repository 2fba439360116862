#!/usr/bin/env bash
# The tests as on another machine, one row of the matrix: matrix.sh ROW. CI runs the same rows.
#
#   usual          everything, as `make test-all`
#   debian         everything, as an ordinary user (made if need be: as root only) with /usr/bin/python3, in a folder with
#                  a blank and an accent in its name
#   first-python   units and four notebooks, with the Python that stands first in the path
#   py312 py313 py314   that Python: 3.13 everything, else units and four notebooks
#   oldest newest  the oldest versions that pyproject.toml allows, and the newest that there are: units, outputs, times
#   coretype-haswell coretype-zen coretype-nehalem   another BLAS kernel: units, outputs, times
#   nohup          started in the background, with SIGINT ignored: units, outputs, times
#   busy           everything, beside six busy processes
#
# Each row runs in a clone of its own, in MATRIX_FOLDER (else a folder for temporary files). NOTEBOOKS="00 05" restricts
# a row to these notebooks. It ends with the commit, the closing table and 1 where something failed.
set -uo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
row=${1:-}
base=${MATRIX_FOLDER:-${TMPDIR:-/tmp}/dlcourse-matrix}
every="lint units first again browser" some="lint units first again" timed="units first"
four="00 02 05 12"
busy_ones=()

cleanup() { for one in "${busy_ones[@]:-}"; do [ -z "$one" ] || kill "$one" 2>/dev/null; done; }
trap cleanup EXIT

clone() {  # FOLDER: a clone of what is committed here; what an earlier run left of its environment stays
    if [ ! -e "$1/Makefile" ]; then
        mkdir -p "$(dirname "$1")"
        git -c safe.directory='*' clone -q "$top" "$1" || exit 1
    else
        git -c safe.directory='*' -C "$1" fetch -q "$top" HEAD || exit 1
        git -c safe.directory='*' -C "$1" reset -q --hard FETCH_HEAD
    fi
    git -c safe.directory='*' -C "$1" log -1 --format="row $row, commit %h: %s"
}

find_python() {  # MINOR: prints an interpreter of Python 3.MINOR, or ends the row
    for one in "python3.$1" "$HOME/.pyenv/versions/3.$1".*/bin/python; do
        if "$one" -c "import sys; sys.exit(sys.version_info[:2] != (3, $1))" 2>/dev/null; then
            printf '%s\n' "$one"
            return
        fi
    done
    echo "row $row: no Python 3.$1 is on this machine" >&2
    return 1
}

tests() {  # FOLDER KINDS NOTEBOOKS [VARIABLE=VALUE of make or of the environment ...]
    local folder=$1 kinds=$2 chosen=${NOTEBOOKS:-$3}
    shift 3
    (cd "$folder" && CI=true make test KINDS="$kinds" NOTEBOOK="$chosen" "$@")
}

as_learner() {  # COMMAND: as an ordinary user, with nothing of this environment but the way to the network
    local kept=() name
    while IFS= read -r name; do kept+=("$name=${!name}"); done < <(
        compgen -e | grep -iE '^(PIP_.*|.*_proxy|SSL_CERT.*|REQUESTS_CA_BUNDLE|CHROMIUM|DLCOURSE_.*|NOTEBOOKS|REQUIRE_BROWSER)$'
    )
    runuser -u learner -- env -i HOME="$home" USER=learner PATH=/usr/local/bin:/usr/bin:/bin CI=true "${kept[@]}" "$@"
}

debian() {
    [ "$(id -u)" = 0 ] || { echo "The row debian makes a user: run it as root." >&2; exit 1; }
    id learner >/dev/null 2>&1 || useradd --create-home --shell /bin/bash learner || exit 1
    home=$(getent passwd learner | cut -d: -f6)
    for settings in "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf"; do  # which index a company uses
        [ -e "$settings" ] || continue
        install -d -o learner -g learner "$home/.config" "$home/.config/pip"  # with -D the folders would be root's
        install -o learner -g learner "$settings" "$home/.config/pip/pip.conf"
    done
    local folder="$home/Übung kurs/Déjà vu"
    clone "$folder"  # as root, who may read this folder where the user may not
    chown -R learner: "$home/Übung kurs"
    as_learner make -C "$folder" test PYTHON=/usr/bin/python3 KINDS="$every" NOTEBOOK="${NOTEBOOKS:-}"
}

without_constraints() {  # FOLDER VERSIONS ...: an environment with these versions, and what they need
    local folder=$1
    shift
    (
        cd "$folder" && "$python" -m venv --clear .venv &&
            .venv/bin/python -m pip install -q --upgrade -e ".[test]" "$@"
    ) || exit 1
}

lowest() {  # FOLDER: the lower bound of each dependency, as a version
    "$python" - "$1" <<'PYTHON'
import pathlib, re, sys, tomllib
described = tomllib.loads(pathlib.Path(sys.argv[1], "pyproject.toml").read_text(encoding="utf-8"))["project"]
for needed in described["dependencies"]:
    name, version, marker = re.fullmatch(r"([\w.-]+)[>=]=([\w.]+)[^;]*(;.*)?", needed).groups()
    print(f"{name}=={version}{marker or ''}")
PYTHON
}

test_this_environment() {  # FOLDER KINDS: as it is; make would install the tested versions again
    (cd "$1" && CI=true .venv/bin/python scripts/test.py --only $2 ${NOTEBOOKS:+--notebook $NOTEBOOKS})
}

case $row in
    usual)
        clone "$base/usual"
        tests "$base/usual" "$every" ""
        ;;
    debian) debian ;;
    first-python)
        python=$(python3 -c 'import sys; print(sys.executable)')
        clone "$base/first python"
        tests "$base/first python" "$some" "$four" PYTHON="$python"
        ;;
    py312 | py314)
        python=$(find_python "${row#py3}") || { echo "0 passed, 0 failed, 1 skipped"; exit 0; }
        clone "$base/$row"
        tests "$base/$row" "$some" "$four" PYTHON="$python"
        ;;
    py313)
        python=$(find_python 13) || { echo "0 passed, 0 failed, 1 skipped"; exit 0; }
        clone "$base/$row"
        tests "$base/$row" "$every" "" PYTHON="$python"
        ;;
    oldest)
        python=$(find_python 11) || { echo "0 passed, 0 failed, 1 skipped"; exit 0; }
        clone "$base/$row"
        mapfile -t versions < <(lowest "$base/$row")
        without_constraints "$base/$row" "${versions[@]}"
        test_this_environment "$base/$row" "$timed"
        ;;
    newest)
        python=$(python3 -c 'import sys; print(sys.executable)')
        clone "$base/$row"
        without_constraints "$base/$row"
        test_this_environment "$base/$row" "$timed"
        ;;
    coretype-haswell | coretype-zen | coretype-nehalem)
        clone "$base/usual"
        name=${row#coretype-}
        export OPENBLAS_CORETYPE="$(printf '%s' "${name:0:1}" | tr a-z A-Z)${name:1}"
        tests "$base/usual" "$timed" ""
        ;;
    nohup)
        clone "$base/usual"
        trap '' INT HUP
        tests "$base/usual" "$timed" "" </dev/null
        ;;
    busy)
        clone "$base/usual"
        for _ in 1 2 3 4 5 6; do
            (while :; do :; done) &
            busy_ones+=("$!")
        done
        tests "$base/usual" "$every" ""
        ;;
    *)
        sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//'
        exit 2
        ;;
esac
