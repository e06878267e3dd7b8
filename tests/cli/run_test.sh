#!/usr/bin/env bash
# urnic run: the program gets our libraries, its exit code comes through, and what cannot be run so is refused in
# one line.
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
refused 127 "there is no program 'nosuch'" "$urnic" run -- nosuch
refused 126 "" "$urnic" run -- /etc/passwd
refused 2 "which program?" "$urnic" run
[ "$(LD_PRELOAD= "$urnic" run --sockets --env | grep PRELOAD)" = "LD_PRELOAD=$dropin/librspreload.so" ] || fail "--sockets --env"
[ -e "$dropin/librspreload.so" ] || fail "there is no librspreload.so"
refused 2 "--env goes without a program" "$urnic" run --env -- true
refused 2 "is the kernel's own with --port tcp" "$urnic" run --mtu 9000 -- true

# ---- which libraries
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
# A library of the same name in a folder that the program insists on: LD_PRELOAD helps.
mkdir other
echo 'void *ibv_get_device_list(int *n) { *n = 99; return 0; } const char *ibv_get_device_name(void *d) { return "other"; }' >other.c
echo 'IBVERBS_1.1 { global: *; };' >other.map
cc -shared -fPIC -o other/libibverbs.so.1 other.c -Wl,-soname,libibverbs.so.1,--version-script=other.map
cc -o insists probe.c other/libibverbs.so.1 -Wl,--disable-new-dtags,-rpath,"$work/other"
[ "$(./insists)" = "99 -" ] || fail "the other library: $(./insists)"
[ "$("$urnic" run -- ./insists)" = "1 urnic0" ] || fail "RPATH: $("$urnic" run -- ./insists 2>&1)"
# One that is named by its path cannot be kept out: refused, and by ourselves when started without `urnic run`.
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
[ "$("$urnic" run -- ./late 2>err)" = 0 ] && [ "$(wc -l <err)" = 1 ] && grep -q "does not go with urnic's" err || fail "a mixture at run time: $(cat err)"
cp probe suid && chmod u+s suid
refused 126 "is set-uid" "$urnic" run -- ./suid

# ---- a wrong configuration is one line and no device, not a crash
printf 'nosuchkey = 1\n' >bad.toml
[ "$(URNIC_CONFIG=$work/bad.toml LD_LIBRARY_PATH=$dropin ./probe 2>err)" = "0 -" ] || fail "a wrong configuration"
[ "$(wc -l <err)" = 1 ] && grep -q nosuchkey err || fail "a wrong configuration: $(cat err)"
# Nothing is said otherwise.
"$urnic" run -- ./probe 2>err >/dev/null
[ -s err ] && fail "said: $(cat err)"
done_testing
