#!/usr/bin/env bash
# A disk that fails (EIO) at any read, write or fsync, under the target or the client: one line and exit 1 at the
# client, nothing half-written under a name, nothing left, and the target serves the next one.
. "$(dirname "$0")/lib.sh"
failing=$(readlink -f "$2")
port=memif:socket=$work/m.sock,mtu=9000
cd "$work"
bytes 1000000 >f
mkdir export
cp f export/there
tried=0
# target KIND FROM: with a disk that fails so; KIND "none": with one that works
target() {
  : >target.log
  FAIL_KIND=$1 FAIL_FROM=$2 LD_PRELOAD=$failing start target "$urnic" target --export export --sync --no-uring --port "$port"
  until_true 30 grep -q serving target.log || fail "no target: $(cat target.log)"
}
# whole: under their names there is all or nothing
whole() {
  [ ! -e export/x ] || cmp -s f export/x || wrong_data "$1: half a file in the export"
  [ ! -e got ] || cmp -s f got || wrong_data "$1: half a file here"
  cmp -s f export/there || wrong_data "$1: what was there has changed"
  [ -z "$(find . export -maxdepth 1 -name '.urnic-*')" ] || fail "$1: left behind: $(ls -A . export)"
  rm -f export/x got
}
# ends TEXT COMMAND...: with exit 1 and one line that has the reason
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
    [ $kind$from != s4 ] && [ $kind$from != s2 ] || continue  # a file has one
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
