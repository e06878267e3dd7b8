#!/usr/bin/env bash
# Only regular files are replaced; other files are written to or refused: devices, FIFOs, links,
# standard input and output, as destination of get and put and of all other commands that write a
# file.
. "$(dirname "$0")/lib.sh"
port=memif:socket=$work/m.sock,mtu=9000
cd "$work"
bytes 3000000 >f
target_on "$port"
target=$last
put() { "$urnic" put "$@" --port "$port"; }
get() { "$urnic" get "$@" --port "$port"; }
# kind PATH: type and inode of the path itself
kind() { stat -c '%F %i' "$1"; }
ok "put" put f 10.77.0.1/f

# ---- devices
if [ "$(id -u)" = 0 ] && mknod null c 1 3 2>/dev/null && mknod full c 1 7; then
  before=$(kind null) before_full=$(kind full)
  ok "get to a device" get 10.77.0.1/f null
  grep -q "3.*MiB.*verified\|2.86 MiB" out || fail "no result: $(cat out)"
  [ "$(kind null)" = "$before" ] || fail "get has replaced a device: $(kind null)"
  refused 1 "No space left" get 10.77.0.1/f full
  [ "$(kind full)" = "$before_full" ] || fail "get has replaced a device"
  mknod export/null c 1 3
  before=$(kind export/null)
  refused 1 "not a regular file" put f 10.77.0.1/null
  refused 1 "not a regular file" get 10.77.0.1/null x
  [ "$(kind export/null)" = "$before" ] || fail "put has replaced a device of the export"
else
  echo "skipped: devices (not root, or no right to make them)"
fi
ok "get /dev/null, by its own name" get 10.77.0.1/f /dev/null
[ -c /dev/null ] || fail "/dev/null is no device any more"
refused 1 "No space left" get 10.77.0.1/f /dev/full

# ---- FIFOs
mkfifo pipe export/pipe
cat pipe >through &
reader=$!
ok "get to a FIFO" get 10.77.0.1/f pipe
wait $reader
cmp -s f through || wrong_data "what came through the FIFO differs"
[ -p pipe ] || fail "get has replaced a FIFO"
refused 1 "not a regular file" put f 10.77.0.1/pipe
[ -p export/pipe ] || fail "put has replaced a FIFO of the export"
# There is no reader: a signal ends the wait.
"$urnic" get 10.77.0.1/f pipe --port "$port" >fifo.log 2>&1 & # not a function: $! must be the program itself
pid=$!
until_true 30 in_fifo $pid || fail "get does not wait for a reader: $(cat fifo.log)"
kill -TERM $pid
wait $pid
[ $? = 1 ] && grep -q "pipe: stopped" fifo.log || fail "get to a FIFO that nobody reads: $(cat fifo.log)"
# The reader disappears.
head -c 10 pipe >/dev/null &
refused 1 "Broken pipe" get 10.77.0.1/f pipe
wait $!

# ---- links
ln -s behind link && echo old >behind
ok "get to a link" get 10.77.0.1/f link
[ -L link ] && cmp -s f behind || wrong_data "a link as destination is not followed"
ln -s nowhere dangling
refused 1 "a broken symbolic link" get 10.77.0.1/f dangling
[ -L dangling ] && [ ! -e nowhere ] || fail "a dangling link was replaced or followed"
mkdir -p real export/d && ln -s real into && ln -s d export/in && ln -s f export/flink
ok "get into a link to a folder" get 10.77.0.1/f into
cmp -s f real/f || wrong_data "a link to a folder is not followed"
refused 1 "symbolic links are not followed" put f 10.77.0.1/flink
refused 1 "symbolic links are not followed" put f 10.77.0.1/in/x
refused 1 "symbolic links are not followed" get 10.77.0.1/in/x x
[ -L export/flink ] || fail "put has replaced a link of the export"
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("s")'
refused 1 "a socket" get 10.77.0.1/f s

# ---- standard input and output
get 10.77.0.1/f - >copy 2>err || fail "get -: $(cat err)"
cmp -s f copy || wrong_data "get - differs"
grep -q "verified" err || fail "no result on standard error: $(cat err)"
[ -e ./- ] && fail "a file named - was made"
get 10.77.0.1/f - 2>/dev/null | cmp -s - f || wrong_data "get - into a pipe differs"
get 10.77.0.1/f - --json 2>j.json >/dev/null && [ "$(json j.json 'j["bytes"]')" = 3000000 ] || fail "get - --json: $(cat j.json)"
refused 1 "No space left" sh -c '"$@" >/dev/full' sh "$urnic" get 10.77.0.1/f - --port "$port"
refused 2 "cannot be combined with standard output" get 10.77.0.1/f - --repeat 2
cat f | put - 10.77.0.1/piped >/dev/null || fail "put - from a pipe"
cmp -s f export/piped || wrong_data "put - from a pipe differs"
ok "put - of a regular file" sh -c '"$@" <f' sh "$urnic" put - 10.77.0.1/redirected --repeat 2 --port "$port"
cmp -s f export/redirected || wrong_data "put - of a regular file differs"
: | put - 10.77.0.1/empty >/dev/null && [ -f export/empty ] && [ ! -s export/empty ] || fail "put - of nothing"
refused 2 "needs a name" put - 10.77.0.1
refused 2 "needs a name" put - 10.77.0.1/d/
refused 1 "Bad file descriptor" sh -c '"$@" <&-' sh "$urnic" put - 10.77.0.1/x --port "$port"

refused 1 "Bad file descriptor" sh -c '"$@" >&-' sh "$urnic" get 10.77.0.1/f - --port "$port"

# ---- the log of a wire
wire() { "$urnic" wire --a "memif:socket=$work/a.sock" --b "memif:socket=$work/b.sock" "$@"; }
for log in pipe2 loglink; do
  [ $log = pipe2 ] && { mkfifo pipe2; exec 9<>pipe2; }  # a process with both ends open never blocks others
  [ $log = loglink ] && ln -s log.json loglink
  before=$(kind $log)
  start wire "$urnic" wire --a "memif:socket=$work/a.sock" --b "memif:socket=$work/b.sock" --log $log
  until_true 30 grep -q connecting wire.log || fail "wire: $(cat wire.log)"
  stop_process "$last"
  [ "$(kind $log)" = "$before" ] || fail "wire --log has replaced $log"
done
exec 9>&-
[ "$(json log.json 'j["complete"]')" = True ] || fail "the log behind a link"
refused 1 "No such file" wire --log none/x
refused 1 "Is a directory" wire --log "$work"
refused 1 "No space left" wire --log /dev/full

# ---- the target's log of these transfers: one line per file, and the totals
ok "ls" "$urnic" ls 10.77.0.1 --port "$port"
stop_process "$target"
grep -q "^received f (2.86 MiB) from 10.77.0.2:" target.log || fail "no line for a put: $(cat target.log)"
grep -q "^sent f (2.86 MiB) to 10.77.0.2:" target.log || fail "no line for a get: $(cat target.log)"
grep -q "^put of pipe by .* failed: .*not a regular file" target.log || fail "no line for a refused put: $(cat target.log)"
grep -q "reset by the peer" target.log && fail "a refused put ended badly: $(grep -B2 'reset by' target.log)"
tail -1 target.log | grep -q "^received 5 files .*, 1 listings, [1-9][0-9]* failed$" || fail "sums: $(tail -1 target.log)"
done_testing
