package redisledger

import (
	"encoding/base32"
	"encoding/binary"
	"math"

	"quotabudget/internal/quota"
)

// letters reads and writes those of IDs and runs (entry.lua).
var letters = base32.NewEncoding(quota.IDAlphabet).WithPadding(base32.NoPadding)

const (
	lenID, lenRun, lenCode = 14, 10, 4

	lenLeft = 7 // of the numbers of a reservation

	lenNumbers = 7 + 4           // bytes of the running total and the units
	lenLeast   = lenNumbers + 10 // with an ID; a run has five more
)

// pack is what follows the numbers in a packed member; false if it must be text.
func pack(id, code, run string) (string, bool) {
	if len(id) != lenID || run != "" && len(run) != lenRun || code != "" && len(code) != lenCode {
		return "", false
	}
	if run == "" {
		run = "00"
	}
	packed, err := letters.DecodeString(id + run)
	if err != nil {
		return "", false
	}
	return string(packed) + code, true
}

// unpack reads a packed member; false if it is none.
func (m *member) unpack(text string) bool {
	rest := len(text) - lenLeast
	if rest < 0 || rest > 5+lenCode || rest%5 != 0 && rest%5 != lenCode || text[0] >= '0' {
		return false
	}
	end := len(text) - rest%5 // of the letters
	m.total = bigEndian(text[:7])
	if m.total > quota.MaxTotal {
		m.total = 0
	}
	m.units = bigEndian(text[7:lenNumbers])
	names := letters.EncodeToString([]byte(text[lenNumbers:end]))
	m.id, m.mark, m.packed = names[:lenID], text[end:], true
	if rest > lenCode {
		m.run = names[lenID:]
	}
	return true
}

// unpackHold reads a reservation (holds.lua): units left, when it expires, units drawn, units, when
// it was made, the most it can turn out to be, the flags; false if it is none.
func unpackHold(text string) (n [7]int64, tail string, ok bool) {
	if len(text) <= 6*lenLeft || text[0] >= '0' {
		return n, "", false
	}
	for i := range 6 {
		n[i] = bigEndian(text[lenLeft*i : lenLeft*i+lenLeft])
	}
	n[6] = int64(text[6*lenLeft])
	return n, text[6*lenLeft+1:], n[6] < 8
}

// bigEndian is a number of up to eight bytes, the highest first.
func bigEndian(text string) (n int64) {
	for _, b := range []byte(text) {
		n = n<<8 | int64(b)
	}
	return n
}

// repack is the member's packed text; false if it must be written out.
func (m member) repack() (string, bool) {
	rest, ok := pack(m.id, m.mark, m.run)
	if !ok || m.units > math.MaxUint32 {
		return "", false
	}
	b := binary.BigEndian.AppendUint64(nil, uint64(m.total))[1:]
	return string(binary.BigEndian.AppendUint32(b, uint32(m.units))) + rest, true
}
