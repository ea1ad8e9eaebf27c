package redisledger

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"quotabudget/internal/quota"
)

// reply is what a script answered: whole numbers, the first of which is a status, or the status
// replayed and a kept answer.
type reply []any

// doubles are the numbers of a reply that is a text of little-endian doubles.
func doubles(text string) reply {
	r := make(reply, len(text)/8)
	for i := range r {
		r[i] = int64(doubleAt(text, i))
	}
	return r
}

// status is the first number. A reply without one is of no script that this version knows.
func (r reply) status() int64 {
	if len(r) > 0 {
		if n, ok := r[0].(int64); ok {
			return n
		}
	}
	return -1 << 62
}

// ints are the numbers of the reply, of which there are n at least.
func (r reply) ints(n int) ([]int64, error) {
	ints := make([]int64, len(r))
	for i, v := range r {
		var ok bool
		if ints[i], ok = v.(int64); !ok {
			return nil, r.unknown()
		}
	}
	if len(ints) < n {
		return nil, r.unknown()
	}
	return ints, nil
}

// text is the kept answer of a reply that is replayed.
func (r reply) text() string {
	if len(r) > 1 {
		text, _ := r[1].(string)
		return text
	}
	return ""
}

func (r reply) unknown() error {
	return fmt.Errorf("%w: a script replied %.200q, which this version does not know",
		quota.ErrLedgerUnusable, fmt.Sprint([]any(r)...))
}

// answer is what was kept under a key: the ID, what would have denied in observe mode, the buckets
// in their order, and the numbers of the reply.
type answer struct {
	id, limit string
	buckets   []string
	ints      []int64
}

// parseAnswer reads an answer of n numbers at least, kept in a key of the server, which the error
// names.
func parseAnswer(text, key string, n int) (answer, error) {
	fields := strings.Fields(text)
	if len(fields) < 3 {
		return answer{}, damagedAnswer(key)
	}
	a := answer{id: fields[0], buckets: strings.Split(fields[2], ",")}
	if fields[1] != "-" {
		a.limit, _ = url.QueryUnescape(fields[1])
	}
	for _, f := range fields[3:] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return answer{}, damagedAnswer(key)
		}
		a.ints = append(a.ints, n)
	}
	if len(a.ints) < n || a.ints[0] != allowed && a.ints[0] != observed {
		return answer{}, damagedAnswer(key)
	}
	return a, nil
}

func damagedAnswer(key string) error {
	return fmt.Errorf("%w: redis: the answer kept in %s is damaged: "+
		"delete that key, after a look at what was charged (quotactl log)",
		quota.ErrLedgerUnusable, key)
}

// order sorts costs as they were when the answer was given; false when it was not given for these
// buckets.
func (a answer) order(costs []quota.Cost) bool {
	for _, c := range costs {
		if !slices.Contains(a.buckets, c.Bucket) {
			return false
		}
	}
	slices.SortFunc(costs, func(x, y quota.Cost) int {
		return slices.Index(a.buckets, x.Bucket) - slices.Index(a.buckets, y.Bucket)
	})
	return len(costs) == len(a.buckets)
}
