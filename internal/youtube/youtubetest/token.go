package youtubetest

import (
	"encoding/base64"
	"encoding/binary"
)

// A page token is base64url of a two-field protobuf: field 1 is an offset in the list, field 2 is 0
// for the page that begins there and 1 for the page that ends there: CDIQAA begins at 50, CDIQAQ
// ends at 50.

func pageToken(offset int, ends bool) string {
	b := binary.AppendUvarint([]byte{1 << 3}, uint64(offset))
	b = append(b, 2<<3, 0)
	if ends {
		b[len(b)-1] = 1
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parsePageToken returns where the page of that token begins when pages are size long.
func parsePageToken(token string, size int) (offset int, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) < 4 || b[0] != 1<<3 {
		return 0, false
	}
	value, n := binary.Uvarint(b[1:])
	rest := b[1+max(n, 0):]
	if n <= 0 || value > 1<<20 || len(rest) != 2 || rest[0] != 2<<3 || rest[1] > 1 {
		return 0, false
	}
	if rest[1] == 1 {
		return max(0, int(value)-size), true
	}
	return int(value), true
}
