#!/usr/bin/env bash
# Several files, folders and patterns over one connection; preserved attributes; host names; dry
# runs, limits, errors as JSON.
. "$(dirname "$0")/lib.sh"
port=memif:socket=$work/m.sock,mtu=9000
target_on "$port"
target=$last
cd "$work"
put() { "$urnic" put "$@" --port "$port"; }
get() { "$urnic" get "$@" --port "$port"; }

# ---- many small files: one connection
mkdir -p d/e/empty
for ((i = 0; i < 100; ++i)); do bytes $((i * 37)) >d/f$i; done
bytes 3000000 >d/e/big
ok "a folder" put -r d 10.77.0.1 --json
[ "$(json out '(j["files"], j["folders"], j["failed"], len(j["items"]), j["engine"]["connections_opened"])')" = "(101, 3, 0, 101, 1)" ] ||
  fail "a folder: $(head -c 400 out)"
ok "one of them alone" put d/e/big 10.77.0.1/big --json
mv out alone
ok "the folder once more" put -r d 10.77.0.1 --json
[ "$(json out '[i["xxh128"] for i in j["items"] if i["name"] == "d/e/big"][0]')" = "$(json alone 'j["xxh128"]')" ] ||
  fail "the hash of one of many: $(cat alone)"
diff -r d export/d || fail "the folder differs"
ok "what is in a folder" put -r d/ 10.77.0.1/x/y
diff -r d export/x/y || fail "d/ differs"
ok "several files" put d/f1 d/f2 10.77.0.1/two
[ "$(ls export/two | tr '\n' ' ')" = "f1 f2 " ] || fail "several: $(ls export/two)"
ok "again, over what is there" put -r d 10.77.0.1
ok "repeated" put -r d/e 10.77.0.1/r --repeat 3 --json
[ "$(json out 'j["files"]')" = 3 ] || fail "repeated: $(head -c 300 out)"

ok "get a folder" get -r 10.77.0.1/d got
diff -r d got/d || fail "get -r differs"
ok "get what is in it" get -r 10.77.0.1/d/ got2
diff -r d got2 || fail "get -r d/ differs"
ok "get all" get -r 10.77.0.1 all
diff -r export all || fail "get -r of all differs"
ok "a pattern" get '10.77.0.1/d/f[12]?' pattern
[ "$(ls pattern | wc -l)" = 20 ] || fail "pattern: $(ls pattern)"
ok "several sources" get 10.77.0.1/d/f1 '10.77.0.1/two/*2' both
[ "$(ls both | tr '\n' ' ')" = "f1 f2 " ] || fail "several sources: $(ls both)"
cmp -s both/f2 d/f2 || wrong_data "several sources differ"
ok "a name that looks like a pattern" put d/f5 '10.77.0.1/a[1]*'
ok "is got by its name" get '10.77.0.1/a[1]*' odd
cmp -s odd d/f5 || wrong_data "a[1]* differs"
get '10.77.0.1/a[1]*' - 2>/dev/null | cmp -s - d/f5 || wrong_data "a[1]* to a pipe differs"

# ---- preserved attributes
chmod 751 d/f1 && touch -d '2001-02-03 04:05:06.789' d/f1
ok "put" put d/f1 10.77.0.1/kept
[ "$(stat -c '%a %Y' export/kept)" = "751 $(stat -c %Y d/f1)" ] || fail "kept by put: $(stat -c '%a %y' export/kept)"
ok "get" get 10.77.0.1/kept kept
[ "$(stat -c '%a %y' kept)" = "$(stat -c '%a %y' d/f1)" ] || fail "kept by get: $(stat -c '%a %y' kept)"
ok "get" get 10.77.0.1/kept fresh --no-times
[ "$(stat -c %Y fresh)" -gt 1700000000 ] || fail "--no-times: $(stat -c %y fresh)"

