extension HeadCase {
  static let framings: [HeadCase] = lengths + codings + behindTheHead

  private static let lengths: [HeadCase] = [
    field("a length and a coding", "Content-Length: 4\r\nTransfer-Encoding: chunked"),
    field("a coding and a length", "Transfer-Encoding: chunked\r\nContent-Length: 4"),
    field("a coding and a length of zero", "Transfer-Encoding: chunked\r\nContent-Length: 0"),
    field("two lengths", "Content-Length: 0\r\nContent-Length: 4"),
    field("the same length twice", "Content-Length: 0\r\nContent-Length: 0"),
    field("a second length in other letter case", "Content-Length: 0\r\ncONTENT-lENGTH: 4"),
    field("a list of lengths", "Content-Length: 0, 0"),
    field("an empty length", "Content-Length:"),
    field("a length with a sign", "Content-Length: +0"),
    field("a negative length", "Content-Length: -1"),
    field("a length of minus zero", "Content-Length: -0"),
    field("a length in hexadecimal", "Content-Length: 0x0"),
    field("a length with a fraction", "Content-Length: 0.0"),
    field("a length with an exponent", "Content-Length: 0e0"),
    field("a length with an underscore", "Content-Length: 0_0"),
    field("a length in two words", "Content-Length: 0 0"),
    field("a length in digits of another script", "Content-Length: \u{660}"),
    field("a quoted length", "Content-Length: \"0\""),
    field("a length that overflows", "Content-Length: 18446744073709551616"),
    field("a length that overflows with a sign", "Content-Length: 9223372036854775808"),
    field("a length with a space before its colon", "Content-Length : 0"),
    field("a length followed by a NUL", "Content-Length: 0\0"),
    field("a length on a folded line", "Content-Length:\r\n 0"),
  ]

