// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
)

// fieldWrites are the changes of the field, and of the records about it.
func fieldWrites(p plan.Plan) []string {
	c := p.Deployment
	all := []string{}
	if c.Field != nil {
		all = append(all, fmt.Sprintf("field=%d", *c.Field))
	}
	if c.Restored {
		all = append(all, "restored")
	}
	if c.AbandonedBy != "" {
		all = append(all, "abandoned by "+c.AbandonedBy)
	}
	for _, key := range []string{api.WantedExcessAnnotation, api.ExcessOwnersAnnotation} {
		if text, written := c.Annotations[key]; written {
			all = append(all, short(key)+"="+text)
		}
	}
	return all
}

// bounded has bounds, a field that is absent where it is below 0, and a record of the field.
func bounded(bounds string, field int32, recorded string, change ...viewChange) plan.View {
	return changed(owned(field, recorded, ""), append(change, note(api.BoundsAnnotation, bounds))...)
}

func shared(n string) viewChange { return note(api.ShareAnnotation, n) }

var _ = DescribeTable("The field spec.excessReplicas",
	func(v plan.View, written ...string) {
		if len(written) == 0 {
			Expect(fieldWrites(plan.New(v))).To(BeEmpty())
			return
		}
		Expect(fieldWrites(plan.New(v))).To(Equal(written))
	},
	Entry("is recorded", owned(2, "", ""), "wanted-excess=2"),
	Entry("is recorded again when it changes", owned(3, "2", ""), "wanted-excess=3"),
	Entry("is not recorded twice", owned(2, "2", "")),
	Entry("is recorded no more when it is 0", owned(0, "2", ""), "wanted-excess="),
	Entry("is restored when it vanishes", owned(-1, "2", ""), "field=2", "restored"),
	Entry("is restored to a value of several digits", owned(-1, "12", ""), "field=12", "restored"),
	Entry("that is absent has no owner, whatever the API server tracks", changed(owned(-1, "", "", entry("gitops", "Apply", 0, claim)), leftover)),
	Entry("is not restored where the API server does not store it", changed(owned(-1, "2", ""), pruned)),
	Entry("is not restored from a record of 0", changed(owned(-1, "0", "")), "wanted-excess="),
	Entry("is not restored from a record below 0", changed(owned(-1, "-1", "")), "wanted-excess="),
	Entry("is not restored from a record that cannot be read", changed(owned(-1, "many", "")), "wanted-excess="),
	Entry("is not restored from a record beyond its range", changed(owned(-1, "3000000000", "")), "wanted-excess="),
	Entry("with bounds that leave it the excess, is as without", bounded("1:9", 2, ""), "wanted-excess=2"),
	Entry("shows what bounds come to", bounded("1:9:2", -1, ""), "field=2", "wanted-excess=2"),
	Entry("shows what bounds come to within max", bounded("1:4:2", -1, ""), "field=1", "wanted-excess=1"),
	Entry("shows the share of a pool's excess", changed(owned(-1, "", ""), shared("4")), "field=4", "wanted-excess=4"),
	Entry("shows the share, not what bounds come to", bounded("1:9:2", -1, "", shared("4")), "field=4", "wanted-excess=4"),
	Entry("that shows it already is recorded", bounded("1:9:2", 2, ""), "wanted-excess=2"),
	Entry("that shows it already, and is recorded, stays", bounded("1:9:2", 2, "2")),
	Entry("that vanishes is written again", bounded("1:9:2", -1, "2"), "field=2", "restored"),
	Entry("shows 0, which is no record", bounded("1:9:0", 2, "2"), "field=0", "wanted-excess="),
	Entry("shows 0 already", changed(bounded("1:9:0", 0, "2"), leftover), "wanted-excess="),
	Entry("shows nothing where the API server does not store it", bounded("1:9:2", -1, "2", pruned), "wanted-excess="),
	Entry("keeps its owners on record only while it is theirs", changed(owned(2, "2", gitopsAt0), note(api.BoundsAnnotation, "1:9:2")), "excess-owners="),
	Entry("is not given up by one whose value is not on record", owned(2, "", gitopsAt0, entry("gitops", "Apply", 9, noClaim)), "wanted-excess=2"),
)

