/// The renewal of a certificate that the gate obtains by itself (ACME).
public struct CertificateRenewal: Codable, Sendable, Hashable {
  public var obtainedAt: String?
  /// When the next one will be ordered.
  public var nextAt: String?
  /// Why the last attempt failed; absent if it succeeded.
  public var fault: String?

  enum CodingKeys: String, CodingKey {
    case fault
    case obtainedAt = "obtained_at"
    case nextAt = "next_at"
  }

  public init(obtainedAt: String?, nextAt: String?, fault: String?) {
    (self.obtainedAt, self.nextAt, self.fault) = (obtainedAt, nextAt, fault)
  }

  /// A few words for people.
  public var text: String {
    [
      obtainedAt.map { "renewed by ACME at \($0)" }, nextAt.map { "next at \($0)" },
      fault.map { "last attempt failed: \($0)" },
    ].compactMap(\.self).joined(separator: ", ")
  }
}
