set(ROOM_SOURCES backoff.cpp child_limits.cpp command.cpp cpu_list.cpp file.cpp file_watch.cpp inotify.cpp log.cpp mountinfo.cpp plain_text.cpp process_memory.cpp read_fd.cpp result.cpp rfc3339.cpp text.cpp
    token_file.cpp trusted_file.cpp turn_guard.cpp)
