# slurmlet_room(NAME DEPENDS room... LIBRARIES target...)
#
# Reads src/NAME/room.cmake, which lists ROOM_SOURCES by hand (no globbing: a file that is not
# listed is not built), and test/NAME/room.cmake, which lists ROOM_TESTS. The test program of a
# room links that room and GoogleTest only, so a missing edge shows at link time.
function(slurmlet_room NAME)
  cmake_parse_arguments(ROOM "" "" "DEPENDS;LIBRARIES" ${ARGN})
  set(ROOM_SOURCES "")
  include(${PROJECT_SOURCE_DIR}/src/${NAME}/room.cmake)
  list(TRANSFORM ROOM_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/src/${NAME}/)
  add_library(slurmlet_${NAME} STATIC ${ROOM_SOURCES})
  add_library(slurmlet::${NAME} ALIAS slurmlet_${NAME})
  target_include_directories(slurmlet_${NAME} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(slurmlet_${NAME} PRIVATE SLURMLET_VERSION="${PROJECT_VERSION}")
  list(TRANSFORM ROOM_DEPENDS PREPEND slurmlet::)
  target_link_libraries(slurmlet_${NAME}
    PUBLIC ${ROOM_DEPENDS} ${ROOM_LIBRARIES} Threads::Threads
    PRIVATE slurmlet_warnings slurmlet_hardening)

  if(SLURMLET_TESTS AND EXISTS ${PROJECT_SOURCE_DIR}/test/${NAME}/room.cmake)
    set(ROOM_TESTS "")
    include(${PROJECT_SOURCE_DIR}/test/${NAME}/room.cmake)
    list(TRANSFORM ROOM_TESTS PREPEND ${PROJECT_SOURCE_DIR}/test/${NAME}/)
    add_executable(${NAME}_test ${ROOM_TESTS})
    target_include_directories(${NAME}_test PRIVATE ${PROJECT_SOURCE_DIR}/test)
    target_link_libraries(${NAME}_test PRIVATE slurmlet::${NAME} slurmlet_fixtures GTest::gmock
      GTest::gtest_main slurmlet_warnings)
    slurmlet_test_program(${NAME}_test)
  endif()
endfunction()

# slurmlet_test_program(TARGET): one entry of ctest. A process for each test costs more than the tests;
# GoogleTest names the one that failed, or that ran when the program crashed. In an order of its own
# each time, so that no test needs another; the seed is at the top of the output.
function(slurmlet_test_program TARGET)
  add_test(NAME ${TARGET} COMMAND ${TARGET} --gtest_shuffle)
  set_tests_properties(${TARGET} PROPERTIES LABELS unit TIMEOUT 600)
endfunction()

# slurmlet_corpus_test(NAME ROOM): what test/fuzz/NAME_fuzz.cpp asks of every input, asked of the corpus
# test/fuzz/corpus/NAME and of changes of it (test/fuzz/corpus_test.cpp), without clang.
function(slurmlet_corpus_test NAME ROOM)
  add_executable(${NAME}_corpus_test test/fuzz/corpus_test.cpp test/fuzz/${NAME}_fuzz.cpp)
  target_include_directories(${NAME}_corpus_test PRIVATE test)
  target_compile_definitions(${NAME}_corpus_test PRIVATE SLURMLET_CORPUS="${NAME}")
  target_link_libraries(${NAME}_corpus_test PRIVATE slurmlet::${ROOM} slurmlet_fixtures GTest::gtest
    GTest::gtest_main slurmlet_warnings)
  slurmlet_test_program(${NAME}_corpus_test)
endfunction()
