// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// creator, updater and patcher are parts of every typed client.
type creator[T any] interface {
	Create(ctx context.Context, object *T, o metav1.CreateOptions) (*T, error)
}

type updater[T any] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*T, error)
	Update(ctx context.Context, object *T, o metav1.UpdateOptions) (*T, error)
}

type patcher[T any] interface {
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, o metav1.PatchOptions, subresources ...string) (*T, error)
}

// Create creates an object.
func Create[T any](client creator[T], object *T) *T {
	ginkgo.GinkgoHelper()
	created, err := client.Create(context.Background(), object, metav1.CreateOptions{})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return created
}

// CreateWithStatus creates an object and then writes its status, even if others have written it
// meanwhile.
func CreateWithStatus[T any](client interface {
	creator[T]
	patcher[T]
}, object *T) {
	ginkgo.GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	Create(client, object)
	status, err := json.Marshal(map[string]any{"status": content["status"]})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = client.Patch(context.Background(), any(object).(metav1.Object).GetName(), types.MergePatchType, status, metav1.PatchOptions{}, "status")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
}

// Patch applies a merge patch to an object.
func Patch[T any](client patcher[T], name, format string, args ...any) {
	ginkgo.GinkgoHelper()
	_, err := client.Patch(context.Background(), name, types.MergePatchType, fmt.Appendf(nil, format, args...), metav1.PatchOptions{})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
}

// Change reads an object, changes it and writes it as a whole, again if others write meanwhile.
func Change[T any](client updater[T], name string, change func(*T)) {
	ginkgo.GinkgoHelper()
	gomega.Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object, err := client.Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(object)
		_, err = client.Update(context.Background(), object, metav1.UpdateOptions{})
		return err
	})).To(gomega.Succeed())
}

// Delete deletes an object.
func Delete(client interface {
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}, name string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(client.Delete(context.Background(), name, metav1.DeleteOptions{})).To(gomega.Succeed())
}
