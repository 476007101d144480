#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/dist.sh BUILD OUTPUT: the portable binary and the Debian package from a build with -DHEADROOM_PORTABLE=ON.
# Both are tried before they are kept: the glibc they need, and the package in a root of its own.
set -eu
cd "$(dirname "$0")/.."
build=$1 output=$2
glibc=2.34

say() { printf 'dist: %s\n' "$*" >&2; }

version=$("$build/src/cli/headroom" --version | cut -d ' ' -f 2)
name=headroom-$version-linux-$(uname -m)
arch=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

binary=$work/$name
strip -o "$binary" "$build/src/cli/headroom"
/usr/bin/python3 tools/glibc_floor.py "$binary" --at-most $glibc --only-libc >&2

# What is linked in, and on what terms: as Debian states it.
licences=$work/$name-licences.txt
{
    cat LICENSE
    for package in libsqlite3-dev libzstd-dev zlib1g-dev libxxhash-dev libfmt-dev libcli11-dev nlohmann-json3-dev \
        libtomlplusplus-dev libexpected-dev libstdc++6; do
        printf '\n==== %s ====\n\n' "$package"
        cat "/usr/share/doc/$package/copyright"
    done
} > "$licences"

# The package.
root=$work/root
doc=$root/usr/share/doc/headroom
mkdir -p "$root/DEBIAN" "$root/usr/bin" "$root/usr/share/man/man1" "$doc"
install -m 755 "$binary" "$root/usr/bin/headroom"
/usr/bin/python3 tools/manpage.py "$binary" | gzip -9n > "$root/usr/share/man/man1/headroom.1.gz"
install -m 644 packaging/copyright README.md "$doc/"
gzip -9nc "$licences" > "$doc/third-party-licences.gz"
gzip -9nc CHANGELOG.md > "$doc/changelog.gz"
sed -e "s/@VERSION@/$version/" -e "s/@ARCH@/$arch/" -e "s/@GLIBC@/$glibc/" \
    -e "s/@KIB@/$(du -ks "$root/usr" | cut -f 1)/" packaging/control > "$root/DEBIAN/control"
find "$root" -type d -exec chmod 755 {} +
find "$root/usr/share" -type f -exec chmod 644 {} +
package=$work/headroom_${version}_$arch.deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null

# Installed in a root of its own, and run from there.
trial=$work/trial
mkdir -p "$trial/var/lib/dpkg/info" "$trial/var/lib/dpkg/updates" "$trial/var/lib/dpkg/triggers"
: > "$trial/var/lib/dpkg/status"
if [ "$(id -u)" = 0 ]; then
    dpkg --root="$trial" --force-depends --install "$package" >/dev/null 2>"$work/dpkg.log" ||
        { cat "$work/dpkg.log" >&2; exit 1; }
else
    dpkg-deb --extract "$package" "$trial"
fi
dpkg-deb --field "$package" Package Version Architecture Depends >&2
"$trial/usr/bin/headroom" --version >/dev/null
XDG_STATE_HOME=$work/state "$trial/usr/bin/headroom" sim --gpus 1xA6000 -- "$trial/usr/bin/headroom" devices >/dev/null
"$trial/usr/bin/headroom" why tests/logs/small_gpu_4050.csv >/dev/null
gzip -dc "$trial/usr/share/man/man1/headroom.1.gz" | grep -q '^\.SH NAME'
[ -s "$trial/usr/share/doc/headroom/copyright" ]

mkdir -p "$output"
mv -f "$binary" "$package" "$licences" "$output/"
for file in "$output/$name" "$output/$(basename "$package")"; do
    say "$file, $(($(stat -c %s "$file") / 1024)) KiB"
done
