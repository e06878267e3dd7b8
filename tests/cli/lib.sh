# Shared by the tests of whole commands. Usage: . lib.sh; every test gets the program as $1. Sockets
# and files are in $work, which is deleted at the end; started processes are killed.
set -u
urnic=$(readlink -f "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# A short path, because the path of a unix socket has at most 107 characters.
work=$(mktemp -d /tmp/urnic-test-XXXXXX)
export XDG_RUNTIME_DIR=$work URNIC_CONFIG=/dev/null
unset URNIC_PORT
pids=()  # background processes in the order of their start
failures=0
# The interpreter itself: python3 in PATH may be a wrapper script, which is ten times slower.
python=$(python3 -c 'import sys; print(sys.executable)')
free=     # the port found by free_port

# Only processes that are still jobs of this shell: the pid of one that has ended may be reused.
ours() { jobs -pr | grep -qx "$1"; }
finish() {
  local pid
  for pid in $(jobs -pr); do
    kill "$pid" 2>/dev/null
    kill -CONT "$pid" 2>/dev/null
  done
  wait
  rm -rf "$work"
}
trap finish EXIT

fail() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}
# wrong_data TEXT: tools/real-test does not retry after this failure.
wrong_data() { fail "wrong data: $*"; }
done_testing() {
  [ "$failures" = 0 ] || exit 1
  echo "all passed"
}
# ok TEXT COMMAND...: the command must succeed.
ok() {
  local text=$1
  shift
  if "$@" >"$work/out" 2>"$work/err"; then echo "ok: $text"; else
    fail "$text (exit $?): $(cat "$work/err" "$work/out")"
  fi
}
# refused CODE TEXT COMMAND...: must end with CODE and one line on standard error that contains
# TEXT; the line is in $said. Starts no other process, because there are hundreds of these calls.
refused() {
  local code=$1 text=$2 got=0
  shift 2
  "$@" >"$work/out" 2>"$work/err" || got=$?
  IFS= read -r -d '' said <"$work/err"
  if [ "$got" != "$code" ]; then
    fail "$*: exit $got instead of $code: $said"
  elif [[ $said != *$'\n' || ${said%$'\n'} == *$'\n'* ]]; then
    fail "$*: not one line: $said"
  elif [[ $said != *"$text"* ]]; then
    fail "$*: '$text' is not in: $said"
  else
    echo "ok: ${said%$'\n'}"
  fi
}
# now: milliseconds of the monotonic clock (since boot)
now() {
  local up _
  read -r up _ </proc/uptime
  echo $((10 * 10#${up/./}))
}
# until_true SECONDS COMMAND...: tries the command twenty times a second until the time is over, and
# at least twenty times: after a machine was suspended, the other processes still need a second. The
# time is only a limit. It is generous, because a longer one costs nothing on success.
until_true() {
  local end=$(($(now) + $1 * 1000)) looks=20
  shift
  until "$@" >/dev/null 2>&1; do
    [ $looks -gt 0 ] || [ "$(now)" -lt $end ] || return 1
    looks=$((looks - 1))
    sleep 0.05
  done
}
# under_way PID: that process is receiving a file: it has the temporary file open, with or without a
# name.
under_way() {
  until_true 30 sh -c "ls -l /proc/$1/fd | grep -qE '/(\.urnic-[^/]*|#[0-9]+ \(deleted\))\$'" ||
    fail "no file is on its way to process $1"
}
# nothing_left FOLDER NAME...: none of these files exists, nor a temporary one, after the target's
# next check (every two seconds).
nothing_left() {
  local folder=$1 names=()
  shift
  for name in "$@"; do names+=(-o -name "$name"); done
  gone() { [ -z "$(find "$folder" -maxdepth 1 '(' -name '.urnic-*' "${names[@]}" ')')" ]; }
  until_true 30 gone || fail "left behind in $folder: $(ls -A "$folder")"
}
# start NAME COMMAND...: starts it in the background; its output is in $work/NAME.log, its pid in
# $last.
start() {
  local name=$1
  shift
  : >"$work/$name.log"  # at once, so that no test reads lines of the previous process
  "$@" >"$work/$name.log" 2>&1 &
  last=$!
  pids+=("$last")
}
# target_on PORT OPTIONS...: starts a target that exports $work/export; returns when it serves.
target_on() {
  local port=$1
  shift
  mkdir -p "$work/export"
  start target "$urnic" target --export "$work/export" --port "$port" "$@"
  until_true 30 grep -q serving "$work/target.log" || fail "no target: $(cat "$work/target.log")"
}
# at_rest: all clients of the target have disconnected
at_rest() {
  [ "$(grep -cE '^client [^ ]+ connected$' "$work/target.log")" = "$(grep -cE '^client [^ ]+ disconnected$' "$work/target.log")" ]
}
# stop_process PID
stop_process() {
  ours "$1" && kill "$1" 2>/dev/null
  wait "$1" 2>/dev/null
}
# free_port: puts into $free a TCP port that is unused, and stays so until the test ends: no other
# test that calls this gets it, nor the kernel for the near end of a connection. A bound socket that
# never listens reserves it; the program under test may bind it too, because both set SO_REUSEADDR.
free_port() {
  local file=$work/port.$RANDOM$RANDOM
  python3 - "$file" <<'END' &
import os, random, socket, sys, time
test = os.getppid()
most = int(open("/proc/sys/net/ipv4/ip_local_port_range").read().split()[0])
while True:
    s = socket.socket()
    port = random.randrange(5000, most if most > 6000 else 32768)
    try:
        s.bind(("", port))
        break
    except OSError:
        s.close()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
with open(sys.argv[1] + "~", "w") as f:
    print(port, file=f)
os.rename(sys.argv[1] + "~", sys.argv[1])
while os.getppid() == test:
    time.sleep(1)
END
  until_true 30 test -e "$file" || fail "no free port"
  free=$(cat "$file")
}
# bytes N: N random bytes
bytes() { head -c "$1" /dev/urandom; }
# in_fifo PID: it is blocked in open() of a FIFO.
in_fifo() { grep -qs wait_for_partner /proc/"$1"/task/*/wchan || grep -qsE '^(257|56|2) ' /proc/"$1"/task/*/syscall; }
# measured_by PID: this `urnic perf` is currently receiving a client's data.
measured_by() {
  local so_far=
  more() {
    "$urnic" stat "$1" --json >"$work/measured.json" || return
    local bytes
    bytes=$(json "$work/measured.json" 'j[0]["port"]["rx_bytes"]')
    [ "${so_far:=$bytes}" -lt $((bytes - 1000000)) ]
  }
  until_true 30 more "$1" || fail "nothing is measured by process $1: $(cat "$work/measured.json")"
}
# json FILE EXPRESSION: evaluates a Python expression over the document `j`
json() { "$python" -I -S -c 'import json,sys; j=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }
