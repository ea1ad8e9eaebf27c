package quotatest

import (
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// testMark: whatever changes a bucket changes its mark, also through another handle, and reading
// does not.
func testMark(t *testing.T, h Harness) {
	s := newSubject(t, h, plenty)
	watcher := h.Open(t)
	before := ""
	changed := func(what string, want bool) {
		t.Helper()
		mark, err := watcher.Mark(t.Context(), s.credential, []string{"default", "search_list"})
		if err != nil || (mark != before) != want {
			t.Errorf("%s: the mark is %q, before %q, %v", what, mark, before, err)
		}
		before = mark
	}
	changed("the first", true)
	c, d := s.charge(3)
	changed("a charge", true)
	s.log("default")
	s.used(plenty)
	changed("readings", false)
	s.cancel(c, d)
	changed("a cancelled charge", true)
	s.cancel(s.charge(3))
	changed("a charge and its end", true)
	s.reserve("default.r", 5, time.Minute)
	changed("a reservation", true)
	if _, err := s.ledger.Release(t.Context(), s.credential, "default.r"); err != nil {
		t.Error(err)
	}
	changed("its release", true)
	if err := s.ledger.Suspend(t.Context(), quota.Suspension{Credential: s.credential, Bucket: "search_list", Until: epoch.Add(time.Hour)}); err != nil {
		t.Error(err)
	}
	changed("a suspension", true)
	changed("nothing", false)
}
