package quota_test

import (
	"fmt"
	"strings"
	"testing"

	"quotabudget/internal/quota"
)

const trace = "4bf92f3577b34da6a3ce929d0e0e4736"

// TestWithTrace: the trace of a well-formed traceparent is a label, if there is room for it, and
// nothing else is.
func TestWithTrace(t *testing.T) {
	t.Parallel()
	span := "-00f067aa0ba902b7-01"
	for header, want := range map[string]string{
		"00-" + trace + span:                                  trace,
		"cc-" + trace + span + "-what-will-be":                trace,
		"00-" + trace + span + "-more":                        "",
		"ff-" + trace + span:                                  "",
		"00-" + strings.ToUpper(trace) + span:                 "",
		"00-" + strings.Repeat("0", 32) + span:                "",
		"00-" + trace + "-1":                                  "",
		"cc-" + trace + span + "-" + strings.Repeat("x", 300): "",
		"": "",
	} {
		got := quota.Labels{"job": "x"}.WithTrace(header)
		if got[quota.LabelTrace] != want || got["job"] != "x" {
			t.Errorf("%q: %v, want %q", header, got, want)
		}
	}
	full := quota.Labels{}
	for i := range 16 {
		full[fmt.Sprintf("l%d", i)] = "x"
	}
	if got := full.WithTrace("00-" + trace + span); len(got) != 16 {
		t.Errorf("%d labels", len(got))
	}
	line := quota.Labels{"run": "r", "trace": trace, "region": "US"}
	if cut := quota.CutRun(line.Encode()); cut != "region=US" || line.WithoutRun().Encode() != cut {
		t.Errorf("%s", cut)
	}
}
