// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

var _ = Describe("an API server alone", Ordered, func() {
	var (
		cluster *Cluster
		admin   kubernetes.Interface
	)
	BeforeAll(func(ctx SpecContext) {
		cluster = startCluster(ctx, Options{Components: APIServerOnly, Audit: true})
		admin = clientOf(cluster)
	})

	put := func(ctx context.Context, name string) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := admin.CoreV1().ConfigMaps("default").Create(ctx, object, metav1.CreateOptions{})
		return err
	}
	has := func(ctx context.Context, name string) error {
		_, err := admin.CoreV1().ConfigMaps("default").Get(ctx, name, metav1.GetOptions{})
		return err
	}

	It("says its version, and so does kubectl", func(ctx SpecContext) {
		version, err := admin.Discovery().ServerVersion()
		Expect(err).NotTo(HaveOccurred())
		Expect(version.GitVersion).To(MatchRegexp(`^v1\.\d+\.\d+$`))
		output, err := exec.CommandContext(ctx, cluster.Kubectl(), "--kubeconfig", cluster.Kubeconfig(), "version").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(output))
		Expect(string(output)).To(And(
			ContainSubstring("Client Version: "+version.GitVersion), ContainSubstring("Server Version: "+version.GitVersion)))
	})

	It("has after a restore what it had at the backup, and its versions go back", func(ctx SpecContext) {
		version := func() string {
			GinkgoHelper()
			list, err := admin.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			return list.ResourceVersion
		}
		backup := filepath.Join(GinkgoT().TempDir(), "etcd")
		Expect(put(ctx, "before")).To(Succeed())
		Expect(cluster.Backup(ctx, backup)).To(Succeed())
		for i := range 300 { // more than an API server writes by itself
			Expect(put(ctx, fmt.Sprint("after-", i))).To(Succeed())
		}
		newest := version()
		Expect(cluster.Restore(ctx, backup)).To(Succeed())
		Expect(has(ctx, "before")).To(Succeed())
		Expect(has(ctx, "after-0")).To(MatchError(apierrors.IsNotFound, "not found"))
		Expect(resourceversion.CompareResourceVersion(version(), newest)).To(Equal(-1))
	})

	It("refuses whom no role allows, and allows whom one does", func(ctx SpecContext) {
		stranger, reader := clientAs(cluster, "mallory"), clientAs(cluster, "alice", "readers")
		list := func(client kubernetes.Interface) error {
			_, err := client.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{})
			return err
		}
		Expect(list(admin)).To(Succeed())
		Expect(list(stranger)).To(MatchError(apierrors.IsForbidden, "forbidden"))
		Expect(list(reader)).To(MatchError(apierrors.IsForbidden, "forbidden"))
		_, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "readers"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "readers"}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(list).WithArguments(reader).WithTimeout(long).Should(Succeed())
		Expect(list(stranger)).To(MatchError(apierrors.IsForbidden, "forbidden"))
	})

	It("gives out kubeconfigs of service accounts, which may what the account may", func(ctx SpecContext) {
		_, err := cluster.AccountKubeconfig(ctx, "default", "nobody")
		Expect(err).To(MatchError(apierrors.IsNotFound, "not found"))
		_, err = admin.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		path, err := cluster.AccountKubeconfig(ctx, "default", "worker")
		Expect(err).NotTo(HaveOccurred())
		config, err := clientcmd.BuildConfigFromFlags("", path)
		Expect(err).NotTo(HaveOccurred())
		worker := kubernetes.NewForConfigOrDie(config)
		self, err := worker.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(self.Status.UserInfo.Username).To(Equal("system:serviceaccount:default:worker"))
		_, err = worker.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
		Expect(err).To(MatchError(apierrors.IsForbidden, "forbidden"))
	})

	It("lets none of its users talk to etcd", func(ctx SpecContext) {
		cert, key, err := cluster.keys.cluster.issueKeyPair("admin", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		pair := newKeyPair(GinkgoT().TempDir(), "admin")
		Expect(pair.writeFiles(cert, key)).To(Succeed())
		url := cluster.baseURL(etcdClientPort) + "/readyz"
		Expect(getURL(ctx, url, cluster.keys.etcd, &cluster.keys.etcdClient)).To(Succeed())
		Expect(getURL(ctx, url, cluster.keys.etcd, &pair)).To(MatchError(ContainSubstring("tls")))
	})

	It("takes pods, though no controller creates service accounts", func(ctx SpecContext) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "pod"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		_, err := admin.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	})

	It("writes an audit log", func(ctx SpecContext) {
		Expect(put(ctx, "audited")).To(Succeed())
		text, err := os.ReadFile(cluster.AuditLog())
		Expect(err).NotTo(HaveOccurred())
		var names []string
		for line := range bytes.Lines(text) {
			event := struct {
				Verb      string
				User      struct{ Username string }
				ObjectRef struct{ Resource, Name string }
			}{}
			Expect(json.Unmarshal(line, &event)).To(Succeed(), string(line))
			if event.Verb == "create" && event.User.Username == "admin" && event.ObjectRef.Resource == "configmaps" {
				names = append(names, event.ObjectRef.Name)
			}
		}
		Expect(names).To(ContainElement("audited"))
	})

	DescribeTable("keeps its data through the end of", func(ctx SpecContext, component string, end func(*Process) error) {
		name := uniqueName()
		Expect(put(ctx, name)).To(Succeed())
		process := cluster.Process(component)
		before := process.PID()
		begin := time.Now()
		Expect(end(process)).To(Succeed())
		Expect(time.Since(begin)).To(BeNumerically("<", stopGrace), "it was killed, not stopped")
		Expect(process.Start()).To(Succeed())
		Expect(process.PID()).NotTo(BeElementOf(0, before))
		within, cancel := context.WithTimeout(ctx, long)
		defer cancel()
		Expect(process.WaitReady(within)).To(Succeed())
		Eventually(has).WithContext(ctx).WithArguments(name).WithTimeout(long).Should(Succeed())
	},
		Entry("etcd, killed", Etcd, (*Process).Kill),
		Entry("etcd, stopped", Etcd, (*Process).Stop),
		Entry("etcd, paused and stopped", Etcd, func(p *Process) error {
			if err := p.Pause(); err != nil {
				return err
			}
			return p.Stop()
		}),
		Entry("the API server, killed", APIServer, (*Process).Kill),
		Entry("the API server, stopped", APIServer, (*Process).Stop),
		Entry("the API server, restarted", APIServer, (*Process).Restart),
	)

	DescribeTable("does not answer while it is paused, and goes on after", func(ctx SpecContext, component string) {
		process := cluster.Process(component)
		pid := process.PID()
		Expect(process.Pause()).To(Succeed())
		DeferCleanup(process.Resume)
		Expect(process.Running()).To(BeTrue())
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		Expect(put(short, uniqueName())).To(HaveOccurred())
		Expect(process.Resume()).To(Succeed())
		Eventually(put).WithContext(ctx).WithArguments(uniqueName()).WithTimeout(long).Should(Succeed())
		Expect(process.PID()).To(Equal(pid))
	},
		Entry("etcd", Etcd),
		Entry("the API server", APIServer),
	)

	It("applies manifests and waits until their kinds are there", func(ctx SpecContext) {
		folder := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(folder, "1-kind.yaml"), []byte(widgetKind), 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(folder, "2-object.yaml"), []byte(widget), 0o600)).To(Succeed())
		for range 2 {
			Expect(cluster.Apply(ctx, folder)).To(Succeed())
		}
		output, err := exec.CommandContext(ctx, cluster.Kubectl(), "--kubeconfig", cluster.Kubeconfig(), "get", "widgets", "-o", "name").CombinedOutput()
		Expect(err).NotTo(HaveOccurred())
		Expect(string(output)).To(Equal("widget.example.org/one\n"))
		Expect(cluster.Apply(ctx, "no/such/file.yaml")).To(MatchError(os.ErrNotExist))
	})
})

const widgetKind = `
# A comment makes no object.
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

const widget = `
apiVersion: example.org/v1
kind: Widget
metadata: {name: one}
`
