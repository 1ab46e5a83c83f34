#!/bin/sh
# Finds a Python that is new enough and hands over to bootstrap.py, which does the work.
for candidate in python3 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
        exec "$candidate" "$(dirname "$0")/bootstrap.py" "$@"
    fi
done
seen=$(python3 --version 2>/dev/null || echo "no python3")
echo "setup: Python 3.11, 3.12 or 3.13 is needed, found $seen." >&2
echo "  Hint: install one (Debian: apt-get install python3.11 python3.11-venv) and put it on PATH." >&2
exit 1
