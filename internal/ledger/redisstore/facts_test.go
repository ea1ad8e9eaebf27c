package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"quotabudget/internal/ledger/redisstore"
	"quotabudget/internal/ledger/redistest"
)

// The rights that are asked for are those that the manual gives.
func TestRightsLine(t *testing.T) {
	documented := strings.TrimSpace(fmt.Sprintln(documentedACL(t)...))
	if line := redisstore.RightsLine(true); line != documented {
		t.Errorf("asks for\n%s\nthe manual has\n%s", line, documented)
	}
}

// Each right that a user lacks is named, and a user who has them all lacks none.
func TestLacks(t *testing.T) {
	s := redistest.Start(t, redistest.Options{})
	admin := admin(t, s.Addr)
	do(t, admin, documentedACL(t)...)
	url := strings.Replace(s.URL(), "redis://", "redis://quota:PASSWORD@", 1)
	f, err := redisstore.Examine(t.Context(), url, "default")
	if err != nil || len(f.Lacks) > 0 || !slices.Equal(f.Hidden, []string{"CONFIG|GET"}) {
		t.Errorf("%+v, %v", f, err)
	}
	for _, right := range redisstore.Rights {
		do(t, admin, "acl", "setuser", "quota", "-"+right)
		f, err := redisstore.Examine(t.Context(), url, "default")
		if err != nil || !slices.Equal(f.Lacks, []string{right}) {
			t.Errorf("without %s: lacks %v, %v", right, f.Lacks, err)
		}
		do(t, admin, "acl", "setuser", "quota", "+"+right)
	}
}
