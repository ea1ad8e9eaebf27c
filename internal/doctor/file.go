package doctor

import (
	"fmt"
	"os"
	"path/filepath"
)

// file looks at the file that keeps the ledger, and at its disk.
func (e *exam) file(path string) {
	about := path
	if whole, err := filepath.Abs(path); err == nil && whole != path {
		e.add(Finding{Warning, "ledger-relative", about, "its path depends on the folder that a " +
			"program is started in: from here it is " + whole,
			"cron and systemd start programs elsewhere, where they would find another file, or " +
				"make one, in which nothing is spent", "ledger: sqlite://" + whole})
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o002 != 0 {
		e.add(Finding{Warning, "file-rights", about, fmt.Sprintf("other users can write it (mode "+
			"%04o)", info.Mode().Perm()), "whoever can write it can change what was spent",
			"chmod o-w " + path})
	}
	if legacyJournal(path) {
		e.add(Finding{Warning, "sqlite-journal", about,
			"its journal mode is not WAL: another program changed it",
			"readers and writers block each other, and a copy of the file may be inconsistent",
			"the next charge sets it back; let nothing else write to the file"})
	}
	disk, ok := diskOf(filepath.Dir(path))
	if !ok {
		return
	}
	if disk.network != "" {
		e.add(Finding{Error, "sqlite-filesystem", about,
			"it is on a network file system (" + disk.network + ")",
			"SQLite's locks do not hold there: two machines can spend the same units",
			"move it to a local disk, or keep the ledger on Redis (docs/redis.md)"})
	}
	if disk.free < e.MinFree {
		e.add(Finding{Warning, "disk", about, size(disk.free) + " are free on its disk",
			"once it is full, every charge is denied", "free some space there"})
	}
	e.Facts = append(e.Facts, fmt.Sprintf(
		"ledger: SQLite file %s; %s free; a crash forgets nothing", path, size(disk.free)))
}

// disk is where a file is kept.
type disk struct {
	free    int64  // bytes
	network string // the kind of file system, of one between machines
}

// legacyJournal reads the journal mode in the header of an SQLite file: 2 is WAL.
func legacyJournal(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var header [20]byte
	n, _ := f.ReadAt(header[:], 0)
	return n == len(header) && header[18] == 1
}

func size(bytes int64) string {
	if bytes >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}
