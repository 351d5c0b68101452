// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	builders "github.com/evenkeel/evenkeel/test/builders/nodegroup"
)

// suite is what synctest wants to know; specs run while TestNodeGroup does.
var suite *testing.T

func TestNodeGroup(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Node groups")
}

const ns = builders.Namespace

func code(err error) codes.Code { return status.Code(err) }
