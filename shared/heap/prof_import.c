
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "heap/prof_import.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>


#if (__x86_64__)

#define PROF_IMPORT_CALL    R_X86_64_JUMP_SLOT
#define PROF_IMPORT_GOT     R_X86_64_GLOB_DAT
#define PROF_IMPORT_DATA    R_X86_64_64

#elif (__aarch64__)

#define PROF_IMPORT_CALL    R_AARCH64_JUMP_SLOT
#define PROF_IMPORT_GOT     R_AARCH64_GLOB_DAT
#define PROF_IMPORT_DATA    R_AARCH64_ABS64

#else
#error "the relocations of this architecture are not known"
#endif


typedef struct {
    const char *const  *names;
    prof_import_pt      fn;
    void               *data;
    uint64_t            adds;
    uint64_t            subs;
    uintptr_t           page;       /* size of a page - 1 */
    uint32_t            initials[256 / 32];
} prof_import_search_t;


/* the necessary part of an object's dynamic section */

typedef struct {
    const ElfW(Rela)   *rela;
    size_t              rela_size;
    size_t              relative;   /* the first ones have no symbol */
    const ElfW(Rela)   *plt;
    size_t              plt_size;
    const ElfW(Sym)    *symbols;
    const char         *strings;
} prof_import_dynamic_t;


/* the search in one object; a batch is sorted before fn gets it */

typedef struct {
    prof_import_search_t       *search;
    const struct dl_phdr_info  *info;
    uintptr_t                   relro;
    uintptr_t                   relro_end;
    prof_import_dynamic_t       dynamic;
    prof_import_batch_t         batch;
} prof_import_object_t;


static int prof_import_object(struct dl_phdr_info *info, size_t size,
    void *data);
static int prof_import_segments(prof_import_object_t *object);
static int prof_import_dynamic(prof_import_object_t *object,
    const ElfW(Dyn) *dyn);
static const void *prof_import_pointer(const prof_import_object_t *object,
    uintptr_t value);
static void prof_import_relocations(prof_import_object_t *object,
    const ElfW(Rela) *rela, size_t n);
static void prof_import_add(prof_import_object_t *object, uintptr_t at,
    uint32_t name, const ElfW(Sym) *sym);
static int prof_import_writable(const prof_import_object_t *object,
    uintptr_t at);
static void prof_import_flush(prof_import_object_t *object);


void
prof_import_each(const char *const *names, prof_import_pt fn, void *data,
    uint64_t *adds, uint64_t *subs)
{
    uint8_t               ch;
    uint32_t              i;
    prof_import_search_t  search;

    memset(&search, 0, sizeof(prof_import_search_t));

    search.names = names;
    search.fn = fn;
    search.data = data;
    search.page = (uintptr_t) sysconf(_SC_PAGESIZE) - 1;

    for (i = 0; names[i]; i++) {
        ch = (uint8_t) names[i][0];
        search.initials[ch / 32] |= (uint32_t) 1 << ch % 32;
    }

    (void) dl_iterate_phdr(prof_import_object, &search);

    *adds = search.adds;
    *subs = search.subs;
}


static int
prof_import_object(struct dl_phdr_info *info, size_t size, void *data)
{
    prof_import_search_t *search = data;

    prof_import_object_t  object;

    search->adds = info->dlpi_adds;
    search->subs = info->dlpi_subs;

    memset(&object, 0, offsetof(prof_import_object_t, batch));

    object.search = search;
    object.info = info;
    object.batch.n = 0;

    if (prof_import_segments(&object) != PROF_OK) {
        return 0;
    }

    prof_import_relocations(&object,
                          object.dynamic.rela + object.dynamic.relative,
                          object.dynamic.rela_size / sizeof(ElfW(Rela))
                          - object.dynamic.relative);

    prof_import_relocations(&object, object.dynamic.plt,
                          object.dynamic.plt_size / sizeof(ElfW(Rela)));

    prof_import_flush(&object);

    return 0;
}


static int
prof_import_segments(prof_import_object_t *object)
{
    uint16_t                    i;
    uintptr_t                   start, end;
    const ElfW(Dyn)            *dyn;
    const ElfW(Phdr)           *ph;
    const struct dl_phdr_info  *info;

    info = object->info;
    dyn = NULL;

    for (i = 0; i < info->dlpi_phnum; i++) {
        ph = &info->dlpi_phdr[i];

        start = info->dlpi_addr + ph->p_vaddr;
        end = start + ph->p_memsz;

        switch (ph->p_type) {

        case PT_DYNAMIC:
            dyn = (const ElfW(Dyn) *) start;
            break;

        case PT_GNU_RELRO:

            /* whole pages, as in the loader */

            object->relro = start & ~object->search->page;
            object->relro_end = end & ~object->search->page;
            break;

        case PT_LOAD:

            if (object->batch.n++ == 0 || start < object->batch.start) {
                object->batch.start = start;
            }

            if (object->batch.n == 1 || end > object->batch.end) {
                object->batch.end = end;
            }

            break;

        default:
            break;
        }
    }

    object->batch.n = 0;

    return dyn ? prof_import_dynamic(object, dyn) : PROF_ERROR;
}


