// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

const mebibyte = 1 << 20

// limits are the memory limits of the chart, by process, in bytes.
func limits() map[string]int64 {
	GinkgoHelper()
	root, err := localcluster.FindRoot()
	Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(filepath.Join(root, "charts/evenkeel/values.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var values struct {
		Manager, Balancer struct{ Resources corev1.ResourceRequirements }
		Federation        struct {
			Hub struct{ Resources corev1.ResourceRequirements }
		}
	}
	Expect(yaml.Unmarshal(text, &values)).To(Succeed())
	all := map[string]int64{
		manager: values.Manager.Resources.Limits.Memory().Value(), balancer: values.Balancer.Resources.Limits.Memory().Value(),
		hub: values.Federation.Hub.Resources.Limits.Memory().Value(),
	}
	for name, limit := range all {
		Expect(limit).To(BeNumerically(">", 0), "the chart has no memory limit for "+name)
	}
	return all
}

// peak is the most memory that a process has had resident so far, in bytes.
func peak(name string) int64 {
	GinkgoHelper()
	usage, err := localcluster.ReadUsage(cluster.Process(name).PID())
	Expect(err).NotTo(HaveOccurred())
	return int64(usage.Peak * mebibyte)
}

// expectHalf holds each process to half of its limit.
func expectHalf(when string) {
	GinkgoHelper()
	for name, limit := range limits() {
		has := peak(name)
		AddReportEntry(fmt.Sprintf("%s: peak of %s", when, name), fmt.Sprintf("%d MiB, limit %d MiB", has/mebibyte, limit/mebibyte))
		Expect(has).To(BeNumerically("<=", limit/2), "%s: %s has had %d MiB", when, name, has/mebibyte)
	}
}
