
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "unwind/prof_object.h"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>


/* objects that may appear between counting and listing them */

#define PROF_OBJECT_SPARE    8

/* the kernel's mark on the name of a program that was replaced since */

#define PROF_OBJECT_DELETED  " (deleted)"


typedef struct {
    prof_object_list_t  *list;
    uint32_t             size;      /* room in list->objects */
    uint32_t             seen;      /* objects, with or without code */
    uintptr_t            vdso;
} prof_object_collect_t;


typedef struct {
    uint64_t             adds;
    uint64_t             subs;
    prof_object_pt       fn;        /* NULL: only compare */
    void                *data;
    unsigned             same:1;
} prof_object_lock_t;


static void prof_object_exe(prof_object_list_t *list);
static int prof_object_count(struct dl_phdr_info *info, size_t size,
    void *data);
static int prof_object_collect(struct dl_phdr_info *info, size_t size,
    void *data);
static int prof_object_code(const struct dl_phdr_info *info,
    prof_object_t *object);
static void prof_object_eh(const struct dl_phdr_info *info, prof_eh_t *eh);
static const uint8_t *prof_object_segment_end(const struct dl_phdr_info *info,
    const uint8_t *p);
static void prof_object_build_id(const struct dl_phdr_info *info,
    prof_object_t *object);
static int prof_object_note(prof_object_t *object, const uint8_t *p,
    size_t len, size_t align);
static void prof_object_sort(prof_object_list_t *list);
static int prof_object_lock(struct dl_phdr_info *info, size_t size,
    void *data);


int
prof_object_list(prof_object_list_t *list)
{
    prof_object_collect_t  c;

    memset(list, 0, offsetof(prof_object_list_t, exe));
    prof_object_exe(list);

    c.list = list;
    c.vdso = (uintptr_t) getauxval(AT_SYSINFO_EHDR);

    do {
        free(list->objects);

        c.seen = 0;
        (void) dl_iterate_phdr(prof_object_count, &c);

        c.size = c.seen + PROF_OBJECT_SPARE;
        list->objects = calloc(c.size, sizeof(prof_object_info_t));

        if (list->objects == NULL) {
            return PROF_ERROR;
        }

        c.seen = 0;
        list->n = 0;
        (void) dl_iterate_phdr(prof_object_collect, &c);

    } while (c.seen > c.size);

    prof_object_sort(list);

    return PROF_OK;
}


void
prof_object_list_free(prof_object_list_t *list)
{
    free(list->objects);
    list->objects = NULL;
}


static void
prof_object_exe(prof_object_list_t *list)
{
    size_t   mark;
    ssize_t  n;

    n = readlink("/proc/self/exe", list->exe, sizeof(list->exe) - 1);

    if (n <= 0) {
        strcpy(list->exe, "[exe]");
        return;
    }

    list->exe[n] = '\0';

    mark = sizeof(PROF_OBJECT_DELETED) - 1;

    if ((size_t) n > mark
        && strcmp(list->exe + n - mark, PROF_OBJECT_DELETED) == 0)
    {
        list->exe[n - mark] = '\0';
    }
}


static int
prof_object_count(struct dl_phdr_info *info, size_t size, void *data)
{
    prof_object_collect_t  *c = data;

    c->seen++;

    return 0;
}


static int
prof_object_collect(struct dl_phdr_info *info, size_t size, void *data)
{
    prof_object_collect_t *c = data;

    prof_object_info_t  *object;

    if (c->seen++ == c->size) {

        /* the caller starts again */

        return 1;
    }

    c->list->adds = info->dlpi_adds;
    c->list->subs = info->dlpi_subs;

    object = &c->list->objects[c->list->n];
    memset(object, 0, sizeof(prof_object_info_t));

    if (prof_object_code(info, &object->pub) != PROF_OK) {
        return 0;
    }

    if (c->seen == 1) {
        object->pub.path = c->list->exe;

    } else if (c->vdso && (uintptr_t) info->dlpi_phdr - c->vdso < 4096) {
        object->pub.path = "[vdso]";

    } else if (info->dlpi_name && info->dlpi_name[0] != '\0') {
        object->pub.path = info->dlpi_name;

    } else {
        object->pub.path = "[unknown]";
    }

    prof_object_eh(info, &object->eh);
    prof_object_build_id(info, &object->pub);

    c->list->n++;

    return 0;
}


static int
prof_object_code(const struct dl_phdr_info *info, prof_object_t *object)
{
    uint16_t           i;
    uintptr_t          start, end;
    const ElfW(Phdr)  *ph;

    object->base = info->dlpi_addr;

    for (i = 0; i < info->dlpi_phnum; i++) {
        ph = &info->dlpi_phdr[i];

        if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X)
            || ph->p_memsz == 0)
        {
            continue;
        }

        start = info->dlpi_addr + ph->p_vaddr;
        end = start + ph->p_memsz;

        if (object->end == 0 || start < object->start) {
            object->start = start;
            object->offset = ph->p_offset;
        }

        if (end > object->end) {
            object->end = end;
        }
    }

    /* rows hold 32-bit addresses */

    if (object->end == 0 || object->end - object->start > UINT32_MAX) {
        return PROF_ERROR;
    }

    return PROF_OK;
}


