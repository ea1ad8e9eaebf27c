package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

var begin = time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC)

// parsed returns the regions of one job that tick together, in order: "US 4" wants 4 pages.
func parsed(t *testing.T, spec, regions string) (all []share.Lane) {
	for text := range strings.SplitSeq(regions, ", ") {
		l := lanes(t, spec, 0, 0, "")[0]
		if _, err := fmt.Sscan(text, &l.Region, &l.Pages); err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

// outcomes plays a plan, with other charges at the given minutes, if there is room for them.
func outcomes(plan Plan, charges map[int]int64) (lines []string) {
	p := plan.Play()
	clock := func(at time.Time) string { return at.Format("15:04") }
	for minute := range 24 * 60 {
		now := begin.Add(time.Duration(minute) * time.Minute).UnixMicro()
		for at, ok := p.Next(); ok && at < now; at, ok = p.Next() {
			r := p.Run()
			line := fmt.Sprintf("%s %s %s %d/%d", clock(r.At), r.Region, r.Outcome, r.Pages,
				r.Wanted)
			if r.Lost() {
				line += " " + r.Limit
			}
			if !r.RetryAt.IsZero() {
				line += " " + clock(r.RetryAt)
			}
			lines = append(lines, line)
		}
		if units := charges[minute]; units > 0 {
			room, _ := p.Room(now)
			if units <= room {
				p.Take(now, units)
			}
			left, limit := p.Room(now)
			lines = append(lines, fmt.Sprint(clock(moment(now)), " others ", units, " ",
				units <= room, ", then ", left, " by ", limit, ", more at ", clock(p.Frees(now))))
		}
	}
	return lines
}

func TestPlay(t *testing.T) {
	for name, c := range map[string]struct {
		spec, regions string
		limits        []quota.Limit
		charges       map[int]int64
		want          []string
	}{
		"the example of the package": {"0 0-4 * * *", "US 4, BR 4",
			[]quota.Limit{sliding(30, 4*time.Hour)}, nil, []string{
				"00:00 US complete 4/4", "00:00 BR complete 4/4", "01:00 US complete 4/4",
				"01:00 BR complete 4/4", "02:00 US complete 4/4", "02:00 BR complete 4/4",
				"03:00 US complete 4/4", "03:00 BR partial 2/4 default 4h 04:00",
				"04:00 BR complete 4/4", "04:00 US complete 4/4"}},
		"a charge in between": {"0 0-1 * * *", "US 4, BR 4",
			[]quota.Limit{sliding(10, 90*time.Minute)},
			map[int]int64{30: 2, 40: 1}, []string{
				"00:00 US complete 4/4", "00:00 BR complete 4/4",
				"00:30 others 2 true, then 0 by default 1h30m, more at 01:30",
				"00:40 others 1 false, then 0 by default 1h30m, more at 01:30",
				"01:00 US denied 0/4 default 1h30m 01:30",
				"01:00 BR denied 0/4 default 1h30m 01:30"}},
		"several windows: the one that makes it wait longest is named": {"*/10 0 * * *", "US 3",
			[]quota.Limit{sliding(2, 5*time.Minute), sliding(6, 25*time.Minute)}, nil, []string{
				"00:00 US partial 2/3 default 5m 00:05", "00:10 US complete 1/1",
				"00:20 US partial 2/3 default 5m 00:25", "00:30 US complete 1/1",
				"00:40 US partial 2/3 default 5m 00:45", "00:50 US complete 1/1"}},
		"charts of different length": {"0 */8 * * *", "US 1, BR 5, JP 3",
			[]quota.Limit{sliding(18, 24*time.Hour)}, nil, []string{
				"00:00 US complete 1/1", "00:00 BR complete 5/5", "00:00 JP complete 3/3",
				"08:00 US complete 1/1", "08:00 BR complete 5/5", "08:00 JP left_out 0/3 share",
				"16:00 JP complete 3/3", "16:00 US left_out 0/1 share",
				"16:00 BR left_out 0/5 share"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan{Lanes: parsed(t, c.spec, c.regions), Limits: c.limits, Price: price,
				Reset: day(t, "UTC"), From: begin, To: begin.AddDate(0, 0, 1)}
			if got := outcomes(p, c.charges); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}
