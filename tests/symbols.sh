#!/bin/sh
# symbols.sh LIBRARY: what the shared library exports, what the headers declare with IVM_API and what include/package/ivm.map lists are the same,
# and every symbol has the list's version.
set -eu
here=$(dirname "$0")
map=$here/../include/package/ivm.map
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C
node=$(sed -n 's/^\(IVM_[0-9]*\) {$/\1/p' "$map")
sed -n 's/^    \(ivm_[a-z0-9_]*\);$/\1/p' "$map" >"$work/list"
sed -n 's/^IVM_API .*[ *]\(ivm_[a-z0-9_]*\)(.*/\1/p' "$here"/../include/ivm/*.h | sort >"$work/declared"
nm -D --defined-only "$1" | awk -v node="$node" '$NF != node { print $NF }' | sort >"$work/exported"
sed "s/\$/@@$node/" "$work/list" | sort >"$work/versioned"
failed=0
# same WHAT FILE FILE: complains about each line that one of the two lacks.
same() {
    differing=$(diff "$2" "$3" | sed -n 's/^[<>] //p')
    [ -z "$differing" ] && return
    echo "$1:" $differing
    failed=1
}
sort -uc "$work/list" || failed=1
same "listed or declared, not both" "$work/list" "$work/declared"
same "listed or exported, not both" "$work/versioned" "$work/exported"
echo "$(wc -l <"$work/list") symbols of $node"
[ -s "$work/list" ] && [ "$failed" -eq 0 ]
