#!/usr/bin/env python3
"""make_exports.py LIST OUTPUT_DIR MACHINE - version scripts, stubs and declarations of the drop-in libraries.

Reads src/dropin/symbols.txt. For each library writes <library>.map and <library>.S, in which every name is
a jump into liburnic-dropin.so; exports.h declares the functions to define there. plain.S has the jumps without
nodes. MACHINE as of `uname -m`.
"""
import os
import re
import sys

# Private nodes of rdma-core: 25 (25-32), 33, 34 (34-56), 57 (57-58), 59 (59-63), 64, 65.
PRIVATE = [25, 33, 34, 57, 59, 64, 65]
# The nodes that programs of any distribution may name, oldest first, each depending on the one
# before.
NODES = {
    "libibverbs": ["IBVERBS_1.0", "IBVERBS_1.1"] + [f"IBVERBS_1.{n}" for n in range(5, 19)],
    "librdmacm": [f"RDMACM_1.{n}" for n in range(6)],
}
FORMS = {"own", "errno", "null", "minus", "nothing", "data", "old-errno", "old-null", "old-minus",
         "old-nothing"}
JUMPS = {  # jump to a name of another library with all arguments unchanged
    "x86_64": "\tendbr64\n\tjmp *{0}@GOTPCREL(%rip)\n",
    "aarch64": "\thint #34\n\tadrp x16, :got:{0}\n\tldr x16, [x16, :got_lo12:{0}]\n\tbr x16\n",
}
# Not declared in any header that programs have.
UNDECLARED = {"ibv_query_gid_type", "__ioctl_final_num_attrs", "ibv_dofork_range", "ibv_dontfork_range",
              "ibv_get_sysfs_path", "ibv_read_sysfs_file", "repoll_create", "repoll_ctl", "repoll_wait"}


def read(path):
    """(library, node, name, form, default) for every symbol, with private nodes expanded."""
    rows = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 4 or words[3] not in FORMS or words[0] not in NODES:
                sys.exit(f"{path}:{number}: not 'library node name form'")
            library, node, name, form = words
            if node.startswith("PRIVATE"):
                first = int(node.partition("_")[2] or 0)
                for n in PRIVATE:
                    if n >= first:
                        # A name has one default binding; the private nodes of other distributions
                        # only serve their programs.
                        default = n == max(34, first) or "*" in name
                        rows.append((library, f"IBVERBS_PRIVATE_{n}", name.replace("*", str(n)), form, default))
            elif node in NODES[library]:
                rows.append((library, node, name, form, not form.startswith("old-")))
            else:
                sys.exit(f"{path}:{number}: {node} is no node of {library}")
    return rows


def target(name, form):
    return "urnic_" + (name if form == "own" else "fail_" + form.replace("-", "_"))


def write_map(out, library, rows):
    names = {}
    for _, node, name, _, _ in rows:
        names.setdefault(node, []).append(name)
    chain = [(node, NODES[library][i - 1] if i else "") for i, node in enumerate(NODES[library])]
    private = [(f"IBVERBS_PRIVATE_{n}", "") for n in PRIVATE] if library == "libibverbs" else []
    for i, (node, before) in enumerate(chain + private):
        out.write(f"{node} {{\n")
        if node in names:
            out.write("  global:\n" + "".join(f"    {name};\n" for name in sorted(set(names[node]))))
        if i == 0:
            out.write("  local:\n    *;\n")
        out.write(f"}}{' ' + before if before else ''};\n")


def write_stubs(out, rows, machine):
    out.write("\t.text\n")
    for i, (_, node, name, form, default) in enumerate(rows):
        label = f"urnic_stub_{i}"
        at = "@@" if default else "@"
        if form == "data":
            out.write(f"\t.section .rodata\n\t.globl {label}\n\t.type {label}, @object\n\t.size {label}, 8\n"
                      f"\t.balign 8\n{label}:\n\t.quad 0\n\t.text\n")
        else:
            kind = "%function" if machine == "aarch64" else "@function"
            out.write(f"\t.globl {label}\n\t.type {label}, {kind}\n\t.balign 16\n{label}:\n"
                      + JUMPS[machine].format(target(name, form)) + f"\t.size {label}, .-{label}\n")
        out.write(f"\t.symver {label}, {name}{at}{node}, remove\n")
    out.write("\t.section .note.GNU-stack,\"\",%progbits\n")


def write_plain(out, rows, machine):
    """The default names without a node, for a program that has the functions itself."""
    kind = "%function" if machine == "aarch64" else "@function"
    out.write("\t.text\n")
    for _, _, name, form, default in rows:
        if default and form != "data":
            out.write(f"\t.globl {name}\n\t.type {name}, {kind}\n\t.balign 16\n{name}:\n"
                      + JUMPS[machine].format(target(name, form)) + f"\t.size {name}, .-{name}\n")
    out.write("\t.section .note.GNU-stack,\"\",%progbits\n")


def write_declarations(out, rows):
    out.write("// Made by make_exports.py: what liburnic-dropin.so defines for the two libraries.\n#pragma once\n\n"
              "#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\n#include <rdma/rdma_verbs.h>\n"
              "#include <rdma/rsocket.h>\n\n"
              "#undef ibv_reg_mr\n#undef ibv_reg_mr_iova\n#undef ibv_query_port\n#undef ibv_get_device_list\n\n"
              "extern \"C\" {\n")
    for name in sorted({r[2] for r in rows if r[3] == "own"} - UNDECLARED):
        out.write(f"__attribute__((visibility(\"default\"))) decltype({name}) urnic_{name};\n")
    out.write("}\n")


def main():
    source, folder, machine = sys.argv[1:4]
    rows = read(source)
    os.makedirs(folder, exist_ok=True)
    for library in NODES:
        mine = [r for r in rows if r[0] == library]
        with open(os.path.join(folder, library + ".map"), "w", encoding="utf-8") as f:
            write_map(f, library, mine)
        with open(os.path.join(folder, library + ".S"), "w", encoding="utf-8") as f:
            write_stubs(f, mine, machine)
    with open(os.path.join(folder, "plain.S"), "w", encoding="utf-8") as f:
        write_plain(f, rows, machine)
    with open(os.path.join(folder, "exports.h"), "w", encoding="utf-8") as f:
        write_declarations(f, rows)
    # For the test that checks every name: library, node, name.
    with open(os.path.join(folder, "names.txt"), "w", encoding="utf-8") as f:
        for library, node, name, _, _ in rows:
            f.write(f"{library}.so.1 {node} {name}\n")


if __name__ == "__main__":
    main()
