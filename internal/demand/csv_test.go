// SPDX-License-Identifier: Apache-2.0

package demand_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/demand"
)

func TestDemand(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Demand")
}

var nine = time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)

var _ = DescribeTable("A trace", func(text string, want ...demand.Pods) {
	trace, err := demand.ReadCSV(strings.NewReader(text))
	Expect(err).NotTo(HaveOccurred())
	Expect(trace).To(HaveExactElements(want))
},
	Entry("of one pod", "time,cpu,memory\n2026-03-02T09:00:00Z,500m,1Gi\n", demand.Pods{Created: nine, CPU: 500, Memory: 1 << 30, Count: 1}),
	Entry("in other columns, with a duration and a count", "count,duration,memory,cpu,time\n3,90s,1Ki,2,2026-03-02 09:00\n", demand.Pods{Created: nine, CPU: 2000, Memory: 1024, Lasts: 90 * time.Second, Count: 3}),
	Entry("with an end", "time,cpu,memory,end\n1772442000,1,0,1772442060\n", demand.Pods{Created: nine, CPU: 1000, Lasts: time.Minute, Count: 1}),
	Entry("as a spreadsheet saves it", "\ufeffTime, CPU, Memory\n2026-03-02T09:00:00Z,1,0\n", demand.Pods{Created: nine, CPU: 1000, Count: 1}),
	Entry("out of order", "time,cpu,memory\n2026-03-02T09:00:01Z,1,0\n2026-03-02T09:00:00Z,2,0\n",
		demand.Pods{Created: nine, CPU: 2000, Count: 1}, demand.Pods{Created: nine.Add(time.Second), CPU: 1000, Count: 1}),
)

var _ = DescribeTable("A trace that is wrong says where, and what to write", func(text, says string) {
	_, err := demand.ReadCSV(strings.NewReader(text))
	Expect(err).To(MatchError(ContainSubstring(says)))
},
	Entry("nothing", "", "the trace is empty"),
	Entry("an unknown column", "time,cpu,memory,price\n", "line 1: column \"price\" is not known"),
	Entry("no cpu", "time,memory\n", "line 1: column \"cpu\" is missing"),
	Entry("a time", "time,cpu,memory\nsoon,1,1\n", "line 2: time \"soon\""),
	Entry("a missing field", "time,cpu,memory\n0,1,1\n0,1\n", "line 3: wrong number of fields"),
	Entry("a quantity", "time,cpu,memory\n0,1,1\n0,much,1\n", "line 3: cpu \"much\""),
	Entry("the largest count", "time,cpu,memory,count\n0,1,1,2147483647\n", "line 2: count 2147483647: a trace may contain at most 1000000 pods"),
	Entry("one pod too many", "time,cpu,memory,count\n0,1,1,1000000\n0,1,1,1\n", "line 3: count 1: a trace may contain at most 1000000 pods"),
	Entry("too much time", "time,cpu,memory\n0,1,1\n1772442000,1,1\n", "the trace covers more than 10 years"),
	Entry("an end before the time", "time,cpu,memory,end\n60,1,1,30\n", "line 2: end \"30\" is not after the time"),
	Entry("a negative duration", "time,cpu,memory,duration\n0,1,1,-5s\n", "line 2: duration \"-5s\""),
)
