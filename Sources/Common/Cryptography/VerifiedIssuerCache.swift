internal import Locking

/// Caches certificates of valid chains, as OpenSSL parsed them, and which of them signed which.
///
/// The next chain that shares them skips the parsing and the verification of the signature. Both depend on bytes
/// alone, and an entry is found by all bytes of a certificate. The other conditions of a valid chain (its path, the
/// instant, what an issuer may do) are checked for each chain. A refused certificate is never cached.
final class VerifiedIssuerCache: Sendable {
  private struct Link {
    let subject: X509Handle
    let issuer: X509Handle
  }

  private let capacity: Int
  /// The oldest first: there are few, so that a walk is quicker than a hash of a certificate.
  private let links = LockedValue<[Link]>([])

  /// Keeps at most `capacity` certificates; the oldest gives way.
  init(capacity: Int = 16) { self.capacity = capacity }

  /// How many certificates are kept.
  var count: Int { links.withLock { $0.count } }

  /// Returns OpenSSL's object for a certificate with exactly these bytes if it was part of a valid chain.
  func handle(of certificate: Certificate) -> X509Handle? {
    links.withLock { links in links.first { $0.subject.certificate == certificate }?.subject }
  }

  /// Whether the signature of `subject` by `issuer` was verified before.
  func vouches(for subject: X509Handle, under issuer: X509Handle) -> Bool {
    links.withLock { links in links.contains { $0.subject === subject && $0.issuer === issuer } }
  }

  /// Keeps that each certificate of `chain` signed the one before it.
  func keep(_ chain: ArraySlice<X509Handle>) {
    links.withLock { links in
      for (subject, issuer) in zip(chain, chain.dropFirst()) {
        guard !links.contains(where: { $0.subject === subject && $0.issuer === issuer }) else { continue }
        links.removeAll { $0.subject.certificate == subject.certificate }
        if links.count >= capacity { links.removeFirst() }
        links.append(Link(subject: subject, issuer: issuer))
      }
    }
  }
}
