import ByteCoding
import TestSupport
import Testing

@testable import Wire

@Suite("Variables that choose a proxy")
struct ProxyVariablesTests {
  private static func proxy(
    of variables: [String: String], for scheme: ProxyVariables.Scheme = .https, _ host: String = "www.example.com",
    port: UInt16 = 443
  ) throws(ProxyVariableError) -> ForwardProxy? {
    try ProxyVariables { variables[$0] }.proxy(for: scheme, host: host, port: port)
  }

  @Test(
    "The variable in lowercase comes first, then that in capitals, then the one for all schemes; an empty one is not set",
    arguments: [
      (["https_proxy": "a", "HTTPS_PROXY": "b", "all_proxy": "c", "ALL_PROXY": "d"], "https_proxy"),
      (["https_proxy": "", "HTTPS_PROXY": "b", "all_proxy": "c", "ALL_PROXY": "d"], "HTTPS_PROXY"),
      (["HTTPS_PROXY": "", "all_proxy": "c", "ALL_PROXY": "d"], "all_proxy"), (["ALL_PROXY": "d"], "ALL_PROXY"),
      (["http_proxy": "e", "HTTP_PROXY": "f"], nil), ([:], nil),
    ] as [([String: String], String?)])
  func order(_ variables: [String: String], _ expected: String?) throws {
    #expect(try Self.proxy(of: variables)?.variable == expected)
  }

  @Test("For http, HTTP_PROXY in capitals is not read: a client of a CGI program chooses it")
  func httpoxy() throws {
    #expect(try Self.proxy(of: ["HTTP_PROXY": "a", "https_proxy": "b"], for: .http, port: 80) == nil)
    #expect(try Self.proxy(of: ["HTTP_PROXY": "a", "http_proxy": "b"], for: .http, port: 80)?.host == "b")
    #expect(try Self.proxy(of: ["HTTP_PROXY": "a", "ALL_PROXY": "c"], for: .http, port: 80)?.host == "c")
    let summary = try ProxyVariables { ["HTTP_PROXY": "a"][$0] }.summary(for: .http, host: "example.com", port: 80)
    #expect(summary?.contains("write http_proxy") == true)
  }

  @Test(
    "Scheme, host and port are read as curl reads them",
    arguments: [
      ("proxy.example.com:3128", "http://proxy.example.com:3128"), ("http://proxy:3128/", "http://proxy:3128"),
      ("proxy", "http://proxy:1080"), ("http://proxy", "http://proxy:1080"), ("https://proxy", "https://proxy:443"),
      ("HTTP://Proxy:80/path?query#fragment", "http://Proxy:80"),
      ("http://[2001:db8::1]:8080", "http://[2001:db8::1]:8080"),
      ("http://proxy_1:8080", "http://proxy_1:8080"), ("http://@proxy:1", "http://proxy:1"),
      ("proxy:", "http://proxy:1080"),
    ])
  func places(_ value: String, _ expected: String) throws {
    let proxy = try #require(try Self.proxy(of: ["https_proxy": value]))
    #expect("\(proxy)" == "\(expected) (https_proxy)")
    #expect(proxy.authorization == nil)
  }

  @Test(
    "User and password are percent-decoded, and no text of the proxy has them",
    arguments: [
      ("http://user:secret@proxy:1", "user:secret"), ("user:secret@proxy:1", "user:secret"),
      ("http://us%65r:se%3Acr%40et%25@proxy:1", "user:se:cr@et%"), ("http://user@proxy:1", "user:"),
      ("http://user:sec:ret@proxy:1", "user:sec:ret"), ("http://user:p%C3%A4ss@proxy:1", "user:päss"),
    ])
  func credentials(_ value: String, _ expected: String) throws {
    let proxy = try #require(try Self.proxy(of: ["https_proxy": value]))
    #expect(proxy.authorization == "Basic " + Base64.encode(Array(expected.utf8)))
    #expect("\(proxy) \(String(reflecting: proxy))" == "http://proxy:1 (https_proxy) http://proxy:1 (https_proxy)")
    var dumped = ""
    dump(proxy, to: &dumped)
    #expect(dumped.contains("http://proxy:1 (https_proxy)") && !dumped.contains("Basic"), "\(dumped)")
  }

