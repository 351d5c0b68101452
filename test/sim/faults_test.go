// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"errors"
	"io"
	"syscall"
	"testing/synctest"
	"time"

	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

// try creates a machine and may fail.
func (s scene) try(user, name string) error {
	return attempt(s, s.Client(user), name)
}

func attempt(ctx context.Context, c *sim.Client, name string) error {
	_, err := machineclient.NewForConfigOrDie(c.Config()).MachineV1alpha1().Machines(fixture.Namespace).Create(ctx, fixture.Machine(name), metav1.CreateOptions{})
	return err
}

func (s scene) exists(name string) bool { return s.Get(machines, fixture.Namespace, name) != nil }

var _ = Describe("Latency", func() {
	It("passes half before the effect and half after it", func() {
		play(sim.Options{}, func(s scene) {
			s.Latency(2 * time.Second)
			start := time.Now()
			go func() {
				defer GinkgoRecover()
				Expect(s.try("slow", "one")).To(Succeed())
				Expect(time.Since(start)).To(Equal(4 * time.Second))
			}()
			time.Sleep(2*time.Second - 1)
			Expect(s.exists("one")).To(BeFalse())
			time.Sleep(2 * time.Nanosecond)
			Expect(s.exists("one")).To(BeTrue())
			time.Sleep(3 * time.Second)
		})
	})

	It("can depend on the request", func() {
		play(sim.Options{}, func(s scene) {
			s.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.Verb == "create" && r.User == "slow" && r.Resource == "machines" {
					return time.Second, 0
				}
				return 0, 0
			})
			start := time.Now()
			Expect(s.try("quick", "one")).To(Succeed())
			Expect(time.Since(start)).To(BeZero())
			Expect(s.try("slow", "two")).To(Succeed())
			Expect(time.Since(start)).To(Equal(time.Second))
		})
	})

	It("ends with the caller's patience, before the effect or after it", func() {
		play(sim.Options{}, func(s scene) {
			s.Latency(2 * time.Second)
			for patience, effect := range map[time.Duration]bool{time.Second: false, 3 * time.Second: true} {
				ctx, cancel := context.WithTimeout(s, patience)
				defer cancel()
				name := patience.String()[:1] + "-seconds"
				Expect(attempt(ctx, s.Client(""), name)).To(MatchError(context.DeadlineExceeded))
				time.Sleep(10 * time.Second)
				Expect(s.exists(name)).To(Equal(effect))
			}
		})
	})
})

