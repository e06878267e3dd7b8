#!/usr/bin/env bash
# release_test.sh WORK [CMAKE OPTIONS]: tools/release creates tarballs, packages and checksums; each
# must have exactly the expected content, and the packages satisfy Debian's rules.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=$1
shift
# shellcheck source=tests/package/fresh_root.sh
. tests/package/fresh_root.sh
git -c safe.directory="$PWD" rev-parse -q --verify HEAD >/dev/null 2>&1 || skip "this is no git checkout"
command -v dpkg-shlibdeps >/dev/null || skip "dpkg-dev is not installed"
mkdir -p "$work"
dist=$work/dist
tools/release --snapshot --out "$dist" --work "$work/release" -- "$@" >"$work/release.txt"

version=$(sed -n 's/^project(urnic VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
tarball=$(basename "$dist"/urnic-"$version"~*.tar.gz .tar.gz)
(cd "$dist" && sha256sum --quiet -c SHA256SUMS) || fail "SHA256SUMS"
[ "$(wc -l <"$dist/SHA256SUMS")" = "$(ls "$dist" | grep -cv SHA256SUMS)" ] || fail "SHA256SUMS names other files than there are"

# The tarball equals the tree: all its files, with no other owner or place.
diff <(git -c safe.directory="$PWD" ls-files -co --exclude-standard | while read -r f; do [ ! -e "$f" ] || echo "$f"; done | LC_ALL=C sort) \
     <(tar -tf "$dist/$tarball.tar.gz" | sed "s,^$tarball/,," | LC_ALL=C sort) || fail "the tarball is not the tree"
[ -z "$(tar -tvf "$dist/$tarball.tar.gz" | awk '$2 != "0/0"' | head -n 1)" ] || fail "the tarball has owners of this machine"

deb() { echo "$dist"/"$1"_*_*.deb; }
field() { dpkg-deb -f "$(deb "$1")" "$2"; }
# WHAT FILES PATTERN...: every file matches one of these patterns, and every pattern has a file.
are_only() {
  local what=$1 files=$2 pattern all=''
  shift 2
  for pattern in "$@"; do
    grep -qE "^$pattern\$" <<<"$files" || fail "$what has no $pattern"
    all+="|$pattern"
  done
  other=$(grep -vE "^(${all:1})\$" <<<"$files" || true)
  [ -z "$other" ] || fail "$what has what it should not: $other"
}
has_only() { # PACKAGE PATTERN...
  local package=$1
  shift
  are_only "$package" "$(dpkg-deb -c "$(deb "$package")" | awk '$1 !~ /^d/ {print $6}' | sed 's,^\.,,')" "$@" \
    "/usr/share/doc/$package/(copyright|changelog.gz|changelog.Debian.gz)" "/usr/share/lintian/overrides/$package"
}
lib='/usr/lib/[a-z0-9_-]+'
plugins=()
[[ "$*" == *URNIC_DPDK=OFF* ]] || ! pkg-config --exists libdpdk || plugins=("$lib/urnic/liburnic-port-dpdk.so")
has_only urnic /usr/bin/urnic '/usr/share/urnic/(scenarios/[a-z0-9-]+.toml|plot-sim)' '/usr/share/man/man1/urnic(-[a-z]+)?.1.gz' \
  /usr/share/man/man5/urnic.toml.5.gz /usr/share/bash-completion/completions/urnic /usr/share/zsh/vendor-completions/_urnic \
  '/usr/share/doc/urnic/(docs/)?[A-Za-z0-9_-]+.md' '/usr/share/doc/urnic/examples/containers/(Containerfile|pod.yaml)'
has_only liburnic0 "$lib/liburnic(-tcp)?.so.0(.[0-9.]+)?" "${plugins[@]}"
has_only liburnic-dev '/usr/include/urnic/[a-z_]+.h' "$lib/liburnic(-tcp)?.so" "$lib/pkgconfig/urnic(-tcp)?.pc" \
  "$lib/cmake/urnic/urnic[A-Za-z-]+.cmake" '/usr/share/doc/liburnic-dev/examples/[A-Za-z_]+.(c|cpp|txt)'
has_only urnic-verbs "$lib/urnic/dropin/lib(ibverbs|rdmacm).so.1" "$lib/urnic/dropin/lib(rspreload|sysfsview|urnic-dropin).so"

# The tarball that runs from any folder (tools/portable checks what its files need).
portable=$tarball-$(uname -m)
are_only "$portable" "$(tar -tf "$dist/$portable.tar.xz" | grep -v '/$' | sed "s,^$portable,,")" \
  /bin/urnic "/lib/urnic/dropin/lib(ibverbs|rdmacm).so.1" "/lib/urnic/dropin/lib(rspreload|sysfsview|urnic-dropin).so" \
  /lib/urnic/libisal.so.2 '/(LICENSE|CHANGELOG.md|README.md)' '/licenses/[a-z0-9+-]+' '/share/urnic/(scenarios/[a-z0-9-]+.toml|plot-sim)' \
  '/share/man/man1/urnic(-[a-z]+)?.1.gz' /share/man/man5/urnic.toml.5.gz /share/bash-completion/completions/urnic \
  /share/zsh/site-functions/_urnic
mkdir -p "$work/any folder"
tar -C "$work/any folder" -xf "$dist/$portable.tar.xz"
there="$work/any folder/$portable"
[ "$(env -i "$there/bin/urnic" --version)" = "urnic $version" ] || fail "the command of $portable does not run"
[[ "$(env -i "$there/bin/urnic" run --env)" == *"$there/lib/urnic/dropin"* ]] || fail "urnic run does not find the libraries of $portable"
for file in "$there"/bin/urnic "$there"/lib/urnic/dropin/*; do
  said=$(env -i ldd "$file")
  [[ "$said" != *"not found"* ]] || fail "$file: $said"
done
[[ "$(env -i ldd "$there/bin/urnic")" == *"$there/bin/../lib/urnic/libisal.so.2"* ]] || fail "the command uses another ISA-L than its own"
rm -rf "$work/any folder"

full=$(field urnic Version)
[[ "$full" == "$version"~* ]] || fail "urnic is of version $full"
dpkg --compare-versions "$full" lt "$version-1" || fail "a snapshot does not come before its release"
for package in urnic liburnic0 liburnic-dev urnic-verbs; do
  [ "$(field "$package" Version)" = "$full" ] || fail "$package has another version"
  [ "$(field "$package" Architecture)" = "$(dpkg --print-architecture)" ] || fail "$package has another architecture"
  [ -n "$(field "$package" Maintainer)" ] || fail "$package has no maintainer"
done
[[ "$(field liburnic0 Depends)" == *libisal2* && "$(field liburnic0 Depends)" == *libspdlog* ]] || fail "liburnic0 depends on: $(field liburnic0 Depends)"
[[ "$(field urnic Depends)" == *liburing2* && "$(field urnic Depends)" == *libmd0* ]] || fail "urnic depends on: $(field urnic Depends)"
[[ "$(field liburnic-dev Depends)" == "liburnic0 (= $full)"* ]] || fail "liburnic-dev depends on: $(field liburnic-dev Depends)"
[[ "$(field urnic-verbs Depends)" != *ibverbs* ]] || fail "urnic-verbs asks for the libraries it is there instead of"
control=$(dpkg-deb --ctrl-tarfile "$(deb liburnic0)" | tar -xO ./shlibs)
grep -qx "liburnic 0 liburnic0 (>= $version~.*)" <<<"$control" || fail "shlibs of liburnic0: $control"

if command -v lintian >/dev/null; then
  said=$(lintian --allow-root --fail-on error,warning "$dist"/*.deb 2>&1) || fail "lintian: $said"
else
  echo "lintian is not installed: the packages were not shown to it"
fi

# Errors are reported in one line.
said=$(tools/release --nothing 2>&1) && fail "an unknown option"
[[ "$said" == *"unknown option --nothing"* ]] || fail "an unknown option: $said"
copy=$work/copy
rm -rf "$copy"
mkdir -p "$copy"
tar -C "$copy" -xf "$dist/$tarball.tar.gz"
cd "$copy/$tarball"
said=$(env GIT_CEILING_DIRECTORIES="$copy" tools/release 2>&1) && fail "a release without a repository"
[[ "$said" == *"no git checkout"* ]] || fail "without a repository: $said"
git init -q . && git add -A && git -c user.name=u -c user.email=u@packages.invalid commit -qm all
sed -i "s/^## $version\$/## none/" CHANGELOG.md
git -c user.name=u -c user.email=u@packages.invalid commit -qam changelog 2>/dev/null || true
said=$(tools/release 2>&1) && fail "a release that the CHANGELOG does not know"
[[ "$said" == *"no section '## $version'"* ]] || fail "without a section: $said"
echo >>README.md
said=$(tools/release 2>&1) && fail "a release of a changed tree"
[[ "$said" == *"not committed"* ]] || fail "a changed tree: $said"
cd /
rm -rf "$copy"
cat "$work/release.txt"
