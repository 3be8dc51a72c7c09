set(COMPONENT_TESTS
  document_test.cpp)
