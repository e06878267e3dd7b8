#!/usr/bin/env bash
# containers_test.sh WORK: runs tools/container with the packages of WORK/dist in separate
# namespaces, so that networks, mounts and images of this machine's podman are not visible.
set -euo pipefail
# shellcheck source=tests/package/fresh_root.sh
. "$(dirname "${BASH_SOURCE[0]}")/fresh_root.sh"
work=$(realpath "$1")
[ -n "$(ls "$work"/dist/*.deb 2>/dev/null)" ] || skip "no packages were built"
command -v podman >/dev/null || skip "podman is not installed"
command -v runc >/dev/null || skip "runc is not installed"
[ "$(id -u)" = 0 ] || skip "root is needed for a podman with folders and networks of its own"
# shellcheck disable=SC2046
root_of_this() { make_root "$work" perftest python3 $(dependencies "$work"/dist/*.deb); }
in_namespaces root_of_this "$@"

mount --make-rprivate /
mount -t tmpfs tmpfs /run
ip link set lo up
store=$work/podman-$$
mkdir -p "$store" /run/urnic
trap 'rm -rf "$work"/podman-*' EXIT
# Settings for a container inside a container: no limits above ours, no systemd, any version of
# cgroups.
cat >/run/urnic/containers.conf <<TEXT
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=2048:2048"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
[network]
network_config_dir = "/run/urnic/networks"
TEXT
export CONTAINERS_CONF=/run/urnic/containers.conf BUILDAH_ISOLATION=chroot
export PODMAN="podman --root $store --runroot /run/urnic/podman"
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tools/container image --debs "$work/dist" --root "$work/root.tar" >"$work/image.log" 2>&1 ||
  { tail -n 20 "$work/image.log" >&2; fail "the image"; }
said=$($PODMAN run --rm --network none localhost/urnic true 2>&1) || skip "containers do not run here: $said"
$PODMAN run --rm --network none localhost/urnic urnic --version

tools/container network >"$work/network.log" 2>&1 || { cat "$work/network.log" >&2; fail "two containers on a network"; }
cat "$work/network.log"
tools/container lan >"$work/lan.log" 2>&1 || { cat "$work/lan.log" >&2; fail "two containers without a network"; }
cat "$work/lan.log"
grep -q '2.sock.*: link up' "$work/lan.log" || fail "the switch has seen nobody"
if [ -x /usr/bin/catatonit ] || [ -x /usr/libexec/podman/catatonit ]; then
  tools/container pod >"$work/pod.log" 2>&1 || { cat "$work/pod.log" >&2; fail "the pod"; }
  cat "$work/pod.log"
else
  echo "catatonit is not installed: the pod was not tried"
fi
# The recipe of docs/ci.md, with podman in the place of docker and a system that has what the recipe installs.
if [ -s "$work/ci-bookworm/root.tar" ] && [ -e "$(echo "$work"/dist/urnic-*.tar.xz)" ]; then
  project=$work/podman-project
  rm -rf "$project"
  mkdir -p "$project/bin"
  cp examples/ci/* examples/greeting.c "$project"
  cat >"$project/bin/docker" <<'TEXT'
#!/bin/bash
words=()
for word in "$@"; do
  [ "$word" != debian:12 ] || words+=(--network none --ulimit memlock=65536:65536 --ulimit nofile=1024:1024 \
    --ulimit nproc=2048:2048 --volume "$SHIMS:/usr/local/sbin:ro")
  words+=("${word/#debian:12/localhost/project}")
done
exec $PODMAN "${words[@]}"
TEXT
  chmod +x "$project/bin/docker"
  $PODMAN import "$work/ci-bookworm/root.tar" localhost/project >"$work/project.log" 2>&1
  python3 tests/package/recipes.py docs/ci.md .github/actions/setup-urnic/action.yml "$project/recipes"
  (cd "$project" && SHIMS=$OLDPWD/tests/package/shims TARBALL=file://$(echo "$work"/dist/urnic-*.tar.xz) PATH=$project/bin:$PATH \
    bash recipes/docker-and-podman) >>"$work/project.log" 2>&1 || { tail -n 20 "$work/project.log" >&2; fail "the recipe for docker"; }
  grep '^PASS: greeting' "$work/project.log" || fail "the recipe for docker ran no test"
else
  echo "package.ci-bookworm has made no root: the recipe for docker was not tried"
fi
left=$($PODMAN ps --all --quiet; $PODMAN volume ls --quiet; $PODMAN network ls --quiet | grep -vx podman || true)
[ -z "$left" ] || fail "left behind: $left"

said=$(tools/container nothing 2>&1) && fail "an unknown command"
[[ "$said" == *"usage: tools/container"* ]] || fail "an unknown command: $said"
said=$(tools/container image --debs /nowhere 2>&1) && fail "no packages"
[[ "$said" == *"no packages in /nowhere"* ]] || fail "no packages: $said"
