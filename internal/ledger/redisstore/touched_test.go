package redisstore_test

import (
	"bufio"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// TestTouchedEntries: no script and no command reads or writes more than 10,000 entries, fields or
// members, with 20,000 entries and 5,000 holds in a bucket, and 20,000 sums in another.
func TestTouchedEntries(t *testing.T) {
	t.Parallel()
	l := openEnv(t, redistest.Start(t, redistest.Options{}).URL())
	limits := []quota.Limit{{Bucket: "default", Units: 1_000_000, Window: quota.Sliding(24 * time.Hour)}}
	charge := func(units int64) (quota.Charge, quota.Decision) {
		c := one("k", units)
		c.Limits = limits
		d, err := l.Charge(t.Context(), c)
		if err != nil {
			t.Error(err)
		}
		return c, d
	}
	charge(1)
	addEntries(t, l, 20_000, time.Now())
	for first := 0; first < 5000; first += 500 {
		scope := quota.Scope{Credential: "k", Buckets: []string{"default"}}
		noError(t, l.Update(t.Context(), scope, func(a *quota.Account) (quota.Change, error) {
			var change quota.BucketChange
			for i := range 500 {
				change.Put = append(change.Put, quota.Hold{ID: fmt.Sprint("default.r", first+i), Units: 1,
					Lapse: quota.LapseCharge, Created: a.Now, Expires: a.Now + time.Hour.Microseconds()})
			}
			return quota.Change{Buckets: []quota.BucketChange{change}}, nil
		}))
	}
	wide := one("k", 1)
	wide.Costs[0].Bucket = "wide"
	wide.Limits = []quota.Limit{{Bucket: "wide", Units: 1, Window: limits[0].Window}}
	sums := make(map[string]any)
	for i := range 20_000 {
		sums[fmt.Sprintf("00:00 calls job=%d", i)] = 1
	}
	day := allow(t, l, wide).At.UTC().Format(time.DateOnly)
	noError(t, l.client.HSet(t.Context(), "quota:{k}:wide:sums:"+day, sums).Err())
	monitor, err := net.Dial("tcp", l.client.(*redis.Client).Options().Addr)
	noError(t, err)
	defer monitor.Close()
	lines := bufio.NewReader(monitor)
	fmt.Fprint(monitor, "MONITOR\r\n")
	if ok, err := lines.ReadString('\n'); err != nil || ok != "+OK\r\n" {
		t.Fatal(ok, err)
	}
	l = openEnv(t, "redis://"+l.client.(*redis.Client).Options().Addr) // has read nothing before
	c, d := charge(1)
	charge(999_999)
	last := reserveOf("default.last", 1, time.Hour)
	last.Limits = limits
	setAside(t, l, last)
	noError(t, only(l.Settle(t.Context(), settleOf("default.last", 1))))
	noError(t, only(l.Extend(t.Context(), extendOf("default.r1"))))
	noError(t, only(l.Usage(t.Context(), "k", limits)))
	entriesOf(t, l, "k")
	noError(t, only(l.Sums(t.Context(), quota.SumQuery{Credential: "k", Bucket: "default"})))
	found, err := l.Sums(t.Context(), quota.SumQuery{Credential: "k", Bucket: "wide"})
	if noError(t, err); len(found) < 20_000 {
		t.Errorf("%d sums", len(found))
	}
	noError(t, only(l.Adjust(t.Context(), adjustOf("k", 20))))
	noError(t, l.Cancel(t.Context(), c, d))
	check(t, l, false)
	noError(t, only(l.Ledger.Check(t.Context(), "k", "wide", true)))
	must(t, l.client.Echo(t.Context(), "end"))
	script, touched, largest := "", 0, 0
	for {
		line, err := lines.ReadString('\n')
		noError(t, err)
		words := word.FindAllString(line, -1)
		for i := range words {
			words[i] = strings.ToUpper(strings.Trim(words[i], `"`))
		}
		switch {
		case len(words) == 0:
			continue
		case words[0] == "ECHO" && words[1] == "END":
			if largest < 5000 { // the holds were read
				t.Errorf("at most %d were touched", largest)
			}
			return
		case !strings.Contains(line, " lua]"):
			script, touched = strings.Join(words[:min(3, len(words))], " "), 0
		}
		touched += l.touches(t, words)
		if largest = max(largest, touched); touched > 10_000 {
			t.Errorf("%s: %s touches %d", script, words, touched)
		}
	}
}

var word = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// touches returns the maximum number of entries, fields or members that a command reads or writes.
func (l *env) touches(t *testing.T, words []string) int {
	number := func(i int) int {
		n, err := strconv.Atoi(words[i])
		if err != nil {
			t.Errorf("%q", words)
		}
		return n
	}
	switch words[0] {
	case "ZRANGE", "ZREVRANGE":
		if number(3) < 0 {
			return int(l.client.ZCard(t.Context(), strings.ToLower(words[1])).Val())
		}
		return number(3) - number(2) + 1
	case "ZRANGEBYSCORE", "ZREVRANGEBYSCORE":
		if i := slices.Index(words, "LIMIT"); i > 0 {
			return number(i + 2)
		}
		from, to := strings.ToLower(words[2]), strings.ToLower(words[3])
		return int(l.client.ZCount(t.Context(), strings.ToLower(words[1]), from, to).Val())
	case "HSCAN":
		return number(4)
	case "HGETALL":
		return int(l.client.HLen(t.Context(), strings.ToLower(words[1])).Val())
	case "ZREMRANGEBYSCORE":
		return quota.MaxRewritten + 1
	case "EVALSHA", "EVAL":
		return 0
	}
	return len(words) - 2
}
