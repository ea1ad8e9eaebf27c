//go:build unix

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain runs visit instead of the tests if NOTEBOOK is set, so that tests can start processes.
func TestMain(m *testing.M) {
	path := os.Getenv("NOTEBOOK")
	if path == "" {
		os.Exit(m.Run())
	}
	os.Exit(visit(path, os.Getenv("NOTEBOOK_DO")))
}

// Exit codes of visit.
const (
	visitFailed = iota + 1
	openFailed
	openReadOnly
)

// visit opens a file and does one of these: "" writes one note, "read" prints the number of
// notes, and "hold" stays in a transaction until its input ends. Any other text is written as a
// note again and again until the process is killed.
func visit(path, what string) int {
	ctx, open := context.Background(), Open
	switch what {
	case "read":
		open = OpenReading
	case "":
		io.Copy(io.Discard, os.Stdin) // the end of the input is the start signal
	}
	db, err := open(ctx, path, notes())
	if err != nil {
		fmt.Println(err)
		if errors.Is(err, ErrReadOnly) {
			return openReadOnly
		}
		return openFailed
	}
	switch what {
	case "":
		err = db.Update(ctx, insert(fmt.Sprint(os.Getpid())))
	case "read":
		var n int
		err = db.Read.QueryRow("SELECT count(*) FROM notes").Scan(&n)
		fmt.Println(n, "notes")
	case "hold":
		err = db.Update(ctx, func(tx *sql.Tx) error {
			err := insert("never")(tx)
			fmt.Println("writing")
			io.Copy(io.Discard, os.Stdin)
			return err
		})
	default:
		for err == nil {
			err = db.Update(ctx, insert(what))
		}
	}
	if err := errors.Join(err, db.Close()); err != nil {
		fmt.Println(err)
		return visitFailed
	}
	return 0
}

// process returns a process that runs visit on path.
func process(t *testing.T, path, what string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "NOTEBOOK="+path, "NOTEBOOK_DO="+what)
	return cmd
}

// startHolder starts a process and returns once it is in a transaction, which ends with the test.
func startHolder(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	must(t, err)
	t.Cleanup(func() { stdin.Close() })
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var word string
	if _, err := fmt.Fscanln(stdout, &word); err != nil || word != "writing" {
		t.Fatal(word, err)
	}
}