  private static let codings: [HeadCase] = [
    field("another coding", "Transfer-Encoding: gzip"),
    field("another coding before chunked", "Transfer-Encoding: gzip, chunked"),
    field("another coding after chunked", "Transfer-Encoding: chunked, gzip"),
    field("the coding identity", "Transfer-Encoding: identity"),
    field("the coding identity, and a length", "Transfer-Encoding: identity\r\nContent-Length: 0"),
    field("an empty coding", "Transfer-Encoding:"),
    field("chunked with a vertical tab", "Transfer-Encoding: \u{0B}chunked"),
    field("chunked followed by a NUL", "Transfer-Encoding: chunked\0"),
    field("chunked with a parameter", "Transfer-Encoding: chunked;q=1"),
    field("chunked in quotes", "Transfer-Encoding: \"chunked\""),
    field("chunked in two words", "Transfer-Encoding: chunked chunked"),
    field("chunked followed by a comma", "Transfer-Encoding: chunked,"),
    field("chunked after a comma", "Transfer-Encoding: ,chunked"),
    field("chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
    field("chunked twice in one field", "Transfer-Encoding: chunked, chunked"),
    field("a coding that is almost chunked", "Transfer-Encoding: xchunked"),
    field("a coding with a letter of another script", "Transfer-Encoding: chun\u{212A}ed"),
    field("a coding with a space before its colon", "Transfer-Encoding : chunked"),
    field("a coding with a tab before its colon", "Transfer-Encoding\t: chunked"),
    field("a coding on a folded line", "Transfer-Encoding:\r\n chunked"),
    field("a coding after a bare LF", "X-A: b\nTransfer-Encoding: chunked"),
  ]

  private static let behindTheHead: [HeadCase] = [
    HeadCase("a body after the handshake that contains a request") {
      let inner = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
      return head(["GET / HTTP/1.1"] + handshake + ["Content-Length: \(inner.utf8.count)"] + $0) + Array(inner.utf8)
    },
    HeadCase("a chunked body after the handshake") {
      head(["GET / HTTP/1.1"] + handshake + ["Transfer-Encoding: chunked"] + $0) + Array("0\r\n\r\n".utf8)
    },
    HeadCase("a chunked body after the handshake, Chunked with a capital") {
      head(["GET / HTTP/1.1"] + handshake + ["transfer-encoding: Chunked"] + $0) + Array("0\r\n\r\n".utf8)
    },
  ]

  static let bodies: [HeadCase] = [
    chunks("a chunk size that is not hexadecimal", "zz\r\nabc\r\n0\r\n\r\n"),
    chunks("an empty chunk size", "\r\nabc\r\n0\r\n\r\n"),
    chunks("a chunk size with a sign", "+3\r\nabc\r\n0\r\n\r\n"),
    chunks("a negative chunk size", "-3\r\nabc\r\n0\r\n\r\n"),
    chunks("a chunk size with 0x", "0x3\r\nabc\r\n0\r\n\r\n"),
    chunks("a chunk size with an underscore", "1_0\r\nabc\r\n0\r\n\r\n"),
    chunks("a chunk size after a space", " 3\r\nabc\r\n0\r\n\r\n"),
    chunks("a chunk size before a space", "3 \r\nabc\r\n0\r\n\r\n"),
    chunks("a chunk size before a tab", "3\t\r\nabc\r\n0\r\n\r\n"),
    chunks("a chunk size of 17 digits", "00000000000000003\r\nabc\r\n0\r\n\r\n"),
    chunks("a chunk size that overflows", "ffffffffffffffff\r\nabc\r\n0\r\n\r\n", 413),
    chunks("a chunk size that wraps around", "10000000000000003\r\nabc\r\n0\r\n\r\n", 413),
    chunks("a chunk extension", "3;x=y\r\nabc\r\n0\r\n\r\n"),
    chunks("a chunk extension without a name", "3;\r\nabc\r\n0\r\n\r\n"),
    chunks("a chunk extension with a bare LF", "3;\nx\r\nabc\r\n0\r\n\r\n"),
    chunks("a chunk size that ends in LF", "3\nabc\r\n0\r\n\r\n"),
    chunks("a chunk size that ends in CR", "3\rabc\r\n0\r\n\r\n"),
    chunks("a chunk size that ends in CR, CR and LF", "3\r\r\nabc\r\n0\r\n\r\n"),
    chunks("more data than the chunk says", "3\r\nabcd\r\n0\r\n\r\n"),
    chunks("less data than the chunk says", "5\r\nabc\r\n0\r\n\r\n"),
    chunks("data followed by LF", "3\r\nabc\n0\r\n\r\n"),
    chunks("data without a line end", "3\r\nabc0\r\n\r\n"),
    chunks("a trailer field", "3\r\nabc\r\n0\r\nX-Attest-Method: app-attest\r\n\r\n"),
    chunks("a length as trailer field", "3\r\nabc\r\n0\r\nContent-Length: 50\r\n\r\n"),
    chunks("a last chunk with an extension", "3\r\nabc\r\n0;x\r\n\r\n"),
    chunks("a last chunk that ends in LF", "3\r\nabc\r\n0\n\n"),
    chunks("65 KiB in one chunk", "10400\r\n", 413),
    body("65 KiB by its length", ["Content-Length: 66560"], "", 413),
    body("a body with a length and a coding", ["Content-Length: 4", "Transfer-Encoding: chunked"], "0\r\n\r\n"),
    body("a body with two lengths", ["Content-Length: 2", "Content-Length: 40"], "{}"),
    body("a body with a list of lengths", ["Content-Length: 2, 2"], "{}"),
    body("a body whose length has a sign", ["Content-Length: +2"], "{}"),
    body("a body in another coding", ["Transfer-Encoding: gzip, chunked"], "0\r\n\r\n"),
    body("a body with two chunked fields", ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], "0\r\n\r\n"),
    body("a body in a coding that is almost chunked", ["Transfer-Encoding: xchunked"], "0\r\n\r\n"),
    body("a body in chunks with a space before the colon", ["Transfer-Encoding : chunked"], "0\r\n\r\n"),
    body("a chunked body on a folded line", ["Transfer-Encoding:", " chunked"], "0\r\n\r\n"),
  ]

  static let upgrades: [HeadCase] = methodsOfUpgrades + protocolsOfUpgrades + handshakes + origins

