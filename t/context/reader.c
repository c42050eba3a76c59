
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * usage: reader PID process
 *        reader PID threads COUNT
 *
 * Reads from another process what OTEP 4719 and OTEP 4947 specify, as a profiler
 * of the whole machine does.  "process" prints the payload of the process
 * context in hexadecimal, or "-".  "threads" stops the main thread COUNT times,
 * and prints its record each time: the trace, the span, the flags and the
 * attributes, or "-" without a record.
 */


#define _GNU_SOURCE

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>


#define SYMBOL  "otel_thread_ctx_v1"

#if (__x86_64__)
#define TLSDESC      R_X86_64_TLSDESC
#define DTV(tp)      ((tp) + 8)
#else
#define TLSDESC      R_AARCH64_TLSDESC
#define DTV(tp)      (tp)
#endif

/* bytes of an entry of the table of TLS blocks */
#define DTV_GLIBC    16
#define DTV_MUSL     8

/* offsets from the thread pointer are smaller, addresses are larger */
#define STATIC_MAX   (1 << 20)


typedef struct {
    uint64_t  got;       /* address of the TLS descriptor, or 0 */
    int64_t   offset;    /* of a variable of the program itself */
    int       found;
    size_t    entry;
} place_t;


static void find(pid_t pid, place_t *place);
static void look(const char *file, uint64_t base, place_t *place);
static uint64_t thread_pointer(pid_t pid);
static uint64_t slot_of(pid_t pid, place_t *place, uint64_t tp);
static void print_process(pid_t pid);
static void print_record(pid_t pid, uint64_t slot);
static void fetch(pid_t pid, uint64_t from, void *to, size_t n);
static void fail(const char *what);


int
main(int argc, char *argv[])
{
    int       i, n, status;
    pid_t     pid;
    place_t   place;
    uint64_t  slot;

    if (argc < 3) {
        return 2;
    }

    pid = atoi(argv[1]);

    if (strcmp(argv[2], "process") == 0) {
        print_process(pid);
        return 0;
    }

    memset(&place, 0, sizeof(place_t));
    find(pid, &place);

    if (!place.found) {
        printf("no symbol\n");
        return 0;
    }

    if (ptrace(PTRACE_SEIZE, pid, 0, 0) == -1) {
        fail("PTRACE_SEIZE");
    }

    n = argc > 3 ? atoi(argv[3]) : 1;
    srand(1);

    for (i = 0; i < n; i++) {

        if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) == -1
            || waitpid(pid, &status, __WALL) == -1 || !WIFSTOPPED(status))
        {
            fail("PTRACE_INTERRUPT");
        }

        slot = slot_of(pid, &place, thread_pointer(pid));
        print_record(pid, slot);

        /* a signal of the thread itself is passed on */

        if (ptrace(PTRACE_CONT, pid, 0,
                   status >> 16 ? 0 : WSTOPSIG(status)) == -1)
        {
            fail("PTRACE_CONT");
        }

        usleep((useconds_t) (rand() % 300));
    }

    return 0;
}


/* looks for the symbol in all objects that the process has mapped */

static void
find(pid_t pid, place_t *place)
{
    char      path[64], line[4096], file[4096], root[4200], last[4096];
    FILE     *f;
    uint64_t  start, offset;

    (void) snprintf(path, sizeof(path), "/proc/%d/maps", pid);

    f = fopen(path, "r");
    if (f == NULL) {
        fail(path);
    }

    last[0] = '\0';
    place->entry = DTV_GLIBC;

    while (fgets(line, sizeof(line), f)) {

        if (strstr(line, "ld-musl")) {
            place->entry = DTV_MUSL;
        }

        if (!place->found
            && sscanf(line, "%lx-%*x %*s %lx %*s %*s %4095s", &start, &offset,
                      file) == 3
            && file[0] == '/' && offset == 0 && strcmp(file, last) != 0)
        {
            strcpy(last, file);
            (void) snprintf(root, sizeof(root), "/proc/%d/root%s", pid, file);
            look(root, start, place);
        }
    }

    (void) fclose(f);
}


static void
look(const char *file, uint64_t base, place_t *place)
{
    int             fd, i, executable;
    size_t          j;
    uint64_t        symbol, size;
    Elf64_Sym      *sym;
    Elf64_Ehdr     *eh;
    Elf64_Phdr     *ph;
    Elf64_Rela     *rela;
    Elf64_Shdr     *sh;
    const char     *p, *str;
    struct stat     st;

    fd = open(file, O_RDONLY);

    if (fd == -1 || fstat(fd, &st) == -1 || st.st_size < 64) {
        return;
    }

    p = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    (void) close(fd);

    if (p == MAP_FAILED || memcmp(p, ELFMAG, SELFMAG) != 0) {
        return;
    }

    eh = (Elf64_Ehdr *) p;
    ph = (Elf64_Phdr *) (p + eh->e_phoff);
    sh = (Elf64_Shdr *) (p + eh->e_shoff);
    symbol = 0;
    sym = NULL;

    for (i = 0; i < eh->e_shnum && symbol == 0; i++) {

        if (sh[i].sh_type != SHT_DYNSYM) {
            continue;
        }

        sym = (Elf64_Sym *) (p + sh[i].sh_offset);
        str = p + sh[sh[i].sh_link].sh_offset;

        for (j = 1; j < sh[i].sh_size / sizeof(Elf64_Sym); j++) {

            if (ELF64_ST_TYPE(sym[j].st_info) == STT_TLS && sym[j].st_shndx
                && strcmp(str + sym[j].st_name, SYMBOL) == 0)
            {
                symbol = j;
                break;
            }
        }
    }

    if (symbol == 0) {
        return;
    }

    for (i = 0; i < eh->e_shnum; i++) {

        rela = (Elf64_Rela *) (p + sh[i].sh_offset);

        for (j = 0; sh[i].sh_type == SHT_RELA
                    && j < sh[i].sh_size / sizeof(Elf64_Rela); j++)
        {
            if (ELF64_R_TYPE(rela[j].r_info) == TLSDESC
                && ELF64_R_SYM(rela[j].r_info) == symbol)
            {
                place->got = base + rela[j].r_offset;
                place->found = 1;
                return;
            }
        }
    }

    executable = 0;
    size = 0;

    for (i = 0; i < eh->e_phnum; i++) {

        if (ph[i].p_type == PT_INTERP) {
            executable = 1;
        }

        if (ph[i].p_type == PT_TLS) {
#if (__x86_64__)
            size = (ph[i].p_memsz + ph[i].p_align - 1) & -ph[i].p_align;
            size = (uint64_t) 0 - size;
#else
            size = (16 + ph[i].p_align - 1) & -ph[i].p_align;
#endif
        }
    }

    if (executable) {
        place->offset = (int64_t) (size + sym[symbol].st_value);
        place->found = 1;
    }
}


