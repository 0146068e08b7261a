internal import Foundation

/// The answer to a pushed authorization request (RFC 9126, section 2.2).
struct PushedRequest: Sendable, Hashable {
  static let endpoint = "the pushed authorization request endpoint"
  private static let name = "the answer to the pushed request"
  /// The longest reference, in bytes: it goes into an address.
  private static let longest = 2048

  /// What the browser carries in place of the request.
  let uri: String
  /// How long the provider keeps the request, in seconds.
  let lifetime: Int

  /// - Throws: `.malformed`.
  init(json: [UInt8]) throws(OIDCError) {
    struct Document: Decodable {
      let uri: Member<String>
      let lifetime: Member<Double>

      init(from decoder: any Decoder) throws {
        let members = try ProviderMembers(from: decoder)
        uri = members.text("request_uri", isSecret: true)
        lifetime = members.number("expires_in")
      }
    }
    let document: Document
    do { document = try ProviderJSON.decode(Document.self, unambiguously: json) } catch is ProviderJSON.Ambiguous {
      throw .malformed("\(Self.name) has a member twice")
    } catch {
      throw .malformed("\(Self.name) is not a JSON object")
    }
    uri = try document.uri.required(in: Self.name)
    guard uri.utf8.count <= Self.longest, uri.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw .malformed("\(Self.name): request_uri is no URI of at most \(Self.longest) bytes")
    }
    let seconds = try document.lifetime.required(in: Self.name)
    guard seconds >= 1 else {
      throw .malformed("\(Self.name): expires_in is \(ShownValue.text(seconds)), not a lifetime in seconds")
    }
    lifetime = Int(min(seconds, 86_400))
  }
}
