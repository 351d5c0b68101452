// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// etcdOnly is the smallest cluster, for specs about processes.
var etcdOnly = []string{Etcd}

// beChild prints the processes that it started, and never returns.
func beChild(name string) {
	c, err := Start(context.Background(), Options{Name: name, Components: etcdOnly, UnsafeNoFsync: true})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if _, err := c.Run("extra", "/bin/sleep", "1000"); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, p := range c.Processes() {
		fmt.Print(p.PID(), " ")
	}
	fmt.Println()
	select {}
}

func expectNothingLeft(o Options, ports map[string]int) {
	GinkgoHelper()
	o, err := o.withDefaults()
	Expect(err).NotTo(HaveOccurred())
	Eventually(processesOf).WithArguments(o.clusterDir()).WithTimeout(long).Should(BeEmpty())
	Expect(o.clusterDir() + ".lock").NotTo(BeAnExistingFile())
	for listener, port := range ports {
		Expect(isFree(port)).To(BeTrue(), listener)
	}
}

var _ = Describe("the life of an attached cluster", func() {
	It("ends with Stop, which leaves nothing but the data", func(ctx SpecContext) {
		c := startCluster(ctx, Options{Components: APIServerOnly})
		Expect(processesOf(c.Dir())).To(HaveLen(2))
		Expect(isFree(c.portOf(APIServer))).To(BeFalse())
		Expect(c.Stop()).To(Succeed())
		expectNothingLeft(c.options, c.state.Ports)
		Expect(filepath.Join(c.Dir(), "etcd")).To(BeADirectory())
		Expect(c.Reset()).To(Succeed())
		Expect(c.Dir()).NotTo(BeADirectory())
	})

	It("leaves its audit log where it is told to, for good", func(ctx SpecContext) {
		c := startCluster(ctx, Options{Components: APIServerOnly, Audit: true})
		folder := GinkgoT().TempDir()
		Expect(c.KeepAudit(folder)).To(Succeed())
		Expect(c.Reset()).To(Succeed())
		logs, err := filepath.Glob(filepath.Join(folder, "*-audit.log"))
		Expect(err).NotTo(HaveOccurred())
		Expect(logs).To(HaveLen(1))
		Expect(os.ReadFile(logs[0])).To(ContainSubstring(`"kind":"Event"`))
	})

	It("ends with its starter, though that is killed with -9", func(ctx SpecContext) {
		name := uniqueName()
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childEnv+"="+name)
		output, err := child.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(child.Start()).To(Succeed())
		line, err := bufio.NewReader(output).ReadString('\n')
		Expect(err).NotTo(HaveOccurred())
		running := map[int]string{}
		for _, field := range strings.Fields(line) {
			pid, err := strconv.Atoi(field)
			Expect(err).NotTo(HaveOccurred(), line)
			running[pid] = identify(pid)
		}
		Expect(running).To(HaveLen(2))
		o, err := Options{Name: name}.withDefaults()
		Expect(err).NotTo(HaveOccurred())
		s, err := loadState(o.clusterDir())
		Expect(err).NotTo(HaveOccurred())

		Expect(child.Process.Kill()).To(Succeed())
		_ = child.Wait()
		// Only identify tells: a process that ends loses its command line before it gives its ports back.
		for pid, identity := range running {
			Expect(identity).NotTo(BeEmpty())
			Eventually(identify).WithArguments(pid).WithTimeout(long).ShouldNot(Equal(identity))
		}
		Expect(processesOf(o.clusterDir())).To(BeEmpty())
		Expect(isFree(s.Ports[etcdClientPort])).To(BeTrue())
		again := startCluster(ctx, Options{Name: name, Components: etcdOnly})
		Expect(again.Process(Etcd).Running()).To(BeTrue())
	})

	It("is its starter's alone", func(ctx SpecContext) {
		c := startCluster(ctx, Options{Components: etcdOnly})
		_, err := Start(ctx, Options{Name: c.options.Name, Components: etcdOnly})
		Expect(err).To(MatchError(errLocked))
		Expect(c.Process(Etcd).Running()).To(BeTrue())
	})

	It("goes on with its data, on other ports if the old ones are taken, unless it is to start afresh", func(ctx SpecContext) {
		o := Options{Name: uniqueName(), Components: APIServerOnly}
		c := startCluster(ctx, o)
		_, err := clientOf(c).CoreV1().ConfigMaps("default").Create(ctx, configMap("kept"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		old := map[string]int{APIServer: c.portOf(APIServer), etcdClientPort: c.portOf(etcdClientPort), etcdPeerPort: c.portOf(etcdPeerPort)}
		Expect(c.Stop()).To(Succeed())
		for _, port := range old {
			listener, err := net.Listen("tcp", loopback(port))
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(listener.Close)
		}
		c = startCluster(ctx, o)
		for listener, port := range old {
			Expect(c.portOf(listener)).NotTo(Equal(port), listener)
		}
		_, err = clientOf(c).CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Stop()).To(Succeed())

		o.Fresh = true
		c = startCluster(ctx, o)
		_, err = clientOf(c).CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{})
		Expect(err).To(Satisfy(apierrors.IsNotFound))
	})

	It("fails with the end of the log if a component does not come up, and leaves nothing", func(ctx SpecContext) {
		o := Options{Name: uniqueName(), Components: APIServerOnly, ExtraArgs: map[string][]string{APIServer: {"--no-such-flag"}}}
		_, err := Start(ctx, o)
		DeferCleanup(forget, o)
		Expect(err).To(MatchError(And(
			ContainSubstring("kube-apiserver ended"), ContainSubstring("kube-apiserver.log"), ContainSubstring("unknown flag: --no-such-flag"))))
		expectNothingLeft(o, nil)
	})

	It("leaves nothing if its start is interrupted", func(ctx SpecContext) {
		o := Options{Name: uniqueName(), Components: APIServerOnly}
		DeferCleanup(forget, o)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := Start(short, o)
		Expect(err).To(MatchError(context.DeadlineExceeded))
		expectNothingLeft(o, nil)
	})
})

