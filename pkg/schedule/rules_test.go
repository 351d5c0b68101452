// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"encoding/binary"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// listed is a zone whose data lists one change, from one number of hours beyond UTC to another, and the rule for all that comes later.
func listed(before int32, change string, after int32, rule string) *time.Location {
	data := func(counts [6]uint32) []byte {
		head := append([]byte("TZif2"), make([]byte, 15)...)
		for _, n := range counts {
			head = binary.BigEndian.AppendUint32(head, n)
		}
		return head
	}
	text := append(data([6]uint32{}), data([6]uint32{3: 1, 4: 2, 5: 8})...)
	text = append(binary.BigEndian.AppendUint64(text, uint64(at(change).Unix())), 1)
	for i, hours := range []int32{before, after} {
		text = append(binary.BigEndian.AppendUint32(text, uint32(hours*60*60)), 0, byte(4*i))
	}
	text = append(text, "OLD\x00NEW\x00\n"+rule+"\n"...)
	z, err := time.LoadLocationFromTZData("listed", text)
	if err != nil {
		panic(err)
	}
	return z
}

var _ = It("The next occurrence is found where a zone changes its offset within a period of the rule that it has from then on (law 1)", func() {
	z := listed(-7, "2027-11-30 06:00", -6, "CST6CDT,M3.2.0,M11.1.0")
	for from, want := range map[string]string{
		"2027-11-29 13:00": "2027-11-29 14:00",
		"2027-11-29 15:00": "2027-11-30 13:00",
		"2027-11-30 15:00": "2027-12-01 13:00",
	} {
		next, ok := cron("0 7 * * *").Next(at(from), z)
		Expect(ok).To(BeTrue())
		Expect(next.UTC()).To(Equal(at(want)), "after %s", from)
		last, ok := cron("0 7 * * *").Last(next, z)
		Expect(ok).To(BeTrue())
		Expect(last.UTC()).To(Equal(at(want)), "before %s", from)
	}
})