truncate -s 150M sparse  # both holes exceed the maximum of one message (64 MiB)
printf data | dd of=sparse bs=1 seek=70000000 conv=notrunc 2>/dev/null
if [ "$(stat -c %b sparse)" -lt 1000 ]; then
  ok "a sparse file" put sparse 10.77.0.1
  ok "and back" get 10.77.0.1/sparse sparse2
  for f in export/sparse sparse2; do
    cmp -s sparse $f || wrong_data "$f differs"
    [ "$(stat -c %b $f)" -lt 1000 ] || fail "$f takes $(stat -c %b $f) blocks"
  done
  get 10.77.0.1/sparse - 2>/dev/null | cmp -s - sparse || wrong_data "a sparse file to a pipe differs"
else
  echo "skipped: no sparse files here"
fi

# ---- a dry run changes nothing
ls -R export >before
ok "dry put" put -r -n d 10.77.0.1/new
grep -q "would put d/e/big -> new/d/e/big" out && grep -q "101 files .*nothing transferred" out || fail "dry put: $(tail -3 out)"
ok "dry get" get -n 10.77.0.1/kept dry
ok "dry get" get -r -n 10.77.0.1/d dry --json
[ "$(json out '(j["dry_run"], j["files"])')" = "(True, 101)" ] || fail "dry get: $(head -c 300 out)"
[ ! -e dry ] && ls -R export | cmp -s - before || wrong_data "a dry run has moved something"
refused 1 "No such file" get -n 10.77.0.1/none

# ---- a limit
for direction in put get; do
  began=$(now)
  [ $direction = put ] && ok "limit" put d/e/big 10.77.0.1/limited --limit 2M
  [ $direction = get ] && ok "limit" get 10.77.0.1/limited limited --limit 2M
  took=$(($(now) - began))
  [ $took -gt 1300 ] || fail "$direction of 3 MB at 2 MiB/s took $took ms"
done
cmp -s limited d/e/big || wrong_data "limited differs"

# ---- a failure does not stop the other files; files that are not moved are reported
mkdir -p bad/sub
echo a >bad/a
echo z >bad/z
mkfifo bad/pipe
ln -s sub bad/round
mkdir -p export/bad/a
code=0
put -r bad 10.77.0.1 >out 2>err || code=$?
[ $code = 1 ] || fail "exit $code of a put of which a part failed"
[ -f export/bad/z ] && [ -d export/bad/sub ] || fail "the rest was not put: $(ls export/bad)"
for line in "bad/a: .*Is a directory" "bad/pipe: not a regular file" "bad/round: a symbolic link to a folder" "3 of the requested files or folders were not transferred"; do
  grep -q "$line" err || fail "'$line' is not in: $(cat err)"
done
mkdir -p dest
mkfifo dest/a
ln -s /etc dest/sub
mkdir -p export/s/sub && echo 1 >export/s/a && echo 2 >export/s/sub/x && echo 3 >export/s/z
code=0
get -r 10.77.0.1/s/ dest >out 2>err || code=$?
[ $code = 1 ] && [ -p dest/a ] && [ -L dest/sub ] && [ ! -e /etc/x ] && [ "$(cat dest/z)" = 3 ] ||
  fail "get into what is no folder of ours: $(cat err) $(ls -l dest)"

mkdir -p tree/x/y tree/z empty && echo 1 >tree/x/1 && echo 2 >tree/x/y/2 && echo 3 >tree/z/3
mkdir export/tree && echo file >export/tree/x
code=0
put -r tree 10.77.0.1 >out 2>err || code=$?
[ $code = 1 ] && [ "$(wc -l <err)" = 2 ] && grep -q "tree/x: Not a directory" err && grep -q "4 of the requested" err && cmp -s tree/z/3 export/tree/z/3 ||
  fail "a folder that cannot be made: $(cat err)"
ok "nothing at all" put -r empty/ 10.77.0.1
ok "nothing, dry" put -r -n empty/ 10.77.0.1

