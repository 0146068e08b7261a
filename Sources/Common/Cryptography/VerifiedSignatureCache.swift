internal import Locking

/// Remembers which key signed which certificate, so that a certificate that many chains share is verified once.
///
/// An entry is the digest of all bytes of both. The cache knows nothing else of a chain: dates, names and rights are
/// checked each time. Keep only certificates that a trusted key vouches for: any client could fill it with others.
public final class VerifiedSignatureCache: Sendable {
  private let capacity: Int
  /// The oldest first.
  private let entries = LockedValue<[[UInt8]]>([])

  /// Keeps at most `capacity` entries of 32 bytes; the oldest gives way.
  public init(capacity: Int = 32) { self.capacity = max(1, capacity) }

  /// Whether `key` signed `certificate`, by an entry or by verification.
  public func signed(_ certificate: Certificate, by key: IssuerKey) -> Bool {
    let digest = Self.digest(certificate, key)
    return entries.withLock { $0.contains(digest) } || key.signed(certificate)
  }

  /// Keeps that `key` signed `certificate`, which the caller has verified.
  public func keep(_ certificate: Certificate, by key: IssuerKey) {
    let digest = Self.digest(certificate, key)
    entries.withLock { entries in
      guard !entries.contains(digest) else { return }
      if entries.count >= capacity { entries.removeFirst() }
      entries.append(digest)
    }
  }

  /// The number of entries.
  public var count: Int { entries.withLock { $0.count } }

  private static func digest(_ certificate: Certificate, _ key: IssuerKey) -> [UInt8] {
    // The key has a fixed or self-delimiting form, so the border between the two is certain.
    SHA256.hash(key.spki, certificate.der)
  }
}