static uint64_t
thread_pointer(pid_t pid)
{
    struct iovec  iov;

#if (__x86_64__)
    struct user_regs_struct  regs;

    iov.iov_base = &regs;
    iov.iov_len = sizeof(regs);

    if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &iov) == -1) {
        fail("PTRACE_GETREGSET");
    }

    return regs.fs_base;
#else
    uint64_t  tp[2];

    iov.iov_base = tp;
    iov.iov_len = sizeof(tp);

    if (ptrace(PTRACE_GETREGSET, pid, NT_ARM_TLS, &iov) == -1) {
        fail("PTRACE_GETREGSET");
    }

    return tp[0];
#endif
}


/* the address of the thread's pointer, or 0 if the thread has none yet */

static uint64_t
slot_of(pid_t pid, place_t *place, uint64_t tp)
{
    int64_t   argument;
    uint64_t  index[2], dtv, block;

    if (place->got == 0) {
        return tp + (uint64_t) place->offset;
    }

    fetch(pid, place->got + 8, &argument, 8);

    if (argument < STATIC_MAX && argument > -STATIC_MAX) {
        return tp + (uint64_t) argument;
    }

    fetch(pid, (uint64_t) argument, index, 16);
    fetch(pid, DTV(tp), &dtv, 8);
    fetch(pid, dtv + index[0] * place->entry, &block, 8);

    return block == 0 || block == (uint64_t) -1 ? 0 : block + index[1];
}


static void
print_record(pid_t pid, uint64_t slot)
{
    int       i;
    uint8_t   r[28], attributes[256];
    uint16_t  size;
    uint64_t  record;

    record = 0;

    if (slot) {
        fetch(pid, slot, &record, 8);
    }

    if (record == 0) {
        printf("-\n");
        return;
    }

    fetch(pid, record, r, 28);

    if (r[24] != 1) {
        printf("invalid\n");
        return;
    }

    for (i = 0; i < 24; i++) {
        printf("%s%02x", i == 16 ? " " : "", r[i]);
    }

    printf(" %02x", r[25]);

    memcpy(&size, &r[26], 2);
    fetch(pid, record + 28, attributes, size < 256 ? size : 256);

    for (i = 0; i + 2 <= size; i += 2 + attributes[i + 1]) {
        printf(" %d=%.*s", attributes[i], attributes[i + 1],
               (char *) &attributes[i + 2]);
    }

    printf("\n");
}


static void
print_process(pid_t pid)
{
    char      path[64], line[4096];
    FILE     *f;
    uint8_t   payload[4096];
    uint32_t  i, size, version;
    uint64_t  start, h[4], again[4];

    (void) snprintf(path, sizeof(path), "/proc/%d/maps", pid);

    f = fopen(path, "r");
    if (f == NULL) {
        fail(path);
    }

    while (fgets(line, sizeof(line), f)) {

        if ((strstr(line, "/memfd:OTEL_CTX") == NULL
             && strstr(line, "[anon:OTEL_CTX]") == NULL)
            || sscanf(line, "%lx-", &start) != 1)
        {
            continue;
        }

        fetch(pid, start, h, sizeof(h));

        version = (uint32_t) h[1];
        size = (uint32_t) (h[1] >> 32);

        if (memcmp(h, "OTEL_CTX", 8) != 0 || version != 2 || h[2] == 0
            || size > sizeof(payload))
        {
            printf("wrong header\n");
            return;
        }

        fetch(pid, h[3], payload, size);
        fetch(pid, start, again, sizeof(again));

        if (h[2] != again[2]) {
            printf("changed\n");
            return;
        }

        for (i = 0; i < size; i++) {
            printf("%02x", payload[i]);
        }

        printf("\n");
        return;
    }

    printf("-\n");
}


static void
fetch(pid_t pid, uint64_t from, void *to, size_t n)
{
    struct iovec  local, remote;

    local.iov_base = to;
    local.iov_len = n;
    remote.iov_base = (void *) from;
    remote.iov_len = n;

    if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t) n) {
        fail("process_vm_readv");
    }
}


static void
fail(const char *what)
{
    printf("%s: %s\n", what, strerror(errno));
    exit(1);
}
