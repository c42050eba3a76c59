
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The addresses of all symbols that objects export.  dladdr() finds the symbol
 * of one address, but each call searches all symbols of the object.
 */


#include "roles/ngx_http_profile_roles.h"

#include <dlfcn.h>
#include <link.h>


static ngx_int_t ngx_http_profile_object_exports(
    ngx_http_profile_roles_t *roles, uintptr_t function);
static struct link_map *ngx_http_profile_link_map(uintptr_t function);
static uintptr_t ngx_http_profile_dynamic(struct link_map *map, ngx_int_t tag);
static ngx_uint_t ngx_http_profile_nsymbols(struct link_map *map);
static int ngx_libc_cdecl ngx_http_profile_cmp_exports(const void *one,
    const void *two);


ngx_int_t
ngx_http_profile_exports(ngx_http_profile_roles_t *roles)
{
    ngx_uint_t                    i;
    ngx_http_profile_function_t  *f;

    f = roles->functions;

    for (i = 0; i < roles->nfunctions; i++) {

        if ((i == 0 || f[i].object != f[i - 1].object)
            && ngx_http_profile_object_exports(roles, f[i].function) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    ngx_qsort(roles->exports, roles->nexports, sizeof(uintptr_t),
              ngx_http_profile_cmp_exports);

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_object_exports(ngx_http_profile_roles_t *roles,
    uintptr_t function)
{
    uintptr_t        *exports;
    ngx_uint_t        i, n;
    struct link_map  *map;
    const ElfW(Sym)  *symbol;

    map = ngx_http_profile_link_map(function);
    if (map == NULL) {
        return NGX_ERROR;
    }

    symbol = (ElfW(Sym) *) ngx_http_profile_dynamic(map, DT_SYMTAB);
    n = ngx_http_profile_nsymbols(map);

    if (symbol == NULL || n == 0) {
        return NGX_ERROR;
    }

    exports = ngx_alloc((roles->nexports + n + 1) * sizeof(uintptr_t),
                        ngx_cycle->log);
    if (exports == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(exports, roles->exports, roles->nexports * sizeof(uintptr_t));

    ngx_free(roles->exports);
    roles->exports = exports;

    for (i = 0; i < n; i++) {

        if (symbol[i].st_shndx != SHN_UNDEF) {
            exports[roles->nexports++] = map->l_addr + symbol[i].st_value;
        }
    }

    return NGX_OK;
}


/*
 * The object of a function, or NULL.  dladdr1() returns the object too, but
 * only glibc has this function.  The first object in the list is the program.
 * A program at a fixed address has the base 0 there.
 */

static struct link_map *
ngx_http_profile_link_map(uintptr_t function)
{
    void             *program;
    Dl_info           info;
    uintptr_t         base;
    struct link_map  *map, *first;

    program = dlopen(NULL, RTLD_LAZY);

    if (program == NULL) {
        return NULL;
    }

    if (dlinfo(program, RTLD_DI_LINKMAP, &first) != 0
        || dladdr((void *) function, &info) == 0)
    {
        first = NULL;
    }

    (void) dlclose(program);

    if (first == NULL) {
        return NULL;
    }

    base = (uintptr_t) info.dli_fbase;

    for (map = first; map; map = map->l_next) {
        if (map->l_addr == base) {
            return map;
        }
    }

    return first->l_addr == 0 ? first : NULL;
}


/* glibc has added the base to the address, other loaders have not */

static uintptr_t
ngx_http_profile_dynamic(struct link_map *map, ngx_int_t tag)
{
    uintptr_t         value;
    const ElfW(Dyn)  *dyn;

    for (dyn = map->l_ld; dyn->d_tag != DT_NULL; dyn++) {

        if (dyn->d_tag == tag) {
            value = dyn->d_un.d_ptr;

            return value < map->l_addr ? map->l_addr + value : value;
        }
    }

    return 0;
}


/*
 * A table of hashes has the number of symbols.  The newer format of table only
 * has the number of the first symbol in it, and chains of the symbols that
 * follow.  The last hash of a chain is odd.
 */

static ngx_uint_t
ngx_http_profile_nsymbols(struct link_map *map)
{
    uint32_t         i, n, nbuckets, first;
    const uint32_t  *hash, *buckets, *chains;

    hash = (uint32_t *) ngx_http_profile_dynamic(map, DT_HASH);

    if (hash) {
        return hash[1];
    }

    hash = (uint32_t *) ngx_http_profile_dynamic(map, DT_GNU_HASH);

    if (hash == NULL) {
        return 0;
    }

    nbuckets = hash[0];
    first = hash[1];

    buckets = hash + 4 + hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    chains = buckets + nbuckets;

    n = 0;

    for (i = 0; i < nbuckets; i++) {
        n = ngx_max(n, buckets[i]);
    }

    if (n < first) {
        return first;
    }

    while ((chains[n - first] & 1) == 0) {
        n++;
    }

    return n + 1;
}


static int ngx_libc_cdecl
ngx_http_profile_cmp_exports(const void *one, const void *two)
{
    uintptr_t  first, second;

    first = *(const uintptr_t *) one;
    second = *(const uintptr_t *) two;

    return first < second ? -1 : first > second;
}


ngx_uint_t
ngx_http_profile_exported(ngx_http_profile_roles_t *roles, uintptr_t function)
{
    return bsearch(&function, roles->exports, roles->nexports,
                   sizeof(uintptr_t), ngx_http_profile_cmp_exports)
           != NULL;
}
