// Entry point of a runner that is linked without the C library's start files (see toolchain.py).
.globl _start
.type _start, @function
_start:
    xorl %ebp, %ebp
    movq %rdx, %r9              // rtld_fini
    popq %rsi                   // argc
    movq %rsp, %rdx             // argv
    andq $-16, %rsp
    pushq %rax
    pushq %rsp                  // stack_end
    xorl %r8d, %r8d             // no fini
    xorl %ecx, %ecx             // no init
    leaq main(%rip), %rdi
    call *__libc_start_main@GOTPCREL(%rip)
    hlt
.section .note.GNU-stack, "", @progbits
