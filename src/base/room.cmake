set(ROOM_SOURCES backoff.cpp command.cpp file.cpp log.cpp result.cpp rfc3339.cpp text.cpp)
