
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Writes the file of a profile.
 */


#include "core/ngx_http_profile_log_limit.h"
#include "store/ngx_http_profile_zone.h"

#include <sys/file.h>


static ngx_fd_t ngx_http_profile_files_create(u_char *name);
static ngx_int_t ngx_http_profile_files_write_parts(ngx_fd_t fd,
    ngx_str_t *parts);
static ngx_int_t ngx_http_profile_files_failed(const char *call,
    u_char *name, ngx_log_t *log);


ngx_int_t
ngx_http_profile_files_write(ngx_http_profile_store_t *store,
    ngx_str_t *parts, ngx_log_t *log)
{
    ngx_fd_t                   fd;
    ngx_int_t                  rc;
    ngx_http_profile_entry_t  *entry;
    u_char                     temp[NGX_MAX_PATH], name[NGX_MAX_PATH];

    entry = (ngx_http_profile_entry_t *) parts[0].data;

    ngx_http_profile_files_name(store, entry->id, 0, name);
    ngx_http_profile_files_name(store, entry->id, ngx_pid, temp);

    fd = ngx_http_profile_files_create(temp);

    if (fd == NGX_INVALID_FILE) {
        return ngx_http_profile_files_failed("open()", temp, log);
    }

    rc = ngx_http_profile_files_write_parts(fd, parts);

    if (rc != NGX_OK) {
        rc = ngx_http_profile_files_failed("write() to", temp, log);
    }

    /* the lock is held until the file has its final name */

    if (rc == NGX_OK && ngx_rename_file(temp, name) == NGX_FILE_ERROR) {
        rc = ngx_http_profile_files_failed("rename()", temp, log);
    }

    if (rc != NGX_OK) {
        (void) ngx_delete_file(temp);
    }

    if (ngx_close_file(fd) == NGX_FILE_ERROR && rc == NGX_OK) {
        rc = ngx_http_profile_files_failed("close()", name, log);
        (void) ngx_delete_file(name);
    }

    return rc;
}


/*
 * The writer holds a lock until it closes the file or ends.  So no process is
 * writing an unfinished file that another process can lock.  On file systems
 * without locks, the age of the file decides.
 */

static ngx_fd_t
ngx_http_profile_files_create(u_char *name)
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
ngx_http_profile_files_write_parts(ngx_fd_t fd, ngx_str_t *parts)
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
ngx_http_profile_files_failed(const char *call, u_char *name, ngx_log_t *log)
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
