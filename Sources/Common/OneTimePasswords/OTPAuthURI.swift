internal import Foundation

/// The content of an authenticator's QR code: `otpauth://totp/Issuer:account?secret=…` (Key URI Format).
public struct OTPAuthURI: Sendable, Hashable {
  /// What the counter of a code is.
  public enum Kind: Sendable, Hashable {
    /// The time, in steps of so many seconds: 1 to 300.
    case totp(period: Int)
    /// A number that grows with each code.
    case hotp(counter: UInt64)
  }

  /// A parameter that this version does not know.
  public struct Parameter: Sendable, Hashable {
    /// The name.
    public let name: String
    /// The value, decoded.
    public let value: String
  }

  /// What the counter of a code is.
  public var kind: Kind
  /// The service; empty if the URI has none.
  public var issuer: String
  /// The name at the service.
  public var account: String
  /// The secret, at least one byte.
  public var secret: [UInt8]
  /// The hash function.
  public var algorithm: TOTPAlgorithm
  /// The digits of a code, 5 to 10.
  public var digits: Int
  /// Whether codes have Steam's alphabet.
  public var isSteam: Bool
  /// Parameters that this version does not know, in their order. They are written again.
  public var otherParameters: [Parameter]

  /// Creates a URI.
  public init(
    issuer: String = "", account: String, secret: [UInt8], kind: Kind = .totp(period: 30),
    algorithm: TOTPAlgorithm = .sha1, digits: Int = 6, isSteam: Bool = false
  ) {
    self.kind = kind
    self.issuer = issuer
    self.account = account
    self.secret = secret
    self.algorithm = algorithm
    self.digits = digits
    self.isSteam = isSteam
    otherParameters = []
  }
}

extension OTPAuthURI {
  /// Reads a URI. Scheme, kind, names of parameters and of algorithms may have either case.
  ///
  /// Writers differ, and each of these forms has one meaning:
  /// - A parameter may occur twice with the same value: OTPClient repeats the issuer of Steam's codes.
  /// - Digits, period, algorithm and counter that are empty or `null` are not given. ente writes `digits=null`.
  /// - A counter that is not given is 0.
  /// - The host `steam`, `encoder=steam`, and five digits of the issuer Steam mean Steam's codes.
  /// - A `+` between two characters of the issuer is a space, as forms write it, unless the text has `%20` too, or the
  ///   label has the same name and is no form. In a label it is a `+`, unless only a space gives the issuer's name.
  /// - A `%` that two hexadecimal digits of UTF-8 do not follow is a `%`.
  ///
  /// The issuer is that of the parameter, otherwise that of the label. A label is divided where the issuer of the
  /// parameter ends, which may have a colon itself; otherwise at its first `:` that is not part of `://`; without one at
  /// `%3A`.
  ///
  /// - Throws: `OTPAuthError`. A value outside its bounds is refused, never replaced.
  public init(_ text: String) throws(OTPAuthError) {
    let parts = try Self.parts(of: text)
    guard let type = ["totp", "hotp", "steam"].first(where: { OTPAuthText.isWord(parts.kind, $0) }) else {
      throw .unknownKind(parts.kind)
    }
    var query = OTPAuthQuery(parts.query)
    guard let secretText = try query.take("secret")?.value, !secretText.isEmpty else { throw .missingSecret }
    do throws(Base32Error) { secret = try Base32.decodeSecret(secretText) } catch { throw .invalidSecret(error) }
    guard !secret.isEmpty else { throw .missingSecret }
    let label = OTPAuthLabel(parts.label)
    let given = try query.take("issuer").flatMap { $0.value.isEmpty ? nil : label.issuer(of: $0.raw) }
    (issuer, account) = label.names(issuer: given)
    let algorithmText = try query.takeGiven("algorithm")
    guard let algorithm = algorithmText.map(TOTPAlgorithm.init(name:)) ?? .sha1 else {
      throw .invalidParameter("algorithm", algorithmText ?? "")
    }
    self.algorithm = algorithm
    isSteam = try query.take("encoder").map { OTPAuthText.isWord($0.value, "steam") } ?? false
    digits = try Self.number(query.takeGiven("digits"), "digits", in: 5...10) ?? (type == "steam" ? 5 : 6)
    if type == "hotp" {
      let text = try query.takeGiven("counter")
      guard let counter = text.map({ UInt64($0) }) ?? 0 else { throw .invalidParameter("counter", text ?? "") }
      kind = .hotp(counter: counter)
    } else {
      kind = .totp(period: try Self.number(query.takeGiven("period"), "period", in: 1...300) ?? 30)
      isSteam = isSteam || type == "steam"
    }
    otherParameters = query.others
    if type == "totp", digits == 5, !isSteam { findSteam(hasIssuer: given != nil) }
  }

