#!/usr/bin/env bash
# urnic run: the program gets our libraries, its exit code is passed on, and a program that cannot
# use them is refused in one line.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
dropin=$(dirname "$urnic")/../lib/urnic/dropin
[ -e "$dropin/libibverbs.so.1" ] || { echo "skipped: urnic was built without the drop-in libraries"; exit 77; }
dropin=$(readlink -f "$dropin")
cd "$work" || exit 1

# ---- the environment, the exit code, the arguments
[ "$("$urnic" run --env)" = "LD_LIBRARY_PATH=$dropin" ] || fail "--env: $("$urnic" run --env)"
LD_LIBRARY_PATH=/x "$urnic" run --env --max-connections 17 >env || fail "--env with a setting"
grep -qx "LD_LIBRARY_PATH=$dropin:/x" env && grep -qx URNIC_MAX_CONNECTIONS=17 env || fail "--env: $(cat env)"
"$urnic" run -- sh -c 'exit 7'; [ $? = 7 ] || fail "exit code"
[ "$("$urnic" run -- echo --port -x "a b")" = "--port -x a b" ] || fail "arguments"
"$urnic" run -- sh -c 'kill -TERM $$'; [ $? = 143 ] || fail "a signal ends it as it would"
[ "$(bash -c "ulimit -Sn 100; ulimit -Hn 3000; '$urnic' run -- bash -c 'ulimit -Sn; ulimit -Hn'" | tr '\n' ' ')" = "3000 3000 " ] || fail "descriptors"
refused 127 "program not found: 'nosuch'" "$urnic" run -- nosuch
refused 127 "No such file" "$urnic" run -- ./nosuch
refused 126 "" "$urnic" run -- /etc/passwd
refused 2 "PROGRAM is required" "$urnic" run
[ "$(LD_PRELOAD= "$urnic" run --sockets --env | grep PRELOAD)" = "LD_PRELOAD=$dropin/librspreload.so" ] || fail "--sockets --env"
[ -e "$dropin/librspreload.so" ] || fail "there is no librspreload.so"
refused 2 "--env cannot be combined with a program" "$urnic" run --env -- true
refused 2 "is set by the kernel with --port tcp" "$urnic" run --mtu 9000 -- true
"$urnic" run --transport roce -- true || fail "--transport roce has a port of its own"
refused 2 "is set by the kernel with --port udp" "$urnic" run --transport roce --vlan 5 -- true
refused 2 "the kernel's TCP carries only iWARP" "$urnic" run --transport roce --port tcp -- true
refused 2 "use transport = iwarp or both" "$urnic" run --transport roce --identity ib-like -- true

# ---- faults of verbs: only for this program, never by a setting
refused 2 "verbs faults: unknown key 'sendwr'; the nearest is 'send_wr'" "$urnic" run --verbs-faults sendwr=1 -- true
refused 2 "the plan has no fault" "$urnic" run --verbs-faults seed=1 -- true
refused 2 "--env cannot be combined with --verbs-faults" "$urnic" run --verbs-faults late=1 --env
refused 2 "--verbs-faults-log needs --verbs-faults" "$urnic" run --verbs-faults-log log -- true
[ "$("$urnic" run --verbs-faults late=1 --verbs-faults 'split=1,seed=2' --verbs-faults-log log -- sh -c 'echo "$URNIC_VERBS_FAULTS $URNIC_VERBS_FAULTS_LOG"')" = "late=1;split=1,seed=2 $work/log" ] || fail "--verbs-faults twice"
URNIC_VERBS_FAULTS=late=1 "$urnic" run --env | grep VERBS && fail "--env with faults"

# ---- several devices
printf '[device.lan]\nport = "tcp"\n[device.wire]\nport = "mem:name=w"\naddress = ["10.9.0.1/24"]\n' >two.toml
"$urnic" run --env --config two.toml >env || fail "--env with several devices"
grep -qx "URNIC_CONFIG=$work/two.toml" env || fail "--env: $(cat env)"
"$urnic" run --config two.toml --device wire --env | grep -qx URNIC_DEVICE=wire || fail "--env --device"
refused 2 "applies to one device, but there are several (lan, wire)" "$urnic" run --config two.toml --port tcp -- true
refused 2 "no device 'lane'; the nearest is 'lan'" "$urnic" run --config two.toml --device lane -- true
refused 2 "choose one with the setting device" "$urnic" perf --config two.toml
"$urnic" config --config two.toml --json >two.json || fail "config of several devices"
[ "$(json two.json '(j["devices"]["wire"]["address"]["value"], list(j["devices"]), j["port"]["origin"])')" = \
  "('10.9.0.1/24', ['lan', 'wire'], 'default')" ] || fail "$(cat two.json)"
