package segment

import "unsafe"

// pages widens b to whole pages, as madvise wants. The widened slice is only ever named to
// the kernel; its ends belong to the same mapping, which is made of whole pages.
func pages(b []byte) []byte {
	p := unsafe.SliceData(b)
	head := uintptr(unsafe.Pointer(p)) & (pageSize - 1)
	n := (head + uintptr(len(b)) + pageSize - 1) &^ (pageSize - 1)
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(p), -int(head))), n)
}
