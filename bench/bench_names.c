
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds the names for a profile of 400 functions of this program and the C
 * library: for the first profile of the process, and for a later profile of
 * the same code.
 *
 *     ms       wall clock; the best of the rounds
 *     ratio    the later profile / the first one; the goal is below 0.1
 */


#include "names/prof_symbolize.h"
#include "profile/prof_profile.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>


#define BENCH_FRAMES  200
#define BENCH_ROUNDS  5


static int bench_object(struct dl_phdr_info *info, size_t size, void *data);
static void bench_build_id(prof_profile_object_t *o,
    struct dl_phdr_info *info, const ElfW(Phdr) *ph);
static prof_profile_t *bench_profile(void);
static double bench_name(void);
static void bench_helper(void);


int
main(void)
{
    double    first, later, ms;
    uint32_t  i;

    bench_helper();

    first = 1e9;
    later = 1e9;

    for (i = 0; i < BENCH_ROUNDS; i++) {
        prof_profile_forget();

        ms = bench_name();
        first = ms < first ? ms : first;

        ms = bench_name();
        later = ms < later ? ms : later;
    }

    (void) printf("%-10s %10s\n", "profile", "ms");
    (void) printf("%-10s %10.3f\n", "first", first);
    (void) printf("%-10s %10.3f\n", "later", later);
    (void) printf("%-10s %10.3f\n", "ratio", later / first);

    return 0;
}


static double
bench_name(void)
{
    prof_profile_t   *p;
    struct timespec   begin, end;

    p = bench_profile();

    (void) clock_gettime(CLOCK_MONOTONIC, &begin);

    if (prof_profile_symbolize(p) != PROF_OK) {
        abort();
    }

    (void) clock_gettime(CLOCK_MONOTONIC, &end);

    prof_profile_destroy(p);

    return (end.tv_sec - begin.tv_sec) * 1e3
           + (end.tv_nsec - begin.tv_nsec) / 1e6;
}


static prof_profile_t *
bench_profile(void)
{
    prof_profile_t  *p;

    p = prof_profile_create("names");

    if (p == NULL) {
        abort();
    }

    (void) dl_iterate_phdr(bench_object, p);

    return p;
}


/* addresses in all parts of the code of an object with a build-id */

static int
bench_object(struct dl_phdr_info *info, size_t size, void *data)
{
    prof_profile_t *p = data;

    uint32_t                i;
    prof_frame_t           *f;
    const ElfW(Phdr)       *ph;
    prof_profile_object_t  *o;

    o = realloc(p->objects, (p->nobjects + 1) * sizeof(prof_profile_object_t));
    f = realloc(p->frames, (p->nframes + BENCH_FRAMES)
                           * sizeof(prof_frame_t));

    if (o == NULL || f == NULL) {
        abort();
    }

    p->objects = o;
    p->frames = f;

    o += p->nobjects;
    memset(o, 0, sizeof(prof_profile_object_t));

    o->path = strdup(info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe");
    o->build_id = calloc(1, 129);

    for (i = 0; i < info->dlpi_phnum; i++) {
        ph = &info->dlpi_phdr[i];

        if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X)) {
            o->start = ph->p_vaddr;
            o->end = ph->p_vaddr + ph->p_memsz;
        }

        if (ph->p_type == PT_NOTE) {
            bench_build_id(o, info, ph);
        }
    }

    for (i = 0; i < BENCH_FRAMES; i++) {
        f = &p->frames[p->nframes++];
        memset(f, 0, sizeof(prof_frame_t));

        f->object = p->nobjects;
        f->pc = o->start + (o->end - o->start) / BENCH_FRAMES * i;
    }

    p->nobjects++;

    return 0;
}


static void
bench_build_id(prof_profile_object_t *o, struct dl_phdr_info *info,
    const ElfW(Phdr) *ph)
{
    char              *note, *end;
    uint32_t           i;
    const uint8_t     *id;
    const ElfW(Nhdr)  *n;

    note = (char *) (uintptr_t) (info->dlpi_addr + ph->p_vaddr);
    end = note + ph->p_memsz;

    while (note + sizeof(ElfW(Nhdr)) <= end) {
        n = (ElfW(Nhdr) *) note;
        id = (uint8_t *) note + sizeof(ElfW(Nhdr)) + ((n->n_namesz + 3) & ~3u);

        if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4
            && n->n_descsz <= 64)
        {
            for (i = 0; i < n->n_descsz; i++) {
                (void) sprintf(o->build_id + 2 * i, "%02x", id[i]);
            }
        }

        note = (char *) (uintptr_t) id + ((n->n_descsz + 3) & ~3u);
    }
}


/* the helper that was built with this program, in the directory above */

static void
bench_helper(void)
{
    int       i;
    char     *slash;
    ssize_t   n;

    static char  path[4096];

    n = readlink("/proc/self/exe", path, sizeof(path) - 64);
    path[n > 0 ? n : 0] = '\0';

    for (i = 0; i < 2; i++) {
        slash = strrchr(path, '/');

        if (slash) {
            *slash = '\0';
        }
    }

    (void) strcat(path, "/ngx_http_profile_symbolizer");

    prof_profile_helper(path);
}
