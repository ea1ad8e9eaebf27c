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

// password is in every URL here, and must be in no error.
const password = "hunter2-0f4a"

func TestCheckURL(t *testing.T) {
	with := func(list string) []string { // one URL a line, with the password in the place of @P
		return strings.Fields(strings.ReplaceAll(list, "@P", password))
	}
	good := append(with(`
		sqlite:///var/lib/quota/ledger.db sqlite:ledger.db redis://localhost
		redis://user:@P@localhost:6379/3 rediss://:@P@host/0 rediss+cluster://a
		redis+sentinel://a:26379,b:26379/master/0 redis+cluster://user:@P@a:6379,b:6379
	`), "sqlite:///with space/100%25.db")
	for _, url := range good {
		if err := ledger.CheckURL(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	bad := append(with(`
		ledger.db /var/lib/ledger.db sqlite sqlite: sqlite:// sqlite:/// sqlite:///dir/
		sqlite://host/ledger.db sqlite::memory: sqlite:///a.db?mode=ro sqlite:///100%.db
		http://@P@localhost REDIS://:@P@localhost postgres://user:@P@localhost/0
		redis redis: redis:localhost redis://:@P@localhost/not-a-number redis://@P@localhost
		redis://:@P@localhost:port/0 redis://:@P%zz@localhost/0 redis://:@P@a?max_retries=3
		redis://:@P@localhost/0?no_such_option=@P redis://localhost#@P redis://u:12#@P@localhost
		redis+sentinel://:@P@a:26379 redis+sentinel://:@P@a:26379/ redis+tls://:@P@a
		redis+cluster://:@P@a:6379?no_such_option=1 redis+cluster://u:12/@P@localhost
		redis+sentinel://u:12/@P@localhost/0 redis+sentinel://:@P@a/main?route_by_latency=true
		rediss://:@P@localhost?skip_verify=true redis://:@P@localhost?ca=/etc/ca.pem
		rediss://:@P@localhost?ca=/no/such/file rediss://:@P@localhost?cert=/no/such/file
	`), "", "sqlite:a\x00b", " redis://:"+password+"@localhost",
		"redis://:"+password+"\x7f@localhost", "redis://:"+password+"@local host/0")
	for _, url := range bad {
		wantMalformed(t, url, ledger.CheckURL(url))
		l, err := ledger.Open(t.Context(), url)
		wantMalformed(t, url, err)
		if l != nil {
			t.Errorf("%q: a ledger was opened", url)
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
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "text.db")
	must(t, os.WriteFile(path, []byte(strings.Repeat("No database. ", 100)), 0o600))
	server := redistest.Start(t, redistest.Options{}).Addr
	for name, test := range map[string]struct {
		url  string
		kind error
		says string
	}{
		"a text":              {"sqlite://" + path, quota.ErrLedgerUnusable, "text.db"},
		"a folder":            {"sqlite://" + dir, quota.ErrLedgerUnusable, ""},
		"nobody listens":      {"redis://:@P@127.0.0.1:1/0", quota.ErrUnreachable, "127.0.0.1:1"},
		"no such sentinel":    {"redis+sentinel://:@P@127.0.0.1:1/m", quota.ErrUnreachable, ""},
		"no such cluster":     {"redis+cluster://:@P@127.0.0.1:1", quota.ErrUnreachable, ""},
		"a password too many": {"redis://nobody:@P@" + server, quota.ErrLedgerUnusable, ""},
	} {
		l, err := ledger.Open(t.Context(), strings.ReplaceAll(test.url, "@P", password))
		if l != nil {
			t.Errorf("%s: a ledger was opened", name)
			l.Close()
		}
		if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %v and %q", name, err, test.kind, test.says)
		}
		wantNoPassword(t, name, err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "No database. ") {
		t.Errorf("the text was changed: %v", err)
	}
}

// TestPasswordsWithSigns: whatever sign is in a password that nobody escaped, and whatever is made
// of the URL then, no error repeats a part of it.
func TestPasswordsWithSigns(t *testing.T) {
	t.Parallel()
	forms := strings.Fields(`
		redis://:%s@127.0.0.1:1/0 redis://u:%s@127.0.0.1:1/0 redis://%s@127.0.0.1:1
		rediss://u:%s@127.0.0.1:1/0?pool_size=2 redis+sentinel://u:%s@127.0.0.1:1/main
		redis+sentinel://127.0.0.1:1/main?sentinel_password=%s redis+cluster://u:%s@127.0.0.1:1
		redis+cluster://u:%s@127.0.0.1:1,127.0.0.1:2 sqlite://u:%s@127.0.0.1/l.db
		sqlite:///l.db?password=%s redis://127.0.0.1:1/0?password=%s redis://127.0.0.1:1/0#%s
		redis+tls://u:%s@h %s
	`)
	signs := "# / ? @ : % [ ] \\ ^ { } | < > \" ' ` , ; & = + ! $ ( ) * ~ . é \t"
	var opening sync.WaitGroup
	for _, sign := range strings.Split(signs, " ") {
		for _, form := range forms {
			for _, password := range []string{"hunter@horse", "12@horse", "horse@12"} {
				text := fmt.Sprintf(form, strings.Replace(password, "@", sign, 1))
				opening.Go(func() {
					l, err := ledger.Open(t.Context(), text)
					if err == nil {
						l.Close()
						t.Errorf("%s was opened", text)
					}
					said := fmt.Sprint(err)
					if strings.Contains(said, "hunter") || strings.Contains(said, "horse") {
						t.Errorf("%s: %s", text, said)
					}
				})
			}
		}
	}
	opening.Wait()
}
