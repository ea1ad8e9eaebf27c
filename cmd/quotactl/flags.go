package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

// misuse returns a UsageError with the usage line of c as its hint.
func misuse(c *cobra.Command, text string) error {
	return cli.Hint(cli.Usagef("%s", text), "usage: %s", c.UseLine())
}

// bindCall adds the flags that describe a charge.
func bindCall(flags *pflag.FlagSet, call *quota.Call) {
	call.Count = 1
	cli.Flags(flags, "method", &call.Method, "count", &call.Count, "units", &call.Units,
		"bucket", &call.Bucket, "label", newLabels(&call.Labels))
	cli.Limit(flags, 1, math.MaxInt64, "count", "units")
}

// checkCall validates the flags of bindCall and the key of --id. given reports whether a flag was
// given.
func checkCall(call quota.Call, key string, changed func(string) bool) error {
	switch {
	case changed("method") && (changed("bucket") || changed("units")):
		return cli.Usagef("--method sets the cost: leave out --bucket and --units")
	case changed("method") && call.Method == "":
		return cli.Usagef("--method is empty")
	case changed("count") && !changed("method"):
		return cli.Usagef("--count needs --method")
	case changed("bucket") && call.Bucket == "":
		return cli.Usagef("--bucket is empty")
	case changed("id") && key == "":
		return cli.Usagef("--id is empty: leave it out, or give a key")
	}
	return nil
}

// labelFlag is the value of --label, which can be repeated.
type labelFlag struct{ quota.Labels }

// onceFlag is the value of a flag that is refused if it is given twice.
type onceFlag struct{ value *string }

func (f onceFlag) String() string { return "" } // no default to show

func (f onceFlag) Type() string { return "string" }

func (f onceFlag) Set(text string) error {
	if *f.value != "" {
		return errors.New("is given twice")
	}
	*f.value = text
	return nil
}

func newLabels(labels *quota.Labels) labelFlag {
	*labels = quota.Labels{}
	return labelFlag{*labels}
}

func (l labelFlag) String() string { return "" } // no default to show

func (l labelFlag) Type() string { return "label" }

func (l labelFlag) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	switch {
	case !ok:
		return errors.New("write NAME=VALUE")
	case value == "":
		return fmt.Errorf("the value of %s is empty: leave it out, or write NAME=VALUE", name)
	}
	if _, again := l.Labels[name]; again {
		return fmt.Errorf("%s is given twice", name)
	}
	l.Labels[name] = value
	return nil
}

// labelText formats labels for people: "job=nightly region=BR".
func labelText(labels quota.Labels) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, name+"="+labels[name])
	}
	return strings.Join(parts, " ")
}

// spanFlag is a duration in which days are allowed.
type spanFlag struct{ value *time.Duration }

func (s spanFlag) String() string {
	if s.value == nil || *s.value == 0 {
		return ""
	}
	return words.Span(*s.value)
}

func (s spanFlag) Type() string { return "duration" }

func (s spanFlag) Set(text string) (err error) {
	*s.value, err = words.ParseSpan(text)
	return err
}

func parseUnits(text string) (int64, error) {
	units, err := strconv.ParseInt(text, 10, 64)
	if err != nil || units < 1 {
		return 0, cli.Usagef("%q is not a number of units: write 1 or more", text)
	}
	return units, nil
}

// parseCosts reads arguments such as output=85.
func parseCosts(args []string) (costs []quota.Cost, err error) {
	for _, arg := range args {
		bucket, number, ok := strings.Cut(arg, "=")
		units, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil || units < 0 {
			return nil, cli.Usagef("%q is not BUCKET=UNITS, such as output=85", arg)
		}
		costs = append(costs, quota.Cost{Bucket: bucket, Units: units})
	}
	return costs, nil
}

// parseBy returns the label of --by. bare reports whether it is not one of the usual labels, and
// written without label:.
func parseBy(text string) (label string, bare bool, err error) {
	if label, err = report.LabelOf(text); err != nil && text != "" {
		bare = true
		label, err = report.LabelOf("label:" + text)
	}
	if err != nil {
		err = cli.Usagef("--by %s: write method, region, job, source, or the name of a label", text)
	}
	return label, bare, err
}

// parseTime reads the time of a flag: RFC 3339, a day in UTC, or a duration before (sign −1) or
// after (+1) now, to the microsecond.
func parseTime(flag, text string, now time.Time, sign time.Duration) (time.Time, error) {
	if d, err := words.ParseSpan(text); err == nil && d >= 0 {
		return now.Add(sign * d).Truncate(time.Microsecond), nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		err = cli.Usagef("--%s %s: write a duration such as 1h or 7d, a day such as 2026-11-21, or "+
			"RFC 3339, such as 2026-11-21T08:00:00Z", flag, text)
	}
	return t.Truncate(time.Microsecond), err
}
