
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * References in code.  Capstone decodes the instructions.  The helper loads
 * Capstone when it is needed, so without this library only units are missing.
 */


#include "symbolizer/prof_units.h"

#if (defined __has_include)
#if (__has_include(<capstone/capstone.h>))
#include <capstone/capstone.h>
#endif
#endif


/* version 6 has other names for the instructions of aarch64 */

#if (defined CS_API_MAJOR && CS_API_MAJOR < 6)


#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>


#define prof_units_text(n)   prof_units_quote(n)
#define prof_units_quote(n)  #n

#define PROF_UNITS_LIBRARY   "libcapstone.so." prof_units_text(CS_API_MAJOR)


typedef struct prof_units_code_s  prof_units_code_t;

/* of an instruction: the address that it calls, jumps to or takes, or 0 */

typedef uint64_t (*prof_units_reference_pt)(prof_units_code_t *c,
    const cs_insn *insn, int *taken);


struct prof_units_code_s {
    prof_units_t             *units;
    prof_units_reference_pt   reference;

    csh                       handle;
    cs_insn                  *insn;

    /* aarch64: the register and the page of the instruction before */

    uint32_t                  reg;
    uint64_t                  page;

    /* the library */

    void                     *library;
    cs_err                  (*open)(cs_arch arch, cs_mode mode, csh *handle);
    cs_err                  (*close)(csh *handle);
    cs_err                  (*option)(csh handle, cs_opt_type type,
                                size_t value);
    cs_insn                *(*malloc)(csh handle);
    void                    (*free)(cs_insn *insn, size_t n);
    bool                    (*next)(csh handle, const uint8_t **code,
                                size_t *len, uint64_t *address, cs_insn *insn);
};


static int prof_units_load(prof_units_code_t *c);
static void *prof_units_symbol(prof_units_code_t *c, const char *name);
static int prof_units_open(prof_units_code_t *c, int machine);
static void prof_units_section(prof_units_code_t *c, const GElf_Shdr *shdr,
    const uint8_t *data);
static void prof_units_decode(prof_units_code_t *c, uint32_t i,
    const uint8_t *code);
static void prof_units_refer(prof_units_code_t *c, uint32_t i,
    uint64_t address, int taken);
static uint64_t prof_units_x86_64(prof_units_code_t *c, const cs_insn *insn,
    int *taken);
static uint64_t prof_units_aarch64(prof_units_code_t *c, const cs_insn *insn,
    int *taken);


int
prof_units_code(prof_units_t *u)
{
    Elf_Scn            *scn;
    Elf_Data           *data;
    GElf_Ehdr           ehdr;
    GElf_Shdr           shdr;
    prof_units_code_t   c;

    memset(&c, 0, sizeof(prof_units_code_t));

    c.units = u;

    if (gelf_getehdr(u->elf, &ehdr) == NULL
        || prof_units_load(&c) != PROF_OK
        || prof_units_open(&c, ehdr.e_machine) != PROF_OK)
    {
        return PROF_ERROR;
    }

    scn = NULL;

    while ((scn = elf_nextscn(u->elf, scn)) != NULL) {

        if (gelf_getshdr(scn, &shdr) == NULL
            || shdr.sh_type != SHT_PROGBITS
            || !(shdr.sh_flags & SHF_EXECINSTR))
        {
            continue;
        }

        data = elf_getdata(scn, NULL);

        if (data && data->d_buf && data->d_size == shdr.sh_size) {
            prof_units_section(&c, &shdr, data->d_buf);
        }
    }

    c.free(c.insn, 1);
    (void) c.close(&c.handle);

    return PROF_OK;
}


static int
prof_units_load(prof_units_code_t *c)
{
    c->library = dlopen(PROF_UNITS_LIBRARY, RTLD_NOW|RTLD_LOCAL);

    if (c->library == NULL) {
        return PROF_ERROR;
    }

    /* the library stays loaded, the process ends soon */

    c->open = prof_units_symbol(c, "cs_open");
    c->close = prof_units_symbol(c, "cs_close");
    c->option = prof_units_symbol(c, "cs_option");
    c->malloc = prof_units_symbol(c, "cs_malloc");
    c->free = prof_units_symbol(c, "cs_free");
    c->next = prof_units_symbol(c, "cs_disasm_iter");

    return c->library ? PROF_OK : PROF_ERROR;
}


static void *
prof_units_symbol(prof_units_code_t *c, const char *name)
{
    void  *p;

    p = c->library ? dlsym(c->library, name) : NULL;

    if (p == NULL) {
        c->library = NULL;
    }

    return p;
}


