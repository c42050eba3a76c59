
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The source files of nginx, and the functions and modules that each of them
 * exports, made by tools/list-sources.  Symbols of other versions that are not
 * listed have no effect.
 */


#include "roles/ngx_http_profile_roles.h"


const prof_source_file_t  ngx_http_profile_sources[] = {
    { "nginx.c",
      "ngx_core_module ngx_exec_new_binary ngx_get_cpu_affinity "
      "ngx_set_environment" },
    { "ngx_alloc.c",
      "ngx_alloc ngx_calloc ngx_memalign" },
    { "ngx_array.c",
      "ngx_array_create ngx_array_destroy ngx_array_push "
      "ngx_array_push_n" },
    { "ngx_bpf.c",
      "ngx_bpf_load_program ngx_bpf_map_create ngx_bpf_map_delete "
      "ngx_bpf_map_lookup ngx_bpf_map_update ngx_bpf_program_link" },
    { "ngx_buf.c",
      "ngx_alloc_chain_link ngx_chain_add_copy "
      "ngx_chain_coalesce_file ngx_chain_get_free_buf "
      "ngx_chain_update_chains ngx_chain_update_sent "
      "ngx_create_chain_of_bufs ngx_create_temp_buf" },
    { "ngx_channel.c",
      "ngx_add_channel_event ngx_close_channel ngx_read_channel "
      "ngx_write_channel" },
    { "ngx_conf_file.c",
      "ngx_conf_check_num_bounds ngx_conf_deprecated "
      "ngx_conf_full_name ngx_conf_include ngx_conf_log_error "
      "ngx_conf_module ngx_conf_open_file ngx_conf_param "
      "ngx_conf_parse ngx_conf_set_bitmask_slot "
      "ngx_conf_set_bufs_slot ngx_conf_set_enum_slot "
      "ngx_conf_set_flag_slot ngx_conf_set_keyval_slot "
      "ngx_conf_set_msec_slot ngx_conf_set_num_slot "
      "ngx_conf_set_off_slot ngx_conf_set_sec_slot "
      "ngx_conf_set_size_slot ngx_conf_set_str_array_slot "
      "ngx_conf_set_str_slot ngx_conf_unsupported" },
    { "ngx_connection.c",
      "ngx_clone_listening ngx_close_connection "
      "ngx_close_idle_connections ngx_close_listening_sockets "
      "ngx_configure_listening_sockets ngx_connection_error "
      "ngx_connection_local_sockaddr ngx_create_listening "
      "ngx_free_connection ngx_get_connection "
      "ngx_open_listening_sockets ngx_reusable_connection "
      "ngx_set_inherited_sockets ngx_tcp_nodelay" },
    { "ngx_cpuinfo.c",
      "ngx_cpuinfo" },
    { "ngx_crc32.c",
      "ngx_crc32_table_init" },
    { "ngx_crypt.c",
      "ngx_crypt" },
    { "ngx_cycle.c",
      "ngx_create_pidfile ngx_delete_pidfile ngx_init_cycle "
      "ngx_reopen_files ngx_set_shutdown_timer "
      "ngx_shared_memory_add ngx_signal_process" },
    { "ngx_daemon.c",
      "ngx_daemon" },
    { "ngx_devpoll_module.c",
      "ngx_devpoll_module" },
    { "ngx_dlopen.c",
      "ngx_dlerror" },
    { "ngx_epoll_module.c",
      "ngx_epoll_module" },
    { "ngx_errno.c",
      "ngx_strerror ngx_strerror_init" },
    { "ngx_event.c",
      "ngx_event_core_module ngx_events_module "
      "ngx_handle_read_event ngx_handle_write_event "
      "ngx_process_events_and_timers ngx_send_lowat" },
    { "ngx_event_accept.c",
      "ngx_accept_log_error ngx_debug_accepted_connection "
      "ngx_enable_accept_events ngx_event_accept "
      "ngx_trylock_accept_mutex" },
    { "ngx_event_acceptex.c",
      "ngx_acceptex_log_error ngx_event_acceptex "
      "ngx_event_post_acceptex" },
    { "ngx_event_connect.c",
      "ngx_event_connect_peer ngx_event_get_peer" },
    { "ngx_event_openssl.c",
      "ngx_openssl_module ngx_ssl_certificate ngx_ssl_certificates "
      "ngx_ssl_check_host ngx_ssl_ciphers ngx_ssl_cleanup_ctx "
      "ngx_ssl_client_certificate ngx_ssl_client_session_cache "
      "ngx_ssl_conf_commands ngx_ssl_connection_certificate "
      "ngx_ssl_create ngx_ssl_create_connection ngx_ssl_crl "
      "ngx_ssl_dhparam ngx_ssl_early_data ngx_ssl_ecdh_curve "
      "ngx_ssl_error ngx_ssl_free_buffer ngx_ssl_get0_session "
      "ngx_ssl_get_alpn_protocol ngx_ssl_get_certificate "
      "ngx_ssl_get_cipher_name ngx_ssl_get_ciphers "
      "ngx_ssl_get_client_v_end ngx_ssl_get_client_v_remain "
      "ngx_ssl_get_client_v_start ngx_ssl_get_client_verify "
      "ngx_ssl_get_curve ngx_ssl_get_curves ngx_ssl_get_early_data "
      "ngx_ssl_get_escaped_certificate ngx_ssl_get_fingerprint "
      "ngx_ssl_get_issuer_dn ngx_ssl_get_issuer_dn_legacy "
      "ngx_ssl_get_protocol ngx_ssl_get_raw_certificate "
      "ngx_ssl_get_serial_number ngx_ssl_get_server_name "
      "ngx_ssl_get_session ngx_ssl_get_session_id "
      "ngx_ssl_get_session_reused ngx_ssl_get_subject_dn "
      "ngx_ssl_get_subject_dn_legacy ngx_ssl_handshake "
      "ngx_ssl_handshake_log ngx_ssl_init "
      "ngx_ssl_preserve_passwords ngx_ssl_read_password_file "
      "ngx_ssl_recv ngx_ssl_recv_chain "
      "ngx_ssl_remove_cached_session ngx_ssl_send_chain "
      "ngx_ssl_session_cache ngx_ssl_session_cache_init "
      "ngx_ssl_session_ticket_keys ngx_ssl_set_session "
      "ngx_ssl_shutdown ngx_ssl_trusted_certificate ngx_ssl_write" },
    { "ngx_event_openssl_stapling.c",
      "ngx_ssl_ocsp ngx_ssl_ocsp_cache_init ngx_ssl_ocsp_cleanup "
      "ngx_ssl_ocsp_get_status ngx_ssl_ocsp_resolver "
      "ngx_ssl_ocsp_validate ngx_ssl_stapling "
      "ngx_ssl_stapling_resolver" },
    { "ngx_event_pipe.c",
      "ngx_event_pipe ngx_event_pipe_add_free_buf "
      "ngx_event_pipe_copy_input_filter" },
    { "ngx_event_posted.c",
      "ngx_event_move_posted_next ngx_event_process_posted" },
    { "ngx_event_quic.c",
      "ngx_quic_apply_transport_params ngx_quic_close_connection "
      "ngx_quic_connstate_dbg ngx_quic_discard_ctx "
      "ngx_quic_finalize_connection ngx_quic_module ngx_quic_run "
      "ngx_quic_shutdown_connection ngx_quic_shutdown_quic" },
    { "ngx_event_quic_ack.c",
      "ngx_quic_ack_packet ngx_quic_congestion_ack "
      "ngx_quic_generate_ack ngx_quic_handle_ack_frame "
      "ngx_quic_pto ngx_quic_pto_handler ngx_quic_resend_frames "
      "ngx_quic_set_lost_timer" },
    { "ngx_event_quic_bpf.c",
      "ngx_quic_bpf_module" },
    { "ngx_event_quic_connid.c",
      "ngx_quic_create_client_id ngx_quic_create_server_id "
      "ngx_quic_create_sockets ngx_quic_free_client_id "
      "ngx_quic_handle_new_connection_id_frame "
      "ngx_quic_handle_retire_connection_id_frame "
      "ngx_quic_next_client_id" },
    { "ngx_event_quic_frames.c",
      "ngx_quic_alloc_chain ngx_quic_alloc_frame "
      "ngx_quic_copy_buffer ngx_quic_free_buffer "
      "ngx_quic_free_chain ngx_quic_free_frame "
      "ngx_quic_free_frames ngx_quic_log_frame "
      "ngx_quic_queue_frame ngx_quic_read_buffer "
      "ngx_quic_skip_buffer ngx_quic_split_frame "
      "ngx_quic_write_buffer" },
    { "ngx_event_quic_migration.c",
      "ngx_quic_discover_path_mtu ngx_quic_free_path "
      "ngx_quic_handle_migration "
      "ngx_quic_handle_path_challenge_frame "
      "ngx_quic_handle_path_mtu "
      "ngx_quic_handle_path_response_frame ngx_quic_new_path "
      "ngx_quic_path_handler ngx_quic_set_path" },
    { "ngx_event_quic_openssl_compat.c",
      "ngx_quic_compat_init" },
    { "ngx_event_quic_output.c",
      "ngx_quic_frame_sendto ngx_quic_negotiate_version "
      "ngx_quic_output ngx_quic_path_limit ngx_quic_send_ack "
      "ngx_quic_send_ack_range ngx_quic_send_cc "
      "ngx_quic_send_early_cc ngx_quic_send_new_token "
      "ngx_quic_send_retry ngx_quic_send_stateless_reset" },
    { "ngx_event_quic_protection.c",
      "ngx_quic_ciphers ngx_quic_compute_nonce "
      "ngx_quic_crypto_cleanup ngx_quic_crypto_init "
      "ngx_quic_crypto_seal ngx_quic_decrypt ngx_quic_derive_key "
      "ngx_quic_encrypt ngx_quic_hkdf_expand "
      "ngx_quic_keys_available ngx_quic_keys_cleanup "
      "ngx_quic_keys_discard ngx_quic_keys_set_encryption_secret "
      "ngx_quic_keys_set_initial_secret ngx_quic_keys_switch "
      "ngx_quic_keys_update" },
    { "ngx_event_quic_socket.c",
      "ngx_quic_close_socket ngx_quic_close_sockets "
      "ngx_quic_create_socket ngx_quic_find_socket ngx_quic_listen "
      "ngx_quic_open_sockets" },
    { "ngx_event_quic_ssl.c",
      "ngx_quic_handle_crypto_frame ngx_quic_init_connection" },
    { "ngx_event_quic_streams.c",
      "ngx_quic_cancelable_stream ngx_quic_close_streams "
      "ngx_quic_find_stream ngx_quic_handle_data_blocked_frame "
      "ngx_quic_handle_max_data_frame "
      "ngx_quic_handle_max_stream_data_frame "
      "ngx_quic_handle_max_streams_frame "
      "ngx_quic_handle_reset_stream_frame "
      "ngx_quic_handle_stop_sending_frame "
      "ngx_quic_handle_stream_ack "
      "ngx_quic_handle_stream_data_blocked_frame "
      "ngx_quic_handle_stream_frame "
      "ngx_quic_handle_streams_blocked_frame ngx_quic_init_streams "
      "ngx_quic_open_stream ngx_quic_rbtree_insert_stream "
      "ngx_quic_reset_stream ngx_quic_shutdown_stream" },
    { "ngx_event_quic_tokens.c",
      "ngx_quic_new_sr_token ngx_quic_new_token "
      "ngx_quic_validate_token" },
    { "ngx_event_quic_transport.c",
      "ngx_quic_create_ack_range ngx_quic_create_frame "
      "ngx_quic_create_header ngx_quic_create_retry_itag "
      "ngx_quic_create_transport_params "
      "ngx_quic_create_version_negotiation "
      "ngx_quic_dcid_encode_key ngx_quic_get_packet_dcid "
      "ngx_quic_init_transport_params ngx_quic_parse_ack_range "
      "ngx_quic_parse_frame ngx_quic_parse_packet "
      "ngx_quic_parse_transport_params ngx_quic_payload_size" },
    { "ngx_event_quic_udp.c",
      "ngx_quic_recvmsg" },
    { "ngx_event_timer.c",
      "ngx_event_expire_timers ngx_event_find_timer "
      "ngx_event_no_timers_left ngx_event_timer_init" },
    { "ngx_event_udp.c",
      "ngx_delete_udp_connection ngx_event_recvmsg "
      "ngx_udp_rbtree_insert_value" },
    { "ngx_eventport_module.c",
      "ngx_eventport_module" },
    { "ngx_file.c",
      "ngx_add_path ngx_conf_merge_path_value "
      "ngx_conf_set_access_slot ngx_conf_set_path_slot "
      "ngx_copy_file ngx_create_full_path "
      "ngx_create_hashed_filename ngx_create_path ngx_create_paths "
      "ngx_create_temp_file ngx_ext_rename_file ngx_get_full_name "
      "ngx_next_temp_number ngx_walk_tree "
      "ngx_write_chain_to_temp_file" },
    { "ngx_files.c",
      "ngx_close_file_mapping ngx_close_glob "
      "ngx_create_file_mapping ngx_directio_off ngx_directio_on "
      "ngx_fs_available ngx_fs_bsize ngx_lock_fd ngx_open_dir "
      "ngx_open_glob ngx_open_tempfile ngx_read_ahead ngx_read_dir "
      "ngx_read_file ngx_read_glob ngx_set_file_time "
      "ngx_thread_read ngx_thread_write_chain_to_file "
      "ngx_trylock_fd ngx_unlock_fd ngx_write_chain_to_file "
      "ngx_write_file" },
    { "ngx_hash.c",
      "ngx_hash_add_key ngx_hash_find ngx_hash_find_combined "
      "ngx_hash_find_wc_head ngx_hash_find_wc_tail ngx_hash_init "
      "ngx_hash_key ngx_hash_key_lc ngx_hash_keys_array_init "
      "ngx_hash_strlow ngx_hash_wildcard_init" },
    { "ngx_http.c",
      "ngx_http_add_listen ngx_http_add_location "
      "ngx_http_merge_types ngx_http_module "
      "ngx_http_set_default_types ngx_http_types_slot" },
    { "ngx_http_access_module.c",
      "ngx_http_access_module" },
    { "ngx_http_addition_filter_module.c",
      "ngx_http_addition_filter_module" },
    { "ngx_http_auth_basic_module.c",
      "ngx_http_auth_basic_module" },
    { "ngx_http_auth_request_module.c",
      "ngx_http_auth_request_module" },
    { "ngx_http_autoindex_module.c",
      "ngx_http_autoindex_module" },
    { "ngx_http_browser_module.c",
      "ngx_http_browser_module" },
    { "ngx_http_charset_filter_module.c",
      "ngx_http_charset_filter_module" },
    { "ngx_http_chunked_filter_module.c",
      "ngx_http_chunked_filter_module" },
    { "ngx_http_copy_filter_module.c",
      "ngx_http_copy_filter_module" },
    { "ngx_http_core_module.c",
      "ngx_http_auth_basic_user ngx_http_cleanup_add "
      "ngx_http_core_access_phase ngx_http_core_content_phase "
      "ngx_http_core_find_config_phase ngx_http_core_generic_phase "
      "ngx_http_core_module ngx_http_core_post_access_phase "
      "ngx_http_core_post_rewrite_phase "
      "ngx_http_core_rewrite_phase ngx_http_core_run_phases "
      "ngx_http_get_forwarded_addr ngx_http_gzip_ok "
      "ngx_http_handler ngx_http_internal_redirect "
      "ngx_http_link_multi_headers ngx_http_map_uri_to_path "
      "ngx_http_named_location ngx_http_output_filter "
      "ngx_http_send_header ngx_http_send_response "
      "ngx_http_set_content_type ngx_http_set_disable_symlinks "
      "ngx_http_set_etag ngx_http_set_exten ngx_http_subrequest "
      "ngx_http_test_content_type ngx_http_update_location_config "
      "ngx_http_weak_etag" },
    { "ngx_http_dav_module.c",
      "ngx_http_dav_module" },
    { "ngx_http_degradation_module.c",
      "ngx_http_degradation_module ngx_http_degraded" },
    { "ngx_http_empty_gif_module.c",
      "ngx_http_empty_gif_module" },
    { "ngx_http_fastcgi_module.c",
      "ngx_http_fastcgi_module" },
    { "ngx_http_file_cache.c",
      "ngx_http_cache_send ngx_http_file_cache_create "
      "ngx_http_file_cache_create_key ngx_http_file_cache_free "
      "ngx_http_file_cache_new ngx_http_file_cache_open "
      "ngx_http_file_cache_set_header ngx_http_file_cache_set_slot "
      "ngx_http_file_cache_update "
      "ngx_http_file_cache_update_header ngx_http_file_cache_valid "
      "ngx_http_file_cache_valid_set_slot" },
    { "ngx_http_flv_module.c",
      "ngx_http_flv_module" },
    { "ngx_http_geo_module.c",
      "ngx_http_geo_module" },
    { "ngx_http_geoip_module.c",
      "ngx_http_geoip_module" },
    { "ngx_http_grpc_module.c",
      "ngx_http_grpc_module" },
    { "ngx_http_gunzip_filter_module.c",
      "ngx_http_gunzip_filter_module" },
    { "ngx_http_gzip_filter_module.c",
      "ngx_http_gzip_filter_module" },
    { "ngx_http_gzip_static_module.c",
      "ngx_http_gzip_static_module" },
    { "ngx_http_header_filter_module.c",
      "ngx_http_header_filter_module" },
    { "ngx_http_headers_filter_module.c",
      "ngx_http_headers_filter_module" },
    { "ngx_http_huff_decode.c",
      "ngx_http_huff_decode" },
    { "ngx_http_huff_encode.c",
      "ngx_http_huff_encode" },
    { "ngx_http_image_filter_module.c",
      "ngx_http_image_filter_module" },
    { "ngx_http_index_module.c",
      "ngx_http_index_module" },
    { "ngx_http_limit_conn_module.c",
      "ngx_http_limit_conn_module" },
    { "ngx_http_limit_req_module.c",
      "ngx_http_limit_req_module" },
    { "ngx_http_log_module.c",
      "ngx_http_log_module" },
    { "ngx_http_map_module.c",
      "ngx_http_map_module" },
    { "ngx_http_memcached_module.c",
      "ngx_http_memcached_module" },
    { "ngx_http_mirror_module.c",
      "ngx_http_mirror_module" },
    { "ngx_http_mp4_module.c",
      "ngx_http_mp4_module" },
    { "ngx_http_not_modified_filter_module.c",
      "ngx_http_not_modified_filter_module" },
    { "ngx_http_parse.c",
      "ngx_http_arg ngx_http_parse_chunked "
      "ngx_http_parse_complex_uri ngx_http_parse_header_line "
      "ngx_http_parse_multi_header_lines "
      "ngx_http_parse_request_line ngx_http_parse_set_cookie_lines "
      "ngx_http_parse_status_line ngx_http_parse_unsafe_uri "
      "ngx_http_parse_uri ngx_http_split_args" },
    { "ngx_http_postpone_filter_module.c",
      "ngx_http_postpone_filter_module" },
    { "ngx_http_proxy_module.c",
      "ngx_http_proxy_module" },
    { "ngx_http_random_index_module.c",
      "ngx_http_random_index_module" },
    { "ngx_http_range_filter_module.c",
      "ngx_http_range_body_filter_module "
      "ngx_http_range_header_filter_module" },
    { "ngx_http_realip_module.c",
      "ngx_http_realip_module" },
    { "ngx_http_referer_module.c",
      "ngx_http_referer_module" },
    { "ngx_http_request.c",
      "ngx_http_block_reading ngx_http_close_connection "
      "ngx_http_close_request ngx_http_create_request "
      "ngx_http_empty_handler ngx_http_finalize_request "
      "ngx_http_free_request ngx_http_init_connection "
      "ngx_http_post_request ngx_http_process_request "
      "ngx_http_process_request_header "
      "ngx_http_process_request_uri ngx_http_request_empty_handler "
      "ngx_http_run_posted_requests ngx_http_send_special "
      "ngx_http_set_virtual_server ngx_http_ssl_certificate "
      "ngx_http_ssl_servername ngx_http_test_reading "
      "ngx_http_validate_host" },
    { "ngx_http_request_body.c",
      "ngx_http_discard_request_body "
      "ngx_http_discarded_request_body_handler "
      "ngx_http_read_client_request_body "
      "ngx_http_read_unbuffered_request_body "
      "ngx_http_request_body_save_filter" },
    { "ngx_http_rewrite_module.c",
      "ngx_http_rewrite_module" },
    { "ngx_http_scgi_module.c",
      "ngx_http_scgi_module" },
    { "ngx_http_script.c",
      "ngx_http_compile_complex_value ngx_http_complex_value "
      "ngx_http_complex_value_size ngx_http_script_add_code "
      "ngx_http_script_break_code ngx_http_script_compile "
      "ngx_http_script_complex_value_code "
      "ngx_http_script_copy_capture_code "
      "ngx_http_script_copy_capture_len_code "
      "ngx_http_script_copy_code ngx_http_script_copy_len_code "
      "ngx_http_script_copy_var_code "
      "ngx_http_script_copy_var_len_code "
      "ngx_http_script_equal_code ngx_http_script_file_code "
      "ngx_http_script_flush_complex_value "
      "ngx_http_script_flush_no_cacheable_variables "
      "ngx_http_script_if_code ngx_http_script_mark_args_code "
      "ngx_http_script_nop_code ngx_http_script_not_equal_code "
      "ngx_http_script_regex_end_code "
      "ngx_http_script_regex_start_code "
      "ngx_http_script_return_code ngx_http_script_run "
      "ngx_http_script_set_var_code "
      "ngx_http_script_start_args_code ngx_http_script_start_code "
      "ngx_http_script_value_code ngx_http_script_var_code "
      "ngx_http_script_var_set_handler_code "
      "ngx_http_script_variables_count "
      "ngx_http_set_complex_value_size_slot "
      "ngx_http_set_complex_value_slot "
      "ngx_http_set_complex_value_zero_slot "
      "ngx_http_set_predicate_slot ngx_http_test_predicates "
      "ngx_http_test_required_predicates" },
    { "ngx_http_secure_link_module.c",
      "ngx_http_secure_link_module" },
    { "ngx_http_slice_filter_module.c",
      "ngx_http_slice_filter_module" },
    { "ngx_http_special_response.c",
      "ngx_http_clean_header ngx_http_filter_finalize_request "
      "ngx_http_special_response_handler" },
    { "ngx_http_split_clients_module.c",
      "ngx_http_split_clients_module" },
    { "ngx_http_ssi_filter_module.c",
      "ngx_http_ssi_filter_module" },
    { "ngx_http_ssl_module.c",
      "ngx_http_ssl_module" },
    { "ngx_http_static_module.c",
      "ngx_http_static_module" },
    { "ngx_http_stub_status_module.c",
      "ngx_http_stub_status_module" },
    { "ngx_http_sub_filter_module.c",
      "ngx_http_sub_filter_module" },
    { "ngx_http_try_files_module.c",
      "ngx_http_try_files_module" },
    { "ngx_http_upstream.c",
      "ngx_http_upstream_add ngx_http_upstream_bind_set_slot "
      "ngx_http_upstream_create "
      "ngx_http_upstream_hide_headers_hash ngx_http_upstream_init "
      "ngx_http_upstream_module "
      "ngx_http_upstream_non_buffered_filter "
      "ngx_http_upstream_non_buffered_filter_init "
      "ngx_http_upstream_param_set_slot" },
    { "ngx_http_upstream_hash_module.c",
      "ngx_http_upstream_hash_module" },
    { "ngx_http_upstream_ip_hash_module.c",
      "ngx_http_upstream_ip_hash_module" },
    { "ngx_http_upstream_keepalive_module.c",
      "ngx_http_upstream_keepalive_module" },
    { "ngx_http_upstream_least_conn_module.c",
      "ngx_http_upstream_least_conn_module" },
    { "ngx_http_upstream_random_module.c",
      "ngx_http_upstream_random_module" },
    { "ngx_http_upstream_round_robin.c",
      "ngx_http_upstream_create_round_robin_peer "
      "ngx_http_upstream_free_round_robin_peer "
      "ngx_http_upstream_get_round_robin_peer "
      "ngx_http_upstream_init_round_robin "
      "ngx_http_upstream_init_round_robin_peer "
      "ngx_http_upstream_save_round_robin_peer_session "
      "ngx_http_upstream_set_round_robin_peer_session" },
    { "ngx_http_upstream_zone_module.c",
      "ngx_http_upstream_zone_module" },
    { "ngx_http_userid_filter_module.c",
      "ngx_http_userid_filter_module" },
    { "ngx_http_uwsgi_module.c",
      "ngx_http_uwsgi_module" },
    { "ngx_http_v2.c",
      "ngx_http_v2_close_stream ngx_http_v2_init "
      "ngx_http_v2_push_stream ngx_http_v2_read_request_body "
      "ngx_http_v2_read_unbuffered_request_body "
      "ngx_http_v2_send_output_queue" },
    { "ngx_http_v2_encode.c",
      "ngx_http_v2_string_encode" },
    { "ngx_http_v2_filter_module.c",
      "ngx_http_v2_filter_module" },
    { "ngx_http_v2_module.c",
      "ngx_http_v2_module" },
    { "ngx_http_v2_table.c",
      "ngx_http_v2_add_header ngx_http_v2_get_indexed_header "
      "ngx_http_v2_get_static_name ngx_http_v2_get_static_value "
      "ngx_http_v2_table_size" },
    { "ngx_http_v3.c",
      "ngx_http_v3_check_flood ngx_http_v3_init_session" },
    { "ngx_http_v3_encode.c",
      "ngx_http_v3_encode_field_l ngx_http_v3_encode_field_lpbi "
      "ngx_http_v3_encode_field_lri ngx_http_v3_encode_field_pbi "
      "ngx_http_v3_encode_field_ri "
      "ngx_http_v3_encode_field_section_prefix "
      "ngx_http_v3_encode_prefix_int ngx_http_v3_encode_varlen_int" },
    { "ngx_http_v3_filter_module.c",
      "ngx_http_v3_filter_module" },
    { "ngx_http_v3_module.c",
      "ngx_http_v3_module" },
    { "ngx_http_v3_parse.c",
      "ngx_http_v3_parse_data ngx_http_v3_parse_headers "
      "ngx_http_v3_parse_uni" },
    { "ngx_http_v3_request.c",
      "ngx_http_v3_init ngx_http_v3_init_stream "
      "ngx_http_v3_read_request_body "
      "ngx_http_v3_read_unbuffered_request_body "
      "ngx_http_v3_reset_stream ngx_http_v3_shutdown" },
    { "ngx_http_v3_table.c",
      "ngx_http_v3_ack_insert_count ngx_http_v3_ack_section "
      "ngx_http_v3_check_insert_count ngx_http_v3_cleanup_table "
      "ngx_http_v3_decode_insert_count ngx_http_v3_duplicate "
      "ngx_http_v3_inc_insert_count "
      "ngx_http_v3_inc_insert_count_handler ngx_http_v3_insert "
      "ngx_http_v3_lookup ngx_http_v3_lookup_static "
      "ngx_http_v3_ref_insert ngx_http_v3_set_capacity "
      "ngx_http_v3_set_param" },
    { "ngx_http_v3_uni.c",
      "ngx_http_v3_cancel_stream ngx_http_v3_get_uni_stream "
      "ngx_http_v3_init_uni_stream ngx_http_v3_register_uni_stream "
      "ngx_http_v3_send_ack_section ngx_http_v3_send_cancel_stream "
      "ngx_http_v3_send_goaway ngx_http_v3_send_inc_insert_count "
      "ngx_http_v3_send_settings" },
    { "ngx_http_variables.c",
      "ngx_http_add_variable ngx_http_get_flushed_variable "
      "ngx_http_get_indexed_variable ngx_http_get_variable "
      "ngx_http_get_variable_index ngx_http_map_find "
      "ngx_http_regex_compile ngx_http_regex_exec "
      "ngx_http_variable_unknown_header "
      "ngx_http_variables_add_core_vars "
      "ngx_http_variables_init_vars" },
    { "ngx_http_write_filter_module.c",
      "ngx_http_write_filter ngx_http_write_filter_module" },
    { "ngx_http_xslt_filter_module.c",
      "ngx_http_xslt_filter_module" },
    { "ngx_inet.c",
      "ngx_cidr_match ngx_cmp_sockaddr ngx_inet6_addr "
      "ngx_inet6_ntop ngx_inet_addr ngx_inet_get_port "
      "ngx_inet_ntop ngx_inet_resolve_host ngx_inet_set_port "
      "ngx_inet_wildcard ngx_parse_addr ngx_parse_addr_port "
      "ngx_parse_url ngx_ptocidr ngx_sock_ntop" },
    { "ngx_iocp_module.c",
      "ngx_iocp_module" },
    { "ngx_kqueue_module.c",
      "ngx_kqueue_module" },
    { "ngx_linux_init.c",
      "ngx_os_specific_init ngx_os_specific_status" },
    { "ngx_linux_sendfile_chain.c",
      "ngx_linux_sendfile_chain" },
    { "ngx_list.c",
      "ngx_list_create ngx_list_push" },
    { "ngx_log.c",
      "ngx_errlog_module ngx_log_abort ngx_log_debug_core "
      "ngx_log_errno ngx_log_error ngx_log_error_core "
      "ngx_log_get_file_log ngx_log_init ngx_log_open_default "
      "ngx_log_redirect_stderr ngx_log_set_log ngx_log_stderr" },
    { "ngx_mail.c",
      "ngx_mail_module" },
    { "ngx_mail_auth_http_module.c",
      "ngx_mail_auth_http_init ngx_mail_auth_http_module" },
    { "ngx_mail_core_module.c",
      "ngx_mail_capabilities ngx_mail_core_module" },
    { "ngx_mail_handler.c",
      "ngx_mail_auth ngx_mail_auth_cram_md5 "
      "ngx_mail_auth_cram_md5_salt ngx_mail_auth_external "
      "ngx_mail_auth_login_password ngx_mail_auth_login_username "
      "ngx_mail_auth_plain ngx_mail_close_connection "
      "ngx_mail_init_connection ngx_mail_log_error "
      "ngx_mail_read_command ngx_mail_salt ngx_mail_send "
      "ngx_mail_session_internal_server_error "
      "ngx_mail_starttls_handler ngx_mail_starttls_only" },
    { "ngx_mail_imap_handler.c",
      "ngx_mail_imap_auth_state ngx_mail_imap_init_protocol "
      "ngx_mail_imap_init_session" },
    { "ngx_mail_imap_module.c",
      "ngx_mail_imap_module" },
    { "ngx_mail_parse.c",
      "ngx_mail_auth_parse ngx_mail_imap_parse_command "
      "ngx_mail_pop3_parse_command ngx_mail_smtp_parse_command" },
    { "ngx_mail_pop3_handler.c",
      "ngx_mail_pop3_auth_state ngx_mail_pop3_init_protocol "
      "ngx_mail_pop3_init_session" },
    { "ngx_mail_pop3_module.c",
      "ngx_mail_pop3_module" },
    { "ngx_mail_proxy_module.c",
      "ngx_mail_proxy_init ngx_mail_proxy_module" },
    { "ngx_mail_realip_module.c",
      "ngx_mail_realip_handler ngx_mail_realip_module" },
    { "ngx_mail_smtp_handler.c",
      "ngx_mail_smtp_auth_state ngx_mail_smtp_init_protocol "
      "ngx_mail_smtp_init_session" },
    { "ngx_mail_smtp_module.c",
      "ngx_mail_smtp_module" },
    { "ngx_mail_ssl_module.c",
      "ngx_mail_ssl_module" },
    { "ngx_md5.c",
      "ngx_md5_final ngx_md5_init ngx_md5_update" },
    { "ngx_module.c",
      "ngx_add_module ngx_count_modules ngx_cycle_modules "
      "ngx_init_modules ngx_preinit_modules" },
    { "ngx_murmurhash.c",
      "ngx_murmur_hash2" },
    { "ngx_open_file_cache.c",
      "ngx_open_cached_file ngx_open_file_cache_init" },
    { "ngx_output_chain.c",
      "ngx_chain_writer ngx_output_chain" },
    { "ngx_palloc.c",
      "ngx_create_pool ngx_destroy_pool ngx_palloc ngx_pcalloc "
      "ngx_pfree ngx_pmemalign ngx_pnalloc ngx_pool_cleanup_add "
      "ngx_pool_cleanup_file ngx_pool_delete_file "
      "ngx_pool_run_cleanup_file ngx_reset_pool" },
    { "ngx_parse.c",
      "ngx_parse_offset ngx_parse_size ngx_parse_time" },
    { "ngx_parse_time.c",
      "ngx_parse_http_time" },
    { "ngx_poll_module.c",
      "ngx_poll_module" },
    { "ngx_posix_init.c",
      "ngx_os_init ngx_os_status ngx_posix_post_conf_init" },
    { "ngx_process.c",
      "ngx_debug_point ngx_execute ngx_init_signals "
      "ngx_os_signal_process ngx_spawn_process" },
    { "ngx_process_cycle.c",
      "ngx_master_process_cycle ngx_single_process_cycle" },
    { "ngx_proxy_protocol.c",
      "ngx_proxy_protocol_get_tlv ngx_proxy_protocol_read "
      "ngx_proxy_protocol_write" },
    { "ngx_queue.c",
      "ngx_queue_middle ngx_queue_sort" },
    { "ngx_radix_tree.c",
      "ngx_radix128tree_delete ngx_radix128tree_find "
      "ngx_radix128tree_insert ngx_radix32tree_delete "
      "ngx_radix32tree_find ngx_radix32tree_insert "
      "ngx_radix_tree_create" },
    { "ngx_rbtree.c",
      "ngx_rbtree_delete ngx_rbtree_insert "
      "ngx_rbtree_insert_timer_value ngx_rbtree_insert_value "
      "ngx_rbtree_next" },
    { "ngx_readv_chain.c",
      "ngx_readv_chain" },
    { "ngx_recv.c",
      "ngx_unix_recv" },
    { "ngx_regex.c",
      "ngx_regex_compile ngx_regex_exec ngx_regex_exec_array "
      "ngx_regex_init ngx_regex_module" },
    { "ngx_resolver.c",
      "ngx_resolve_addr ngx_resolve_addr_done ngx_resolve_name "
      "ngx_resolve_name_done ngx_resolve_start ngx_resolver_create "
      "ngx_resolver_strerror" },
    { "ngx_rwlock.c",
      "ngx_rwlock_downgrade ngx_rwlock_rlock ngx_rwlock_unlock "
      "ngx_rwlock_wlock" },
    { "ngx_select_module.c",
      "ngx_select_module" },
    { "ngx_send.c",
      "ngx_unix_send" },
    { "ngx_setaffinity.c",
      "ngx_setaffinity" },
    { "ngx_setproctitle.c",
      "ngx_init_setproctitle ngx_setproctitle" },
    { "ngx_sha1.c",
      "ngx_sha1_final ngx_sha1_init ngx_sha1_update" },
    { "ngx_shmem.c",
      "ngx_shm_alloc ngx_shm_free" },
    { "ngx_shmtx.c",
      "ngx_shmtx_create ngx_shmtx_destroy ngx_shmtx_force_unlock "
      "ngx_shmtx_lock ngx_shmtx_trylock ngx_shmtx_unlock" },
    { "ngx_slab.c",
      "ngx_slab_alloc ngx_slab_alloc_locked ngx_slab_calloc "
      "ngx_slab_calloc_locked ngx_slab_free ngx_slab_free_locked "
      "ngx_slab_init ngx_slab_sizes_init" },
    { "ngx_socket.c",
      "ngx_blocking ngx_nonblocking ngx_tcp_nopush ngx_tcp_push" },
    { "ngx_spinlock.c",
      "ngx_spinlock" },
    { "ngx_stream.c",
      "ngx_stream_add_listen ngx_stream_module" },
    { "ngx_stream_access_module.c",
      "ngx_stream_access_module" },
    { "ngx_stream_core_module.c",
      "ngx_stream_core_content_phase ngx_stream_core_generic_phase "
      "ngx_stream_core_module ngx_stream_core_preread_phase "
      "ngx_stream_core_run_phases ngx_stream_find_virtual_server "
      "ngx_stream_validate_host" },
    { "ngx_stream_geo_module.c",
      "ngx_stream_geo_module" },
    { "ngx_stream_geoip_module.c",
      "ngx_stream_geoip_module" },
    { "ngx_stream_handler.c",
      "ngx_stream_finalize_session ngx_stream_init_connection "
      "ngx_stream_session_handler" },
    { "ngx_stream_limit_conn_module.c",
      "ngx_stream_limit_conn_module" },
    { "ngx_stream_log_module.c",
      "ngx_stream_log_module" },
    { "ngx_stream_map_module.c",
      "ngx_stream_map_module" },
    { "ngx_stream_pass_module.c",
      "ngx_stream_pass_module" },
    { "ngx_stream_proxy_module.c",
      "ngx_stream_proxy_module" },
    { "ngx_stream_realip_module.c",
      "ngx_stream_realip_module" },
    { "ngx_stream_return_module.c",
      "ngx_stream_return_module" },
    { "ngx_stream_script.c",
      "ngx_stream_compile_complex_value ngx_stream_complex_value "
      "ngx_stream_complex_value_size ngx_stream_script_add_code "
      "ngx_stream_script_compile "
      "ngx_stream_script_copy_capture_code "
      "ngx_stream_script_copy_capture_len_code "
      "ngx_stream_script_copy_code ngx_stream_script_copy_len_code "
      "ngx_stream_script_copy_var_code "
      "ngx_stream_script_copy_var_len_code "
      "ngx_stream_script_flush_complex_value "
      "ngx_stream_script_flush_no_cacheable_variables "
      "ngx_stream_script_run ngx_stream_script_variables_count "
      "ngx_stream_set_complex_value_size_slot "
      "ngx_stream_set_complex_value_slot "
      "ngx_stream_set_complex_value_zero_slot" },
    { "ngx_stream_set_module.c",
      "ngx_stream_set_module" },
    { "ngx_stream_split_clients_module.c",
      "ngx_stream_split_clients_module" },
    { "ngx_stream_ssl_module.c",
      "ngx_stream_ssl_module" },
    { "ngx_stream_ssl_preread_module.c",
      "ngx_stream_ssl_preread_module" },
    { "ngx_stream_upstream.c",
      "ngx_stream_upstream_add ngx_stream_upstream_module" },
    { "ngx_stream_upstream_hash_module.c",
      "ngx_stream_upstream_hash_module" },
    { "ngx_stream_upstream_least_conn_module.c",
      "ngx_stream_upstream_least_conn_module" },
    { "ngx_stream_upstream_random_module.c",
      "ngx_stream_upstream_random_module" },
    { "ngx_stream_upstream_round_robin.c",
      "ngx_stream_upstream_create_round_robin_peer "
      "ngx_stream_upstream_free_round_robin_peer "
      "ngx_stream_upstream_get_round_robin_peer "
      "ngx_stream_upstream_init_round_robin "
      "ngx_stream_upstream_init_round_robin_peer" },
    { "ngx_stream_upstream_zone_module.c",
      "ngx_stream_upstream_zone_module" },
    { "ngx_stream_variables.c",
      "ngx_stream_add_variable ngx_stream_get_flushed_variable "
      "ngx_stream_get_indexed_variable ngx_stream_get_variable "
      "ngx_stream_get_variable_index ngx_stream_map_find "
      "ngx_stream_regex_compile ngx_stream_regex_exec "
      "ngx_stream_variables_add_core_vars "
      "ngx_stream_variables_init_vars" },
    { "ngx_stream_write_filter_module.c",
      "ngx_stream_write_filter_module" },
    { "ngx_string.c",
      "ngx_atofp ngx_atoi ngx_atoof ngx_atosz ngx_atotm "
      "ngx_cpystrn ngx_decode_base64 ngx_decode_base64url "
      "ngx_dns_strcmp ngx_encode_base64 ngx_encode_base64url "
      "ngx_escape_html ngx_escape_json ngx_escape_uri "
      "ngx_explicit_memzero ngx_filename_cmp ngx_hex_dump "
      "ngx_hextoi ngx_memcpy ngx_memn2cmp ngx_pstrdup "
      "ngx_rstrncasecmp ngx_rstrncmp ngx_slprintf ngx_snprintf "
      "ngx_sort ngx_sprintf ngx_str_rbtree_insert_value "
      "ngx_str_rbtree_lookup ngx_strcasecmp ngx_strcasestrn "
      "ngx_strlcasestrn ngx_strlow ngx_strncasecmp ngx_strnlen "
      "ngx_strnstr ngx_strstrn ngx_unescape_uri ngx_utf8_cpystrn "
      "ngx_utf8_decode ngx_utf8_length ngx_vslprintf" },
    { "ngx_syslog.c",
      "ngx_syslog_add_header ngx_syslog_process_conf "
      "ngx_syslog_send ngx_syslog_writer" },
    { "ngx_thread_cond.c",
      "ngx_thread_cond_create ngx_thread_cond_destroy "
      "ngx_thread_cond_signal ngx_thread_cond_wait" },
    { "ngx_thread_id.c",
      "ngx_thread_tid" },
    { "ngx_thread_mutex.c",
      "ngx_thread_mutex_create ngx_thread_mutex_destroy "
      "ngx_thread_mutex_lock ngx_thread_mutex_unlock" },
    { "ngx_thread_pool.c",
      "ngx_thread_pool_add ngx_thread_pool_get "
      "ngx_thread_pool_module ngx_thread_task_alloc "
      "ngx_thread_task_post" },
    { "ngx_time.c",
      "ngx_libc_gmtime ngx_libc_localtime ngx_localtime "
      "ngx_timezone_update" },
    { "ngx_times.c",
      "ngx_gmtime ngx_http_cookie_time ngx_http_time ngx_next_time "
      "ngx_time_init ngx_time_sigsafe_update ngx_time_update" },
    { "ngx_udp_recv.c",
      "ngx_udp_unix_recv" },
    { "ngx_udp_send.c",
      "ngx_udp_unix_send" },
    { "ngx_udp_sendmsg_chain.c",
      "ngx_get_srcaddr_cmsg ngx_sendmsg ngx_set_srcaddr_cmsg "
      "ngx_udp_unix_sendmsg_chain" },
    { "ngx_user.c",
      "ngx_libc_crypt" },
    { "ngx_writev_chain.c",
      "ngx_output_chain_to_iovec ngx_writev ngx_writev_chain" },
    { NULL, NULL }
};
