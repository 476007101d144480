#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rewrites every golden and every generated document from what the build in $1 prints; then shows what changed.
set -eu
cd "$(dirname "$0")/.."
headroom=$1/src/cli/headroom
/usr/bin/python3 tests/golden/run.py "$headroom" --bless
/usr/bin/python3 tools/metrics_doc.py
/usr/bin/python3 tools/losses_doc.py
/usr/bin/python3 tools/diagnosis_doc.py
/usr/bin/python3 tools/regen_docs.py "$headroom"
# The pictures of the README, where there is a browser to draw them.
if command -v chromium >/dev/null 2>&1; then
    mkdir -p docs/pictures
    HEADROOM_BUILD=$(cd "$1" && pwd) BLESS_PICTURES=$PWD/docs/pictures /usr/bin/python3 -m pytest -q tests/e2e/test_pictures.py >&2 ||
        echo "bless: the pictures of the README were not drawn anew" >&2
fi
git --no-pager diff --stat
