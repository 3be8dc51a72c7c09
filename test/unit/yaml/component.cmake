set(COMPONENT_TESTS
  document_test.cpp
  emit_test.cpp)
