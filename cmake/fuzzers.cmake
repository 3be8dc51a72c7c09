# slurmlet_fuzzer(NAME ROOM FILE)
#
# A libFuzzer program NAME from FILE that links the room ROOM. Included with SLURMLET_FUZZERS=ON,
# before the rooms: everything is then compiled for coverage feedback and with sanitizers. Run as
#   build/fuzz/NAME -max_total_time=60 NEW_INPUTS_DIRECTORY test/fuzz/corpus/...

if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "SLURMLET_FUZZERS needs clang with its libFuzzer; use: cmake --preset fuzz")
endif()

add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
  -fno-omit-frame-pointer)
add_link_options(-fsanitize=address,undefined)

function(slurmlet_fuzzer NAME ROOM FILE)
  add_executable(${NAME} ${PROJECT_SOURCE_DIR}/${FILE})
  target_link_libraries(${NAME} PRIVATE slurmlet::${ROOM} slurmlet_warnings)
  target_link_options(${NAME} PRIVATE -fsanitize=fuzzer)
endfunction()