  @Test(
    "A faulty value is an error that names the variable and what to write, and never the value",
    arguments: [
      "socks5h://user:hunter2@proxy:1", "ftp://user:hunter2@proxy", "http://user:hunter2@proxy:0",
      "http://user:hunter2@proxy:65536", "http://user:hunter2@proxy:99999999999999999999", "http://user:hunter2@",
      "http://user:hunter2@pro xy:1", "http://user:hunter2@a@proxy:1", "http://us%3Aer:hunter2@proxy:1",
      "http://user:hunter2%@proxy:1", "http://user:hunter2%0d%0aX@proxy:1", "http://user:hunter2@[::1:1",
      "http://user:hunter2@[proxy]:1", "http://user:hunter2@proxy:1x", "user:hunter2://proxy:1",
      "http://user:hunter2@pröxy:1", "http://user:hunter2@\"proxy\":1",
      "http://user:hunter2@" + String(repeating: "a", count: 5000), "http://user:hunter2@proxy:1\r\nX: y", "https://:1",
    ])
  func faults(_ value: String) throws {
    let error = #expect(throws: ProxyVariableError.self) { try Self.proxy(of: ["HTTPS_PROXY": value]) }
    let text = "\(try #require(error))"
    #expect(text.hasPrefix("HTTPS_PROXY: ") && text.contains("write HTTPS_PROXY=http://HOST:PORT"), "\(text)")
    #expect(!text.contains("hunter2") && text.utf8.count < 400 && text.utf8.allSatisfy { (0x20..<0x7F).contains($0) })
  }

  @Test("A faulty value fails only the requests that would use it")
  func unused() throws {
    let variables = ["https_proxy": "socks5://a:1", "http_proxy": "http://b:1", "no_proxy": "direct.example.com"]
    #expect(throws: ProxyVariableError.self) { try Self.proxy(of: variables) }
    #expect(try Self.proxy(of: variables, for: .http, port: 80)?.host == "b")
    #expect(try Self.proxy(of: variables, "direct.example.com") == nil)
    #expect(try Self.proxy(of: variables, "localhost") == nil)
    let long = ["https_proxy": "http://a:1", "NO_PROXY": String(repeating: "x,", count: 40_000)]
    let error = #expect(throws: ProxyVariableError.self) { try Self.proxy(of: long) }
    #expect(error?.variable == "NO_PROXY" && error?.hint.contains("write NO_PROXY=") == true)
    #expect(try Self.proxy(of: ["NO_PROXY": long["NO_PROXY"] ?? ""]) == nil)
  }

  @Test(
    "This machine is never reached through a proxy",
    arguments: [
      "localhost", "LOCALHOST", "localhost.", "gate.localhost", "127.0.0.1", "127.1.2.3", "127.1", "0x7f.1",
      "2130706433",
      "::1", "[::1]", "::ffff:127.0.0.1", "[::ffff:7f00:1]", "0.0.0.0", "::", "0",
    ])
  func loopback(_ host: String) throws {
    #expect(try Self.proxy(of: ["ALL_PROXY": "http://proxy:1"], host) == nil)
    #expect(
      try ProxyVariables { ["ALL_PROXY": "http://proxy:1"][$0] }.summary(for: .https, host: host, port: 443) != nil)
  }

  @Test(
    "A host that only looks like this machine is reached through the proxy",
    arguments: [
      "localhost.example.com", "notlocalhost", "128.0.0.1", "127.0.0.1.example.com", "::2", "::ffff:128.0.0.1", "1",
      "x",
    ])
  func lookalikes(_ host: String) throws {
    #expect(try Self.proxy(of: ["ALL_PROXY": "http://proxy:1"], host)?.host == "proxy")
  }
}
