#!/bin/sh
# Installs Pilotfish for all users of a dev container. Options come as variables: PACKAGE and SERVERS.
set -eu

PREFIX="${PREFIX:-/usr/local}"
PLACE="$PREFIX/share/pilotfish"

if ! python3 -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "Pilotfish needs Python 3.11 or newer with venv: add the feature ghcr.io/devcontainers/features/python." >&2
    exit 1
fi
python3 -m venv "$PLACE"
"$PLACE/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check "${PACKAGE:-pilotfish[all]}"
mkdir -p "$PREFIX/bin"
ln -sf "$PLACE/bin/pilotfish" "$PREFIX/bin/pilotfish"
if [ -n "${SERVERS:-}" ]; then
    # Into the home of the user of the container, who runs them.
    # shellcheck disable=SC2086 -- they are separated by spaces
    HOME="${_REMOTE_USER_HOME:-$HOME}" "$PREFIX/bin/pilotfish" install $SERVERS
    chown -R "${_REMOTE_USER:-root}" "${_REMOTE_USER_HOME:-$HOME}/.local"
fi
