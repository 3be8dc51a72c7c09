# slurmlet_sources(OUT NAME ROOT FILE...): sets OUT to the files, or to files in the build directory that
# include SLURMLET_TOGETHER of them each: most of a file's compile time are its headers. Unlike those of
# CMAKE_UNITY_BUILD they name the sources as they are found below ROOT, an include directory, so that the compiler
# cache of one clone serves another.
set(SLURMLET_TOGETHER 0 CACHE STRING "So many files of a component are compiled as one; 0: each by itself")
function(slurmlet_sources OUT NAME ROOT)
  set(SOURCES ${ARGN})
  if(SLURMLET_TOGETHER GREATER 0)
    set(SOURCES "")
    set(TEXT "")
    set(COUNT 0)
    foreach(FILE ${ARGN} "")
      if(FILE)
        string(APPEND TEXT "#include \"${FILE}\"\n")
        math(EXPR COUNT "${COUNT} + 1")
        math(EXPR REST "${COUNT} % ${SLURMLET_TOGETHER}")
      endif()
      if(TEXT AND (NOT FILE OR REST EQUAL 0))
        set(TOGETHER ${PROJECT_BINARY_DIR}/together/${NAME}_${COUNT}.cpp)
        file(CONFIGURE OUTPUT ${TOGETHER} CONTENT "${TEXT}" @ONLY)
        list(APPEND SOURCES ${TOGETHER})
        set(TEXT "")
      endif()
    endforeach()
  else()
    list(TRANSFORM SOURCES PREPEND ${ROOT}/)
  endif()
  set(${OUT} ${SOURCES} PARENT_SCOPE)
endfunction()

set(SLURMLET_OPTIMISED "" CACHE STRING "Components with -O1 in a debug build: those whose tests simulate hours")

