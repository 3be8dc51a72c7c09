set(ROOM_SOURCES access.cpp commands.cpp daemon.cpp metrics.cpp node_identity.cpp print_node.cpp signals.cpp slurm_setup.cpp)
