package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"quotabudget/internal/quota"
)

// An outage is logged when it begins, once a minute, and when it ends; each source by itself.
func TestSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		s := &sources{log: slog.New(slog.NewTextHandler(&out, nil))}
		says := func(what, want string) {
			t.Helper()
			var got []string
			for line := range strings.Lines(out.String()) {
				_, line, _ = strings.Cut(strings.TrimSpace(line), "level=")
				got = append(got, line)
			}
			if out.Reset(); strings.Join(got, "\n") != want {
				t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), want)
			}
		}
		away := fmt.Errorf("%w: refused", quota.ErrUnreachable)
		const failed = `ERROR msg="cannot read the ledger" error="ledger cannot be reached: refused"`
		s.readLedger()
		says("nothing failed", "")
		for range 10 {
			s.failed(away)
		}
		says("at first", failed)
		s.readCatalogue()
		s.failed(errors.New("disk"))
		says("the other one", `ERROR msg="cannot read the catalogue" error=disk`)
		time.Sleep(time.Minute)
		s.failed(away)
		says("a minute later", failed)
		s.readLedger()
		s.readLedger()
		says("it is back", `INFO msg="the ledger can be read again"`)
		s.failed(away)
		s.readLedger()
		says("within the minute", "")
	})
}
