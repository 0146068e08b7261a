import Transport

@testable import TransportEngine

extension FuzzTarget {
  static let upgradeAnswer = FuzzTarget(
    name: "upgrade-answer", longest: 1024,
    words: HTTPWords.all + ["HTTP/1.1 101 ", "Sec-WebSocket-Accept", UpgradeAnswerInvariants.accept, "v2.chat"],
    seeds: { UpgradeAnswerInvariants.seeds.map { Array($0.utf8) } }, accepts: UpgradeAnswerInvariants.check)
}

/// Only the one valid answer to an opening handshake opens a WebSocket.
enum UpgradeAnswerInvariants {
  static let accept = HandshakeKey.accept(for: "dGhlIHNhbXBsZSBub25jZQ==")
  private static let subprotocols = ["chat", "v2.chat"]
  private static let extensions = ["permessage-deflate"]

  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard case .head(let head, _) = ResponseHeadInvariants.parse(input), let answer = answer(head) else { return false }
    func values(_ name: String) -> [String] { head.headers.fields.filter { $0.name.lowercased() == name }.map(\.value) }
    func elements(_ name: String) -> [String] {
      values(name).flatMap { $0.split(separator: ",") }
        .map { String($0.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed()) }
        .filter { !$0.isEmpty }
    }
    try require(head.status == 101 && !head.isVersion10, "the status is 101")
    try require(values("sec-websocket-accept") == [accept], "the valid proof is present once")
    try require(elements("upgrade").map { $0.lowercased() } == ["websocket"], "the only protocol is websocket")
    try require(values("content-length").allSatisfy { $0 == "0" }, "no length")
    try require(["", "chunked"].contains(values("transfer-encoding").joined(separator: ",").lowercased()), "no coding")
    try require(answer.subprotocol.map(subprotocols.contains) != false, "the subprotocol was offered")
    try require(
      elements("sec-websocket-protocol") == [answer.subprotocol].compactMap(\.self), "the answer names one subprotocol")
    try require(answer.extensions.allSatisfy(extensions.contains), "the extensions were offered")
    let written = try? ResponseWriter.switchingProtocols(
      accept: answer.accept, subprotocol: answer.subprotocol,
      extensions: head.headers.values(of: "Sec-WebSocket-Extensions").compactMap(EmptyElements.removed))
    guard let written, case .head(let again, written.count) = ResponseHeadInvariants.parse(written) else {
      throw InvariantViolation(invariant: "the forwarded answer is a head", detail: "")
    }
    try require(self.answer(again) == answer, "the forwarded answer has the same meaning")
    return true
  }

  private static func answer(_ head: ResponseHead) -> UpgradeAnswer? {
    try? UpgradeAnswer(head, accept: accept, subprotocols: subprotocols, extensions: extensions)
  }

  private static let opening = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
  static let seeds = [
    "\(opening)Sec-WebSocket-Accept: \(accept)\r\n\r\n",
    "\(opening)Sec-WebSocket-Accept: \(accept)\r\nSec-WebSocket-Protocol: chat\r\n\r\n",
    "\(opening)Sec-WebSocket-Accept: \(accept)\r\nSec-WebSocket-Extensions: permessage-deflate; a=\"b\"\r\n\r\n",
    "\(opening)Sec-WebSocket-Accept : \(accept)\r\nTransfer-Encoding: chunked\r\nSec-WebSocket-Protocol: chat,\r\n\r\n",
    "\(opening)Sec-WebSocket-Accept: x\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n",
  ]
}
