package caller

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
)

// Caller is who asks.
type Caller struct {
	Network      string // of the address (see Network); "" without one
	Key          string // the name of its API key, or ""
	Organisation string // of the key
	Tier         string // of the key
}

// Key describes an API key. The key itself is stored nowhere.
type Key struct {
	Name, Organisation, Tier string
}

// Digest is the SHA-256 of an API key.
type Digest [sha256.Size]byte

// ParseDigest reads "sha256:" and 64 hexadecimal digits.
func ParseDigest(text string) (d Digest, err error) {
	digits, ok := strings.CutPrefix(text, "sha256:")
	if n, err := hex.Decode(d[:], []byte(digits[:min(len(digits), 2*len(d))])); !ok || err != nil ||
		n != len(d) || len(digits) != 2*len(d) {
		return d, errors.New("write sha256: and the 64 hexadecimal digits that sha256sum prints")
	}
	return d, nil
}

// Known tells callers apart. Its zero value knows no proxy and no key.
type Known struct {
	Proxies Proxies
	Keys    map[Digest]Key
}

// Of is the caller of a request. An unknown key counts as none: whoever makes up keys is limited by
// address.
func (k *Known) Of(r *http.Request) Caller {
	var c Caller
	if network := Network(k.Proxies.Addr(r)); network.IsValid() {
		c.Network = string(network.AppendTo(make([]byte, 0, 64)))
	}
	if len(k.Keys) == 0 {
		return c
	}
	token, ok := bearer(r.Header.Get("Authorization"))
	if !ok {
		token = r.Header.Get("X-Api-Key")
	}
	if key, ok := k.Keys[sha256.Sum256([]byte(token))]; ok {
		c.Key, c.Organisation, c.Tier = key.Name, key.Organisation, key.Tier
	}
	return c
}

func bearer(authorization string) (token string, ok bool) {
	scheme, token, _ := strings.Cut(authorization, " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}