"$urnic" config --config two.toml --toml >again.toml
diff <("$urnic" config --config two.toml --json | grep value) <("$urnic" config --config again.toml --json | grep value) ||
  fail "--toml of several devices is not read back"
"$urnic" config --config two.toml | grep -A4 "^device wire" | grep -q "mem:name=w" || fail "config: $("$urnic" config --config two.toml)"
printf '[device.lan]\nport = "tcp"\n[device.roce]\nport = "udp"\n' >bad.toml
refused 2 "device roce: transport = iwarp cannot be combined with port = udp" "$urnic" run --config bad.toml -- true

# ---- the libraries that are used
cat >probe.c <<'C'
#include <infiniband/verbs.h>
#include <stdio.h>
int main(void) {
  int n;
  struct ibv_device **list = ibv_get_device_list(&n);
  printf("%d %s\n", n, list && list[0] ? ibv_get_device_name(list[0]) : "-");
  return 0;
}
C
cc -o probe probe.c "$dropin/libibverbs.so.1" -Wl,--allow-shlib-undefined || fail "cc"
[ "$("$urnic" run -- ./probe)" = "1 urnic0" ] || fail "the probe: $("$urnic" run -- ./probe 2>&1)"
[ "$("$urnic" run --config two.toml -- ./probe)" = "2 lan" ] || fail "the probe: $("$urnic" run --config two.toml -- ./probe 2>&1)"
[ "$("$urnic" run --config two.toml --device wire -- ./probe)" = "1 wire" ] || fail "the chosen device"
[ "$("$urnic" run --transport roce -- ./probe)" = "1 urnic0" ] || fail "the probe: $("$urnic" run --transport roce -- ./probe 2>&1)"
# A library of the same name in a folder of the program's RPATH: LD_PRELOAD solves this.
mkdir other
echo 'void *ibv_get_device_list(int *n) { *n = 99; return 0; } const char *ibv_get_device_name(void *d) { return "other"; }' >other.c
echo 'IBVERBS_1.1 { global: *; };' >other.map
cc -shared -fPIC -o other/libibverbs.so.1 other.c -Wl,-soname,libibverbs.so.1,--version-script=other.map
cc -o insists probe.c other/libibverbs.so.1 -Wl,--disable-new-dtags,-rpath,"$work/other"
[ "$(./insists)" = "99 -" ] || fail "the other library: $(./insists)"
[ "$("$urnic" run -- ./insists)" = "1 urnic0" ] || fail "RPATH: $("$urnic" run -- ./insists 2>&1)"
# A library linked by its path cannot be replaced: the program is refused, also by our libraries
# when started without `urnic run`.
cc -shared -fPIC -o other/libibverbs.so.1 other.c -Wl,--version-script=other.map
cc -o mixes probe.c "$work/other/libibverbs.so.1"
refused 126 "instead of urnic's" "$urnic" run -- ./mixes
cat >late.c <<'C'
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
int main(void) {
  int n = 7;
  if (dlopen("other/libibverbs.so.1", RTLD_NOW) == 0) return 3;
  ibv_get_device_list(&n);
  printf("%d\n", n);
  return 0;
}
C
cc -o late late.c "$dropin/libibverbs.so.1" -Wl,--allow-shlib-undefined
[ "$("$urnic" run -- ./late 2>err)" = 0 ] && [ "$(wc -l <err)" = 1 ] && grep -q "conflicts with urnic's" err || fail "a mixture at run time: $(cat err)"
# A renamed copy, as in Python wheels, and a statically linked library.
cc -shared -fPIC -o other/libibverbs-1de1263b.so.1 other.c -Wl,-soname,libibverbs-1de1263b.so.1,--version-script=other.map
cc -o copy probe.c other/libibverbs-1de1263b.so.1 -Wl,-rpath,"$work/other"
refused 126 "instead of urnic's" "$urnic" run -- ./copy
echo 'int puts(const char *); int main(void) { return puts("libibverbs: Warning: none") < 0; }' >inside.c
cc -o inside inside.c && cc -static -o static inside.c || fail "cc -static"
refused 126 "has libibverbs linked statically" "$urnic" run -- ./inside
refused 126 "has libibverbs linked statically" "$urnic" run -- ./static
sed 's/libibverbs: //' inside.c >none.c && cc -static -o none none.c && "$urnic" run -- ./none >none.out || fail "a static program"
printf '\177ELF\1\1\1\0\0\0\0\0\0\0\0\0' >narrow && head -c 48 /dev/zero >>narrow && chmod +x narrow
refused 126 "is a 32-bit program" "$urnic" run -- ./narrow
cp probe suid && chmod u+s suid
refused 126 "is set-uid" "$urnic" run -- ./suid

