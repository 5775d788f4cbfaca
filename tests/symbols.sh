#!/bin/sh
# symbols.sh LIBRARY: the shared library exports ivm_* and nothing else, and nothing of ivm__*, which is inside.
set -eu
exported=$(nm -D --defined-only "$1" | awk '{ print $NF }' | sed 's/@.*//')
strangers=$(printf '%s\n' "$exported" | grep -Ev '^ivm_[a-z0-9]' || true)
inside=$(printf '%s\n' "$exported" | grep '^ivm__' || true)
count=$(printf '%s\n' "$exported" | grep -c '^ivm_[a-z0-9]' || true)
if [ -n "$strangers$inside" ]; then
    echo "exported but not public:" $strangers $inside
    exit 1
fi
# What the headers declare must be there.
missing=0
for name in $(sed -n 's/^IVM_API .*[ *]\(ivm_[a-z0-9_]*\)(.*/\1/p' "$(dirname "$0")"/../include/ivm/*.h); do
    if ! printf '%s\n' "$exported" | grep -qx "$name"; then
        echo "declared but not exported: $name"
        missing=$((missing + 1))
    fi
done
echo "$count symbols, $missing missing"
[ "$count" -gt 0 ] && [ "$missing" -eq 0 ]
