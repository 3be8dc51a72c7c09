set(ROOM_TESTS
  ../tls/test_certificates.cpp
  access_test.cpp
  bootstrap_test.cpp
  credential_files_test.cpp
  metrics_test.cpp
  serving_certificate_test.cpp
  state_lock_test.cpp)
