
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * dlsym() and dlvsym() depend on their caller.  So their hooks do not call
 * them, but jump to them with the original stack and arguments.
 */


#if (__x86_64__)

.macro  jump  name, n
        .globl  prof_hook_\name
        .hidden prof_hook_\name
        .type   prof_hook_\name, @function

prof_hook_\name:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        call    prof_hooks_refresh
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        jmp     *prof_hooks_real + 8 * \n(%rip)
        .cfi_endproc
        .size   prof_hook_\name, . - prof_hook_\name
.endm

#elif (__aarch64__)

.macro  jump  name, n
        .globl  prof_hook_\name
        .hidden prof_hook_\name
        .type   prof_hook_\name, %function

prof_hook_\name:
        .cfi_startproc
        stp     x29, x30, [sp, -48]!
        .cfi_adjust_cfa_offset 48
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        stp     x0, x1, [sp, 16]
        str     x2, [sp, 32]
        bl      prof_hooks_refresh
        ldp     x0, x1, [sp, 16]
        ldr     x2, [sp, 32]
        ldp     x29, x30, [sp], 48
        .cfi_adjust_cfa_offset -48
        .cfi_restore x29
        .cfi_restore x30
        adrp    x16, prof_hooks_real + 8 * \n
        ldr     x16, [x16, :lo12:prof_hooks_real + 8 * \n]
        br      x16
        .cfi_endproc
        .size   prof_hook_\name, . - prof_hook_\name
.endm

#endif


        .text
        .p2align 4

        .hidden prof_hooks_refresh
        .hidden prof_hooks_real

        jump    dlsym, 11
        jump    dlvsym, 12


        .section .note.GNU-stack, "", %progbits
