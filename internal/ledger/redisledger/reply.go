package redisledger

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// reply is what a script answered: whole numbers, the first of which is a status, or the status
// replayed and a kept answer.
type reply struct {
	list    []any
	doubles string // instead of list: the numbers as little-endian doubles
}

// len is how many numbers or texts there are.
func (r reply) len() int {
	if r.doubles != "" {
		return len(r.doubles) / 8
	}
	return len(r.list)
}

// number is the number at i; false if there is none.
func (r reply) number(i int) (int64, bool) {
	switch {
	case i >= r.len():
		return 0, false
	case r.doubles != "":
		return int64(doubleAt(r.doubles, i)), true
	}
	n, ok := r.list[i].(int64)
	return n, ok
}

// status is the first number. A reply without one is of no script that this version knows.
func (r reply) status() int64 {
	if n, ok := r.number(0); ok {
		return n
	}
	return -1 << 62
}

// ints are the numbers of the reply, of which there are n at least.
func (r reply) ints(n int) ([]int64, error) {
	ints := make([]int64, r.len())
	for i := range ints {
		var ok bool
		if ints[i], ok = r.number(i); !ok {
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
	if len(r.list) > 1 {
		text, _ := r.list[1].(string)
		return text
	}
	return ""
}

func (r reply) unknown() error {
	said := fmt.Sprint(r.list...)
	if r.doubles != "" {
		said = r.doubles
	}
	return fmt.Errorf("%w: a script replied %.200q, which this version does not know",
		quota.ErrLedgerUnusable, said)
}

// replies is what a script answered: a list, which charge.lua has for each call of a group, or as
// the plain scripts have it.
func replies(c *redis.Cmd) (reply, error) {
	if text, ok := c.Val().(string); ok {
		return reply{doubles: text}, nil
	}
	list, err := c.Slice()
	return reply{list: list}, err
}

// minReply is how many bytes a plain script replies to a call at least.
const minReply = 6 * 8

// toCall is the reply to call i of so many.
func (r reply) toCall(i, of int) (reply, error) {
	each := len(r.doubles) / of
	switch {
	case each >= minReply && each*of == len(r.doubles):
		return reply{doubles: r.doubles[i*each : (i+1)*each]}, nil
	case len(r.list) != of:
		return reply{}, r.unknown()
	}
	switch answer := r.list[i].(type) {
	case []any:
		return reply{list: answer}, nil
	case error:
		return reply{}, explain(answer)
	}
	return reply{}, r.unknown()
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

// unpackAnswer reads one that is kept as n doubles and the ID.
func unpackAnswer(text string, n int) (a answer, err error) {
	if len(text) <= 8*n || text[0] > 0 {
		return a, errEntry
	}
	a.id = text[8*n:]
	a.ints, err = reply{doubles: text[:8*n]}.ints(n)
	if err == nil && a.ints[0] != allowed {
		err = errEntry
	}
	return a, err
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