// TestTurnsAreFair: 16 processes that write without a pause all get their turns. One of them is
// killed in between, which may happen during its turn.
func TestTurnsAreFair(t *testing.T) {
	const processes, each = 16, 100
	db := mustOpen(t, filepath.Join(t.TempDir(), "n.db"))
	var running []*exec.Cmd
	defer func() {
		for _, cmd := range running {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}()
	for i := range processes {
		cmd := process(t, db.Path(), fmt.Sprint(i))
		must(t, cmd.Start())
		running = append(running, cmd)
	}
	// until waits for a number of notes after a given one, by a number of processes.
	until := func(authors, notes, after int) (newest int) {
		for {
			var a, n int
			if err := db.Read.QueryRow("SELECT count(DISTINCT text), count(*), "+
				"coalesce(max(id), 0) FROM notes WHERE id > ?", after).Scan(&a, &n, &newest); err != nil {
				t.Fatal(err)
			}
			if a >= authors && n >= notes {
				return newest
			}
			runtime.Gosched()
		}
	}
	start := until(processes, processes, 1) // the first note is from the migration
	must(t, running[0].Process.Kill())
	end := until(1, (processes-1)*each, start)
	for i := 1; i < processes; i++ {
		var n int
		if err := db.Read.QueryRow("SELECT count(*) FROM notes WHERE text = ? AND id > ? AND id <= ?",
			fmt.Sprint(i), start, end).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n < each/4 {
			t.Errorf("process %d wrote %d of %d notes", i, n, end-start)
		}
	}
}

// TestHolderIsStopped: while a writer is stopped, others time out, and may give up earlier. When
// it is killed, they go on.
func TestHolderIsStopped(t *testing.T) {
	db := mustOpen(t, filepath.Join(t.TempDir(), "n.db"))
	db.patience = 300 * time.Millisecond
	cmd := process(t, db.Path(), "hold")
	startHolder(t, cmd)
	must(t, cmd.Process.Signal(syscall.SIGSTOP))
	checkError(t, db.Update(t.Context(), insert("x")), ErrBusy, db.Path())
	db.patience = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := db.Update(ctx, insert("x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who leaves: %v", err)
	}
	must(t, cmd.Process.Kill())
	if err := db.Update(t.Context(), insert("second")); err != nil {
		t.Error(err)
	}
	cmd.Wait()
	if n := count(t, db.Read); n != 2 {
		t.Errorf("%d notes, want 2", n)
	}
}

func TestProcessesOpenANewFileAtOnce(t *testing.T) {
	const processes, rounds = 6, 5
	for round := range rounds {
		path := filepath.Join(t.TempDir(), fmt.Sprint(round), "n.db")
		openAtOnce(t, path, processes)
		if n := count(t, mustOpen(t, path).Read); n != 1+processes {
			t.Fatalf("%d notes, want %d", n, 1+processes)
		}
	}
}

func openAtOnce(t *testing.T, path string, processes int) {
	t.Helper()
	start, startWriter, err := os.Pipe()
	must(t, err)
	running := make([]*exec.Cmd, processes)
	outputs := make([]strings.Builder, processes)
	for i := range running {
		running[i] = process(t, path, "")
		running[i].Stdin, running[i].Stdout, running[i].Stderr = start, &outputs[i], &outputs[i]
		must(t, running[i].Start())
	}
	startWriter.Close()
	for i := range running {
		if err := running[i].Wait(); err != nil {
			t.Errorf("process %d: %v: %s", i, err, outputs[i].String())
		}
	}
	start.Close()
}

// TestPermissions runs in a process without the rights of root, which ignores permission bits: a
// read-only file cannot be written, and can be read.
func TestPermissions(t *testing.T) {
	for _, c := range []struct {
		name      string
		file, dir os.FileMode
		open      bool   // by another process, which has written a second note
		read      string // "" if reading is not possible either
	}{
		{"the file", 0o444, 0o777, false, "1 notes\n"},
		{"the directory", 0o666, 0o555, false, "1 notes\n"},
		{"both", 0o444, 0o555, false, "1 notes\n"},
		{"both, while somebody writes", 0o644, 0o755, true, "2 notes\n"},
		{"the file, while it is open", 0o444, 0o777, true, "2 notes\n"},
		{"nothing to be read", 0, 0o777, false, ""},
		{"a directory without the file", 0, 0o555, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := publicDir(t)
			path := filepath.Join(top, "d", "n.db")
			must(t, os.Mkdir(filepath.Dir(path), 0o777))
			if c.read != "" || c.dir == 0o777 {
				must(t, os.WriteFile(path, closed(t), 0o644))
				if c.open {
					db := mustOpen(t, path)
					must(t, db.Update(t.Context(), insert("second")))
				}
				chmod(t, path, c.file)
			}
			chmod(t, filepath.Dir(path), c.dir)
			defer chmod(t, filepath.Dir(path), 0o777)
			if c.read != "" {
				output, code := runUnprivileged(t, top, path, "read")
				if code != 0 || output != c.read {
					t.Errorf("reading: exit %d, %s", code, output)
				}
			}
			output, code := runUnprivileged(t, top, path, "")
			if code != openReadOnly || !strings.Contains(output, path) ||
				!strings.Contains(output, ErrReadOnly.Error()) {
				t.Errorf("writing: exit %d, %s", code, output)
			}
		})
	}
}

// publicDir returns a directory that every user can enter, unlike t.TempDir.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sqlite")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	chmod(t, dir, 0o755)
	return dir
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	must(t, os.Chmod(path, mode))
}

// runUnprivileged runs visit as the user nobody if this process is root, and as the same user
// otherwise.
func runUnprivileged(t *testing.T, dir, path, what string) (output string, code int) {
	t.Helper()
	cmd := processAs(t, dir, path, syscall.Credential{Uid: 65534, Gid: 65534}, what)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// processAs returns a process that runs visit: as another user if this process is root, otherwise
// as the same one. By its umask, only its user can access the files it creates.
func processAs(t *testing.T, dir, path string, user syscall.Credential, what string) *exec.Cmd {
	t.Helper()
	binary, err := os.ReadFile(os.Args[0])
	must(t, err)
	program := filepath.Join(dir, "program") // other users may not enter this program's folder
	if _, err := os.Stat(program); err != nil {
		must(t, os.WriteFile(program, binary, 0o755))
	}
	cmd := process(t, path, what)
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "umask 077; exec " + program}
	cmd.Dir = dir
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &user}
	}
	return cmd
}

