package catalog

import "context"

// roomForPage is more than a page of fifty videos with long texts adds to the file, including the
// index.
const roomForPage = 512 << 10

// CheckRoom returns an error if a page could not be stored now: the disk is full, another program
// holds the write lock, or the file is read-only, moved or damaged. Callers use it before they
// buy a page.
//
// It commits as many bytes as a large page takes, over those of the previous check. Nothing less
// would do: a rolled-back transaction never reaches the disk, and free space does not account for
// disk quotas.
func (c *Catalog) CheckRoom(ctx context.Context) error {
	return c.update(ctx, func(s *txn) error {
		_, err := s.exec("fill_room", roomForPage)
		return err
	})
}
