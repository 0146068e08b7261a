import AttestGate
import ByteCoding
import Transport

@testable import GateService
@testable import TransportEngine

extension FuzzTarget {
  static let assertedRequest = FuzzTarget(
    name: "asserted-request", longest: 2048,
    words: HTTPWords.all + AssertedRequestInvariants.words,
    seeds: { AssertedRequestInvariants.seeds.map { Array($0.utf8) } }, accepts: AssertedRequestInvariants.check)
}

/// An upstream sees nothing of an assertion that came in a subprotocol or in the query, and all of the rest. A client
/// cannot choose its address unless a proxy says so.
enum AssertedRequestInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard case .head(let head, _) = RequestHeadInvariants.parse(input) else { return false }
    try checkClient(of: head.headers)
    guard case .webSocket(let intent) = head.upgrade else { return false }
    let request = Request(
      id: "1", method: head.method, target: head.target, path: head.path, headers: head.headers, upgrade: intent)
    let asserted = AssertedRequest(request, carriers: [.subprotocol, .query])
    let rest = asserted.request
    try require(!hasCarrier(rest), "no carrier is left", rest.target)
    try require(
      rest.target.utf8.prefix { $0 != UInt8(ascii: "?") }
        .elementsEqual(request.target.utf8.prefix { $0 != UInt8(ascii: "?") }), "the path is unchanged", rest.target)
    try require(
      others(of: rest.headers) == others(of: request.headers), "the other fields are unchanged", "\(rest.headers)")
    let again = AssertedRequest(rest, carriers: [.subprotocol, .query])
    try require(
      again.request.target == rest.target && again.request.headers == rest.headers && again.ownSubprotocols.isEmpty,
      "taking out the carriers twice changes nothing", rest.target)
    let offered = rest.upgrade?.subprotocols ?? []
    try require(
      Set(offered + asserted.ownSubprotocols) == Set(intent.subprotocols)
        && offered.count + asserted.ownSubprotocols.count == intent.subprotocols.count,
      "each subprotocol is the client's or the gate's", offered.joined(separator: ","))
    let unread = AssertedRequest(request)
    try require(
      unread.request.target == request.target && unread.request.headers == request.headers,
      "without a setting nothing is taken out")
    return hasCarrier(request)
  }

  private static func hasCarrier(_ request: Request) -> Bool {
    let query = request.target.utf8.drop { $0 != UInt8(ascii: "?") }.dropFirst()
    return query.split(separator: UInt8(ascii: "&")).contains { $0.starts(with: "sallyport.v1=".utf8) }
      || request.upgrade?.subprotocols.contains { $0.utf8.starts(with: "sallyport.v1.".utf8) } == true
  }

  private static func others(of headers: HeaderFields) -> [HeaderFields.Field] {
    headers.fields.filter { !HeaderFields.isSame($0.name, "Sec-WebSocket-Protocol") }
  }

  private static let clients = ForwardedClients(
    through: [AddressRange(bytes: [10, 0, 0, 0], length: 8)].compactMap(\.self))

  private static func checkClient(of headers: HeaderFields) throws(InvariantViolation) {
    let stranger = SocketAddress.ipv4([192, 0, 2, 1], port: 1)
    try require(
      clients.client(of: headers, from: Peer(address: stranger)).address == stranger,
      "nobody but a proxy names another address")
    let client = clients.client(of: headers, from: Peer(address: .ipv4([10, 0, 0, 1], port: 1))).address.host
    let named = headers.values(of: "X-Forwarded-For").joined(separator: ",")
    try require(
      client == "10.0.0.1" || !named.isEmpty, "without the field the proxy is the client", client)
  }

  static let words = [
    "sallyport.v1", "sallyport.v1.", "sallyport.v1=", "&sallyport.v1=", "Sec-WebSocket-Protocol: ", "e30",
    "eyJYLUFwcC1Bc3NlcnQtS2V5SWQiOiJhIn0", "X-App-Assert-Nonce: ", "X-Forwarded-For: ", "10.0.0.2", "[::1]:1",
    "::ffff:1.2.3.4",
  ]

  private static let handshake =
    "Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

  static let seeds = [
    "GET / HTTP/1.1\r\n\(handshake)Sec-WebSocket-Protocol: chat, sallyport.v1.e30, sallyport.v1\r\n\r\n",
    "GET /a?b=1&sallyport.v1=eyJYLUFwcC1Bc3NlcnQtS2V5SWQiOiJhIn0&c HTTP/1.1\r\n\(handshake)\r\n",
    "GET /?sallyport.v1=e30&sallyport.v1=x HTTP/1.1\r\n\(handshake)X-App-Assert-Nonce: 00\r\n\r\n",
    "GET / HTTP/1.1\r\n\(handshake)X-Forwarded-For: 9.9.9.9, 10.0.0.2:1\r\nX-Forwarded-For: [::1]:443, ,x\r\n\r\n",
  ]
}