  private static let handshakes: [HeadCase] = [
    replaced("version 12", "Sec-WebSocket-Version", "Sec-WebSocket-Version: 12", 426),
    replaced("version 8", "Sec-WebSocket-Version", "Sec-WebSocket-Version: 8", 426),
    replaced("version 013", "Sec-WebSocket-Version", "Sec-WebSocket-Version: 013", 426),
    replaced("version +13", "Sec-WebSocket-Version", "Sec-WebSocket-Version: +13", 426),
    replaced("a list of versions", "Sec-WebSocket-Version", "Sec-WebSocket-Version: 13, 8", 426),
    replaced("an empty version", "Sec-WebSocket-Version", "Sec-WebSocket-Version:", 426),
    field("two versions", "Sec-WebSocket-Version: 13", 426),
    replaced("no version of WebSocket", "Sec-WebSocket-Version", nil, 426),
    replaced("a key of 15 bytes", "Sec-WebSocket-Key", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j"),
    replaced("a key of 17 bytes", "Sec-WebSocket-Key", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZXg="),
    replaced("a key without its padding", "Sec-WebSocket-Key", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ"),
    replaced("a key that is not base64", "Sec-WebSocket-Key", "Sec-WebSocket-Key: ======================"),
    replaced("an empty key", "Sec-WebSocket-Key", "Sec-WebSocket-Key:"),
    field("two keys", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="),
    replaced("no key", "Sec-WebSocket-Key", nil),
    field("a subprotocol that is not a token", "Sec-WebSocket-Protocol: a b"),
    field("a quoted subprotocol", "Sec-WebSocket-Protocol: \"a\""),
    field("a list of subprotocols that breaks off in a quote", "Sec-WebSocket-Protocol: a,,\""),
    field("a subprotocol twice", "Sec-WebSocket-Protocol: a, a"),
    field("a subprotocol twice around empty elements", "Sec-WebSocket-Protocol: a,, ,a"),
    field("a token as subprotocol, padded", "Sec-WebSocket-Protocol: eyJhbGciOiJub25lIn0.e30.=="),
    field("an extension without a name between empty elements", "Sec-WebSocket-Extensions: a,;x,"),
    field("an extension that is not a token", "Sec-WebSocket-Extensions: (deflate)"),
    field("an extension with an unclosed quote", "Sec-WebSocket-Extensions: deflate; x=\"y"),
    field("an extension with a parameter without a name", "Sec-WebSocket-Extensions: deflate; =y"),
  ]

  private static let origins: [HeadCase] = [
    field("a foreign origin", "Origin: https://elsewhere.example", 403),
    field("the origin null", "Origin: null", 403),
    field("an origin that begins like the host", "Origin: https://localhost.elsewhere.example", 403),
    field("an origin with the host as its user", "Origin: https://localhost@elsewhere.example", 403),
    field("an empty origin", "Origin:", 403),
    field("two origins", "Origin: https://localhost\r\nOrigin: https://localhost", 403),
  ]

  private static let methodsOfUpgrades: [HeadCase] =
    ["POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get", "GETT"].map {
      line("an upgrade by \($0)", "\($0) / HTTP/1.1")
    }

  private static let protocolsOfUpgrades: [HeadCase] = [
    replaced("another protocol", "Upgrade", "Upgrade: h2c", 426),
    replaced("TLS as protocol", "Upgrade", "Upgrade: TLS/1.2", 426),
    replaced("two protocols", "Upgrade", "Upgrade: h2c, TLS/1.2", 426),
    replaced("a protocol with a version", "Upgrade", "Upgrade: websocket/13", 426),
    replaced("a protocol in quotes", "Upgrade", "Upgrade: \"websocket\"", 426),
    replaced("two fields of protocols", "Upgrade", "Upgrade: h2c\r\nUpgrade: h2", 426),
    replaced(
      "a beginning of HTTP/2", "Upgrade", "Upgrade: h2c\r\nConnection: HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk", 426),
    HeadCase("a beginning of HTTP/2 with a chunked body", 426) {
      head(
        ["POST / HTTP/1.1", "Host: localhost", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"]
          + ["HTTP2-Settings: AAMAAABk", "Transfer-Encoding: chunked"] + $0) + Array("0\r\n\r\n".utf8)
    },
    HeadCase("a WebSocket next to HTTP/2 with a chunked body") {
      head(
        ["GET / HTTP/1.1"] + handshake + ["Upgrade: h2c", "HTTP2-Settings: AAMAAABk", "Transfer-Encoding: chunked"] + $0
      )
        + Array("0\r\n\r\n".utf8)
    },
    replaced("no option to upgrade", "Connection", "Connection: close", 426),
    replaced("an option that is almost upgrade", "Connection", "Connection: upgrades, close", 426),
    replaced("no protocol for the upgrade", "Upgrade", "Connection: close", 426),
  ]
}
