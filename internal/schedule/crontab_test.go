package schedule

import (
	"reflect"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	const text = `# m h dom mon dow user command
SHELL=/bin/sh
 PATH = "/usr/local/bin:/usr/bin"

15 *	* * *	root	quotactl exec --units 4 -- backfill
CRON_TZ=Asia/Tokyo
@Daily nobody  X=1 quotactl exec --id "a-$(date +\%F)" -- mail % standard input % more
0 0 * * 5-7 root a
@reboot root b
5/15 * * * * root c
* * */2 * 1 root d
61 * * * * root e
* * * * * root
`
	lines, problems := ParseCrontab(text, true)
	env := map[string]string{"SHELL": "/bin/sh", "PATH": "/usr/local/bin:/usr/bin"}
	tokyo := map[string]string{"SHELL": "/bin/sh", "PATH": "/usr/local/bin:/usr/bin",
		"CRON_TZ": "Asia/Tokyo"}
	want := []CronLine{
		{5, "15 * * * *", "", "root", "quotactl exec --units 4 -- backfill", env},
		{7, "@daily", "Asia/Tokyo", "nobody",
			`X=1 quotactl exec --id "a-$(date +%F)" -- mail`, tokyo},
		{8, "0 0 * * 5,6,0", "Asia/Tokyo", "root", "a", tokyo},
	}
	if !reflect.DeepEqual(lines, want) {
		t.Errorf("got  %+v\nwant %+v", lines, want)
	}
	var at []int
	for _, p := range problems {
		at = append(at, p.Number)
	}
	if !reflect.DeepEqual(at, []int{9, 10, 11, 12, 13}) {
		t.Errorf("%+v", problems)
	}
}

// TestSpecs: each spec parses as a schedule, and ticks when Debian's cron does.
func TestSpecs(t *testing.T) {
	for spec, want := range map[string]string{
		"* * * * *":         "Mon 1 00:00",
		"30 4 2,15 * 5":     "Tue 2 04:30", // either day
		"0 12 * * sun":      "Sun 7 12:00",
		"0 12 * * 7":        "Sun 7 12:00",
		"0 12 * * 6-7/1":    "Sat 6 12:00",
		"0 0 */2 * *":       "Mon 1 00:00",
		"23 0-23/2 * * *":   "Mon 1 00:23",
		"5 4 * jun-aug mon": "Mon 1 04:05",
		"0 0 31 * */2":      "Tue 2 00:00", // */2 begins with a star: cron needs both
	} {
		lines, problems := ParseCrontab(spec+" true", false)
		if spec == "0 0 31 * */2" {
			if len(problems) != 1 {
				t.Errorf("%s: %+v", spec, lines)
			}
			continue
		}
		if len(problems) > 0 {
			t.Errorf("%s: %+v", spec, problems)
			continue
		}
		s, err := Parse(lines[0].Spec, time.UTC)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		lane := Lane{Job: "a", Schedule: s}
		first := lane.Next(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC).Add(-time.Nanosecond)).At
		if got := first.Format("Mon 2 15:04"); got != want {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
	}
	for _, spec := range []string{"? * * * *", "*/0 * * * *", "5-1 * * * *", "1,,2 * * * *",
		"* * 0 * *", "* * * 13 *", "* * * * 8", "* * * * mo", "1 2 3", "@every 5m", "+5 * * * *"} {
		if lines, _ := ParseCrontab(spec+" true", false); len(lines) > 0 {
			t.Errorf("%s is read: %+v", spec, lines)
		}
	}
}
