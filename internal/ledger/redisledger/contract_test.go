package redisledger

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/quota/quotatest"
	"quotabudget/lua"
)

// The whole contract is kept under the ACL that docs/redis.md prints, and nothing else is asked
// for.
func TestContract(t *testing.T) {
	s := redistest.Start(t, redistest.Options{Clock: true})
	admin := admin(t, s.Addr)
	do(t, admin, documentedACL(t)...)
	url := strings.Replace(s.URL(), "redis://", "redis://quota:PASSWORD@", 1)
	quotatest.Run(t, quotatest.Harness{
		Coarse: true,
		Open: func(t testing.TB) quota.Ledger {
			l := open(t, url)
			l.readNewest = 2 // the others are in the sums
			return l
		},
		SetNow: func(t testing.TB, now time.Time) { s.SetNow(t, now) },
		Dump:   func(t testing.TB, credential string) string { return dump(t, admin, credential) },
	})
	t.Run("nothing was refused", func(t *testing.T) {
		if log := admin.Do(t.Context(), "acl", "log").Val(); len(log.([]any)) > 0 {
			t.Errorf("refused: %v", log)
		}
	})
}

// documentedACL is the one line of the manual that makes a user, as a command.
func documentedACL(t *testing.T) (command []any) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`(?m)^    (ACL SETUSER .*)$`)
	lines := form.FindAllStringSubmatch(string(text), -1)
	if len(lines) != 1 {
		t.Fatalf("%d lines make an ACL user", len(lines))
	}
	for _, word := range strings.Fields(lines[0][1]) {
		command = append(command, word)
	}
	return command
}

// Every command of a script is in the line, also one that the contract does not come by.
func TestACLNamesEveryCommandOfTheScripts(t *testing.T) {
	allowed := make(map[any]bool)
	for _, word := range documentedACL(t) {
		allowed[word] = true
	}
	for _, script := range lua.Names {
		for _, m := range calledThere.FindAllStringSubmatch(lua.Source(script), -1) {
			if !allowed["+"+m[1]] {
				t.Errorf("a script calls %s, which the ACL in docs/redis.md does not allow", m[1])
			}
		}
	}
}

// A command that the ACL lacks is named, whether the client sends it or a script calls it, and so
// are keys.
func TestMissingRights(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	admin := admin(t, s.Addr)
	do(t, admin, documentedACL(t)...)
	l := open(t, strings.Replace(s.URL(), "redis://", "redis://quota:PASSWORD@", 1))
	entries := func() error {
		_, err := l.Entries(t.Context(), quota.Query{Credential: "k", Bucket: "default", Limit: 1})
		return err
	}
	for _, test := range []struct {
		without, says string
		call          func() error
	}{
		{"-ZREVRANGEBYSCORE", "run ZREVRANGEBYSCORE", entries},
		{"-TIME", "run TIME", func() error { _, err := l.Time(t.Context()); return err }},
		{"-EVALSHA", "run EVALSHA", func() error { return chargeErr(t, l) }},
		{"-ZADD", "run ZADD", func() error { return chargeErr(t, l) }},
		{"-HMGET", "run HMGET", func() error { return chargeErr(t, l) }},
		{"resetkeys", "use the keys quota:*", func() error { return chargeErr(t, l) }},
	} {
		do(t, admin, "acl", "setuser", "quota", test.without)
		err := test.call()
		says := "does not let this user " + test.says
		if !errors.Is(err, quota.ErrLedgerUnusable) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", test.without, err)
		}
		do(t, admin, documentedACL(t)...)
		if err := test.call(); err != nil {
			t.Errorf("with all rights again: %v", err)
		}
	}
	do(t, admin, "acl", "setuser", "quota", "-INFO")
	open(t, strings.Replace(s.URL(), "redis://", "redis://quota:PASSWORD@", 1))
}

// written is a member written out, as one is that cannot be packed.
func written(t testing.TB, z redis.Z) string {
	m, err := parseMember(z)
	if err != nil {
		t.Fatal(err)
	}
	m.packed = false
	return m.String()
}
