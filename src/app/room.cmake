set(ROOM_SOURCES access.cpp bootstrap.cpp capture_json.cpp commands.cpp credential_files.cpp daemon.cpp endpoint_metrics.cpp
  endpoint_thread.cpp feed_command.cpp lease_thread.cpp main_loop.cpp metrics.cpp own_credentials.cpp process_metrics.cpp
  serving_certificate.cpp slurm_metrics.cpp node_identity.cpp node_source.cpp parse_slurm.cpp print_node.cpp rest_access.cpp secrets.cpp signals.cpp slurm_setup.cpp
  state_lock.cpp)
