
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The names are those of the kernel's headers.  A frame has the prefix of the
 * kernel's functions: "sys_writev" is the system call, and "writev" is the
 * function of the C library that makes it.
 */


#include "names/prof_syscall.h"

#include <asm/unistd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* longer functions are not read; those that make system calls are short */

#define PROF_SYSCALL_CODE  32768

/* the number of bytes that decide whether an address is a system call */

#define PROF_SYSCALL_INSN  4

/*
 * The maximum number of callers that pass the number on: from the function
 * with the constant to the function with the instruction.
 */

#define PROF_SYSCALL_CALLERS  4


typedef void (*prof_syscall_decode_pt)(const prof_syscall_code_t *code,
    prof_call_t *call);


/* the added frames and nodes: their index plus 1, or 0 */

typedef struct {
    prof_profile_t     *profile;
    const prof_call_t  *calls;
    uint32_t           *frames;     /* by number of the call */
    uint32_t           *nodes;      /* by node of the interrupted code */
} prof_syscall_t;


static prof_syscall_decode_pt prof_syscall_decoder(const prof_elf_t *elf);
static int prof_syscall_look(const prof_elf_t *elf, const prof_symbol_t *s);
static int prof_syscall_read(const prof_elf_t *elf, const prof_symbol_t *s,
    prof_syscall_code_t *code, uint8_t *buf);
static const Elf64_Shdr *prof_syscall_section(const prof_elf_t *elf,
    uint64_t addr);
static int prof_syscall_ways(prof_syscall_t *sc);
static int prof_syscall_entries(prof_syscall_t *sc, prof_series_t *s);
static uint32_t prof_syscall_number(const prof_syscall_t *sc, uint32_t node);
static int prof_syscall_node(prof_syscall_t *sc, uint32_t parent,
    uint32_t number);
static int prof_syscall_frame(prof_syscall_t *sc, uint32_t number);


/* generated */

static const char *const  prof_syscall_names[] = {
#include "names/prof_syscall_names.h"
};


#define PROF_SYSCALLS                                                         \
    (sizeof(prof_syscall_names) / sizeof(prof_syscall_names[0]))


int
prof_syscall_find(const prof_elf_t *elf, const prof_profile_object_t *o,
    prof_symbol_t *syms, uint32_t n)
{
    int                      libc;
    uint8_t                 *buf;
    uint32_t                 i;
    prof_syscall_code_t      code;
    prof_syscall_decode_pt   decode;

    decode = prof_syscall_decoder(elf);

    if (decode == NULL) {
        return PROF_OK;
    }

    buf = malloc(PROF_SYSCALL_CODE);
    if (buf == NULL) {
        return PROF_ERROR;
    }

    libc = strncmp(prof_path_file(o->path), "libc.", 5) == 0;

    for (i = 0; i < n; i++) {

        if ((syms[i].interrupted ? prof_syscall_look(elf, &syms[i]) : libc)
            && prof_syscall_read(elf, &syms[i], &code, buf) == PROF_OK)
        {
            decode(&code, &syms[i].call);
        }
    }

    free(buf);

    return PROF_OK;
}


static prof_syscall_decode_pt
prof_syscall_decoder(const prof_elf_t *elf)
{
    switch (elf->header.e_machine) {

    case EM_X86_64:
        return prof_syscall_x86_64;

    case EM_AARCH64:
        return prof_syscall_aarch64;
    }

    return NULL;
}


/*
 * Returns whether the interrupted address may be a system call.  A few bytes
 * show that most addresses are not, so their functions need not be read.
 */

