internal import AttestGate
internal import ByteCoding
internal import Transport

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A place besides the header fields where a client may put its assertion when it opens a socket. Browsers, and some
/// frameworks, cannot set header fields of an opening handshake.
public enum AssertionCarrier: String, Sendable, Hashable, CaseIterable {
  /// An offered subprotocol.
  case subprotocol
  /// A parameter of the query. Proxies in front of the gate may log it.
  case query
}

/// A request to a route, and the assertion that came with it: in header fields, or in a carrier that the route allows.
///
/// A carrier is `sallyport.v1.` and the base64url, without padding, of a JSON object: the values of the three header
/// fields under their names, in any case. In the query, the prefix is the parameter's name: `sallyport.v1=`.
///
/// The upstream sees nothing of it. The nonce and the proof are of no further use by then, but logs and error reports of
/// upstreams should not hold credentials at all.
struct AssertedRequest {
  /// The request without a carrier.
  let request: Request
  /// What a carrier held; `nil` if there was none.
  private let carried: AssertionClaim?
  /// The offered subprotocols that are the gate's, two at most: `sallyport.v1`, and a carrier. The upstream may not choose
  /// them; if it chooses none, the answer has the first, because browsers fail an answer that chooses none of what they
  /// offered.
  let ownSubprotocols: [String]

  var assertion: AssertionClaim { carried ?? AssertionClaim(request) }

  private static let name = "sallyport.v1"
  /// The maximum length of the base64url, in bytes. The three values have some 500 bytes.
  static let longest = 4096

  /// Takes the carriers among `allowed` out of `request`. Only an opening handshake has any.
  init(_ request: Request, carriers allowed: Set<AssertionCarrier> = []) {
    guard let upgrade = request.upgrade, !allowed.isEmpty else {
      (carried, self.request, ownSubprotocols) = (nil, request, [])
      return
    }
    var texts: [Substring.UTF8View] = []
    var own: [String] = []
    var headers = request.headers
    var subprotocols = upgrade.subprotocols
    if allowed.contains(.subprotocol) {
      // One pass: a head may offer thousands.
      let prefix = Array("\(Self.name).".utf8)
      var carriers: [String] = []
      subprotocols.removeAll { offered in
        if offered.utf8.elementsEqual(Self.name.utf8) {
          own = [offered]
        } else if offered.utf8.starts(with: prefix) {
          carriers.append(offered)
        } else {
          return false
        }
        return true
      }
      texts += carriers.map { Substring($0.utf8.dropFirst(prefix.count)).utf8 }
      own += carriers.prefix(1)
      if !own.isEmpty {
        headers = headers.filter { !$0.isNamed("Sec-WebSocket-Protocol") }
        if !subprotocols.isEmpty { headers.append("Sec-WebSocket-Protocol", subprotocols.joined(separator: ", ")) }
      }
    }
    var target = request.target
    if allowed.contains(.query) { texts += Self.takeParameters(from: &target) }
    if texts.count > 1 || !texts.isEmpty && !AssertionClaim(request).isAbsent {
      carried = AssertionClaim(unreadable: "the assertion came more than once: send it in one place")
    } else {
      carried = texts.first.map(Self.read)
    }
    ownSubprotocols = own
    self.request = Request(
      id: request.id, method: request.method, target: target, path: request.path, headers: headers,
      body: request.body, upgrade: UpgradeIntent(key: upgrade.key, subprotocols: subprotocols))
  }

  /// Removes the parameters named `sallyport.v1` from the query of `target`, and the question mark if nothing is left.
  ///
  /// - Returns: Their values, as they are written.
  private static func takeParameters(from target: inout String) -> [Substring.UTF8View] {
    let bytes = target.utf8
    guard let mark = bytes.firstIndex(of: UInt8(ascii: "?")) else { return [] }
    var values: [Substring.UTF8View] = []
    let kept = bytes[bytes.index(after: mark)...].split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
      .filter { parameter in
        guard parameter.starts(with: "\(name)=".utf8) else { return true }
        values.append(parameter.dropFirst(name.utf8.count + 1))
        return false
      }
    guard !values.isEmpty else { return [] }
    let query = kept.map { String(Substring($0)) }.joined(separator: "&")
    target = String(Substring(bytes[..<mark])) + (kept.isEmpty ? "" : "?" + query)
    return values
  }

  /// The parts in the JSON whose base64url is `text`.
  private static func read(_ text: Substring.UTF8View) -> AssertionClaim {
    guard text.count <= longest else {
      return AssertionClaim(unreadable: "what follows \(name) is longer than \(longest) bytes")
    }
    guard let json = Base64URL.decode(Substring(text)) else {
      return AssertionClaim(unreadable: "what follows \(name) is not base64url without padding")
    }
    guard JSONGrammar.accepts(json, within: JSONGrammar.Limits(members: 8, values: 16)),
      let values = try? JSONDecoder().decode([String: String].self, from: Data(json))
    else {
      return AssertionClaim(unreadable: "what follows \(name) is not the base64url of a JSON object of texts")
    }
    if values.keys.contains(where: { key in
      !AssertionClaim.Name.allCases.contains { HeaderFields.isSame(key, $0.rawValue) }
    }) {
      return AssertionClaim(unreadable: "what follows \(name) has a name that none of the three header fields has")
    }
    return AssertionClaim { name in
      let found = values.filter { HeaderFields.isSame($0.key, name.rawValue) }.map(\.value)
      guard found.count < 2 else { return .repeated }
      return found.first.map(AssertionClaim.Part.once) ?? .absent
    }
  }
}
