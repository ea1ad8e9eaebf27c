package quota

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// booksOf are sound books of entries of these units, charged a second apart, after others that have
// been forgotten.
func booksOf(forgotten int64, units ...int64) Books {
	b := Books{Total: forgotten, Known: true, Now: 1e15, Keep: 1e12, Newest: 1e15 - 1e9}
	for i, u := range units {
		b.Total += u
		b.Lines = append(b.Lines, Line{At: 1e15 - 2e9 + int64(i)*1e6, Units: u, Total: b.Total})
	}
	return b
}

func TestMend(t *testing.T) {
	all := []int64{10, 20, 30, 40}
	for name, c := range map[string]struct {
		spoil func(*Books)
		units []int64 // of the mended lines
		total int64
		says  string // parts between |, all of them
	}{
		"nothing": {func(*Books) {}, all, 1100, ""},
		"newest deleted": {func(b *Books) { b.Lines = b.Lines[:3] }, all[:3], 1060,
			"is 1100, but its entries add up to 1060"},
		"oldest deleted": {func(b *Books) { b.Lines = b.Lines[1:] }, all[1:], 1100, ""},
		"second deleted": {func(b *Books) { b.Lines = slices.Delete(b.Lines, 1, 2) },
			[]int64{10, 30, 40}, 1100, "entries' units: 1,"},
		"third deleted": {func(b *Books) { b.Lines = slices.Delete(b.Lines, 2, 3) },
			[]int64{10, 20, 40}, 1070, "entries' units: 1,|its entries add up to 1070"},
		"all deleted": {func(b *Books) { b.Lines = nil }, nil, 0, "there are no entries"},
		"all expired": {func(b *Books) { b.Lines, b.Newest = nil, 1e15-1e12 }, nil, 1100, ""},
		"no state":    {func(b *Books) { b.Known, b.Total, b.Newest = false, 0, 0 }, all, 1100, ""},
		"old state":   {func(b *Books) { b.Total = 1010 }, all, 1100, "is 1010"},
		"state older than its entries": {func(b *Books) { b.Newest = 1e15 - 3e9 }, all, 1100,
			"later than the newest time in its state"},
		"a total too high": {func(b *Books) { b.Lines[0].Total = 1090 }, all, 1100,
			"entries' units: 1,"},
		"a total that cannot be read": {func(b *Books) { b.Lines[2].Total = 0 }, all, 1100,
			"entries' units: 1,"},
		"units that were changed": {func(b *Books) { b.Lines[1].Units = 25 },
			[]int64{10, 25, 30, 40}, 1100, "entries' units: 1,|add up to 105 units"},
		"unreadable in the middle": {func(b *Books) { b.Lines[1].Units, b.Lines[1].Total = 0, 0 },
			all, 1100, "an entry of 20 units"},
		"unreadable at the end": {func(b *Books) { b.Lines[3].Units, b.Lines[3].Total = 0, 0 },
			all, 1100, "an entry of 40 units"},
		"two unreadable": {func(b *Books) { b.Lines[1], b.Lines[2] = Line{At: 5}, Line{At: 6} },
			[]int64{10, 0, 50, 40}, 1100, "is removed|an entry of 50 units"},
		"one that is none": {func(b *Books) {
			b.Lines = slices.Insert(b.Lines, 2, Line{At: 1e15 - 2e9 + 1})
		}, []int64{10, 20, 0, 30, 40}, 1100, "is removed"},
		"unreadable at the beginning": {func(b *Books) { b.Lines[0] = Line{At: b.Lines[0].At} },
			[]int64{0, 20, 30, 40}, 1100, "its units are unknown|Mends:false"},
		"unreadable and old": {func(b *Books) { b.Lines[0] = Line{At: 7} },
			[]int64{0, 20, 30, 40}, 1100, "it is older than every window"},
		"at no time": {func(b *Books) { b.Lines[3].NoTime = true }, all, 1100, "counts from now"},
		"the first at no time": {func(b *Books) { b.Lines[0].NoTime = true }, all, 1110,
			"it counts from now|its entries add up to 1110"},
		"one twice": {func(b *Books) { b.Lines = slices.Insert(b.Lines, 1, b.Lines[0]) },
			[]int64{10, 10, 20, 30, 40}, 1100, "1 entries are not later than the one before"},
		"a total near its end": {func(b *Books) {
			for i := range b.Lines {
				b.Lines[i].Total += MaxTotal - 2000
			}
			b.Total += MaxTotal - 2000
		}, all, 100, "entries' units: 4,"},
	} {
		t.Run(name, func(t *testing.T) {
			b := booksOf(1000, all...)
			c.spoil(&b)
			m := b.Mend()
			var units []int64
			for _, l := range m.Lines {
				units = append(units, l.Units)
			}
			if !slices.Equal(units, c.units) || m.Total != c.total {
				t.Errorf("units %v in all %d, want %v and %d", units, m.Total, c.units, c.total)
			}
			text := fmt.Sprintf("%+v", m.Findings)
			for words := range strings.SplitSeq(c.says, "|") {
				if !strings.Contains(text, words) {
					t.Errorf("%s\nwant %q", text, words)
				}
			}
			if c.says == "" && len(m.Findings) > 0 {
				t.Errorf("found %s", text)
			}
			const unmended = "Mends:false"
			if strings.Contains(text, unmended) != strings.Contains(c.says, unmended) {
				t.Errorf("%s\nwant %q", text, c.says)
			}
		})
	}
}

