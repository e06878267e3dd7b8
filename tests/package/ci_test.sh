#!/usr/bin/env bash
# ci_test.sh WORK SUITE: the recipes of docs/ci.md in a fresh system of that name, as an ordinary user with a memlock limit
# of 64 KiB, in a network namespace, without RDMA devices. apt-get only checks that the root has what a recipe installs.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/package/fresh_root.sh
. "$here/fresh_root.sh"
SUITE=$2
mkdir -p "$1/ci-$SUITE"
tarball=$(echo "$1"/dist/urnic-*-x86_64.tar.xz) work=$(realpath "$1/ci-$SUITE")
[ -e "$tarball" ] || skip "no portable tarball was built"
root_of_this() { make_root "$work" curl xz-utils make gcc libc6-dev librdmacm-dev perftest; }
in_namespaces root_of_this "$@"

root=$work/root
mkdir -p "$root"
mount -t tmpfs -o size=2g,mode=0755 tmpfs "$root"  # disappears with this namespace
enter_root "$work/root.tar" "$root"
[ ! -e "$root/dev/infiniband" ] || fail "the root has RDMA devices"
mkdir -p "$root/project" "$root/shims" "$root/recipes"
cp "$tarball" "$root/urnic.tar.xz"
python3 "$here/recipes.py" "$here/../../docs/ci.md" "$here/../../.github/actions/setup-urnic/action.yml" "$root/recipes"

cp "$here/shims/apt-get" "$root/shims"
printf '#!/bin/sh\nexec "$@"\n' >"$root/shims/sudo"
# The image's own shell, in the folder that the recipe mounts (containers_test.sh has podman).
printf '#!/bin/sh\nwhile [ "$1" != debian:12 ]; do shift; done\nshift\nexec "$@"\n' >"$root/shims/docker"
chmod 755 "$root"/shims/*
chmod 644 "$root"/recipes/* "$root/urnic.tar.xz"

# In the project, as an ordinary user of the root.
as_user() { # NAME=VALUE... COMMAND...
  (
    ulimit -l 64
    timeout 120 chroot --userspec=1000:1000 "$root" env -i -C /project PATH=/shims:/usr/bin:/bin HOME=/project LC_ALL=C.UTF-8 \
      TARBALL=file:///urnic.tar.xz "$@"
  )
}
for recipe in one-line gitlab-ci docker-and-podman github-actions; do
  rm -rf "$root/project"
  mkdir "$root/project"
  cp "$here"/../../examples/ci/* "$here/../../examples/greeting.c" "$root/project"
  chown -R 1000:1000 "$root/project"
  path=/shims:/usr/bin:/bin begun=$(date +%s%N) log=$work/$recipe.log
  if [ $recipe = github-actions ]; then
    as_user RUNNER_TEMP=/project/.temp GITHUB_PATH=/project/.path URL=file:///urnic.tar.xz bash /recipes/setup-urnic >"$log" 2>&1 ||
      { cat "$log" >&2; fail "the action setup-urnic"; }
    grep -q '^urnic [0-9]' "$log" || fail "the action does not print the version"
    path=$(paste -sd: "$root/project/.path"):$path
  fi
  as_user PATH="$path" bash "/recipes/$recipe" >"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "recipe $recipe in $SUITE"; }
  grep -q '^PASS: greeting' "$log" || fail "recipe $recipe ran no test"
  grep -q '8388608 bytes received, 0 wrong' "$log" || fail "recipe $recipe moved no data"
  echo "$SUITE: $recipe: first passed test after $((($(date +%s%N) - begun) / 1000000)) ms"
done

# The system's perftest, which loads the drivers' libraries of its own rdma-core.
perftest() { as_user PATH="$path" urnic run -- ib_write_bw -R -n 1000 "$@"; }
perftest >"$work/server.log" 2>&1 &
server=$!
for _ in $(seq 40); do  # until the server listens
  ! perftest 127.0.0.1 >"$work/client.log" 2>&1 || break
  kill -0 $server 2>/dev/null || break
  sleep 0.25
done
wait $server || { cat "$work/server.log" >&2; fail "ib_write_bw of $SUITE"; }
grep -q '^ 65536 *1000 ' "$work/client.log" || { cat "$work/client.log" >&2; fail "the client of ib_write_bw of $SUITE"; }
echo "$SUITE: $(grep '^ 65536' "$work/client.log")"
