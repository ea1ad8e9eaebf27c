package quota

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func sound() Charge {
	return Charge{
		Credential: "key1", ID: "06fmjq2kx4a9bc", Costs: []Cost{{Bucket: "default", Units: 10}},
		Limits: []Limit{
			{Bucket: "default", Units: 100, Headroom: 20, Window: Sliding(24 * time.Hour)},
			{Bucket: "search_list", Units: 2, Window: Sliding(24 * time.Hour)},
		},
	}
}

func TestChargeCheck(t *testing.T) {
	long := strings.Repeat("x", 257)
	const reserved = "default.r"
	bad, above := ErrMalformed, ErrCostExceedsLimit
	units := func(n int64) func(*Charge) { return func(c *Charge) { c.Costs[0].Units = n } }
	also := func(bucket string, n int64) func(*Charge) {
		return func(c *Charge) { c.Costs = append(c.Costs, Cost{Bucket: bucket, Units: n}) }
	}
	for name, c := range map[string]struct {
		change func(*Charge)
		want   error
	}{
		"sound":               {func(*Charge) {}, nil},
		"up to the headroom":  {units(80), nil},
		"into the headroom":   {units(81), above},
		"manual":              {func(c *Charge) { units(100)(c); c.Manual = true }, nil},
		"draw":                {func(c *Charge) { units(100)(c); c.Reservation = reserved }, nil},
		"above the limit":     {func(c *Charge) { units(101)(c); c.Manual = true }, above},
		"observed":            {func(c *Charge) { units(101)(c); c.Observe = true }, nil},
		"two buckets":         {also("search_list", 2), nil},
		"too much of one":     {also("search_list", 3), above},
		"no such bucket":      {func(c *Charge) { c.Costs[0].Bucket = "videos" }, ErrNoBucket},
		"a bucket twice":      {also("default", 1), bad},
		"no cost":             {func(c *Charge) { c.Costs = nil }, bad},
		"zero units":          {units(0), bad},
		"negative units":      {units(-1), bad},
		"far above the limit": {units(MaxUnits + 1), above},
		"absurd units":        {func(c *Charge) { units(MaxUnits + 1)(c); c.Observe = true }, bad},
		"no id":               {func(c *Charge) { c.ID = "" }, bad},
		"a colon in the id":   {func(c *Charge) { c.ID = "a:b" }, bad},
		"no credential":       {func(c *Charge) { c.Credential = "" }, bad},
		"a brace in the name": {func(c *Charge) { c.Credential = "a}b" }, bad},
		"a secret as key":     {func(c *Charge) { c.Key = "AIza" + strings.Repeat("x", 35) }, bad},
		"a long key":          {func(c *Charge) { c.Key = long }, bad},
		"not a reservation":   {func(c *Charge) { c.Reservation = "default" }, bad},
		"another's bucket":    {func(c *Charge) { c.Reservation = "search_list.r" }, bad},
		"a label's value":     {func(c *Charge) { c.Reservation = "default@team=ci.r" }, bad},
		"one of several":      {func(c *Charge) { c.Reservation = "default+search_list.r" }, bad},
		"an unlimited bucket": {func(c *Charge) { also("videos", 3)(c); c.Unlimited = true }, nil},
		"a part of a bucket":  {func(c *Charge) { also("out/x-4.5", 3)(c); c.Unlimited = true }, nil},
		"a part of a part":    {func(c *Charge) { also("out/x/y", 3)(c); c.Unlimited = true }, bad},
		"what is concurrent": {func(c *Charge) {
			c.Limits = append(c.Limits, Limit{Bucket: "default", Units: 9,
				Window: Window{Concurrent: true}})
		}, bad},
		"a long label": {func(c *Charge) { c.Labels = Labels{"job": long} }, bad},
	} {
		charge := sound()
		c.change(&charge)
		if err := charge.Check(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestRefused(t *testing.T) {
	c := sound()
	c.Costs[0].Units = 81
	var exceeds *CostExceedsLimitError
	d, err := Refused(c.Costs, c.Check())
	if !errors.As(err, &exceeds) || exceeds.Cap != 80 || exceeds.Units != 81 {
		t.Fatalf("%+v", exceeds)
	}
	if d.Allowed || !d.Never || d.Limit != "default 24h" || d.Units["default"] != 81 ||
		d.RetryAfter() != 0 {
		t.Errorf("%+v", d)
	}
}

func TestLabelsRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.StringMatching(`[a-z][a-z0-9_]{0,31}`)
		l := Labels(rapid.MapOfN(names, rapid.String(), 0, 8).Draw(rt, "labels"))
		line := l.Encode()
		if strings.ContainsAny(line, ": \n") {
			rt.Fatalf("%q is not one plain word", line)
		}
		back, err := ParseLabels(line)
		maps.DeleteFunc(l, func(_, v string) bool { return v == "" })
		if err != nil || !maps.Equal(back, l) || back.Encode() != line {
			rt.Fatalf("%v became %v, %v", l, back, err)
		}
	})
}

func TestLabelsCheck(t *testing.T) {
	many := Labels{}
	for i := range 17 {
		many[fmt.Sprintf("l%d", i)] = "x"
	}
	long := strings.Repeat("x", 256)
	for name, l := range map[string]Labels{
		"upper case": {"Job": "x"}, "digit first": {"1job": "x"}, "empty name": {"": "x"},
		"long name": {strings.Repeat("n", 33): "x"}, "control": {"job": "a\x00b"},
		"invalid": {"job": "\xff"}, "secret": {"job": "ya29." + strings.Repeat("a", 30)},
		"many": many, "long": {"job": long + "x"},
		"long in all": {"a": long, "b": long, "c": long, "d": long},
	} {
		if err := l.Check(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want malformed", name, err)
		}
	}
	if err := (Labels{"job": "日次取得", "region": "BR", "x_1": long}).Check(); err != nil {
		t.Error(err)
	}
	if err := Labels(nil).Check(); err != nil {
		t.Error(err)
	}
}

func TestIDsSortByTime(t *testing.T) {
	now := at(t, "2026-06-01T12:00:00Z")
	last := NewID(now)
	for range 100 {
		now = now.Add(time.Millisecond)
		id := NewID(now)
		if id <= last || len(id) != 14 || !idForm.MatchString(id) {
			t.Fatalf("%s after %s", id, last)
		}
		last = id
	}
	if a, b := NewID(now), NewID(now); a == b {
		t.Error("two IDs of one moment are the same")
	}
	if id := NewID(time.Time{}); !strings.HasPrefix(id, "00000000") {
		t.Errorf("ID of the zero time: %s", id)
	}
}

// FuzzLabels: what is read is written and read again as the same, whatever a store held.
func FuzzLabels(f *testing.F) {
	for _, seed := range []string{
		"", "method=youtube.videos.list&region=BR", "a=b&a=c", "denied=default+24h", "run=r%3A1",
		"=", "&&", "a", "a=%zz", "a;b=c", "%00=%ff", "labels_lost=3RY0",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		l, err := ParseLabels(line)
		if err != nil {
			return
		}
		_ = l.Check()
		written := l.Encode()
		if strings.ContainsAny(written, ": \n\x00") {
			t.Errorf("%q was written as %q", line, written)
		}
		back, err := ParseLabels(written)
		maps.DeleteFunc(l, func(_, v string) bool { return v == "" })
		if err != nil || !maps.Equal(back, l) {
			t.Errorf("%q: %v became %v, %v", line, l, back, err)
		}
	})
}
