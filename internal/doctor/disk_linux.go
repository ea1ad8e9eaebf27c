package doctor

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// diskOf examines the file system of a folder, or the one it will be created in.
func diskOf(dir string) (disk, bool) {
	var at unix.Statfs_t
	for unix.Statfs(dir, &at) != nil {
		if dir == filepath.Dir(dir) {
			return disk{}, false
		}
		dir = filepath.Dir(dir)
	}
	return disk{int64(at.Bavail) * int64(at.Bsize), network(int64(at.Type))}, true
}

// network returns the name of a network file system, on which locks do not hold between machines,
// by its magic number (statfs(2)).
func network(kind int64) string {
	return map[int64]string{
		unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB",
		unix.CIFS_SUPER_MAGIC: "SMB", unix.V9FS_MAGIC: "9p", unix.CEPH_SUPER_MAGIC: "Ceph",
		unix.AFS_SUPER_MAGIC: "AFS", unix.CODA_SUPER_MAGIC: "Coda",
	}[kind&0xffffffff]
}
