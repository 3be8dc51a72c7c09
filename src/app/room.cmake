set(ROOM_SOURCES access.cpp bootstrap.cpp commands.cpp credential_files.cpp daemon.cpp endpoint_metrics.cpp
  endpoint_thread.cpp lease_thread.cpp main_loop.cpp metrics.cpp own_credentials.cpp process_metrics.cpp
  serving_certificate.cpp slurm_metrics.cpp node_identity.cpp print_node.cpp signals.cpp slurm_setup.cpp
  state_lock.cpp)
