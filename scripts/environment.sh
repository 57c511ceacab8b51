# Sourced by the commands in this folder: makes a Python environment from a lock file, once per lock file.
# Uses uv if it is installed, otherwise venv and pip.

# Neither compiles what it installs. Where Python may not keep what it compiles, as is usual in containers, every start
# would compile all modules anew, which takes a second.
unset PYTHONDONTWRITEBYTECODE

# Print the first Python on the PATH that the project supports.
supported_python() {
    local candidate
    for candidate in "${TRIMBENCH_PYTHON:-python3}" python3.13 python3.12 python3.11 python3 python; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

# make_environment FOLDER LOCK: install the locked packages and the project into FOLDER, unless they are there.
make_environment() {
    local folder=$1 lock=$2 python
    # An environment belongs to its place: in a copied or moved clone it would run the code of the old one.
    if [[ -x $folder/bin/python ]] && cmp -s "$lock" "$folder/installed.lock" \
        && cmp -s pyproject.toml "$folder/installed.toml" \
        && [[ $(cat "$folder/installed.place" 2>/dev/null) == "$PWD" ]]; then
        return
    fi
    if ! python=$(supported_python); then
        if ! command -v uv >/dev/null; then
            echo "trimbench needs Python 3.11, 3.12 or 3.13; none was found. Install one, or uv, and run this again." >&2
            return 1
        fi
        python=3.12
    fi
    rm -rf "$folder"
    # A terminal gets the progress of uv or pip, a log only what goes wrong.
    local quiet=--quiet started=$SECONDS size
    case $lock in *run.lock) size=1.3 ;; *ray.lock) size=1.5 ;; *) size=1.9 ;; esac
    if [[ -t 2 ]]; then quiet=; fi
    echo "Making the environment $folder, once: $(grep -c '==' "$lock") packages, about 0.4 GB to download and at most $size GB on disk." >&2
    echo "This takes one to three minutes, more over a slow network." >&2
    if command -v uv >/dev/null; then
        local install=(uv pip install $quiet --python "$folder/bin/python")
        make_step 1 "an empty environment, by uv" uv venv $quiet --python "$python" "$folder" || return
    else
        local install=("$folder/bin/python" -m pip install $quiet --disable-pip-version-check --no-compile --use-pep517)
        make_step 1 "an empty environment of $python" "$python" -m venv "$folder" || return
    fi
    # Packages that come as source are built with what the lock holds, whose hashes are checked, and not with the newest.
    awk '/^[a-z0-9]/ { split($1, name, "=="); take = name[1] ~ /^(cython|setuptools)$/ } take' "$lock" > "$folder/build.lock"
    make_step 2 "the packages of $lock" install_locked || return
    make_step 3 "trimbench itself" "${install[@]}" --no-deps --no-build-isolation --editable . || return
    cp pyproject.toml "$folder/installed.toml"
    echo "$PWD" > "$folder/installed.place"
    cp "$lock" "$folder/installed.lock"
    echo "The environment is ready after $((SECONDS - started)) s." >&2
}

# install_locked: install first what others are built with, then all, in the variables of make_environment.
install_locked() {
    "${install[@]}" --require-hashes -r "$folder/build.lock" \
        && "${install[@]}" --no-build-isolation --require-hashes -r "$lock"
}

# make_step NUMBER WHAT COMMAND...: run one of the three steps, and say what to do if it fails.
make_step() {
    local number=$1 what=$2
    shift 2
    echo "  $number of 3: $what" >&2
    # What the command prints is progress: standard output belongs to the results.
    if ! "$@" >&2; then
        echo "Step $number of 3 failed ($what); the message above says why. Check the network and the space on the disk," >&2
        echo "then run the same command again: it starts afresh. TRIMBENCH_PYTHON=/path/to/python chooses another Python." >&2
        return 1
    fi
}
