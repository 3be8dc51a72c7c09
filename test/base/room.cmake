set(ROOM_TESTS backoff_test.cpp child_limits_test.cpp command_test.cpp cpu_list_test.cpp file_test.cpp file_watch_test.cpp log_test.cpp mountinfo_test.cpp plain_text_test.cpp process_memory_test.cpp published_test.cpp
               result_test.cpp rfc3339_test.cpp text_test.cpp token_file_test.cpp trusted_file_test.cpp turn_guard_test.cpp)
