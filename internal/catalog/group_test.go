package catalog

import (
	"errors"
	"runtime"
	"sync"
	"testing"
)

// TestUpdatesShareATransaction: updates that arrive while another runs share a transaction, and a
// failing one does not keep the others from being written.
func TestUpdatesShareATransaction(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		failing string
		txns    int // transactions attempted
	}{{"", 1}, {"GB", 5}} {
		cat := open(t)
		regions := []string{"US", "GB", "DE", "FR"}
		txns := make(map[*txn]bool)
		var all sync.WaitGroup
		cat.writing <- struct{}{} // as a running transaction does
		for _, region := range regions {
			all.Go(func() {
				err := cat.update(t.Context(), func(s *txn) error {
					txns[s] = true
					_, err := s.exec("put_unavailable", region, AllCategories, nine.UnixMicro(),
						false)
					if region == c.failing {
						return boom
					}
					return err
				})
				if want := map[bool]error{true: boom}[region == c.failing]; err != want {
					t.Errorf("%s: %v, want %v", region, err, want)
				}
			})
		}
		for waiting := 0; waiting < len(regions); runtime.Gosched() {
			cat.mu.Lock()
			waiting = len(cat.waiting)
			cat.mu.Unlock()
		}
		<-cat.writing
		all.Wait()
		states, err := cat.Staleness(t.Context(), regions)
		for i, region := range regions {
			if err != nil || states[i].UnavailableAt.IsZero() != (region == c.failing) {
				t.Errorf("%+v, %v", states[i], err)
			}
		}
		if len(txns) != c.txns {
			t.Errorf("%d transactions, want %d", len(txns), c.txns)
		}
	}
}
