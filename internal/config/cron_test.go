package config

import (
	"testing"

	"github.com/robfig/cron/v3"
)

// TestCronAgrees: what passes here passes in the scheduler, and what is refused here is refused there.
func TestCronAgrees(t *testing.T) {
	for _, spec := range []string{
		"0 */3 * * *", "* * * * *", "*/5 * * * *", "0-30/10 1,2,3 1-31 JAN-mar sun", "0 0 ? * mon-fri", "59 23 31 12 6",
		"@hourly", "@daily", "@every 3h", "@every 90s", "5/15 * * * *",
		"", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 7", "a * * * *", "*/0 * * * *", "5-1 * * * *",
		"* * * *", "* * * * * *", "@often", "@every", "@every x", "-1 * * * *", "1-2-3 * * * *", "*/x * * * *",
	} {
		_, theirs := cron.ParseStandard(spec)
		if ours := checkCron(spec); (ours == nil) != (theirs == nil) {
			t.Errorf("%q: here %v, there %v", spec, ours, theirs)
		}
	}
}
