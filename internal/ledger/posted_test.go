package ledger_test

import (
	"fmt"
	"sync"
	"testing"

	"quotabudget/internal/quota"
)

// TestPostedByTheNextCall: the first call that the ledger answers after an outage posts the
// journal.
func TestPostedByTheNextCall(t *testing.T) {
	t.Parallel()
	e := open(t)
	spend := func() {
		_, err := e.spend("", 1)
		e.must(err)
	}
	spend()
	e.away(spend)
	e.answers()
	spend()
	e.expectLines(0)
	e.expectUsage(3, 0)
}

// TestUsedBeyondAPostedLine: usage beyond a line that was posted meanwhile is booked in addition,
// once.
func TestUsedBeyondAPostedLine(t *testing.T) {
	t.Parallel()
	e := open(t)
	var d quota.Decision
	e.away(func() { d = e.hold(8) })
	e.post()
	for range 2 {
		_, err := e.Book(t.Context(), e.used(d, 13))
		e.must(err)
	}
	e.expectUsage(13, 0)
}

// TestUsedBeyondALineBeingPosted: a call ends between two attempts to post its line of 3 units. The
// ledger then has what the call used, or these 3 units if that is less, once.
func TestUsedBeyondALineBeingPosted(t *testing.T) {
	t.Parallel()
	for _, used := range []int64{5, 1, 0} {
		for _, key := range []string{"", "key"} {
			for _, booked := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d used, key %q, booked before %t", used, key, booked),
					func(t *testing.T) { endWhilePosted(t, used, key, booked) })
			}
		}
	}
}

func endWhilePosted(t *testing.T, used int64, key string, booked bool) {
	e := open(t)
	var d quota.Decision
	e.away(func() { d = e.holdWith(key, 3) })
	lines, err := e.Budget.Journal.Lines(t.Context())
	e.must(err)
	l, err := e.Budget.Journal.Begin(t.Context(), lines[0].ID)
	e.must(err)
	if booked { // by a process that was killed before it removed the line
		e.post()
		_, _, err := e.Budget.Journal.Spend(t.Context(), l, 0)
		e.must(err)
	}
	for range 2 {
		_, err = e.Book(t.Context(), e.used(d, used))
		e.must(err)
	}
	if used > 3 { // otherwise the line is as it was
		removed, err := e.Budget.Journal.Remove(t.Context(), l)
		if err != nil || removed {
			t.Errorf("Remove of a line that was corrected: %t, %v", removed, err)
		}
	}
	e.post()
	e.post()
	e.expectUsage(max(used, 3), 0)
}

// TestPostedByMany: several processes that post the same lines record each once.
func TestPostedByMany(t *testing.T) {
	t.Parallel()
	e := open(t)
	e.away(func() {
		for range 5 {
			_, err := e.spend("", 2)
			e.must(err)
		}
	})
	lines, err := e.Budget.Journal.Lines(t.Context())
	e.must(err)
	e.post()
	for _, l := range lines { // as one that died before it removed them
		_, _, err := e.Budget.Journal.Spend(t.Context(), l, 0)
		e.must(err)
	}
	var posters sync.WaitGroup
	for range 3 {
		posters.Go(func() {
			if err := e.Post(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	posters.Wait()
	e.expectUsage(10, 0)
}
