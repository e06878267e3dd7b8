# Sourced by the tests of the packages: creates a fresh Debian from a mirror, with nothing from this
# machine except the mirror's address, and runs programs in it. Exit code for SKIP: 77.

skip() { echo "skipped: $1"; exit 77; }
fail() { echo "FAILED: $1" >&2; exit 1; }

# Restarts the script as root of separate namespaces. Before that runs BEFORE as the current user:
# an ordinary user needs `unshare` and subordinate ids.
in_namespaces() { # BEFORE ARGUMENTS of the script
  [ -z "${URNIC_TEST_NAMESPACES:-}" ] || return 0
  local before=$1 rights=(--mount --pid --fork --net --ipc --uts --mount-proc)
  shift
  [ "$(id -u)" = 0 ] || rights+=(--map-root-user --map-auto)
  unshare "${rights[@]}" true 2>/dev/null ||
    skip "no namespaces for $(id -un): root is needed, or unshare --map-auto (uidmap, /etc/subuid)"
  $before
  URNIC_TEST_NAMESPACES=1 exec timeout --kill-after=10 "${SECONDS_IN_NAMESPACES:-300}" unshare --kill-child "${rights[@]}" -- "$0" "$@"
}

# A line of sources.list for a suite of Debian, from the mirror from which this machine gets its packages. Ubuntu's are
# looked for beside it, or at $URNIC_UBUNTU_MIRROR; Debian has no key of theirs.
mirror() { # SUITE
  local debian ubuntu
  debian=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' \
    'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
    awk '$2 == "bookworm" && $3 == "main" {print $1; exit}')
  [ -n "$debian" ] || return 0
  case $1 in
    jammy | noble)
      ubuntu=$(dirname "${debian%/}")/ubuntu
      echo "deb [trusted=yes] ${URNIC_UBUNTU_MIRROR:-$ubuntu} $1 main universe" ;;
    *) echo "deb $debian $1 main" ;;
  esac
}

# All dependencies of these packages, except the packages themselves.
dependencies() { # PACKAGE.deb...
  local deb
  for deb in "$@"; do dpkg-deb -f "$deb" Depends; done | tr ',' '\n' |
    sed 's/([^)]*)//; s/|.*//; s/[[:space:]]//g' | grep -v '^\(lib\)\?urnic' | sort -u
}

# With only the three standard descriptors open: apt under mmdebstrap passes a descriptor number to
# /bin/sh, which accepts one digit.
with_three_descriptors() { # COMMAND
  (
    for fd in /proc/self/fd/*; do
      fd=${fd##*/}
      [ "$fd" -le 2 ] || [ "$fd" = 255 ] || eval "exec $fd>&-"
    done
    exec "$@"
  )
}

# FOLDER/root.tar with the smallest system of $SUITE (Debian 12) and these packages of it; kept for the next test of
# this folder. $ROOT_OPTIONS: mmdebstrap's, instead of those for a system in which programs run.
make_root() { # FOLDER PACKAGE...
  local folder=$1 list line status=0 seconds=400 suite=${SUITE:-bookworm} options=("${ROOT_OPTIONS[@]:---variant=apt}")
  shift
  list=$(printf '%s\n' "$@" | sort -u | paste -sd,)
  command -v mmdebstrap >/dev/null || skip "mmdebstrap is not installed"
  exec 9>"$folder/root.lock"
  flock -w 450 9 || fail "another test is making the root for ever"
  if [ "$(cat "$folder/root.list" 2>/dev/null)" != "$list" ] || [ ! -s "$folder/root.tar" ]; then
    line=$(mirror "$suite")
    [ -n "$line" ] || skip "apt of this machine knows no mirror of Debian 12 (apt-get update)"
    rm -f "$folder/root.list"
    [ -z "$(find "$folder/root.slow" -mmin -15 2>/dev/null)" ] ||
      skip "no root of Debian within $seconds s a moment ago: the machine is too busy"
    # Not --quiet, because that suppresses download errors.
    printf '%s\n' "$line" | TMPDIR=$folder with_three_descriptors timeout --kill-after=10 "$seconds" mmdebstrap \
        "${options[@]}" --aptopt='Acquire::Retries "3"' --include="$list" --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-include=/usr/share/doc/*urnic*' \
        "$suite" "$folder/root.tar" - >"$folder/root.log" 2>&1 || status=$?
    if [ "$status" = 124 ] || [ "$status" = 137 ]; then
      touch "$folder/root.slow"
      skip "no root of Debian within $seconds s: the machine is too busy"
    fi
    if [ "$status" != 0 ]; then
      tail -n 8 "$folder/root.log" >&2
      grep -qE 'not resolve|Could not connect|Unable to connect|timed out|Failed to fetch' "$folder/root.log" &&
        skip "the mirror of this machine gives no packages: $(grep -m1 -E '^E: ' "$folder/root.log")"
      grep -qE 'newuidmap|subuid|unshare' "$folder/root.log" && skip "no rights to make a root: $(tail -n 1 "$folder/root.log")"
      grep -q "does not have a Release file" "$folder/root.log" && skip "the mirror of this machine has no $suite"
      fail "mmdebstrap could not make a root: $folder/root.log"
    fi
    printf '%s\n' "$list" >"$folder/root.list"
  fi
  flock -u 9
}

# Unpacks that root, with everything that a program expects of a running system.
enter_root() { # ROOT.tar FOLDER
  local device
  mkdir -p "$2"
  tar -C "$2" --numeric-owner --exclude='./dev/*' -xf "$1"
  mount -t proc proc "$2/proc"
  mount -t sysfs sysfs "$2/sys" 2>/dev/null || true
  mount -t tmpfs tmpfs "$2/dev"
  mount -t tmpfs tmpfs "$2/tmp"
  mkdir "$2/dev/shm"
  chmod 1777 "$2/dev/shm" "$2/tmp"
  for device in null zero full random urandom tty; do
    : >"$2/dev/$device"
    mount --bind "/dev/$device" "$2/dev/$device"
  done
  ip link set lo up
}
