#!/bin/sh
# symbols.sh LIBRARY: what the shared library exports, what the headers declare with IVM_API and what include/package/ivm.map lists are the same,
# and every symbol has the list's version.
# Nor does it call what prints, ends the process, or reads the environment.
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
unwanted='printf|fprintf|dprintf|vprintf|vfprintf|perror|puts|putchar|fputs|fputc|fwrite|write|syslog|std(in|out|err)|exit|_exit|_Exit|quick_exit|abort|raise|kill|system|(secure_)?getenv|environ|setlocale|signal|sigaction'
if nm -D --undefined-only "$1" | sed 's/@.*//' | grep -Ew "U ($unwanted)"; then
    echo "the library calls these"
    failed=1
fi
echo "$(wc -l <"$work/list") symbols of $node"
[ -s "$work/list" ] && [ "$failed" -eq 0 ]
