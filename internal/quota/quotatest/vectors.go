package quotatest

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

//go:embed vectors/*.json
var vectorFiles embed.FS

// vector is one story: limits, and what is asked and answered at which moment. vectors/README.md
// describes the format.
type vector struct {
	Case   string  `json:"case"`
	Limits []limit `json:"limits"`
	Steps  []step  `json:"steps"`
}

type limit struct {
	Bucket   string `json:"bucket"`
	Units    int64  `json:"units"`
	Headroom int64  `json:"headroom"`
	Window   string `json:"window"`
	Timezone string `json:"timezone"`
}

// testVectors runs the step tables.
func testVectors(t *testing.T, h Harness) {
	l := h.Open(t)
	for file, vectors := range loadVectors(t) {
		t.Run(file, func(t *testing.T) {
			for _, v := range vectors {
				t.Run(v.Case, func(t *testing.T) { v.run(t, h, l) })
			}
		})
	}
}

func loadVectors(t testing.TB) map[string][]vector {
	t.Helper()
	files, err := vectorFiles.ReadDir("vectors")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]vector, len(files))
	for _, f := range files {
		text, err := vectorFiles.ReadFile(path.Join("vectors", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var vectors []vector
		if err := strict(text, &vectors); err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
		all[strings.TrimSuffix(f.Name(), ".json")] = vectors
	}
	return all
}

// strict decodes JSON in which every field must be known.
func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func (v vector) run(t *testing.T, h Harness, l quota.Ledger) {
	r := runner{t: t, ledger: l, credential: newCredential(), charges: map[string]made{}}
	for _, s := range v.Steps {
		lapses := s.Reserve != nil && s.Reserve.Lapse == quota.LapseCharge
		r.coarse = r.coarse || h.Coarse && lapses
	}
	for i, s := range v.Steps {
		if s.Now != nil {
			h.SetNow(t, *s.Now)
		}
		limits := v.Limits
		if s.Limits != nil {
			limits = s.Limits
		}
		r.step = fmt.Sprintf("step %d", i+1)
		r.do(s, limitsOf(t, limits))
	}
}

func limitsOf(t testing.TB, list []limit) []quota.Limit {
	t.Helper()
	limits := make([]quota.Limit, len(list))
	for i, l := range list {
		w, err := quota.ParseWindow(l.Window, l.Timezone)
		if err != nil {
			t.Fatal(err)
		}
		limits[i] = quota.Limit{Bucket: bucketName(l.Bucket), Units: l.Units, Headroom: l.Headroom,
			Window: w}
	}
	return limits
}

// step sets the clock, and asks one thing.
type step struct {
	Now    *time.Time `json:"now"`
	Limits []limit    `json:"limits"` // of this step alone

	Charge       *chargeStep  `json:"charge"`
	Reserve      *reserveStep `json:"reserve"`
	Settle       *settleStep  `json:"settle"`
	Extend       *extendStep  `json:"extend"`
	Learn        *learnStep   `json:"learn"`
	Adjust       *adjustStep  `json:"adjust"`
	Release      string       `json:"release"`
	Cancel       string       `json:"cancel"`
	Suspend      *suspendStep `json:"suspend"`
	Usage        *struct{}    `json:"usage"`
	Reservations string       `json:"reservations"`
	Entries      *quota.Query `json:"entries"`
	Takings      *quota.Query `json:"takings"`

	Want json.RawMessage `json:"want"`
}

// The fields that have the same name in quota are read as they are.

type chargeStep struct {
	quota.Charge
	Units  int64 `json:"units"` // of the bucket "default", instead of costs
	DryRun bool  `json:"dry_run"`
}

type reserveStep struct {
	quota.Reserve
	Units int64 `json:"units"` // of the one bucket, instead of costs
	TTL   int64 `json:"ttl_us"`
}

type settleStep struct {
	quota.Settle
	Units *int64 `json:"units"` // of the one bucket, instead of costs
}

type extendStep struct {
	Reservation string `json:"reservation"`
	TTL         int64  `json:"ttl_us"`
}

type learnStep struct {
	quota.Learn
	Limit     int       `json:"limit"` // its number in the limits, from 0
	Remaining int64     `json:"remaining"`
	AskedAt   time.Time `json:"asked_at"`
}

type adjustStep struct {
	quota.Adjust
	Until  time.Time `json:"until"`
	DryRun bool      `json:"dry_run"`
}

type suspendStep struct {
	Bucket string    `json:"bucket"`
	Until  time.Time `json:"until"`
}

// runner runs the steps of one vector on a ledger.
type runner struct {
	t          *testing.T
	ledger     quota.Ledger
	credential string
	step       string
	charges    map[string]made // by entry ID, for cancelling
	coarse     bool            // see Harness
}

type made struct {
	charge   quota.Charge
	decision quota.Decision
}

func (r *runner) do(s step, limits []quota.Limit) {
	ctx, l := context.Background(), r.ledger
	switch {
	case s.Charge != nil:
		c := s.Charge.charge(r.credential, limits)
		d, err := l.Charge(ctx, c)
		if d.Allowed && !d.Replayed && !c.DryRun {
			r.charges[c.ID] = made{c, d}
		}
		r.checkDecision(s.Want, d, err)
	case s.Reserve != nil:
		q := s.Reserve.Reserve
		q.Credential, q.Limits = r.credential, ofReservation(limits, q.ID)
		q.TTL = time.Duration(s.Reserve.TTL) * time.Microsecond
		if s.Reserve.Units != 0 {
			q.Costs = inOne(q.ID, s.Reserve.Units)
		}
		d, err := l.Reserve(ctx, q)
		r.checkDecision(s.Want, d, err)
	case s.Settle != nil:
		c := s.Settle.Settle
		c.Credential, c.Limits = r.credential, ofReservation(limits, c.Reservation)
		if s.Settle.Units != nil {
			c.Costs = inOne(c.Reservation, *s.Settle.Units)
		}
		d, err := l.Settle(ctx, c)
		r.checkDecision(s.Want, d, err)
	case s.Extend != nil:
		until, err := l.Extend(ctx, quota.Extend{Credential: r.credential,
			Reservation: s.Extend.Reservation,
			TTL:         time.Duration(s.Extend.TTL) * time.Microsecond})
		r.checkExtended(s.Want, until, err)
	case s.Learn != nil:
		q := s.Learn.Learn
		q.Credential, q.Limit, q.Remaining = r.credential, limits[s.Learn.Limit], s.Learn.Remaining
		q.AskedAt = s.Learn.AskedAt
		learned, err := l.Learn(ctx, q)
		r.fatal(err)
		r.checkLearned(s.Want, learned)
	case s.Adjust != nil:
		a := s.Adjust.Adjust
		a.Credential, a.Bucket = r.credential, bucketName(a.Bucket)
		a.Until, a.DryRun = s.Adjust.Until, s.Adjust.DryRun
		d, err := l.Adjust(ctx, a)
		r.checkDecision(s.Want, d, err)
	case s.Release != "":
		given, err := l.Release(ctx, r.credential, s.Release)
		var left int64
		for _, units := range given {
			left += units
		}
		r.checkError(s.Want, left, err)
	case s.Cancel != "":
		c, ok := r.charges[s.Cancel]
		if !ok {
			r.t.Fatalf("%s: no charge %s was allowed", r.step, s.Cancel)
		}
		r.checkError(s.Want, 0, l.Cancel(ctx, c.charge, c.decision))
	case s.Suspend != nil:
		err := l.Suspend(ctx, quota.Suspension{Credential: r.credential, Bucket: bucketName(s.Suspend.Bucket), Until: s.Suspend.Until})
		r.checkError(s.Want, 0, err)
	default:
		r.look(s, limits)
	}
}

// look runs the steps that change nothing.
func (r *runner) look(s step, limits []quota.Limit) {
	ctx := context.Background()
	switch {
	case s.Usage != nil:
		u, err := r.ledger.Usage(ctx, r.credential, limits)
		r.fatal(err)
		r.checkUsage(s.Want, u)
	case s.Reservations != "":
		list, err := r.ledger.Reservations(ctx, r.credential, s.Reservations)
		r.fatal(err)
		r.checkReservations(s.Want, list)
	case s.Entries != nil:
		s.Entries.Credential, s.Entries.Bucket = r.credential, bucketName(s.Entries.Bucket)
		list, err := r.ledger.Entries(ctx, *s.Entries)
		r.fatal(err)
		r.checkEntries(s.Want, list)
	case s.Takings != nil:
		s.Takings.Credential, s.Takings.Bucket = r.credential, bucketName(s.Takings.Bucket)
		list, err := r.ledger.Takings(ctx, *s.Takings)
		r.fatal(err)
		r.checkTakings(s.Want, list)
	case s.Now == nil:
		r.t.Fatalf("%s: the vector asks nothing", r.step)
	}
}

func (c *chargeStep) charge(credential string, limits []quota.Limit) quota.Charge {
	q := c.Charge
	q.Credential, q.DryRun = credential, c.DryRun
	if c.Units != 0 {
		q.Costs = []quota.Cost{{Bucket: quota.DefaultBucket, Units: c.Units}}
	}
	q.Limits = slices.DeleteFunc(limits, func(l quota.Limit) bool {
		is := func(c quota.Cost) bool { return c.Bucket == l.Bucket }
		return !slices.ContainsFunc(q.Costs, is)
	})
	return q
}

// ofReservation is the limits of the reservation's buckets.
func ofReservation(limits []quota.Limit, reservation string) (of []quota.Limit) {
	_, buckets, _ := quota.ParseReservation(reservation)
	for _, bucket := range buckets {
		of = append(of, quota.LimitsOf(bucket, limits)...)
	}
	return of
}

// inOne is units of the one bucket of a reservation.
func inOne(reservation string, units int64) []quota.Cost {
	_, buckets, err := quota.ParseReservation(reservation)
	if err != nil {
		buckets = []string{""}
	}
	return []quota.Cost{{Bucket: buckets[0], Units: units}}
}

func bucketName(name string) string { return cmp.Or(name, quota.DefaultBucket) }
