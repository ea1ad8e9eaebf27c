package ledger_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// password stands in every URL here, and must stand in no error.
const password = "hunter2-0f4a"

func TestCheckURL(t *testing.T) {
	for _, good := range []string{
		"sqlite:///var/lib/quota/ledger.db", "sqlite:ledger.db", "sqlite:///with space/100%25.db",
		"redis://localhost", "redis://user:" + password + "@localhost:6379/3", "rediss://:" + password + "@host/0",
		"redis+sentinel://a:26379,b:26379/master/0", "redis+cluster://user:" + password + "@a:6379,b:6379", "rediss+cluster://a",
	} {
		if err := ledger.CheckURL(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "ledger.db", "/var/lib/ledger.db", "sqlite", "sqlite:", "sqlite://", "sqlite:///", "sqlite:///dir/", "sqlite://host/ledger.db",
		"sqlite::memory:", "sqlite:///a.db?mode=ro", "sqlite:///100%.db", "sqlite:a\x00b",
		"http://" + password + "@localhost", "REDIS://:" + password + "@localhost", "postgres://user:" + password + "@localhost/0",
		"redis", "redis:", "redis:localhost", "redis://:" + password + "@localhost/" + "not-a-number",
		"redis://:" + password + "@localhost:port/0", "redis://:" + password + "@local host/0", "redis://:" + password + "%zz@localhost/0",
		"redis://:" + password + "@localhost/0?no_such_option=" + password,
		"redis+sentinel://:" + password + "@a:26379", "redis+sentinel://:" + password + "@a:26379/", "redis+tls://:" + password + "@a",
		"redis+cluster://:" + password + "@a:6379?no_such_option=1", " redis://:" + password + "@localhost",
		"redis://:" + password + "\x7f@localhost", "redis://localhost#" + password, "redis://u:12#" + password + "@localhost",
		"redis+cluster://u:12/" + password + "@localhost", "redis+sentinel://u:12/" + password + "@localhost/0",
		"rediss://:" + password + "@localhost?skip_verify=true", "redis://:" + password + "@localhost?ca=/etc/ca.pem",
		"rediss://:" + password + "@localhost?ca=/no/such/file", "rediss://:" + password + "@localhost?cert=/no/such/file",
		"redis+sentinel://:" + password + "@a/main?route_by_latency=true", "redis://:" + password + "@a?max_retries=3",
		"redis://" + password + "@localhost",
	} {
		err := ledger.CheckURL(bad)
		wantMalformed(t, bad, err)
		l, err := ledger.Open(t.Context(), bad)
		wantMalformed(t, bad, err)
		if l != nil {
			t.Errorf("%q: a ledger was opened", bad)
			l.Close()
		}
	}
}

func wantMalformed(t *testing.T, ledgerURL string, err error) {
	t.Helper()
	if !errors.Is(err, quota.ErrMalformed) {
		t.Errorf("%q: %v, want ErrMalformed", ledgerURL, err)
	}
	wantNoPassword(t, ledgerURL, err)
}

func wantNoPassword(t *testing.T, name string, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), password) {
		t.Errorf("%q: the error holds the password: %v", name, err)
	}
}

// TestOpenRefuses names, for each ledger that is not to be used, what kind of error a program gets,
// and what it says.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "sqlite://" + filepath.ToSlash(path)
	}
	locked := redistest.Start(t, redistest.Options{Args: []string{"--requirepass", "another"}}).Addr
	first := redistest.Start(t, redistest.Options{})
	host, port, _ := strings.Cut(first.Addr, ":")
	replica := redistest.Start(t, redistest.Options{Args: []string{"--replicaof", host + " " + port}}).Addr
	evicting := redistest.Start(t, redistest.Options{Args: []string{"--maxmemory", "10mb", "--maxmemory-policy", "allkeys-lru"}}).Addr
	for name, test := range map[string]struct {
		url  string
		kind error
		says string
	}{
		"a text":               {write("text.db", strings.Repeat("This is no database. ", 100)), quota.ErrLedgerUnusable, "text.db"},
		"a folder":             {"sqlite://" + filepath.ToSlash(dir), quota.ErrLedgerUnusable, ""},
		"nobody listens":       {"redis://:" + password + "@127.0.0.1:1/0", quota.ErrUnreachable, "127.0.0.1:1"},
		"no such sentinel":     {"redis+sentinel://:" + password + "@127.0.0.1:1/master", quota.ErrUnreachable, ""},
		"no such cluster":      {"redis+cluster://:" + password + "@127.0.0.1:1", quota.ErrUnreachable, ""},
		"no password":          {"redis://" + locked, quota.ErrLedgerUnusable, "password"},
		"a wrong password":     {"redis://:" + password + "@" + locked, quota.ErrLedgerUnusable, ""},
		"a password too many":  {"redis://nobody:" + password + "@" + first.Addr, quota.ErrLedgerUnusable, ""},
		"a replica":            {"redis://" + replica, quota.ErrLedgerUnusable, "replica"},
		"one that evicts keys": {"redis://" + evicting, quota.ErrLedgerUnusable, "noeviction"},
	} {
		l, err := ledger.Open(t.Context(), test.url)
		if l != nil {
			t.Errorf("%s: a ledger was opened", name)
			l.Close()
		}
		if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %v and %q", name, err, test.kind, test.says)
		}
		wantNoPassword(t, name, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "text.db")); err != nil || !strings.HasPrefix(string(text), "This is no database. ") {
		t.Errorf("the text was changed: %v", err)
	}
}

// TestPasswordsWithSigns: whatever sign stands in a password that nobody escaped, and whatever is
// made of the URL then, no error repeats a part of it.
func TestPasswordsWithSigns(t *testing.T) {
	t.Parallel()
	var opening sync.WaitGroup
	for _, sign := range strings.Split("# / ? @ : % [ ] \\ ^ { } | < > \" ' ` , ; & = + ! $ ( ) * ~ . é \t", " ") {
		for _, form := range []string{
			"redis://:%s@127.0.0.1:1/0", "redis://u:%s@127.0.0.1:1/0", "redis://%s@127.0.0.1:1", "rediss://u:%s@127.0.0.1:1/0?pool_size=2",
			"redis+sentinel://u:%s@127.0.0.1:1/main", "redis+sentinel://127.0.0.1:1/main?sentinel_password=%s",
			"redis+cluster://u:%s@127.0.0.1:1", "redis+cluster://u:%s@127.0.0.1:1,127.0.0.1:2", "sqlite://u:%s@127.0.0.1/l.db",
			"sqlite:///l.db?password=%s", "redis://127.0.0.1:1/0?password=%s", "redis://127.0.0.1:1/0#%s", "redis+tls://u:%s@h", "%s",
		} {
			for _, password := range []string{"hunter" + sign + "horse", "12" + sign + "horse", "horse" + sign + "12"} {
				text := fmt.Sprintf(form, password)
				opening.Go(func() {
					l, err := ledger.Open(t.Context(), text)
					if err == nil {
						l.Close()
						t.Errorf("%s was opened", text)
					}
					if said := fmt.Sprint(err); strings.Contains(said, "hunter") || strings.Contains(said, "horse") {
						t.Errorf("%s: %s", text, said)
					}
				})
			}
		}
	}
	opening.Wait()
}
