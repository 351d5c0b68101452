// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func must[T any](value T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return value
}

var _ = Describe("the binaries", func() {
	It("are not built again while nothing changed", func(ctx SpecContext) {
		var out strings.Builder
		Expect(Build(ctx, "", &out)).To(Succeed())
		Expect(out.String()).To(BeEmpty())
	})

	It("are named after their sources, but not after their tests", func() {
		root := GinkgoT().TempDir()
		p := program{binary: "p", folder: "src", what: "p"}
		_, err := p.sourceHash(root)
		Expect(err).To(MatchError(os.ErrNotExist))
		write := func(name, text string) string {
			GinkgoHelper()
			Expect(os.MkdirAll(filepath.Join(root, "src"), 0o755)).To(Succeed())
			Expect(os.WriteFile(filepath.Join(root, "src", name), []byte(text), 0o600)).To(Succeed())
			hash, err := p.sourceHash(root)
			Expect(err).NotTo(HaveOccurred())
			return hash
		}
		first := write("main.go", "package main")
		Expect(write("main_test.go", "package main")).To(Equal(first))
		second := write("main.go", "package  main")
		Expect(second).NotTo(Equal(first))
		Expect(write("go.sum", "x")).NotTo(Equal(second))
		Expect(p.isBuilt(root, first)).To(BeFalse())
	})

	It("are those of a version of Kubernetes that there is a file for", func(ctx SpecContext) {
		root, err := FindRoot()
		Expect(err).NotTo(HaveOccurred())
		Expect(version(root, "1.33")).To(Equal("1.33"))
		own, err := program{folder: controlPlane, version: kubernetesModule}.linkFlags(ctx, root)
		Expect(err).NotTo(HaveOccurred())
		minor := regexp.MustCompile(`gitVersion=v(1\.\d+)`).FindStringSubmatch(own)[1]
		Expect(version(root, minor)).To(BeEmpty(), "that of go.mod")
		_, err = version(root, "1.2")
		Expect(err).To(MatchError(And(HavePrefix(`no Kubernetes "1.2": want one of 1.33, `), ContainSubstring(minor))))
		older := ofVersion(programs, "1.33")
		Expect(older[0].binary).To(Equal("kubernetes-1.33/evenkeel-localcluster"))
		Expect(older[0].linkFlags(ctx, root)).To(ContainSubstring("gitVersion=v1.33."))
		Expect(older[1:]).To(Equal(programs[1:]))
		Expect(older[0].sourceHash(root)).NotTo(Equal(must(programs[0].sourceHash(root))))
	})

	It("of another version do not run on the data of a cluster", func(ctx SpecContext) {
		o := Options{Name: "versions", Kubernetes: "1.33", Detached: true, Root: GinkgoT().TempDir()}
		c := &Cluster{options: o}
		Expect(c.prepare()).To(Succeed())
		Expect(c.saveState()).To(Succeed())
		o.Kubernetes = ""
		Expect((&Cluster{options: o}).prepare()).To(MatchError("it is a cluster of Kubernetes 1.33, not of the default version: reset it, or choose another name"))
		o.Fresh = true
		c = &Cluster{options: o}
		Expect(c.prepare()).To(Succeed())
		Expect(c.removeOldState()).To(Succeed())
		Expect(c.Kubectl()).NotTo(ContainSubstring("1.33"))
	})

	DescribeTable("answer to their name or to their first argument", func(ctx SpecContext, output string, args ...string) {
		root, err := FindRoot()
		Expect(err).NotTo(HaveOccurred())
		cmd := &exec.Cmd{Path: filepath.Join(binDir(root), controlPlaneBinary), Args: args}
		text, _ := cmd.CombinedOutput()
		Expect(string(text)).To(ContainSubstring(output))
	},
		Entry(nil, "etcd Version", "etcd", "--version"),
		Entry(nil, "etcd Version", "evenkeel-localcluster", "etcd", "--version"),
		Entry(nil, "Kubernetes v1.", "/somewhere/kube-scheduler", "--version"),
		Entry(nil, "usage: evenkeel-localcluster etcd|kube-apiserver|", "evenkeel-localcluster", "--version", "etcd"),
	)
})

