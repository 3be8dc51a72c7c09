set(ROOM_TESTS event_sink_test.cpp facts_slurmd_test.cpp facts_sync_test.cpp lease_sync_test.cpp
               node_registration_test.cpp node_sync_test.cpp pod_sync_test.cpp)