static int
prof_syscall_look(const prof_elf_t *elf, const prof_symbol_t *s)
{
    size_t             i;
    uint8_t            bytes[2 * PROF_SYSCALL_INSN];
    uint64_t           addr;
    const Elf64_Shdr  *sh;

    static const uint8_t  x86_64[] = { 0x0f, 0x05 };
    static const uint8_t  aarch64[] = { 0x01, 0x00, 0x00, 0xd4 };

    addr = s->pc - PROF_SYSCALL_INSN;
    sh = prof_syscall_section(elf, s->pc);

    if (sh == NULL || addr < sh->sh_addr
        || prof_elf_read(elf, sh, addr - sh->sh_addr, bytes, sizeof(bytes))
           != PROF_OK)
    {
        return 0;
    }

    if (elf->header.e_machine == EM_AARCH64) {
        return memcmp(bytes, aarch64, 4) == 0
               || memcmp(bytes + 4, aarch64, 4) == 0;
    }

    for (i = 2; i <= 4; i += 2) {
        if (memcmp(bytes + i, x86_64, 2) == 0) {
            return 1;
        }
    }

    return 0;
}


/* reads the code of the function, by its unwind entry or by its symbol */

static int
prof_syscall_read(const prof_elf_t *elf, const prof_symbol_t *s,
    prof_syscall_code_t *code, uint8_t *buf)
{
    uint64_t           start;
    const Elf64_Shdr  *sh;

    start = s->function ? s->function : s->name ? s->value : 0;
    sh = prof_syscall_section(elf, s->pc);

    if (start == 0 || sh == NULL || start < sh->sh_addr || s->pc < start
        || s->len > PROF_SYSCALL_CODE || s->pc - start > s->len
        || prof_elf_read(elf, sh, start - sh->sh_addr, buf, s->len)
           != PROF_OK)
    {
        return PROF_ERROR;
    }

    code->bytes = buf;
    code->len = s->len;
    code->returns = !s->interrupted;
    code->at = s->pc - start + code->returns;

    return PROF_OK;
}


static const Elf64_Shdr *
prof_syscall_section(const prof_elf_t *elf, uint64_t addr)
{
    uint32_t           i;
    const Elf64_Shdr  *sh;

    for (i = 0; i < elf->nsections; i++) {
        sh = &elf->sections[i];

        if ((sh->sh_flags & SHF_EXECINSTR) && addr >= sh->sh_addr
            && addr - sh->sh_addr < sh->sh_size)
        {
            return sh;
        }
    }

    return NULL;
}


int
prof_syscall_frames(prof_profile_t *p, const prof_call_t *calls)
{
    int             rc;
    uint32_t        i, n;
    prof_syscall_t  sc;

    n = 0;

    for (i = 0; i < p->nframes; i++) {
        n += calls[i].number != 0;
    }

    if (n == 0) {
        return PROF_OK;
    }

    sc.profile = p;
    sc.calls = calls;
    sc.frames = calloc(PROF_SYSCALLS, sizeof(uint32_t));
    sc.nodes = calloc(p->nnodes, sizeof(uint32_t));

    rc = sc.frames && sc.nodes ? prof_syscall_ways(&sc) : PROF_ERROR;

    for (i = 0; i < PROF_SERIES_MAX && rc == PROF_OK; i++) {
        rc = prof_syscall_entries(&sc, &p->series[i]);
    }

    free(sc.frames);
    free(sc.nodes);

    return rc;
}


/*
 * In a stack with functions of the kernel, the outermost function on the way
 * to the call (see prof_kernel_names.h) becomes the frame "sys_..." of the
 * call.
 */

static int
prof_syscall_ways(prof_syscall_t *sc)
{
    uint32_t         i, call;
    prof_node_t     *node;
    prof_profile_t  *p;

    p = sc->profile;

    for (i = 0; i < p->nnodes; i++) {
        node = &p->nodes[i];

        if (node->parent == PROF_NONE
            || p->frames[node->frame].type != PROF_TYPE_KERNEL
            || p->frames[node->frame].name[0] != '\0'
            || p->frames[p->nodes[node->parent].frame].type
               == PROF_TYPE_KERNEL)
        {
            continue;
        }

        call = prof_syscall_number(sc, node->parent);

        if (call == 0) {
            continue;
        }

        if (sc->frames[call - 1] == 0
            && prof_syscall_frame(sc, call - 1) != PROF_OK)
        {
            return PROF_ERROR;
        }

        node->frame = sc->frames[call - 1] - 1;
    }

    return PROF_OK;
}