// forget removes what a cluster left that did not start.
func forget(o Options) {
	o, err := o.withDefaults()
	Expect(err).NotTo(HaveOccurred())
	Expect(os.RemoveAll(o.clusterDir())).To(Succeed())
}

var _ = Describe("a detached cluster", Ordered, func() {
	var (
		o       Options
		cluster *Cluster
	)
	BeforeAll(func(ctx SpecContext) {
		o = Options{Name: uniqueName(), Components: APIServerOnly, Detached: true}
		cluster = startCluster(ctx, o)
	})
	pids := func(c *Cluster) (all []int) {
		for _, p := range c.Processes() {
			all = append(all, p.PID())
		}
		return all
	}

	It("is joined by a second start", func(ctx SpecContext) {
		kubeconfig, err := os.ReadFile(cluster.Kubeconfig())
		Expect(err).NotTo(HaveOccurred())
		again, err := Start(ctx, o)
		Expect(err).NotTo(HaveOccurred())
		Expect(pids(again)).To(Equal(pids(cluster)))
		Expect(os.ReadFile(again.Kubeconfig())).To(Equal(kubeconfig))
	})

	It("is not for an attached start", func(ctx SpecContext) {
		_, err := Start(ctx, Options{Name: o.Name, Components: APIServerOnly})
		Expect(err).To(MatchError(ContainSubstring("detached")))
		Expect(cluster.Process(Etcd).Running()).To(BeTrue())
	})

	It("can be opened, worked on and looked at by anybody", func(ctx SpecContext) {
		other, err := Open(o)
		Expect(err).NotTo(HaveOccurred())
		Expect(pids(other)).To(Equal(pids(cluster)))
		_, err = clientOf(other).Discovery().ServerVersion()
		Expect(err).NotTo(HaveOccurred())
		Expect(other.Process(Etcd).Restart()).To(Succeed())
		Expect(other.Process(Etcd).WaitReady(ctx)).To(Succeed())
		cluster, err = Open(o)
		Expect(err).NotTo(HaveOccurred())
		Expect(pids(cluster)).To(Equal(pids(other)))
	})

	It("gets back what died, and only that, by a start", func(ctx SpecContext) {
		etcd := cluster.Process(Etcd).PID()
		Expect(cluster.Process(APIServer).Kill()).To(Succeed())
		_, err := Open(o)
		Expect(err).To(MatchError(errNotRunning))
		cluster, err = Start(ctx, o)
		Expect(err).NotTo(HaveOccurred())
		Expect(cluster.Process(Etcd).PID()).To(Equal(etcd))
		Expect(cluster.Running()).To(BeTrue())
	})

	It("runs further programs, replaces changed ones, and remembers their ports", func(ctx SpecContext) {
		port, err := cluster.Port("sleeper")
		Expect(err).NotTo(HaveOccurred())
		first, err := cluster.Run("sleeper", "/bin/sleep", "1000")
		Expect(err).NotTo(HaveOccurred())
		pid := first.PID()
		other, err := Open(o)
		Expect(err).NotTo(HaveOccurred())
		same, err := other.Run("sleeper", "/bin/sleep", "1000")
		Expect(err).NotTo(HaveOccurred())
		Expect(same.PID()).To(Equal(pid))
		Expect(other.Port("sleeper")).To(Equal(port))
		changed, err := other.Run("sleeper", "/bin/sleep", "2000")
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.PID()).NotTo(BeElementOf(0, pid))
		Expect(first.Running()).To(BeFalse())
		_, err = other.Run(Etcd, "/bin/sleep", "1")
		Expect(err).To(HaveOccurred())
	})

	It("is stopped by anybody, without a trace of its programs", func(ctx SpecContext) {
		other, err := Load(o)
		Expect(err).NotTo(HaveOccurred())
		all := pids(other)
		Expect(all).To(HaveLen(3))
		Expect(other.Stop()).To(Succeed())
		for _, pid := range all {
			Expect(identify(pid)).To(BeEmpty())
		}
		expectNothingLeft(o, other.state.Ports)
		_, err = Load(Options{Name: uniqueName()})
		Expect(err).To(MatchError(os.ErrNotExist))
	})
})

var _ = It("runs two clusters side by side", func(ctx SpecContext) {
	type result struct {
		cluster *Cluster
		err     error
	}
	results := make(chan result)
	for range 2 {
		go func() {
			c, err := Start(ctx, Options{Name: uniqueName(), Components: APIServerOnly, UnsafeNoFsync: true})
			results <- result{c, err}
		}()
	}
	var both []*Cluster
	for range 2 {
		r := <-results
		Expect(r.err).NotTo(HaveOccurred())
		both = append(both, r.cluster)
		DeferCleanup(func() { Expect(r.cluster.Reset()).To(Succeed()) })
	}
	_, err := clientOf(both[0]).CoreV1().ConfigMaps("default").Create(ctx, configMap("one"), metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	list, err := clientOf(both[1]).CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(list.Items).NotTo(ContainElement(HaveField("Name", "one")))
})
