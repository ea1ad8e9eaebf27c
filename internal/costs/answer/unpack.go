package answer

import (
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrTooLong is a body that unpacks to more than its bound.
var ErrTooLong = errors.New("the answer unpacks to more than is read")

// Unpack reads a body as Content-Encoding says: gzip, deflate or identity. It ends with ErrTooLong
// after most bytes, however little was read for them.
func Unpack(encoding string, body io.Reader, most int64) (io.Reader, error) {
	var from io.Reader
	var err error
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		from = body
	case "gzip", "x-gzip":
		from, err = gzip.NewReader(body)
	case "deflate":
		from, err = inflate(body)
	default:
		return nil, fmt.Errorf("an answer packed as %.40q cannot be read: ask for gzip", encoding)
	}
	if err != nil {
		return nil, fmt.Errorf("the answer is not %s: %w", encoding, err)
	}
	return &bounded{from, most}, nil
}

// inflate reads deflate as HTTP means it, with the header of zlib; some servers leave that out.
func inflate(body io.Reader) (io.Reader, error) {
	var head [1]byte
	n, err := io.ReadFull(body, head[:])
	if err != nil {
		return nil, err
	}
	whole := io.MultiReader(strings.NewReader(string(head[:n])), body)
	if head[0]&0x0f == 8 && head[0]>>4 <= 7 {
		return zlib.NewReader(whole)
	}
	return flate.NewReader(whole), nil
}

// bounded reads so many bytes, and then ErrTooLong.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		var one [1]byte
		if n, err := io.ReadFull(b.from, one[:]); n == 0 {
			return 0, err
		}
		return 0, ErrTooLong
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
