#!/usr/bin/env bash
# Mistakes of a new user: unusual names, unusual files, missing permissions, two transfers at once.
# Each gives one clear line and a non-zero exit code, and no partial file remains.
. "$(dirname "$0")/lib.sh"
port=memif:socket=$work/m.sock,mtu=9000 second=memif:socket=$work/n.sock,mtu=9000
cd "$work"
bytes 3000000 >f

# ---- every command: unknown option, unknown command, too many words
for command in put get ls target perf stat config wire; do
  refused 2 "see urnic $command --help" "$urnic" $command --no-such-option
  [[ $command = [pg]?t ]] || refused 2 "see urnic $command --help" "$urnic" $command a b c d e
done
refused 1 "a: No such file" "$urnic" put a b c d e
refused 2 "'a' has no file name" "$urnic" get a b c d e
refused 2 "'bogus' is not a command" "$urnic" bogus
refused 2 "No such file" "$urnic" config --config "$work/none.toml"
refused 2 "Is a directory" "$urnic" config --config "$work"
refused 1 "not a urnic process" "$urnic" stat 999999999

# ---- an invalid configuration, an invalid socket folder
printf '\377\376\000\n' >bin
refused 2 "bin:1: " env URNIC_CONFIG="$work/bin" "$urnic" config
refused 2 "Is a directory" env URNIC_CONFIG="$work" "$urnic" put f 10.77.0.1/x
refused 2 "too large for a configuration file" env URNIC_CONFIG=/dev/zero "$urnic" config
refused 1 "not a regular file" "$urnic" sim /dev/zero
refused 1 "no urnic process" env XDG_RUNTIME_DIR="$work/f" "$urnic" stat
refused 1 "no urnic process" env XDG_RUNTIME_DIR="/$(printf 'x%.0s' $(seq 300))" "$urnic" stat

# ---- output that cannot be written is a failure
for asked in --version --help config "sim --list" "perf --help"; do
  refused 1 "cannot write standard output" sh -c '"$0" $1 >/dev/full' "$urnic" "$asked"
done

# ---- invalid files: reported before a wire is opened, hence the port that does not exist
no=memif:socket=$work/none/x.sock
refused 2 "name of FILE is empty" "$urnic" put "" 10.77.0.1/x --port $no
mkfifo pipe
refused 1 "not a regular file" timeout 10 "$urnic" put pipe 10.77.0.1/x --port $no
refused 1 "not a regular file" "$urnic" put /dev/zero 10.77.0.1/x --port $no
refused 1 "is a folder" "$urnic" put "$work" 10.77.0.1/x --port $no
refused 1 "File name too long" "$urnic" put "$(printf 'x%.0s' $(seq 300))" 10.77.0.1/x --port $no
refused 1 "No such file" "$urnic" put $'two\nlines' 10.77.0.1/x --port $no

# ---- addresses
target_on "$port" --also-port "$second"
until_true 30 sh -c '[ $(grep -c serving target.log) = 2 ]' || fail "no second port"
target=$last
put() { "$urnic" put "$@" --port "$port"; }
get() { "$urnic" get "$@" --port "$port"; }
for bad in "" 'non sense' 10.77.0.1:99999 10.77.0.1:0 1.2.3 "[fd77::1"; do
  refused 2 "is not a target" "$urnic" ls "$bad" --port "$port"
done
refused 1 "no route" put f 224.0.0.1/x
refused 1 "no route" put f 192.0.2.1/x
refused 1 "refused" "$urnic" ls 10.77.0.1:9 --port "$port"
refused 1 "refused" "$urnic" perf 10.77.0.1:9 --port "$port"
refused 1 "local address" put f 10.77.0.2/x
for command in "ls 10.77.0.1" "get 10.77.0.1/f x"; do
  refused 1 "nobody" timeout 30 "$urnic" $command --port "memif:socket=$work/nobody.sock" --connect-timeout 1s
done

# ---- names
long=$(printf 'x%.0s' $(seq 255))
ok "a name of 255 characters" put f "10.77.0.1/$long"
cmp -s f "export/$long" || wrong_data "long name differs"
rm -f "export/$long"
refused 1 "..." put f "10.77.0.1/$long$long"
refused 1 "..." put f "10.77.0.1/$(printf 'y%.0s' $(seq 5000))"
[ "$(wc -c <"$work/err")" -lt 600 ] || fail "a long name hides the reason: $(wc -c <"$work/err") bytes"
for bad in . .. a/../../b ./f /f f/ a//b; do
  refused 1 "'" put f "10.77.0.1/$bad/f"
  refused 1 "'" get "10.77.0.1/$bad/f" x
