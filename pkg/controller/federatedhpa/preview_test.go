// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

// previews looks at an object as it would be after a change, for so long.
func (f *federation) previews(patience time.Duration, change func(*Spec)) []Preview {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	o := f.object("shop")
	if change != nil {
		change(&o.Spec)
	}
	all, err := NewPreviews(ctx, f, []*v1alpha1.FederatedHorizontalPodAutoscaler{o}, Options{Connect: func(r Registration) (*rest.Config, error) {
		return f.member(r.Name).ConfigFor("preview"), nil
	}})
	Expect(err).NotTo(HaveOccurred())
	return all
}

// foretold are the bounds that a preview foretells.
func foretold(p Preview) string {
	var all []string
	for _, s := range p.Plan.Clusters {
		all = append(all, fmt.Sprintf("%d..%d", s.Aim.Min, s.Aim.Max))
	}
	return strings.Join(all, "/")
}

var _ = Describe("A preview", func() {
	It("sees what the controller sees, foretells what it comes to, and writes nothing anywhere", func() {
		play(func(f *federation) {
			f.create(Federated(3, 30))
			before := foretold(f.previews(time.Minute, nil)[0])
			f.start()
			f.settle()
			Expect(before).To(Equal("1..10/1..10/1..10"))
			Expect(f.bounds("shop")).To(Equal(before))

			p := f.previews(time.Minute, nil)[0]
			Expect(p.Plan.Orders).To(BeEmpty(), "at rest")
			Expect(foretold(p)).To(Equal(before))

			smaller := func(s *Spec) { s.MaxReplicas = 12 }
			p = f.previews(time.Minute, smaller)[0]
			Expect(p.Plan.Orders).NotTo(BeEmpty())
			Expect(f.bounds("shop")).To(Equal(before), "nothing was ordered")
			f.change("shop", smaller)
			f.settle()
			Expect(f.bounds("shop")).To(Equal(foretold(p)))
			for _, c := range f.clusters {
				for _, w := range c.Writes() {
					Expect(w.User).NotTo(Equal("preview"))
				}
			}
		}, "c1", "c2", "c3")
	})

	It("counts a cluster that does not answer in time as out of reach", func() {
		play(func(f *federation) {
			f.create(Federated(3, 30))
			f.start()
			f.settle()
			f.member("c2").Down(true, "preview")
			began := time.Now()
			p := f.previews(30*time.Second, nil)[0]
			Expect(time.Since(began)).To(BeNumerically("~", 30*time.Second, time.Second))
			reached := map[string]bool{}
			for _, c := range p.View.Clusters {
				reached[c.Name] = c.Reachable
			}
			Expect(reached).To(Equal(map[string]bool{"c1": true, "c2": false}))
		}, "c1", "c2")
	})
})
