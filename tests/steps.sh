# The steps of tests/run and tests/nightly, which read this file: each adds to the counts, and what cannot even be built counts as failed.
passed=0
failed=0
export ASAN_OPTIONS=abort_on_error=1:detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1

# Adds the two numbers that the last line of a file says: "N passed, N failed".
add() {
    last=$(tail -n 1 "$1" | sed -n 's/^\([0-9][0-9]*\) passed, \([0-9][0-9]*\) failed$/\1 \2/p')
    if [ -z "$last" ]; then
        failed=$((failed + 1))
    else
        passed=$((passed + ${last% *}))
        failed=$((failed + ${last#* }))
    fi
}

# preset_run PRESET [TESTS_LEFT_OUT]
preset_run() {
    echo "== $1: build"
    mkdir -p build
    if ! { cmake --preset "$1" && cmake --build --preset "$1"; } >"build/$1.log" 2>&1; then
        tail -n 40 "build/$1.log"
        failed=$((failed + 1))
        return
    fi
    echo "== $1: tests"
    ctest --preset "$1" ${2:+-E "$2"} -j 2 --output-junit "$PWD/build/$1/tests.xml" --test-output-size-passed 1000000 --test-output-size-failed 1000000
    python3 tests/tally.py "build/$1/tests.xml" >"build/$1/tally.txt"
    cat "build/$1/tally.txt"
    add "build/$1/tally.txt"
}

# scenarios_run COMMAND EVERY_OF_EACH_TRUST JOINS_OF_EACH_TRUST OTHERS FIRST_SEED
scenarios_run() {
    echo "== scenarios with $1"
    python3 tests/conformance.py --ivm "$1" --every "$2" --joins "$3" --negative "$4" --breaking "$4" --terms "$4" --first-seed "$5" \
        >build/scenarios.txt
    cat build/scenarios.txt
    add build/scenarios.txt
}

# A program that prints what it did and fails by its exit code.
plain_run() {
    echo "== $*"
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
}

tally() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
}
