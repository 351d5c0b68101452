// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

const changed = machineutils.LastDeploymentReplicaChangeByScalerTime

var _ = DescribeTable("Naming a machine writes", func(fewer bool, before []string, want map[string]string) {
	Expect(pool.NameForDeletion(&mcm.MachineDeployment{ObjectMeta: annotated(before...)}, []string{"m"}, fewer, noon)).To(Equal(want))
},
	Entry("the name alone where fewer machines run", true, []string{changed, "2026-03-01T11:00:00Z"}, map[string]string{trigger: "m~2026-03-01T12:00:00Z"}),
	Entry("a name that is later than the last change, whatever clock that came from", true, []string{changed, "2026-03-01T13:00:00Z"}, map[string]string{trigger: "m~2026-03-01T13:00:01Z"}),
	Entry("a name that is later than the last change, though that has parts of a second", true, []string{changed, "2026-03-01T12:00:00.999999999Z"}, map[string]string{trigger: "m~2026-03-01T12:00:01Z"}),
	Entry("a name that is later than a change in the same second", true, []string{changed, "2026-03-01T12:00:00Z"}, map[string]string{trigger: "m~2026-03-01T12:00:01Z"}),
	Entry("a time that has passed where the last one cannot be read", true, []string{changed, "noon"}, map[string]string{trigger: "m~2026-03-01T12:00:00Z", changed: "2026-03-01T11:59:59Z"}),
	Entry("a time that has passed where there is none", true, nil, map[string]string{trigger: "m~2026-03-01T12:00:00Z", changed: "2026-03-01T11:59:59Z"}),
	Entry("the time, too, where as many run", false, []string{changed, "2026-03-01T11:00:00Z"}, map[string]string{trigger: "m~2026-03-01T12:00:00Z", changed: "2026-03-01T12:00:00Z"}),
	Entry("a time that does not go back", false, []string{changed, "2026-03-01T13:00:00Z"}, map[string]string{trigger: "m~2026-03-01T13:00:00Z", changed: "2026-03-01T13:00:00Z"}),
	Entry("the names that are there, too", true, []string{changed, "2026-03-01T11:00:00Z", trigger, "l~2026-03-01T11:00:01Z"}, map[string]string{trigger: "l~2026-03-01T11:00:01Z,m~2026-03-01T12:00:00Z"}),
)

var _ = It("Naming a machine writes the second that has begun, in UTC, wherever the clock is", func() {
	clock := noon.Add(700 * time.Millisecond).In(time.FixedZone("CET", 3600))
	to := pool.NameForDeletion(&mcm.MachineDeployment{ObjectMeta: annotated()}, []string{"m"}, false, clock)
	Expect(to).To(Equal(map[string]string{trigger: "m~2026-03-01T12:00:00Z", changed: "2026-03-01T12:00:00Z"}))
})

var _ = It("Naming a machine half a second after the last change writes a later second where fewer run, since times are whole seconds", func() {
	d := &mcm.MachineDeployment{ObjectMeta: annotated(changed, "2026-03-01T12:00:00Z")}
	Expect(pool.NameForDeletion(d, []string{"m"}, true, noon.Add(time.Second/2))).To(Equal(map[string]string{trigger: "m~2026-03-01T12:00:01Z"}))
})

var _ = DescribeTable("A machine that is named and stays", func(named, last string, after time.Duration, want map[string]string, soon time.Duration) {
	d := &mcm.MachineDeployment{ObjectMeta: annotated(trigger, "m~"+named, changed, last)}
	to, due := pool.Remind(d, func(name string) bool { return name == "m" }, noon.Add(after))
	Expect(to).To(Equal(want))
	if soon == 0 {
		Expect(due).To(BeZero())
	} else {
		Expect(due).To(Equal(noon.Add(soon)))
	}
},
	Entry("is left alone at first", "2026-03-01T12:00:00Z", "2026-03-01T11:00:00Z", 9*time.Second, nil, 10*time.Second),
	Entry("is deleted after a while", "2026-03-01T12:00:00Z", "2026-03-01T11:00:00Z", 10*time.Second, map[string]string{changed: "2026-03-01T12:00:10Z"}, time.Duration(0)),
	Entry("is deleted by its time already", "2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z", time.Hour, nil, time.Duration(0)),
	Entry("is not there any more", "2026-03-01T11:00:00Z,other~2026-03-01T12:00:00Z", "2026-03-01T11:30:00Z", time.Hour, nil, time.Duration(0)),
	Entry("is none of that name", "2026-03-01T12:00:00Z,other", "2026-03-01T13:00:00Z", time.Hour, nil, time.Duration(0)),
)

var _ = Describe("Several machines that are named and stay", func() {
	names := []string{"g", "f", "e", "d", "c", "b", "a"}
	at := func(i int) string { return noon.Add(time.Duration(i) * time.Second).Format(time.RFC3339) }
	everyone := func(string) bool { return true }
	var items []string
	for i, name := range names {
		items = append(items, name+"~"+at(i+1))
	}
	d := &mcm.MachineDeployment{ObjectMeta: annotated(trigger, strings.Join(items, ","), changed, at(0))}

	It("are due one after the other, the first named first", func() {
		for range 20 { // names are read into a map, whose order is another each time
			to, due := pool.Remind(d, everyone, noon.Add(time.Second))
			Expect(to).To(BeNil())
			Expect(due).To(Equal(noon.Add(time.Second + pool.Overdue)))
		}
	})

	It("are waited for while others are overdue", func() {
		to, due := pool.Remind(d, everyone, noon.Add(3*time.Second+pool.Overdue))
		Expect(to).To(Equal(map[string]string{changed: "2026-03-01T12:00:13Z"}))
		Expect(due).To(Equal(noon.Add(4*time.Second + pool.Overdue)))
	})

	It("are named by one write, in the order of their names", func() {
		to := pool.NameForDeletion(&mcm.MachineDeployment{ObjectMeta: annotated(changed, at(-1))}, []string{"b", "a"}, true, noon)
		Expect(to).To(Equal(map[string]string{trigger: "a~2026-03-01T12:00:00Z,b~2026-03-01T12:00:00Z"}))
	})
})

var _ = It("The time of a change never goes back, and machines that are named because fewer run are named later", func() {
	rapid.Check(GinkgoT(), func(t *rapid.T) {
		d := &mcm.MachineDeployment{ObjectMeta: annotated()}
		last := time.Time{}
		for range rapid.IntRange(1, 6).Draw(t, "writes") {
			now := noon.Add(time.Duration(rapid.IntRange(-200, 200).Draw(t, "clock")) * time.Second / 2)
			fewer := rapid.Bool().Draw(t, "fewer")
			for key, value := range pool.NameForDeletion(d, []string{"m"}, fewer, now) {
				d.Annotations[key] = value
			}
			at, err := time.Parse(time.RFC3339, d.Annotations[changed])
			if err != nil || at.Before(last) {
				t.Fatalf("%s after %s", d.Annotations[changed], last)
			}
			if named := pool.Named(d)["m"]; named.After(at) != fewer {
				t.Fatalf("named at %s, changed at %s, fewer %t", named, at, fewer)
			}
			last = at
		}
	})
})
