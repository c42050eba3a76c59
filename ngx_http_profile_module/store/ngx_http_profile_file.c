
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * One file of the store, which is a profile: the head, the texts, the archive.
 * The file is written under another name, with the process id of the writer,
 * and renamed when it is complete.
 *
 * Files are not synced to the disk.  Data that nginx has written survives the
 * end of nginx.  If the machine fails, parts of a file may be zeros or missing.
 * So a file is not trusted: memory is allocated only after the head was checked
 * against its checksum and the length of the file.
 */


#include "core/ngx_http_profile_log_limit.h"
#include "store/ngx_http_profile_zone.h"

#include <sys/file.h>


static ngx_fd_t ngx_http_profile_file_create(u_char *name);
static ngx_int_t ngx_http_profile_file_write_parts(ngx_fd_t fd,
    ngx_str_t *parts);
static ngx_int_t ngx_http_profile_file_failed(const char *call,
    u_char *name, ngx_log_t *log);
static ngx_int_t ngx_http_profile_file_bytes(ngx_fd_t fd, u_char *p,
    size_t len);


/* makes the name of a file, or the name under which a process writes it */

void
ngx_http_profile_file_path(ngx_http_profile_store_t *store, u_char *id,
    uint32_t writer, u_char *name)
{
    u_char  *p, *last;

    last = name + NGX_MAX_PATH - 1;

    p = ngx_slprintf(name, last, "%V/%*s", &store->path->name,
                     (size_t) NGX_HTTP_PROFILE_ID_LEN, id);

    if (writer) {
        p = ngx_slprintf(p, last, ".%uD", writer);
    }

    *p = '\0';
}


ngx_int_t
ngx_http_profile_file_write(ngx_http_profile_store_t *store,
    ngx_str_t *parts, ngx_log_t *log)
{
    ngx_fd_t                   fd;
    ngx_int_t                  rc;
    ngx_http_profile_entry_t  *entry;
    u_char                     temp[NGX_MAX_PATH], name[NGX_MAX_PATH];

    entry = (ngx_http_profile_entry_t *) parts[0].data;

    ngx_http_profile_file_path(store, entry->id, 0, name);
    ngx_http_profile_file_path(store, entry->id, ngx_pid, temp);

    fd = ngx_http_profile_file_create(temp);

    if (fd == NGX_INVALID_FILE) {
        return ngx_http_profile_file_failed("open()", temp, log);
    }

    rc = ngx_http_profile_file_write_parts(fd, parts);

    if (rc != NGX_OK) {
        rc = ngx_http_profile_file_failed("write() to", temp, log);
    }

    /* the lock is held until the file has its final name */

    if (rc == NGX_OK && ngx_rename_file(temp, name) == NGX_FILE_ERROR) {
        rc = ngx_http_profile_file_failed("rename()", temp, log);
    }

    if (rc != NGX_OK) {
        (void) ngx_delete_file(temp);
    }

    if (ngx_close_file(fd) == NGX_FILE_ERROR && rc == NGX_OK) {
        rc = ngx_http_profile_file_failed("close()", name, log);
        (void) ngx_delete_file(name);
    }

    return rc;
}


/*
 * Creates an unfinished file.  Its writer holds a lock until it closes the
 * file or ends.  So if a process can lock an unfinished file, no other process
 * is writing the file.  On file systems without locks, the age of the file
 * decides.
 */

static ngx_fd_t
ngx_http_profile_file_create(u_char *name)
{
    ngx_fd_t         fd;
    ngx_file_info_t  fi;

    for ( ;; ) {
        fd = open((char *) name,
                  O_WRONLY|O_CREAT|O_TRUNC|O_NOFOLLOW|O_CLOEXEC, 0600);

        if (fd == NGX_INVALID_FILE) {
            return fd;
        }

        if (flock(fd, LOCK_EX) == -1 || ngx_fd_info(fd, &fi) == -1
            || fi.st_nlink)
        {
            return fd;
        }

        /* another process found and removed the file before it was locked */

        (void) ngx_close_file(fd);
    }
}


