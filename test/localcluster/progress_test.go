// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

var _ = Describe("The progress of a build", func() {
	It("counts the packages that are compiled, and keeps what else is printed", func() {
		p := &progress{what: "building it", start: time.Now()}
		Expect(p.String()).To(Equal("building it ... 0s"))
		p.setPackages([]string{"a", "b/c", "d"})
		Expect(p.String()).To(Equal("building it ... 0s, 0 of 3 packages"))
		fmt.Fprint(p, "go: downloading a v1\na\nb")
		Expect(p.String()).To(Equal("building it ... 0s, 1 of 3 packages"))
		fmt.Fprint(p, "/c\n# d\n./d.go:1:1: undefined: x")
		Expect(p.String()).To(Equal("building it ... 0s, 2 of 3 packages"))
		Expect(string(p.otherOutput())).To(Equal("go: downloading a v1\n# d\n./d.go:1:1: undefined: x"))
		fmt.Fprint(p, "\nd\n")
		Expect(p.String()).To(Equal("building it ... 0s, linking"))
	})

	It("is printed every now and then", func() {
		printed := gbytes.NewBuffer()
		stop := (&progress{what: "building it", out: printed, start: time.Now()}).report(time.Millisecond)
		Eventually(printed).Should(gbytes.Say("building it ... 0s\n"))
		stop()
	})
})
