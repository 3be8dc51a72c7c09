set(ROOM_TESTS manager_environment_test.cpp notifier_test.cpp)
