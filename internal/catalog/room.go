package catalog

import "context"

// roomForPage is more than what a page of fifty videos with long texts adds to the file, its index
// included.
const roomForPage = 512 << 10

// CheckRoom reports why a page could not be stored now: the disk is full, another program holds the
// write lock, the file cannot be written, was moved or is damaged. It is asked before a page is
// bought.
//
// It commits as many bytes as a large page takes, in the place of those it wrote the time before.
// Nothing less finds out: a transaction that is rolled back never reaches the disk, and free space
// says nothing of quotas.
func (c *Catalog) CheckRoom(ctx context.Context) error {
	return c.update(ctx, func(s *txn) error {
		if s.filled {
			return nil
		}
		s.filled = true
		_, err := s.exec("fill_room", roomForPage)
		return err
	})
}
