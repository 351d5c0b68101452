// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// tested are the values that a patch tests, by path; nil where nothing may be stored.
func tested(patch []byte) map[string]any {
	all := map[string]any{}
	for _, o := range operationsOf(patch) {
		if o.Op == "test" {
			all[o.Path] = o.Value
		}
	}
	return all
}

// written are the changes of a patch, by the last word of the path, as in "replicas=4 claimed=4:a-1".
func written(patch []byte) string {
	var words []string
	for _, o := range operationsOf(patch) {
		if o.Op != "test" {
			Expect(o.Op).To(Equal("add"), o.Path)
			words = append(words, fmt.Sprintf("%s=%v", path.Base(strings.ReplaceAll(o.Path, "~1", "/")), o.Value))
		}
	}
	return strings.Join(words, " ")
}

type patchOperation struct {
	Op, Path string
	Value    any
}

func operationsOf(patch []byte) (all []patchOperation) {
	Expect(json.Unmarshal(patch, &all)).To(Succeed())
	return all
}

// raiseOf is a raise by one of a MachineDeployment with three replicas.
func raiseOf(change ...func(*Raise)) Raise {
	r := Raise{By: 1, Pool: Pool{Key: "default/a", Basis: Basis{UID: "u", Generation: 7, Replicas: 3, Bounds: "1:9"}}}
	for _, f := range change {
		f(&r)
	}
	return r
}

// inclusive has replicas include reserve machines, as far as that is recorded.
func inclusive(recorded *string) func(*Raise) {
	return func(r *Raise) { r.Pool.Inclusive, r.Pool.Basis.Excess = true, recorded }
}

// claiming has a raise claim dedicated machines, beside those that are claimed already.
func claiming(already string, names ...string) func(*Raise) {
	return func(r *Raise) { r.Pool.Claimed, r.Claimed = strings.Fields(already), names }
}

var _ = Describe("A raise", func() {
	DescribeTable("tests all that it rests on, in each patch", func(inclusive bool) {
		applied, excess := "2", "1,counted=1,replicas=3"
		for _, replicas := range []int32{0, 3} {
			r := Raise{By: 1, Pool: Pool{Inclusive: inclusive, Key: "default/a", Basis: Basis{UID: "u", Generation: 7, Replicas: replicas, Bounds: "1:9", Applied: &applied, Excess: &excess}}}
			for _, patch := range r.Patches() {
				Expect(tested(patch)).To(And(HaveLen(6), HaveKey("/spec/replicas"), HaveKeyWithValue("/metadata/uid", "u"), HaveKeyWithValue("/metadata/generation", 7.),
					HaveKeyWithValue(HaveSuffix("bounds"), "1:9"), HaveKeyWithValue(HaveSuffix("applied-replicas"), "2"), HaveKeyWithValue(HaveSuffix("applied-excess"), excess)))
			}
		}
	},
		Entry("replicas without the reserve", false),
		Entry("replicas that include it", true),
	)

	It("tests for the replicas that it was decided for, in each form that clients store them in", func() {
		patches := raiseOf().Patches()
		Expect(patches).To(HaveLen(1))
		Expect(tested(patches[0])).To(HaveKeyWithValue("/spec/replicas", 3.))

		patches = raiseOf(func(r *Raise) { r.Pool.Basis.Replicas = 0 }).Patches()
		Expect(patches).To(HaveLen(2))
		Expect(tested(patches[0])).To(HaveKeyWithValue("/spec/replicas", 0.))
		Expect(tested(patches[1])).To(HaveKeyWithValue("/spec/replicas", BeNil()))
		Expect(written(patches[1])).To(Equal("replicas=1"))
	})

	DescribeTable("writes",
		func(want string, r Raise) { Expect(written(r.Patches()[0])).To(Equal(want)) },
		Entry("replicas, and nothing else", "replicas=4", raiseOf()),
		Entry("as many more as it takes", "replicas=8", raiseOf(func(r *Raise) { r.By = 5 })),
		Entry("what may be acted on, where growth is held until it is split", "replicas=4 applied-replicas=3", raiseOf(func(r *Raise) { r.Pool.Applied = ptr.To[int32](2) })),
		Entry("the reserve instead, where replicas include it", "replicas=3 applied-excess=1,counted=1,replicas=3", raiseOf(inclusive(ptr.To("2,counted=2,replicas=3")))),
		Entry("that none is left, where replicas include the last", "replicas=3 applied-excess=0", raiseOf(inclusive(ptr.To("1,counted=1,replicas=3")))),
		Entry("both, where replicas include fewer than it takes", "replicas=4 applied-excess=1", raiseOf(inclusive(ptr.To("2,counted=1,replicas=3")), func(r *Raise) { r.By = 2 })),
		Entry("no reserve, where replicas are to include it and do not yet", "replicas=4", raiseOf(inclusive(nil))),
		Entry("no reserve, where replicas do not include it", "replicas=4", raiseOf(func(r *Raise) { r.Pool.Basis.Excess = ptr.To("2") })),
		Entry("the machines that it claims, for as many replicas as there are then", "replicas=4 claimed=4:a-1", raiseOf(claiming("", "a-1"))),
		Entry("those that are claimed already first", "replicas=4 claimed=4:a-9,a-1", raiseOf(claiming("a-9", "a-1"))),
		Entry("claims for the replicas that workload may have", "replicas=3 applied-excess=1,counted=1,replicas=3 claimed=2:a-1", raiseOf(claiming("", "a-1"), inclusive(ptr.To("2,counted=2,replicas=3")))),
		Entry("no claims, where it claims none", "replicas=4", raiseOf(claiming("a-9"))),
	)

	It("shows the MachineDeployment as it is afterwards, and leaves the one from before alone", func() {
		d := &v1alpha1.MachineDeployment{}
		d.Name, d.Namespace, d.Spec.Replicas = "a", fixture.Namespace, 3
		after := raiseOf().After(d)
		Expect(after.Name).To(Equal("a"))
		Expect(after.Spec.Replicas).To(BeEquivalentTo(4))
		Expect(after.Annotations).To(BeEmpty())

		after = raiseOf(claiming("a-9", "a-1")).After(d)
		Expect(after.Spec.Replicas).To(BeEquivalentTo(4))
		Expect(after.Annotations).To(Equal(map[string]string{v1alpha1.ClaimedAnnotation: "4:a-9,a-1"}))
		Expect(d.Spec.Replicas).To(BeEquivalentTo(3))
		Expect(d.Annotations).To(BeEmpty())
	})
})

var _ = Describe("A nomination", func() {
	pod := Pod("p", 1000)
	pod.ResourceVersion = "5"

	It("names the node, of that pod and no later one of its name", func() {
		n := Nomination{Pod: fit.NewPod(pod, nil), Node: "a-1"}
		Expect(n.Withdraws()).To(BeFalse())
		Expect(n.Patch()).To(MatchJSON(`{"metadata":{"uid":"p"},"status":{"nominatedNodeName":"a-1"}}`))
	})

	It("without a node is withdrawn, unless the pod has changed since", func() {
		n := Nomination{Pod: fit.NewPod(pod, nil)}
		Expect(n.Withdraws()).To(BeTrue())
		Expect(n.Patch()).To(MatchJSON(`{"metadata":{"uid":"p","resourceVersion":"5"},"status":{"nominatedNodeName":null}}`))
	})
})
