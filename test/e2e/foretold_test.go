// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// play foretells some changes, makes them, waits, and compares.
func (a *arena) play(ctx context.Context, edits []edit) {
	GinkgoHelper()
	var documents, says []string
	for _, e := range edits {
		documents, says = append(documents, e.text()), append(says, e.says)
	}
	By(strings.Join(says, ", "))
	was := map[string][]string{}
	for _, p := range a.pools() {
		was[p.name] = namesOf(p.machines(ctx))
	}
	f, err := foretold(ctx, strings.Join(documents, "\n---\n"))
	Expect(err).NotTo(HaveOccurred())
	Expect(f.End.Rest).To(BeTrue())
	for _, e := range edits {
		kubectl(ctx, "patch", e.resource, e.name, "-n", e.namespace, "--type", "merge", "-p", e.text())
	}
	a.rests(ctx)
	for _, p := range a.pools() {
		p.cameTrue(ctx, f, was[p.name])
	}
	for _, b := range f.End.Balancers {
		for name, replicas := range b.Is {
			if b.Name == a.shop.name {
				d, err := kube.AppsV1().Deployments(a.shop.name).Get(ctx, name, metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(d.Spec.Replicas).To(HaveValue(Equal(replicas)), name)
			}
		}
	}
}

// rests waits until machines, Nodes and status are as they are at rest, and nothing is planned.
func (a *arena) rests(ctx context.Context) {
	GinkgoHelper()
	mine := []string{a.shop.name}
	for _, p := range a.pools() {
		mine = append(mine, p.name)
	}
	calm := 0
	Eventually(func() error {
		f, err := foretold(ctx, "")
		if err != nil {
			return err
		}
		err = a.stirs(ctx, f, mine)
		if calm++; err != nil {
			calm = 0
			return err
		}
		if calm < 4 {
			return fmt.Errorf("calm for %d looks", calm)
		}
		return nil
	}).WithContext(ctx).WithTimeout(4 * time.Minute).WithPolling(time.Second).Should(Succeed())
}

// stirs returns what is not at rest.
func (a *arena) stirs(ctx context.Context, f forecast, mine []string) error {
	for _, plan := range f.Plans {
		if slices.Contains(mine, plan.Name) && plan.State == "Moving" {
			return fmt.Errorf("%s %s is %s", plan.Kind, plan.Name, plan.State)
		}
	}
	for _, p := range a.pools() {
		md, err := p.deployment(ctx)
		if err != nil {
			return err
		}
		applied, _ := machine.ParseAppliedExcess(md.Annotations[machine.AppliedExcessAnnotation]) // none where there is none
		if err := p.settled(ctx, md.Spec.Replicas+applied.Machines); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// cameTrue holds a forecast against what has become of the machines that were there.
func (p pool) cameTrue(ctx context.Context, f forecast, was []string) {
	GinkgoHelper()
	at := slices.IndexFunc(f.End.MachineDeployments, func(e poolEnd) bool { return e.Name == p.name })
	Expect(at).To(BeNumerically(">=", 0))
	e := f.End.MachineDeployments[at]
	serve, reserve, err := p.split(ctx)
	Expect(err).NotTo(HaveOccurred())
	text := fmt.Sprintf("%s: foretold %+v\nserving %v\nin reserve %v\nbefore %v", p.name, e, serve, reserve, was)

	old := func(names []string, but bool) (some []string) {
		for _, name := range names {
			if slices.Contains(was, name) == but {
				some = append(some, name)
			}
		}
		return some
	}
	Expect(old(serve, true)).To(ConsistOf(e.Serve), text)
	Expect(old(reserve, true)).To(ConsistOf(e.Reserve), text)
	Expect(old(serve, false)).To(HaveLen(e.New.Serve), text)
	Expect(old(reserve, false)).To(HaveLen(e.New.Reserve), text)
	md, err := p.deployment(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(int(md.Spec.Replicas)).To(Equal(e.Replicas), text)
	applied, _ := machine.ParseAppliedExcess(md.Annotations[machine.AppliedExcessAnnotation])
	Expect(int(applied.Machines)).To(Equal(e.Applied), text)
}
