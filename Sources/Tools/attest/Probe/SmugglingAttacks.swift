internal import Commands
extension Attack {
  /// Bodies whose end a server behind the gate could find elsewhere.
  static let smuggling: [Attack] = [
    field(.smuggling, "a length and a coding", "Content-Length: 4\r\nTransfer-Encoding: chunked"),
    field(.smuggling, "two lengths", "Content-Length: 0\r\nContent-Length: 4"),
    field(.smuggling, "a list of lengths", "Content-Length: 0, 0"),
    field(.smuggling, "a length with a sign", "Content-Length: +0"),
    field(.smuggling, "a length in hexadecimal", "Content-Length: 0x0"),
    field(.smuggling, "a length that overflows", "Content-Length: 18446744073709551616"),
    field(.smuggling, "another coding", "Transfer-Encoding: gzip, chunked"),
    field(.smuggling, "a coding that is almost chunked", "Transfer-Encoding: xchunked"),
    field(.smuggling, "a coding behind a vertical tab", "Transfer-Encoding: \u{0B}chunked"),
    field(.smuggling, "chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
    Attack(.smuggling, "a request in a handshake's body", [400]) { prober throws(Failure) in
      let inner = String(decoding: prober.second, as: UTF8.self)
      return try await prober.send(
        Prober.head(
          ["GET \(prober.address.target) HTTP/1.1"] + prober.handshake + ["Content-Length: \(inner.utf8.count)"]
            + (try await prober.credentials()), body: inner))
    },
    Attack(.smuggling, "a request behind a refused handshake", [401]) { prober throws(Failure) in
      try await prober.send(
        Prober.head(["GET \(prober.address.target) HTTP/1.1"] + prober.handshake) + prober.second)
    },
    registration("a chunk of a bad size", "Transfer-Encoding: chunked", "zz\r\n{}\r\n0\r\n\r\n"),
    registration("a chunk that does not end", "Transfer-Encoding: chunked", "2\r\n{}X0\r\n\r\n"),
    registration(
      "a chunk size that overflows", "Transfer-Encoding: chunked", "10000000000000002\r\n{}\r\n0\r\n\r\n", [400, 413]),
    registration("a chunk size ended by LF", "Transfer-Encoding: chunked", "2\n{}\r\n0\r\n\r\n"),
  ]

  private static func registration(_ name: String, _ framing: String, _ body: String, _ expected: [Int] = [400])
    -> Attack
  {
    Attack(.smuggling, name, expected) { prober throws(Failure) in
      let head = Prober.head(
        ["POST /attest/register HTTP/1.1", "Host: \(prober.address.hostField)", framing], body: body)
      return try await prober.send(head + prober.second)
    }
  }
}
