internal import ByteCoding
internal import Cryptography

// The rules about the certificates.
extension AndroidAttestationVerifier {
  func brokenNames(of chain: AndroidCertificateChain) -> [AndroidRuleRejection] {
    let pairs = zip(chain.certificates, chain.certificates.dropFirst()).enumerated()
    return pairs.filter { $1.0.issuerName != $1.1.subjectName }.map { .nameChaining($0.offset) }
  }

  /// Each certificate is signed by the key of the next one; a root that was sent, by its own.
  func brokenSignatures(of chain: AndroidCertificateChain) -> [AndroidRuleRejection] {
    let certificates = chain.certificates
    var links: [(certificate: Certificate, issuer: IssuerKey)] = []
    var broken: [AndroidRuleRejection] = []
    for position in certificates.indices.dropLast(chain.endsWithRoot ? 0 : 1) {
      let certificate = certificates[position]
      let issuer = certificates[min(position + 1, certificates.count - 1)]
      do throws(CryptographyError) {
        let key = try IssuerKey(spki: issuer.subjectPublicKeyInfo)
        if signatures.signed(certificate, by: key) {
          links.append((certificate, key))
        } else {
          broken.append(.signature(position, reason: Self.reason(certificate)))
        }
      } catch {
        broken.append(.signature(position, reason: "\(error)"))
      }
    }
    // The authorities of a chain that a pinned key vouches for are shared by many devices. The leaf and the attestation
    // certificate are not.
    if broken.isEmpty, brokenRoot(of: chain).isEmpty {
      for link in links.dropFirst(2) { signatures.keep(link.certificate, by: link.issuer) }
    }
    return broken
  }

  private static func reason(_ certificate: Certificate) -> String {
    certificate.hasKnownSignatureAlgorithm
      ? "the issuer's key did not make it"
      : "its algorithm is not ECDSA with SHA-256 or SHA-384, or RSA with SHA-256"
  }

  func brokenRoot(of chain: AndroidCertificateChain) -> [AndroidRuleRejection] {
    guard let last = chain.certificates.last else { return [.rootUnknown] }
    if chain.endsWithRoot {
      let isPinned = roots.contains { $0.spki == last.subjectPublicKeyInfo }
      return isPinned ? [] : [.rootUnknown]
    }
    // The leaf is never signed by a root: a chain without the root has an attestation certificate at least.
    guard let root = roots.first(where: { signatures.signed(last, by: $0) }) else { return [.rootMissing] }
    signatures.keep(last, by: root)
    return []
  }

  /// The attestation certificate, position 1, need not be an authority: genuine ones say that they are none.
  func brokenAuthorities(of chain: AndroidCertificateChain) -> [AndroidRuleRejection] {
    chain.certificates.enumerated().dropFirst().flatMap { position, certificate -> [AndroidRuleRejection] in
      let rights = IssuerRights(certificate)
      var broken: [AndroidRuleRejection] = []
      // A root that is sent twice would stand in the place whose name says how the key was provisioned.
      if chain.issuerPositions.contains(position), certificate.issuerName == certificate.subjectName {
        broken.append(.selfIssued(position))
      }
      if position > 1, !rights.isAuthority { broken.append(.issuerIsNoAuthority(position)) }
      if let allowed = rights.pathLength, position - 1 > allowed {
        broken.append(.pathLength(position, allowed: allowed))
      }
      if let unknown = rights.unknownCriticalExtension {
        broken.append(.criticalExtension(position, identifier: "\(unknown)"))
      }
      return broken
    }
  }

  /// The leaf's dates are the device's own words, and the root is trusted by its key. Factory keys cannot be renewed, so
  /// their certificates outlive their dates on living devices. All others have to be valid.
  func brokenValidity(of claim: AndroidClaim) -> [AndroidRuleRejection] {
    let (chain, instant) = (claim.chain, claim.instant)
    let expires = chain.provisioning != .factory
    return chain.issuerPositions.flatMap { position -> [AndroidRuleRejection] in
      let certificate = chain.certificates[position]
      if instant < certificate.notBefore {
        return [.notYetValid(position, notBefore: certificate.notBefore, at: instant)]
      }
      if expires, certificate.notAfter < instant {
        return [.expired(position, notAfter: certificate.notAfter, at: instant)]
      }
      return []
    }
  }

  func revoked(_ chain: AndroidCertificateChain, by list: AndroidStatusList) -> [AndroidRuleRejection] {
    chain.certificates.enumerated().compactMap { position, certificate in
      list.reason(forSerial: certificate.serialNumber).map {
        .revoked(position, serial: AndroidStatusList.text(ofSerial: certificate.serialNumber), reason: $0)
      }
    }
  }

  func misplacedExtensions(of chain: AndroidCertificateChain) -> [AndroidRuleRejection] {
    let positions = chain.certificates.indices.filter {
      chain.certificates[$0].extensionValue(oid: KeyDescription.extensionIdentifier) != nil
    }
    // A key whose attestation is genuine can sign a further certificate, with any extension in it.
    let misplaced = positions.filter { $0 > 0 }.map(AndroidRuleRejection.attestationExtension)
    return (positions.first == 0 ? [] : [.attestationExtensionMissing]) + misplaced
  }

  func brokenProvisioning(of chain: AndroidCertificateChain) -> [AndroidRuleRejection]? {
    guard policy.requiresRemoteProvisioning else { return nil }
    return chain.provisioning == .remote ? [] : [.notRemotelyProvisioned(chain.provisioning)]
  }
}

extension AndroidCertificateChain {
  /// How the attestation key came into the device, by the name of the certificate that the root's key signed.
  public var provisioning: KeyProvisioning {
    issuerPositions.last.map { KeyProvisioning(belowRoot: certificates[$0]) } ?? .unknown
  }
}
