# Everything that is done to this repository, one recipe each. CI runs `./run test`.
# Recipes run in the environment that `./run setup` makes.

set shell := ["bash", "-euo", "pipefail", "-c"]

export PATH := justfile_directory() / ".venv/bin" + ":" + env("PATH") + ":/usr/sbin"

# List the recipes.
default:
    @just --list --unsorted

# Format, lint and type-check; seconds.
lint:
    ruff format --check
    ruff check
    mypy
    lint-imports

# Bring the sources into their form.
format:
    ruff format
    ruff check --fix

# Everything but the slow tests.
test *args:
    pytest {{ args }}

# Tests against private servers.
system *args:
    pytest -m system {{ args }}

# Tests in a Spark session.
spark *args:
    pytest -m spark {{ args }}

# Compare decisions recorded on real servers with ours; `--write` puts the table into the docs.
yardsticks *args:
    python -m tests.yardsticks {{ args }}

# Print the benchmarks as JSON lines.
bench *args:
    for name in start decode text summary route capture verify store check; do python -m "benchmarks.$name" {{ args }}; done

# Build a wheel with compiled kernels, try it where nothing else is installed, put it into dist/.
wheel python=(justfile_directory() / ".venv/bin/python"):
    #!/usr/bin/env bash
    set -euo pipefail
    place=$(mktemp -d)
    trap 'rm -rf "$place"' EXIT
    export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
    builder={{ python }}
    if [[ $builder != {{ justfile_directory() }}/.venv/bin/python ]]; then
        "$builder" -m venv "$place/build"
        builder=$place/build/bin/python
        for lock in bootstrap kernels; do
            "$builder" -m pip install --quiet --require-hashes -r requirements/$lock.lock
        done
    fi
    # Times in the wheel are the commit's, whenever it is built.
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
    export SOURCE_DATE_EPOCH
    HATCH_BUILD_HOOK_ENABLE_CUSTOM=true "$builder" -m pip wheel --quiet --no-deps \
        --no-build-isolation --wheel-dir "$place/linux" .
    # Its name says which C library it needs, by the symbols that kernels ask for.
    auditwheel repair --only-plat --wheel-dir "$place/wheels" "$place"/linux/*.whl
    {{ python }} -m venv "$place/venv"
    # Names and versions of the lock; its hashes would be asked of the new wheel, too.
    sed -n 's/ *\\$//; /^[a-z]/p' requirements/runtime.lock >"$place/constraints.txt"
    "$place/venv/bin/python" -m pip install --quiet -c "$place/constraints.txt" "$place"/wheels/*.whl
    cd "$place"
    PYTHONPATH={{ justfile_directory() }} venv/bin/python -m tests.wheel
    mkdir -p {{ justfile_directory() }}/dist
    mv "$place"/wheels/*.whl {{ justfile_directory() }}/dist/

# The same for other versions of Python: found on PATH, with pyenv or uv, or fetched by uv.
wheels *versions="3.11 3.12 3.13":
    #!/usr/bin/env bash
    set -euo pipefail
    find_python() { PATH=$(printf '%s:' ~/.pyenv/versions/*/bin)$PATH uv python find --system --no-project "$1" 2>/dev/null; }
    lacking=()
    for version in {{ versions }}; do
        find_python $version >/dev/null || uv python install --quiet --no-bin $version || true
        if python=$(find_python $version); then just wheel "$python"; else lacking+=($version); fi
    done
    if ((${#lacking[@]})); then
        echo "wheels: no Python ${lacking[*]} was found, nor could uv fetch one" >&2
        echo "hint: install it, with its headers and venv, and have it on PATH" >&2
        exit 3
    fi

# Put what fragments of changes/ tell into CHANGELOG.md, under the version of src/binlane/version.py.
changelog *args:
    towncrier build --yes {{ args }}

# Write the generated pages, then build the site strictly into site/.
docs:
    python -m docs.generate
    zensical build --strict --clean

# All that must hold before a merge.
check: lint docs
    pytest -m ""

# Pin all dependencies again, with hashes and without the hosts they came from.
lock *args:
    uv pip compile {{ lock_options }} {{ args }} requirements/bootstrap.in -o requirements/bootstrap.lock
    uv pip compile {{ lock_options }} {{ args }} -c requirements/bootstrap.lock --extra kernels pyproject.toml -o requirements/kernels.lock
    uv pip compile {{ lock_options }} {{ args }} -c requirements/kernels.lock pyproject.toml -o requirements/serve.lock
    uv pip compile {{ lock_options }} {{ args }} -c requirements/kernels.lock --extra demo pyproject.toml -o requirements/runtime.lock
    uv pip compile {{ lock_options }} {{ args }} -c requirements/kernels.lock -c requirements/runtime.lock --extra demo --extra iceberg --extra kernels --group dev --group docs pyproject.toml -o requirements/dev.lock

lock_options := "--quiet --universal --generate-hashes --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command 'just lock'"

# Run the hooks of this repository before each commit.
hooks:
    git config core.hooksPath .githooks