  /// Recognizes Steam's codes by five digits and the name: no other service has five, and OTPClient, FreeOTP+ and
  /// steamctl write them so. Some versions of FreeOTP+ write the account before the issuer.
  private mutating func findSteam(hasIssuer: Bool) {
    if OTPAuthText.isWord(issuer, "steam") {
      isSteam = true
    } else if !hasIssuer, OTPAuthText.isWord(account, "steam") {
      isSteam = true
      (issuer, account) = (account, issuer)
    }
  }

  /// The URI. Reading it gives the same value.
  public var text: String {
    let type: String
    var query = ["secret=" + Base32.encode(secret)]
    if !issuer.isEmpty { query.append("issuer=" + issuer.percentEncoded) }
    if algorithm != .sha1 { query.append("algorithm=" + algorithm.rawValue) }
    if digits != 6 { query.append("digits=\(digits)") }
    switch kind {
    case .totp(let period):
      type = "totp"
      if period != 30 { query.append("period=\(period)") }
    case .hotp(let counter):
      type = "hotp"
      query.append("counter=\(counter)")
    }
    if isSteam { query.append("encoder=steam") }
    query += otherParameters.map { "\($0.name.percentEncoded)=\($0.value.percentEncoded)" }
    // Without a colon before it, one in the account would end an issuer.
    let isWhole = issuer.isEmpty && !account.unicodeScalars.contains(":")
    let label = (isWhole ? "" : issuer.percentEncoded + ":") + account.percentEncoded
    return "otpauth://\(type)/\(label)?" + query.joined(separator: "&")
  }

  // MARK: Parts

  private static func parts(of text: String) throws(OTPAuthError) -> (kind: String, label: Substring, query: Substring)
  {
    let scheme = "otpauth://"
    guard text.utf8.count <= 16_384, OTPAuthText.isWord(text.utf8.prefix(scheme.utf8.count), scheme)
    else { throw .invalidScheme }
    // By scalars: a mark that combines with a delimiter would make another character of it.
    let rest = text.unicodeScalars.dropFirst(scheme.count)
    guard let mark = rest.firstIndex(of: "?") else { throw .missingQueryParameters }
    let path = rest[..<mark]
    let query = rest[rest.index(after: mark)...].prefix { $0 != "#" }
    guard !query.isEmpty else { throw .missingQueryParameters }
    let slash = path.firstIndex(of: "/") ?? path.endIndex
    return (Substring(path[..<slash]).lowercased(), Substring(path[slash...].dropFirst()), Substring(query))
  }

  private static func number(
    _ text: String?, _ name: String, in range: ClosedRange<Int>
  ) throws(OTPAuthError) -> Int? {
    guard let text else { return nil }
    guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let number = Int(text),
      range.contains(number)
    else { throw .invalidParameter(name, text) }
    return number
  }
}

/// Reads a URI, as `OTPAuthURI.init` does.
public func parseOTPAuthURI(_ uri: String) throws(OTPAuthError) -> OTPAuthURI { try OTPAuthURI(uri) }

/// Why a text is not the URI of an authenticator. No case has the secret.
public enum OTPAuthError: Error, Sendable, Hashable {
  /// The text does not begin with `otpauth://`, or is longer than 16 KiB.
  case invalidScheme
  /// There is nothing after a `?`.
  case missingQueryParameters
  /// There is no secret, or an empty one.
  case missingSecret
  /// The secret is not Base32.
  case invalidSecret(Base32Error)
  /// None of `totp`, `hotp` and `steam`.
  case unknownKind(String)
  /// A value outside its bounds: the name and the value.
  case invalidParameter(String, String)
  /// A parameter occurs twice, with different values.
  case repeatedParameter(String)
}

extension OTPAuthError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .invalidScheme: "not an otpauth:// URI"
    case .missingQueryParameters: "the otpauth:// URI has no parameters"
    case .missingSecret: "the otpauth:// URI has no secret"
    case .invalidSecret(let error): "the secret is not valid: \(error)"
    case .unknownKind(let kind):
      "codes of the kind \(kind.prefix(32).debugDescription) are not known: totp, hotp or steam"
    case .invalidParameter(let name, let value): "\(name)=\(value.prefix(32)) is not possible"
    case .repeatedParameter(let name): "\(name) occurs twice, with different values"
    }
  }
}

extension String {
  /// With every byte escaped that is not unreserved in a URI (RFC 3986 section 2.3).
  fileprivate var percentEncoded: String {
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        bytes.append(byte)
      default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
