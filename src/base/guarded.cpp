#include "base/guarded.h"

#include <ucontext.h>

#include <atomic>

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __asan_handle_no_return();
#endif

namespace urnic::guard {
namespace {

constinit std::atomic<void (*)()> prepare{nullptr};

}  // namespace

constinit thread_local Thread thread [[gnu::tls_model("initial-exec")]];

void prepare_threads_by(void (*f)()) {
  prepare.store(f);
}

void prepare_thread() {
  void (*const f)() = prepare.load(std::memory_order_relaxed);
  if (f != nullptr) f();
  thread.prepared = true;
}

// Marks the stack frames that the fault skipped as left, for AddressSanitizer.
void left_by_fault() {
#if defined(__SANITIZE_ADDRESS__)
  __asan_handle_no_return();
#endif
}

// urnic_guarded_call(f, arg, stack): saves the callee-saved registers, stores their place in
// *stack, calls f(arg) and returns true. A fault continues at urnic_guarded_fault with that stack:
// it restores the registers, and the call returns false.
#if defined(__x86_64__)
asm(R"(
  .text
  .p2align 4
  .globl urnic_guarded_call
  .hidden urnic_guarded_call
  .type urnic_guarded_call, @function
urnic_guarded_call:
  .cfi_startproc
  endbr64
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset rbp, 0
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset rbx, 0
  pushq %r12
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset r12, 0
  pushq %r13
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset r13, 0
  pushq %r14
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset r14, 0
  pushq %r15
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset r15, 0
  pushq %rdx
  .cfi_adjust_cfa_offset 8
  movq %rsp, (%rdx)
  movq %rdi, %rax
  movq %rsi, %rdi
  callq *%rax
  popq %rdx
  .cfi_adjust_cfa_offset -8
  movq $0, (%rdx)
  addq $48, %rsp
  .cfi_adjust_cfa_offset -48
  .cfi_same_value rbp
  .cfi_same_value rbx
  .cfi_same_value r12
  .cfi_same_value r13
  .cfi_same_value r14
  .cfi_same_value r15
  movl $1, %eax
  retq
  .cfi_endproc
  .size urnic_guarded_call, .-urnic_guarded_call
  .hidden urnic_guarded_fault
  .type urnic_guarded_fault, @function
urnic_guarded_fault:
  endbr64
  popq %rdx
  movq $0, (%rdx)
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  xorl %eax, %eax
  cld
  retq
  .size urnic_guarded_fault, .-urnic_guarded_fault
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .p2align 4
  .globl urnic_guarded_call
  .hidden urnic_guarded_call
  .type urnic_guarded_call, %function
urnic_guarded_call:
  .cfi_startproc
  hint #34
  stp x29, x30, [sp, #-176]!
  .cfi_def_cfa_offset 176
  .cfi_offset x29, -176
  .cfi_offset x30, -168
  mov x29, sp
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  stp x25, x26, [sp, #64]
  stp x27, x28, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  str x2, [sp, #160]
  str x29, [x2]
  mov x9, x0
  mov x0, x1
  blr x9
  ldr x2, [sp, #160]
  str xzr, [x2]
  ldp x29, x30, [sp], #176
  .cfi_restore x29
  .cfi_restore x30
  .cfi_def_cfa_offset 0
  mov w0, #1
  ret
  .cfi_endproc
  .size urnic_guarded_call, .-urnic_guarded_call
  .hidden urnic_guarded_fault
  .type urnic_guarded_fault, %function
urnic_guarded_fault:
  ldr x2, [sp, #160]
  str xzr, [x2]
  ldp x19, x20, [sp, #16]
  ldp x21, x22, [sp, #32]
  ldp x23, x24, [sp, #48]
  ldp x25, x26, [sp, #64]
  ldp x27, x28, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  ldp x29, x30, [sp], #176
  mov w0, #0
  ret
  .size urnic_guarded_fault, .-urnic_guarded_fault
)");
#endif

#if defined(__x86_64__) || defined(__aarch64__)

extern "C" [[gnu::visibility("hidden")]] void urnic_guarded_fault();

bool recover(const void* address, void* context) {
  constexpr std::uintptr_t kPage = 4096;  // some faults report only the page
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (thread.stack == nullptr || at < (thread.begin & ~(kPage - 1)) || at >= thread.end) {
    return false;
  }
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  registers.gregs[REG_RIP] = reinterpret_cast<greg_t>(&urnic_guarded_fault);
  registers.gregs[REG_RSP] = reinterpret_cast<greg_t>(thread.stack);
#else
  registers.pc = reinterpret_cast<std::uintptr_t>(&urnic_guarded_fault);
  registers.sp = reinterpret_cast<std::uintptr_t>(thread.stack);
#endif
  return true;
}

#else

bool recover(const void*, void*) {
  return false;
}

#endif

}  // namespace urnic::guard
