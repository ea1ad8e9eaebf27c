package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// files checks the rights of the files that set limits and commands.
func (e *exam) files() {
	for _, path := range []string{e.Config.File, e.Config.CostsFile} {
		if path != "" {
			e.rights(path, "can raise limits, and change the commands that jobs run")
		}
	}
}

// rights reports a file that other users can write or replace. It follows links.
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

// writable reports whether users other than the owner and the group can write a file or folder. A
// group may: several users share a ledger by it.
func writable(path string) (fs.FileMode, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	return info.Mode(), info.Mode()&0o002 != 0
}
