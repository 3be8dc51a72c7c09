# slurmlet_fuzzer(NAME FILE [ROOM room] [SOURCES file...])
#
# A libFuzzer program NAME from FILE with the room it tests, or with the few sources it needs (quicker
# to build than a room that depends on many). Included with SLURMLET_FUZZERS=ON,
# before the rooms: everything is then compiled for coverage feedback and with sanitizers. Run as
#   build/fuzz/NAME -max_total_time=60 NEW_INPUTS_DIRECTORY test/fuzz/corpus/...

if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "SLURMLET_FUZZERS needs clang with its libFuzzer; use: cmake --preset fuzz")
endif()

add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
  -fno-omit-frame-pointer)
add_link_options(-fsanitize=address,undefined)

function(slurmlet_fuzzer NAME FILE)
  cmake_parse_arguments(FUZZER "" "ROOM" "SOURCES" ${ARGN})
  list(TRANSFORM FUZZER_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/)
  add_executable(${NAME} ${PROJECT_SOURCE_DIR}/${FILE} ${FUZZER_SOURCES})
  target_include_directories(${NAME} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${NAME} PRIVATE slurmlet_warnings)
  if(FUZZER_ROOM)
    target_link_libraries(${NAME} PRIVATE slurmlet::${FUZZER_ROOM})
  endif()
  target_link_options(${NAME} PRIVATE -fsanitize=fuzzer)
endfunction()
