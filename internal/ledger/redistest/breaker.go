package redistest

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/lua"
)

// Breaker is a proxy in front of a server. It can lose the reply to a script that may write: the
// server has run the script, and the client gets no reply.
type Breaker struct {
	Addr  string
	Delay time.Duration // delay of each answer; set before Forward

	server atomic.Pointer[string]
	lose   atomic.Bool
	ran    atomic.Int64
}

// NewBreaker listens until the test ends.
func NewBreaker(t testing.TB) *Breaker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { l.Close() })
	b := &Breaker{Addr: l.Addr().String()}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go b.forward(client)
		}
	}()
	return b
}

// Forward names the server that is behind the proxy.
func (b *Breaker) Forward(addr string) { b.server.Store(&addr) }

// LoseNext breaks the connection instead of passing on the next reply to a script that may write.
// charge.lua writes nothing when it leaves a charge to Go.
func (b *Breaker) LoseNext() { b.lose.Store(true) }

// Ran returns how many scripts that may write the server has run.
func (b *Breaker) Ran() int64 { return b.ran.Load() }

func (b *Breaker) forward(client net.Conn) {
	defer client.Close()
	addr := b.server.Load()
	if addr == nil {
		return
	}
	server, err := net.Dial("tcp", *addr)
	if err != nil {
		return
	}
	defer server.Close()
	var asked atomic.Bool // a script that may write is running
	go func() {
		defer server.Close()
		pass(client, server, func(request []byte) bool {
			isScript := bytes.HasPrefix(bytes.ToLower(afterLine(request, 2)), []byte("eval"))
			if isScript && !slices.ContainsFunc(readers(), func(script []byte) bool {
				return bytes.Contains(request, script)
			}) {
				asked.Store(true)
			}
			return true
		})
	}()
	pass(server, client, func(answer []byte) bool {
		time.Sleep(b.Delay)
		if !asked.Swap(false) || bytes.HasPrefix(answer, []byte("-NOSCRIPT")) {
			return true
		}
		b.ran.Add(1)
		return !b.lose.Swap(false)
	})
}

// readers returns the sources and the digests of the scripts that write nothing.
var readers = sync.OnceValue(func() (all [][]byte) {
	for _, name := range []string{"read", "search"} {
		sum := sha1.Sum([]byte(lua.Source(name)))
		all = append(all, []byte(lua.Source(name)), []byte(hex.EncodeToString(sum[:])))
	}
	return all
})

// afterLine returns what follows the first n lines. In a request, two precede the command's name.
func afterLine(text []byte, n int) []byte {
	for range n {
		_, text, _ = bytes.Cut(text, []byte("\r\n"))
	}
	return text
}

// pass copies until either side ends, or keep returns false.
func pass(from, to net.Conn, keep func([]byte) bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || !keep(buffer[:n]) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