// TestTwoUsers: the members of a group share a file in a setgid folder of the group, whatever
// their umask, and even if one of them is killed and leaves a log.
func TestTwoUsers(t *testing.T) {
	const group = 60321
	top := publicDir(t)
	path := filepath.Join(top, "d", "n.db")
	must(t, os.Mkdir(filepath.Dir(path), 0o700))
	if os.Getuid() == 0 {
		must(t, os.Chown(filepath.Dir(path), 0, group))
	}
	chmod(t, filepath.Dir(path), 0o770|os.ModeSetgid)
	alice := syscall.Credential{Uid: 60322, Gid: 60322, Groups: []uint32{group}}
	bob := syscall.Credential{Uid: 60323, Gid: 60323, Groups: []uint32{group}}

	killed := processAs(t, top, path, alice, "hold")
	startHolder(t, killed)
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		must(t, err)
		if got := info.Mode().Perm(); got != 0o660 {
			t.Errorf("%s has mode %o, want 660", name, got)
		}
	}
	if out, err := processAs(t, top, path, bob, "read").Output(); string(out) != "1 notes\n" {
		t.Errorf("a reader beside a writer: %s%v", out, err)
	}
	must(t, killed.Process.Kill())
	killed.Wait()
	for _, user := range []syscall.Credential{bob, alice} {
		if out, err := processAs(t, top, path, user, "").CombinedOutput(); err != nil {
			t.Errorf("user %d: %v: %s", user.Uid, err, out)
		}
	}
}

func mustRead(t *testing.T, path string) *DB {
	t.Helper()
	db, err := OpenReading(t.Context(), path, notes())
	return opened(t, db, err)
}

// TestReadingBesideAWriter: a reader sees the last commit, and cannot write.
func TestReadingBesideAWriter(t *testing.T) {
	writer := mustOpen(t, filepath.Join(t.TempDir(), "n.db"))
	reader := mustRead(t, writer.Path())
	must(t, writer.Update(t.Context(), insert("second")))
	if n := count(t, reader.Read); n != 2 {
		t.Errorf("%d notes, want 2", n)
	}
	checkError(t, reader.Update(t.Context(), insert("x")), ErrReadOnly, writer.Path())
}

// TestReadingCreatesNothing: neither the file nor its directory.
func TestReadingCreatesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	path := filepath.Join(dir, "n.db")
	_, err := OpenReading(t.Context(), path, notes())
	if !errors.Is(err, fs.ErrNotExist) || strings.Count(err.Error(), path) != 1 {
		t.Errorf("no file: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory was made: %v", err)
	}
	dir = t.TempDir()
	_, err = OpenReading(t.Context(), dir, notes())
	checkError(t, err, ErrNotDatabase, dir)
}

// TestReadingAnOlderFile: OpenReading migrates an older file.
func TestReadingAnOlderFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.db")
	must(t, openAs(t, path, older()).Close())
	if n := count(t, mustRead(t, path).Read); n != 1 {
		t.Errorf("%d notes after migration 2, want 1", n)
	}
}

// TestStill: Still reports a file that was moved, deleted or replaced after it was opened.
func TestStill(t *testing.T) {
	db := mustOpen(t, filepath.Join(t.TempDir(), "n.db"))
	if err := db.Still(); err != nil {
		t.Error(err)
	}
	must(t, os.Rename(db.Path(), db.Path()+".old"))
	checkError(t, db.Still(), ErrGone, db.Path())
	must(t, os.WriteFile(db.Path(), closed(t), 0o600))
	checkError(t, db.Still(), ErrGone, db.Path())
	must(t, os.Rename(db.Path()+".old", db.Path()))
	if err := db.Still(); err != nil {
		t.Errorf("put back: %v", err)
	}
}
