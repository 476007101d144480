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
git --no-pager diff --stat
