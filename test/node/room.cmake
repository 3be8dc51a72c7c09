set(ROOM_TESTS claim_test.cpp conditions_test.cpp desired_node_test.cpp gpu_health_test.cpp labels_test.cpp
               lease_holder_test.cpp lease_policy_test.cpp machine_end_test.cpp node_diff_test.cpp node_events_test.cpp
               ready_test.cpp reject_policy_test.cpp resources_test.cpp slurm_labels_test.cpp
               slurm_view_test.cpp state_conditions_test.cpp taints_test.cpp)
