package share

import (
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// TestShares_Month: a month's units are divided over its ticks, and a floor is units per day of
// that month.
func TestShares_Month(t *testing.T) {
	for month, days := range map[time.Month]int64{time.April: 30, time.December: 31,
		time.February: 28} {
		from := time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC)
		rule := Rule{Price: 1, Reset: utc, Limits: []quota.Limit{{Bucket: quota.DefaultBucket,
			Units: 310, Window: quota.Window{Calendar: "month", Zone: time.UTC}}}}
		for _, region := range []string{"US", "BR"} {
			rule.Lanes = append(rule.Lanes, Lane{Lane: schedule.Lane{Job: "j", Region: region,
				Schedule: parse(time.Hour)}, Pages: 1, Weight: 1})
		}
		rule.Lanes[1].Weight, rule.Lanes[1].Floor = 0, 4
		s, until := rule.Begin().Shares(from.UnixMicro(), func(int) int64 { return 310 })
		if len(s) == 0 || !until.Equal(from.AddDate(0, 1, 0)) || s[1].Entitled != 4*days ||
			s[0].Entitled != 310-4*days {
			t.Errorf("%v: %v %+v", month, until, s)
		}
	}
	for _, text := range []string{"minute", "hour", "anchored 24h", "restoring 1/1h", "concurrent",
		"5h"} {
		if w, err := quota.ParseWindow(text, ""); err != nil || Shared(quota.Limit{Window: w}) {
			t.Errorf("%s is shared: %v", text, err)
		}
	}
}
