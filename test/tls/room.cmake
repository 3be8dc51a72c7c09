set(ROOM_TESTS
  base64_test.cpp
  client_identity_test.cpp
  test_certificates.cpp)