static void
prof_object_eh(const struct dl_phdr_info *info, prof_eh_t *eh)
{
    uint16_t           i;
    const uint8_t     *hdr, *end;
    const ElfW(Phdr)  *ph;

    for (i = 0; i < info->dlpi_phnum; i++) {
        ph = &info->dlpi_phdr[i];

        if (ph->p_type != PT_GNU_EH_FRAME) {
            continue;
        }

        hdr = (const uint8_t *) (info->dlpi_addr + ph->p_vaddr);
        end = prof_object_segment_end(info, hdr);

        if (end == NULL || ph->p_memsz > (size_t) (end - hdr)
            || prof_eh_init(eh, hdr, hdr + ph->p_memsz) != PROF_OK)
        {
            break;
        }

        eh->frame_end = prof_object_segment_end(info, eh->frame);

        if (eh->frame_end) {
            return;
        }

        break;
    }

    memset(eh, 0, sizeof(prof_eh_t));
}


static const uint8_t *
prof_object_segment_end(const struct dl_phdr_info *info, const uint8_t *p)
{
    uint16_t           i;
    const uint8_t     *start;
    const ElfW(Phdr)  *ph;

    for (i = 0; i < info->dlpi_phnum; i++) {
        ph = &info->dlpi_phdr[i];

        if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_R)) {
            continue;
        }

        start = (const uint8_t *) (info->dlpi_addr + ph->p_vaddr);

        if (p >= start && p < start + ph->p_memsz) {
            return start + ph->p_memsz;
        }
    }

    return NULL;
}


static void
prof_object_build_id(const struct dl_phdr_info *info, prof_object_t *object)
{
    uint16_t           i;
    const uint8_t     *p, *end;
    const ElfW(Phdr)  *ph;

    for (i = 0; i < info->dlpi_phnum; i++) {
        ph = &info->dlpi_phdr[i];

        if (ph->p_type != PT_NOTE) {
            continue;
        }

        p = (const uint8_t *) (info->dlpi_addr + ph->p_vaddr);
        end = prof_object_segment_end(info, p);

        if (end == NULL || ph->p_memsz > (size_t) (end - p)) {
            continue;
        }

        if (prof_object_note(object, p, ph->p_memsz,
                             (ph->p_align == 8) ? 8 : 4)
            == PROF_OK)
        {
            return;
        }
    }
}


static int
prof_object_note(prof_object_t *object, const uint8_t *p, size_t len,
    size_t align)
{
    size_t       name, desc;
    ElfW(Nhdr)   note;

    while (len >= sizeof(note)) {
        memcpy(&note, p, sizeof(note));

        p += sizeof(note);
        len -= sizeof(note);

        name = (note.n_namesz + align - 1) & ~(align - 1);
        desc = (note.n_descsz + align - 1) & ~(align - 1);

        if (name > len || note.n_descsz > len - name) {
            break;
        }

        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4
            && memcmp(p, "GNU", 4) == 0
            && note.n_descsz <= PROF_BUILD_ID_MAX)
        {
            memcpy(object->build_id, p + name, note.n_descsz);
            object->build_id_len = note.n_descsz;
            return PROF_OK;
        }

        if (desc > len - name) {
            break;
        }

        p += name + desc;
        len -= name + desc;
    }

    return PROF_ERROR;
}


static void
prof_object_sort(prof_object_list_t *list)
{
    uint32_t            i, j;
    prof_object_info_t  object;

    for (i = 1; i < list->n; i++) {
        object = list->objects[i];

        for (j = i;
             j > 0 && list->objects[j - 1].pub.start > object.pub.start;
             j--)
        {
            list->objects[j] = list->objects[j - 1];
        }

        list->objects[j] = object;
    }
}


int
prof_object_locked(uint64_t adds, uint64_t subs, prof_object_pt fn,
    void *data)
{
    prof_object_lock_t  lock;

    lock.adds = adds;
    lock.subs = subs;
    lock.fn = fn;
    lock.data = data;
    lock.same = 0;

    /* the loader's lock is held during the call for the first object */

    (void) dl_iterate_phdr(prof_object_lock, &lock);

    return lock.same ? PROF_OK : PROF_ERROR;
}


int
prof_object_changed(uint64_t adds, uint64_t subs)
{
    return prof_object_locked(adds, subs, NULL, NULL) != PROF_OK;
}


static int
prof_object_lock(struct dl_phdr_info *info, size_t size, void *data)
{
    prof_object_lock_t *lock = data;

    if (info->dlpi_adds == lock->adds && info->dlpi_subs == lock->subs) {
        lock->same = 1;

        if (lock->fn) {
            lock->fn(lock->data);
        }
    }

    return 1;
}