var _ = Describe("a lock", func() {
	var path string
	BeforeEach(func() { path = filepath.Join(GinkgoT().TempDir(), "sub", "lock") })

	It("has one holder, and its file goes with it", func() {
		lock, err := tryLock(path)
		Expect(err).NotTo(HaveOccurred())
		_, err = tryLock(path)
		Expect(err).To(MatchError(errLocked))
		lock.release()
		Expect(path).NotTo(BeAnExistingFile())
		lock, err = tryLock(path)
		Expect(err).NotTo(HaveOccurred())
		lock.release()
	})

	It("is waited for, and said so once", func(ctx SpecContext) {
		lock, err := tryLock(path)
		Expect(err).NotTo(HaveOccurred())
		waits := 0
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		_, err = waitLock(short, path, func() { waits++ })
		Expect(err).To(MatchError(context.DeadlineExceeded))
		Expect(waits).To(Equal(1))
		time.AfterFunc(100*time.Millisecond, lock.release)
		lock, err = waitLock(ctx, path, func() {})
		Expect(err).NotTo(HaveOccurred())
		lock.release()
	})

	It("is not held by who locked a file that is not there any more", func() {
		lock, err := tryLock(path)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(lock.release)
		Expect(os.Remove(path)).To(Succeed())
		Expect(isSameFile(lock.file, path)).To(BeFalse())
		Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
		Expect(isSameFile(lock.file, path)).To(BeFalse())
	})
})

var _ = Describe("ports", func() {
	It("are kept while they are free, and never shared with another cluster", func() {
		root := GinkgoT().TempDir()
		one, two := Options{Root: root, Name: "one"}, Options{Root: root, Name: "two"}
		Expect(os.MkdirAll(one.clusterDir(), 0o755)).To(Succeed())
		Expect(os.MkdirAll(two.clusterDir(), 0o755)).To(Succeed())
		s := &state{}
		Expect(choosePorts(one, s, "a", "b")).To(Succeed())
		a, b := s.Ports["a"], s.Ports["b"]
		Expect(a).To(And(BeNumerically(">=", firstPort), BeNumerically("<", lastPort), Not(Equal(b))))
		Expect(choosePorts(one, s, "a", "b")).To(Succeed())
		Expect(s.Ports).To(Equal(map[string]int{"a": a, "b": b}))

		other := &state{Ports: map[string]int{"a": a}}
		Expect(choosePorts(two, other, "a")).To(Succeed())
		Expect(other.Ports["a"]).NotTo(BeElementOf(a, b))

		listener, err := net.Listen("tcp", loopback(b))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(listener.Close)
		Expect(choosePorts(one, s, "b")).To(Succeed())
		Expect(s.Ports["a"]).To(Equal(a))
		Expect(s.Ports["b"]).NotTo(BeElementOf(a, b))
	})
})

var _ = Describe("a process", func() {
	It("is not taken for another one that has its number", func() {
		p := &Process{record: record{PID: os.Getpid(), Identity: identify(os.Getpid())}}
		Expect(p.Running()).To(BeTrue())
		p.record.Identity += "0"
		Expect(p.Running()).To(BeFalse())
		Expect(p.signal(0)).To(MatchError(errNotRunning))
		Expect(identify(0)).To(BeEmpty())
		Expect(identify(-1)).To(BeEmpty())
	})

	It("that ended but was not waited for does not run", func() {
		child := exec.Command("/bin/sleep", "1000")
		Expect(child.Start()).To(Succeed())
		Expect(identify(child.Process.Pid)).NotTo(BeEmpty())
		Expect(child.Process.Kill()).To(Succeed())
		Eventually(identify).WithArguments(child.Process.Pid).WithTimeout(long).Should(BeEmpty())
		Expect(child.Wait()).To(HaveOccurred())
	})
})

var _ = It("shows the last lines of a log, however long it is", func() {
	path := filepath.Join(GinkgoT().TempDir(), "log")
	Expect(logTail(path)).To(ContainSubstring("no such file"))
	Expect(os.WriteFile(path, []byte(strings.Repeat("old\n", 100_000)+strings.Repeat("new\n", tailLines)), 0o600)).To(Succeed())
	Expect(strings.Fields(logTail(path))).To(And(HaveLen(tailLines), HaveEach("new")))
})

var _ = DescribeTable("refuses options that make no cluster", func(o Options, message string) {
	_, err := o.withDefaults()
	Expect(err).To(MatchError(ContainSubstring(message)))
},
	Entry("a name that leads elsewhere", Options{Name: "../x"}, "DNS label"),
	Entry("a name that is too long", Options{Name: strings.Repeat("x", 64)}, "DNS label"),
	Entry("an unknown component", Options{Components: []string{"kubelet"}}, "want some of etcd"),
)

var _ = It("reads its keys again, and no others", func() {
	dir := GinkgoT().TempDir()
	first, err := loadKeys(dir)
	Expect(err).NotTo(HaveOccurred())
	second, err := loadKeys(dir)
	Expect(err).NotTo(HaveOccurred())
	Expect(second.cluster.cert.Equal(first.cluster.cert)).To(BeTrue())
	Expect(second.cluster.cert.Equal(second.etcd.cert)).To(BeFalse())
	Expect(os.WriteFile(first.etcd.files.certFile, []byte("garbage"), 0o600)).To(Succeed())
	_, err = loadKeys(dir)
	Expect(err).To(MatchError(ContainSubstring("etcd.crt")))
	Expect(errors.Is(err, os.ErrNotExist)).To(BeFalse())
})
