// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"syscall"
	"testing/synctest"
	"time"

	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

// once sends a request without client-go's own retries.
func (s scene) once(user, verb string) rest.Result {
	config := s.ConfigFor(user)
	all := machineclient.NewForConfigOrDie(config).MachineV1alpha1().RESTClient()
	if verb == "POST" {
		m := fixture.Machine("")
		m.GenerateName = "x-"
		return all.Post().MaxRetries(0).Namespace(fixture.Namespace).Resource("machines").Body(m).Do(s)
	}
	return all.Get().MaxRetries(0).Namespace(fixture.Namespace).Resource("machines").Do(s)
}

var _ = Describe("Trouble", func() {
	always := func(a sim.Answer) sim.Trouble { return sim.Trouble{Reads: 1, Writes: 1, Only: []sim.Answer{a}} }

	DescribeTable("is answered as an API server or a proxy answers", func(a sim.Answer, is func(error) bool, open bool) {
		play(sim.Options{}, func(s scene) {
			s.Trouble("", always(a), "unlucky")
			made := 0
			for range 8 {
				err := s.once("unlucky", "POST").Error()
				Expect(err).To(HaveOccurred())
				Expect(is(err)).To(BeTrue(), "%#v", err)
			}
			made = len(s.Objects(machines))
			if open {
				Expect(made).To(Equal(4), "as often after the effect as before it")
			} else {
				Expect(made).To(BeZero())
			}
			Expect(is(s.once("unlucky", "GET").Error())).To(BeTrue())
			Expect(s.once("lucky", "GET").Error()).NotTo(HaveOccurred())
		})
	},
		Entry("429", sim.Throttled, apierrors.IsTooManyRequests, false),
		Entry("401", sim.Unauthorized, apierrors.IsUnauthorized, false),
		Entry("403", sim.Forbidden, apierrors.IsForbidden, false),
		Entry("500", sim.Failed, apierrors.IsInternalError, true),
		Entry("502", sim.BadGateway, code(502), true),
		Entry("503", sim.Unavailable, apierrors.IsServiceUnavailable, true),
		Entry("504", sim.TimedOut, apierrors.IsTimeout, true),
		Entry("a reset", sim.Severed, func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }, true),
	)

	It("strikes reads and writes each with its own chance", func() {
		play(sim.Options{}, func(s scene) {
			s.Trouble("", sim.Trouble{Reads: 1})
			Expect(s.once("", "POST").Error()).NotTo(HaveOccurred())
			Expect(s.once("", "GET").Error()).To(HaveOccurred())
			s.Trouble("", sim.Trouble{Writes: 0.3})
			for range 40 {
				_ = s.once("", "POST")
			}
			failed := 0
			for range 200 {
				if s.once("", "POST").Error() != nil {
					failed++
				}
				Expect(s.once("", "GET").Error()).NotTo(HaveOccurred())
			}
			Expect(failed).To(BeNumerically("~", 60, 25))
			s.Trouble("", sim.Trouble{})
			Expect(s.once("", "POST").Error()).NotTo(HaveOccurred())
		})
	})

	It("deals each answer before it repeats any, and counts them", func() {
		play(sim.Options{Seed: 5}, func(s scene) {
			s.Trouble("", sim.Trouble{Reads: 1, Writes: 1})
			for range 8 {
				Expect(s.once("", "GET").Error()).To(HaveOccurred())
			}
			for range 13 {
				Expect(s.once("", "POST").Error()).To(HaveOccurred())
			}
			struck := s.Struck()
			Expect(struck).To(HaveLen(21))
			for kind, n := range struck {
				Expect(n).To(Equal(1), kind)
			}
			Expect(maps.Keys(struck)).To(ContainElements("429 on write", "504 after write", "connection reset before write", "403 on read"))
		})
	})

	It("with Retry-After makes client-go wait and come again", func() {
		play(sim.Options{Seed: 2}, func(s scene) {
			s.Trouble("", always(sim.Throttled), "unlucky")
			begun := time.Now()
			waited := 0
			for range 10 {
				_ = s.try("unlucky", "one")
				if time.Since(begun) > 0 {
					waited++
				}
				begun = time.Now()
			}
			Expect(waited).To(BeNumerically(">", 0))
		})
	})
})

func code(n int32) func(error) bool {
	return func(err error) bool {
		var status apierrors.APIStatus
		return errors.As(err, &status) && status.Status().Code == n
	}
}

