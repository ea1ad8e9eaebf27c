package schedule

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestParseRefuses: each error says what is wrong and how to write it.
func TestParseRefuses(t *testing.T) {
	const form, zoned = `day of the month, month, day of the week, such as "0 */3 * * *"`,
		"time zone"
	for spec, want := range map[string]string{
		"":                                 form,
		"  ":                               form,
		"0 * * *":                          form,
		"0 0 * * * *":                      form,
		"61 * * * *":                       `minute "61": write 0 to 59,`,
		"* 24 * * *":                       `hour "24": write 0 to 23,`,
		"* * 0 * *":                        `day of the month "0": write 1 to 31,`,
		"* * * * 7":                        `day of the week "7": write 0 to 6 or sun to sat,`,
		"*/0 * * * *":                      `minute "*/0": write`,
		"* * * 5-1 *":                      `month "5-1": write 1 to 12 or jan to dec,`,
		"x * * * *":                        `minute "x": write`,
		"@often":                           "write @yearly",
		"@":                                "write @yearly",
		"0 0 30 2 *":                       "never fires",
		"0 0 30,31 feb *":                  "never fires",
		"0 0 31 4,6,9,11 *":                "never fires",
		", * * * *":                        "empty item",
		"1,,2 * * * *":                     "empty item",
		"*-5 * * * *":                      "begins with a number",
		"0 ?-5 * * *":                      "begins with a number",
		"@every":                           "@every 90s",
		"@every ":                          "@every 90s",
		"@every x":                         "@every 90s",
		"@every 5":                         "@every 90s",
		"@every 0s":                        "1s or more",
		"@every -1h":                       "1s or more",
		"@every 999ms":                     "1s or more",
		"@every 1500ms":                    "full seconds",
		"TZ=":                              zoned,
		"TZ=UTC":                           zoned,
		"CRON_TZ=Asia/Tokyo":               zoned,
		"CRON_TZ= 0 * * * *":               zoned,
		"CRON_TZ=Local 0 * * * *":          zoned,
		"CRON_TZ=Asia/Tokio 0 * * * *":     `"Asia/Tokio" is not an IANA time zone`,
		"CRON_TZ=../../etc/passwd @hourly": zoned,
		"TZ=UTC TZ=UTC":                    zoned,
		"TZ=UTC CRON_TZ=UTC @hourly":       zoned,
		"TZ=UTC x":                         form,
	} {
		s, err := Parse(spec, time.UTC)
		if err == nil || s != nil {
			t.Errorf("%q: %v, want an error with %q", spec, s, want)
			continue
		}
		if !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "is not a schedule") {
			t.Errorf("%q: %v, want %q in it", spec, err, want)
		}
	}
}

func TestParseTakes(t *testing.T) {
	for _, spec := range []string{
		"0 */3 * * *", "5/15 * * * *", "0-30/10 1,2,3 1-31 JAN-mar sun", "? ? ? ? ?",
		" 0 0 31 4 mon ", "@Daily", "@midnight", "@annually",
		"@every 1s", "@every  3h", "TZ=Asia/Tokyo 0 0 29 2 *", "CRON_TZ=UTC @every 1m",
	} {
		s, err := Parse(spec, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if s.String() != spec {
			t.Errorf("%q became %q", spec, s)
		}
		if next := s.Next(time.Unix(0, 0)); !next.After(time.Unix(0, 0)) {
			t.Errorf("%q: %s", spec, next)
		}
	}
}

// FuzzParse: Parse returns for any input, and Next and Prev agree on the ticks of each spec it
// accepts.
func FuzzParse(f *testing.F) {
	for _, spec := range []string{
		"0 */3 * * *", "@every 90s", "CRON_TZ=UTC @daily", "TZ=", "TZ=UTC\t", "* * 30 2 ,",
		"*/18446744073709551615 * * * *", "*/5,7 0-3/2 1 jan-MAR mon", "0 0 29 2 *", "+1 * * * *",
		"00 * * * *",
	} {
		f.Add(spec, int64(1_790_000_000))
	}
	zone, err := time.LoadLocation("America/Los_Angeles")
	must(f, err)
	f.Fuzz(func(t *testing.T, spec string, unix int64) {
		s, err := Parse(spec, zone)
		if err != nil {
			return
		}
		now := time.Unix(unix%(1<<33), 0)
		next := s.Next(now)
		if again := s.Next(next.Add(-time.Second)); !next.After(now) || !again.Equal(next) {
			t.Errorf("%q: after %s comes %s, a second before that %s", spec, now, next, again)
		}
		if prev, ok := s.Prev(next); !ok || !prev.Equal(next) {
			t.Errorf("%q: %s is not its own last tick, %s", spec, next, prev)
		}
		if s.Interval() < time.Second {
			t.Errorf("%q: interval %s", spec, s.Interval())
		}
	})
}

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
		lane := Lane{Schedule: s}
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
