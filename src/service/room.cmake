set(ROOM_SOURCES manager_environment.cpp notifier.cpp)