var _ = Describe("Failing writes", func() {
	It("fail before they take effect", func() {
		play(sim.Options{}, func(s scene) {
			s.FailWrites(1, sim.Before)
			Expect(s.try("", "one")).To(Satisfy(apierrors.IsInternalError))
			Expect(s.exists("one")).To(BeFalse())
			Expect(s.Writes()).To(BeEmpty())
		})
	})

	It("fail after they took effect", func() {
		play(sim.Options{}, func(s scene) {
			s.FailWrites(1, sim.After)
			Expect(s.try("", "one")).To(Satisfy(apierrors.IsTimeout))
			Expect(s.exists("one")).To(BeTrue())
			Expect(s.try("", "one")).To(Satisfy(apierrors.IsAlreadyExists), "what is refused has nothing to lose")
		})
	})

	It("concern those they are meant for, and reads never", func() {
		play(sim.Options{}, func(s scene) {
			s.FailWrites(1, sim.Before, "unlucky")
			Expect(s.try("lucky", "one")).To(Succeed())
			Expect(s.try("unlucky", "two")).NotTo(Succeed())
			unlucky := machineclient.NewForConfigOrDie(s.ConfigFor("unlucky")).MachineV1alpha1().Machines(fixture.Namespace)
			_, err := unlucky.Get(s, "one", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
		})
	})

	It("are drawn from the seed, as often as asked", func() {
		outcome := func(seed uint64) (failed, lost int, pattern string) {
			play(sim.Options{Seed: seed}, func(s scene) {
				s.FailWrites(0.3, sim.Either)
				for range 200 {
					name := string(rune('a'+len(pattern)%26)) + time.Duration(len(pattern)).String()
					err := s.try("", name)
					switch {
					case err == nil:
						pattern += "."
					case s.exists(name):
						lost++
						pattern += "l"
					default:
						failed++
						pattern += "f"
					}
				}
			})
			return failed, lost, pattern
		}
		failed, lost, pattern := outcome(1)
		Expect(failed).To(BeNumerically("~", 30, 15))
		Expect(lost).To(BeNumerically("~", 30, 15))
		_, _, same := outcome(1)
		Expect(same).To(Equal(pattern))
		_, _, other := outcome(2)
		Expect(other).NotTo(Equal(pattern))
	})
})

var _ = Describe("Hooks", func() {
	It("see every write before it happens, and can prevent it", func() {
		play(sim.Options{}, func(s scene) {
			var seen []sim.Request
			s.OnWrite(func(w sim.Write) error {
				seen = append(seen, w.Request)
				if w.Name == "broken" {
					return io.ErrUnexpectedEOF
				}
				if w.Verb == "delete" {
					return apierrors.NewForbidden(machines.GroupResource(), w.Name, nil)
				}
				return nil
			})
			one := s.create("one")
			one.Status.LastKnownState = "x"
			all := s.machine.MachineV1alpha1().Machines(fixture.Namespace)
			_, err := all.UpdateStatus(s, one, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(all.Delete(s, "one", metav1.DeleteOptions{})).To(Satisfy(apierrors.IsForbidden))
			Expect(s.exists("one")).To(BeTrue())
			one.Name = "broken"
			_, err = all.Update(s, one, metav1.UpdateOptions{})
			Expect(err).To(MatchError(io.ErrUnexpectedEOF))
			Expect(seen).To(Equal([]sim.Request{
				{User: "writer", Verb: "create", Resource: "machines", Namespace: fixture.Namespace},
				{User: "writer", Verb: "update", Resource: "machines", Subresource: "status", Namespace: fixture.Namespace, Name: "one"},
				{User: "writer", Verb: "delete", Resource: "machines", Namespace: fixture.Namespace, Name: "one"},
				{User: "writer", Verb: "update", Resource: "machines", Namespace: fixture.Namespace, Name: "broken"},
			}))
		})
	})

	It("see what a write did, and can lose its answer", func() {
		play(sim.Options{}, func(s scene) {
			var effects []sim.Effect
			cause := errors.New("lost")
			s.AfterWrite(func(w sim.Write) error {
				effects = append(effects, w.Effect)
				if w.Effect == sim.Deleted {
					return cause
				}
				return nil
			})
			one := s.create("one")
			one.Labels = map[string]string{"a": "b"}
			s.update(s.update(one))
			all := s.machine.MachineV1alpha1().Machines(fixture.Namespace)
			Expect(all.Delete(s, "one", metav1.DeleteOptions{})).To(MatchError(cause))
			Expect(s.exists("one")).To(BeFalse())
			Expect(effects).To(Equal([]sim.Effect{sim.Added, sim.Modified, "", sim.Deleted}))
			Expect(s.Writes()[2].NoOp()).To(BeTrue())
			Expect(s.Writes()[2].ResourceVersion).To(Equal(s.Writes()[1].ResourceVersion))
			Expect(s.Writes()[3].ResourceVersion).To(Equal(s.Version()))
		})
	})
})

var _ = Describe("A client that is cut", func() {
	It("has no effect any more, also not with a request under way", func() {
		play(sim.Options{}, func(s scene) {
			s.Latency(time.Second)
			c := s.Client("doomed")
			failed := make(chan error, 1)
			start := time.Now()
			go func() { failed <- attempt(s, c, "one") }()
			time.Sleep(500 * time.Millisecond)
			c.Cut()
			Expect(<-failed).To(MatchError(syscall.ECONNREFUSED))
			Expect(time.Since(start)).To(Equal(500*time.Millisecond), "it is told at once")
			Expect(attempt(s, c, "two")).To(MatchError(syscall.ECONNREFUSED))
			time.Sleep(time.Minute)
			Expect(s.Objects(machines)).To(BeEmpty())
			Expect(s.try("doomed", "three")).To(Succeed(), "another client of that identity lives")
		})
	})

	It("gets no answer to the write during which it dies", func() {
		play(sim.Options{}, func(s scene) {
			c := s.Client("doomed")
			s.AfterWrite(func(sim.Write) error {
				c.Cut()
				return nil
			})
			Expect(attempt(s, c, "one")).To(MatchError(syscall.ECONNREFUSED))
			Expect(s.exists("one")).To(BeTrue())
		})
	})

	It("loses its watches", func() {
		play(sim.Options{}, func(s scene) {
			c := s.Client("doomed")
			w, err := machineclient.NewForConfigOrDie(c.Config()).MachineV1alpha1().Machines(fixture.Namespace).Watch(s, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.Cut()
			s.create("one")
			synctest.Wait()
			Expect(w.ResultChan()).To(BeClosed())
		})
	})
})

var _ = Describe("A server that is closed", func() {
	It("refuses requests and ends watches", func() {
		play(sim.Options{}, func(s scene) {
			w, err := s.machine.MachineV1alpha1().Machines(fixture.Namespace).Watch(s, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			s.Close()
			s.Close()
			synctest.Wait()
			Expect(w.ResultChan()).To(BeClosed())
			Expect(s.try("", "one")).To(MatchError(syscall.ECONNREFUSED))
		})
	})
})
