// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
)

// page is the error page of a proxy, as client-go hands it over.
func page(code int) error {
	return apierrors.NewGenericServerResponse(code, "put", schema.GroupResource{Resource: "deployments"}, "a", "<html>", 0, true)
}

var _ = DescribeTable("A target is left alone", func(err error, alone bool) {
	Expect(Refused(err)).To(Equal(alone))
},
	Entry("where its write is forbidden", apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("no")), true),
	Entry("where a policy rejects it", apierrors.NewInvalid(schema.GroupKind{}, "a", nil), true),
	Entry("not where a proxy forbids it", page(403), false),
	Entry("not where a proxy finds fault with it", page(400), false),
	Entry("not where it is gone", apierrors.NewNotFound(schema.GroupResource{}, "a"), false),
	Entry("not where it has changed", apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("changed")), false),
	Entry("not where credentials are missing for now", apierrors.NewUnauthorized("who"), false),
	Entry("not where there are too many requests", apierrors.NewTooManyRequests("later", 1), false),
	Entry("not where the server took too long", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 408}}, false),
	Entry("not where the storage failed", apierrors.NewInternalError(errors.New("no")), false),
	Entry("not where no answer came", errors.New("EOF"), false),
)
