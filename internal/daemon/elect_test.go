// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"sync/atomic"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/testing"

	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("Elect", func() {
	lease := func(identity string) Lease {
		return Lease{Namespace: "garden", Name: "machine-controller", Identity: identity}
	}
	holder := func(client *fake.Clientset) string {
		GinkgoHelper()
		found, err := client.CoordinationV1().Leases("garden").Get(context.Background(), "machine-controller", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		return *found.Spec.HolderIdentity
	}
	// elect runs Elect beside the spec; the channel gets what it returns.
	elect := func(ctx context.Context, client *fake.Clientset, identity string, lead func(context.Context) error) <-chan error {
		result := make(chan error, 1)
		go func() { result <- Elect(ctx, client, lease(identity), lead) }()
		return result
	}
	untilTold := func(ctx context.Context) error { <-ctx.Done(); return nil }

	It("leads while it holds the lease and lets it go when told to stop", bubble(func() {
		client := fake.NewClientset()
		ctx, stop := context.WithCancel(context.Background())
		result := elect(ctx, client, "a", untilTold)
		time.Sleep(time.Minute)
		Expect(holder(client)).To(Equal("a"))
		stop()
		Expect(<-result).To(Succeed())
		Expect(holder(client)).To(BeEmpty())
	}))

	It("holds and renews the lease until work that ends slowly has ended", bubble(func() {
		client := fake.NewClientset()
		ctx, stop := context.WithCancel(context.Background())
		ended := false
		first := elect(ctx, client, "a", func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Minute) // four times the lease's duration
			ended = true
			return nil
		})
		synctest.Wait()
		other, stopOther := context.WithCancel(context.Background())
		second := elect(other, client, "b", func(ctx context.Context) error {
			Expect(ended).To(BeTrue(), "b leads while a still works")
			<-ctx.Done()
			return nil
		})
		stop()
		Expect(<-first).To(Succeed())
		time.Sleep(5 * time.Second) // far less than a lease's duration: a let it go
		Expect(holder(client)).To(Equal("b"))
		stopOther()
		Expect(<-second).To(Succeed())
	}))

	It("counts the changes of the leader", bubble(func() {
		client := fake.NewClientset()
		for _, identity := range []string{"a", "b", "c"} {
			Expect(Elect(context.Background(), client, lease(identity), func(context.Context) error { return nil })).To(Succeed())
		}
		found, err := client.CoordinationV1().Leases("garden").Get(context.Background(), "machine-controller", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Spec.LeaseTransitions).To(HaveValue(BeEquivalentTo(2)))
	}))

	It("says first when another process last had the lease", bubble(func() {
		client := fake.NewClientset()
		var renewed []time.Time
		lead := func(identity string, lead func(context.Context) error) error {
			l := lease(identity)
			l.Renewed = func(at time.Time) { renewed = append(renewed, at) }
			return Elect(context.Background(), client, l, lead)
		}
		leaves := func(context.Context) error {
			time.Sleep(time.Minute)
			return ErrUnanswered // it cannot release the lease
		}
		Expect(lead("a", leaves)).To(MatchError(ErrUnanswered))
		Expect(renewed).To(BeEmpty(), "it is the first one")
		left := time.Now()
		time.Sleep(time.Hour)
		Expect(lead("b", func(context.Context) error {
			Expect(renewed).To(ConsistOf(BeTemporally("~", left, 3*time.Second)))
			return nil
		})).To(Succeed())
	}))

	It("stops the work and reports it when the lease cannot be renewed", bubble(func() {
		client := fake.NewClientset()
		refused := errors.New("refused")
		var failing atomic.Bool
		client.PrependReactor("*", "leases", func(testing.Action) (bool, runtime.Object, error) {
			return failing.Load(), nil, refused
		})
		var told time.Time
		ended := false
		result := elect(context.Background(), client, "a", func(ctx context.Context) error {
			<-ctx.Done()
			told = time.Now()
			time.Sleep(time.Second)
			ended = true
			return nil
		})
		synctest.Wait()
		failing.Store(true)
		from := time.Now()
		Expect(<-result).To(MatchError(ErrLost))
		Expect(ended).To(BeTrue(), "Elect must wait for the work")
		Expect(told.Sub(from)).To(BeNumerically("<", 15*time.Second), "another may lead when the lease has run out")
	}))

	It("reports a lost lease also if the work ends before the election has", func() {
		ctx, lose := context.WithCancel(context.Background())
		turn := &turn{work: context.Background(), lead: untilTold, stop: func() {}, done: make(chan struct{})}
		go turn.onStarted(ctx)
		lose()
		<-turn.done
		Expect(turn.awaitEnd()).To(MatchError(ErrLost))
	})

	It("leaves the lease to who took it over meanwhile", bubble(func() {
		server := sim.New(sim.Options{})
		defer server.Close()
		a, b := kubernetes.NewForConfigOrDie(server.ConfigFor("a")), kubernetes.NewForConfigOrDie(server.ConfigFor("b"))
		first := make(chan error, 1)
		go func() {
			first <- Elect(context.Background(), a, lease("a"), func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Minute) // ends long after the lease was lost, when a reaches the server again
				return nil
			})
		}()
		synctest.Wait()
		ctx, stop := context.WithCancel(context.Background())
		second := make(chan error, 1)
		go func() { second <- Elect(ctx, b, lease("b"), untilTold) }()
		server.Down(true, "a")
		time.Sleep(45 * time.Second)
		server.Down(false, "a")
		Expect(<-first).To(MatchError(ErrLost))
		found, err := b.CoordinationV1().Leases("garden").Get(ctx, "machine-controller", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(*found.Spec.HolderIdentity).To(Equal("b"))
		stop()
		Expect(<-second).To(Succeed())
	}))

	It("ends with the work's own error and lets the lease go", bubble(func() {
		client := fake.NewClientset()
		broken := errors.New("broken")
		Expect(<-elect(context.Background(), client, "a", func(context.Context) error { return broken })).To(MatchError(broken))
		Expect(holder(client)).To(BeEmpty())
	}))

	It("keeps the lease to run out where a write was given up", bubble(func() {
		client := fake.NewClientset()
		Expect(<-elect(context.Background(), client, "a", func(context.Context) error { return ErrUnanswered })).To(MatchError(ErrUnanswered))
		Expect(holder(client)).To(Equal("a"))
	}))

	It("never leads when told to stop while another leads, and leaves that one's lease alone", bubble(func() {
		client := fake.NewClientset()
		ctx, stop := context.WithCancel(context.Background())
		first := elect(ctx, client, "a", untilTold)
		synctest.Wait()
		waiting, giveUp := context.WithCancel(context.Background())
		second := elect(waiting, client, "b", func(context.Context) error {
			Fail("b led")
			return nil
		})
		time.Sleep(time.Minute)
		giveUp()
		Expect(<-second).To(Succeed())
		Expect(holder(client)).To(Equal("a"))
		stop()
		Expect(<-first).To(Succeed())
	}))
})
