
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Preloaded into nginx, this library notes which functions of other modules and
 * of interpreters the profiler calls.  The profiler is not linked with them: it
 * looks their addresses up.  A look-up of a function in one of the objects
 * below returns the address of a stub, which appends a line to the file that
 * PROF_CALLS names, and continues with the function:
 *
 *     PID FUNCTION
 *
 * Not replaced are functions whose address the profiler compares: lua_resume(),
 * of which it finds and passes on the calls of others, luaJIT_setmode(), which
 * tells where LuaJIT is, and the parts of Perl's interpreter.
 */


#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>


#define CALLS_MAX  128

#define CALLS_TEXT(x)   CALLS_TEXT_(x)
#define CALLS_TEXT_(x)  #x


/* the stubs know their number only; the first word is the address */

typedef struct {
    void  *function;
    char   name[56];
} calls_stub_t;


static void calls_start(void)  __attribute__((constructor));
void calls_note(uint64_t i);
void calls_stubs(void);


calls_stub_t  calls_stub[CALLS_MAX]
    __attribute__((used, visibility("hidden")));

static unsigned  calls_n;
static char      calls_file[256];

static const char *const  calls_compared[] = {
    "lua_resume", "luaJIT_setmode", "Perl_pp_nextstate", "Perl_pp_dbstate",
    "Perl_runops_standard", NULL
};

static const char *const  calls_objects[] = {
    "libluajit", "ngx_http_lua_module", "ngx_http_js_module",
    "ngx_stream_js_module", "ngx_http_perl_module", "libperl", NULL
};


/*
 * Each stub has 16 bytes.  All registers with arguments are kept, and the
 * function finds the stack as its caller left it.
 */

__asm__(
    "    .text\n"
    "    .p2align 4\n"
    "    .globl calls_stubs\n"
    "    .hidden calls_stubs\n"
    "calls_stubs:\n"
    "    .set i, 0\n"
    "    .rept " CALLS_TEXT(CALLS_MAX) "\n"
    "    .p2align 4\n"
    "    pushq $i\n"
    "    jmp calls_common\n"
    "    .set i, i + 1\n"
    "    .endr\n"
    "calls_common:\n"
    "    pushq %rbp\n"
    "    movq %rsp, %rbp\n"
    "    pushq %rax\n"
    "    pushq %rdi\n"
    "    pushq %rsi\n"
    "    pushq %rdx\n"
    "    pushq %rcx\n"
    "    pushq %r8\n"
    "    pushq %r9\n"
    "    subq $16, %rsp\n"
    "    andq $-16, %rsp\n"
    "    movups %xmm0, (%rsp)\n"
    "    movq 8(%rbp), %rdi\n"
    "    call calls_note@PLT\n"
    "    movups (%rsp), %xmm0\n"
    "    leaq -56(%rbp), %rsp\n"
    "    popq %r9\n"
    "    popq %r8\n"
    "    popq %rcx\n"
    "    popq %rdx\n"
    "    popq %rsi\n"
    "    popq %rdi\n"
    "    movq 8(%rbp), %rax\n"
    "    shlq $6, %rax\n"
    "    leaq calls_stub(%rip), %r11\n"
    "    movq (%r11,%rax), %r11\n"
    "    popq %rax\n"
    "    popq %rbp\n"
    "    addq $8, %rsp\n"
    "    jmp *%r11\n"
);


/* nginx clears the environment of its workers */

static void
calls_start(void)
{
    const char  *file;

    file = getenv("PROF_CALLS");

    (void) snprintf(calls_file, sizeof(calls_file), "%s", file ? file : "");
}


void
calls_note(uint64_t i)
{
    int   fd, n;
    char  line[128];

    n = snprintf(line, sizeof(line), "%ld %s\n", syscall(SYS_getpid),
                 calls_stub[i].name);

    fd = open(calls_file, O_WRONLY|O_APPEND|O_CREAT|O_CLOEXEC, 0666);

    if (fd != -1) {
        (void) !write(fd, line, n);
        close(fd);
    }
}


static int
calls_has(const char *const *list, const char *text)
{
    while (*list && strstr(text, *list) == NULL) {
        list++;
    }

    return *list != NULL;
}


static void *
calls_replace(void *function, const char *name, void *caller)
{
    unsigned    i;
    Dl_info     info;
    ElfW(Sym)  *symbol;

    if (function == NULL || calls_has(calls_compared, name)
        || dladdr(caller, &info) == 0
        || strstr(info.dli_fname, "ngx_http_profile_module") == NULL
        || dladdr1(function, &info, (void **) &symbol, RTLD_DL_SYMENT) == 0
        || symbol == NULL || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC
        || !calls_has(calls_objects, info.dli_fname))
    {
        return function;
    }

    for (i = 0; i < calls_n; i++) {
        if (calls_stub[i].function == function) {
            return (char *) (uintptr_t) calls_stubs + 16 * i;
        }
    }

    if (i == CALLS_MAX) {
        abort();
    }

    calls_stub[i].function = function;
    (void) snprintf(calls_stub[i].name, sizeof(calls_stub[i].name), "%s",
                    name);
    calls_n++;

    return (char *) (uintptr_t) calls_stubs + 16 * i;
}


/* a look-up of the next definition depends on the caller, so it is a jump */

void *
dlsym(void *handle, const char *name)
{
    static void  *(*next)(void *handle, const char *name);

    if (next == NULL) {
        *(void **) &next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    }

    if (handle == RTLD_NEXT) {
        return next(handle, name);
    }

    return calls_replace(next(handle, name), name,
                         __builtin_return_address(0));
}
