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
    var broken: [AndroidRuleRejection] = []
    for position in certificates.indices {
      let certificate = certificates[position]
      guard let issuer = Self.issuer(ofCertificateAt: position, in: chain) else { continue }
      do throws(CryptographyError) {
        let key = try IssuerKey(spki: issuer.subjectPublicKeyInfo)
        if !signatures.signed(certificate, by: key) {
          broken.append(.signature(position, reason: Self.reason(certificate, key)))
        }
      } catch {
        broken.append(.signature(position, reason: "\(error)"))
      }
    }
    return broken
  }

  /// The certificate whose key has to have signed the one at `position`; `nil` for the last one if it is no root, or a
  /// root that another one certified: nothing in the chain vouches for it.
  private static func issuer(ofCertificateAt position: Int, in chain: AndroidCertificateChain) -> Certificate? {
    let certificates = chain.certificates
    if position + 1 < certificates.count { return certificates[position + 1] }
    return certificates[position].isSelfIssued ? certificates[position] : nil
  }

  /// Remembers the signatures of the authorities of an accepted chain, which many devices share. Leaf and attestation
  /// certificate are not shared. A refused chain is not remembered: any owner of an attested key can sign certificates.
  func remember(_ chain: AndroidCertificateChain) {
    for (position, certificate) in chain.certificates.enumerated().dropFirst(2) {
      let issuer = Self.issuer(ofCertificateAt: position, in: chain)
      let key =
        issuer.map { try? IssuerKey(spki: $0.subjectPublicKeyInfo) }
        ?? (chain.endsWithRoot ? nil : roots.first { signatures.signed(certificate, by: $0) })
      if let key { signatures.keep(certificate, by: key) }
    }
  }

  private static func reason(_ certificate: Certificate, _ key: IssuerKey) -> String {
    guard certificate.hasKnownSignatureAlgorithm else {
      return "its algorithm is not ECDSA with SHA-256 or SHA-384, or RSA with SHA-256"
    }
    guard certificate.hasSignatureAlgorithm(for: key) else {
      return "its algorithm is for keys of another kind than the issuer's: ECDSA needs a curve, RSA a modulus"
    }
    return "the issuer's key did not make it"
  }

  func brokenRoot(of chain: AndroidCertificateChain) -> [AndroidRuleRejection] {
    guard let last = chain.certificates.last else { return [.rootUnknown] }
    if chain.endsWithRoot {
      let isPinned = roots.contains { $0.spki == last.subjectPublicKeyInfo }
      return isPinned ? [] : [.rootUnknown]
    }
    // The leaf is never signed by a root: a chain without the root has an attestation certificate at least.
    return roots.contains { signatures.signed(last, by: $0) } ? [] : [.rootMissing]
  }

  /// Every issuer is an authority, except for one kind of attestation certificate, position 1: those of some factories
  /// say that they are none. The authority above such a certificate is one that the root's key signed, in all genuine
  /// chains. Further below, a certificate without the right belongs to the key of an app: the device signs it with a
  /// factory key for every app that asks, and the app could attest anything with it. Such certificates state no
  /// authority. Certificates of Google's server that are no authorities are not for attestation.
  ///
  /// A critical extension that is not known here is refused in every certificate, the leaf too (RFC 5280 section 4.2).
  func brokenAuthorities(of chain: AndroidCertificateChain) -> [AndroidRuleRejection] {
    let isBelowFirst = chain.issuerPositions == 1..<3
    return chain.certificates.enumerated().dropFirst().flatMap { position, certificate -> [AndroidRuleRejection] in
      let rights = IssuerRights(certificate)
      var broken: [AndroidRuleRejection] = []
      // A root that is sent twice would stand in the place whose name says how the key was provisioned.
      if chain.issuerPositions.contains(position), certificate.isSelfIssued {
        broken.append(.selfIssued(position))
      }
      if certificate.extensionValue(oid: Self.virtualMachineIdentifier) != nil {
        broken.append(.virtualMachine(position))
      }
      let mayLackRight =
        position == 1 && isBelowFirst && chain.provisioning == .factory && rights.statesConstraints
      if !mayLackRight, !rights.isAuthority { broken.append(.issuerIsNoAuthority(position)) }
      if let allowed = rights.pathLength, position - 1 > allowed {
        broken.append(.pathLength(position, allowed: allowed))
      }
      return broken
    }
      + chain.certificates.enumerated().compactMap { position, certificate in
        certificate.unknownCriticalExtension.map { .criticalExtension(position, identifier: "\($0)") }
      }
  }

  /// The extension of a certificate that Google's server issues for a key in a protected virtual machine (Android
  /// Virtualization Framework). The owner of the device chooses the code that uses this key.
  private static let virtualMachineIdentifier = "1.3.6.1.4.1.11129.2.1.29.1"

  /// The leaf's dates are the device's own words, and the root is trusted by its key. Only remotely provisioned keys are
  /// renewed; the certificates of others outlive their dates on living devices.
  func brokenValidity(of claim: AndroidClaim) -> [AndroidRuleRejection] {
    let (chain, instant) = (claim.chain, claim.instant)
    let expires = chain.provisioning == .remote
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
    policy.broken(by: chain.provisioning)
  }
}

extension AndroidCertificateChain {
  /// How the attestation key came into the device, by the name of the certificate that the root's key signed.
  public var provisioning: KeyProvisioning {
    issuerPositions.last.map { KeyProvisioning(belowRoot: certificates[$0]) } ?? .unknown
  }
}
