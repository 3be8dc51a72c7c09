set(ROOM_TESTS
  command_line_test.cpp config_file_test.cpp credentials_test.cpp duration_test.cpp help_test.cpp
  load_test.cpp manual_test.cpp provider_config_test.cpp settings_table_test.cpp)