static int
prof_import_dynamic(prof_import_object_t *object, const ElfW(Dyn) *dyn)
{
    prof_import_dynamic_t  *d;

    d = &object->dynamic;

    for ( /* void */ ; dyn->d_tag != DT_NULL; dyn++) {

        switch (dyn->d_tag) {

        case DT_RELA:
            d->rela = prof_import_pointer(object, dyn->d_un.d_ptr);
            break;

        case DT_RELASZ:
            d->rela_size = dyn->d_un.d_val;
            break;

        case DT_RELACOUNT:
            d->relative = dyn->d_un.d_val;
            break;

        case DT_JMPREL:
            d->plt = prof_import_pointer(object, dyn->d_un.d_ptr);
            break;

        case DT_PLTRELSZ:
            d->plt_size = dyn->d_un.d_val;
            break;

        case DT_SYMTAB:
            d->symbols = prof_import_pointer(object, dyn->d_un.d_ptr);
            break;

        case DT_STRTAB:
            d->strings = prof_import_pointer(object, dyn->d_un.d_ptr);
            break;

        default:
            break;
        }
    }

    if (d->symbols == NULL || d->strings == NULL) {
        return PROF_ERROR;
    }

    if (d->rela == NULL) {
        d->rela_size = 0;
    }

    if (d->plt == NULL) {
        d->plt_size = 0;
    }

    if (d->relative > d->rela_size / sizeof(ElfW(Rela))) {
        d->relative = 0;
    }

    return PROF_OK;
}


/* returns a pointer; only glibc has already added the base to its value */

static const void *
prof_import_pointer(const prof_import_object_t *object, uintptr_t value)
{
    if (value < object->info->dlpi_addr) {
        value += object->info->dlpi_addr;
    }

    return (const void *) value;
}


static void
prof_import_relocations(prof_import_object_t *object, const ElfW(Rela) *rela,
    size_t n)
{
    size_t                 i;
    uint8_t                ch;
    uint32_t               type, k;
    const char            *name;
    const ElfW(Sym)       *sym;
    prof_import_search_t  *search;

    search = object->search;

    for (i = 0; i < n; i++) {
        type = ELF64_R_TYPE(rela[i].r_info);

        if ((type != PROF_IMPORT_CALL && type != PROF_IMPORT_GOT
             && type != PROF_IMPORT_DATA)
            || ELF64_R_SYM(rela[i].r_info) == 0
            || (type != PROF_IMPORT_CALL && rela[i].r_addend != 0))
        {
            continue;
        }

        sym = &object->dynamic.symbols[ELF64_R_SYM(rela[i].r_info)];
        name = object->dynamic.strings + sym->st_name;

        ch = (uint8_t) name[0];

        if (!(search->initials[ch / 32] & (uint32_t) 1 << ch % 32)) {
            continue;
        }

        for (k = 0; search->names[k]; k++) {

            if (strcmp(search->names[k], name) == 0) {
                prof_import_add(object,
                              object->info->dlpi_addr + rela[i].r_offset, k,
                              sym);
                break;
            }
        }
    }
}


static void
prof_import_add(prof_import_object_t *object, uintptr_t at, uint32_t name,
    const ElfW(Sym) *sym)
{
    prof_import_t  *import;

    if (at % sizeof(uintptr_t) || !prof_import_writable(object, at)) {
        return;
    }

    if (object->batch.n == PROF_IMPORT_BATCH) {
        prof_import_flush(object);
    }

    import = &object->batch.imports[object->batch.n++];

    import->at = (uintptr_t *) at;
    import->name = name;
    import->relro = (at >= object->relro && at < object->relro_end);
    import->own = (sym->st_shndx == SHN_UNDEF)
                ? 0 : object->info->dlpi_addr + sym->st_value;
}


/* returns whether a relocation is in data; relocations in code are skipped */

static int
prof_import_writable(const prof_import_object_t *object, uintptr_t at)
{
    uint16_t           i;
    uintptr_t          start;
    const ElfW(Phdr)  *ph;

    for (i = 0; i < object->info->dlpi_phnum; i++) {
        ph = &object->info->dlpi_phdr[i];
        start = object->info->dlpi_addr + ph->p_vaddr;

        if (ph->p_type == PT_LOAD && (ph->p_flags & PF_W)
            && at >= start && at - start < ph->p_memsz)
        {
            return 1;
        }
    }

    return 0;
}


static void
prof_import_flush(prof_import_object_t *object)
{
    uint32_t        i, j;
    prof_import_t   import, *imports;

    imports = object->batch.imports;

    for (i = 1; i < object->batch.n; i++) {
        import = imports[i];

        for (j = i; j > 0 && imports[j - 1].at > import.at; j--) {
            imports[j] = imports[j - 1];
        }

        imports[j] = import;
    }

    if (object->batch.n) {
        object->search->fn(object->search->data, &object->batch);
        object->batch.n = 0;
    }
}


void *
prof_import_function(const char *name)
{
    void     *p;

#if (defined RTLD_DL_SYMENT)
    void     *symbol;
    Dl_info   info;
#endif

    p = dlsym(RTLD_DEFAULT, name);

#if (defined RTLD_DL_SYMENT)

    /*
     * a program at a fixed address may provide its stub as the function's
     * address
     */

    if (p && dladdr1(p, &info, &symbol, RTLD_DL_SYMENT) && symbol
        && ((const ElfW(Sym) *) symbol)->st_shndx == SHN_UNDEF)
    {
        return NULL;
    }

#endif

    return p;
}
