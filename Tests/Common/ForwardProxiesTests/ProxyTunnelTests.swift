import Testing

@testable import Wire

@Suite("A tunnel through a proxy")
struct ProxyTunnelTests {
  private static func tunnel(
    _ host: String = "example.com", _ value: String = "http://user:hunter2@proxy:3128"
  ) throws -> ProxyTunnel {
    try ProxyTunnel(to: host, port: 443, through: ForwardProxy(value, of: "HTTPS_PROXY"))
  }

  @Test("The request names host and port twice, and carries the credentials")
  func request() throws {
    #expect(
      String(decoding: try Self.tunnel().request, as: UTF8.self)
        == "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n"
        + "Proxy-Authorization: Basic dXNlcjpodW50ZXIy\r\n\r\n")
    #expect(
      String(decoding: try Self.tunnel("2001:db8::1", "proxy:1").request, as: UTF8.self)
        == "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n\r\n")
  }

  @Test("A host that would write a further line is refused", arguments: ["a\r\nX: y", "a b", "", "a/b", "u@a", "ä"])
  func injection(_ host: String) {
    #expect(throws: ProxyTunnelError.self) { try Self.tunnel(host) }
  }

  @Test(
    "A 2xx opens the tunnel, whatever pieces it comes in, with fields, interim answers and bare line feeds",
    arguments: [
      "HTTP/1.1 200 Connection established\r\n\r\n", "HTTP/1.0 200\r\n\r\n", "HTTP/1.1 200 \r\nVia: x\r\nA:\r\n\r\n",
      "HTTP/1.1 299 x\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
      "HTTP/1.1 200 OK\nA: b\n\n",
    ])
  func opens(_ answer: String) throws {
    let bytes = Array(answer.utf8)
    for cut in 0..<bytes.count {
      var tunnel = try Self.tunnel()
      #expect(try !tunnel.receive(bytes[..<cut]))
      #expect(try tunnel.receive(bytes[cut...]))
    }
    var tunnel = try Self.tunnel()
    #expect(try bytes.map { try tunnel.receive([$0]) }.filter(\.self).count == 1)
  }

  @Test(
    "Any other answer is an error that names the proxy without its credentials",
    arguments: [
      ("HTTP/1.1 403 Filtered\r\n\r\n", ProxyTunnelError.Fault.refused(status: 403)),
      ("HTTP/1.1 407 x\r\nProxy-Authenticate: Basic\r\n\r\n", .refused(status: 407)),
      ("HTTP/1.1 302 x\r\nLocation: https://evil\r\n\r\n", .refused(status: 302)),
      ("HTTP/1.1 101 x\r\n\r\n", .malformed), ("HTTP/1.1 2000 x\r\n\r\n", .malformed),
      ("HTTP/1.1 20\r\n\r\n", .malformed),
      ("SSH-2.0-OpenSSH", .malformed), ("\u{15}\u{3}\u{3}", .malformed), ("HTTP/2 200\r\n\r\n", .malformed),
      ("HTTP/1.1 600 x\r\n\r\n", .malformed), ("HTTP/1.1200 x\r\n\r\n", .malformed),
      ("HTTP/1.1 200 OK\r\n\r\n\u{16}", .earlyBytes),
      ("HTTP/1.1 200 " + String(repeating: "x", count: 20_000), .tooLong),
      ("HTTP/1.1 200 OK\r\n" + String(repeating: "A: b\r\n", count: 5_000), .tooLong),
      (String(repeating: "HTTP/1.1 100 x\r\n\r\n", count: 2_000), .tooLong),
    ])
  func refuses(_ answer: String, _ fault: ProxyTunnelError.Fault) throws {
    var whole = try Self.tunnel()
    let error = #expect(throws: ProxyTunnelError.self) { try whole.receive(Array(answer.utf8)) }
    #expect(error?.fault == fault)
    let text = error.map { "\($0)" } ?? ""
    #expect(text.contains("proxy:3128 (HTTPS_PROXY)") && !text.contains("hunter2") && !text.contains("dXNlcj"))
    var pieces = try Self.tunnel()
    #expect(throws: ProxyTunnelError.self) { for byte in answer.utf8 { _ = try pieces.receive([byte]) } }
  }

  @Test("The hint for 407 depends on whether there were credentials")
  func credentials() throws {
    for (value, word) in [("http://proxy:1", "requires a user"), ("http://a:b@proxy:1", "refuses the user")] {
      var tunnel = try Self.tunnel("example.com", value)
      let error = #expect(throws: ProxyTunnelError.self) { try tunnel.receive(Array("HTTP/1.1 407 x\r\n\r\n".utf8)) }
      #expect(error.map { "\($0)" }?.contains(word) == true)
    }
  }
}
