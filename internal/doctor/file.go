package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// file checks the ledger's file and its disk.
func (e *exam) file(path string) {
	whole, err := filepath.Abs(path)
	relative := err == nil && !filepath.IsAbs(path)
	e.judge(path, []check{{relative, Warning, "ledger-relative", "its path " +
		"depends on the folder in which a program starts: from here it is " + whole,
		"cron and systemd start programs elsewhere, where they would find another file, or " +
			"create an empty one", "ledger: sqlite://" + whole}})
	e.rights(path, "can change the spending, or replace the ledger with an empty one")
	disk, ok := diskOf(filepath.Dir(path))
	level, low := lowDisk(disk.free, e.MinFree)
	e.judge(path, []check{
		{legacyJournal(path), Warning, "sqlite-journal", "its journal mode is not WAL: another " +
			"program changed it", "readers and writers block each other, and a copy of the file " +
			"may be inconsistent",
			"the next charge sets it back; let nothing else write to the file"},
		{disk.network != "", Error, "sqlite-filesystem", "it is on a network file system (" +
			disk.network + ")",
			"SQLite's locks do not hold there: two machines can spend the same units",
			"move it to a local disk, or keep the ledger on Redis (docs/redis.md)"},
		{ok && low, level, "disk", size(disk.free) + " are free on its disk",
			"once it is full, every charge is denied", "free some space there"},
	})
	if ok {
		e.Facts = append(e.Facts, fmt.Sprintf(
			"ledger: SQLite file %s; %s free; a crash loses no charges", path, size(disk.free)))
	}
}

// full is the free space, in bytes, below which a charge may fail: a transaction writes some pages
// of 4 KiB, and the files next to it grow.
const full = 1 << 20

// lowDisk reports whether too little space is free, and the level of that.
func lowDisk(free, minimum int64) (Level, bool) {
	if free < full {
		return Error, true
	}
	return Warning, free < minimum
}

// disk is the disk of a file.
type disk struct {
	free    int64  // bytes
	network string // kind of network file system, "" if it is local
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

// rights reports a file that other users can write or replace, and what such a user can do. It
// follows links.
func (e *exam) rights(path, can string) {
	about, err := filepath.Abs(path)
	if err != nil {
		return
	}
	why := "a user who can write it " + can
	mode, open := writable(about)
	if !mode.IsRegular() { // such as /dev/null, which stands for an empty configuration
		return
	}
	if open {
		e.add(Finding{Warning, "file-rights", about, fmt.Sprintf("other users can write %s "+
			"(mode %04o)", path, mode.Perm()), why, "chmod o-w " + about})
	}
	target, err := filepath.EvalSymlinks(about)
	if err != nil {
		target = about
	}
	checked := map[string]bool{}
	for _, file := range []string{about, target} {
		dir := filepath.Dir(file)
		for at := dir; !checked[at]; at = filepath.Dir(at) {
			checked[at] = true
			// with the sticky bit, users cannot rename other users' files, but can create a missing
			// one
			mode, open := writable(at)
			if sticky := mode&fs.ModeSticky != 0; open && (at == dir || !sticky) {
				e.add(Finding{Warning, "file-rights", about, fmt.Sprintf("other users can write "+
					"its folder %s (mode %04o)", at, mode.Perm()), why, "chmod o-w " + at})
			}
		}
	}
}

// writable reports whether users other than the owner and the group can write a file or folder. The
// group may: that is how several users share a ledger.
func writable(path string) (fs.FileMode, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	return info.Mode(), info.Mode()&0o002 != 0
}
