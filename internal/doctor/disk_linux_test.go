package doctor

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNetwork recognizes network file systems by name, and a missing folder by its parent's file
// system.
func TestNetwork(t *testing.T) {
	for kind, want := range map[int64]string{unix.NFS_SUPER_MAGIC: "NFS",
		unix.SMB2_SUPER_MAGIC: "SMB", -(1<<32 - unix.SMB2_SUPER_MAGIC): "SMB", // of 32 bits
		unix.CIFS_SUPER_MAGIC: "SMB", unix.V9FS_MAGIC: "9p", unix.EXT4_SUPER_MAGIC: "",
		unix.TMPFS_MAGIC: "", unix.OVERLAYFS_SUPER_MAGIC: ""} {
		if got := network(kind); got != want {
			t.Errorf("%#x: %q, want %q", kind, got, want)
		}
	}
	dir := t.TempDir()
	there, ok := diskOf(dir)
	later, ok2 := diskOf(dir + "/not/yet")
	if !ok || !ok2 || there.network != later.network || there.free == 0 {
		t.Errorf("%+v %v, %+v %v", there, ok, later, ok2)
	}
	if _, err := os.Stat("/dev/shm"); err == nil {
		if d, ok := diskOf("/dev/shm"); !ok || d.network != "" {
			t.Errorf("/dev/shm: %+v", d)
		}
	}
}

// A disk without room for a charge is an error, whatever the minimum is.
func TestLowDisk(t *testing.T) {
	t.Parallel()
	for free, want := range map[int64]Level{0: Error, full - 1: Error, full: Warning, 1 << 40: ""} {
		level, low := lowDisk(free, 1<<30)
		if low != (want != "") || low && level != want {
			t.Errorf("%d bytes are free: %s %v, want %s", free, level, low, want)
		}
	}
	if _, low := lowDisk(full-1, 0); !low {
		t.Error("a full disk is right for a minimum of 0")
	}
}
