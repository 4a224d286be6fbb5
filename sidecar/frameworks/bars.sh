#!/usr/bin/env bash
# Installs the libraries that draw bars into the virtual environment FOLDER, unless they are there.
#
#   bars.sh FOLDER
#
# Without Python 3.9 or PyPI it prints why and ends with exit code 0: the tests that need it are then
# reported as skipped. PYTHON is the path of Python; PIP_INDEX_URL and similar variables configure pip.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
to=${1:?usage: bars.sh FOLDER}
python=${PYTHON:-python3}
wanted=$here/requirements/bars.txt

cmp -s "$wanted" "$to/pins" && exit
if ! "$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
  echo "bars.sh: Python 3.9 or newer is missing: the tests of bars are skipped" >&2
  exit
fi
# The environment counts only with its pins, which are written last.
"$python" -m venv --clear "$to"
if ! "$to/bin/pip" install -q --no-deps --disable-pip-version-check -r "$wanted"; then
  echo "bars.sh: cannot install tqdm and rich: the tests of bars are skipped" >&2
  exit
fi
cp "$wanted" "$to/pins"