// Mended books are sound: they have every unit of a line that could be read, and nothing more to
// mend.
func TestMendedIsSound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		units := rapid.SliceOfN(rapid.Int64Range(1, 50), 0, 12).Draw(rt, "units")
		b := booksOf(rapid.Int64Range(0, 100).Draw(rt, "forgotten"), units...)
		for range rapid.IntRange(0, 4).Draw(rt, "spoils") {
			if len(b.Lines) == 0 {
				break
			}
			i := rapid.IntRange(0, len(b.Lines)-1).Draw(rt, "line")
			ways := strings.Fields("delete total units time state unreadable twice")
			switch rapid.SampledFrom(ways).Draw(rt, "spoil") {
			case "delete":
				b.Lines = slices.Delete(b.Lines, i, i+1)
			case "total":
				b.Lines[i].Total = rapid.Int64Range(0, MaxTotal).Draw(rt, "total")
			case "units":
				b.Lines[i].Units = rapid.Int64Range(1, 60).Draw(rt, "units")
			case "time":
				b.Lines[i].NoTime = true
			case "state":
				b.Total = rapid.Int64Range(0, 1000).Draw(rt, "state")
			case "unreadable":
				b.Lines[i] = Line{At: b.Lines[i].At}
			case "twice":
				b.Lines = slices.Insert(b.Lines, i, b.Lines[i])
			}
		}
		var had int64
		for _, l := range b.Lines {
			had += l.Units
		}
		m := b.Mend()
		again := Books{Total: m.Total, Newest: m.Newest, Known: true, Now: b.Now, Keep: b.Keep}
		var has int64
		for _, l := range m.Lines {
			if has += l.Units; l.Units > 0 {
				again.Lines = append(again.Lines, l)
			}
		}
		slices.SortStableFunc(again.Lines, func(x, y Line) int { return int(x.At - y.At) })
		if has < had {
			rt.Fatalf("%d units became %d", had, has)
		}
		for i := range again.Lines {
			if i > 0 && again.Lines[i].At == again.Lines[i-1].At {
				rt.Fatalf("mended books %+v have two entries at the same time", again)
			}
		}
		if more := again.Mend(); len(more.Findings) > 0 {
			rt.Fatalf("mended books %+v have %+v", again, more.Findings)
		}
	})
}
