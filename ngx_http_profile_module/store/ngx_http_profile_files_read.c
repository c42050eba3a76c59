
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Reads a file of the store.  The file is not trusted: after a failure of the
 * machine, parts of it may be zeros or missing.  Memory is allocated only
 * after the head was checked against its checksum and the length of the
 * file.
 */


#include "store/ngx_http_profile_zone.h"


static ngx_int_t ngx_http_profile_files_bytes(ngx_fd_t fd, u_char *p,
    size_t len);


ngx_int_t
ngx_http_profile_files_open(ngx_http_profile_store_t *store, u_char *id,
    ngx_http_profile_entry_t *entry, u_char *texts, ngx_fd_t *fd)
{
    size_t           len;
    ngx_int_t        rc;
    ngx_file_info_t  fi;
    u_char           name[NGX_MAX_PATH];

    ngx_http_profile_files_name(store, id, 0, name);

    *fd = open((char *) name, O_RDONLY|O_NOFOLLOW|O_NONBLOCK|O_CLOEXEC);

    if (*fd == NGX_INVALID_FILE) {
        return (ngx_errno == NGX_ENOENT) ? NGX_DECLINED
               : (ngx_errno == ELOOP) ? NGX_ABORT : NGX_ERROR;
    }

    rc = NGX_ABORT;

    if (ngx_fd_info(*fd, &fi) == NGX_FILE_ERROR || !ngx_is_file(&fi)) {
        goto failed;
    }

    rc = ngx_http_profile_files_bytes(*fd, (u_char *) entry,
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

    rc = ngx_http_profile_files_bytes(*fd, texts, len);

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


/* NGX_ABORT: the file has fewer bytes */

static ngx_int_t
ngx_http_profile_files_bytes(ngx_fd_t fd, u_char *p, size_t len)
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
ngx_http_profile_files_read(ngx_http_profile_store_t *store, u_char *id,
    ngx_http_profile_stored_t **st, ngx_log_t *log)
{
    u_char                     *p;
    size_t                      len;
    ngx_fd_t                    fd;
    ngx_int_t                   rc;
    ngx_http_profile_entry_t    entry;
    ngx_http_profile_stored_t  *found;
    u_char                      texts[NGX_HTTP_PROFILE_MAX_TEXTS];

    rc = ngx_http_profile_files_open(store, id, &entry, texts, &fd);

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

    rc = ngx_http_profile_files_bytes(fd, found->archive, found->size);

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

    if (rc == NGX_ERROR) {
        ngx_log_error(NGX_LOG_ERR, log, ngx_errno,
                      "profile: cannot read \"%V/%*s\"", &store->path->name,
                      (size_t) NGX_HTTP_PROFILE_ID_LEN, id);
    }

    return rc;
}
