// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"errors"
	"fmt"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	mcmstatus "github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

// codeSeen is the code that MCM reads out of an error.
func codeSeen(err error) codes.Code {
	GinkgoHelper()
	status, ok := mcmstatus.FromError(err)
	Expect(ok).To(BeTrue(), "MCM cannot decode: %v", err)
	return status.Code()
}

var _ = Describe("Errors", func() {
	It("can be decoded by MCM whatever their message holds", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			code := codes.Code(rapid.Uint32Range(1, uint32(codes.Uninitialized)).Draw(t, "code"))
			message := rapid.OneOf(rapid.String(), rapid.StringMatching(`[\[\]a-z: ]*`)).Draw(t, "message")
			status, ok := mcmstatus.FromError(refuse(code, "%s", message))
			if !ok || status.Code() != code {
				t.Fatalf("%q with code %s was read as %v (%v)", message, code, status.Code(), ok)
			}
		})
	})

	nodes := schema.GroupResource{Resource: "nodes"}
	DescribeTable("of the API server become codes", func(cause error, code codes.Code) {
		Expect(codeSeen(refuseFor("write", fmt.Errorf("wrapped: %w", cause)))).To(Equal(code))
	},
		Entry("too late", context.DeadlineExceeded, codes.DeadlineExceeded),
		Entry("timed out", apierrors.NewTimeoutError("slow", 1), codes.DeadlineExceeded),
		Entry("invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, "a", nil), codes.InvalidArgument),
		Entry("forbidden", apierrors.NewForbidden(nodes, "a", errors.New("no")), codes.PermissionDenied),
		Entry("unauthorized", apierrors.NewUnauthorized("who"), codes.Unauthenticated),
		Entry("changed meanwhile", apierrors.NewConflict(nodes, "a", errors.New("changed")), codes.Aborted),
		Entry("broken", apierrors.NewInternalError(errors.New("etcd")), codes.Unavailable),
		Entry("out of reach", errors.New("connection refused"), codes.Unavailable),
	)
})
