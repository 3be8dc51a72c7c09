# What a package contains, for every distribution: packaging/debian and packaging/rpm add only what
# dpkg and RPM have names of their own for (licence, documents, scripts). Included after the target.

include(GNUInstallDirs)

set(SLURMLET_UNIT_DIR "${CMAKE_INSTALL_PREFIX}/lib/systemd/system" CACHE PATH
  "Directory of systemd's units")

install(TARGETS slurmlet RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR})

install(FILES systemd/slurmlet.service systemd/slurmlet.socket systemd/slurmlet-feed.service
  DESTINATION ${SLURMLET_UNIT_DIR})
install(FILES systemd/slurmlet.preset RENAME 80-slurmlet.preset
  DESTINATION lib/systemd/system-preset)
install(FILES systemd/slurmlet.sysusers RENAME slurmlet.conf DESTINATION lib/sysusers.d)
install(FILES systemd/slurmlet.tmpfiles RENAME slurmlet.conf DESTINATION lib/tmpfiles.d)

# For everybody to read, as the commands of every user do: it names files with secrets and holds none.
install(FILES packaging/config.yaml DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/slurmlet)

install(FILES packaging/man/slurmlet.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8)
install(FILES packaging/man/slurmlet.yaml.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
install(FILES packaging/completion/slurmlet.bash RENAME slurmlet
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