done
refused 1 "name" put f $'10.77.0.1/two\nlines'
ok "a name with a blank" put f "10.77.0.1/a b"
ok "and back" get "10.77.0.1/a b" back
cmp -s f back || wrong_data "a name with a blank"
: >empty
ok "an empty file" put empty 10.77.0.1/empty
ok "and back" get 10.77.0.1/empty got-empty
[ -f got-empty ] && [ ! -s got-empty ] || fail "the empty file"
rm -f export/* back got-empty

# ---- a failed transfer keeps the existing file
echo old >kept
refused 1 "No such file" get 10.77.0.1/none kept
[ "$(cat kept)" = old ] || fail "a failed get has touched the file"
echo old >export/kept
refused 1 "No such file" put none 10.77.0.1/kept
[ "$(cat export/kept)" = old ] || fail "a failed put has touched the file"
mkdir -p folder/kept
refused 1 "Is a directory" get 10.77.0.1/kept folder

# ---- permissions: as another user, since root may do everything
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  chmod 755 "$work" && chmod 000 f
  as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups env XDG_RUNTIME_DIR=/nonexistent)
  nobody() { "${as_nobody[@]}" "$@"; }
  if nobody test -x "$urnic"; then
    refused 1 "Permission denied" nobody "$urnic" put f 10.77.0.1/x --port "$port" --stat off
    refused 1 "Permission denied" nobody "$urnic" put kept 10.77.0.1/x --port "memif:socket=$work/up.sock" --stat off
    chmod 700 export
    refused 1 "Permission denied" nobody "$urnic" target --export export --port "memif:socket=/tmp/urnic-odd-$$.sock" --stat off
    # An export that is readable but not writable.
    mkdir ro && cp kept ro/kept && chmod 555 ro && mkdir wires && chmod 1777 wires
    start ro "${as_nobody[@]}" "$urnic" target --export ro --port "memif:socket=$work/wires/r.sock" --stat off
    until_true 30 grep -q serving ro.log || fail "$(cat ro.log)"
    refused 1 "to allow it, set peer_user=65534" "$urnic" put kept 10.77.0.1/x --port "memif:socket=$work/wires/r.sock"
    refused 1 "Permission denied" "$urnic" put kept 10.77.0.1/x --port "memif:socket=$work/wires/r.sock,peer_user=65534"
    ok "it may be read" "$urnic" get 10.77.0.1/kept back --port "memif:socket=$work/wires/r.sock,peer_user=nobody"
    chmod 644 f
    # A local folder that is not writable.
    refused 1 "Permission denied" nobody "$urnic" get 10.77.0.1/kept ro/y --port "memif:socket=$work/wires/r.sock" --stat off
    [ "$(ls -A ro)" = kept ] || fail "something was left in a folder nobody may write to"
  fi
  chmod 644 f
fi

# ---- two concurrent puts to one name: the result is one of the files, complete
bytes 40000000 >one
bytes 40000000 >two
"$urnic" put one 10.77.0.1/same --port "$port" >one.log 2>&1 &
first=$!
"$urnic" put two 10.77.0.1/same --port "$second" >two.log 2>&1 || fail "second: $(cat two.log)"
wait $first || fail "first: $(cat one.log)"
cmp -s one export/same || cmp -s two export/same || wrong_data "a mixture of both"
ls -A export | grep -q '^\.urnic' && fail "a temporary file was left"

# ---- signals during a transfer
for signal in INT TERM HUP; do
  "$urnic" get 10.77.0.1/same got --repeat 100000 --port "$port" >get.log 2>&1 &
  pid=$!
  under_way $pid
  kill -$signal $pid
  wait $pid
  [ $? = 1 ] || fail "get, $signal: exit"
  [ "$(wc -l <get.log)" = 1 ] || fail "get, $signal: $(cat get.log)"
  [ ! -e got ] || cmp -s got export/same || wrong_data "get, $signal: half a file"
done
# The target is stopped during a put: it ends well, and the client reports it.
"$urnic" put one 10.77.0.1/x --port "$port" --repeat 100000 >put.log 2>&1 &
pid=$!
under_way "$target"
kill -TERM "$target"
code=0
wait "$target" || code=$?
[ $code = 0 ] || fail "target, TERM: exit $code: $(cat target.log)"
wait $pid
[ $? = 1 ] && [ "$(wc -l <put.log)" = 1 ] || fail "put, target stopped: $(cat put.log)"
echo "ok: $(cat put.log)"
[ ! -e export/x ] || cmp -s one export/x || wrong_data "half a file in the export"
done_testing
