
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The modules that functions belong to.  Structures of modules tell the module
 * of some functions.  The configuration does not tell the module of most
 * handlers.  The following rules hold for functions that are not visible
 * outside of their source file:
 *
 * - Code that takes the address of the function is in the same source file, so
 *   it is code of the same module.
 * - The linker keeps the functions of a source file together, so a function
 *   between two functions of a module is of this module.
 * - An object with one module has only functions of this module.
 *
 * These rules do not hold after optimization at link time, which mixes the
 * functions of files.  Then the functions of a module are scattered, and this
 * file uses only the structures.
 */


#include "roles/ngx_http_profile_roles.h"


static void ngx_http_profile_own_claimed(ngx_http_profile_roles_t *roles,
    ngx_http_profile_function_t *f);
static void ngx_http_profile_own_referred(ngx_http_profile_roles_t *roles);
static ngx_uint_t ngx_http_profile_scan(ngx_http_profile_roles_t *roles,
    ngx_http_profile_function_t *f);
static uintptr_t ngx_http_profile_reference(const uint8_t *p);
static ngx_http_profile_function_t *ngx_http_profile_find_function(
    ngx_http_profile_roles_t *roles, uintptr_t function);
static void ngx_http_profile_own_neighbors(ngx_http_profile_roles_t *roles);
static void ngx_http_profile_own_object(ngx_http_profile_function_t *f,
    ngx_uint_t n);
static ngx_uint_t ngx_http_profile_scattered(ngx_http_profile_function_t *f,
    ngx_uint_t n);


/* the length of an instruction that takes an address, in bytes */

#if (__x86_64__)
#define NGX_HTTP_PROFILE_REFERENCE  7
#define NGX_HTTP_PROFILE_STEP       1
#else
#define NGX_HTTP_PROFILE_REFERENCE  8
#define NGX_HTTP_PROFILE_STEP       4
#endif


/*
 * In a program whose files were compiled separately, only modules of the same
 * file are mixed: 4 functions of Debian's nginx, and 133 of the same program
 * with optimization at link time.
 */

#define NGX_HTTP_PROFILE_SCATTERED  8


void
ngx_http_profile_own_roles(ngx_http_profile_roles_t *roles)
{
    ngx_uint_t  i;

    for (i = 0; i < roles->nfunctions; i++) {
        ngx_http_profile_own_claimed(roles, &roles->functions[i]);
    }

    ngx_http_profile_own_referred(roles);
    ngx_http_profile_own_neighbors(roles);
}


/* a function that several modules use belongs to none of them */

static void
ngx_http_profile_own_claimed(ngx_http_profile_roles_t *roles,
    ngx_http_profile_function_t *f)
{
    ngx_uint_t                i;
    ngx_http_profile_role_t  *role;

    role = &roles->elts[f->first];

    for (i = 0; i < f->n; i++) {

        if (role[i].module == NULL) {
            continue;
        }

        if (f->module && f->module != role[i].module) {
            f->shared = 1;
        }

        f->module = role[i].module;
    }

    if (f->shared || ngx_http_profile_exported(roles, f->function)) {
        f->module = NULL;
        f->shared = 1;
    }

    f->claimed = (f->module != NULL);
}


static void
ngx_http_profile_own_referred(ngx_http_profile_roles_t *roles)
{
    ngx_uint_t                    i, found;
    ngx_http_profile_function_t  *f;

    do {
        found = 0;

        for (i = 0; i < roles->nfunctions; i++) {
            f = &roles->functions[i];

            if (f->module && !f->shared && !f->scanned) {
                f->scanned = 1;
                found += ngx_http_profile_scan(roles, f);
            }
        }

    } while (found);
}


/* returns the number of functions whose module was found */

static ngx_uint_t
ngx_http_profile_scan(ngx_http_profile_roles_t *roles,
    ngx_http_profile_function_t *f)
{
    uintptr_t                     address;
    ngx_uint_t                    found;
    const uint8_t                *p, *last;
    ngx_http_profile_function_t  *other;

    found = 0;
    p = (const uint8_t *) f->function;
    last = p + f->len;

    for ( /* void */ ;
         p + NGX_HTTP_PROFILE_REFERENCE <= last;
         p += NGX_HTTP_PROFILE_STEP)
    {
        address = ngx_http_profile_reference(p);

        if (address == 0) {
            continue;
        }

        other = ngx_http_profile_find_function(roles, address);

        if (other == NULL || other->shared || other->module == f->module) {
            continue;
        }

        if (other->module) {
            other->module = NULL;
            other->shared = 1;
            continue;
        }

        other->module = f->module;
        found++;
    }

    return found;
}


