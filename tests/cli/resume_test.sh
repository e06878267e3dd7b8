#!/usr/bin/env bash
# --resume continues an interrupted transfer after the verified part of the existing bytes. A file
# under its final name is always complete, whichever side is killed (E-38).
. "$(dirname "$0")/lib.sh"
port=memif:socket=$work/m.sock,mtu=9000
cd "$work"
bytes 60000000 >big
target_on "$port"
target=$last
part() { find "$1" -maxdepth 1 -name '.urnic-*.part' -size +4000k; }
# interrupted SIGNAL FOLDER COMMAND...: runs it slowly until 4 MB are there, which takes less than a
# tenth of its time; then sends the signal
interrupted() {
  local signal=$1 folder=$2
  shift 2
  "$urnic" "$@" --resume --limit 10M --port "$port" >interrupted.log 2>&1 &
  local pid=$!
  until_true 30 sh -c "[ -n \"\$(find $folder -maxdepth 1 -name '.urnic-*.part' -size +4000k)\" ]" || fail "nothing arrives: $(cat interrupted.log)"
  kill -"$signal" $pid
  wait $pid 2>/dev/null
}
# there_already: existing bytes that the last transfer skipped
there_already() { json out 'j["bytes_already_present"]'; }
finish_put() {
  ok "$1" "$urnic" put big 10.77.0.1 --resume --json --port "$port"
  cmp -s big export/big || wrong_data "$1: differs"
  [ -z "$(ls -A export | grep '^\.urnic')" ] || fail "$1: left behind $(ls -A export)"
}
finish_get() {
  ok "$1" "$urnic" get 10.77.0.1/big got --resume --json --port "$port"
  cmp -s big got || wrong_data "$1: differs"
  [ -z "$(ls -A . | grep '^\.urnic')" ] || fail "$1: left behind"
}

# ---- put
interrupted INT export put big 10.77.0.1
grep -q stopped interrupted.log || fail "$(cat interrupted.log)"
[ -e export/big ] && fail "half a file has its name"
refused 1 "reserved" "$urnic" get "10.77.0.1/$(basename "$(part export)")" x --port "$port"
"$urnic" ls 10.77.0.1 --port "$port" | grep -q part && fail "ls shows what has not arrived"
finish_put "put goes on"
[ "$(there_already)" -gt 3500000 ] || fail "put began at $(there_already)"
[ "$(stat -c %a export/big)" = "$(stat -c %a big)" ] || fail "mode $(stat -c %a export/big)"
[ "$(stat -c %Y export/big)" = "$(stat -c %Y big)" ] || fail "time $(stat -c %y export/big)"

# If the existing bytes differ from the file, the transfer continues after the common beginning.
rm export/big
interrupted INT export put big 10.77.0.1
printf WRONG | dd of="$(part export)" bs=1 seek=3000000 conv=notrunc 2>/dev/null
finish_put "put with a wrong part"
[ "$(there_already)" -gt 1000000 ] && [ "$(there_already)" -le 3000000 ] || fail "wrong part: began at $(there_already)"
rm export/big
interrupted INT export put big 10.77.0.1
bytes 60000000 >other
mv big first && mv other big
finish_put "put of another file of that name"
[ "$(there_already)" = 0 ] || fail "another file: began at $(there_already)"
mv first big

# A transfer without --resume deletes the part.
rm export/big
interrupted INT export put big 10.77.0.1
ok "put without --resume" "$urnic" put big 10.77.0.1 --port "$port"
[ -z "$(ls -A export | grep '^\.urnic')" ] && cmp -s big export/big || wrong_data "left behind $(ls -A export)"

# The client is killed, then the target.
rm export/big
interrupted KILL export put big 10.77.0.1
until_true 30 at_rest || fail "the target keeps a killed client: $(cat target.log)"
finish_put "after a killed client"
[ "$(there_already)" -gt 3500000 ] || fail "killed client: began at $(there_already)"
rm export/big
"$urnic" put big 10.77.0.1 --resume --limit 10M --port "$port" >interrupted.log 2>&1 &
pid=$!
until_true 30 sh -c "[ -n \"\$(find export -name '.urnic-*.part' -size +4000k)\" ]" || fail "nothing arrives"
kill -9 "$target"
wait $pid
[ $? = 1 ] || fail "the target was killed: $(cat interrupted.log)"
wait "$target" 2>/dev/null
[ -e export/big ] && fail "half a file has its name"
target_on "$port"
target=$last
finish_put "after a killed target"
[ "$(there_already)" -gt 1000000 ] || fail "killed target: began at $(there_already)"

