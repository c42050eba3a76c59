
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * prof_context_own() returns the address of this thread's pointer
 * otel_thread_ctx_v1.  The access has the form of TLS descriptors (TLSDESC),
 * which readers know best.  Compilers for x86-64 have this form only as an
 * option for whole programs.
 */


        .section .tbss, "awT", %nobits
        .p2align 3
        .globl  otel_thread_ctx_v1
        .type   otel_thread_ctx_v1, %object
        .size   otel_thread_ctx_v1, 8

otel_thread_ctx_v1:
        .zero   8


        .text
        .p2align 4
        .globl  prof_context_own
        .hidden prof_context_own
        .type   prof_context_own, %function

prof_context_own:
        .cfi_startproc

#if (__x86_64__)

        endbr64
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbp, 0
        leaq    otel_thread_ctx_v1@tlsdesc(%rip), %rax
        call    *otel_thread_ctx_v1@tlscall(%rax)
        addq    %fs:0, %rax
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbp
        ret

#elif (__aarch64__)

        stp     x29, x30, [sp, -16]!
        .cfi_adjust_cfa_offset 16
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        adrp    x0, :tlsdesc:otel_thread_ctx_v1
        ldr     x1, [x0, :tlsdesc_lo12:otel_thread_ctx_v1]
        add     x0, x0, :tlsdesc_lo12:otel_thread_ctx_v1
        .tlsdesccall otel_thread_ctx_v1
        blr     x1
        mrs     x1, tpidr_el0
        add     x0, x0, x1
        ldp     x29, x30, [sp], 16
        .cfi_adjust_cfa_offset -16
        .cfi_restore x29
        .cfi_restore x30
        ret

#endif

        .cfi_endproc
        .size   prof_context_own, . - prof_context_own


        .section .note.GNU-stack, "", %progbits
