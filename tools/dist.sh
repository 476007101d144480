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
        libtomlplusplus-dev libexpected-dev libncurses-dev libstdc++6; do
        printf '\n==== %s ====\n\n' "$package"
        cat "/usr/share/doc/$package/copyright"
    done
    printf '\n==== the dashboard ====\n\n'
    cat web/licences.txt
} > "$licences"

# The package.
root=$work/root
doc=$root/usr/share/doc/headroom
mkdir -p "$root/DEBIAN" "$root/usr/bin" "$root/usr/share/man/man1" "$doc"
install -m 755 "$binary" "$root/usr/bin/headroom"
"$binary" manual | gzip -9n > "$root/usr/share/man/man1/headroom.1.gz"
# Where each shell of Debian's looks for what completes a package's commands.
while read -r shell path; do
    mkdir -p "$root/usr/share/$(dirname "$path")"
    "$binary" completion "$shell" > "$root/usr/share/$path"
done <<SHELLS
bash bash-completion/completions/headroom
zsh zsh/vendor-completions/_headroom
fish fish/vendor_completions.d/headroom.fish
SHELLS
install -m 644 packaging/copyright README.md "$doc/"
# What jobs use: the libraries for marks, their header, the Python package.
libraries=$root/usr/lib/headroom
package_of_python=$root/usr/lib/python3/dist-packages/headroom
mkdir -p "$libraries" "$root/usr/include" "$package_of_python"
for library in marks nvtx; do
    strip --strip-unneeded -o "$libraries/libheadroom_$library.so" "$build/src/lib/headroom/libheadroom_$library.so"
    /usr/bin/python3 tools/glibc_floor.py "$libraries/libheadroom_$library.so" --at-most $glibc --only-libc >&2
done
cp inject/headroom.h "$root/usr/include/"
(cd python/headroom && find . -name '*.py' -o -name py.typed) | while read -r file; do
    install -D -m 644 "python/headroom/$file" "$package_of_python/$file"
done
gzip -9nc "$licences" > "$doc/third-party-licences.gz"
gzip -9nc CHANGELOG.md > "$doc/changelog.gz"
sed -e "s/@VERSION@/$version/" -e "s/@ARCH@/$arch/" -e "s/@GLIBC@/$glibc/" \
    -e "s/@KIB@/$(du -ks "$root/usr" | cut -f 1)/" packaging/control > "$root/DEBIAN/control"
find "$root" -type d -exec chmod 755 {} +
find "$root/usr/share" "$root/usr/lib" "$root/usr/include" -type f -exec chmod 644 {} +
package=$work/headroom_${version}_$arch.deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null

# The same for people without root: one folder, and how to put it to use.
tar=$work/$name.tar.gz
mkdir -p "$work/$name.dir/$name/share" "$work/$name.dir/$name/lib" "$work/$name.dir/$name/python"
cp -r "$libraries" "$work/$name.dir/$name/lib/"
cp -r "$root/usr/include" "$work/$name.dir/$name/"
cp -r "$package_of_python" "$work/$name.dir/$name/python/"
cp "$binary" "$work/$name.dir/$name/headroom"
cp -r "$root/usr/share/man" "$root/usr/share/bash-completion" "$root/usr/share/zsh" "$root/usr/share/fish" \
    "$work/$name.dir/$name/share/"
cp README.md LICENSE "$licences" "$work/$name.dir/$name/"
tar -C "$work/$name.dir" --owner=0 --group=0 --numeric-owner -czf "$tar" "$name"

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
PYTHONPATH=$trial/usr/lib/python3/dist-packages /usr/bin/python3 -B -c 'import headroom; headroom.step()'
"$trial/usr/bin/headroom" why tests/logs/small_gpu_4050.csv >/dev/null
gzip -dc "$trial/usr/share/man/man1/headroom.1.gz" | grep -q '^\.SH NAME'
bash -n "$trial/usr/share/bash-completion/completions/headroom"
[ -s "$trial/usr/share/doc/headroom/copyright" ]

mkdir -p "$output"
mv -f "$binary" "$tar" "$package" "$licences" "$output/"
for file in "$output/$name" "$output/$name.tar.gz" "$output/$(basename "$package")"; do
    say "$file, $(($(stat -c %s "$file") / 1024)) KiB"
done