/*
 * The address that code computes, or 0.  Bytes within another instruction may
 * look like such code.  But such bytes must also give the address of a function
 * with a role, and random bytes practically never do.
 */

static uintptr_t
ngx_http_profile_reference(const uint8_t *p)
{
#if (__x86_64__)

    int32_t  offset;

    /* lea offset(%rip), register */

    if ((p[0] & 0xfb) != 0x48 || p[1] != 0x8d || (p[2] & 0xc7) != 0x05) {
        return 0;
    }

    ngx_memcpy(&offset, p + 3, sizeof(int32_t));

    return (uintptr_t) p + NGX_HTTP_PROFILE_REFERENCE + (intptr_t) offset;

#else

    int64_t   page;
    uint32_t  adrp, add;

    ngx_memcpy(&adrp, p, sizeof(uint32_t));
    ngx_memcpy(&add, p + sizeof(uint32_t), sizeof(uint32_t));

    /* adrp register, page; add register, register, offset */

    if ((adrp & 0x9f000000) != 0x90000000 || (add & 0xffc00000) != 0x91000000
        || ((add >> 5) & 0x1f) != (adrp & 0x1f))
    {
        return 0;
    }

    page = (int64_t) ((uint64_t) (adrp & 0x00ffffe0) << 40) >> 43;
    page = page * 4 + ((adrp >> 29) & 3);

    return ((uintptr_t) p & ~(uintptr_t) 0xfff) + (uintptr_t) (page * 4096)
           + ((add >> 10) & 0xfff);

#endif
}


static ngx_http_profile_function_t *
ngx_http_profile_find_function(ngx_http_profile_roles_t *roles,
    uintptr_t function)
{
    ngx_uint_t                    lo, hi, mid;
    ngx_http_profile_function_t  *f;

    f = roles->functions;
    lo = 0;
    hi = roles->nfunctions;

    while (lo < hi) {
        mid = (lo + hi) / 2;

        if (f[mid].function < function) {
            lo = mid + 1;

        } else {
            hi = mid;
        }
    }

    return lo < roles->nfunctions && f[lo].function == function ? &f[lo]
                                                                : NULL;
}


static void
ngx_http_profile_own_neighbors(ngx_http_profile_roles_t *roles)
{
    ngx_uint_t                    i, next;
    ngx_http_profile_function_t  *f;

    f = roles->functions;

    for (i = 0; i < roles->nfunctions; i = next) {

        for (next = i + 1; next < roles->nfunctions; next++) {
            if (f[next].object != f[i].object) {
                break;
            }
        }

        ngx_http_profile_own_object(f + i, next - i);
    }
}


/* the functions of one object, sorted by address */

static void
ngx_http_profile_own_object(ngx_http_profile_function_t *f, ngx_uint_t n)
{
    ngx_uint_t     i, next, several;
    ngx_module_t  *module, *before;

    module = NULL;
    several = 0;

    for (i = 0; i < n; i++) {

        if (f[i].module) {
            several |= (module && module != f[i].module);
            module = f[i].module;
        }
    }

    if (several
        && ngx_http_profile_scattered(f, n) > NGX_HTTP_PROFILE_SCATTERED)
    {
        for (i = 0; i < n; i++) {
            if (!f[i].claimed) {
                f[i].module = NULL;
            }
        }

        return;
    }

    before = NULL;

    for (i = 0; i < n; i++) {

        if (f[i].module) {
            before = f[i].module;
            continue;
        }

        if (f[i].shared) {
            continue;
        }

        if (several) {
            for (next = i + 1; next < n && f[next].module == NULL; next++) {
                /* void */
            }

            module = (next < n && f[next].module == before) ? before : NULL;
        }

        f[i].module = module;
    }
}


/*
 * The number of functions that follow a function of another module and are not
 * the first ones of their module.
 */

static ngx_uint_t
ngx_http_profile_scattered(ngx_http_profile_function_t *f, ngx_uint_t n)
{
    ngx_uint_t     i, first, found;
    ngx_module_t  *before;

    before = NULL;
    found = 0;

    for (i = 0; i < n; i++) {

        if (f[i].module == NULL || f[i].module == before) {
            continue;
        }

        before = f[i].module;

        for (first = 0; f[first].module != before; first++) {
            /* void */
        }

        found += (first < i);
    }

    return found;
}
