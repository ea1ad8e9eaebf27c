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
	return string(packed) + code, err == nil
}

// unpack reads a packed member; false if it is none.
func (m *member) unpack(text string) bool {
	rest := len(text) - lenLeast
	if rest < 0 || rest > 5+lenCode || rest%5 != 0 && rest%5 != lenCode || text[0] >= '0' {
		return false
	}
	end := len(text) - rest%5 // of the letters
	m.total = int64(binary.BigEndian.Uint64([]byte("\x00" + text[:7])))
	if m.total > quota.MaxTotal {
		m.total = 0
	}
	m.units = int64(binary.BigEndian.Uint32([]byte(text[7:lenNumbers])))
	names := letters.EncodeToString([]byte(text[lenNumbers:end]))
	m.id, m.mark, m.packed = names[:lenID], text[end:], true
	if rest > lenCode {
		m.run = names[lenID:]
	}
	return true
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
