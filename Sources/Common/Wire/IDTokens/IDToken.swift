internal import ByteCoding
#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// An ID token that was read and not yet verified (OpenID Connect Core 1.0, section 2; RFC 7515, section 7.1).
public struct IDToken: Sendable, Hashable {
  /// The longest token that is read, in bytes: 64 KiB.
  public static let longest = 65_536

  /// The signature algorithm that the header names.
  public let algorithm: String
  /// The key that the header names.
  public let keyID: String?
  /// The media type that the header names (`typ`; RFC 7515, section 4.1.9).
  public let type: String?
  /// What the provider says about the user and the sign-in.
  public let claims: Claims
  /// The token as it came.
  public let text: String

  /// The claims that rules look at. Others are ignored.
  public struct Claims: Sendable, Hashable {
    /// `iss`
    public let issuer: String?
    /// `sub`
    public let subject: String?
    /// `aud`, one or a list
    public let audiences: [String]
    /// `azp`
    public let authorizedParty: String?
    /// `exp`
    public let expiresAt: Date?
    /// `iat`
    public let issuedAt: Date?
    /// `nbf`
    public let notBefore: Date?
    /// `nonce`
    public let nonce: String?
    /// `at_hash`
    public let accessTokenHash: String?
    /// `email`
    public let email: String?
    /// `preferred_username`
    public let preferredUsername: String?
    /// `name`
    public let name: String?
    /// The claims that cannot be used, by name: why.
    private let faults: [String: String]
  }

  /// Reads a token: three parts in canonical base64url, of which the first two are JSON objects.
  ///
  /// - Throws: `.malformed`.
  public init(_ text: String) throws(IDTokenRejection) {
    guard text.utf8.count <= Self.longest else { throw .malformed("it is longer than 64 KiB") }
    let parts = text.split(atBytes: UInt8(ascii: "."))
    guard parts.count == 3 else {
      throw .malformed(parts.count == 5 ? "it is encrypted, which is not supported" : "it has not three parts")
    }
    guard let header = Base64URL.decode(parts[0]), let claims = Base64URL.decode(parts[1]),
      Base64URL.decode(parts[2]) != nil
    else { throw .malformed("a part is not base64url without padding") }
    let fields: Header
    do { fields = try ProviderJSON.decode(Header.self, ofToken: header) } catch is ProviderJSON.Ambiguous {
      throw .malformed("its header has a parameter twice")
    } catch {
      throw .malformed("its header is not a JSON object")
    }
    if let fault = fields.alg.fault ?? fields.kid.fault ?? fields.typ.fault {
      throw .malformed("\(fault), in its header")
    }
    guard let algorithm = fields.alg.value else { throw .malformed("its header has no alg") }
    // They are compared with names, and quoted.
    guard [algorithm, fields.typ.value ?? ""].allSatisfy({ $0.utf8.count <= 128 }),
      (fields.kid.value ?? "").utf8.count <= 1024
    else { throw .malformed("alg, typ or kid of its header is too long") }
    // What must be understood and is not known here cannot be (RFC 7515, section 4.1.11).
    guard !fields.hasCrit else { throw .malformed("its header has crit") }
    self.algorithm = algorithm
    keyID = fields.kid.value
    type = fields.typ.value
    do { self.claims = try ProviderJSON.decode(Claims.self, ofToken: claims) } catch is ProviderJSON.Ambiguous {
      throw .malformed("it has a claim twice, and readers take different ones")
    } catch {
      throw .malformed("its claims are not a JSON object")
    }
    self.text = text
  }

  private struct Header: Decodable {
    let alg: Member<String>
    let kid: Member<String>
    let typ: Member<String>
    let hasCrit: Bool

    init(from decoder: any Decoder) throws {
      let members = try ProviderMembers(from: decoder)
      alg = members.text("alg")
      kid = members.text("kid")
      typ = members.text("typ")
      hasCrit = members.has("crit")
    }
  }
}

extension IDToken.Claims: Decodable {
  public init(from decoder: any Decoder) throws {
    let members = try ProviderMembers(from: decoder)
    var faults: [String: String] = [:]
    func value<Value>(_ member: Member<Value>) -> Value? {
      faults[member.name] = member.fault
      return member.value
    }
    func date(_ name: String) -> Date? { value(members.number(name)).map { Date(timeIntervalSince1970: $0) } }
    issuer = value(members.text("iss"))
    subject = value(members.text("sub"))
    // Each audience counts, so that an empty one is one.
    audiences = value(members.texts("aud", keepsEmpty: true)) ?? []
    authorizedParty = value(members.text("azp"))
    expiresAt = date("exp")
    issuedAt = date("iat")
    notBefore = date("nbf")
    nonce = value(members.text("nonce"))
    accessTokenHash = value(members.text("at_hash"))
    email = members.text("email").value
    preferredUsername = members.text("preferred_username").value
    name = members.text("name").value
    self.faults = faults
  }

  /// Judges the claim called `name`, for the rule that uses it.
  ///
  /// - Throws: `.malformed` if it has a value of another type.
  package func judge(_ name: String) throws(IDTokenRejection) {
    if let fault = faults[name] { throw .malformed(fault) }
  }
}

extension IDToken {
  /// Returns the texts of a claim that is a list of texts, or one text; empty if it is absent.
  ///
  /// - Throws: `.malformed` if it has a value of another type.
  package func texts(of claim: String) throws(IDTokenRejection) -> [String] {
    let parts = text.split(atBytes: UInt8(ascii: "."))
    guard parts.count == 3, let json = Base64URL.decode(parts[1]),
      let all = try? ProviderJSON.decode(AllMembers.self, ofToken: json)
    else { throw .malformed("its claims are not a JSON object") }
    let member = all.members.texts(claim)
    if let fault = member.fault { throw .malformed(fault) }
    return member.value ?? []
  }
}

/// The members of an object, to be read by their names.
private struct AllMembers: Decodable {
  let members: ProviderMembers
  init(from decoder: any Decoder) throws { members = try ProviderMembers(from: decoder) }
}

extension IDToken: CustomStringConvertible, CustomReflectable {
  /// The algorithm.
  public var description: String { "ID token, \(algorithm)" }
  /// No members: the token stays out of logs.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
