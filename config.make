# Copyright (C) The ngx_http_profile_module authors
#
# Rules for generated sources and for the helper process.  nginx's configure
# reads this file after all "config" scripts; $ngx_addon_dir is the directory
# of the module.


prof_gen=$NGX_OBJS/addon/proto/profile.pb-c
prof_proto=$ngx_addon_dir/shared/proto/profile.proto

cat << END                                                    >> $NGX_MAKEFILE

$prof_gen.c:	$prof_gen.h

$prof_gen.h:	$prof_proto
	mkdir -p $NGX_OBJS/addon
	$prof_protoc --c_out=$NGX_OBJS/addon --proto_path=$ngx_addon_dir/shared $prof_proto


$NGX_OBJS/addon/names/prof_syscall_names.h:	$ngx_addon_dir/tools/list-syscalls
	mkdir -p $NGX_OBJS/addon/names
	$ngx_addon_dir/tools/list-syscalls \$(CC) \$(CFLAGS) > \$@

END


# The header is written again only if its content changes.  nginx may be built
# between two runs of make.

prof_built=$NGX_OBJS/addon/core/ngx_http_profile_built_for.h

case " $NGX_ADDONS " in
    *" $ngx_addon_dir "*)  prof_link=static ;;
    *)                     prof_link=dynamic ;;
esac

cat << END                                                    >> $NGX_MAKEFILE

# a compiler or linker that fails leaves no file that looks complete
.DELETE_ON_ERROR:

.PHONY:	prof_always

prof_always:

$prof_built:	prof_always
	@mkdir -p $NGX_OBJS/addon/core
	@$ngx_addon_dir/tools/nginx-build-id $NGX_OBJS $prof_link > $prof_built.new
	@cmp -s $prof_built.new $prof_built || mv $prof_built.new $prof_built

END


# "make" and "make modules" build the helper.  "make install" puts it beside
# the module, or beside nginx if the module is linked into nginx.

if [ "$NGX_PROFILE_SYMBOLIZER" != NO ]; then

prof_helper=$NGX_OBJS/ngx_http_profile_symbolizer
prof_shared=$ngx_addon_dir/shared

prof_srcs="$prof_shared/base/prof_buf.c
           $prof_shared/names/prof_elf.c
           $prof_shared/names/prof_mangled.c
           $prof_shared/names/prof_symbol_table.c
           $prof_shared/names/prof_wire.c"

for prof_file in $prof_shared/symbolizer/*.c; do
    prof_srcs="$prof_srcs $prof_file"
done

case " $NGX_ADDONS " in
    *" $ngx_addon_dir "*)  prof_dir=`dirname "$NGX_SBIN_PATH"` ;;
    *)                     prof_dir=$NGX_MODULES_PATH ;;
esac

case "$prof_dir" in
    /*)  ;;
    *)   prof_dir=$NGX_PREFIX/$prof_dir ;;
esac

cat << END                                                    >> $NGX_MAKEFILE

modules:	$prof_helper

$prof_helper:	$(echo $prof_srcs) $(echo $prof_shared/*/*.h)
	\$(CC) \$(CFLAGS) -I $prof_shared -o $prof_helper $(echo $prof_srcs) $NGX_LD_OPT -ldw -lelf -liberty $NGX_LIBDL

install:	install_profile_symbolizer

install_profile_symbolizer:	$prof_helper
	test -d '\$(DESTDIR)$prof_dir' || mkdir -p '\$(DESTDIR)$prof_dir'
	cp $prof_helper '\$(DESTDIR)$prof_dir'

END

fi