# slurmlet_component(NAME DEPENDS component... LIBRARIES target...)
#
# Reads src/NAME/component.cmake, which lists COMPONENT_SOURCES by hand (no globbing: a file that is not
# listed is not built), and test/unit/NAME/component.cmake, which lists COMPONENT_TESTS. The test program of a
# component links that component and GoogleTest only, so a missing edge shows at link time.
function(slurmlet_component NAME)
  cmake_parse_arguments(COMPONENT "" "" "DEPENDS;LIBRARIES" ${ARGN})
  set(COMPONENT_SOURCES "")
  include(${PROJECT_SOURCE_DIR}/src/${NAME}/component.cmake)
  list(TRANSFORM COMPONENT_SOURCES PREPEND ${NAME}/)
  slurmlet_sources(COMPONENT_SOURCES ${NAME} ${PROJECT_SOURCE_DIR}/src ${COMPONENT_SOURCES})
  add_library(slurmlet_${NAME} STATIC ${COMPONENT_SOURCES})
  add_library(slurmlet::${NAME} ALIAS slurmlet_${NAME})
  target_include_directories(slurmlet_${NAME} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(slurmlet_${NAME} PRIVATE SLURMLET_VERSION="${PROJECT_VERSION}")
  list(TRANSFORM COMPONENT_DEPENDS PREPEND slurmlet::)
  target_link_libraries(slurmlet_${NAME}
    PUBLIC ${COMPONENT_DEPENDS} ${COMPONENT_LIBRARIES} Threads::Threads
    PRIVATE slurmlet_warnings slurmlet_hardening)
  if(NAME IN_LIST SLURMLET_OPTIMISED)
    target_compile_options(slurmlet_${NAME} PRIVATE -O1)
  endif()

  if(SLURMLET_TESTS AND EXISTS ${PROJECT_SOURCE_DIR}/test/unit/${NAME}/component.cmake)
    set(COMPONENT_TESTS "")
    set(COMPONENT_TEST_LIBRARIES "")
    include(${PROJECT_SOURCE_DIR}/test/unit/${NAME}/component.cmake)
    list(TRANSFORM COMPONENT_TESTS PREPEND ${NAME}/)
    slurmlet_sources(COMPONENT_TESTS ${NAME}_test ${PROJECT_SOURCE_DIR}/test/unit ${COMPONENT_TESTS})
    add_executable(${NAME}_test ${COMPONENT_TESTS})
    target_include_directories(${NAME}_test PRIVATE ${PROJECT_SOURCE_DIR}/test/unit)
    target_link_libraries(${NAME}_test PRIVATE slurmlet::${NAME} slurmlet_fixtures GTest::gmock
      GTest::gtest_main slurmlet_warnings ${COMPONENT_TEST_LIBRARIES})
    slurmlet_test_program(${NAME}_test)
  endif()
endfunction()

# slurmlet_test_program(TARGET): two entries of ctest, half of the tests each, so that no long program runs
# alone at the end. A process for each test costs more than the tests; GoogleTest names the one that
# failed, or that ran when the program crashed. In an order of its own each time, so that no test needs
# another; the seed is at the top of the output.
#
# The tests' own code is compiled without UBSan and with line numbers only, which halves its compile time. What is
# tested keeps UBSan, and what packages are built with.
function(slurmlet_test_program TARGET)
  target_compile_options(${TARGET} PRIVATE -g1 -fno-sanitize=undefined)
  foreach(HALF 0 1)
    add_test(NAME ${TARGET}_${HALF} COMMAND ${TARGET} --gtest_shuffle)
    set_tests_properties(${TARGET}_${HALF} PROPERTIES LABELS unit TIMEOUT 600
      ENVIRONMENT "GTEST_TOTAL_SHARDS=2;GTEST_SHARD_INDEX=${HALF}")
  endforeach()
endfunction()

# slurmlet_corpus_test(NAME COMPONENT): what test/fuzz/NAME_fuzz.cpp asks of every input, asked of the corpus
# test/fuzz/corpus/NAME and of changes of it (test/fuzz/corpus_test.cpp), without libFuzzer.
function(slurmlet_corpus_test NAME COMPONENT)
  add_executable(${NAME}_corpus_test test/fuzz/corpus_test.cpp test/fuzz/${NAME}_fuzz.cpp)
  target_include_directories(${NAME}_corpus_test PRIVATE test/unit)
  target_compile_definitions(${NAME}_corpus_test PRIVATE SLURMLET_CORPUS="${NAME}")
  target_link_libraries(${NAME}_corpus_test PRIVATE slurmlet::${COMPONENT} slurmlet_fixtures GTest::gtest
    GTest::gtest_main slurmlet_warnings)
  slurmlet_test_program(${NAME}_corpus_test)
endfunction()

# slurmlet_embed(TARGET HEADER NAMESPACE NAME=FILE...): compiles the text of each file into the target, as the
# string_view NAME that HEADER declares. One that is edited has CMake run again.
function(slurmlet_embed TARGET HEADER NAMESPACE)
  set(TEXT "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\n")
  foreach(ENTRY ${ARGN})
    string(REGEX MATCH "^([^=]+)=(.+)$" MATCHED ${ENTRY})
    file(READ ${PROJECT_SOURCE_DIR}/${CMAKE_MATCH_2} CONTENT)
    string(APPEND TEXT "const std::string_view ${CMAKE_MATCH_1} = R\"embedded(${CONTENT})embedded\";\n\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
      ${PROJECT_SOURCE_DIR}/${CMAKE_MATCH_2})
  endforeach()
  string(APPEND TEXT "}  // namespace ${NAMESPACE}\n")
  set(EMBEDDED ${PROJECT_BINARY_DIR}/embedded/${TARGET}.cpp)
  file(CONFIGURE OUTPUT ${EMBEDDED} CONTENT "@TEXT@" @ONLY)
  target_sources(slurmlet_${TARGET} PRIVATE ${EMBEDDED})
endfunction()