# ---- --sysfs: a program that reads the files directly also finds the device, including its
# children; nothing else changes
view=$dropin/libsysfsview.so
[ "$("$urnic" run --sysfs -- cat /sys/class/infiniband/urnic0/node_type)" = "4: RNIC" ] || fail "--sysfs: cat"
# A separate address, because it has only one port 4791.
roce="--transport roce --port udp:bind=127.88.$((RANDOM % 250 + 1)).$((RANDOM % 250 + 1))"
[ "$("$urnic" run --sysfs $roce -- cat /sys/class/infiniband/urnic0/node_type)" = "1: CA" ] || fail "--sysfs: cat, RoCE"
[ "$("$urnic" run --sysfs -- ls /sys/class/infiniband /dev/infiniband | tr '\n' ' ')" = "/dev/infiniband: uverbs0  /sys/class/infiniband: urnic0 " ] || fail "--sysfs: ls"
"$urnic" run --sysfs -- bash -c 'read -r x </sys/class/infiniband/urnic0/ports/1/state && [ "$x" = "4: ACTIVE" ] && [ -c /dev/infiniband/uverbs0 ] && [ -r /dev/infiniband/uverbs0 ] && [ -d /sys/class/net/lo ] && [ $(ls -d /sys/class/infiniband/*/ports/1/gids/0 | wc -l) = 1 ]' || fail "--sysfs: bash"
"$urnic" run --sysfs -- python3 -c '
import os, glob, stat
d = "/sys/class/infiniband/"
assert os.listdir(d) == ["urnic0"], os.listdir(d)
assert open(d + "urnic0/ports/1/link_layer").read() == "Ethernet\n"
assert stat.S_ISCHR(os.stat("/dev/infiniband/uverbs0").st_mode)
assert glob.glob(d + "*/ports/*/gid_attrs/types/0"), "glob"
assert len(list(os.walk(d))) > 5
assert os.path.realpath(d + "urnic0").endswith("/urnic0")
' || fail "--sysfs: python"
[ "$("$urnic" run --sysfs -- ./probe)" = "1 urnic0" ] || fail "--sysfs: the probe"
# The tree walks of the C library, and a descriptor of "/", as hwloc uses it.
cat >walks.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static int files, wrong;
static int count(const char *path, const struct stat *s, int type, struct FTW *at) {
  (void)s;
  files += type == FTW_F;
  wrong += strncmp(path, "/sys/class/infiniband/urnic0", 28) != 0 || path[at->base - 1] != '/';
  return 0;
}
int main(void) {
  glob_t g = {0};
  if (glob("/etc/passwd", 0, 0, &g) != 0 || glob("/sys/class/infiniband/*/ports/*/state", GLOB_APPEND, 0, &g) != 0) return 1;
  if (g.gl_pathc != 2 || strcmp(g.gl_pathv[1], "/sys/class/infiniband/urnic0/ports/1/state") != 0) return 2;
  if (nftw("/sys/class/infiniband/urnic0", count, 8, FTW_PHYS) != 0 || files < 6 || wrong != 0) return 3;
  char *roots[] = {"/sys/class/infiniband/urnic0", 0};
  FTS *walk = fts_open(roots, FTS_PHYSICAL, 0);
  for (FTSENT *e; walk != 0 && (e = fts_read(walk)) != 0;) files -= e->fts_info == FTS_F;
  if (files != 0) return 4;
  int top = open("/", O_RDONLY | O_DIRECTORY);
  if (openat(top, "sys/class/infiniband", O_RDONLY) < 0 || faccessat(top, "sys/class/infiniband/urnic0", F_OK, 0) != 0) return 5;
  struct stat s;
  return chdir("/sys/class") == 0 && stat("infiniband", &s) == 0 && stat("/sys/class/net/../infiniband", &s) == 0 ? 0 : 6;
}
C
cc -o walks walks.c || fail "cc"
"$urnic" run --sysfs -- ./walks || fail "--sysfs: walks: $?"
[ "$(LD_PRELOAD= "$urnic" run --sysfs --sockets --env | grep PRELOAD)" = "LD_PRELOAD=$dropin/librspreload.so:$view" ] || fail "--sysfs --env"
printf '[device.first]\nport = "tcp:bind=127.0.0.1"\n[device.second]\nport = "tcp:bind=127.0.0.2"\nidentity = "ib-like"\n' >two.toml
[ "$("$urnic" run --config two.toml --sysfs -- sh -c 'cd /sys/class/infiniband && cat first/node_type second/node_type /sys/class/infiniband_verbs/uverbs1/ibdev' | tr '\n' ' ')" = "4: RNIC 1: CA second " ] || fail "--sysfs of two devices"
folder=$("$urnic" run --sysfs --env | sed -n 's/^URNIC_SYSFS=//p')
[ -d "$folder/sys/class/infiniband/urnic0" ] && [ "$("$urnic" run --sysfs --env | sed -n 's/^URNIC_SYSFS=//p')" = "$folder" ] || fail "--sysfs twice: $folder"
[ "$("$urnic" run --sysfs --identity ib-like --env | sed -n 's/^URNIC_SYSFS=//p')" != "$folder" ] || fail "--sysfs of another device"
[ -z "$(find "$(dirname "$folder")" -name 'sysfs.*')" ] || fail "--sysfs leaves something unfinished"
refused 2 "PROGRAM is required" env XDG_RUNTIME_DIR=/nowhere "$urnic" run --sysfs
refused 1 "/nowhere/urnic: No such file" env XDG_RUNTIME_DIR=/nowhere "$urnic" run --sysfs -- true
mkdir -p open/urnic && chmod 755 open/urnic
refused 1 "is accessible to other users" env XDG_RUNTIME_DIR="$work/open" "$urnic" run --sysfs -- true
"$urnic" run --sysfs --port memif:socket=/nowhere/wire.sock,role=server -- true 2>err; [ $? = 1 ] && grep -q "cannot write the device files" err || fail "--sysfs without a device: $(cat err)"

# ---- a wrong configuration gives one line and no device, not a crash
printf 'nosuchkey = 1\n' >bad.toml
[ "$(URNIC_CONFIG=$work/bad.toml LD_LIBRARY_PATH=$dropin ./probe 2>err)" = "0 -" ] || fail "a wrong configuration"
[ "$(wc -l <err)" = 1 ] && grep -q nosuchkey err || fail "a wrong configuration: $(cat err)"
# A program with faults says so; where the faults go cannot be written, it has no device.
"$urnic" run --verbs-faults at=ibv_open_device:1 -- ./probe 2>err >/dev/null || fail "--verbs-faults: the probe"
grep -q "verbs faults are injected: at=ibv_open_device:1" err || fail "--verbs-faults is not said: $(cat err)"
[ "$("$urnic" run --verbs-faults late=1 --verbs-faults-log /nowhere/log -- ./probe 2>err)" = "0 -" ] || fail "--verbs-faults-log"
grep -q "verbs faults: /nowhere/log: No such file" err || fail "--verbs-faults-log: $(cat err)"
# Otherwise nothing is printed.
"$urnic" run -- ./probe 2>err >/dev/null
[ -s err ] && fail "said: $(cat err)"
done_testing