static int
prof_units_open(prof_units_code_t *c, int machine)
{
    int  rc;

    switch (machine) {

    case EM_X86_64:
        rc = c->open(CS_ARCH_X86, CS_MODE_64, &c->handle);
        c->reference = prof_units_x86_64;
        break;

    case EM_AARCH64:
        rc = c->open(CS_ARCH_ARM64, CS_MODE_ARM, &c->handle);
        c->reference = prof_units_aarch64;
        break;

    default:
        return PROF_ERROR;
    }

    if (rc != CS_ERR_OK) {
        return PROF_ERROR;
    }

    rc = c->option(c->handle, CS_OPT_DETAIL, CS_OPT_ON);
    c->insn = c->malloc(c->handle);

    if (rc != CS_ERR_OK || c->insn == NULL) {
        (void) c->close(&c->handle);
        return PROF_ERROR;
    }

    return PROF_OK;
}


static void
prof_units_section(prof_units_code_t *c, const GElf_Shdr *shdr,
    const uint8_t *data)
{
    uint32_t                i;
    uint64_t                offset;
    prof_units_function_t  *f;

    for (i = 0; i < c->units->nfunctions; i++) {
        f = &c->units->functions[i];

        if (f->start < shdr->sh_addr) {
            continue;
        }

        offset = f->start - shdr->sh_addr;

        if (offset < shdr->sh_size && f->len <= shdr->sh_size - offset) {
            prof_units_decode(c, i, data + offset);
        }
    }
}


/* data within code may end the decoding; the rest is not used then */

static void
prof_units_decode(prof_units_code_t *c, uint32_t i, const uint8_t *code)
{
    int       taken;
    size_t    len;
    uint64_t  address, to;

    address = c->units->functions[i].start;
    len = c->units->functions[i].len;
    c->reg = 0;

    while (c->next(c->handle, &code, &len, &address, c->insn)) {

        taken = 0;
        to = c->reference(c, c->insn, &taken);

        if (to) {
            prof_units_refer(c, i, to, taken);
        }
    }
}


static void
prof_units_refer(prof_units_code_t *c, uint32_t i, uint64_t address,
    int taken)
{
    uint32_t                n;
    prof_units_function_t  *f;

    n = prof_units_function(c->units, address);

    if (n == PROF_NONE || n == i) {
        return;
    }

    f = &c->units->functions[n];

    /*
     * Any file refers to the symbol of a function.  Only its own file knows an
     * address within it, to which parts of it jump.
     */

    if (address == f->start ? !f->visible : !taken && !f->several) {
        prof_units_join(c->units, i, n);
    }
}


static uint64_t
prof_units_x86_64(prof_units_code_t *c, const cs_insn *insn, int *taken)
{
    uint32_t      i;
    const cs_x86  *x;

    x = &insn->detail->x86;

    if (insn->id == X86_INS_LEA) {

        if (x->op_count != 2 || x->operands[1].type != X86_OP_MEM
            || x->operands[1].mem.base != X86_REG_RIP)
        {
            return 0;
        }

        *taken = 1;

        return insn->address + insn->size + x->operands[1].mem.disp;
    }

    for (i = 0; i < insn->detail->groups_count; i++) {

        if (insn->detail->groups[i] == CS_GRP_JUMP
            || insn->detail->groups[i] == CS_GRP_CALL)
        {
            return x->op_count == 1 && x->operands[0].type == X86_OP_IMM
                   ? (uint64_t) x->operands[0].imm : 0;
        }
    }

    return 0;
}


static uint64_t
prof_units_aarch64(prof_units_code_t *c, const cs_insn *insn, int *taken)
{
    uint32_t         reg;
    const cs_arm64  *a;

    a = &insn->detail->arm64;

    reg = c->reg;
    c->reg = 0;

    switch (insn->id) {

    case ARM64_INS_B:
    case ARM64_INS_BL:
    case ARM64_INS_CBZ:
    case ARM64_INS_CBNZ:
    case ARM64_INS_TBZ:
    case ARM64_INS_TBNZ:
        return a->op_count
               && a->operands[a->op_count - 1].type == ARM64_OP_IMM
               ? (uint64_t) a->operands[a->op_count - 1].imm : 0;

    case ARM64_INS_ADRP:
        c->reg = a->operands[0].reg;
        c->page = a->operands[1].imm;
        return 0;

    case ARM64_INS_ADD:
        if (reg == 0 || a->op_count != 3 || a->operands[1].reg != reg
            || a->operands[2].type != ARM64_OP_IMM
            || a->operands[2].shift.type != ARM64_SFT_INVALID)
        {
            return 0;
        }

        *taken = 1;

        return c->page + a->operands[2].imm;
    }

    return 0;
}


#else


int
prof_units_code(prof_units_t *u)
{
    return PROF_ERROR;
}


#endif
