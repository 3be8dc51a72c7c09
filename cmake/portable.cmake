# The libraries of SLURMLET_PORTABLE (packaging/portable/libraries.sh), which are static and need no looking for.

find_package(Threads REQUIRED)

function(slurmlet_static name target)
  add_library(${target} STATIC IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${SLURMLET_PORTABLE}/lib/lib${name}.a
    INTERFACE_INCLUDE_DIRECTORIES ${SLURMLET_PORTABLE}/include)
  target_link_libraries(${target} INTERFACE ${ARGN})
endfunction()

slurmlet_static(crypto OpenSSL::Crypto Threads::Threads)
slurmlet_static(ssl OpenSSL::SSL OpenSSL::Crypto)
slurmlet_static(curl CURL::libcurl OpenSSL::SSL)
target_compile_definitions(CURL::libcurl INTERFACE CURL_STATICLIB)
slurmlet_static(yaml slurmlet::libyaml)
slurmlet_static(fmt slurmlet::fmt)
foreach(header_only nlohmann_json::nlohmann_json spdlog::spdlog_header_only slurmlet::httplib)
  add_library(${header_only} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${header_only} SYSTEM INTERFACE ${SLURMLET_PORTABLE}/include)
endforeach()
target_compile_definitions(spdlog::spdlog_header_only INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(slurmlet::httplib INTERFACE OpenSSL::SSL Threads::Threads)
