set(ROOM_TESTS certificate_refusal_test.cpp certificate_rules_test.cpp certificate_sync_test.cpp
               event_sink_test.cpp facts_doubt_test.cpp facts_name_test.cpp facts_probe_test.cpp facts_slurmd_test.cpp facts_sync_test.cpp lease_sync_test.cpp
               node_departure_test.cpp node_registration_test.cpp node_sync_test.cpp one_daemon_test.cpp
               pod_sync_test.cpp)
