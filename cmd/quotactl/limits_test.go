package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"quotabudget/internal/config"
	"quotabudget/internal/quota"
)

// TestSpliceLimits: the upstream's limit replaces the one of the same bucket, window and zone, and
// no other.
func TestSpliceLimits(t *testing.T) {
	const text = `credentials:
  - name: a
    limits:
      - {bucket: requests, per: "label:team", units: 10, window: 1m}
      - {bucket: requests, across: all, units: 11, window: 1m}
      - {bucket: requests, units: 12, window: 1m}
      - {bucket: requests, units: 13, window: day, timezone: UTC}
      - {bucket: requests, units: 14, window: day, timezone: America/Los_Angeles}
      - {bucket: requests, units: 15, window: month}
`
	for _, c := range []struct{ window, zone, before string }{
		{"1m", "", "12"}, {"day", "UTC", "13"}, {"day", "America/Los_Angeles", "14"},
		{"month", "UTC", "15"},
	} {
		window, err := quota.ParseWindow(c.window, c.zone)
		if err != nil {
			t.Fatal(err)
		}
		change := newChange(quota.Limit{Bucket: "requests", Units: 500, Window: window}, nil)
		got, err := spliceLimits(text, config.Credential{Name: "a"}, []importedLimit{change})
		want := strings.Replace(text, "units: "+c.before, "units: 500", 1)
		if err != nil || got != want {
			t.Errorf("%s %s: %v\n%s", c.window, c.zone, err, got)
		}
	}
}

// TestMergedLimits: a list that replaces the defaults keeps a default of the same window in another
// zone.
func TestMergedLimits(t *testing.T) {
	day := func(zone string, units int64) quota.Limit {
		window, err := quota.ParseWindow("day", zone)
		must(t, err)
		return quota.Limit{Bucket: "requests", Units: units, Window: window}
	}
	ours := []quota.Limit{day("America/Los_Angeles", 1), day("UTC", 2)}
	changes := []importedLimit{newChange(day("UTC", 3), nil)}
	if got := merged(ours, changes); len(got) != 2 || got[0].Units != 1 || got[1].Units != 3 {
		t.Errorf("%+v", got)
	}
}

// TestReplaceFile: the new file has the owner and the mode of the old one, through a link.
func TestReplaceFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quota.yaml")
	must(t, os.WriteFile(path, []byte("old"), 0o600))
	owner := os.Getuid()
	if owner == 0 { // only root may change an owner
		owner = 12345
		must(t, os.Chown(path, owner, owner))
	}
	must(t, os.Chmod(path, 0o640))
	link := path + ".link"
	must(t, os.Symlink(path, link))
	must(t, replaceFile(link, "old", "new"))
	text, err := os.ReadFile(path)
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	uid := int(info.Sys().(*syscall.Stat_t).Uid)
	if string(text) != "new" || info.Mode().Perm() != 0o640 || uid != owner {
		t.Errorf("%s, mode %o, owner %d, want %d", text, info.Mode(), uid, owner)
	}
}
