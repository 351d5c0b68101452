// SPDX-License-Identifier: Apache-2.0

package real

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

var nothing = fields.Everything()

// follow calls added for each object that appears, until the spec ends.
func follow(ctx context.Context, w cache.ListerWatcher, object runtime.Object, added func(any)) {
	GinkgoHelper()
	informer := cache.NewSharedInformer(w, object, 0)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: added})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(cancel)
	go informer.RunWithContext(ctx)
	Eventually(informer.HasSynced).Should(BeTrue())
}

// processes are those in the cgroups of a cluster's machines, or of one of them.
func processes(path string) []int {
	GinkgoHelper()
	var pids []int
	for _, root := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} {
		_ = filepath.WalkDir(filepath.Join(root, path), func(file string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Base(file) != "cgroup.procs" {
				return nil
			}
			text, _ := os.ReadFile(file)
			for _, line := range strings.Fields(string(text)) {
				pid, err := strconv.Atoi(line)
				Expect(err).NotTo(HaveOccurred())
				pids = append(pids, pid)
			}
			return nil
		})
	}
	return pids
}

// cgroupsOf are the folders of a cluster's cgroups.
func cgroupsOf(c *localcluster.Cluster) []string {
	GinkgoHelper()
	found, err := filepath.Glob("/sys/fs/cgroup/*/" + c.Cgroup())
	Expect(err).NotTo(HaveOccurred())
	return found
}

// killService kills a program in a machine.
func killService(machine, program string) {
	GinkgoHelper()
	for _, pid := range processes(filepath.Join(cluster.Cgroup(), machine)) {
		if line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); bytes.HasPrefix(line, []byte("/run/programs/"+program+"\x00")) {
			Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
			return
		}
	}
	Fail(program + " does not run in " + machine)
}

// resident is how much memory processes have, in bytes.
func resident(pids []int) (sum int64) {
	GinkgoHelper()
	for _, pid := range pids {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
		if err != nil {
			continue // it has ended
		}
		pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
		Expect(err).NotTo(HaveOccurred())
		sum += pages * int64(os.Getpagesize())
	}
	return sum
}

func alive(pids []int) (running []int) {
	for _, pid := range pids {
		if syscall.Kill(pid, 0) == nil {
			running = append(running, pid)
		}
	}
	return running
}

var _ = Describe("Real machines", func() {
	It("fit into 4 GiB, ten of them", func(ctx context.Context) {
		p := newPool(ctx, "ten", 10, 0, small)
		p.rests(ctx, 10, 0)
		used := resident(processes(cluster.Cgroup()))
		AddReportEntry("memory of ten machines in MiB", used>>20)
		Expect(used).To(And(BeNumerically(">", 500<<20), BeNumerically("<", 4<<30)))
	})

	It("leave nothing behind, and their neighbours in peace, when what runs them is killed", func(ctx context.Context) {
		p := newPool(ctx, "killed", 2, 0, small)
		p.rests(ctx, 2, 0)
		p.work(ctx, 1, tiny)
		Eventually(p.running).WithContext(ctx).Should(HaveLen(1))
		mine := processes(cluster.Cgroup())
		Expect(len(mine)).To(BeNumerically(">", 8))

		neighbour := start(ctx, "real-e2e-other", "mcm")
		q := poolOf(neighbour, "neighbour")
		q.create(ctx, 1, 0, small)
		q.rests(ctx, 1, 0)
		others := processes(neighbour.Cgroup())

		Expect(cluster.Process(localcluster.Machines).Kill()).To(Succeed())
		Eventually(func() []int { return alive(mine) }).Should(BeEmpty())
		Eventually(func() []string { return cgroupsOf(cluster) }).Should(BeEmpty())
		mounts, err := os.ReadFile("/proc/self/mounts")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(mounts)).NotTo(ContainSubstring(cluster.Dir()))
		Expect(alive(others)).To(Equal(others))

		By("stopping the neighbour")
		Expect(neighbour.Process(localcluster.Machines).Stop()).To(Succeed())
		Expect(alive(others)).To(BeEmpty())
		Expect(cgroupsOf(neighbour)).To(BeEmpty())
		Expect(neighbour.Process(localcluster.Machines).Start()).To(Succeed())
		q.rests(ctx, 1, 0)

		By("booting the machines again, with their disks")
		Expect(cluster.Process(localcluster.Machines).Start()).To(Succeed())
		p.rests(ctx, 2, 0)
		Eventually(p.running).WithContext(ctx).Should(HaveLen(1))
	})
})
