# What a package contains, for every distribution: packaging/debian and packaging/rpm add only what
# dpkg and RPM have names of their own for (licence, documents, scripts). Included after the target.

include(GNUInstallDirs)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME daemon)

set(SLURMLET_UNIT_DIR "${CMAKE_INSTALL_PREFIX}/lib/systemd/system" CACHE PATH
  "Directory of systemd's units")

install(TARGETS slurmlet RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR})

install(FILES systemd/slurmlet.service systemd/slurmlet.socket systemd/slurmlet-detach.path
  systemd/slurmlet-detach.service DESTINATION ${SLURMLET_UNIT_DIR})
install(FILES systemd/slurmlet.preset RENAME 80-slurmlet.preset
  DESTINATION lib/systemd/system-preset)
install(FILES systemd/slurmlet.sysusers RENAME slurmlet.conf DESTINATION lib/sysusers.d)
install(FILES systemd/slurmlet.tmpfiles RENAME slurmlet.conf DESTINATION lib/tmpfiles.d)

# For everybody to read, as the commands of every user do: it names files with secrets and holds none.
install(FILES packaging/first-config.yaml RENAME config.yaml
  DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/slurmlet)
install(DIRECTORY DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/slurmlet/config.d)

install(FILES packaging/man/slurmlet.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8)
install(FILES packaging/man/slurmlet.yaml.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
install(FILES packaging/completion/slurmlet.bash RENAME slurmlet
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)

# A package of its own: it runs once per Slurm cluster and not on the compute nodes.
install(TARGETS slurmlet-operator RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR} COMPONENT operator)
install(FILES systemd/slurmlet-operator.service DESTINATION ${SLURMLET_UNIT_DIR} COMPONENT operator)
install(FILES systemd/slurmlet-operator.preset RENAME 80-slurmlet-operator.preset
  DESTINATION lib/systemd/system-preset COMPONENT operator)
install(FILES packaging/operator.yaml DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/slurmlet
  COMPONENT operator)
install(FILES packaging/man/slurmlet-operator.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8
  COMPONENT operator)
install(FILES packaging/completion/slurmlet.bash RENAME slurmlet-operator
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT operator)

# The documents of each package as they lie here, so that their links lead somewhere; pictures of
# measurements stay here. Compute nodes get no manifests that only the cluster's side needs.
function(slurmlet_documents COMPONENT PACKAGE)
  set(DIRECTORY ${CMAKE_INSTALL_DATADIR}/doc/${PACKAGE})
  foreach(PART IN LISTS ARGN)
    set(LEFT_OUT ${LEFT_OUT} PATTERN ${PART} EXCLUDE)
  endforeach()
  install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md DESTINATION ${DIRECTORY}
    COMPONENT ${COMPONENT})
  install(DIRECTORY docs deploy DESTINATION ${DIRECTORY} COMPONENT ${COMPONENT} ${LEFT_OUT})
  install(DIRECTORY packaging/cloud-init DESTINATION ${DIRECTORY}/packaging COMPONENT ${COMPONENT})
endfunction()
slurmlet_documents(daemon slurmlet plots autoscaling charts grafana operator)
slurmlet_documents(operator slurmlet-operator plots)
install(FILES packaging/config.yaml DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/slurmlet/examples)
