# Everything slurmlet takes from the distribution. Debian 12 names in ./dev, EPEL 9 names in
# packaging/rpm/slurmlet.spec. Nothing is downloaded or vendored.

find_package(Threads REQUIRED)
find_package(CURL REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(nlohmann_json 3.9 REQUIRED)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(PkgConfig REQUIRED)

pkg_check_modules(LIBYAML REQUIRED IMPORTED_TARGET yaml-0.1)
add_library(slurmlet_libyaml INTERFACE)
target_link_libraries(slurmlet_libyaml INTERFACE PkgConfig::LIBYAML)
add_library(slurmlet::libyaml ALIAS slurmlet_libyaml)

# Its header-only form would take twice as long to compile.
add_library(slurmlet_fmt INTERFACE)
target_link_libraries(slurmlet_fmt INTERFACE fmt::fmt)
add_library(slurmlet::fmt ALIAS slurmlet_fmt)

# cpp-httplib: Debian 12 ships a compiled library with a .pc file, EPEL 9 a header with a CMake
# package.
add_library(slurmlet_httplib INTERFACE)
find_package(httplib QUIET)
if(httplib_FOUND)
  target_link_libraries(slurmlet_httplib INTERFACE httplib::httplib)
else()
  pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
  target_link_libraries(slurmlet_httplib INTERFACE PkgConfig::HTTPLIB Threads::Threads)
endif()
add_library(slurmlet::httplib ALIAS slurmlet_httplib)

if(SLURMLET_TESTS)
  find_package(GTest REQUIRED)
endif()
