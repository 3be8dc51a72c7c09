# slurmlet_fuzzer(NAME FILE [COMPONENT component] [SOURCES file...])
#
# A libFuzzer program NAME from FILE with the component it tests, or with the few sources it needs (quicker
# to build than a component that depends on many). Included with SLURMLET_FUZZERS=ON,
# before the components: everything is then compiled for coverage feedback and with sanitizers. Run as
#   build/fuzz/NAME -max_total_time=60 NEW_INPUTS_DIRECTORY test/fuzz/corpus/...

if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "SLURMLET_FUZZERS needs clang with its libFuzzer; use: cmake --preset fuzz")
endif()

add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
  -fno-omit-frame-pointer)
add_link_options(-fsanitize=address,undefined)

function(slurmlet_fuzzer NAME FILE)
  cmake_parse_arguments(FUZZER "" "COMPONENT" "SOURCES" ${ARGN})
  list(TRANSFORM FUZZER_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/)
  add_executable(${NAME} ${PROJECT_SOURCE_DIR}/${FILE} ${FUZZER_SOURCES})
  target_include_directories(${NAME} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${NAME} PRIVATE slurmlet_warnings)
  if(FUZZER_COMPONENT)
    target_link_libraries(${NAME} PRIVATE slurmlet::${FUZZER_COMPONENT})
  endif()
  target_link_options(${NAME} PRIVATE -fsanitize=fuzzer)
endfunction()
