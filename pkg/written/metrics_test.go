// SPDX-License-Identifier: Apache-2.0

package written_test

import (
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/evenkeel/evenkeel/pkg/written"
)

var _ = DescribeTable("A write ends as", func(err error, end string) {
	Expect(written.ResultLabel(err)).To(Equal(end))
},
	Entry("done", nil, "done"),
	Entry("a conflict, also where the error says more", fmt.Errorf("scale a: %w", apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("old"))), "conflict"),
	Entry("an error that the server answers", apierrors.NewNotFound(schema.GroupResource{}, "a"), "error"),
	Entry("an error of the way to it", errors.New("no route"), "error"),
)
