# Sourced at the root of the repository, with words for what is skipped. Makes sure that there is an image of the
# virtual machine. Where none can be made, the script that sources this ends.
code=0
tests/cgroup2/image.sh >/dev/null || code=$?
if [ "$code" = 77 ]; then
  echo "$1: see above."
  exit 0
fi
[ "$code" = 0 ] || exit "$code"
