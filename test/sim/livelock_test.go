// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/evenkeel/evenkeel/test/sim"
)

// restless are clients that write again whatever the server answers.
var restless = map[string]func(ctx context.Context, maps corev1client.ConfigMapInterface, n int){
	"changes": func(ctx context.Context, maps corev1client.ConfigMapInterface, n int) {
		_, _ = maps.Patch(ctx, "map", types.MergePatchType, fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n), metav1.PatchOptions{})
	},
	"repeats what it has written": func(ctx context.Context, maps corev1client.ConfigMapInterface, _ int) {
		_, _ = maps.Patch(ctx, "map", types.MergePatchType, []byte(`{"data":{"n":"0"}}`), metav1.PatchOptions{})
	},
	"writes what is not there": func(ctx context.Context, maps corev1client.ConfigMapInterface, _ int) {
		_ = maps.Delete(ctx, "none", metav1.DeleteOptions{})
	},
	"creates": func(ctx context.Context, maps corev1client.ConfigMapInterface, _ int) {
		_, _ = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "map-"}}, metav1.CreateOptions{})
	},
}

func (s scene) configMaps(user string) corev1client.ConfigMapInterface {
	return kubernetes.NewForConfigOrDie(s.ConfigFor(user)).CoreV1().ConfigMaps("default")
}

var _ = Describe("A client that writes without end at one moment", func() {
	DescribeTable("is noticed where it", func(how string) {
		found := ""
		play(sim.Options{Endless: func(what string) { found = what }}, func(s scene) {
			maps := s.configMaps("restless")
			_, err := maps.Create(s, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "map"}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			for n := 0; found == ""; n++ {
				restless[how](s, maps, n)
			}
		})
		Expect(found).To(And(HavePrefix("livelock: "), ContainSubstring("configmaps default/"), ContainSubstring("restless"), ContainSubstring("livelock_test.go")))
	},
		func(how string) string { return how },
		Entry(nil, "changes"), Entry(nil, "repeats what it has written"), Entry(nil, "writes what is not there"), Entry(nil, "creates"),
	)

	It("is noticed where all of its writes fail", func() {
		found := ""
		play(sim.Options{Endless: func(what string) { found = what }}, func(s scene) {
			s.OnWrite(func(sim.Write) error { return context.Canceled })
			maps := s.configMaps("restless")
			for n := 0; found == ""; n++ {
				restless["changes"](s, maps, n)
			}
		})
		Expect(found).To(HavePrefix("livelock: 2000 writes of configmaps default/map within one moment (2000-01-01T00:00:00Z), the last one by restless: patch"))
	})

	It("is not one that lets time pass, nor many that write one object each", func() {
		play(sim.Options{Endless: func(what string) { Fail(what) }}, func(s scene) {
			maps := s.configMaps("calm")
			for n := range 2500 {
				restless["changes"](s, maps, n)
				time.Sleep(time.Nanosecond)
			}
			for n := range 2500 {
				_, err := maps.Create(s, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("map-", n)}}, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
		})
	})

	It("ends the process within seconds, and prints why", func() {
		self, err := os.Executable()
		Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		run := exec.CommandContext(ctx, self, "-test.run=^TestEndless$", "-test.timeout=50s")
		run.Env = append(os.Environ(), endlessVariable+"=1")
		output, err := run.CombinedOutput()
		Expect(err).To(HaveOccurred())
		Expect(string(output)).To(And(ContainSubstring("panic: livelock: 2000 writes of configmaps default/map"), Not(ContainSubstring("timed out"))))
	})
})

// endlessVariable has TestEndless write without end.
const endlessVariable = "SIM_TEST_ENDLESS"

// TestEndless runs as a process of its own.
func TestEndless(t *testing.T) {
	if os.Getenv(endlessVariable) == "" {
		t.Skip("a part of TestSim")
	}
	synctest.Test(t, func(t *testing.T) {
		s := sim.New(sim.Options{})
		defer s.Close()
		maps := scene{Server: s}.configMaps("restless")
		for n := 0; ; n++ {
			restless["changes"](t.Context(), maps, n)
		}
	})
}