var _ = Describe("Silence", func() {
	It("answers nothing, delivers nothing, and is given up after a while", func() {
		play(sim.Options{}, func(s scene) {
			w, err := machineclient.NewForConfigOrDie(s.ConfigFor("lonely")).MachineV1alpha1().Machines(fixture.Namespace).Watch(s, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			s.Silence(true, "lonely")
			begun := time.Now()
			s.create("one")
			var late *net.OpError
			Expect(errors.As(s.once("lonely", "POST").Error(), &late)).To(BeTrue())
			Expect(time.Since(begun)).To(Equal(45 * time.Second))
			synctest.Wait()
			Expect(w.ResultChan()).To(BeClosed(), "and nothing was delivered")
			Expect(s.Objects(machines)).To(HaveLen(1))
			s.Silence(false, "lonely")
			Expect(s.once("lonely", "POST").Error()).NotTo(HaveOccurred())
		})
	})

	It("that is short delays", func() {
		play(sim.Options{}, func(s scene) {
			w, err := machineclient.NewForConfigOrDie(s.ConfigFor("lonely")).MachineV1alpha1().Machines(fixture.Namespace).Watch(s, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			defer w.Stop()
			s.Silence(true, "lonely")
			go func() {
				time.Sleep(20 * time.Second)
				s.Silence(false, "lonely")
			}()
			begun := time.Now()
			s.create("one")
			Expect(s.once("lonely", "POST").Error()).NotTo(HaveOccurred())
			Expect(time.Since(begun)).To(Equal(20 * time.Second))
			Expect((<-w.ResultChan()).Type).To(Equal(watch.Added))
		})
	})
})

var _ = Describe("A server without watch lists", func() {
	It("refuses a watch that is to begin with what is stored, until it has them", func() {
		play(sim.Options{}, func(s scene) {
			all := machineclient.NewForConfigOrDie(s.ConfigFor("lister")).MachineV1alpha1().Machines(fixture.Namespace)
			yes := true
			begin := func() error {
				w, err := all.Watch(s, metav1.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
				if err == nil {
					w.Stop()
				}
				return err
			}
			Expect(begin()).To(Succeed())
			s.WatchLists(false, "lister")
			Expect(apierrors.IsInvalid(begin())).To(BeTrue())
			s.WatchLists(true, "lister")
			Expect(begin()).To(Succeed())
		})
	})
})

var _ = Describe("A restore", func() {
	It("brings back what was stored, and gives resourceVersions a second time", func() {
		play(sim.Options{}, func(s scene) {
			one := s.create("one")
			backup := s.Snapshot()
			before := s.Version()
			s.create("two")
			one.Labels = map[string]string{"a": "b"}
			later := s.update(one)
			s.Restore(backup)
			Expect(s.Version()).To(Equal(before))
			Expect(s.exists("two")).To(BeFalse())
			Expect(s.Get(machines, fixture.Namespace, "one").GetLabels()).To(BeEmpty())
			Expect(s.Get(machines, fixture.Namespace, "one").GetUID()).To(Equal(one.UID))
			s.create("three")
			one.Labels = map[string]string{"c": "d"}
			Expect(s.update(one).ResourceVersion).To(Equal(later.ResourceVersion), "of another state")
			Expect(s.Struck()).To(HaveKeyWithValue("restore", 1))
		})
	})

	It("ends watches; those that start at a version that is yet to come are silent until it has come", func() {
		play(sim.Options{}, func(s scene) {
			all := s.machine.MachineV1alpha1().Machines(fixture.Namespace)
			backup := s.Snapshot()
			s.create("one")
			two := s.create("two")
			w, err := all.Watch(s, metav1.ListOptions{ResourceVersion: two.ResourceVersion})
			Expect(err).NotTo(HaveOccurred())
			s.Restore(backup)
			synctest.Wait()
			Expect(w.ResultChan()).To(BeClosed())
			w, err = all.Watch(s, metav1.ListOptions{ResourceVersion: two.ResourceVersion})
			Expect(err).NotTo(HaveOccurred())
			defer w.Stop()
			for i := range 3 {
				s.create(fmt.Sprint("new-", i))
			}
			synctest.Wait()
			Expect((<-w.ResultChan()).Object.(metav1.Object).GetName()).To(Equal("new-2"))
		})
	})
})
