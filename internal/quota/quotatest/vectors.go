package quotatest

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

//go:embed vectors/*.json
var vectorFiles embed.FS

// vector is one test case: limits, and the requests and answers at each moment. vectors/README.md
// describes the format.
type vector struct {
	Case   string  `json:"case"`
	Limits []limit `json:"limits"`
	Steps  []step  `json:"steps"`
}

type limit struct {
	quota.Limit
	Window   string
	Timezone string
}

// step sets the clock and makes one request, in the field named after its verb.
type step map[string]json.RawMessage

// testVectors runs the step tables.
func testVectors(t *testing.T, h Harness) {
	l := h.Open(t)
	files, err := vectorFiles.ReadDir("vectors")
	must(t, err)
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".json")
		t.Run(name, func(t *testing.T) {
			text, err := vectorFiles.ReadFile(path.Join("vectors", f.Name()))
			must(t, err)
			var vectors []vector
			decode(t, text, &vectors)
			for _, v := range vectors {
				t.Run(v.Case, func(t *testing.T) { v.run(t, h, l) })
			}
		})
	}
}

// underscore matches an underscore in a field name. Field names in package quota have none.
var underscore = regexp.MustCompile(`([a-z])_([a-z_]+"\s*:)`)

// decode decodes JSON, and rejects unknown fields.
func decode(t testing.TB, text []byte, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

func (v vector) run(t *testing.T, h Harness, l *ledger.Ledger) {
	r := runner{t: t, ledger: l, credential: newCredential(), charges: map[string]made{}}
	for i, s := range v.Steps {
		r.step = fmt.Sprintf("step %d", i+1)
		if now, set := s["now"]; set {
			var at time.Time
			decode(t, now, &at)
			h.SetNow(t, at)
		}
		limits := v.Limits
		if own, set := s["limits"]; set {
			limits = nil
			decode(t, own, &limits)
		}
		r.limits = nil
		for _, l := range limits {
			w, err := quota.ParseWindow(l.Window, l.Timezone)
			must(t, err)
			l.Limit.Bucket, l.Limit.Window = bucketName(l.Bucket), w
			r.limits = append(r.limits, l.Limit)
		}
		r.do(s)
	}
}

// runner runs the steps of one vector on a ledger.
type runner struct {
	t          *testing.T
	ledger     *ledger.Ledger
	credential string
	limits     []quota.Limit
	step       string
	charges    map[string]made // by entry ID, to cancel them
}

// made is a charge that was allowed.
type made struct {
	charge   quota.Charge
	decision quota.Decision
}

// do makes the request of the step, and compares the answer.
func (r *runner) do(s step) {
	for verb, text := range s {
		do, ok := verbs[verb]
		switch {
		case ok:
			got, err := do(r, underscore.ReplaceAll(underscore.ReplaceAll(text, []byte("$1$2")),
				[]byte("$1$2")))
			r.check(verb, s["want"], got, err)
		case !slices.Contains([]string{"now", "limits", "want"}, verb):
			r.t.Fatalf("%s: nothing is called %s", r.step, verb)
		}
	}
}

// verb returns the function that decodes a request and makes it.
func verb[Q, A any](make func(r *runner, q Q) (A, error)) func(*runner, []byte) (any, error) {
	return func(r *runner, text []byte) (any, error) {
		var q Q
		decode(r.t, text, &q)
		return make(r, q)
	}
}

// onLog returns the verb of a function that reads the log of one bucket.
func onLog[A any](read func(r *runner, q quota.Query) (A, error)) func(*runner, []byte) (any, error) {
	return verb(func(r *runner, q quota.Query) (A, error) {
		q.Credential, q.Bucket = r.credential, bucketName(q.Bucket)
		return read(r, q)
	})
}

var verbs = map[string]func(r *runner, text []byte) (any, error){
	"charge": verb(func(r *runner, c struct {
		quota.Charge
		Units int64 // of the bucket "default", instead of costs
	}) (quota.Decision, error) {
		if c.Units != 0 {
			c.Costs = []quota.Cost{{Bucket: quota.DefaultBucket, Units: c.Units}}
		}
		c.Credential, c.Limits = r.credential, r.limitsOf(names(c.Costs))
		d, err := r.ledger.Charge(r.t.Context(), c.Charge)
		if d.Allowed && !d.Replayed && !c.DryRun {
			r.charges[c.ID] = made{c.Charge, d}
		}
		return d, err
	}),
	"reserve": verb(func(r *runner, c struct {
		quota.Reserve
		Units int64 // of the one bucket, instead of costs
		TTLus int64
	}) (quota.Decision, error) {
		if c.Units != 0 {
			c.Costs = inOne(c.ID, c.Units)
		}
		c.Credential, c.Limits = r.credential, r.limitsOf(bucketsOf(c.ID))
		c.TTL = time.Duration(c.TTLus) * time.Microsecond
		return r.ledger.Reserve(r.t.Context(), c.Reserve)
	}),
	"settle": verb(func(r *runner, c struct {
		quota.Settle
		Units *int64 // of the one bucket, instead of costs
	}) (quota.Decision, error) {
		if c.Units != nil {
			c.Costs = inOne(c.Reservation, *c.Units)
		}
		c.Credential, c.Limits = r.credential, r.limitsOf(bucketsOf(c.Reservation))
		return r.ledger.Settle(r.t.Context(), c.Settle)
	}),
	"extend": verb(func(r *runner, c struct {
		quota.Extend
		TTLus int64
	}) (any, error) {
		c.Credential, c.TTL = r.credential, time.Duration(c.TTLus)*time.Microsecond
		until, err := r.ledger.Extend(r.t.Context(), c.Extend)
		return map[string]any{"expires_at": until}, err
	}),
	"learn": verb(func(r *runner, c struct {
		quota.Learn
		Limit int // index in the limits
	}) (quota.Learned, error) {
		c.Credential, c.Learn.Limit = r.credential, r.limits[c.Limit]
		return r.ledger.Learn(r.t.Context(), c.Learn)
	}),
	"adjust": verb(func(r *runner, a quota.Adjust) (quota.Decision, error) {
		a.Credential, a.Bucket = r.credential, bucketName(a.Bucket)
		return r.ledger.Adjust(r.t.Context(), a)
	}),
	"release": verb(func(r *runner, id string) (any, error) {
		given, err := r.ledger.Release(r.t.Context(), quota.Release{Credential: r.credential,
			Reservation: id})
		var left int64
		for _, units := range given {
			left += units
		}
		return map[string]any{"units": left}, err
	}),
	"cancel": verb(func(r *runner, id string) (any, error) {
		c, ok := r.charges[id]
		if !ok {
			r.t.Fatalf("%s: no charge %s was allowed", r.step, id)
		}
		return nil, r.ledger.Cancel(r.t.Context(), c.charge, c.decision)
	}),
	"suspend": verb(func(r *runner, s quota.Suspension) (any, error) {
		s.Credential, s.Bucket = r.credential, bucketName(s.Bucket)
		return nil, r.ledger.Suspend(r.t.Context(), s)
	}),
	"usage": verb(func(r *runner, _ struct{}) (quota.Usage, error) {
		return r.ledger.Usage(r.t.Context(), r.credential, r.limits)
	}),
	"reservations": verb(func(r *runner, bucket string) ([]quota.Reservation, error) {
		return r.ledger.Reservations(r.t.Context(), r.credential, bucket)
	}),
	"buckets_of": verb(func(r *runner, _ struct{}) ([]quota.BucketTotal, error) {
		return r.ledger.BucketsOf(r.t.Context(), r.credential)
	}),
	"entries": onLog(func(r *runner, q quota.Query) ([]quota.Entry, error) {
		return r.ledger.Entries(r.t.Context(), q)
	}),
	"takings": onLog(func(r *runner, q quota.Query) ([]quota.Entry, error) {
		return r.ledger.Takings(r.t.Context(), q)
	}),
	"sums": onLog(func(r *runner, q quota.Query) ([]quota.Sum, error) {
		return r.ledger.Sums(r.t.Context(), quota.SumQuery{Credential: q.Credential,
			Bucket: q.Bucket, Since: q.Since})
	}),
	"sums_after": onLog(func(r *runner, q quota.Query) ([]quota.Sum, error) {
		return quota.SumsAfter(r.t.Context(), r.ledger, quota.SumQuery{Credential: q.Credential,
			Bucket: q.Bucket, Since: q.Since})
	}),
	"between": onLog(func(r *runner, q quota.Query) (any, error) {
		units, err := r.ledger.Between(r.t.Context(), q.Credential, q.Bucket, q.Since, q.Until)
		return map[string]any{"units": units}, err
	}),
}

func (r *runner) limitsOf(buckets []string) (picked []quota.Limit) {
	return slices.DeleteFunc(slices.Clone(r.limits), func(l quota.Limit) bool {
		return !slices.Contains(buckets, l.Bucket)
	})
}

func names(costs []quota.Cost) (names []string) {
	for _, c := range costs {
		names = append(names, c.Bucket)
	}
	return names
}

func bucketsOf(reservation string) []string {
	_, buckets, _ := quota.ParseReservation(reservation)
	return buckets
}

// inOne returns a cost in the only bucket of a reservation.
func inOne(reservation string, units int64) []quota.Cost {
	return []quota.Cost{{Bucket: append(bucketsOf(reservation), "")[0], Units: units}}
}

func bucketName(name string) string { return cmp.Or(name, quota.DefaultBucket) }
