set(COMPONENT_TESTS
  config_file_test.cpp
  credentials_test.cpp
  duration_test.cpp
  load_test.cpp
  provider_config_test.cpp
  settings_table_test.cpp)
set(COMPONENT_TEST_LIBRARIES slurmlet::cli)  # command lines are parsed there
