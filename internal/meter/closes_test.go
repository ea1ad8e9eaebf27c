package meter_test

import (
	"fmt"
	"strings"
	"testing"

	"quotabudget/internal/costs"
	"quotabudget/internal/standin"
)

// TestWhatClosesABucket: a response that reports a bucket exhausted suspends it. A response that
// repeats the caller's words or concerns another quota does not.
func TestWhatClosesABucket(t *testing.T) {
	const echo = `{"error":{"code":%d,"errors":[{"reason":"invalidParameter"}],` +
		`"message":"Invalid value at 'region_code': \"units per day\""}}`
	unit := func(service, metric string) string {
		return fmt.Sprintf(`{"error":{"details":[{"domain":"googleapis.com",`+
			`"@type":"type.googleapis.com/google.rpc.ErrorInfo","metadata":{"service":%q,`+
			`"quota_unit":"1/d/{project}","quota_metric":%q}}]}}`, service, metric)
	}
	for _, c := range []struct {
		status       int
		body         string
		closed, told string
	}{
		{403, `{"error":{"errors":[{"reason":"quotaExceeded"}]}}`, "default", ""},
		{429, unit("youtube.googleapis.com", "youtube.googleapis.com/search_list"), "search_list",
			""},
		{429, unit("youtube.googleapis.com", "youtube.googleapis.com/comments"), "",
			"metric=youtube.googleapis.com/comments"},
		{429, unit("translate.googleapis.com", "translate.googleapis.com/default"), "", ""},
		{400, fmt.Sprintf(echo, 400), "", ""},
		{403, fmt.Sprintf(echo, 403), "", ""},
		{404, `units per day`, "", ""},
		{403, `units per day`, "", ""},
	} {
		s := open(t, &standin.YouTube{}, costs.Default().DefaultLimits())
		s.Answering(status(c.status, c.body))
		_, _, err := s.get(t,
			"/youtube/v3/videos?part=id&chart=mostPopular&regionCode=units%20per%20day")
		must(t, err)
		usage, err := s.Budget.Usage(t.Context())
		must(t, err)
		closed, told := "", s.Log.String()
		for _, b := range usage.Buckets {
			if !b.SuspendedUntil.IsZero() {
				closed += b.Bucket
			}
		}
		if closed != c.closed || !strings.Contains(told, c.told) ||
			(told == "") != (c.closed+c.told == "") {
			t.Errorf("%d %s: closed %q, logged %s", c.status, c.body, closed, told)
		}
	}
}
