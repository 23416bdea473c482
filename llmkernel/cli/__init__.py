"""The command line: demo, doctor, install, uninstall, verify, bench."""
