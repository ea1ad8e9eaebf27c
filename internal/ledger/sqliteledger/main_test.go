package sqliteledger

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"quotabudget/internal/quota"
)

var rawSchema = fstest.MapFS{"001.sql": {Data: []byte("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT) STRICT")}}

// childOf, in the environment, makes this binary a process that charges on the ledger named there.
const (
	childOf    = "SQLITELEDGER_TEST_CHILD"
	childLimit = "SQLITELEDGER_TEST_LIMIT"
	inFlight   = 4 // goroutines of a child
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childOf); path != "" {
		if err := child(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child waits for the end of its input, then charges single units until it is denied, and prints
// the ID of every charge once it was told that it is allowed.
func child(path string) error {
	units, err := strconv.ParseInt(os.Getenv(childLimit), 10, 64)
	if err != nil {
		return err
	}
	l, err := Open(context.Background(), path)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, inFlight)
	for i := range inFlight {
		wg.Go(func() { errs[i] = chargeUntilDenied(l, day(units)) })
	}
	wg.Wait()
	return errors.Join(append(errs, l.Close())...)
}

func chargeUntilDenied(l *Ledger, limits []quota.Limit) error {
	for {
		c := aCharge(1, limits)
		d, err := l.Charge(context.Background(), c)
		if err != nil || !d.Allowed {
			return err
		}
		if _, err := os.Stdout.WriteString(c.ID + "\n"); err != nil {
			return err
		}
	}
}

// process is a running child.
type process struct {
	*exec.Cmd
	start io.Closer
	lines *bufio.Scanner
}

func startChild(t *testing.T, path string, units int64) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childOf+"="+path, childLimit+"="+strconv.FormatInt(units, 10))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, stdin, bufio.NewScanner(stdout)}
	if !p.lines.Scan() || p.lines.Text() != "ready" {
		cmd.Wait()
		t.Fatalf("child: %q, %s", p.lines.Text(), stderr.String())
	}
	return p
}

func day(units int64) []quota.Limit {
	return []quota.Limit{{Bucket: "default", Units: units, Window: quota.Sliding(24 * time.Hour)}}
}

func open(t *testing.T, path string) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "ledger.db") }

// log reads all entries and checks that they add up.
func log(t *testing.T, l *Ledger) []quota.Entry {
	t.Helper()
	entries, err := l.Entries(t.Context(), quota.Query{Credential: "key1", Bucket: "default"})
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	var newest time.Time
	for i, e := range entries {
		if i == 0 {
			total = e.Total - e.Units
		}
		total += e.Units
		if e.Total != total || !e.At.After(newest) {
			t.Fatalf("entry %d: total %d at %v after %d at %v", i, e.Total, e.At, total-e.Units, newest)
		}
		newest = e.At
	}
	return entries
}

func mustCharge(t *testing.T, l *Ledger, c quota.Charge) quota.Decision {
	t.Helper()
	d, err := l.Charge(t.Context(), c)
	if err != nil || !d.Allowed {
		t.Fatalf("charge: %+v, %v", d, err)
	}
	return d
}