# ---- get
for signal in INT KILL; do
  rm -f got
  interrupted $signal . get 10.77.0.1/big got
  [ -e got ] && fail "half a file has its name here"
  finish_get "get goes on after $signal"
  [ "$(there_already)" -gt 1000000 ] || fail "get, $signal: began at $(there_already)"
done
rm got
interrupted INT . get 10.77.0.1/big got
printf WRONG | dd of="$(part .)" bs=1 seek=20 conv=notrunc 2>/dev/null
finish_get "get with a wrong part"
[ "$(there_already)" = 0 ] || fail "get, wrong part: began at $(there_already)"
ok "nothing is there: --resume is as without" "$urnic" get 10.77.0.1/big new --resume --port "$port"
cmp -s big new || wrong_data "new differs"

# ---- a part that was not resumed for a week is deleted: here by the next get, at the target when
# it starts
rm -f got
interrupted INT . get 10.77.0.1/big got
other=.urnic-aaaaaaaaaaaa.part
touch -d '6 days ago' "$(part .)"
echo old >$other && touch -d '8 days ago' $other
bytes 1000 >export/first
ok "a get beside parts" "$urnic" get 10.77.0.1/first new --port "$port"
[ ! -e $other ] || fail "an old part stays"
finish_get "of six days"
[ "$(there_already)" -gt 1000000 ] || fail "of six days: began at $(there_already)"

# ---- a partly transferred folder; empty files
mkdir d && : >d/empty && bytes 5000 >d/small
ok "a folder" "$urnic" put -r d 10.77.0.1 --resume --port "$port"
ok "and back" "$urnic" get -r 10.77.0.1/d back --resume --port "$port"
diff -r d back/d && diff -r d export/d || fail "a folder differs"
# A complete file is verified and not transferred again; a changed file is.
bytes 2000000 >d/one && bytes 2000000 >d/two
ok "a folder that has grown" "$urnic" put -r d 10.77.0.1 --resume --port "$port"
# A single random byte could be equal by chance.
printf CHANGED | dd of=export/d/one bs=1 seek=1500000 conv=notrunc 2>/dev/null
cp d/small small && bytes 5000 >d/small
chmod 600 d/two && touch -d 2001-01-01 d/two
inode=$(stat -c %i export/d/two)
ok "again" "$urnic" put -r d 10.77.0.1 --resume --json --port "$port"
[ "$(there_already)" = 2000000 ] || fail "there already: $(there_already)"
diff -r d export/d || fail "again: differs"
[ "$(stat -c '%i %a %Y' export/d/two)" = "$inode 600 $(stat -c %Y d/two)" ] || fail "what was there: $(stat -c '%i %a %y' export/d/two)"
printf CHANGED | dd of=back/d/small bs=1 seek=50 conv=notrunc 2>/dev/null
ok "and back" "$urnic" get -r 10.77.0.1/d back --resume --json --port "$port"
diff -r d back/d || fail "and back: differs"
ok "and back again" "$urnic" get -r 10.77.0.1/d back --resume --json --port "$port"
[ "$(there_already)" = 4005000 ] || fail "there already, of a get: $(there_already)"

# ---- parts count for no quota, so with a quota no parts are kept
stop_process "$target"
echo old >export/d/$other && touch -d '8 days ago' export/d/$other
rm export/big
target_on "$port" --client-quota 1G
[ ! -e export/d/$other ] && grep -q 'removed 1 partial file' target.log || fail "an old part of the export stays: $(cat target.log)"
"$urnic" put big 10.77.0.1 --resume --limit 10M --port "$port" >interrupted.log 2>&1 &
pid=$!
under_way "$last"
kill -INT $pid
wait $pid
nothing_left export big
finish_put "with a quota"
finish_put "with a quota, what is there"
[ "$(there_already)" = 60000000 ] || fail "with a quota: $(there_already)"
done_testing
