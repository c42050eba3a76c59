
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "unwind/prof_object.h"
#include "base/prof_hash.h"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>


/* the kernel adds this to the name of a program that was replaced */

#define PROF_OBJECT_DELETED  " (deleted)"


typedef struct {
    prof_object_list_t  *list;
    prof_object_pt       fn;
    void                *data;
    uintptr_t            vdso;
    int                  rc;
} prof_object_each_t;


typedef struct {
    uint64_t             adds;
    uint64_t             subs;
    int                  changed;
} prof_object_counters_t;


static void prof_object_exe(prof_object_list_t *list);
static int prof_object_each(struct dl_phdr_info *info, size_t size,
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
static uint64_t prof_object_print(const prof_eh_t *eh);
static int prof_object_one(struct dl_phdr_info *info, size_t size,
    void *data);
static int prof_object_counters(struct dl_phdr_info *info, size_t size,
    void *data);


int
prof_object_list(prof_object_list_t *list, prof_object_pt fn, void *data)
{
    prof_object_each_t  each;

    list->adds = 0;
    list->subs = 0;
    list->n = 0;
    prof_object_exe(list);

    each.list = list;
    each.fn = fn;
    each.data = data;
    each.vdso = (uintptr_t) getauxval(AT_SYSINFO_EHDR);
    each.rc = PROF_OK;

    (void) dl_iterate_phdr(prof_object_each, &each);

    return each.rc;
}


static void
prof_object_exe(prof_object_list_t *list)
{
    size_t   suffix;
    ssize_t  n;

    n = readlink("/proc/self/exe", list->exe, sizeof(list->exe) - 1);

    if (n <= 0) {
        strcpy(list->exe, "[exe]");
        return;
    }

    list->exe[n] = '\0';

    suffix = sizeof(PROF_OBJECT_DELETED) - 1;

    if ((size_t) n > suffix
        && strcmp(list->exe + n - suffix, PROF_OBJECT_DELETED) == 0)
    {
        list->exe[n - suffix] = '\0';
    }
}


static int
prof_object_each(struct dl_phdr_info *info, size_t size, void *data)
{
    prof_object_each_t *each = data;

    prof_object_info_t  object;

    each->list->n++;
    each->list->adds = info->dlpi_adds;
    each->list->subs = info->dlpi_subs;

    memset(&object, 0, sizeof(prof_object_info_t));

    if (prof_object_code(info, &object.pub) != PROF_OK) {
        return 0;
    }

    if (each->list->n == 1) {
        object.pub.path = each->list->exe;

    } else if (each->vdso && (uintptr_t) info->dlpi_phdr - each->vdso < 4096) {
        object.pub.path = "[vdso]";

    } else if (info->dlpi_name && info->dlpi_name[0] != '\0') {
        object.pub.path = info->dlpi_name;

    } else {
        object.pub.path = "[unknown]";
    }

    prof_object_eh(info, &object.eh);
    prof_object_build_id(info, &object.pub);

    if (object.pub.build_id_len == 0 && object.eh.hdr) {
        object.print = prof_object_print(&object.eh);
    }

    each->rc = each->fn(each->data, &object);

    return each->rc != PROF_OK;
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


/*
 * Returns a hash of the table of entries.  It tells the builds of an object
 * without a build-id apart, because entries of another build have other
 * addresses.
 */

static uint64_t
prof_object_print(const prof_eh_t *eh)
{
    const uint8_t  *p, *end;

    p = eh->table ? eh->hdr : eh->frame;
    end = eh->table ? eh->table + eh->n * 8 : eh->frame_end;

    return prof_hash_bytes(0, p, end - p);
}


uint32_t
prof_object_count(void)
{
    uint32_t  n;

    n = 0;
    (void) dl_iterate_phdr(prof_object_one, &n);

    return n;
}


static int
prof_object_one(struct dl_phdr_info *info, size_t size, void *data)
{
    uint32_t *n = data;

    (*n)++;

    return 0;
}


int
prof_object_changed(uint64_t adds, uint64_t subs)
{
    prof_object_counters_t  c;

    c.adds = adds;
    c.subs = subs;
    c.changed = 0;

    (void) dl_iterate_phdr(prof_object_counters, &c);

    return c.changed;
}


/* compares the counters; called for one object: all have the same counters */

static int
prof_object_counters(struct dl_phdr_info *info, size_t size, void *data)
{
    prof_object_counters_t *c = data;

    c->changed = (info->dlpi_adds != c->adds || info->dlpi_subs != c->subs);

    return 1;
}
