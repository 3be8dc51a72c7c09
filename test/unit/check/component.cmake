set(COMPONENT_TESTS
  api_server_test.cpp
  finding_test.cpp
  service_unit_test.cpp)
