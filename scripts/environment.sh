# Sourced by the commands in this folder: makes a Python environment from a lock file, once per lock file.
# Uses uv if it is installed, otherwise venv and pip.

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
    echo "Making the environment $folder (once) ..." >&2
    rm -rf "$folder"
    if command -v uv >/dev/null; then
        uv venv --quiet --python "$python" "$folder"
        uv pip install --quiet --python "$folder/bin/python" --require-hashes -r "$lock"
        uv pip install --quiet --python "$folder/bin/python" --no-deps --no-build-isolation --editable .
    else
        "$python" -m venv "$folder"
        "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
        "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
    fi
    cp pyproject.toml "$folder/installed.toml"
    echo "$PWD" > "$folder/installed.place"
    cp "$lock" "$folder/installed.lock"
}
