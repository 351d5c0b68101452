// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestAudit(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Audit")
}

const (
	received = `{"stage":"RequestReceived","verb":"create","user":{"username":"ann"},"objectRef":{"resource":"machines"}}` + "\n"
	created  = `{"stage":"ResponseComplete","verb":"create","user":{"username":"ann"},"objectRef":{"resource":"machines","apiGroup":"machine.sapcloud.io","namespace":"default","name":"a"},"responseStatus":{"code":201}}` + "\n"
	conflict = `{"stage":"ResponseComplete","verb":"update","user":{"username":"ann"},"objectRef":{"resource":"machines","subresource":"status","name":"a"},"responseStatus":{"code":409}}` + "\n"
	leased   = `{"stage":"ResponseComplete","verb":"update","user":{"username":"ann"},"objectRef":{"resource":"leases","name":"l"},"responseStatus":{"code":200}}` + "\n"
	listed   = `{"stage":"ResponseComplete","verb":"list","user":{"username":"ann"},"objectRef":{"resource":"machines"},"responseStatus":{"code":200}}` + "\n"
)

var _ = Describe("A log", func() {
	var path string
	var log *Log
	write := func(text string) {
		GinkgoHelper()
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		Expect(err).NotTo(HaveOccurred())
		_, err = file.WriteString(text)
		Expect(err).NotTo(HaveOccurred())
		Expect(file.Close()).To(Succeed())
	}
	BeforeEach(func() {
		path = filepath.Join(GinkgoT().TempDir(), "audit.log")
		write("")
		var err error
		log, err = Open(path)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(log.Close)
	})

	It("tells what was written, and what of that was refused", func() {
		write(received + created + conflict + leased + listed)
		writes, err := log.Read(Request.Writes)
		Expect(err).NotTo(HaveOccurred())
		Expect(writes).To(Equal([]Request{
			{User: "ann", Verb: "create", Group: "machine.sapcloud.io", Resource: "machines", Namespace: "default", Name: "a", Code: 201},
			{User: "ann", Verb: "update", Resource: "machines", Subresource: "status", Name: "a", Code: 409},
		}))
		Expect(writes[0].Refused()).To(BeFalse())
		Expect(writes[1].Refused()).To(BeTrue())
	})

	It("goes on where it was, also in the middle of a line", func() {
		write(created + conflict[:20])
		Expect(log.Read(Request.Writes)).To(HaveLen(1))
		Expect(log.Read(Request.Writes)).To(BeEmpty())
		write(conflict[20:])
		Expect(log.Read(Request.Writes)).To(HaveLen(1))
	})

	It("says so when it cannot be read", func() {
		write("no JSON\n")
		_, err := log.Read(Request.Writes)
		Expect(err).To(MatchError(ContainSubstring("read audit log")))
	})
})
