package sqliteledger

// kept are the rows of buckets as the operations of this process have left them, so that a group
// writes each row once, and reads none that nobody else has changed; and reservations that it made
// and has not drawn on. Only operations whose buckets stay what their rows would be take part:
// charges, reservations, settlements, lessons. Any other begins with forget, and reads and writes
// the rows itself.
type kept struct {
	on      bool  // the current operation takes part
	version int64 // of the file, as changed by others
	rows    map[rowName]bucket
	made    map[madeName]made
	used    []*bucket // by the current operation
}

// How many rows and reservations are kept from one group to the next.
const (
	maxRows = 1000
	maxMade = 10_000
)

// since begins a group. If others have changed the file since the last one, nothing is known.
func (k *kept) since(version int64) {
	if k.rows == nil || k.version != version || len(k.rows) > maxRows || len(k.made) > maxMade {
		*k = kept{version: version, rows: make(map[rowName]bucket),
			made: make(map[madeName]made)}
	}
}

// lose is for when what was done is undone.
func (k *kept) lose() { k.rows = nil }

type rowName struct{ credential, bucket string }

// madeName is a reservation in a bucket.
type madeName struct {
	bucket int64
	id     string
}

// made is a reservation as its row is.
type made struct{ units, most, ends int64 }

// bucket is the bucket as it is now.
func (s *session) bucket(credential, name string) *bucket {
	if !s.kept.on {
		return s.read(credential, name)
	}
	b, known := s.kept.rows[rowName{credential, name}]
	if b.s = s; !known {
		b = *s.read(credential, name)
	}
	s.kept.used = append(s.kept.used, &b)
	return &b
}

// keep ends an operation that went well: what it left is what the next one begins with.
func (s *session) keep() {
	for _, b := range s.kept.used {
		name := rowName{b.credential, b.name}
		if b.stale {
			b.write()
			delete(s.kept.rows, name)
			continue
		}
		b.levels, b.far, b.gaps = nil, nil, b.gaps[:len(b.gaps):len(b.gaps)]
		s.kept.rows[name] = *b
	}
	s.kept.used = s.kept.used[:0]
}

// forget writes the rows, for whoever reads them next.
func (s *session) forget() {
	clear(s.kept.made)
	for name, b := range s.kept.rows {
		b.write()
		delete(s.kept.rows, name)
	}
}

// write writes the rows of a group that ends.
func (s *session) write() {
	for name, b := range s.kept.rows {
		if b.unwritten {
			b.write()
			s.kept.rows[name] = b
		}
	}
}

// update has the row written: at once, or when the group ends.
func (b *bucket) update() {
	b.unwritten = true
	if !b.s.kept.on {
		b.write()
	}
}

// write writes what is unwritten.
func (b *bucket) write() {
	if b.unwritten {
		b.s.change("bucket_update", b.id, b.total, b.newest, b.retention)
		b.unwritten = false
	}
}
