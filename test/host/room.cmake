set(ROOM_TESTS addresses_test.cpp cpu_affinity_test.cpp gpus_test.cpp machine_test.cpp pressure_test.cpp shutdown_test.cpp
               source_address_test.cpp system_uuid_test.cpp usage_test.cpp)