var _ = DescribeTable("A value in a field that shows what bounds come to",
	func(v plan.View, conflicts int) {
		p := plan.New(v)
		Expect(p.Deployment.Field).To(HaveValue(BeEquivalentTo(2)))
		Expect(p.Memory.FieldConflict.Writes).To(Equal(conflicts))
	},
	Entry("is another client's", bounded("1:9:2", 5, "2"), 1),
	Entry("is another client's, also before anything was recorded", bounded("1:9:2", 5, ""), 1),
	Entry("is another client's, also if it is one", bounded("1:9:2", 1, ""), 1),
	Entry("is another client's if it is 0 and was not before", bounded("1:9:2", 0, "1"), 1),
	Entry("has no owner if it is 0, as it was", bounded("1:9:2", 0, ""), 0),
	Entry("is ours if it is the recorded one", bounded("1:9:2", 1, "1"), 0),
	Entry("has no owner if it vanished", bounded("1:9:2", -1, "1"), 0),
)

var _ = Describe("A conflict about the field", func() {
	fought := func(field int32, entries ...metav1.ManagedFieldsEntry) plan.View {
		v := changed(owned(field, "2", "", entries...), note(api.BoundsAnnotation, "1:9:2"))
		v.Memory.FieldConflict = plan.FieldConflict{Writes: 1, Until: v.Now}
		return v
	}

	It("is with the client that wrote the field last", func() {
		older, newer := entry("gitops", "Apply", 3, claim), entry("kubectl", "Update", 9, claim)
		Expect(plan.New(fought(5, older, newer)).Report.Message).To(ContainSubstring("is written by kubectl and has no effect"))
		Expect(plan.New(fought(5)).Report.Message).To(ContainSubstring("is written by another client and has no effect"))
		Expect(plan.New(fought(5, entry("gitops", "Apply", 3, noClaim))).Report.Message).To(ContainSubstring("is written by another client"))
	})

	It("doubles the delay of the next write", func() {
		p := plan.New(fought(5))
		Expect(p.Memory.FieldConflict).To(Equal(plan.FieldConflict{Writes: 2, Until: at(60 + 120).Time}))
		Expect(p.Deployment.Field).To(HaveValue(BeEquivalentTo(2)))
	})

	It("is remembered while bounds cannot be read", func() {
		v := fought(5)
		v.Deployment.Annotations[api.BoundsAnnotation] = "many"
		v.Memory.FieldConflict.Until = at(3600).Time
		Expect(plan.New(v).Memory.FieldConflict).To(Equal(v.Memory.FieldConflict))
	})

	It("is over if the field shows what it should when the delay ends", func() {
		v := fought(2)
		Expect(plan.New(v).Memory.FieldConflict).To(BeZero())
		v.Memory.FieldConflict.Until = at(61).Time
		Expect(plan.New(v).Memory.FieldConflict).To(Equal(v.Memory.FieldConflict))
		Expect(plan.New(v).Report.Message).NotTo(ContainSubstring("no effect"))
	})
})

