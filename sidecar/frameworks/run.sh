#!/usr/bin/env bash
# Runs real training scripts and keeps their output beside the true losses.
#
#   run.sh [--check] [--into FOLDER] [NAME|GROUP]…
#   run.sh --environments
#
# Without names it creates all fixtures. They go to ../tests/frameworks or to FOLDER. With --check
# they go to FOLDER or a temporary folder, whose name is the last line, and are compared with those
# in the repository. --environments prints the folder of the virtual environments.
#
# Environment: PACELINE_CACHE is the folder of the virtual environments. PIP_INDEX_URL and similar
# variables configure pip. PACELINE_TORCH_INDEX names an index of PyTorch's CPU builds, which saves
# gigabytes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${PACELINE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/paceline}/python/venvs
into=$here/../tests/frameworks
python=${PYTHON:-python3}
torch=2.13.0
check=

fail() {
  echo "run.sh: $1" >&2
  exit 2
}

chosen=()
while (($#)); do
  case $1 in
    --check) check=yes ;;
    --environments) echo "$cache" && exit ;;
    --into) into=${2:?--into needs a folder} && shift ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" && exit ;;
    -*) fail "unknown option $1; see --help" ;;
    *) chosen+=("$1") ;;
  esac
  shift
done
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "Python 3.11 or newer is required; set PYTHON to its path"

# The names of the chosen fixtures, each with its group.
list() {
  "$python" - "$here/fixtures.toml" "$@" <<'PYTHON'
import sys, tomllib
fixtures = tomllib.load(open(sys.argv[1], "rb"))
chosen = sys.argv[2:]
groups = {fixture["group"] for fixture in fixtures.values()}
if unknown := set(chosen) - set(fixtures) - groups:
    sys.exit(f"unknown fixture or group {', '.join(sorted(unknown))}")
for name, fixture in fixtures.items():
    if not chosen or name in chosen or fixture["group"] in chosen:
        print(name, fixture["group"])
PYTHON
}

install_torch() {
  local pip=$1
  if [[ -n ${PACELINE_TORCH_INDEX:-} ]]; then
    "$pip" install -q --no-deps --index-url "$PACELINE_TORCH_INDEX" "torch==$torch"
  else
    "$pip" install -q --no-deps "torch==$torch" -r "$here/requirements/cuda-libraries.txt"
  fi
}

# Creates the virtual environment of a group, again when its requirements change.
environment() {
  local group=$1 to=$cache/$1 wanted=$here/requirements/$1.txt pins
  pins=$(cat "$wanted")
  [[ $group != torch ]] || pins+=$'\n'torch==$torch
  if [[ $(cat "$to/pins" 2>/dev/null) == "$pins" ]]; then
    return
  fi
  echo "$group: installing into $to" >&2
  "$python" -m venv --clear "$to"
  [[ $group != torch ]] || install_torch "$to/bin/pip"
  "$to/bin/pip" install -q --no-deps -r "$wanted"
  printf '%s' "$pins" >"$to/pins"
}

names=() groups=()
fixtures=$(list "${chosen[@]}")
while read -r name group; do
  names+=("$name")
  groups+=("$group")
done <<<"$fixtures"
for group in $(printf '%s\n' "${groups[@]}" | sort -u); do
  environment "$group"
done

[[ -z $check || $into != "$here/../tests/frameworks" ]] || into=$(mktemp -d)
"$python" "$here/make.py" "$cache" "$into" "${names[@]}"
if [[ -n $check ]]; then
  "$python" "$here/same.py" "$here/../tests/frameworks" "$into" "${names[@]}"
  echo "$into"
fi
