package quota

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func sound() Charge {
	return Charge{
		Credential: "key1", ID: "06fmjq2kx4a9bc", Costs: []Cost{{"default", 10}},
		Limits: []Limit{
			{Bucket: "default", Units: 100, Headroom: 20, Window: Sliding(24 * time.Hour)},
			{Bucket: "search_list", Units: 2, Window: Sliding(24 * time.Hour)},
		},
	}
}

func TestChargeCheck(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Charge)
		want   error
	}{
		"sound":                {func(*Charge) {}, nil},
		"up to the headroom":   {func(c *Charge) { c.Costs[0].Units = 80 }, nil},
		"into the headroom":    {func(c *Charge) { c.Costs[0].Units = 81 }, ErrCostExceedsLimit},
		"manual":               {func(c *Charge) { c.Costs[0].Units = 100; c.Manual = true }, nil},
		"draw":                 {func(c *Charge) { c.Costs[0].Units = 100; c.Reservation = "default.r" }, nil},
		"above the limit":      {func(c *Charge) { c.Costs[0].Units = 101; c.Manual = true }, ErrCostExceedsLimit},
		"observed":             {func(c *Charge) { c.Costs[0].Units = 101; c.Observe = true }, nil},
		"two buckets":          {func(c *Charge) { c.Costs = append(c.Costs, Cost{"search_list", 2}) }, nil},
		"too much of one":      {func(c *Charge) { c.Costs = append(c.Costs, Cost{"search_list", 3}) }, ErrCostExceedsLimit},
		"no such bucket":       {func(c *Charge) { c.Costs[0].Bucket = "videos" }, ErrNoBucket},
		"a bucket twice":       {func(c *Charge) { c.Costs = append(c.Costs, Cost{"default", 1}) }, ErrMalformed},
		"no cost":              {func(c *Charge) { c.Costs = nil }, ErrMalformed},
		"zero units":           {func(c *Charge) { c.Costs[0].Units = 0 }, ErrMalformed},
		"negative units":       {func(c *Charge) { c.Costs[0].Units = -1 }, ErrMalformed},
		"absurd units":         {func(c *Charge) { c.Costs[0].Units = MaxUnits + 1; c.Observe = true }, ErrMalformed},
		"no id":                {func(c *Charge) { c.ID = "" }, ErrMalformed},
		"a colon in the id":    {func(c *Charge) { c.ID = "a:b" }, ErrMalformed},
		"no credential":        {func(c *Charge) { c.Credential = "" }, ErrMalformed},
		"a brace in the name":  {func(c *Charge) { c.Credential = "a}b" }, ErrMalformed},
		"a secret as key":      {func(c *Charge) { c.Key = "AIza" + strings.Repeat("x", 35) }, ErrMalformed},
		"a long key":           {func(c *Charge) { c.Key = strings.Repeat("k", 257) }, ErrMalformed},
		"not a reservation":    {func(c *Charge) { c.Reservation = "default" }, ErrMalformed},
		"another's bucket":     {func(c *Charge) { c.Reservation = "search_list.r" }, ErrMalformed},
		"a label that is long": {func(c *Charge) { c.Labels = Labels{"job": strings.Repeat("j", 257)} }, ErrMalformed},
	} {
		charge := sound()
		c.change(&charge)
		if err := charge.Check(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestReserveAndCommitCheck(t *testing.T) {
	r := Reserve{Credential: "key1", ID: "default.r", Units: 10, TTL: time.Hour, Limits: sound().Limits}
	c := Commit{Credential: "key1", Reservation: "default.r", ID: "a", Units: AllUnits}
	if err := errors.Join(r.Check(), c.Check()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(){
		"id": func() { r.ID = "r" }, "units": func() { r.Units = 0 }, "ttl": func() { r.TTL = time.Microsecond },
		"long ttl": func() { r.TTL = MaxWindow + 1 }, "note": func() { r.Note = "a\nb" }, "headroom": func() { r.Units = 81 },
	} {
		before := r
		change()
		if err := r.Check(); err == nil {
			t.Errorf("reserve with a bad %s is taken", name)
		}
		r = before
	}
	for name, change := range map[string]func(){
		"reservation": func() { c.Reservation = "-" }, "units": func() { c.Units = -2 }, "id": func() { c.ID = "" },
		"label": func() { c.Labels = Labels{"Job": "x"} }, "credential": func() { c.Credential = "A" },
	} {
		before := c
		change()
		if err := c.Check(); err == nil {
			t.Errorf("commit with a bad %s is taken", name)
		}
		c = before
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
