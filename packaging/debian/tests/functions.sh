# Copyright (C) The ngx_http_profile_module authors
#
# Functions of the shell for the tests of the package.
#
#     fail MESSAGE...             ends the test
#     start_nginx                 starts nginx with the module, which may profile
#     stop_nginx                  stops it, and removes its configuration
#     profile_request             checks that a request has a profile
#     check_log                   checks that nginx logged no error
#     repack PACKAGE VERSION DEB [ABI]
#                                 makes the file DEB of an installed package,
#                                 with another version, and another interface
#                                 of nginx


PACKAGE=libnginx-mod-http-profile
MODULE=/usr/lib/nginx/modules/ngx_http_profile_module.so
CONF=/etc/nginx/conf.d/profile.conf
STORE=/var/cache/nginx/profile

export DEBIAN_FRONTEND=noninteractive


fail() {
    echo "FAIL: $*" >&2
    cat /var/log/nginx/error.log >&2 || true
    exit 1
}


wait_for() {
    for i in $(seq 100); do
        if "$@" > /dev/null 2>&1; then
            return
        fi

        sleep 0.1
    done

    fail "this does not become true: $*"
}


start_nginx() {
    echo "profile_endpoint on; profile_store $STORE;" > $CONF
    nginx -t 2>&1 || fail 'nginx rejects the configuration'
    service nginx restart > /dev/null || fail 'nginx does not start'
    wait_for curl -sf http://127.0.0.1/
}


stop_nginx() {
    rm -f $CONF
    service nginx stop > /dev/null || true
}


profile_request() {
    curl -sSf "http://127.0.0.1/?performance_bar=flamegraph&profile_format=svg" \
        > /tmp/profile.svg || fail "no flamegraph $*"
    grep -q '<svg' /tmp/profile.svg || fail "the flamegraph is not SVG $*"
    grep -q 'ngx_http_' /tmp/profile.svg \
        || fail "no function of nginx has a name $*"
}


check_log() {
    if grep -E '\[(alert|crit|emerg)\]' /var/log/nginx/error.log; then
        fail 'nginx logs an error'
    fi
}


repack() {
    dir=$(mktemp -d)
    chmod 755 "$dir"
    mkdir "$dir/DEBIAN"

    dpkg -L "$1" | while read -r file; do
        if [ -d "$file" ]; then
            mkdir -p "$dir$file"
        elif [ -e "$file" ]; then
            cp -P "$file" "$dir$file"
        fi
    done

    dpkg-query -s "$1"                                                        \
        | sed -e '/^Status:/d' -e "s/^Version:.*/Version: $2/"                \
              -e "s/nginx-abi-[^ ,]*/${4:-&}/" > "$dir/DEBIAN/control"

    for name in preinst postinst prerm postrm triggers; do
        script=$(dpkg-query --control-path "$1" $name)
        test -z "$script" || cp "$script" "$dir/DEBIAN/$name"
    done

    dpkg-deb -b --root-owner-group "$dir" "$3" > /dev/null
    rm -rf "$dir"
}
