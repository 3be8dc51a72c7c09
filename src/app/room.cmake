set(ROOM_SOURCES access.cpp bootstrap.cpp bootstrap_loop.cpp bootstrap_need.cpp bootstrap_pause.cpp capture_json.cpp commands.cpp credential_files.cpp daemon.cpp endpoint_metrics.cpp
  endpoint_thread.cpp feed_command.cpp lease_thread.cpp main_loop.cpp metrics.cpp own_credentials.cpp process_metrics.cpp
  serving_certificate.cpp slurm_metrics.cpp node_identity.cpp node_source.cpp parse_slurm.cpp print_node.cpp rest_access.cpp secrets.cpp signals.cpp slurm_setup.cpp
  state_lock.cpp cpu_pin.cpp slurm_facts.cpp service_report.cpp state_line.cpp watchdog.cpp
  check_cluster.cpp check_command.cpp check_finding.cpp check_gather_cluster.cpp check_gather_credentials.cpp
  check_gather_machine.cpp check_identity.cpp check_machine.cpp daemon_client.cpp daemon_status.cpp
  daemon_status_json.cpp daemon_status_text.cpp listening.cpp node_diff_text.cpp node_end_file.cpp node_preview.cpp status_command.cpp)
