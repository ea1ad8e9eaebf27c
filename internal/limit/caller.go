package limit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
)

// Caller describes the client of a request.
type Caller struct {
	Network      string // network of the address (see Network), or ""
	Key          string // name of the API key, or ""
	Organisation string // organisation of the key
	Tier         string // tier of the key
}

// APIKey describes an API key. The key itself is not stored anywhere.
type APIKey struct {
	Name, Organisation, Tier string
}

// Digest is the SHA-256 of an API key.
type Digest [sha256.Size]byte

// ParseDigest reads "sha256:" and 64 hexadecimal digits.
func ParseDigest(text string) (d Digest, err error) {
	digits, ok := strings.CutPrefix(text, "sha256:")
	sum, err := hex.DecodeString(digits)
	if copy(d[:], sum); !ok || err != nil || len(sum) != len(d) {
		return d, errors.New("write sha256: and the 64 hexadecimal digits that sha256sum prints")
	}
	return d, nil
}

// Known identifies callers. Its zero value trusts no proxy and knows no key.
type Known struct {
	Proxies Proxies
	Keys    map[Digest]APIKey
}

// Of returns the caller of a request. An unknown key is ignored, so a client that makes up keys
// is limited by its address.
func (k *Known) Of(r *http.Request) Caller {
	var c Caller
	if network := Network(k.Proxies.Addr(r)); network.IsValid() {
		c.Network = string(network.AppendTo(make([]byte, 0, 64)))
	}
	if len(k.Keys) == 0 {
		return c
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	key, ok := k.Keys[sha256.Sum256([]byte(strings.TrimSpace(token)))]
	if !ok || !strings.EqualFold(scheme, "Bearer") { // it may contain the server's token
		key = k.Keys[sha256.Sum256([]byte(r.Header.Get("X-Api-Key")))]
	}
	c.Key, c.Organisation, c.Tier = key.Name, key.Organisation, key.Tier
	return c
}
