/// The link in an e-mail that fills in its code: `mfaapp://mfa-challenge?code=` and 6 digits.
///
/// A link fills the entry and sends nothing: any app or page can open one.
public struct ChallengeLink: Sendable, Hashable {
  /// The code: 6 ASCII digits.
  public let code: String

  private static let place = "mfaapp://mfa-challenge"
  private static let field = "?code="

  /// Reads `url`; `nil` for anything but such a link. Case matters only in the name of the field.
  public init?(_ url: String) {
    let bytes = Array(url.utf8)
    guard bytes.count == Self.place.utf8.count + Self.field.utf8.count + 6, bytes.allSatisfy({ $0 < 0x80 }) else {
      return nil
    }
    let place = String(decoding: bytes.prefix(Self.place.utf8.count), as: UTF8.self)
    let rest = String(decoding: bytes.dropFirst(Self.place.utf8.count), as: UTF8.self)
    guard place.lowercased() == Self.place, rest.hasPrefix(Self.field) else { return nil }
    let code = String(rest.dropFirst(Self.field.count))
    guard ChallengeState.Tab.email.accepts(code) else { return nil }
    self.code = code
  }
}
