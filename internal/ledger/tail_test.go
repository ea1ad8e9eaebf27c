package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

func follow(s *store, credential string) *ledger.Tail {
	return &ledger.Tail{Ledger: s, Credential: credential,
		Buckets: func(ctx context.Context) ([]string, error) {
			all, err := s.BucketsOf(ctx, credential)
			return quota.BucketNames(all), err
		}}
}

// show returns news as text: "default 3, default -3 taken back".
func show(n ledger.TailNews) string {
	var words []string
	for _, l := range n.Lines {
		text := fmt.Sprintf("%s %d", l.Bucket, l.Units)
		if l.TakenBack {
			text += " taken back"
		}
		words = append(words, text)
	}
	return strings.Join(append(words, n.Notes...), ", ")
}

// TestFollow follows entries: each is reported once, in order, also that of an expired reservation
// and of a new bucket, and each entry that is taken back.
func TestFollow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		for n := range int64(5) {
			s.charge(t, "k", n+1, "default")
		}
		s.pass(time.Second)
		s.charge(t, "k", 9, "other")
		log, here := follow(s, "k"), time.Now()
		news, err := log.Begin(t.Context(), ledger.TailStart{Newest: 3}, here)
		must(t, err)
		if got := show(news); got != "default 4, default 5, other 9" {
			t.Errorf("to begin with: %s", got)
		}
		next := func(want string) {
			t.Helper()
			news, err := log.Next(t.Context(), here)
			if got := show(news); err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		}
		next("")
		s.charge(t, "k", 1, "default", "other")
		s.charge(t, "k", 2, "default")
		next("default 1, other 1, default 2")
		next("")
		c, d := s.charge(t, "k", 7, "default") // cancelled before it is reported
		must(t, s.Cancel(t.Context(), c, d))
		next("")
		c, d = s.charge(t, "k", 8, "default", "other")
		next("default 8, other 8")
		s.charge(t, "k", 3, "default")
		must(t, s.Cancel(t.Context(), c, d))
		next("default -8 taken back, other -8 taken back, default 3")
		next("")
		s.late(t, here, next, log)
		s.charge(t, "k", 1, "new")
		here = here.Add(time.Hour)
		next("new 1")
		next("")
		soon := false // but where listing the buckets takes long
		for i := 0; i < 4 && !soon; i++ {
			s.charge(t, "k", 1, fmt.Sprint("new", i))
			here = here.Add(2 * time.Second)
			news, err := log.Next(t.Context(), here)
			must(t, err)
			soon = len(news.Lines) > 0
		}
		if !soon {
			t.Error("the first entry of a bucket is not reported within two seconds")
		}
	})
}

// late: a reservation lapses and is reported although nothing else happens; then it is settled with
// less.
func (s *store) late(t *testing.T, here time.Time, next func(string), log *ledger.Tail) {
	t.Helper()
	id := quota.ReservationID(quota.NewID(time.Now()), "default")
	_, err := s.Reserve(t.Context(), quota.Reserve{Credential: "k", ID: id, Unlimited: true,
		Costs: costs(100, "default"), TTL: time.Second, Lapse: quota.LapseCharge,
		Labels: quota.Labels{"job": "late"}})
	must(t, err)
	next("")
	s.pass(time.Minute)
	next("")
	news, err := log.Next(t.Context(), here.Add(20*time.Second))
	if got := show(news); err != nil || got != "default 100" ||
		news.Lines[0].Labels["job"] != "late" {
		t.Errorf("lapsed: %s, %v", got, err)
	}
	_, err = s.Settle(t.Context(), quota.Settle{Credential: "k", Reservation: id, ID: "s",
		Costs: costs(40, "default")})
	must(t, err)
	next("default -60 taken back")
}

// TestFollowAddsUp charges, cancels, holds and settles at random: the reported lines add up to the
// log, each entry once and in order.
func TestFollowAddsUp(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		cases := 0
		rapid.Check(t, func(r *rapid.T) {
			cases++
			h := &history{store: s, t: r, credential: fmt.Sprintf("k%d", cases)}
			log, here := follow(s, h.credential), time.Now()
			tell := func(news ledger.TailNews, err error) {
				must(r, err)
				h.reported = append(h.reported, news.Lines...)
			}
			tell(log.Begin(r.Context(), ledger.TailStart{}, here))
			for range rapid.IntRange(1, 12).Draw(r, "steps") {
				for range rapid.IntRange(0, 4).Draw(r, "changes") {
					h.change()
				}
				here = here.Add(time.Minute)
				tell(log.Next(r.Context(), here))
			}
			h.check()
		})
	})
}

