package sqliteledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"quotabudget/internal/quota"
)

// How much is forgotten in passing, by each operation that adds one of its kind.
const (
	trimEntries      = 64
	trimAnswers      = 4
	trimReservations = 256
	trimClaims       = 16
)

// The kinds of answers.
const (
	ofKey    = "key"
	ofCommit = "commit"
)

// receipt is where the answer to a request is kept: the same request again gets the same answer.
type receipt struct {
	credential string
	kind       string
	key        string // "" keeps nothing
	request    string
	now        int64 // the clock's time at which it came
	until      int64 // when the answer is forgotten
}

// keyed is the receipt of a request that may carry an idempotency key.
func keyed(credential, key, request string, now int64, limits []quota.Limit) receipt {
	until := now + quota.RetentionFor(limits).Microseconds()
	return receipt{credential, ofKey, key, request, now, until}
}

// requestText is what must be the same for a key to be used again: verb, costs and reservation,
// whatever their order.
func requestText(verb string, costs []quota.Cost, reservation string) string {
	words := make([]string, len(costs))
	for i, c := range costs {
		words[i] = c.Bucket + "=" + strconv.FormatInt(c.Units, 10)
		if c.Most != 0 {
			words[i] += "-" + strconv.FormatInt(c.Most, 10)
		}
	}
	slices.Sort(words)
	return strings.TrimSpace(verb + " " + strings.Join(words, " ") + " " + reservation)
}

// recall finds the answer given before; known is false when there was none.
func (s *session) recall(r receipt) (d quota.Decision, known bool, err error) {
	var request, decision string
	if r.key == "" ||
		!s.find("answer_find", []any{r.credential, r.kind, r.key, r.now}, &request, &decision) {
		return d, false, nil
	}
	if request != r.request {
		return d, true, fmt.Errorf("%q was for %q, now it comes with %q: %w",
			r.key, request, r.request, quota.ErrKeyReused)
	}
	err = json.Unmarshal([]byte(decision), &d)
	if err != nil || !d.Allowed || d.At.IsZero() || len(d.Units) == 0 {
		return quota.Decision{}, true, fmt.Errorf("%w: the answer kept for %q is damaged: "+
			"delete its row in answers, after a look at what was charged (quotactl log)",
			quota.ErrLedgerUnusable, r.key)
	}
	d.Replayed = true
	return d, true, nil
}

// remember keeps an answer.
func (s *session) remember(r receipt, d quota.Decision) {
	if r.key == "" {
		return
	}
	decision, err := json.Marshal(d)
	s.fail("answer_keep", err)
	s.change("answer_trim", r.now, trimAnswers)
	s.change("answer_keep", r.credential, r.kind, r.key, r.request, string(decision), r.until)
}
