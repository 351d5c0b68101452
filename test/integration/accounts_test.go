// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// alone is a client that may do what the chart lets one controller of the manager do in both clusters, and nothing that it
// lets the others.
func alone(ctx context.Context, controller string) *rest.Config {
	GinkgoHelper()
	Expect(cluster.Apply(ctx, "kubernetes/deploy/manager/access.yaml", "kubernetes/deploy/target/access.yaml")).To(Succeed())
	role, rbac := "evenkeel-"+controller, kubernetes.NewForConfigOrDie(cluster.Config()).RbacV1()
	meta := metav1.ObjectMeta{Name: "alone-" + controller}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: role}}
	_, err := rbac.RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role}}, metav1.CreateOptions{})
	Expect(err).To(Or(Not(HaveOccurred()), MatchError(errors.IsAlreadyExists, "already exists")))
	_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role + "-target"}}, metav1.CreateOptions{})
	Expect(err).To(Or(Not(HaveOccurred()), MatchError(errors.IsAlreadyExists, "already exists")))
	return as(role)
}
