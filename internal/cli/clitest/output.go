package clitest

import (
	"sync"
	"testing"
	"time"
)

// Output is what a running program has written so far.
type Output struct {
	mu   sync.Mutex
	more chan struct{} // closed by the next write
	text []byte
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	return len(p), nil
}

// String returns the text so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

// Await waits until the text is as found reports. If that takes five minutes, or the program has ended
// without it, the test ends.
func (o *Output) Await(t testing.TB, ended <-chan struct{}, found func(text string) bool) {
	t.Helper()
	late := time.After(5 * time.Minute)
	for {
		o.mu.Lock()
		if o.more == nil {
			o.more = make(chan struct{})
		}
		text, more := string(o.text), o.more
		o.mu.Unlock()
		if found(text) {
			return
		}
		select {
		case <-more:
		case <-ended:
			if found(o.String()) {
				return
			}
			t.Fatalf("ended without what was awaited: %s", o.String())
		case <-late:
			t.Fatalf("what was awaited did not come: %s", o.String())
		}
	}
}
