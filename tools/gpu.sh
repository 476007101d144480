#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ./dev gpu: the hardware checks. Needs an NVIDIA GPU, Python 3 and a headroom binary; neither root, network nor a
# compiler. The binary is $HEADROOM, or the portable one in dist/, or built here (Debian and its likes).
set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" != --virtual ] && [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ]; then
    echo "gpu: SKIPPED: no NVIDIA GPU on this machine (no /dev/nvidiactl); nothing was checked"
    exit 0
fi
binary=${HEADROOM:-}
[ -n "$binary" ] || for candidate in dist/headroom-*-linux-"$(uname -m)"; do
    [ -x "$candidate" ] && binary=$candidate
done
if [ -z "$binary" ]; then
    ./dev dist
    for candidate in dist/headroom-*-linux-"$(uname -m)"; do binary=$candidate; done
fi
python3 tools/gpu_check.py "$binary" "$@"
[ "${1:-}" = --virtual ] || ! python3 -c 'import torch; assert torch.cuda.is_available()' 2> /dev/null ||
    python3 tools/gpu_jobs.py "$binary"
