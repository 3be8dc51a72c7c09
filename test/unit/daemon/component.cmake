set(COMPONENT_TESTS
  ../tls/test_certificates.cpp
  bootstrap_loop_test.cpp
  cpu_pin_test.cpp
  node_end_file_test.cpp
  rest_access_test.cpp
  slurm_setup_test.cpp
  state_lock_test.cpp)
