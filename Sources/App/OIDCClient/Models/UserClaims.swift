internal import Foundation

/// What a provider says about the user, as it says it.
public struct UserClaims: Sendable, Hashable {
  private static let name = "the userinfo endpoint's answer"

  /// The subject; `nil` if there is none, as with plain OAuth 2.0.
  public let subject: String?
  /// The claims: one JSON object on one line.
  public let json: String

  /// Reads an answer.
  ///
  /// - Throws: `.tooLarge`, `.malformed`, also if an object has a name twice.
  public init(json bytes: [UInt8]) throws(OIDCError) {
    struct Document: Decodable {
      let subject: Member<String>
      init(from decoder: any Decoder) throws { subject = try ProviderMembers(from: decoder).text("sub") }
    }
    guard bytes.count <= ProviderMetadata.largest else { throw .tooLarge(Self.name) }
    let document: Document
    do { document = try ProviderJSON.decode(Document.self, unambiguously: bytes) } catch is ProviderJSON.Ambiguous {
      throw .malformed("\(Self.name) has a member twice")
    } catch {
      throw .malformed("\(Self.name) is not a JSON object")
    }
    subject = try document.subject.usable(in: Self.name)
    // A text contains no bare line break, so that those are between members.
    guard let text = String(validating: bytes.map { [0x09, 0x0A, 0x0D].contains($0) ? 0x20 : $0 }, as: UTF8.self) else {
      throw .malformed("\(Self.name) is not UTF-8")
    }
    json = text.trimmingCharacters(in: .whitespaces)
  }
}

extension UserClaims: CustomReflectable {
  /// No members: what is known about a person stays out of logs.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
