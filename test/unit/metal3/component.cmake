set(COMPONENT_TESTS
  config_drive_test.cpp
  identity_test.cpp
  instance_data_test.cpp
  saved_state_test.cpp)
