set(ROOM_SOURCES
  claim.cpp conditions.cpp desired_node.cpp facts.cpp labels.cpp lease_holder.cpp lease_policy.cpp
  node_diff.cpp node_events.cpp reject_policy.cpp resources.cpp slurm_view.cpp)
