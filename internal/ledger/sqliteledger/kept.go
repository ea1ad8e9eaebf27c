package sqliteledger

// kept are the rows of buckets as the operations of a group have left them, so that a group reads
// and writes each row once. Only operations whose buckets stay what their rows would be take part:
// charges, reservations, settlements, lessons. Any other begins with forget, and reads and writes
// the rows itself.
type kept struct {
	on   bool // the current operation takes part
	rows map[rowName]bucket
	used []*bucket // by the current operation
}

type rowName struct{ credential, bucket string }

// bucket is the bucket as it is now.
func (s *session) bucket(credential, name string) *bucket {
	if !s.kept.on {
		return s.read(credential, name)
	}
	b, known := s.kept.rows[rowName{credential, name}]
	if !known {
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
	for name, b := range s.kept.rows {
		b.write()
		delete(s.kept.rows, name)
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