// history changes a ledger at random.
type history struct {
	*store
	t          *rapid.T
	credential string
	charges    []func() error // take back
	holds      []string
	reported   []ledger.TailLine
}

func (h *history) change() {
	buckets := rapid.SampledFrom([][]string{{"a"}, {"b"}, {"a", "b"}}).Draw(h.t, "buckets")
	units, ctx := rapid.Int64Range(1, 50).Draw(h.t, "units"), h.t.Context()
	pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(h.t, "which") }
	var err error
	switch what := rapid.IntRange(0, 6).Draw(h.t, "what"); {
	case what == 1 && len(h.charges) > 0:
		i := pick(len(h.charges))
		err = h.charges[i]()
		h.charges = slices.Delete(h.charges, i, i+1)
	case what == 2:
		id := quota.ReservationID(quota.NewID(time.Now()), buckets...)
		_, err = h.Reserve(ctx, quota.Reserve{Credential: h.credential, ID: id, Unlimited: true,
			Costs: costs(units, buckets...), TTL: time.Minute, Lapse: quota.LapseCharge})
		h.holds = append(h.holds, id)
	case what == 3 && len(h.holds) > 0:
		i := pick(len(h.holds))
		_, held, _ := quota.ParseReservation(h.holds[i])
		_, err = h.Settle(ctx, quota.Settle{Credential: h.credential, Reservation: h.holds[i],
			ID: quota.NewID(time.Now()), Costs: costs(units, held...)})
		h.holds = slices.Delete(h.holds, i, i+1)
	case what == 6:
		now, late := h.Time(ctx)
		must(h.t, late)
		ago := time.Duration(rapid.IntRange(0, 100).Draw(h.t, "seconds ago")) * time.Second
		_, err = h.Adjust(ctx, quota.Adjust{Credential: h.credential, Bucket: buckets[0],
			Units: units << 20, // never as many as are taken back
			ID:    quota.NewID(time.Now()), Until: now.Add(-ago),
			Labels: quota.Labels{quota.LabelSource: "adjust"}})
	case what == 4:
		h.pass(time.Duration(rapid.IntRange(1, 90).Draw(h.t, "seconds")) * time.Second)
	default:
		c, d := h.charge(h.t, h.credential, units, buckets...)
		h.charges = append(h.charges, func() error { return h.Cancel(ctx, c, d) })
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// check compares the reported lines with the log.
func (h *history) check() {
	left := make(map[string][]quota.Entry)
	for _, line := range h.reported {
		list := left[line.Bucket]
		i := slices.IndexFunc(list, func(e quota.Entry) bool { return e.At.Equal(line.At) })
		switch {
		case !line.TakenBack && i < 0:
			i = slices.IndexFunc(list, func(e quota.Entry) bool { return e.At.After(line.At) })
			if i >= 0 && line.Labels[quota.LabelSource] != "adjust" {
				h.t.Fatalf("%s is reported after %s", line.At, list[i].At)
			} else if i < 0 {
				i = len(list)
			}
			left[line.Bucket] = slices.Insert(list, i, line.Entry)
			continue
		case i < 0 || !line.TakenBack:
			h.t.Fatalf("%+v", line)
		}
		if list[i].Units += line.Units; list[i].Units == 0 {
			left[line.Bucket] = slices.Delete(list, i, i+1)
		}
	}
	for _, name := range []string{"a", "b"} {
		q := quota.Query{Credential: h.credential, Bucket: name}
		entries, err := h.Entries(h.t.Context(), q)
		if err != nil {
			h.t.Fatal(err)
		}
		same := func(a, b quota.Entry) bool {
			return a.At.Equal(b.At) && a.ID == b.ID && a.Units == b.Units
		}
		if !slices.EqualFunc(entries, left[name], same) {
			h.t.Fatalf("reported of %s:\n%+v\nthe log:\n%+v", name, left[name], entries)
		}
	}
}
