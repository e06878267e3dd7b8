#!/usr/bin/env python3
"""tools/rdma-core-tests notices a test that fails, one that is skipped for a reason nobody has given, one that passes though it is
said not to, and one that is gone."""
import importlib.machinery
import importlib.util
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("rdma_core_tests", os.path.join(ROOT, "tools", "rdma-core-tests"))
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("rdma_core_tests", loader))
loader.exec_module(tool)

# What each says that cannot pass.
WORDS = {tool.known.WRITE_ON_TCP: "PyverbsError: Data validation failure: expected c", tool.known.IDLE: "AssertionError: <ibv_qp_state.IBV_QPS_INIT: 1> != 0",
         tool.known.SEND_ON_IWARP: 'AssertionError: "Remote operation error" does not match "Completion status is Local protection error"'}
GOOD = {f"test_x.Case.{name}": ("failed", WORDS.get(reason, "Exception: Exception in active/passive side occurred"))
        for name, reason in tool.known.cannot("tcp").items()}
GOOD["test_x.Case.test_plain"] = ("ok", "")
GOOD["test_x.Case.test_odp_rc_traffic"] = ("skipped", "ODP is not supported - No ODP caps")
GOOD["test_x.Case.test_ud_traffic"] = ("skipped", "Create QP type 4 is not supported")


def wrong(column="tcp", whole=True, **change):
    became = dict(GOOD)
    for name, result in change.items():
        if result is None:
            del became["test_x.Case." + name]
        else:
            became["test_x.Case." + name] = result
    return tool.judge(column, became, whole)


def expect(what, found, *words):
    if len(found) != (1 if words else 0) or any(w not in found[0] for w in words):
        sys.exit(f"{what}: {found}")


expect("as it should be", wrong())
expect("a failure", wrong(test_plain=("failed", "ValueError: x")), "test_plain", "ValueError: x")
expect("a skip without a reason", wrong(test_plain=("skipped", "Device is in a bad mood")), "skipped", "bad mood")
expect("services of RoCE are no reason there", tool.judge("roce", {"test_x.Case.test_ud_traffic": GOOD["test_x.Case.test_ud_traffic"]}, False), "type 4")
expect("a pass that was not to be", wrong(test_query_rc_qp=("ok", "")), "passes", "RESET")
expect("one that fails for another reason", wrong(test_mw_type1=("failed", "PyverbsRDMAError: Failed to Bind MW. Errno: 22")), "Failed to Bind")
expect("one that is not tried", wrong(test_mw_type1=("skipped", "Create MW is not supported")), "Create MW")
expect("a port that is down", wrong(test_plain=("skipped", "No supported port is up, can't run traffic")), "No supported port")
expect("one that sometimes passes", tool.judge("tcp", {"test_x.Case.test_mw_type1": ("ok", "")}, False))
expect("one that is gone", wrong(test_query_rc_qp=None), "no such test")
expect("a part of them", wrong(whole=False, test_query_rc_qp=None))
text = tool.table({"tcp": GOOD})
for part in ("| tcp: iWARP over the kernel's TCP | 1 | 2 |", "iWARP has one service, RC: 1 (tcp)", "`test_query_rc_qp` (tcp)"):
    if part not in text:
        sys.exit(f"the table lacks {part!r}:\n{text}")
print("rdma-core-tests: notices all of it")
