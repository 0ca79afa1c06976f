"""Many ranks send calls to a host; all of them are killed, disks are full: every call has its row, or a word."""