static ngx_int_t
ngx_http_profile_file_write_parts(ngx_fd_t fd, ngx_str_t *parts)
{
    u_char      *p;
    size_t       len;
    ssize_t      n;
    ngx_uint_t   i;

    for (i = 0; i < NGX_HTTP_PROFILE_PARTS; i++) {
        p = parts[i].data;

        for (len = parts[i].len; len; len -= n) {
            n = write(fd, p, len);

            if (n == -1 && ngx_errno == NGX_EINTR) {
                n = 0;
            }

            if (n == -1) {
                return NGX_ERROR;
            }

            p += n;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_file_failed(const char *call, u_char *name, ngx_log_t *log)
{
    ngx_err_t   err;
    ngx_uint_t  omitted;

    static ngx_http_profile_log_limit_t  line;

    err = ngx_errno;

    if (err == NGX_ENOSPC || err == EDQUOT) {
        return NGX_DECLINED;
    }

    if (ngx_http_profile_log_limit(&line, &omitted) == NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, log, err,
                      "profile: %s \"%s\" failed, %ui more not logged",
                      call, name, omitted);
    }

    return NGX_ERROR;
}


ngx_int_t
ngx_http_profile_file_open(ngx_http_profile_store_t *store, u_char *id,
    ngx_http_profile_entry_t *entry, u_char *texts, ngx_fd_t *fd)
{
    size_t           len;
    ngx_int_t        rc;
    ngx_file_info_t  fi;
    u_char           name[NGX_MAX_PATH];

    ngx_http_profile_file_path(store, id, 0, name);

    *fd = open((char *) name, O_RDONLY|O_NOFOLLOW|O_NONBLOCK|O_CLOEXEC);

    if (*fd == NGX_INVALID_FILE) {
        return (ngx_errno == NGX_ENOENT) ? NGX_DECLINED
               : (ngx_errno == ELOOP) ? NGX_ABORT : NGX_ERROR;
    }

    rc = NGX_ABORT;

    if (ngx_fd_info(*fd, &fi) == NGX_FILE_ERROR || !ngx_is_file(&fi)) {
        goto failed;
    }

    rc = ngx_http_profile_file_bytes(*fd, (u_char *) entry,
                                      sizeof(ngx_http_profile_entry_t));

    if (rc != NGX_OK) {
        goto failed;
    }

    rc = NGX_ABORT;
    len = ngx_http_profile_entry_texts(entry);

    if (len > NGX_HTTP_PROFILE_MAX_TEXTS
        || entry->size > NGX_HTTP_PROFILE_MAX_ARCHIVE
        || ngx_file_size(&fi)
           != (off_t) (sizeof(ngx_http_profile_entry_t) + len + entry->size))
    {
        goto failed;
    }

    rc = ngx_http_profile_file_bytes(*fd, texts, len);

    if (rc != NGX_OK) {
        goto failed;
    }

    if (ngx_memcmp(entry->id, id, NGX_HTTP_PROFILE_ID_LEN) == 0
        && ngx_http_profile_entry_valid(entry, texts) == NGX_OK)
    {
        return NGX_OK;
    }

    rc = NGX_ABORT;

failed:

    (void) ngx_close_file(*fd);

    return rc;
}


/* reads len bytes; returns NGX_ABORT if the file ends before */

static ngx_int_t
ngx_http_profile_file_bytes(ngx_fd_t fd, u_char *p, size_t len)
{
    ssize_t  n;

    for ( /* void */ ; len; p += n, len -= n) {
        n = read(fd, p, len);

        if (n == 0) {
            return NGX_ABORT;
        }

        if (n == -1) {

            if (ngx_errno != NGX_EINTR) {
                return NGX_ERROR;
            }

            n = 0;
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_profile_file_read(ngx_http_profile_store_t *store, u_char *id,
    ngx_http_profile_stored_t **st, ngx_log_t *log)
{
    u_char                     *p;
    size_t                      len;
    ngx_fd_t                    fd;
    ngx_int_t                   rc;
    ngx_uint_t                  omitted;
    ngx_http_profile_entry_t    entry;
    ngx_http_profile_stored_t  *found;
    u_char                      texts[NGX_HTTP_PROFILE_MAX_TEXTS];

    static ngx_http_profile_log_limit_t  line;

    rc = ngx_http_profile_file_open(store, id, &entry, texts, &fd);

    if (rc != NGX_OK) {
        goto failed;
    }

    len = ngx_http_profile_entry_texts(&entry);

    found = ngx_alloc(sizeof(ngx_http_profile_stored_t) + len + entry.size,
                      log);

    if (found == NULL) {
        (void) ngx_close_file(fd);
        return NGX_ERROR;
    }

    p = (u_char *) (found + 1);

    ngx_memcpy(p, texts, len);
    ngx_http_profile_entry_read(&entry, p, found);

    found->archive = p + len;

    rc = ngx_http_profile_file_bytes(fd, found->archive, found->size);

    (void) ngx_close_file(fd);

    if (rc == NGX_OK
        && ngx_crc32_long(found->archive, found->size) != entry.archive_crc)
    {
        rc = NGX_ABORT;
    }

    if (rc == NGX_OK) {
        *st = found;
        return NGX_OK;
    }

    ngx_free(found);

failed:

    if (rc == NGX_ERROR
        && ngx_http_profile_log_limit(&line, &omitted) == NGX_OK)
    {
        ngx_log_error(NGX_LOG_ERR, log, ngx_errno,
                      "profile: cannot read \"%V/%*s\", %ui more not logged",
                      &store->path->name, (size_t) NGX_HTTP_PROFILE_ID_LEN, id,
                      omitted);
    }

    return rc;
}


ngx_int_t
ngx_http_profile_file_pin(ngx_http_profile_store_t *store, u_char *id,
    ngx_uint_t pinned, ngx_log_t *log)
{
    ngx_fd_t    fd;
    uint32_t    value;
    ngx_int_t   rc;
    ngx_uint_t  omitted;
    u_char      name[NGX_MAX_PATH];

    static ngx_http_profile_log_limit_t  line;

    rc = NGX_OK;
    value = (uint32_t) pinned;

    ngx_http_profile_file_path(store, id, 0, name);

    fd = open((char *) name, O_WRONLY|O_NOFOLLOW|O_NONBLOCK|O_CLOEXEC);

    if (fd == NGX_INVALID_FILE
        || pwrite(fd, &value, sizeof(uint32_t),
                  offsetof(ngx_http_profile_entry_t, pinned))
           != sizeof(uint32_t))
    {
        rc = NGX_ERROR;

        if (ngx_http_profile_log_limit(&line, &omitted) == NGX_OK) {
            ngx_log_error(NGX_LOG_ERR, log, ngx_errno,
                          "profile: cannot write to \"%s\", %ui more not "
                          "logged", name, omitted);
        }
    }

    if (fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(fd);
    }

    return rc;
}