static int
prof_syscall_entries(prof_syscall_t *sc, prof_series_t *s)
{
    uint32_t       call, i;
    prof_entry_t  *e;

    for (i = 0; i < s->n; i++) {
        e = prof_series_entry(s, i);
        call = prof_syscall_number(sc, e->node);

        if (call == 0) {
            continue;
        }

        if (sc->nodes[e->node] == 0
            && prof_syscall_node(sc, e->node, call - 1) != PROF_OK)
        {
            return PROF_ERROR;
        }

        e->node = sc->nodes[e->node] - 1;
    }

    return PROF_OK;
}


/* returns the number of the system call at the end of a stack plus 1, or 0 */

static uint32_t
prof_syscall_number(const prof_syscall_t *sc, uint32_t node)
{
    uint32_t               level, number;
    const prof_call_t     *call;
    const prof_frame_t    *caller, *f;
    const prof_profile_t  *p;

    p = sc->profile;

    /* frames of system calls, which were added, are not in "calls" */

    if (p->frames[p->nodes[node].frame].type == PROF_TYPE_KERNEL) {
        return 0;
    }

    number = sc->calls[p->nodes[node].frame].number;

    for (level = 0; level < PROF_SYSCALL_CALLERS; level++) {

        if (number != PROF_CALL_STACK && number != PROF_CALL_SECOND) {
            break;
        }

        f = &p->frames[p->nodes[node].frame];
        node = p->nodes[node].parent;

        if (node == PROF_NONE) {
            return 0;
        }

        caller = &p->frames[p->nodes[node].frame];
        call = &sc->calls[p->nodes[node].frame];

        if (caller->object != f->object
            || caller->function + call->target != f->function)
        {
            return 0;
        }

        number = number == PROF_CALL_STACK ? call->stack : call->second;
    }

    return number <= PROF_SYSCALLS && number
           && prof_syscall_names[number - 1] ? number : 0;
}


static int
prof_syscall_node(prof_syscall_t *sc, uint32_t parent, uint32_t number)
{
    prof_node_t     *nodes;
    prof_profile_t  *p;

    p = sc->profile;

    if (sc->frames[number] == 0
        && prof_syscall_frame(sc, number) != PROF_OK)
    {
        return PROF_ERROR;
    }

    nodes = realloc(p->nodes, ((size_t) p->nnodes + 1) * sizeof(prof_node_t));
    if (nodes == NULL) {
        return PROF_ERROR;
    }

    p->nodes = nodes;
    p->nodes[p->nnodes].parent = parent;
    p->nodes[p->nnodes].frame = sc->frames[number] - 1;

    sc->nodes[parent] = ++p->nnodes;

    return PROF_OK;
}


static int
prof_syscall_frame(prof_syscall_t *sc, uint32_t number)
{
    prof_frame_t    *f;
    prof_profile_t  *p;

    p = sc->profile;

    f = realloc(p->frames, ((size_t) p->nframes + 1) * sizeof(prof_frame_t));
    if (f == NULL) {
        return PROF_ERROR;
    }

    p->frames = f;
    f = &p->frames[p->nframes];

    memset(f, 0, sizeof(prof_frame_t));

    f->type = PROF_TYPE_KERNEL;
    f->source = PROF_SOURCE_KERNEL;
    f->object = PROF_NONE;

    if (asprintf(&f->name, "sys_%s", prof_syscall_names[number]) == -1) {
        f->name = NULL;
        return PROF_ERROR;
    }

    sc->frames[number] = ++p->nframes;

    return PROF_OK;
}
