// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certificates are valid longer than any cluster is kept.
const certificateLife = 10 * 365 * 24 * time.Hour

// authority signs certificates with a key in the folder dir.
type authority struct {
	dir   string
	name  string
	files keyPair
	cert  *x509.Certificate
	key   crypto.Signer
}

// loadAuthority creates the authority if it does not exist yet.
func loadAuthority(dir, name string) (*authority, error) {
	a := &authority{dir: dir, name: name, files: newKeyPair(dir, name)}
	cert, err := readPEM(a.files.certFile, x509.ParseCertificate)
	if errors.Is(err, os.ErrNotExist) {
		return a, a.create()
	}
	if err != nil {
		return nil, err
	}
	key, err := readPEM(a.files.keyFile, x509.ParsePKCS8PrivateKey)
	if err != nil {
		return nil, err
	}
	a.cert, a.key = cert, key.(crypto.Signer)
	return a, nil
}

func (a *authority) create() error {
	der, signer, err := a.signTemplate(&x509.Certificate{
		Subject:               pkix.Name{CommonName: "evenkeel-local-" + a.name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	})
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return fmt.Errorf("parse own certificate: %w", err)
	}
	a.key = signer
	key, err := encodeKey(signer)
	if err != nil {
		return err
	}
	return a.files.writeFiles(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key)
}

// issueKeyPair returns a certificate and its key in PEM format, for a server on this machine and
// for a client with this user and these groups.
func (a *authority) issueKeyPair(user string, groups ...string) (cert, key []byte, err error) {
	der, signer, err := a.signTemplate(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(kubernetesServiceIP)},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	})
	if err != nil {
		return nil, nil, err
	}
	key, err = encodeKey(signer)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key, err
}

// loadPair creates a certificate and its key beside the authority's own files, if they do not exist
// yet.
func (a *authority) loadPair(user string, groups ...string) (keyPair, error) {
	pair := newKeyPair(a.dir, a.name+"-"+user)
	if fileExists(pair.certFile) {
		return pair, nil
	}
	cert, key, err := a.issueKeyPair(user, groups...)
	if err != nil {
		return pair, err
	}
	return pair, pair.writeFiles(cert, key)
}

// keyPair names the files of a certificate, or of a public key, and of the private key.
type keyPair struct{ certFile, keyFile string }

func newKeyPair(dir, name string) keyPair {
	return keyPair{filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")}
}

// writeFiles writes the key first: if the certificate is on disk, the pair is complete.
func (p keyPair) writeFiles(cert, key []byte) error {
	if err := os.WriteFile(p.keyFile, key, 0o600); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	if err := os.WriteFile(p.certFile, cert, 0o644); err != nil {
		return fmt.Errorf("write certificate: %w", err)
	}
	return nil
}

// signTemplate gives the template a new key and the authority's signature, or its own signature if
// the authority is being created.
func (a *authority) signTemplate(template *x509.Certificate) ([]byte, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, fmt.Errorf("make serial number: %w", err)
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = template.NotBefore.Add(certificateLife)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	return cert, key, nil
}

// loadServiceAccountKeys creates the keys for service account tokens once.
func loadServiceAccountKeys(dir string) (keyPair, error) {
	pair := newKeyPair(dir, "service-accounts")
	if fileExists(pair.certFile) {
		return pair, nil
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair, fmt.Errorf("make key: %w", err)
	}
	key, err := encodeKey(signer)
	if err != nil {
		return pair, err
	}
	public, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return pair, fmt.Errorf("encode key: %w", err)
	}
	return pair, pair.writeFiles(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), key)
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func readPEM[T any](path string, parse func([]byte) (T, error)) (T, error) {
	var none T
	text, err := os.ReadFile(path)
	if err != nil {
		return none, fmt.Errorf("read key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return none, fmt.Errorf("read key %s: no PEM block", path)
	}
	value, err := parse(block.Bytes)
	if err != nil {
		return none, fmt.Errorf("read key %s: %w", path, err)
	}
	return value, nil
}
