// SPDX-License-Identifier: Apache-2.0

package storm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// every runs step each second until ctx ends, like a controller does.
func every(step func(context.Context, corev1client.ConfigMapInterface) error) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
		for ctx.Err() == nil {
			_ = step(ctx, maps) // the next round tries again
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
		return nil
	}
}

// careful looks before it writes: five maps, whatever befalls it.
var careful = every(func(ctx context.Context, maps corev1client.ConfigMapInterface) error {
	for i := range 5 {
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("map-", i)}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
})

// forgetful makes five maps, and does not know of those that an earlier life made.
func forgetful(ctx context.Context, config *rest.Config) error {
	made := 0
	return every(func(ctx context.Context, maps corev1client.ConfigMapInterface) error {
		for ; made < 5; made++ {
			if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "map-"}}, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		return nil
	})(ctx, config)
}

func scenario(program storm.Program) storm.Scenario {
	return storm.Scenario{
		Options: sim.Options{Seed: 3},
		Story: func(w *storm.World) {
			w.Start("maker", program)
			Expect(w.Settle(30*time.Second, time.Hour)).To(Succeed())
		},
		End: func(w *storm.World) any { return len(w.Objects(configMaps)) },
	}
}

var _ = Describe("Crash points", func() {
	It("pass a process that looks before it writes", func() {
		Expect(storm.CrashPoints(suite, scenario(careful), "maker")).To(Succeed())
	})

	It("catch a process that forgets, and say how to see it again", func() {
		err := storm.CrashPoints(suite, scenario(forgetful), "maker")
		Expect(err).To(MatchError(ContainSubstring("killed at write 5:after of 5, it ended as\n  10\ninstead of\n  5")))
		Expect(err).To(MatchError(ContainSubstring("SEED=3 CRASH=5:after go test ./test/sim/storm -count=1 -run '^TestStorm$' -ginkgo.focus 'Crash points catch")))
		Expect(err).To(MatchError(ContainSubstring("killed at write 2:before")))
		Expect(err).NotTo(MatchError(ContainSubstring("killed at write 1:before")), "nothing was lost there")
	})

	It("can be had one by one", func() {
		setenv("CRASH", "2:after")
		err := storm.CrashPoints(suite, scenario(forgetful), "maker")
		Expect(err).To(MatchError(ContainSubstring("killed at write 2:after of 5, it ended as\n  7\n")))
		Expect(err).NotTo(MatchError(ContainSubstring("3:")))
	})

	It("have a form", func() {
		for _, garbage := range []string{"x:after", "3", "3:later", ":"} {
			setenv("CRASH", garbage)
			Expect(storm.CrashPoints(suite, scenario(careful), "maker")).To(MatchError(ContainSubstring("want a number and before or after")))
		}
	})

	It("need a process that writes", func() {
		Expect(storm.CrashPoints(suite, scenario(careful), "nobody")).NotTo(Succeed())
	})
})

func setenv(name, value string) {
	Expect(os.Setenv(name, value)).To(Succeed())
	DeferCleanup(os.Unsetenv, name)
}

var _ = Describe("A process", func() {
	It("has no effect once it is killed, and has again when it is restarted", func() {
		storm.Bubble(suite, func() {
			w := storm.NewWorld(sim.Options{})
			defer w.End()
			p := w.Start("maker", every(func(ctx context.Context, maps corev1client.ConfigMapInterface) error {
				_, err := maps.Create(context.WithoutCancel(ctx), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "map-"}}, metav1.CreateOptions{})
				return err
			}))
			w.Latency(300 * time.Millisecond)
			time.Sleep(10 * time.Second)
			p.Crash()
			before := len(w.Objects(configMaps))
			Expect(before).To(BeNumerically(">", 3))
			time.Sleep(time.Minute)
			Expect(w.Objects(configMaps)).To(HaveLen(before), "a request that was under way came through")
			p.Restart()
			time.Sleep(10 * time.Second)
			Expect(len(w.Objects(configMaps))).To(BeNumerically(">", before))
		})
	})

	It("is missed when it ends by itself", func() {
		storm.Bubble(suite, func() {
			w := storm.NewWorld(sim.Options{})
			defer w.End()
			cause := errors.New("out of memory")
			w.Start("brief", func(context.Context, *rest.Config) error { return cause })
			Expect(w.Settle(time.Minute, time.Hour)).To(MatchError(cause))
		})
	})

	It("tells why it ended", func() {
		storm.Bubble(suite, func() {
			w := storm.NewWorld(sim.Options{})
			defer w.End()
			p := w.Start("polite", func(ctx context.Context, _ *rest.Config) error {
				<-ctx.Done()
				return context.Cause(ctx)
			})
			Expect(p.Stop()).To(MatchError(context.Canceled))
		})
	})
})

var _ = Describe("Settling", func() {
	It("is an error where there is no rest", func() {
		storm.Bubble(suite, func() {
			w := storm.NewWorld(sim.Options{})
			defer w.End()
			n := 0
			w.Start("restless", every(func(ctx context.Context, maps corev1client.ConfigMapInterface) error {
				n++
				_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("map-", n)}}, metav1.CreateOptions{})
				return err
			}))
			Expect(w.Settle(time.Minute, time.Hour)).To(MatchError(ContainSubstring("no rest after 1h0m0s: ")))
			Expect(time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))).To(BeNumerically("~", time.Hour, 2*time.Minute))
		})
	})
})

var _ = DescribeTable("A soak has rounds until enough objects have come and gone", func(asked string, rounds int) {
	if asked != "" {
		GinkgoT().Setenv("SOAK", asked)
	}
	Expect(storm.Soak(600, 60)).To(Equal(rounds))
},
	Entry("as usual", "", 10),
	Entry("as many as are asked for", "120", 2),
	Entry("no fewer", "121", 3),
)

var _ = Describe("Seeds", func() {
	It("run one after the other", func() {
		setenv("STORMS", "")
		var seen []uint64
		storm.Seeds(suite, 3, func(seed uint64) { seen = append(seen, seed) })
		Expect(seen).To(Equal([]uint64{1, 2, 3}), "the same in every run, so that a change alone decides what fails")
	})

	It("are drawn, too, where storms are asked for", func() {
		setenv("STORMS", "2")
		var seen []uint64
		storm.Seeds(suite, 3, func(seed uint64) { seen = append(seen, seed) })
		Expect(seen).To(HaveLen(3))
		Expect(seen[:2]).To(Equal([]uint64{1, 2}))
		Expect(seen[2]).To(BeNumerically(">=", 1_000_000))
	})

	It("can be had one by one", func() {
		setenv("SEED", "17")
		var seen []uint64
		storm.Seeds(suite, 3, func(seed uint64) { seen = append(seen, seed) })
		Expect(seen).To(Equal([]uint64{17}))
	})

	It("decide what the server does", func() {
		names := map[uint64]string{}
		for range 2 {
			storm.Seeds(suite, 2, func(seed uint64) {
				w := storm.NewWorld(sim.Options{Seed: seed})
				defer w.End()
				maps := kubernetes.NewForConfigOrDie(w.Config()).CoreV1().ConfigMaps("default")
				made, err := maps.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "map-"}}, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(names[seed]).To(BeElementOf("", made.Name))
				names[seed] = made.Name
			})
		}
		Expect(names[1]).NotTo(Equal(names[2]))
	})
})
