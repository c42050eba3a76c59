# Copyright (C) The ngx_http_profile_module authors
#
# Functions of the shell for chroots of Debian's releases.  They need root,
# debootstrap and Debian's archive.
#
#     make_chroot DIR RELEASE NAME    makes DIR/RELEASE.NAME, a fresh copy of the
#                                     base system DIR/RELEASE, which is made
#                                     first if it does not exist
#     enter_chroot ROOT               mounts /proc
#     leave_chroot ROOT               unmounts it
#     inside ROOT COMMAND...          runs commands of the shell in it, in an
#                                     environment of its own
#
# If the variable NODE_EXTRA_CA_CERTS names a file with certificates, npm trusts
# them inside of chroots as well.  npm needs them behind a proxy that has a
# certificate of its own.
#
# If the variable APT_EXPIRED is set, the release file of the archive may have
# expired, as on a mirror of Debian unstable that is not updated.

CERTIFICATES=/etc/node-ca.pem


make_chroot() {
    base=$1/$2
    root=$1/$2.$3

    if [ ! -e "$base.done" ]; then
        leave_chroot "$base"
        rm -rf "$base"
        mkdir -p "$base"
        debootstrap --variant=minbase "$2" "$base" > "$base.log"
        touch "$base.done"
    fi

    leave_chroot "$root"
    rm -rf "$root"
    cp -a "$base" "$root"
    enter_chroot "$root"

    printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"

    if [ -f "${NODE_EXTRA_CA_CERTS:-}" ]; then
        install -D -m 644 "$NODE_EXTRA_CA_CERTS" "$root$CERTIFICATES"
    fi

    if [ -n "${APT_EXPIRED:-}" ]; then
        echo 'Acquire::Check-Valid-Until "false";'                            \
            > "$root/etc/apt/apt.conf.d/90expired"
    fi

    inside "$root" 'apt-get -q update > /dev/null'
}


enter_chroot() {
    mountpoint -q "$1/proc" || mount -t proc proc "$1/proc"
}


leave_chroot() {
    if mountpoint -q "$1/proc" 2> /dev/null; then
        umount "$1/proc"
    fi
}


inside() {
    root=$1
    shift
    chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin         \
        HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive              \
        ${NODE_EXTRA_CA_CERTS:+NODE_EXTRA_CA_CERTS=$CERTIFICATES}             \
        /bin/sh -ec "$*" < /dev/null
}
