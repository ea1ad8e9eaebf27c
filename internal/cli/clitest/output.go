package clitest

import (
	"sync"
	"testing"
	"time"
)

// Output is an io.Writer that keeps the output of a running program.
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

// Await waits until found accepts the text. It ends the test after five minutes, or if the program
// ends before that.
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
			t.Fatalf("the program ended before the expected text: %s", o.String())
		case <-late:
			t.Fatalf("the expected text did not appear in five minutes: %s", o.String())
		}
	}
}
