package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/quota/quotatest"
)

// TestContract keeps the whole contract, with charge.lua and without it, under the ACL that
// docs/redis.md prints. Nothing else is asked for.
func TestContract(t *testing.T) {
	for name, slow := range map[string]bool{"Plain": false, "Slow": true} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t, redistest.Options{Clock: true})
			client := admin(t, s.Addr)
			do(t, client, documentedACL(t)...)
			url := strings.Replace(s.URL(), "redis://", "redis://quota:PASSWORD@", 1)
			quotatest.Run(t, quotatest.Harness{
				Open: func(t testing.TB) *ledger.Ledger {
					store := open(t, url)
					store.Slow = slow
					return ledger.New(store)
				},
				SetNow:    func(t testing.TB, now time.Time) { s.SetNow(t, now) },
				Histories: 40,
				Dump:      func(t testing.TB, credential string) string { return dump(t, client, credential) },
			})
			if log := client.Do(t.Context(), "acl", "log").Val(); len(log.([]any)) > 0 {
				t.Errorf("refused: %v", log)
			}
		})
	}
}

// TestMissingRights: a command that the ACL lacks is named, whether the client sends it or a script
// calls it, and so are keys.
func TestMissingRights(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	admin := admin(t, s.Addr)
	do(t, admin, documentedACL(t)...)
	l := openEnv(t, strings.Replace(s.URL(), "redis://", "redis://quota:PASSWORD@", 1))
	for _, test := range []struct {
		without, says string
		call          func() error
	}{
		{"-TIME", "run TIME", func() error { return only(l.Time(t.Context())) }},
		{"-EVALSHA", "run EVALSHA", func() error { return chargeErr(t, l) }},
		{"-ZADD", "run a command of the scripts", func() error { return chargeErr(t, l) }},
		{"resetkeys", "use the keys quota:*", func() error { return chargeErr(t, l) }},
	} {
		do(t, admin, "acl", "setuser", "quota", test.without)
		isError(t, test.call(), quota.ErrLedgerUnusable, "does not let this user "+test.says)
		do(t, admin, documentedACL(t)...)
		if err := test.call(); err != nil {
			t.Errorf("with all rights again: %v", err)
		}
	}
}
