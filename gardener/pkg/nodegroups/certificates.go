// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/utils/secrets"
	"k8s.io/utils/ptr"
)

// Keys of the Secrets.
const (
	CertificateKey = secrets.DataKeyCertificate
	PrivateKey     = secrets.DataKeyPrivateKey
	// AuthoritiesKey contains all authorities that a side trusts.
	AuthoritiesKey = secrets.DataKeyCertificateCA
	// CloudConfigKey contains what cluster-autoscaler reads with --cloud-config.
	CloudConfigKey = "cloud-config.yaml"

	authorityPrivateKey = secrets.DataKeyPrivateKeyCA
	oldKey, oldPrivate  = "old.crt", "old.key"
	// rotationKey contains the start of the rotation for which the authority was created.
	rotationKey = "rotation"
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
)

// Rotation is the state of the rotation of a Shoot's authorities.
type Rotation struct {
	// Begun is empty if there was no rotation yet.
	Begun string
	// Prepares reports whether old authorities are still to be trusted.
	Prepares bool
}

// RotationOf returns the rotation from the status of a Shoot.
func RotationOf(shoot *gardencorev1beta1.Shoot) Rotation {
	credentials := shoot.Status.Credentials
	r := Rotation{Prepares: slices.Contains([]gardencorev1beta1.CredentialsRotationPhase{
		gardencorev1beta1.RotationPreparing, gardencorev1beta1.RotationPreparingWithoutWorkersRollout,
		gardencorev1beta1.RotationWaitingForWorkersRollout, gardencorev1beta1.RotationPrepared,
	}, v1beta1helper.GetShootCARotationPhase(credentials))}
	if credentials != nil && credentials.Rotation != nil && credentials.Rotation.CertificateAuthorities != nil {
		if begun := credentials.Rotation.CertificateAuthorities.LastInitiationTime; begun != nil {
			r.Begun = begun.UTC().Format(time.RFC3339)
		}
	}
	return r
}

// Certificates are the data of the three Secrets.
type Certificates struct {
	Authority, Server, Client map[string][]byte
}

// Next returns what the Secrets of a namespace are to contain.
func (c Certificates) Next(namespace string, r Rotation, now time.Time) (Certificates, error) {
	next, err := nextAuthority(c.Authority, r, now)
	if err != nil {
		return Certificates{}, err
	}
	made := Certificates{Authority: next}
	current := pair{next[AuthoritiesKey], next[authorityPrivateKey]}
	older := current
	trusted := next[AuthoritiesKey]
	if len(next[oldKey]) > 0 {
		older = pair{next[oldKey], next[oldPrivate]}
		trusted = slices.Concat(trusted, next[oldKey])
	}
	if made.Server, err = nextCertificate(c.Server, older, secrets.ServerCert, hosts(namespace), now); err != nil {
		return Certificates{}, err
	}
	if made.Client, err = nextCertificate(c.Client, current, secrets.ClientCert, nil, now); err != nil {
		return Certificates{}, err
	}
	made.Server[AuthoritiesKey], made.Client[AuthoritiesKey] = trusted, trusted
	made.Client[CloudConfigKey] = cloudConfig(namespace)
	return made, nil
}

// pair is a certificate and its key, in PEM format.
type pair struct{ certificate, key []byte }

// nextAuthority creates a new authority when the Shoot has begun another rotation, and keeps the
// previous one while the rotation is being prepared. An authority that is about to expire is
// replaced immediately: this happens once in years, and cluster-autoscaler does not reach the
// server until gardenlet has written both Deployments.
func nextAuthority(data map[string][]byte, r Rotation, now time.Time) (map[string][]byte, error) {
	valid := isFresh(pair{data[AuthoritiesKey], data[authorityPrivateKey]}, now)
	next := map[string][]byte{rotationKey: []byte(r.Begun)}
	if valid && string(data[rotationKey]) == r.Begun {
		next[AuthoritiesKey], next[authorityPrivateKey] = data[AuthoritiesKey], data[authorityPrivateKey]
		if r.Prepares && isWhole(pair{data[oldKey], data[oldPrivate]}) {
			next[oldKey], next[oldPrivate] = data[oldKey], data[oldPrivate]
		}
		return next, nil
	}
	made, err := generate(&secrets.CertificateSecretConfig{Name: ServiceName, CommonName: ServiceName, CertType: secrets.CACert, Validity: ptr.To(authorityLife)})
	if err != nil {
		return nil, err
	}
	next[AuthoritiesKey], next[authorityPrivateKey] = made.certificate, made.key
	if r.Prepares && valid {
		next[oldKey], next[oldPrivate] = data[AuthoritiesKey], data[authorityPrivateKey]
	}
	return next, nil
}

// nextCertificate keeps a valid certificate, and replaces an invalid one.
func nextCertificate(data map[string][]byte, signer pair, kind secrets.CertType, hosts []string, now time.Time) (map[string][]byte, error) {
	if isFresh(pair{data[CertificateKey], data[PrivateKey]}, now) && isSigned(data[CertificateKey], signer.certificate, hosts) {
		return map[string][]byte{CertificateKey: data[CertificateKey], PrivateKey: data[PrivateKey]}, nil
	}
	authority, err := secrets.LoadCertificate(ServiceName, signer.key, signer.certificate)
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	made, err := generate(&secrets.CertificateSecretConfig{
		Name: ServiceName, CommonName: ServiceName + "-" + string(kind), CertType: kind, DNSNames: hosts, SigningCA: authority, Validity: ptr.To(certificateLife),
	})
	if err != nil {
		return nil, err
	}
	return map[string][]byte{CertificateKey: made.certificate, PrivateKey: made.key}, nil
}

func generate(config *secrets.CertificateSecretConfig) (pair, error) {
	made, err := config.GenerateCertificate()
	if err != nil {
		return pair{}, fmt.Errorf("make certificate %s: %w", config.CommonName, err)
	}
	return pair{made.CertificatePEM, made.PrivateKeyPEM}, nil
}

// isFresh reports whether a certificate has its key, and less than four fifths of its lifetime have
// passed.
func isFresh(p pair, now time.Time) bool {
	c := parse(p.certificate)
	return c != nil && isWhole(p) && now.Before(c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore)/5))
}

// isWhole reports whether a certificate has its key.
func isWhole(p pair) bool {
	_, err := tls.X509KeyPair(p.certificate, p.key)
	return err == nil
}

// isSigned reports whether this authority has signed a certificate with these names.
func isSigned(text, authority []byte, hosts []string) bool {
	c, signer := parse(text), parse(authority)
	return c != nil && signer != nil && c.CheckSignatureFrom(signer) == nil && slices.Equal(c.DNSNames, hosts)
}

// parse returns a certificate; nil if it is not valid.
func parse(text []byte) *x509.Certificate {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return c
}
