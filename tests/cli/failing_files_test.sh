#!/usr/bin/env bash
# A disk that fails (EIO) at any read, write or fsync, at the target or the client. The client
# prints one line and exits with 1, no partial file has its final name, no file remains, and the
# target serves the next client.
. "$(dirname "$0")/lib.sh"
failing=$(readlink -f "$2")
port=memif:socket=$work/m.sock,mtu=9000
cd "$work"
bytes 1000000 >f
mkdir export
cp f export/there
tried=0
# target KIND FROM: starts a target with a disk that fails in this way; KIND "none": with a working
# disk
target() {
  : >target.log
  FAIL_KIND=$1 FAIL_FROM=$2 LD_PRELOAD=$failing start target "$urnic" target --export export --sync --no-uring --port "$port"
  until_true 30 grep -q serving target.log || fail "no target: $(cat target.log)"
}
# whole: a file under its final name must be complete
whole() {
  [ ! -e export/x ] || cmp -s f export/x || wrong_data "$1: half a file in the export"
  [ ! -e got ] || cmp -s f got || wrong_data "$1: half a file here"
  cmp -s f export/there || wrong_data "$1: what was there has changed"
  [ -z "$(find . export -maxdepth 1 -name '.urnic-*')" ] || fail "$1: left behind: $(ls -A . export)"
  rm -f export/x got
}
# ends TEXT COMMAND...: must exit with 1 and print one line that contains the reason
ends() {
  local text=$1
  shift
  tried=$((tried + 1))
  timeout 60 "$@" >out 2>err
  local code=$?
  [ $code = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -q 'Input/output error' err || fail "$text: exit $code: $(cat err)"
  whole "$text"
}
for kind in w s r; do
  for from in 1 2 4; do
    [ $kind$from != s4 ] && [ $kind$from != s2 ] || continue  # a transfer has only one fsync
    target $kind $from
    if [ $kind = r ]; then
      ends "target, r $from" "$urnic" get 10.77.0.1/there got --chunk 64K --port "$port"
    else
      ends "target, $kind $from" "$urnic" put f 10.77.0.1/x --chunk 64K --port "$port"
    fi
    kill -0 "$last" || fail "the target has died: $(cat target.log)"
    "$urnic" ls 10.77.0.1 --port "$port" >out 2>err || fail "the next one: $(cat err)"
    stop_process "$last"
  done
done
target none 0
for from in 1 2 4; do
  ends "client, r $from" env FAIL_KIND=r FAIL_FROM=$from LD_PRELOAD="$failing" \
    "$urnic" put f 10.77.0.1/x --chunk 64K --no-uring --port "$port"
  ends "client, w $from" env FAIL_KIND=w FAIL_FROM=$from LD_PRELOAD="$failing" \
    "$urnic" get 10.77.0.1/there got --chunk 64K --no-uring --port "$port"
done
ok "and a disk that works" "$urnic" put f 10.77.0.1/x --port "$port"
cmp -s f export/x || wrong_data "differs"
[ $failures = 0 ] && echo "tried $tried"
done_testing
