# Copyright (C) The ngx_http_profile_module authors
#
# Rules for generated sources.  Read by nginx's configure after all "config"
# scripts; $ngx_addon_dir is the module's directory.


prof_gen=$NGX_OBJS/addon/proto/profile.pb-c
prof_proto=$ngx_addon_dir/shared/proto/profile.proto

cat << END                                                    >> $NGX_MAKEFILE

$prof_gen.c:	$prof_gen.h

$prof_gen.h:	$prof_proto
	mkdir -p $NGX_OBJS/addon
	$prof_protoc --c_out=$NGX_OBJS/addon --proto_path=$ngx_addon_dir/shared $prof_proto

END
