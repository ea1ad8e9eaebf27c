package regions_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/regions"
)

func TestParse(t *testing.T) {
	for code, want := range map[string]regions.Region{"US": "US", "gb": "GB", " Br ": "BR",
		"AX": "AX", "ZW": "ZW", "SS": "SS"} {
		if got, err := regions.Parse(code); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %s", code, got, err, want)
		}
	}
	for code, want := range map[string]string{
		"UK":  `"UK" is not a region: did you mean GB?`,
		"uk":  `"uk" is not a region: did you mean GB?`,
		"USA": `"USA" is not a region: did you mean US?`,
		"EL":  "did you mean GR?",
		"XK":  "write an ISO 3166-1 code of two letters",
		"ZZ":  "ISO 3166-1", "EU": "ISO 3166-1", "": "ISO 3166-1", "U": "ISO 3166-1",
		"D ":  "did you mean DE?",
		"S U": "ISO", "1": "ISO", "ÄÖ": "ISO", "İ": "ISO", "US GB": "ISO", "-": "ISO",
		strings.Repeat("u", 9999): "…",
	} {
		if got, err := regions.Parse(code); err == nil || !strings.Contains(err.Error(), want) ||
			len(err.Error()) > 200 {
			t.Errorf("%.40q: %q, %.200v; want %s", code, got, err, want)
		}
	}
}

func TestEveryCodeOnce(t *testing.T) {
	seen := 0
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			if _, err := regions.Parse(string([]rune{a, b})); err == nil {
				seen++
			}
		}
	}
	if all := regions.All(); seen != 249 || len(all) != 249 || !slices.IsSorted(all) ||
		all[0] != "AD" {
		t.Errorf("%d codes are known, ISO 3166-1 assigns 249: %v", seen, all)
	}
	// A search in the list must not find pairs of blank and letter.
	for _, code := range []string{"D ", " A", "  "} {
		if r, err := regions.Parse(code); err == nil {
			t.Errorf("%q was accepted as %s", code, r)
		}
	}
}

func TestParseList(t *testing.T) {
	got, err := regions.ParseList([]string{"US", "gb", "DE"})
	if err != nil || !slices.Equal(got, []regions.Region{"US", "GB", "DE"}) {
		t.Errorf("%v, %v", got, err)
	}
	_, err = regions.ParseList([]string{"US", "UK", "us", "XX"})
	for _, want := range []string{"did you mean GB?", "region US is listed twice",
		`"XX" is not a region`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if _, err := regions.ParseList(nil); err == nil {
		t.Error("an empty list was accepted")
	}
}

func TestOrder(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 11, 1, hour, 0, 0, 0, time.UTC) }
	list := []regions.Region{"US", "GB", "DE", "FR", "IN", "BR"}
	for _, c := range []struct {
		name string
		last map[regions.Region]time.Time
		want string
	}{
		{"nothing fetched: as listed", nil, "US GB DE FR IN BR"},
		{"all at once: as listed", map[regions.Region]time.Time{"US": at(1), "GB": at(1),
			"DE": at(1), "FR": at(1), "IN": at(1), "BR": at(1)}, "US GB DE FR IN BR"},
		{"a tick cut short after DE", map[regions.Region]time.Time{"US": at(9), "GB": at(9),
			"DE": at(9), "FR": at(6), "IN": at(6), "BR": at(6)}, "FR IN BR US GB DE"},
		{"a new region goes first", map[regions.Region]time.Time{"US": at(1), "GB": at(2),
			"DE": at(3), "FR": at(4), "IN": at(5)}, "BR US GB DE FR IN"},
		{"another zone, a region not listed", map[regions.Region]time.Time{"US": at(9).In(
			time.FixedZone("", -8*3600)), "GB": at(8), "JP": at(1)}, "DE FR IN BR GB US"},
	} {
		var got []string
		for _, r := range regions.Order(list, c.last) {
			got = append(got, string(r))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
	if list[0] != "US" {
		t.Error("the list itself was reordered")
	}
}
