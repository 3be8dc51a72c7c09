set(ROOM_SOURCES
  claim.cpp conditions.cpp desired_node.cpp facts.cpp gpu_health.cpp labels.cpp lease_holder.cpp
  lease_policy.cpp machine_end.cpp node_diff.cpp node_events.cpp node_info_fields.cpp reason_text.cpp reject_policy.cpp resources.cpp
  slurm_labels.cpp slurm_view.cpp state_conditions.cpp taints.cpp)
