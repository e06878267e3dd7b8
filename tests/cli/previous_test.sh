#!/usr/bin/env bash
# The previous release (tools/previous-release) at the other end: put, get and perf, new with old
# and old with new, over memif and the kernel's TCP. If the versions of the messages agree, they
# work together; otherwise the client reports that at once in one line, and the server continues.
[ -x "${2:-}" ] || { echo "skipped: no previous release here (tools/previous-release builds it)"; exit 77; }
. "$(dirname "$0")/lib.sh"
old=$(readlink -f "$2")
cd "$work"
bytes 5000000 >f
mkdir export
net=127.$((1 + $$ / 200 % 250)).$((1 + $$ % 200)).1
# agree TEXT COMMAND...: it works, or reports different versions: one line, exit 1, within seconds
agree() {
  local text=$1 code=0 from=$SECONDS
  shift
  timeout 30 "$@" >out 2>err || code=$?
  if [ $code = 0 ]; then
    echo "works: $text"
    return 0
  fi
  if [ $code = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -qi version err && [ $((SECONDS - from)) -lt 12 ]; then
    echo "told: $text: $(cat err)"
  else
    fail "$text: exit $code after $((SECONDS - from)) s: $(cat err)"
  fi
  return 1
}
for over in memif tcp; do
  for pair in "new old" "old new"; do
    read -r server client <<<"$pair"
    [ $server = new ] && serving=$urnic asking=$old || { serving=$old asking=$urnic; }
    if [ $over = memif ]; then
      there=memif:socket=$work/$server.sock,mtu=9000 here=$there address=10.77.0.1
    else
      there=tcp:bind=$net here=tcp address=$net
    fi
    name="$over, $server serves $client"
    rm -f export/x got
    start target "$serving" target --export export --port $there
    target=$last
    until_true 20 grep -q serving target.log || fail "$name: no target: $(cat target.log)"
    if agree "$name: put" "$asking" put f $address/x --port $here; then
      cmp -s f export/x || wrong_data "$name: what was put differs"
    else
      [ ! -e export/x ] || fail "$name: half a file"
    fi
    cp f export/x
    if agree "$name: get" "$asking" get $address/x got --port $here; then
      cmp -s f got || wrong_data "$name: what was got differs"
    fi
    kill -0 $target || fail "$name: the target has died"
    stop_process $target
    start perf "$serving" perf --forever --port $there
    until_true 20 grep -q waiting perf.log || fail "$name: no server: $(cat perf.log)"
    for op in write read send; do
      agree "$name: perf $op" "$asking" perf $address --op $op -n 200 -s 8K --port $here
    done
    kill -0 $last || fail "$name: the server has died"
    stop_process $last
    # Without private messages both versions work together: a verbs program over MPA, DDP and our
    # TCP.
    command -v rping >/dev/null && [ -e "$(dirname "$old")/../lib/urnic/dropin/librdmacm.so.1" ] || continue
    start rping env URNIC_PORT=$there "$serving" run -- rping -s -a $address -p 7174 -C 500 -V
    listens() { "$urnic" stat --json | grep -q rping; }
    until_true 20 listens || fail "$name: no rping: $(cat rping.log)"
    ok "$name: rping" timeout 60 env URNIC_PORT=$here "$asking" run -- rping -c -a $address -p 7174 -C 500 -V -S 3000
    stop_process $last  # rping's message when its client leaves first is not relevant
  done
done
done_testing