# ---- wrong usage
refused 1 "use -r to put it" put d 10.77.0.1
refused 1 "none: No such file" put d/f1 none 10.77.0.1/q
[ -e export/q ] && fail "something was put though a name was wrong"
refused 1 "would both be written to q/f1" put d/f1 export/two/f1 10.77.0.1/q
refused 1 "'..'" put d/f1 d/f2 10.77.0.1/../q
refused 1 "no file matches" get '10.77.0.1/no*' x
refused 1 "none: No such file" get -r 10.77.0.1/none x
refused 2 "name files of one target only" get 10.77.0.1/a 10.77.0.9/a x
refused 2 "only one file can go to standard output" get -r 10.77.0.1/d -
refused 2 "cannot be combined" get 10.77.0.1/kept - --resume
refused 2 "--limit" put d/f1 10.77.0.1 --limit 5
refused 2 "leave out --chunk" put d/f1 10.77.0.1 --limit 1K --chunk 1M
refused 1 "'..'" put -n d/f1 10.77.0.1/../x
refused 1 "a pattern cannot be used" get '10.77.0.1/d/f*' -
refused 2 "cannot be combined with other files" put - d/f1 10.77.0.1/x
refused 2 "has no file name" get 10.77.0.1 x
refused 2 "cannot be combined" put -n d/f1 10.77.0.1 --repeat 2

# ---- errors as JSON: one object on standard error, the same exit codes
as_json() {
  local code=$1 text=$2 got=0
  shift 2
  "$@" --json >out 2>err || got=$?
  [ $got = "$code" ] || fail "$*: exit $got"
  [ "$(wc -l <err)" = 1 ] && json err 'j["error"]' | grep -qF -- "$text" || fail "$*: $(cat err)"
  [ -s out ] && fail "$*: something on standard output"
}
as_json 1 "No such file" put none 10.77.0.1
as_json 1 "No such file" get 10.77.0.1/none x
as_json 2 "is not a target" "$urnic" ls ''
as_json 2 "the nearest is '--port'" "$urnic" ls 10.77.0.1 --prot x
as_json 2 "is not an address" "$urnic" perf 1.2.3
as_json 1 "No such file" "$urnic" sim none.toml
stop_process "$target"
grep -q "^received d/e/big (2.86 MiB) from" target.log && grep -q "^created folder x for" target.log || fail "the target's lines: $(head -5 target.log)"
ls -AR export | grep -q '^\.urnic-' && fail "a temporary file was left"

# ---- quotas count folders as files
target_on "$port" --quota-files $(($(find export -mindepth 1 | wc -l) + 1))
ok "a folder within the quota" put -r d/e/empty 10.77.0.1
refused 1 "exceeds the target's quota" put d/f3 10.77.0.1/q
ok "one that is there already" put -r d/e/empty 10.77.0.1
stop_process "$last"
rmdir export/empty
target_on "$port" --quota-files "$(find export -mindepth 1 | wc -l)"
code=0
put -r d/e/empty 10.77.0.1 >out 2>err || code=$?
[ $code = 1 ] && grep -q "exceeds the target's quota" err && [ ! -e export/empty ] || fail "a folder over the quota: $(cat err)"
stop_process "$last"
target_on "$port" --read-only
refused 1 "read-only" put -r d 10.77.0.1/ro
refused 1 "read-only" put -n d/f1 10.77.0.1/ro
[ -e export/ro ] && fail "a folder was made in a read-only export"
stop_process "$last"

# ---- host names, over the kernel's TCP
free_port
service=$free
start tcp "$urnic" target --export export --port tcp:bind=127.0.0.1 -p "$service" --read-only
until_true 30 grep -q serving tcp.log || fail "$(cat tcp.log)"
ok "localhost" "$urnic" get "localhost:$service/kept" named --port tcp
grep -q "127.0.0.1:$service/kept" out || fail "where it went: $(cat out)"
ok "ls of a host" "$urnic" ls "localhost:$service" --port tcp
refused 1 "localhost: 127.0.0.1:9" timeout 20 "$urnic" ls localhost:9 --port tcp:bind=127.0.0.1
# Only if the resolver reports an unknown name quickly: without a name server each query takes half
# a minute.
timeout 2 getent hosts no-such-host.invalid >/dev/null
if [ $? = 2 ]; then
  for command in "ls no-such-host.invalid" "get no-such-host.invalid/x y" "put d/f1 no-such-host.invalid" "perf no-such-host.invalid"; do
    refused 1 "no-such-host.invalid'" timeout 60 "$urnic" $command --port tcp
  done
else
  echo "skipped: names of no host (no server of names answers here)"
fi
done_testing