var _ = Describe("The record of who owns the field", func() {
	recorded := func(entries ...metav1.ManagedFieldsEntry) []api.ExcessOwner {
		owners, err := api.ParseExcessOwners(plan.New(owned(2, "", "", entries...)).Deployment.Annotations[api.ExcessOwnersAnnotation])
		Expect(err).NotTo(HaveOccurred())
		return owners
	}
	names := func(owners []api.ExcessOwner) (all []string) {
		for _, o := range owners {
			all = append(all, fmt.Sprint(o.Manager, " ", o.Operation))
		}
		return all
	}

	It("begins with the client that wrote last, and then goes by name and operation", func() {
		Expect(names(recorded(entry("b", "Update", 3, claim), entry("a", "Update", 3, claim), entry("c", "Apply", 1, claim), entry("d", "Apply", 9, claim), entry("a", "Apply", 3, claim)))).
			To(Equal([]string{"d Apply", "a Apply", "a Update", "b Update", "c Apply"}))
	})

	It("has the eight that wrote last", func() {
		var all []metav1.ManagedFieldsEntry
		for i := range 10 {
			all = append(all, entry(fmt.Sprintf("m%d", i), "Apply", i, claim))
		}
		Expect(names(recorded(all...))).To(Equal([]string{"m9 Apply", "m8 Apply", "m7 Apply", "m6 Apply", "m5 Apply", "m4 Apply", "m3 Apply", "m2 Apply"}))
	})

	It("has no client whose fields cannot be read, or that has none", func() {
		twice := entry("twice", "Apply", 1, `{"f:spec":{"f:excessReplicas":{}},"f:spec":[]}`)
		empty, garbage, timeless, status := entry("empty", "Apply", 1, claim), entry("garbage", "Apply", 1, "{"), entry("timeless", "Apply", 1, claim), entry("status", "Apply", 1, claim)
		empty.FieldsV1, timeless.Time, status.Subresource = nil, nil, "status"
		Expect(names(recorded(empty, twice, garbage, timeless, status, entry("gitops", "Apply", 1, claim)))).To(Equal([]string{"gitops Apply"}))
	})
})

var _ = Describe("A restored field", func() {
	const ours = plan.FieldManager
	managed := func(entries ...metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return plan.New(owned(2, "2", gitopsAt0, entries...)).Deployment.Managed
	}

	It("is given back from the second before the write that restored it", func() {
		all := managed(entry(ours, "Update", 9, claim), entry(ours, "Apply", 20, noClaim))
		Expect(all).To(HaveLen(3))
		Expect(all[2]).To(And(HaveField("Manager", "gitops"), HaveField("Time", HaveValue(Equal(at(8))))))
		Expect(all[1].FieldsV1.GetRawString()).To(Equal(noClaim), "an entry that does not claim it stays")
	})

	It("is given back from the second before now if that write has no time", func() {
		write := entry(ours, "Update", 9, claim)
		write.Time = nil
		Expect(managed(write)[1].Time).To(HaveValue(Equal(at(59))))
	})

	It("is given to the owner's entry of the same operation, for the object itself", func() {
		status := entry("gitops", "Apply", 5, noClaim)
		status.Subresource = "status"
		all := managed(entry(ours, "Update", 9, claim), status, entry("gitops", "Update", 5, noClaim), entry("gitops", "Apply", 0, noClaim))
		Expect(all).To(HaveLen(4))
		for i, is := range []bool{false, false, false, true} {
			Expect(strings.Contains(all[i].FieldsV1.GetRawString(), "f:excessReplicas")).To(Equal(is), "%d", i)
		}
	})

	It("stays with an owner that has it", func() {
		Expect(managed(entry("gitops", "Apply", 0, claim))).To(BeNil())
	})

	It("is removed only from what this controller wrote", func() {
		timeless := entry("kubectl", "Update", 9, claim)
		timeless.Time = nil
		Expect(managed(timeless)[0].FieldsV1.GetRawString()).To(Equal(claim))
	})

	It("leaves fields as they are that cannot be read", func() {
		all := managed(entry(ours, "Update", 9, claim), entry("gitops", "Apply", 0, "{"))
		Expect(all[1].FieldsV1.GetRawString()).To(Equal("{"))
	})

	It("is not given back if no owner of it is known", func() {
		Expect(plan.New(owned(2, "2", "", entry(ours, "Update", 9, claim))).Deployment.Managed).To(BeNil())
	})
})
