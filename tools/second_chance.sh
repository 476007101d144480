#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/second_chance.sh BUILD_FOLDER: each end-to-end entry that failed in the last run of ctest there runs once more, alone.
# Exit 0 if all that failed have passed now. Not those whose subject is survival or safety (label `survival`), and no unit,
# golden or fuzz test: one loss in two runs is a loss. The first run's outputs stay in LastTest.log; those of the second are
# in SecondTest.log beside it.
set -eu
logs=$1/Testing/Temporary
rm -f "$logs/SecondTest.log"
[ -s "$logs/LastTestsFailed.log" ] || exit 1
failed=$(cut -d: -f2 "$logs/LastTestsFailed.log")
pattern="^($(printf '%s\n' "$failed" | sed 's/[.]/[.]/g' | paste -s -d '|'))\$"
mv "$logs/LastTest.log" "$logs/FirstTest.log"  # before ctest -N, which begins a new one, too
restore() { mv "$logs/FirstTest.log" "$logs/LastTest.log"; }
trap restore EXIT
again=$(ctest --test-dir "$1" -N -R "$pattern" -L '^e2e$' -LE '^survival$' | sed -n 's/^ *Test *#[0-9]*: //p')
[ -n "$again" ] || exit 1
code=0
[ "$(printf '%s\n' "$again" | wc -l)" = "$(printf '%s\n' "$failed" | wc -l)" ] || code=1
echo "a second chance, alone:" $again
ctest --test-dir "$1" -R "$pattern" -L '^e2e$' -LE '^survival$' -j 1 --output-on-failure || code=1
mv "$logs/LastTest.log" "$logs/SecondTest.log"
exit $code
