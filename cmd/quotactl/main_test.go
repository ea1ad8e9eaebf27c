package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"quotabudget/internal/cli/clitest"
	"quotabudget/internal/ledger/redistest"
)

func TestMain(m *testing.M) {
	// otherwise the race detector delays the end of the hidden command request by a second
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	testscript.Main(clitest.Main{M: m, Packages: []string{"quotabudget/cmd/quotactl"}},
		map[string]func(){"quotactl": main, "request": request})
}

// TestScripts runs every script on its own SQLite ledger.
func TestScripts(t *testing.T) {
	dir, err := filepath.Abs("testdata") // call changes the working directory
	must(t, err)
	testscript.Run(t, testscript.Params{Dir: dir, Setup: setup, Cmds: commands(t)})
}

// TestScriptsOnRedis repeats the scripts that change the ledger, each on its own database of a
// Redis server.
func TestScriptsOnRedis(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Args: []string{"--databases", "64"}})
	var database atomic.Int64
	var files []string
	for _, name := range []string{"spend", "denied", "reserve", "log", "suspend", "ledger_check",
		"exec", "exec_once", "adjust", "labels"} {
		files = append(files, filepath.Join("testdata", name+".txt"))
	}
	testscript.Run(t, testscript.Params{Files: files, Cmds: commands(t),
		Setup: func(e *testscript.Env) error {
			url := strings.TrimSuffix(server.URL(), "0")
			e.Setenv("QUOTA_LEDGER", url+strconv.FormatInt(database.Add(1), 10))
			return setup(e)
		}})
}

func setup(e *testscript.Env) error {
	e.Setenv("HOME", e.WorkDir+"/home")
	e.Setenv("QUOTA_STATE_DIR", e.WorkDir+"/state")
	e.Setenv("GORACE", os.Getenv("GORACE"))
	return nil
}

func commands(t *testing.T) map[string]func(*testscript.TestScript, bool, []string) {
	// redis ARG...: starts a server with the arguments, and makes it the ledger.
	redis := func(ts *testscript.TestScript, _ bool, args []string) {
		server := redistest.Start(t, redistest.Options{Args: args})
		ts.Setenv("QUOTA_LEDGER", server.URL())
		ts.Setenv("REDIS", server.Addr)
	}
	return map[string]func(*testscript.TestScript, bool, []string){"exit": clitest.Exit,
		"call": callHere, "capture": capture, "newer": newer, "redis": redis, "spoil": spoil}
}

// calling is locked while callHere runs, because it changes the working directory.
var calling sync.Mutex

// callHere implements call CODE ARG...: it runs the program in this process, which is faster than a
// new process, with the environment and the folder of the script. The exit code must be CODE.
func callHere(ts *testscript.TestScript, neg bool, args []string) {
	calling.Lock()
	defer calling.Unlock()
	before, err := os.Getwd()
	ts.Check(errors.Join(err, os.Chdir(ts.MkAbs("."))))
	defer os.Chdir(before)
	code := run(context.Background(), args[1:], ts.Stdout(), ts.Stderr(), ts.Getenv)
	if neg || strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// capture implements capture NAME REGEXP: it sets the variable to the text that the expression's
// group matches in the last standard output.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture NAME REGEXP")
	}
	found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("no %s in %s", args[1], ts.ReadFile("stdout"))
	}
	ts.Setenv(args[0], found[1])
}

// newer implements newer FILE: it marks the ledger as migrated by a later version. The program
// already contains the driver.
func newer(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.Exec("pragma user_version = 1000")
	ts.Check(errors.Join(err, db.Close()))
}

// call runs the program in this process, with its own environment.
func call(t *testing.T, args []string, pairs ...string) (code int, stdout, stderr string) {
	t.Helper()
	home := t.TempDir()
	t.Chdir(home)
	getenv := func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		if name == "HOME" {
			return home
		}
		return ""
	}
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs, getenv)
	return code, out.String(), errs.String()
}

// TestOutputFails: a command fails if its result cannot be written.
func TestOutputFails(t *testing.T) {
	t.Chdir(t.TempDir())
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	must(t, err)
	defer full.Close()
	home := t.TempDir()
	getenv := func(name string) string { return map[string]string{"HOME": home}[name] }
	for _, args := range []string{"costs", "costs -o json", "config check", "status", "log",
		"log -o csv"} {
		var errs bytes.Buffer
		code := run(t.Context(), strings.Fields(args), full, &errs, getenv)
		if code != 1 || strings.Count(errs.String(), "no space left") != 1 {
			t.Errorf("%s: exit code %d: %s", args, code, errs.String())
		}
	}
}

// must ends a test after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
